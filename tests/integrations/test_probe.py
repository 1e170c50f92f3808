from __future__ import annotations

import sys
from importlib import import_module

import pytest
import torch

import graphsnd as gs
from graphsnd.errors import MissingExtraError
from graphsnd.integrations.probe import Probe

TEAM = gs.Deterministic(torch.randn(40, 5, 2, generator=torch.Generator().manual_seed(0)))


def test_each_learner_has_its_own_clock_which_may_start_again() -> None:
    probe = Probe(every=10)
    assert [step for step in range(0, 35, 5) if probe.due(step, "a")] == [0, 10, 20, 30]
    assert probe.due(7, "b")
    assert not probe.due(9, "b")
    assert probe.due(2, "a")


def test_numbers_are_those_of_measure() -> None:
    clusters = torch.arange(40) // 8
    numbers = Probe().measure(0, TEAM, clusters=clusters)
    estimate = gs.measure(TEAM, clusters=clusters)
    assert numbers["snd"] == estimate.value == pytest.approx(float(gs.snd(TEAM)), rel=1e-6)
    assert (numbers["snd_low"], numbers["snd_high"]) == estimate.population_interval
    several = Probe(observations=7).places(40)
    assert (len(several), int(several[0]), int(several[-1]), int(several.diff().min())) == (7, 0, 39, 6)


def test_random_pairs_are_drawn_again_and_an_empty_draw_is_all_pairs() -> None:
    probe = Probe(design="bernoulli:0.3")
    values = [probe.measure(step, TEAM)["snd"] for step in range(20)]
    assert len(set(values)) > 5
    assert values == [probe.measure(step, TEAM)["snd"] for step in range(20)]
    rare = Probe(design="bernoulli:0.0001").measure(0, TEAM)
    assert rare["snd"] == gs.measure(TEAM).value


def test_a_design_that_defines_the_measure_gives_it_its_name() -> None:
    ring = gs.graphs.circulant(5, 2)
    assert Probe(design=ring).measure(0, TEAM)["graph_snd"] == pytest.approx(float(gs.graph_snd(TEAM, ring)), rel=1e-6)
    for options in ({"design": "bernouli:0.1"}, {"every": 0}, {"observations": 0.5}):
        with pytest.raises(gs.InputError, match=next(iter(options))):
            Probe(**options)


ADAPTERS = {
    "torchrl": ("tensordict", "torchrl"),
    "sb3": ("stable_baselines3", "stable-baselines3"),
    "jax": ("jax", "jax"),
    "torchmetrics": ("torchmetrics", "torchmetrics"),
    "benchmarl": ("benchmarl", "benchmarl"),
    "rllib": ("ray", "ray"),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_absent_package_is_named(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, name = ADAPTERS[adapter]
    for module in [module for module in sys.modules if module.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"graphsnd.integrations.{adapter}", raising=False)
    with pytest.raises(MissingExtraError, match=f"pip install.*{name}"):
        import_module(f"graphsnd.integrations.{adapter}")
