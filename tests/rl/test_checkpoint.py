from __future__ import annotations

import dataclasses
import errno
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from graphsnd import InputError
from graphsnd.rl import Settings, Task, Trainer, train
from graphsnd.rl.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint, save_teams
from graphsnd.rl.log import read_rows
from graphsnd.teams.files import OBSERVATIONS
from graphsnd.teams.team import Team
from tests.training import control_settings, control_task

SETTINGS = Settings(steps=8, environments=3, minibatch=10, epochs=2, hidden=(8,), iterations=6, diversity_every=2)
TASK = Task("navigation", 3, {"horizon": 11}, (0, 5), settings=SETTINGS.replace(restart=False))


def _bits(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: part.clone() for name, part in trainer.tensors().items()}


@pytest.mark.parametrize(("world", "critic"), [
    ("navigation", "independent"), ("simple_spread", "independent"), ("navigation", "central"),
])  # fmt: skip
def test_resumed_training_is_the_same_to_the_bit(world: str, critic: str, tmp_path: Path) -> None:
    task = Task(world, 3, {"horizon": 11}, (0, 5), settings=SETTINGS.replace(restart=False, critic=critic))
    straight = train(task, tmp_path / "straight")
    half = Task(world, 3, {"horizon": 11}, (0, 5), settings=task.settings.replace(iterations=3))
    assert train(half, tmp_path / "halves").finished
    resumed = train(task, tmp_path / "halves", resume=True)
    one, two = _bits(straight.trainer), _bits(resumed.trainer)
    assert one.keys() == two.keys()
    for name in one:
        assert torch.equal(one[name], two[name]), name
    rows = [read_rows(tmp_path / name) for name in ("straight", "halves")]
    assert [(r.iteration, r.seed) for r in rows[0]] == [(i, s) for i in range(1, 7) for s in (0, 5)]
    for a, b in zip(*rows, strict=True):
        assert (a.iteration, a.seed, a.reward, a.kl, a.entropy) == (b.iteration, b.seed, b.reward, b.kl, b.entropy)
        if a.iteration != 3:  # the last of a training is always measured
            assert (a.snd, a.graph_snd) == (b.snd, b.graph_snd)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(TASK.make_world("cpu"), TASK.settings, seeds=TASK.seeds)
    save_checkpoint(tmp_path, TASK, trainer)
    before = (tmp_path / CHECKPOINT).read_bytes()
    trainer.step()

    def broken(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="disk full"):
            save_checkpoint(tmp_path, TASK, trainer)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))


def test_bad_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`folder`"):
        load_checkpoint(tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="`checkpoint`"):
        load_checkpoint(tmp_path)


def test_a_log_with_gaps_is_not_continued(tmp_path: Path) -> None:
    task = Task(TASK.world, TASK.agents, TASK.options, TASK.seeds, settings=SETTINGS.replace(iterations=4))
    train(task, tmp_path, checkpoint_every=2)
    log = tmp_path / "metrics.csv"
    lines = log.read_text().splitlines(keepends=True)
    for kept in (lines[:2], lines[:1], lines[:2] + lines[3:]):
        log.write_text("".join(kept))
        before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        with pytest.raises(InputError, match=r"`metrics\.csv` with all iterations up to the checkpoint's 4"):
            train(task, tmp_path, resume=True)
        assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    log.unlink()
    with pytest.raises(InputError, match=r"hold metrics\.csv"):
        train(task, tmp_path, resume=True)


def test_the_log_of_a_training_without_its_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    task = Task(TASK.world, TASK.agents, TASK.options, TASK.seeds, settings=SETTINGS.replace(iterations=1))
    train(task, tmp_path)
    (tmp_path / CHECKPOINT).unlink()
    with pytest.raises(InputError, match="log of another training"):
        train(task, tmp_path)
    assert len(read_rows(tmp_path)) == 2


def test_another_training_is_not_overwritten_or_resumed(tmp_path: Path) -> None:
    short = Task("navigation", 3, {"horizon": 11}, (0, 5), settings=SETTINGS.replace(iterations=1))
    train(short, tmp_path)
    with pytest.raises(InputError, match="`folder`"):
        train(short, tmp_path)
    for other in (
        Task("navigation", 3, {"horizon": 12}, (0, 5), settings=short.settings),
        Task("navigation", 3, {"horizon": 11}, (0, 5), settings=short.settings.replace(gamma=0.5)),
    ):
        with pytest.raises(InputError, match="`task`"):
            train(other, tmp_path, resume=True)


def test_other_shapes_are_named() -> None:
    one, two = (Trainer(TASK.make_world("cpu"), TASK.settings.replace(hidden=(h,)), seeds=(0,)) for h in (8, 9))
    with pytest.raises(InputError, match="`checkpoint`"):
        two.load(one.tensors(), 1)


def test_teams_are_files_that_others_can_read(tmp_path: Path) -> None:
    trainer = Trainer(TASK.make_world("cpu"), TASK.settings, seeds=TASK.seeds)
    trainer.step()
    observations = trainer.buffer.observations[1].reshape(-1, 18)
    save_teams(tmp_path, trainer)
    for seed in TASK.seeds:
        found, team = Team.load(tmp_path / f"seed-{seed}" / "team.safetensors"), trainer.team(seed)
        assert torch.equal(found.evaluate(observations).loc, team.evaluate(observations).loc)  # type: ignore[attr-defined]
        assert found.about == {"world": "navigation", "seed": seed, "iteration": 1}  # type: ignore[attr-defined]


CONTROLLED = control_settings(steps=8, environments=3, epochs=1, minibatch=12, hidden=(8,), iterations=2)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("controlled", [False, True])
def test_observations_are_saved_with_their_episodes(controlled: bool, few: bool, tmp_path: Path) -> None:
    options = {"horizon": 5}  # so that an environment begins another episode within a rollout
    task: Task = Task("navigation", 3, options, (0, 5), settings=SETTINGS.replace(iterations=2))
    if controlled:
        task = control_task(3, (0.1, "unconstrained"), world="navigation", options=options, settings=CONTROLLED)
    most = {"audit_observations" if controlled else "diversity_observations": 20 if few else 4096}
    task = dataclasses.replace(task, settings=task.settings.replace(**most))
    buffer = train(task, tmp_path).trainer.buffer
    for run, name in enumerate(task.run_names()):
        held = load_file(tmp_path / name / OBSERVATIONS)
        clusters, known = held["clusters"], {}
        assert (clusters.dtype, clusters.shape) == (torch.int64, (20 if few else 8 * 3 * 3,))
        for row, cluster in zip(held["observations"], clusters.tolist(), strict=True):
            (step, environment, _), *others = (buffer.observations[run] == row).all(-1).nonzero().tolist()
            assert not others
            ended = int(buffer.done[run, :step, environment].sum())
            known.setdefault((environment, ended), set()).add(cluster)
        ends = buffer.done[run, :-1].sum(0).tolist()
        expected = {(e, ended) for e in range(3) for ended in range(ends[e] + 1)}
        assert known.keys() <= expected if few else known.keys() == expected
        assert min(ends) > 0
        assert all(len(each) == 1 for each in known.values())
        assert len(set().union(*known.values())) == len(known)


def test_the_only_episode_is_no_cluster(tmp_path: Path) -> None:
    train(Task("navigation", 3, settings=SETTINGS.replace(environments=1, iterations=1)), tmp_path)
    assert load_file(tmp_path / "seed-0" / OBSERVATIONS).keys() == {"observations"}
