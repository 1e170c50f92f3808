from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from benchmarl.algorithms import IppoConfig
from benchmarl.environments import VmasTask
from benchmarl.experiment import Callback
from benchmarl.models import MlpConfig

import graphsnd as gs
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl import ActionSpaceLoss, DiCoModelConfig, DiversityCallback
from graphsnd.integrations.benchmarl.callbacks import action_overflow
from graphsnd.integrations.benchmarl.evaluation import evaluate_group, sample_frames
from tests.integrations.benchmarl.conftest import build

MODEL = DiCoModelConfig(target=0.1, num_cells=(8,))
PLAIN = MlpConfig(num_cells=[8], layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh)


def test_overflow_is_the_farthest_agents(generator) -> None:
    model = build(target=None, squash_shared=False)
    observations = 5 * torch.randn(9, 4, 5, generator=generator)
    expected = 0.0
    with torch.no_grad():
        for frame in model.network(observations, torch.tensor(1.0))[..., :2].double():
            expected += max(float((loc - loc.clamp(-1, 1)).norm()) for loc in frame) ** 2 / 9
    loss = action_overflow(model, observations)
    assert expected > 0
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    before = model.controller_state.clone()
    loss.backward()
    with torch.no_grad():
        for each in model.parameters():
            each -= 0.01 * (0 if each.grad is None else each.grad)
    assert float(action_overflow(model, observations).detach()) < expected
    assert torch.equal(model.controller_state, before)


def test_setups_that_would_lie_are_refused(experiment) -> None:
    with pytest.raises(InputError, match="collect_with_grad"):
        experiment(IppoConfig, MODEL, callbacks=[DiversityCallback()], collect_with_grad=True)
    with pytest.raises(InputError, match="DiCoModelConfig"):
        experiment(IppoConfig, PLAIN, callbacks=[ActionSpaceLoss()])


class Frames(Callback):
    """Graph-SND of the batch just collected, by the pairs that are nearest in each frame."""

    def on_batch_collected(self, batch) -> None:
        frames, _ = sample_frames(batch, 40)
        policy = self.experiment.algorithm.get_policy_for_loss("agents")
        actions = evaluate_group(policy, frames, "agents", squashed=False)
        points = torch.cat([actions.loc, actions.scale], -1).double()  # [seats, frames, agents, ...]
        total, places = 0.0, frames["agents", "observation"][..., :2]
        for number, place in enumerate(places):
            apart = torch.cdist(place, place).fill_diagonal_(torch.inf)
            pairs = {tuple(sorted((agent, int(apart[agent].argmin())))) for agent in range(4)}
            for seat in range(4):
                each = [float((points[seat, number, i] - points[seat, number, j]).norm()) for i, j in pairs]
                total += sum(each) / len(each) / (4 * len(places))
        self.value = total


def test_a_graph_of_positions_is_that_of_each_frame(experiment) -> None:
    log, frames = DiversityCallback(design="knn:1", positions=2, squashed=False, every=2), Frames()
    run = experiment(IppoConfig, PLAIN, callbacks=[log, frames], share_policy_params=False, max_n_iters=3)
    run.run()
    assert [row["step"] for row in log.rows] == [0, 2]
    assert log.rows[-1]["graph_snd_of_actions"] == pytest.approx(frames.value, rel=1e-5)


def test_the_total_of_several_groups(experiment, tmp_path: Path) -> None:
    log = DiversityCallback(observations=60)
    options = {**VmasTask.SIMPLE_TAG.get_from_yaml().config, "num_good_agents": 2, "num_adversaries": 3}
    task = VmasTask.SIMPLE_TAG.get_task(options)
    experiment(IppoConfig, PLAIN, callbacks=[log], task=task, share_policy_params=False).run()
    assert [row["group"] for row in log.rows] == ["adversary", "agent", "total"] * 2
    three, two, total = log.rows[-3:]
    assert total["snd_of_actions"] == pytest.approx(
        (3 * three["snd_of_actions"] + two["snd_of_actions"]) / 4, rel=1e-12
    )
    assert list(tmp_path.rglob("diversity_total_snd_of_actions.csv"))


def test_what_cannot_be_measured_is_said_once(experiment) -> None:
    log = DiversityCallback(distance=gs.Hellinger())  # has no meaning for squashed Gaussians
    run = experiment(IppoConfig, PLAIN, callbacks=[log], share_policy_params=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.run()
    assert len([each for each in caught if "'agents' is not measured" in str(each.message)]) == 1
    assert (run.n_iters_performed, log.rows) == (2, [])
