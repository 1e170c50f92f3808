from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

import graphsnd as gs
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam, engine
from graphsnd.teams import stacked as module
from graphsnd.teams.engine import run_layers


def team(agents: int, generator: torch.Generator) -> StackedTeam:
    network = StackedMLP.create((agents,), (6, 16, 3), generator=generator, init="linear")
    return StackedTeam(network, CategoricalHead(3))


@pytest.mark.parametrize("spread", [1, 30, 3000])
def test_work_is_proportional_to_the_requests(
    spread: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, networks = [], []

    def spy(inputs: torch.Tensor, weights: Sequence[torch.Tensor], *rest: Any) -> torch.Tensor:
        rows.append(inputs.shape[0] * inputs.shape[1])
        networks.append(len(weights[0]))
        return run_layers(inputs, weights, *rest)

    monkeypatch.setattr(engine, "run_layers", spy)
    monkeypatch.setattr(StackedMLP, "forward", lambda *_: pytest.fail("the whole team was evaluated"))
    agents = torch.randint(spread, (500, 2), generator=generator)
    team(3000, generator).partial(torch.randn(500, 6, generator=generator), agents)
    assert sum(rows) <= 1.5 * agents.numel()
    assert sum(networks) <= agents.unique().numel() + agents.numel() / 64


def test_chunks_do_not_show(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    made = team(40, generator)
    observations = torch.randn(70, 6, generator=generator)
    agents = torch.randint(40, (70, 3), generator=generator)
    whole, some = made.evaluate(observations), made.partial(observations, agents)
    monkeypatch.setattr(module, "CACHED_ACTIVATIONS", 1)
    monkeypatch.setattr(engine, "MAX_ACTIVATIONS", 1)
    monkeypatch.setattr(engine, "MAX_GATHERED", {"cpu": 1})
    torch.testing.assert_close(made.evaluate(observations).probs, whole.probs)  # type: ignore[attr-defined]
    torch.testing.assert_close(made.partial(observations, agents).probs, some.probs)  # type: ignore[attr-defined]
    with torch.no_grad():  # weights are then gathered chunk by chunk
        torch.testing.assert_close(made.partial(observations, agents).probs, some.probs)  # type: ignore[attr-defined]


def test_identical_agents_are_at_distance_zero(generator: torch.Generator) -> None:
    network = StackedMLP.create((1,), (18, 64, 64, 2), generator=generator)
    same = StackedMLP([w.expand(9, -1, -1) for w in network.weights], [b.expand(9, -1, -1) for b in network.biases])
    made = StackedTeam(same, GaussianHead(2, batch=(9,)))
    assert float(gs.snd(made.evaluate(torch.randn(257, 18, generator=generator))).detach()) == 0


def test_observations_take_the_weights_dtype(generator: torch.Generator) -> None:
    made = team(4, generator)
    assert made.evaluate(torch.zeros(3, 6, dtype=torch.float64)).probs.dtype == torch.float32  # type: ignore[attr-defined]


def test_diverged_weights_are_named(generator: torch.Generator) -> None:
    made = team(4, generator)
    made.network.weights[0].data.fill_(torch.nan)
    with pytest.raises(gs.InputError, match=r"`logits`.*diverged"):
        made.partial(torch.zeros(3, 6), torch.zeros(3, 1, dtype=torch.int64))


def test_parts_that_do_not_fit(generator: torch.Generator) -> None:
    network = StackedMLP.create((4,), (6, 3), generator=generator)
    with pytest.raises(gs.InputError, match=r"`network`.*4 outputs.*3 outputs"):
        StackedTeam(network, CategoricalHead(4))
    with pytest.raises(gs.InputError, match=r"`head`.*\(4,\).*\(\).*batch=network.batch"):
        StackedTeam(network, GaussianHead(3))
    with pytest.raises(gs.InputError, match=r"`network`.*\(agents,\).*\(2, 4\).*select"):
        StackedTeam(StackedMLP.create((2, 4), (6, 3), generator=generator), CategoricalHead(3))


@pytest.mark.gpu
def test_cuda(generator: torch.Generator) -> None:
    made = team(300, generator)
    observations = torch.randn(200, 6, generator=generator)
    agents = torch.randint(300, (200, 4), generator=generator)
    expected = made.partial(observations, agents).probs.detach()  # type: ignore[attr-defined]
    got = made.to("cuda").partial(observations.cuda(), agents.cuda()).probs.detach().cpu()  # type: ignore[attr-defined]
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
