from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.behavior.points import flatten


def test_leading_dimensions_are_the_observations() -> None:
    behavior = gs.Deterministic(torch.zeros(5, 7, 3, 2))
    assert (behavior.agents, behavior.observations, behavior.batch_shape) == (3, 35, (5, 7))
    assert repr(behavior) == "Deterministic(agents=3, observations=35)"


def test_no_leading_dimension_is_one_observation() -> None:
    assert gs.Deterministic(torch.zeros(3, 2)).observations == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened(dtype: torch.dtype) -> None:
    assert flatten(torch.zeros(2, 3, 4, dtype=dtype)).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_flatten_keeps_dtype_and_order(dtype: torch.dtype) -> None:
    values = torch.arange(24, dtype=dtype).reshape(2, 2, 3, 2)
    assert torch.equal(flatten(values), values.reshape(4, 3, 2))
    assert flatten(values).dtype == dtype


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        ([[0.0, 1.0]], ["torch.Tensor", "(..., agents, actions)", "list"]),
        (torch.zeros(3), ["(..., agents, actions)", "(3,)", "agents axis"]),
        (torch.tensor(1.0), ["(..., agents, actions)", "()"]),
        (torch.zeros(2, 3, 2, dtype=torch.int64), ["floating", "int64", "Categorical"]),
        (torch.zeros(0, 3, 2), ["at least one observation", "(0, 3, 2)", "rollout"]),
        (torch.zeros(5, 0, 3, 2), ["at least one observation"]),
        (torch.zeros(4, 0, 2), ["no empty axis", "(4, 0, 2)"]),
        (torch.zeros(4, 3, 0), ["no empty axis", "(4, 3, 0)"]),
        (torch.full((2, 3, 2), torch.nan), ["finite", "12 NaN", "(0, 0, 0)", "diverged"]),
        (torch.tensor([[0.0], [torch.inf]]), ["finite", "1 NaN or infinite", "(1, 0)"]),
        (torch.tensor([[torch.inf], [-torch.inf]]), ["2 NaN or infinite"]),
    ],
)
def test_bad_tensors(tensor: object, words: list[str]) -> None:
    with pytest.raises(gs.InputError) as error:
        gs.Deterministic(tensor)  # type: ignore[arg-type]
    assert error.value.name == "actions"
    assert "`actions`" in str(error.value)
    assert all(word in str(error.value) for word in words), str(error.value)


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


def test_values_whose_sum_overflows_are_still_finite() -> None:
    gs.Deterministic(torch.full((1, 4, 4), 3e38))
    gs.Deterministic(torch.full((1, 4, 4), 60000.0, dtype=torch.float16))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_indices_of_actions_are_not_cast(dtype: torch.dtype) -> None:
    with pytest.raises(gs.InputError, match=r"floating dtype.*graphsnd\.Categorical") as error:
        gs.Deterministic(torch.zeros(8, 3, 1, dtype=dtype))
    assert "float()" not in str(error.value)


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


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Deterministic({}), ["actions", "names"]),
        (lambda: gs.Deterministic({"a": torch.ones(5, 2), "b": torch.ones(5, 3)}), ["(5, 2)", "(5, 3)", "spaces"]),
        (lambda: gs.Deterministic({"a": torch.ones(5, 2), "b": [1.0]}), ["actions['b']", "list"]),
        (lambda: gs.Gaussian({"a": torch.ones(5, 2)}, {"b": torch.ones(5, 2)}), ["`scale` by the names a", "got b"]),
        (lambda: gs.Deterministic(torch.ones(5, 2, 1)).with_names("ab" * 2), ["names", "2 different strings"]),
        (lambda: gs.Deterministic({1: torch.ones(5, 2), "1": torch.ones(5, 2)}), ["`names`", "2, of which 1 differ"]),  # type: ignore[dict-item]
        (lambda: gs.Deterministic(torch.ones(5, 2, 1)).with_names(["a", "a"]), ["names", "2 different strings"]),
    ],
)
def test_bad_names(make, words: list[str]) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(gs.InputError) as error:
        make()
    assert all(word in str(error.value) for word in words), str(error.value)
