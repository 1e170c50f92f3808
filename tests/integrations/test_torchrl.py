from __future__ import annotations

import sys
from itertools import combinations

import pytest
import torch

import graphsnd as gs

pytest.importorskip("torchrl")
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule, TensorDictSequential
from torch import Tensor
from torchrl.collectors import SyncDataCollector
from torchrl.data import Categorical as CategoricalSpec
from torchrl.envs import VmasEnv
from torchrl.modules import MultiAgentMLP, ProbabilisticActor, QValueModule, TanhDelta, TanhNormal
from torchrl.trainers import Trainer

from graphsnd.errors import MissingExtraError
from graphsnd.integrations.torchrl import ActorTeam, DiversityHook

AGENTS, FEATURES = 4, 5
OBSERVATION = ("agents", "observation")


def network(outputs: int, **options) -> MultiAgentMLP:
    torch.manual_seed(0)
    defaults = {"centralized": False, "share_params": False, "depth": 1, "num_cells": 8}
    sizes = {"n_agent_inputs": FEATURES, "n_agent_outputs": outputs, "n_agents": AGENTS}
    return MultiAgentMLP(**{**sizes, **defaults, **options})


def module(outputs: int, name: str = "action", **options) -> TensorDictModule:
    return TensorDictModule(network(outputs, **options), in_keys=[OBSERVATION], out_keys=[("agents", name)])


def gaussian(distribution=TanhNormal, **options) -> ProbabilisticActor:
    outputs = [("agents", "loc"), ("agents", "scale")]
    layers = torch.nn.Sequential(network(4, **options), NormalParamExtractor())
    actor = TensorDictModule(layers, in_keys=[OBSERVATION], out_keys=outputs)
    return ProbabilisticActor(actor, in_keys=outputs, out_keys=[("agents", "action")], distribution_class=distribution)


def greedy() -> TensorDictSequential:
    head = QValueModule(
        action_value_key=("agents", "action_value"),
        out_keys=[("agents", "action"), ("agents", "action_value"), ("agents", "chosen_action_value")],
        spec=CategoricalSpec(3, shape=(AGENTS,)),
        action_space=None,
    )
    return TensorDictSequential(module(3, "action_value"), head)


def rollout() -> TensorDict:
    seen = torch.randn(6, AGENTS, FEATURES, generator=torch.Generator().manual_seed(1))
    return TensorDict({"agents": TensorDict({"observation": seen}, [6, AGENTS])}, [6])


def by_hand(actor: torch.nn.Module, apart) -> float:
    """One agent, one observation and one pair at a time, in float64."""
    (net,) = [each for each in actor.modules() if isinstance(each, MultiAgentMLP)]
    weights = [each.detach().double() for _, each in sorted(net.params.flatten_keys(".").items())]  # bias, weight, ...
    distances = []
    for row in rollout()[OBSERVATION].flatten(0, 1).double():
        answers = []
        for agent in range(AGENTS):
            b0, w0, b1, w1 = (each[agent] for each in weights)
            answers.append(w1 @ torch.tanh(w0 @ row + b0) + b1)
        distances += [apart(a, b) for a, b in combinations(answers, 2)]
    return sum(distances) / len(distances)


def normal(a: Tensor, b: Tensor) -> float:
    extract = NormalParamExtractor()
    return float(sum((p - q).square().sum() for p, q in zip(extract(a), extract(b), strict=True)).sqrt())


def delta() -> ProbabilisticActor:
    keys = {"in_keys": {"param": ("agents", "param")}, "out_keys": [("agents", "action")]}
    return ProbabilisticActor(module(2, "param"), **keys, distribution_class=TanhDelta)


@pytest.mark.parametrize(
    ("actor", "apart"),
    [
        (lambda: network(2), lambda a, b: float((a - b).norm())),
        (lambda: module(2), lambda a, b: float((a - b).norm())),
        (gaussian, normal),
        (delta, lambda a, b: float((a - b).norm())),
        (greedy, lambda a, b: float(a.argmax() != b.argmax())),
    ],
    ids=["mlp", "module", "probabilistic", "delta", "greedy"],
)
def test_actors_are_compared_on_the_same_observations(actor, apart) -> None:
    made = actor()
    team = ActorTeam(made, squashed=False)
    estimate = gs.measure(team, rollout()[OBSERVATION])
    assert estimate.value == pytest.approx(by_hand(made, apart), rel=1e-5)
    assert (estimate.agents, estimate.observations) == (AGENTS, 6 * AGENTS)


def test_a_rollout_is_read_at_the_actors_key() -> None:
    team, data = ActorTeam(gaussian()), rollout()
    assert team.observation_key == OBSERVATION
    assert torch.equal(gs.snd(team.evaluate(data)), gs.snd(team.evaluate(data[OBSERVATION])))
    assert gs.measure(team, data).value == gs.measure(team, data[OBSERVATION]).value
    with pytest.raises(gs.InputError, match=r"`observations` with the entry \('agents', 'observation'\)"):
        gs.measure(team, data["agents"])
    with pytest.raises(gs.InputError, match=r"`observations` to be a tensor, got a TensorDict"):
        gs.measure(ActorTeam(network(2)), data)
    with pytest.raises(gs.InputError, match="observations"):
        gs.evaluate([torch.sin, torch.cos], data)


@pytest.mark.parametrize("actor", [lambda: network(2, share_params=True), lambda: gaussian(share_params=True)])
@pytest.mark.parametrize("observations", [1, 33, 1000])
def test_shared_parameters_are_exactly_no_diversity(actor, observations: int) -> None:
    team = ActorTeam(actor())
    seen = torch.randn(observations, FEATURES, generator=torch.Generator().manual_seed(0))
    assert gs.measure(team, seen).value == 0.0


def test_a_shared_network_that_knows_the_agent_is_diverse() -> None:
    class Told(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network(2, share_params=True)

        def forward(self, seen: Tensor) -> Tensor:
            return self.net(seen + torch.arange(AGENTS).unsqueeze(-1))

    actor = TensorDictModule(Told(), in_keys=[OBSERVATION], out_keys=[("agents", "action")])
    assert gs.measure(ActorTeam(actor), rollout()[OBSERVATION]).value > 0


def test_what_is_refused() -> None:
    with pytest.raises(gs.InputError, match=r"`actor`.*function"):
        ActorTeam(torch.sin)
    with pytest.raises(gs.InputError, match=r"stacked module can take, got torch.float32 of shape \(1, 4, 7\)"):
        gs.measure(ActorTeam(module(2)), torch.randn(6, 7))
    with pytest.raises(gs.InputError, match="centralised"):
        ActorTeam(network(2, centralized=True))
    plain = TensorDictModule(torch.nn.Linear(FEATURES, 2), in_keys=[OBSERVATION], out_keys=["action"])
    with pytest.raises(gs.InputError, match="agents"):
        ActorTeam(plain)
    several = TensorDictModule(network(2), in_keys=[OBSERVATION, "state"], out_keys=["action"])
    with pytest.raises(gs.InputError, match="one input"):
        ActorTeam(several)
    mixing = TensorDictModule(lambda seen: seen - seen.mean(-2, keepdim=True), in_keys=["o"], out_keys=["action"])
    with pytest.raises(gs.InputError, match="each observation by itself"):
        ActorTeam(mixing, agents=AGENTS).evaluate(torch.randn(6, FEATURES))


def test_evaluation_leaves_modes_alone() -> None:
    layers = torch.nn.Sequential(torch.nn.Dropout(0.5), network(2))
    actor = TensorDictModule(layers, in_keys=[OBSERVATION], out_keys=[("agents", "action")])
    layers[1].eval()
    one, two = (ActorTeam(actor).evaluate(rollout()).actions for _ in range(2))
    assert torch.equal(one, two)
    assert (layers[0].training, layers[1].training) == (True, False)


def test_a_trainer_logs_diversity() -> None:
    pytest.importorskip("vmas")
    environment = VmasEnv("dispersion", num_envs=3, max_steps=10, device="cpu", seed=0)
    features = environment.observation_spec[OBSERVATION].shape[-1]
    actor = module(2, n_agent_inputs=features)
    collector = SyncDataCollector(environment, actor, frames_per_batch=30, total_frames=90)
    seen = []
    trainer = Trainer(
        collector=collector, total_frames=90, frame_skip=1, optim_steps_per_batch=1, progress_bar=False,
        loss_module=lambda batch: TensorDict({"loss": torch.zeros(())}),
    )  # fmt: skip
    trainer.register_op("pre_steps_log", lambda batch: seen.append(batch[OBSERVATION].clone()))
    DiversityHook(team := ActorTeam(actor)).register(trainer)
    trainer.train()
    assert trainer._log_dict["snd"] == [gs.measure(team, each).value for each in seen]
    assert len(seen) == 3
    assert all(a < b for a, b in zip(trainer._log_dict["snd_low"], trainer._log_dict["snd_high"], strict=True))


def test_absent_package_names_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensordict", None)
    monkeypatch.delitem(sys.modules, "graphsnd.integrations.torchrl")
    with pytest.raises(MissingExtraError, match="torchrl"):
        __import__("graphsnd.integrations.torchrl")
