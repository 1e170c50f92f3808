from __future__ import annotations

import copy
import dataclasses
import itertools
from pathlib import Path
from statistics import fmean

import pytest
import torch
from safetensors.torch import load_file

import graphsnd as gs
import graphsnd.rl.dico as control_module
from graphsnd import InputError
from graphsnd.control import ControlledTeam, audit, audit_error, tracking_error
from graphsnd.control.measurement import measure_points
from graphsnd.designs.design import Complete
from graphsnd.rl import PRESETS, train
from graphsnd.rl.cuda import Stopwatch
from graphsnd.rl.dico import choose_observations, find_positions
from graphsnd.rl.log import read_rows, run_folder
from graphsnd.rl.presets import DISPERSION
from graphsnd.rl.rollout import Minibatch
from graphsnd.rl.worlds import SimpleSpread
from graphsnd.teams.engine import PLAIN
from graphsnd.teams.team import Team
from tests.training import TINY, control_of, control_settings, control_task

TASK = control_task(4, (0.1, "unconstrained", "homogeneous"), ("complete", "matching"), (0, 3), settings=TINY)


def test_one_estimate_for_each_step_and_it_sees_the_right_observations() -> None:
    trainer = control_task(4, (0.1,), settings=TINY).make_trainer()
    trainer.step()
    batch = Minibatch.from_rollout(trainer.buffer, trainer.settings, PLAIN)
    control = control_of(trainer)
    before = control.states[0]
    sample, agent = choose_observations(10, 4, 20, torch.device("cpu"))
    rows = batch.observations[:, agent, sample]
    measured = measure_points(Complete(), control.policy.controlled.deviation(rows)[0]).value
    expected = 0.99 * before.estimate + 0.01 * measured
    control.generators = [torch.Generator()]
    index, watch = torch.arange(10).unsqueeze(0), Stopwatch(torch.device("cpu"))
    scale = control.before_step(batch, trainer.buffer, index, watch)
    assert scale.tolist() == pytest.approx((0.1 / expected).tolist(), rel=1e-9)
    assert control.states[0].estimate.tolist() == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
        ),
    ],
)
@pytest.mark.parametrize("filled", [control_module.MOST_FILLED, -1], ids=["side by side", "one after another"])
@pytest.mark.parametrize("design", ["knn:2", "radius:0.05", "radius:1e-9"])
def test_local_estimates_have_the_neighbours_of_each_sample(
    design: str, filled: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "MOST_FILLED", filled)
    trainer = control_task(4, (0.1,), (design,), (0, 3), settings=TINY.replace(hidden=(64, 64))).make_trainer(device)
    trainer.step()
    buffer = trainer.buffer
    if design == "radius:1e-9":
        buffer.observations[..., 0] = torch.arange(4, device=device)  # so that nobody has a neighbour
    batch = Minibatch.from_rollout(buffer, trainer.settings, trainer.policy.engine)
    control = control_of(trainer)
    control.after_rollout(buffer, 2)
    index = torch.stack([torch.arange(18).roll(run) for run in range(2)])[:, :10].to(device)
    sample, agent = choose_observations(10, 4, 20, torch.device("cpu"))
    before, expected = control.states[0], []
    for run in range(2):
        seen, each = buffer.observations[run].flatten(0, 1), []
        for s, a in zip(index[run, sample.to(device)].tolist(), agent.tolist(), strict=True):
            shown = control.policy.controlled.deviation(batch.observations[:, a, s : s + 1]).detach()[run, 0]
            graph = gs.designs.parse(design).draw(seen.shape[1], positions=seen[s, :, :2])
            each.append(float(gs.graph_snd(gs.Deterministic(shown[None]), graph)))
        expected.append(sum(each) / len(each))
    scale = control.before_step(batch, buffer, index, Stopwatch(torch.device(device)))
    estimates = 0.99 * before.estimate + 0.01 * torch.tensor(expected, dtype=torch.float64, device=device)
    assert (design == "radius:1e-9") == (max(expected) == 0)
    assert control.states[0].estimate.tolist() == pytest.approx(estimates.tolist(), rel=1e-6)
    assert scale.tolist() == pytest.approx((0.1 / estimates).tolist(), rel=1e-6)


def test_a_crowded_sample_does_not_widen_the_others() -> None:
    settings = TINY.replace(observations=2048, minibatch=18)
    trainer = control_task(150, (0.1,), ("radius:0.01",), settings=settings).make_trainer()
    buffer, control = trainer.buffer, control_of(trainer)
    buffer.observations[..., 0] = torch.arange(150)
    buffer.observations[0, 0, 0, :, :2] = 0.0  # all agents in one place in one of 18 samples
    chosen = torch.arange(18).repeat(114)[None, :2048]
    (selection,) = control._select(control.groups[0], buffer, chosen)
    assert isinstance(selection.edges, gs.graphs.MovingGraph)
    assert selection.edges.starts.diff().tolist() == [150 * 149 // 2 * (at == 0) for at in chosen[0].tolist()]


def test_neighbours_are_those_of_the_last_rollout() -> None:
    trainer = control_task(4, (0.1,), ("knn:2",), settings=TINY).make_trainer()
    trainer.step()
    control = control_of(trainer)
    first = control.neighbours[0][0]
    assert len(first) == trainer.settings.samples
    trainer.step()
    now = gs.graphs.knn(trainer.buffer.observations[0].flatten(0, 1)[..., :2], 2)
    assert torch.equal(control.neighbours[0][0].edges, now.edges)
    assert not torch.equal(first.starts, now.starts)


def test_chosen_observations_are_distinct_and_spread() -> None:
    for samples, agents, count in ((7, 3, 5), (7, 3, 14), (4, 5, 99)):
        sample, agent = choose_observations(samples, agents, count, torch.device("cpu"))
        pairs = set(zip(sample.tolist(), agent.tolist(), strict=True))
        assert len(pairs) == len(sample) == min(count, samples * agents)
        assert agent.bincount(minlength=agents).max() - agent.bincount(minlength=agents).min() <= 2


def test_arms_of_neighbours_are_audited_by_what_they_hold_too() -> None:
    task = control_task(4, (0.1,), ("complete", "knn:2"), settings=TINY)
    trainer = task.make_trainer()
    trainer.step()
    rows = trainer.step()
    control = control_of(trainer)
    assert (rows[0].local_audit, rows[0].local_error) == (None, None)
    assert rows[1].local_audit == pytest.approx(float(control.local_audits[1]))
    assert rows[1].local_error == pytest.approx(abs(rows[1].local_audit - 0.1) / 0.1)
    # Once more from the buffer, one observation at a time.
    buffer = trainer.buffer
    seen = buffer.observations[1].flatten(0, 1)
    sample, agent = control._audited(buffer.observations)
    team, values = control.policy.controlled.team(1, control.policy.scale[1]), []
    for s, a in zip(sample.tolist(), agent.tolist(), strict=True):
        graph = gs.graphs.knn(seen[s, :, :2], 2)
        values.append(gs.graph_snd(team.evaluate(seen[s, a][None]), graph).item())
    assert float(control.audit(buffer)[1][1]) == pytest.approx(sum(values) / len(values), rel=1e-5)


def test_rows_say_what_happened() -> None:
    trainer = TASK.make_trainer()
    first, second = trainer.step(), trainer.step()
    assert [(row.arm, row.target, row.seed) for row in first] == [
        ("complete", 0.1, 0), ("complete", 0.1, 3), ("matching", 0.1, 0), ("matching", 0.1, 3),
        ("unconstrained", None, 0), ("unconstrained", None, 3), ("homogeneous", None, 0), ("homogeneous", None, 3),
    ]  # fmt: skip
    for row in first[:4]:
        assert row.applied == pytest.approx(row.estimate * row.scale)
        assert row.tracking_error == pytest.approx(abs(row.applied - 0.1) / 0.1)
        assert row.audit_error == pytest.approx(abs(row.audit - 0.1) / 0.1)
        assert row.audit > 0.15  # before anything was measured the scale is 1
    assert all(row.audit == 0 and row.scale == 0 for row in second[6:])
    assert all(row.scale == 1 and row.audit_error is None for row in second[4:6])
    assert all(row.observations == 20 and row.update_seconds > 0 and row.rollout_seconds > 0 for row in second)
    assert all(0.05 < row.audit < 0.2 for row in second[:4])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_level_that_is_sought_is_held_and_audited(device: str) -> None:
    settings = TINY.replace(tau=0.5, environments=8, observations=240, audit_observations=192)
    task = control_task(4, ("seek:0.1:0.8", 0.3), seeds=(0, 3), settings=settings)
    trainer, seen = task.make_trainer(device), []
    for _ in range(24):
        seek, state = control_of(trainer).groups[-1].controller, control_of(trainer).states[-1]
        level = seek.level(state)  # type: ignore[attr-defined]
        rows = trainer.step()[2:]
        assert [row.level for row in rows] == level.tolist()
        reward = trainer.buffer.rewards[2:].mean((1, 2, 3))
        state = seek.observe(reward, state)  # type: ignore[attr-defined]
        assert torch.equal(state.place, control_of(trainer).states[-1].place)
        assert [row.clear for row in rows] == seek.report(state).clear.int().tolist()  # type: ignore[attr-defined]
        for row in rows:
            assert (row.arm, row.target) == ("seek:0.1:0.8", None)
            assert row.audit_error == pytest.approx(abs(row.audit - row.level) / row.level)
        seen += rows
    assert len({row.level for row in seen}) > 5
    assert sum(row.audit_error for row in seen[2:]) / len(seen[2:]) < 0.1


def test_arms_are_paired_by_seed() -> None:
    trainer = TASK.make_trainer()
    weights = control_of(trainer).policy.controlled.deviations.weights[0]
    assert torch.equal(weights[0], weights[2])
    assert not torch.equal(weights[0], weights[1])
    rows = trainer.step()
    # The first rollout is before the first measurement, so arms that scale by 1 have the same one.
    assert rows[0].reward == rows[2].reward == rows[4].reward
    assert torch.equal(trainer.buffer.observations[0], trainer.buffer.observations[4])


def test_a_run_comes_out_as_it_would_alone() -> None:
    together = TASK.make_trainer()
    alone = dataclasses.replace(TASK, target=0.1, design="matching", seeds=(3,)).make_trainer()
    for _ in range(3):
        many, one = together.step(), alone.step()
    assert many[3].arm == "matching"
    assert one[0].audit == pytest.approx(many[3].audit, rel=1e-4)
    assert one[0].estimate == pytest.approx(many[3].estimate, rel=1e-4)


def test_discrete_actions_are_controlled_in_logits() -> None:
    task = control_task(3, (0.2,), ("complete",), world="simple_spread", options={"horizon": 6}, settings=TINY)
    trainer = task.make_trainer()
    assert control_of(trainer).policy.controlled.kind == "categorical"
    trainer.step()
    rows = trainer.step()
    assert 0.1 < rows[0].applied < 0.3
    assert 0.1 < rows[0].audit < 0.3  # in the units of the target; the total variation is about a quarter of it


@pytest.mark.slow
def test_diversity_is_held_where_it_should_be() -> None:
    settings = control_settings(
        environments=32, steps=50, epochs=30, minibatch=400, hidden=(32, 32), observations=256, iterations=12,
    )  # fmt: skip
    # Rollouts of whole episodes: what agents see in the first half of one differs from the second.
    options = DISPERSION | {"horizon": 50}
    task = control_task(4, (0.1,), ("complete", "bernoulli:0.5", "matching"), options=options, settings=settings)
    trainer = task.make_trainer()
    found = [trainer.step() for _ in range(settings.iterations)]
    for run in range(3):
        audits = [rows[run].audit for rows in found]
        assert audit_error(audits[:1], 0.1) > 1
        assert audit_error(audits, 0.1, last=6) < 0.05
        # Single rollouts of 32 environments differ by some percent whatever the scale.
        assert tracking_error(audits, 0.1, last=6) < 0.1


def test_the_small_preset_holds_its_target_from_the_second_iteration_on() -> None:
    settings = PRESETS["dispersion"].settings.replace(threads=1)
    assert settings.tau == 0.05
    trainer = control_task(4, (0.1,), settings=settings).make_trainer()
    audits = [trainer.step()[0].audit for _ in range(4)]
    assert abs(fmean(audits[1:]) / 0.1 - 1) < 0.05  # 1.5%; with the paper's tau 14%


@pytest.mark.parametrize("world", ["dispersion", "simple_spread"])
def test_a_saved_team_measures_what_the_next_audit_says(world: str, tmp_path: Path) -> None:
    """The policies that an iteration audits are those that the one before it left behind."""
    runs = dataclasses.replace(TASK, world=world, options=TASK.options if world == "dispersion" else {})
    train(runs.with_iterations(2), tmp_path)
    teams = {name: Team.load(tmp_path / name) for name in runs.run_names()}
    train(runs.with_iterations(3), tmp_path, resume=True)
    rows = {run_folder(row): row for row in read_rows(tmp_path)}
    for name, team in teams.items():
        assert isinstance(team, ControlledTeam)
        assert team.about["iteration"] == 2
        assert (team.about["arm"], team.about["target"], team.about["seed"]) == (
            rows[name].arm, rows[name].target, rows[name].seed,
        )  # fmt: skip
        seen = load_file(tmp_path / name / "observations.safetensors")["observations"]
        assert float(audit(team, seen)) == rows[name].audit
        assert float(gs.measure(team, seen)) == pytest.approx(rows[name].audit, rel=1e-6)
        assert rows[name].audit == pytest.approx(_mean_distance(team, seen.double()), rel=1e-5)


def _mean_distance(team: ControlledTeam, seen: torch.Tensor) -> float:
    """The definition, in a loop over pairs in float64: distance of means, or of logits less their mean."""
    with torch.no_grad():
        deviations = copy.deepcopy(team.deviations).double()(seen.expand(team.agents, -1, -1))
    own = [team.scale.double() * each for each in deviations]
    if team.kind == "categorical":
        own = [each - each.mean(-1, keepdim=True) for each in own]
    gaps = [(a - b).norm(dim=-1).mean() for a, b in itertools.combinations(own, 2)]
    return float(torch.stack(gaps).mean())


def test_neighbours_in_simple_spread_are_those_in_the_plane() -> None:
    task = control_task(4, (0.1,), ("knn:1",), world="simple_spread", options={}, settings=TINY)
    trainer = task.make_trainer()
    trainer.step()
    control = control_of(trainer)
    places = trainer.buffer.observations[0].flatten(0, 1)[..., 2:4]  # the first two features are the velocity
    for graph, at in zip(control.neighbours[0][0], places, strict=True):
        apart = torch.cdist(at, at).fill_diagonal_(torch.inf).argmin(1).tolist()
        assert {tuple(edge) for edge in graph.edges.tolist()} == {tuple(sorted(pair)) for pair in enumerate(apart)}
    team, seen = (
        control.policy.controlled.team(0, control.policy.scale[0]),
        trainer.buffer.observations[0].flatten(0, 1),
    )
    sample, agent = control._audited(trainer.buffer.observations)
    held = audit(team, seen[sample, agent], design="knn:1", positions=seen[sample][..., 2:4])
    assert float(control.audit(trainer.buffer)[1][0]) == pytest.approx(float(held), rel=1e-6)


def test_neighbours_that_nobody_sees_are_refused() -> None:
    class Blind(SimpleSpread):
        def observe(self, state):
            return 2 * super().observe(state)

    with pytest.raises(InputError, match="positions"):
        find_positions(Blind(3, 2))
