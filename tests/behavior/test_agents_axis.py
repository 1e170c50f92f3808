"""The warning about tensors whose agents axis may be another one."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import graphsnd as gs
from graphsnd.behavior import AgentsAxisWarning
from graphsnd.cli.app import app
from graphsnd.plots.measurement import pair_distances

FLIPPED = torch.randn(3, 40, 2, generator=torch.Generator().manual_seed(0))  # 3 agents on 40 observations
USES = (
    gs.snd,
    gs.measure,
    gs.pairwise,
    gs.contributions,
    lambda team: gs.decompose(team, [0] * team.agents),
    lambda team: gs.graph_snd(team, gs.graphs.uniform(team.agents, 3)),
    lambda team: gs.edge_distances(team, gs.graphs.uniform(team.agents, 3)),
    lambda team: gs.horvitz_thompson(team, gs.graphs.uniform(team.agents, 3)),
    lambda team: gs.measure(team, design="matching"),
)
FAMILIES = (
    gs.Deterministic,
    lambda t: gs.Gaussian(t, 1.0),
    lambda t: gs.MultivariateGaussian(t, torch.eye(2)),
    lambda t: gs.Categorical(logits=t),
    lambda t: gs.Quantiles(t.unsqueeze(-1).expand(*t.shape, 8)),
    lambda t: gs.Deterministic(t.numpy()),
    lambda t: gs.from_distribution(torch.distributions.Normal(t, 1.0)),
)


@pytest.mark.parametrize("use", USES)
def test_every_measurement_warns_where_it_is_called(use: Any) -> None:
    with pytest.warns(AgentsAxisWarning, match=r"Read 40 agents and 3 observations from .*movedim\(0, -2\)") as seen:
        use(gs.Deterministic(FLIPPED))
    assert {warning.filename for warning in seen} == {__file__}
    assert len(seen) == 1


@pytest.mark.parametrize("build", FAMILIES)
def test_every_family_warns_and_the_advice_is_right(build: Any) -> None:
    with pytest.warns(AgentsAxisWarning):
        gs.pairwise(build(FLIPPED))
    turned = build(FLIPPED.movedim(0, -2))
    assert (turned.agents, turned.observations) == (3, 40)
    gs.pairwise(turned)


def test_leading_axes_are_pooled() -> None:
    gs.snd(gs.Deterministic(torch.randn(5, 8, 40, 2)))  # 40 observations of 40 agents
    with pytest.warns(AgentsAxisWarning, match="Read 40 agents and 35 observations"):
        gs.snd(gs.Deterministic(torch.randn(5, 7, 40, 2)))


def test_once_for_each_place() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            gs.snd(gs.Deterministic(FLIPPED))
    assert len(seen) == 1


def test_silent_where_agents_are_known_or_few_observations_are_meant() -> None:
    named = gs.Deterministic({str(k): row for k, row in enumerate(FLIPPED.movedim(1, 0))})
    policies = [torch.nn.Linear(2, 2) for _ in range(6)]
    seen = torch.randn(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AgentsAxisWarning)
        for use in USES:
            use(named)
            use(gs.Deterministic(FLIPPED).with_names(named.names))
            use(gs.Deterministic(torch.zeros(1, 5, 2)))  # one observation, as in the docs
            use(gs.evaluate(policies, seen))
        gs.snd(gs.evaluate(lambda o: gs.Gaussian(o.unsqueeze(-2).expand(-1, 6, -1), 1.0), seen))
        gs.evaluate([lambda o: gs.Categorical(logits=o)] * 3, torch.randn(50, 4))
        gs.evaluate([lambda o: gs.Gaussian(o, 1.0)] * 3, torch.randn(4, 50, 2), whole=True)
        for design in (None, "agents:5", "matching:2", "ring:4", "regular:3"):
            gs.measure(policies, seen, design=design)
            gs.measure(dict(zip("abcdef", policies, strict=True)), seen, design=design)


def test_silent_in_accumulators_metrics_and_controllers() -> None:
    torchmetrics = pytest.importorskip("graphsnd.integrations.torchmetrics", exc_type=ImportError)
    behavior = gs.Deterministic(FLIPPED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AgentsAxisWarning)
        gs.SndAccumulator(40).update(behavior)
        torchmetrics.SystemNeuralDiversity().update(behavior)
        pair_distances(behavior, None, None, gs.measure(behavior.with_names(list(map(str, range(40))))))


def test_the_command_line_says_it_in_one_line(tmp_path: Any) -> None:
    torch.save({"actions": FLIPPED}, tmp_path / "team.pt")
    result = CliRunner().invoke(app, ["measure", str(tmp_path / "team.pt"), "--json"])
    assert result.exit_code == 0
    assert [line for line in result.stderr.splitlines() if line.startswith("graphsnd: Read 40 agents and 3 obs")]
    assert result.stdout.count("\n") == 1
