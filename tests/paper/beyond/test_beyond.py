"""The study of levels: what is planned, that its runs train, and its rules on logs whose answers are known."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from graphsnd.rl import Settings, Task
from graphsnd.rl.log import Row
from graphsnd.rl.task import read_range
from paper.beyond.__main__ import EVERY, app
from paper.beyond.answers import NO, OPEN, YES, answer_all, answer_large
from paper.beyond.online import run_online
from paper.beyond.page import write_page
from paper.beyond.tasks import LARGE, STACKS, STUDIED, estimate_minutes, fit_cost

TINY = {"environments": 2, "steps": 8, "minibatch": 16, "epochs": 1, "hidden": (8,), "iterations": 3, "threads": 1}
LEVELS = (0.0, *STUDIED["navigation"].levels, None)
# Rewards by level: a peak at 0.4, a fall from 0 on, and no difference.
SHAPES = {"pays": (0, 1, 2, 4, 6, 4, 2, 3), "costs": (6, 5, 4, 3, 2, 1, 0, 5), "nothing": (0,) * 8}


def rows_of(task: Task, shape: Sequence[float], *, sought: float, off: float = 0.0, noise: float = 0.2) -> list[Row]:
    """Return logs of 60 iterations in which the reward depends on the level as ``shape`` says."""
    generator, rows = np.random.default_rng(1), []
    by_level = dict(zip(LEVELS, map(float, shape), strict=True))
    for run in task.runs():
        word = {"homogeneous": 0.0, "unconstrained": None}.get(run.arm, run.target)
        reward = sought if read_range(run.arm) else by_level[word]
        reward += noise * generator.standard_normal()
        audit = (word or 0.7 * (word is None)) * (1 + off)
        base = {"seed": run.seed, "value_loss": 0.0, "rollout_seconds": 1.0, "update_seconds": 1.0}
        level = 0.4 if read_range(run.arm) else None
        rows += [
            Row(iteration=k, arm=run.arm, target=run.target, reward=reward, audit=audit, level=level, **base)
            for k in range(1, 61)
        ]
    return rows


def answers_for(shape: str, **options: float) -> dict[str, str]:
    studied = STUDIED["navigation"]
    logs = {
        f"beyond/navigation/{name}": rows_of(studied.task(design), SHAPES[shape], **{"sought": 5.9} | options)
        for name, design in (("complete", "complete"), ("bernoulli", "bernoulli:0.1"))
    }
    return {found.question: found.answer for found in answer_all(logs)}


def test_the_plan_has_enough_runs_and_no_long_stack() -> None:
    assert sum(len(task.runs()) for task in STACKS.values()) >= 150
    assert max(map(estimate_minutes, EVERY.values())) < 9.5
    base, each = fit_cost()
    assert 0 < base < 1e-3
    assert 0 < each < 1e-4
    printed = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["plan"])
    assert printed.exit_code == 0, printed.output
    assert all(name in printed.output for name in EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_every_stack_trains(name: str) -> None:
    task = EVERY[name]
    small = task.settings.replace(**TINY, observations=16, audit_observations=16)
    few = dataclasses.replace(task, agents=min(task.agents or 0, 10), seeds=task.seeds[:1], settings=small)
    rows = few.make_trainer().step()
    assert [(row.arm, row.target) for row in rows] == [(run.arm, run.target) for run in few.runs()]
    assert len(task.runs()) in (45, 30, 5, 6)


def test_answers_where_diversity_pays() -> None:
    found = answers_for("pays")
    assert found["Does diversity pay in navigation?"] == YES
    assert found["Does an SND of 0.9 cost reward in navigation?"] == NO
    assert found["Is a level better than no constraint in navigation?"] == YES
    assert found["Does a tenth of the pairs leave the reward in navigation as it is?"] == YES
    assert found["Is SND held at every level in navigation?"] == YES
    assert found["Does Seek end as high as the best fixed level in navigation?"] == YES
    assert found["Is Seek better than no constraint over all frames in navigation?"] == YES
    assert len(found) == 7


def test_answers_where_it_costs_or_does_nothing() -> None:
    found = answers_for("costs", sought=0.0, off=0.1)
    assert found["Does diversity pay in navigation?"] == NO
    assert found["Does an SND of 0.9 cost reward in navigation?"] == YES
    assert found["Is SND held at every level in navigation?"] == NO
    assert found["Does Seek end as high as the best fixed level in navigation?"] == NO
    assert found["Is Seek better than no constraint over all frames in navigation?"] == NO
    found = answers_for("nothing", sought=0.0, off=0.03)
    assert {answer for question, answer in found.items() if "tenth" not in question} == {OPEN}


def test_answers_on_frames_and_on_larger_teams() -> None:
    dispersion = STUDIED["dispersion"]
    logs = {"beyond/dispersion/complete": rows_of(dispersion.task(), SHAPES["pays"], sought=5.0)}
    for seed in range(5):
        task = dispersion.task(seeds=(seed,), environments=600)
        logs[f"beyond/dispersion-600/seed-{seed}"] = rows_of(task, SHAPES["pays"], sought=5.0, noise=0.01 * (seed + 1))
    assert [found.answer for found in answer_all(logs)] == [YES]
    name, task = next(iter(LARGE.items()))
    for off, answer in ((0.01, YES), (0.03, OPEN), (0.1, NO)):
        rows = [
            dataclasses.replace(row, audit=0.12 * (1 + off))
            for row in rows_of(dataclasses.replace(task, target=(0.1,)), SHAPES["pays"], sought=0.0)
        ]
        found = answer_large(name, [dataclasses.replace(row, target=0.12) for row in rows])
        assert (found.question, found.answer) == ("Is SND held with 100 agents?", answer)


def test_the_page_has_every_answer_and_the_time_of_the_runs(tmp_path: Path) -> None:
    studied = STUDIED["navigation"]
    logs = {
        f"beyond/navigation/{name}": rows_of(studied.task(design), SHAPES["pays"], sought=5.9)
        for name, design in (("complete", "complete"), ("bernoulli", "bernoulli:0.1"))
    }
    moments = [{"errors": {"ring:2": error}} for error in (0.01, 0.06)]
    (tmp_path / "online.json").write_text(json.dumps({"moments": moments}), encoding="utf-8")
    write_page(logs, tmp_path)
    text = (tmp_path / "answers.md").read_text(encoding="utf-8")
    assert all(f"| {found.question} | {found.answer} | {found.what} |" in text for found in answer_all(logs))
    assert "from ring:2? | no | root mean square errors 1.00% to 6.00% |" in text
    # In each of two stacks 60 iterations with a second for rollouts and one for updates.
    assert text.startswith("75 runs, 4.0 minutes")
    assert (tmp_path / "levels.png").stat().st_size > 10_000


def test_a_team_is_measured_while_it_learns() -> None:
    task = Task("navigation", 12, settings=Settings(steps=4, environments=4, minibatch=8, iterations=3))
    plans = ("bernoulli:0.5", "ring:2", "agents:4")
    moments = run_online(task, when=(1, 3), plans=plans, observations=64, draws=3, device="cpu")
    assert [moment.iteration for moment in moments] == [1, 3]
    assert all(moment.snd > 0 and moment.iteration_s > 0 and set(moment.errors) == set(plans) for moment in moments)
    assert all(0 < error < 1 for moment in moments for error in moment.errors.values())
