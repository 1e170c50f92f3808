from __future__ import annotations

import pickle

import pytest
import torch
from benchmarl.algorithms import IppoConfig
from benchmarl.models import MlpConfig

from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl import ActionSpaceLoss, DiCoModelConfig, DiversityLog
from graphsnd.integrations.benchmarl.callbacks import action_overflow
from tests.integrations.benchmarl.conftest import build

MODEL = DiCoModelConfig(target=0.1, num_cells=(8,))


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


def test_nothing_to_gain_inside_the_range(generator) -> None:
    loss = action_overflow(build(target=0.0), torch.randn(9, 4, 5, generator=generator))
    assert float(loss.detach()) == 0.0
    loss.backward()


def test_setups_that_would_lie_are_refused(experiment) -> None:
    with pytest.raises(InputError, match="collect_with_grad"):
        experiment(IppoConfig, MODEL, callbacks=[DiversityLog()], collect_with_grad=True)
    with pytest.raises(InputError, match="discrete"):
        experiment(IppoConfig, MODEL, callbacks=[ActionSpaceLoss()], prefer_continuous_actions=False)
    plain = MlpConfig(num_cells=[8], layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh)
    with pytest.raises(InputError, match="DiCoModelConfig"):
        experiment(IppoConfig, plain, callbacks=[DiversityLog()])


def test_callbacks_are_pickled_without_the_experiment() -> None:
    log = DiversityLog(most=7)
    log.experiment, log.rows = object(), [{"audit": 1.0}]
    other = pickle.loads(pickle.dumps(log))
    assert (other.experiment, other.rows, other.most) == (None, [], 7)
