from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch
from benchmarl.algorithms import (
    IddpgConfig,
    IppoConfig,
    IqlConfig,
    IsacConfig,
    MaddpgConfig,
    MappoConfig,
    MasacConfig,
    QmixConfig,
    VdnConfig,
)
from benchmarl.environments import VmasTask
from benchmarl.experiment import Experiment
from tensordict import TensorDict

from graphsnd.integrations.benchmarl import ActionSpaceLoss, DiCoModelConfig, DiversityCallback

MODEL = {"target": 0.1, "design": "bernoulli:0.5", "num_cells": (16,)}


def scalars(folder: Path, name: str) -> list[float]:
    (path,) = folder.rglob(f"{name}.csv")
    return [float(line.split(",")[1]) for line in path.read_text().splitlines()]


DISCRETE = {"prefer_continuous_actions": False}


@pytest.mark.parametrize(
    ("algorithm", "options", "forwards"),
    [
        *((algorithm, {}, 4) for algorithm in (IppoConfig, MappoConfig)),
        *((algorithm, {}, 3) for algorithm in (MaddpgConfig, IddpgConfig, MasacConfig, IsacConfig)),
        (IppoConfig, DISCRETE, 4),
        *((algorithm, DISCRETE, 3) for algorithm in (MasacConfig, QmixConfig, VdnConfig, IqlConfig)),
        pytest.param(MappoConfig, DISCRETE, 4, marks=pytest.mark.integration),
        pytest.param(IsacConfig, DISCRETE, 3, marks=pytest.mark.integration),
    ],
)
def test_every_algorithm_runs_two_iterations(algorithm, options, forwards, experiment, tmp_path: Path) -> None:
    log = DiversityCallback()
    callbacks = [log] if options else [log, ActionSpaceLoss()]
    run = experiment(algorithm, DiCoModelConfig(**MODEL), callbacks=callbacks, **options)
    run.run()
    assert [row["step"] for row in log.rows] == [0, 1]
    (model,) = log.models().values()
    for row in log.rows:
        # One measurement for each optimiser step: none in rollouts, targets, or the action-space loss.
        assert row["forwards"] == forwards
        assert row["applied"] == pytest.approx(0.1, rel=0.2)
        assert "snd" not in row  # beside a target it would be taken for the audit
        assert all(math.isfinite(value) for value in row.values() if isinstance(value, float))
    assert log.rows[-1]["estimate"] == float(model.estimate)
    assert scalars(tmp_path, "diversity_agents_audit") == pytest.approx([row["audit"] for row in log.rows])
    if not options:
        assert min(scalars(tmp_path, "train_agents_loss_action_space")) >= 0


@pytest.mark.parametrize(("algorithm", "name"), [(IqlConfig, "value_network"), (QmixConfig, "local_value_network")])
def test_targets_are_scaled_as_the_policies_are(algorithm, name: str, experiment) -> None:
    run = experiment(algorithm, DiCoModelConfig(**MODEL), callbacks=[log := DiversityCallback()], **DISCRETE)
    run.run()
    (loss,), (model,) = run.losses.values(), log.models().values()
    targets, sources = getattr(loss, f"target_{name}_params"), getattr(loss, f"{name}_params")
    for key, source in sources.items(True, True):
        if source.requires_grad:  # what the updater of targets would bring them to
            targets[key].data.copy_(source.data)
    seen = torch.randn(5, model.n_agents, model.gather(model.input_spec.zero()).shape[-1])
    network = getattr(loss, name)

    def values(parameters) -> torch.Tensor:
        with torch.no_grad(), parameters.to_module(network):
            shown = TensorDict({"agents": TensorDict({"observation": seen}, [5])}, [5])
            return network(shown)["agents", "action_value"]

    assert model.scale < 0.5
    assert torch.equal(values(targets), values(sources))


@pytest.mark.parametrize("algorithm", [IppoConfig, MaddpgConfig])
def test_a_level_that_is_sought_moves_between_batches(algorithm, experiment) -> None:
    options = {**MODEL, "target": [0.1, 0.8], "tau": 0.5}
    log = DiversityCallback()
    run = experiment(algorithm, DiCoModelConfig(**options), callbacks=[log], max_n_iters=14)
    run.run()
    (model,) = log.models().values()
    levels = [row["level"] for row in log.rows]
    assert levels[0] == 0.1
    assert len(set(levels)) > 2  # it begins to look around after some rewards
    assert max(abs(b - a) for a, b in itertools.pairwise(levels)) < 0.7 / 7 + 1e-9
    for row in log.rows[1:]:
        assert row["applied"] == pytest.approx(row["level"], abs=0.15)  # the level after the batch, here a step away
    held = float(model.controller.level(model.state))
    assert float(model.scale) == pytest.approx(held / float(model.estimate), rel=1e-6)


def test_a_group_of_one_agent_has_no_diversity_and_scale_one(experiment) -> None:
    log = DiversityCallback()
    run = experiment(IppoConfig, DiCoModelConfig(**MODEL), callbacks=[log], task=VmasTask.SIMPLE_TAG.get_from_yaml())
    run.run()
    single = [row for row in log.rows if row["group"] == "agent"]
    assert [(row["audit"], row["scale"]) for row in single] == [(0.0, 1.0)] * 2
    others = [row for row in log.rows if row["group"] == "adversary"]
    assert all(row["audit"] > 0 and row["applied"] == pytest.approx(0.1, rel=0.2) for row in others)


def test_a_checkpoint_is_reloaded_and_goes_on(experiment, tmp_path: Path) -> None:
    callbacks = [DiversityCallback(), ActionSpaceLoss(lr=1e-3)]
    run = experiment(IppoConfig, DiCoModelConfig(**MODEL), callbacks=callbacks, checkpoint_at_end=True)
    run.run()
    (model,) = callbacks[0].models().values()
    (path,) = tmp_path.rglob("checkpoint_80.pt")
    again = Experiment.reload_from_file(str(path), experiment_patch={"max_n_iters": 3})
    log, loss = again.callbacks
    (other,) = log.models().values()
    assert other is not model
    for name, value in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], value), name
    before = callbacks[1]._optimizers["agents"].state_dict()["state"]
    after = loss._optimizers["agents"].state_dict()["state"]
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key]["exp_avg"], after[key]["exp_avg"]) for key in before)
    again.run()
    assert [row["step"] for row in log.rows] == [2]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["complete", "bernoulli:0.5"])
def test_four_agents_are_held_at_the_target(estimator: str, experiment) -> None:
    log = DiversityCallback()
    # A hundred training forwards in an iteration: with tau 0.01 the estimate would lag one behind.
    model = DiCoModelConfig(target=0.3, design=estimator, tau=0.05, num_cells=(64, 64))
    experiment(
        IppoConfig, model, callbacks=[log], loggers=[], task={"food_radius": 0.08}, max_n_iters=10,
        on_policy_collected_frames_per_batch=3000, on_policy_n_envs_per_worker=30,
        on_policy_n_minibatch_iters=10, on_policy_minibatch_size=300,
    ).run()  # fmt: skip
    audits = [row["audit"] for row in log.rows]
    assert abs(audits[0] - 0.3) / 0.3 > 0.05  # before control
    late = sum(audits[-5:]) / 5
    assert abs(late - 0.3) / 0.3 < 0.05
