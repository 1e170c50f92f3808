from __future__ import annotations

import pytest
import torch

import graphsnd as gs


def test_leading_dimensions_are_the_observations() -> None:
    behavior = gs.Deterministic(torch.zeros(5, 7, 3, 2))
    assert (behavior.agents, behavior.observations, behavior.batch_shape) == (3, 35, (5, 7))
    assert repr(behavior) == "Deterministic(agents=3, observations=35)"


def test_validation_can_be_left_out_but_shapes_cannot() -> None:
    gs.Deterministic(torch.full((1, 2, 1), torch.nan), validate=False)
    with pytest.raises(gs.InputError):
        gs.Deterministic(torch.zeros(3), validate=False)


@pytest.mark.parametrize("family", ["Deterministic", "Gaussian", "scale", "Quantiles"])
def test_the_agent_of_a_bad_value_is_named(family: str) -> None:
    build = {
        "Deterministic": gs.Deterministic,
        "Gaussian": lambda arrays: gs.Gaussian(arrays, 1.0),
        "scale": lambda arrays: gs.Gaussian({name: torch.zeros(5, 2) for name in arrays}, arrays),
        "Quantiles": lambda arrays: gs.Quantiles(
            {name: array[:, None].expand(5, 3, 2) for name, array in arrays.items()}
        ),
    }[family]
    arrays = {f"agent_{agent}": torch.zeros(5, 2) for agent in range(50)}
    arrays["agent_37"][1, 1] = torch.nan
    with pytest.raises(gs.InputError, match=r"the first at index \(1, 37, .*\) of agent agent_37\. Look"):
        build(arrays)


NAMES = ("scout", "carrier", "guard")


def test_a_dict_of_agents_keeps_its_names(generator: torch.Generator) -> None:
    values = {name: torch.rand(20, 2, generator=generator) + 0.1 for name in NAMES}
    stacked = torch.stack(list(values.values()), dim=-2)
    backwards = dict(reversed(values.items()))
    square = {name: torch.diag_embed(value) for name, value in values.items()}
    quantiles = {name: value.unsqueeze(-1).expand(20, 2, 4) for name, value in values.items()}
    pairs = [
        (gs.Deterministic(values), gs.Deterministic(stacked)),
        (gs.Gaussian(values, backwards), gs.Gaussian(stacked, stacked)),
        (gs.Gaussian(values, 0.5), gs.Gaussian(stacked, 0.5)),
        (gs.MultivariateGaussian(values, square), gs.MultivariateGaussian(stacked, torch.diag_embed(stacked))),
        (gs.Categorical(logits=values), gs.Categorical(logits=stacked)),
        (gs.Categorical(probs={n: v.softmax(-1) for n, v in values.items()}), gs.Categorical(logits=stacked)),
        (gs.Quantiles(quantiles), gs.Quantiles(stacked.unsqueeze(-1).expand(20, 3, 2, 4))),
    ]
    for named, plain in pairs:
        assert (named.names, named.named) == (NAMES, True)
        assert (plain.names, plain.named) == (("0", "1", "2"), False)
        torch.testing.assert_close(gs.pairwise(named), gs.pairwise(plain))
        again = plain.with_names(NAMES)
        assert (again.names, plain.named) == (NAMES, False)
    mask = {name: torch.tensor([True, name == "guard"]) for name in NAMES}
    probs = gs.Categorical(logits=values, mask=mask).probs
    assert bool((probs[:, :2, 1] == 0).all())
    assert bool((probs[:, 2, 1] > 0).all())
