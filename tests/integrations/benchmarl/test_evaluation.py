"""Diversity in real BenchMARL experiments against loops in float64: one agent, one observation, one pair at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarl.algorithms import (
    IppoConfig,
    IqlConfig,
    MaddpgConfig,
    MasacConfig,
    QmixConfig,
)
from benchmarl.environments import VmasClass, VmasTask
from benchmarl.experiment import Callback
from benchmarl.models import CnnConfig, GruConfig, LstmConfig, MlpConfig
from benchmarl.models.common import Model, ModelConfig
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor
from torch import Tensor
from torchrl.data import Composite, Unbounded
from torchrl.envs.transforms import ObservationTransform
from torchrl.envs.transforms.transforms import _apply_to_composite
from torchrl.modules import MaskedCategorical, ProbabilisticActor

import graphsnd as gs
from graphsnd.integrations.benchmarl import DiCoModelConfig, DiversityCallback, load_teams
from graphsnd.integrations.benchmarl.evaluation import GroupTeam, evaluate_group
from graphsnd.integrations.torchrl import ActorTeam

LAYERS = {"num_cells": [16], "layer_class": torch.nn.Linear, "activation_class": torch.nn.Tanh}
MLP = MlpConfig(**LAYERS)
RNN = {"hidden_size": 8, "n_layers": 1, "bias": True, "dropout": 0.0, "compile": False}
RNN |= {f"mlp_{name}": value for name, value in LAYERS.items()}
DISCRETE = {"prefer_continuous_actions": False}
Answer = Callable[[dict[str, Tensor], int, Tensor], Tensor]  # parameters, agent, joint observation -> outputs by seat
Apart = Callable[[Tensor, Tensor], float]


class Loop(Callback):
    """The same number, by hand, on the same frames and with the same policies."""

    def __init__(self, answer: Answer, apart: Apart) -> None:
        super().__init__()
        self.answer, self.apart, self.values = answer, apart, []

    def on_batch_collected(self, batch: Any) -> None:
        policy = self.experiment.algorithm.get_policy_for_loss("agents")
        # Of MLPs and networks like them without what stands before their name.
        stem = re.compile(r"(?:.*module\.)?(?:0\.(?=mlp|gru|lstm|cnn))?")
        weights = {stem.sub("", name, 1): each.detach().double() for name, each in policy.named_parameters()}
        frames = batch["agents", "observation"].double()  # [environments, time, agents, features]
        distances = []
        for sequence in frames:
            answers = [self.answer(weights, agent, sequence) for agent in range(4)]  # each [time, seats, outputs]
            for one, other in combinations(answers, 2):
                pairs = zip(one.flatten(0, 1), other.flatten(0, 1), strict=True)
                distances += [self.apart(a, b) for a, b in pairs]
        self.values.append(sum(distances) / len(distances))


def head(weights: dict[str, Tensor], agent: int, x: Tensor) -> Tensor:
    hidden = torch.tanh(x @ weights["mlp.params.0.weight"][agent].T + weights["mlp.params.0.bias"][agent])
    return hidden @ weights["mlp.params.2.weight"][agent].T + weights["mlp.params.2.bias"][agent]


def gru(weights: dict[str, Tensor], agent: int, sequence: Tensor) -> Tensor:
    cell = torch.nn.GRUCell(sequence.shape[-1], 8).double()
    cell.load_state_dict({name: weights[f"gru.params.grus.0.{name}"][agent] for name in cell.state_dict()})
    memory, states = torch.zeros(sequence.shape[1], 8, dtype=torch.float64), []
    with torch.no_grad():
        for seen in sequence:  # no episode of dispersion ends within these batches
            memory = cell(seen, memory)
            states.append(memory)
    return head(weights, agent, torch.stack(states))


def lstm(weights: dict[str, Tensor], agent: int, sequence: Tensor) -> Tensor:
    w, u, b, c = (weights[f"lstm.params.lstms.0.{name}"][agent] for name in torch.nn.LSTMCell(1, 1).state_dict())
    memory = state = torch.zeros(sequence.shape[1], 8, dtype=torch.float64)
    states = []
    for seen in sequence:
        write, forget, new, read = (seen @ w.T + b + state @ u.T + c).chunk(4, -1)
        memory = forget.sigmoid() * memory + write.sigmoid() * new.tanh()
        state = read.sigmoid() * memory.tanh()
        states.append(state)
    return head(weights, agent, torch.stack(states))


def cnn(weights: dict[str, Tensor], agent: int, sequence: Tensor) -> Tensor:
    """Four filters of 3 x 3 at the four places where they fit into a picture of 4 x 4 with one channel."""
    filters, bias = (weights[f"cnn.params.0.{name}"][agent] for name in ("weight", "bias"))
    pictures = sequence[..., 0].unsqueeze(-3)  # [time, seats, 1, 4, 4]
    places = [pictures[..., y : y + 3, x : x + 3] for y in range(2) for x in range(2)]
    features = [torch.tanh((filters[:, 0] * place).sum((-2, -1)) + bias) for place in places]
    return head(weights, agent, torch.stack(features, -1).flatten(-2))


def gaussian(a: Tensor, b: Tensor) -> float:
    extract = NormalParamExtractor(scale_mapping="biased_softplus_1.0")
    return float(sum((p - q).square().sum() for p, q in zip(extract(a), extract(b), strict=True)).sqrt())


def squashed_gaussian(a: Tensor, b: Tensor) -> float:
    normal = torch.special.ndtri((torch.arange(2000, dtype=torch.float64) + 0.5) / 2000)
    extract = NormalParamExtractor(scale_mapping="biased_softplus_1.0")
    one, other = (torch.tanh(loc[:, None] + scale[:, None] * normal) for loc, scale in map(extract, (a, b)))
    return float((one - other).square().mean(1).sum().sqrt())


def squashed_action(a: Tensor, b: Tensor) -> float:
    return float((a.tanh() - b.tanh()).norm())


def total_variation(a: Tensor, b: Tensor) -> float:
    return float((a.softmax(-1) - b.softmax(-1)).abs().sum() / 2)


def other_choice(a: Tensor, b: Tensor) -> float:
    return float(a.argmax() != b.argmax())


class Pictures(ObservationTransform):
    """Sixteen features as a picture of 4 x 4."""

    def _apply_transform(self, seen: Tensor) -> Tensor:
        return seen.unflatten(-1, (4, 4, 1))

    def _reset(self, before: Any, after: Any) -> Any:
        return self._call(after)

    @_apply_to_composite
    def transform_observation_spec(self, spec: Any) -> Any:
        return Unbounded((*spec.shape[:-1], 4, 4, 1))


class PicturesClass(VmasClass):
    """Dispersion, seen as pictures."""

    written = "observation"

    def get_env_transforms(self, env: Any) -> list[Any]:
        return [Pictures([("agents", "observation")], [("agents", self.written)])]


class CaptionsClass(PicturesClass):
    """Dispersion, seen as pictures and as what it is."""

    written = "picture"


def pictures(kind: type[PicturesClass] = PicturesClass) -> PicturesClass:
    return kind("DISPERSION", VmasTask.DISPERSION.get_from_yaml().config)


class Numbered(Pictures):
    """Four features for who observes: one-hot, and 0.5 beside it, so that a wrong identity shows."""

    def _apply_transform(self, seen: Tensor) -> Tensor:
        return torch.cat([seen, IDENTITY.to(seen).expand(*seen.shape[:-1], 4)], -1)

    @_apply_to_composite
    def transform_observation_spec(self, spec: Any) -> Any:
        return Unbounded((*spec.shape[:-1], spec.shape[-1] + 4))


class NumberedClass(VmasClass):
    """Dispersion, in which agents are told who they are."""

    def get_env_transforms(self, env: Any) -> list[Any]:
        return [Numbered(*[[("agents", "observation")]] * 2)]


IDENTITY, TOLD = torch.eye(4) + 0.5 * torch.eye(4).roll(1, 0), slice(-4, None)
CNN = {"cnn_num_cells": [4], "cnn_kernel_sizes": 3, "cnn_strides": 1, "cnn_paddings": 0}
CNN |= {"cnn_activation_class": torch.nn.Tanh, **{f"mlp_{name}": value for name, value in LAYERS.items()}}


@pytest.mark.parametrize(
    ("algorithm", "model", "answer", "apart", "options", "settings"),
    [
        (IppoConfig, LstmConfig(**RNN), lstm, gaussian, {"squashed": False}, {}),
        (IppoConfig, CnnConfig(**CNN), cnn, gaussian, {"squashed": False}, {"task": pictures}),
        (IppoConfig, MLP, head, gaussian, {"squashed": False}, {}),
        (IppoConfig, MLP, head, squashed_gaussian, {}, {}),
        (MaddpgConfig, MLP, head, squashed_action, {}, {}),
        (IppoConfig, MLP, head, total_variation, {}, DISCRETE),
        (MasacConfig, MLP, head, total_variation, {}, DISCRETE),
        (IqlConfig, MLP, head, other_choice, {}, DISCRETE),
        (IppoConfig, GruConfig(**RNN), gru, gaussian, {"squashed": False}, {}),
    ],
    ids=["lstm", "cnn", "ippo", "ippo-squashed", "maddpg", "ippo-discrete", "masac-discrete", "iql", "gru"],
)
def test_agents_answer_the_same_observations(algorithm, model, answer, apart, options, settings, experiment) -> None:
    diversity, loop = DiversityCallback(**options), Loop(answer, apart)
    settings = {name: value() if name == "task" else value for name, value in settings.items()}
    experiment(algorithm, model, callbacks=[diversity, loop], share_policy_params=False, **settings).run()
    rel = 1e-3 if apart is squashed_gaussian else 1e-5  # the loop's quadrature is coarse
    assert [row["snd_of_actions"] for row in diversity.rows] == pytest.approx(loop.values, rel=rel)
    for row in diversity.rows:
        assert 0 < row["snd_of_actions_low"] < row["snd_of_actions"] < row["snd_of_actions_high"]


class Talking(Model):
    """As BenchMARL's GNN does: one network per agent runs at every seat, and agent i is read at seat i."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        sizes = 2 * self.input_leaf_spec.shape[-1], self.output_leaf_spec.shape[-1]
        count = 1 if self.share_params else self.n_agents
        self.networks = torch.nn.ModuleList(torch.nn.Linear(*sizes) for _ in range(count))

    def _forward(self, tensordict: Any) -> Any:
        joint = tensordict.get(self.in_key)
        joint = torch.cat([joint, joint.mean(-2, keepdim=True).expand_as(joint)], -1)
        networks = list(self.networks) * (self.n_agents if self.share_params else 1)
        outputs = [network(joint)[..., agent, :] for agent, network in enumerate(networks)]
        return tensordict.set(self.out_key, torch.stack(outputs, -2))


@dataclass
class TalkingConfig(ModelConfig):
    @staticmethod
    def associated_class() -> type[Talking]:
        return Talking


def talk(weights: dict[str, Tensor], agent: int, sequence: Tensor) -> Tensor:
    joint = torch.cat([sequence, sequence.mean(-2, keepdim=True).expand_as(sequence)], -1)
    weight, bias = (weights[f"0.networks.{agent}.{name}"] for name in ("weight", "bias"))
    return joint @ weight.T + bias


def graph_conv(weights: dict[str, Tensor], agent: int, sequence: Tensor) -> Tensor:
    """PyG's GraphConv on the complete graph: W1 x_k + b + W2 mean of the others."""
    others = (sequence.sum(-2, keepdim=True) - sequence) / 3
    near, bias = (weights[f"0.gnns.{agent}.lin_rel.{name}"] for name in ("weight", "bias"))
    return sequence @ weights[f"0.gnns.{agent}.lin_root.weight"].T + others @ near.T + bias


def gnn() -> ModelConfig:
    from benchmarl.models import GnnConfig

    convolution = pytest.importorskip("torch_geometric").nn.GraphConv
    return GnnConfig(topology="full", self_loops=False, gnn_class=convolution, gnn_kwargs={"aggr": "mean"})


@pytest.mark.parametrize(("model", "answer"), [(TalkingConfig, talk), (gnn, graph_conv)], ids=["own", "gnn"])
def test_agents_that_communicate_take_every_seat(model, answer, experiment) -> None:
    diversity, loop = DiversityCallback(squashed=False), Loop(answer, gaussian)
    critic = {"critic_model": MLP}
    experiment(IppoConfig, model(), callbacks=[diversity, loop], share_policy_params=False, **critic).run()
    assert [row["snd_of_actions"] for row in diversity.rows] == pytest.approx(loop.values, rel=1e-5)


@pytest.mark.parametrize("model", [lambda: MLP, lambda: LstmConfig(**RNN), gnn], ids=["mlp", "lstm", "gnn"])
@pytest.mark.parametrize("algorithm", [IppoConfig, MaddpgConfig])
def test_shared_parameters_are_exactly_no_diversity(algorithm, model, experiment) -> None:
    diversity = DiversityCallback(design="bernoulli:0.5")
    run = experiment(algorithm, model(), callbacks=[diversity], share_policy_params=True, critic_model=MLP)
    run.run()
    for row in diversity.rows:
        zeros = {name: value for name, value in row.items() if name not in ("step", "group")}
        assert len(zeros) >= 3
        assert set(zeros.values()) == {0.0}


def told(answer: Answer, weights: dict[str, Tensor], agent: int, sequence: Tensor) -> Tensor:
    """One network that all agents share: each sits in each seat with its own identity."""
    every = {name: each.unsqueeze(0).expand(4, *each.shape) for name, each in weights.items()}
    own = IDENTITY[agent].double().expand(*sequence.shape[:-1], 4)
    return answer(every, agent, torch.cat([sequence[..., :-4], own], -1))


@pytest.mark.parametrize(
    ("algorithm", "model", "answer", "apart", "settings"),
    [
        (IppoConfig, MLP, head, gaussian, {}),
        (QmixConfig, MLP, head, other_choice, DISCRETE),
        (IppoConfig, GruConfig(**RNN), gru, gaussian, {}),
    ],
    ids=["ippo", "qmix", "gru"],
)
def test_agents_that_share_a_network_and_know_who_they_are(
    algorithm, model, answer, apart, settings, experiment, tmp_path: Path
) -> None:
    diversity, alike = DiversityCallback(columns=TOLD, squashed=False), DiversityCallback()
    loop, keep = Loop(partial(told, answer), apart), Keep()
    task = NumberedClass("DISPERSION", VmasTask.DISPERSION.get_from_yaml().config)
    callbacks = [diversity, alike, loop, keep]
    experiment(algorithm, model, callbacks=callbacks, task=task, checkpoint_at_end=True, **settings).run()
    assert [row["snd_of_actions"] for row in diversity.rows] == pytest.approx(loop.values, rel=1e-5)
    assert min(loop.values) > 0
    assert {row["snd_of_actions"] for row in alike.rows} == {0.0}
    loop.on_batch_collected(keep.batch)  # with the policies as they are now
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    (team,) = load_teams(path, squashed=False).values()
    team.columns, team.identity = TOLD, IDENTITY
    for given in (keep.batch, keep.batch["agents", "observation"]):
        assert gs.measure(team, given).value == pytest.approx(loop.values[-1], rel=1e-5)


def test_columns_of_agents_that_communicate_are_refused(experiment) -> None:
    diversity = DiversityCallback(columns=TOLD)
    with pytest.warns(UserWarning, match="`columns` to be None for agents that communicate"):
        experiment(IppoConfig, gnn(), callbacks=[diversity], critic_model=MLP).run()


def actor(model: ModelConfig, inputs: dict[str, tuple[int, ...]], outputs: int, **options: Any) -> ProbabilisticActor:
    """A policy of three agents as BenchMARL's algorithms build it."""

    def group(leaves: dict[str, Any]) -> Composite:
        return Composite({"agents": Composite(leaves, shape=(3,))})

    torch.manual_seed(0)
    module = model.get_model(
        input_spec=group({name: Unbounded((3, *shape)) for name, shape in inputs.items()}),
        output_spec=group({"logits": Unbounded((3, outputs))}),
        action_spec=group({"action": Unbounded((3, outputs))}),
        agent_group="agents", input_has_agent_dim=True, n_agents=3, centralised=False, share_params=False, device="cpu",
    )  # fmt: skip
    return ProbabilisticActor(module, out_keys=[("agents", "action")], **options)


@pytest.mark.parametrize("model", [lambda: MLP, lambda: GruConfig(**RNN), gnn], ids=["mlp", "gru", "gnn"])
def test_teams_of_policies_that_read_several_keys(model, generator) -> None:
    """Against evaluate_group, which rolls each key by itself."""
    keys = {"logits": ("agents", "logits"), "mask": ("agents", "action_mask")}
    inputs = {"observation": (5,), "speed": (2,)}
    policy = actor(model(), inputs, 4, in_keys=keys, distribution_class=MaskedCategorical)
    lead = (2, 6)
    parts = {name: torch.randn(*lead, 3, *shape, generator=generator) for name, shape in inputs.items()}
    parts["action_mask"] = torch.rand(*lead, 3, 4, generator=generator) < 0.7
    parts["action_mask"][..., 0] = True
    rollout = TensorDict({"agents": parts, "is_init": torch.zeros(*lead, 1, dtype=torch.bool)}, lead)
    expected = evaluate_group(policy, rollout, "agents")
    team = ActorTeam(policy, agents=3) if model() is MLP else GroupTeam(policy, "agents", 3)
    seats_last = expected.probs.movedim(0, 2)
    torch.testing.assert_close(team.evaluate(rollout).probs, seats_last)
    value = gs.measure(team, rollout).value
    assert value == pytest.approx(float(gs.snd(gs.Categorical(probs=seats_last))), rel=1e-5)
    assert value > 0.01


PLAIN = MlpConfig(num_cells=[8], layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh)


class Keep(Callback):
    def on_batch_collected(self, batch) -> None:
        self.batch = batch.clone()

    def measure(self, group: str) -> float:
        """SND on the last batch of the policies as they are now, through the adapter of the callback."""
        policy = self.experiment.algorithm.get_policy_for_loss(group)
        return float(gs.snd(evaluate_group(policy, self.batch, group)))


@pytest.mark.parametrize(
    ("algorithm", "model", "options"),
    [
        (IppoConfig, PLAIN, {"share_policy_params": False}),
        (QmixConfig, PLAIN, {"share_policy_params": False, "prefer_continuous_actions": False}),
        (IppoConfig, DiCoModelConfig(target=0.3, num_cells=(8,)), {}),
        (IppoConfig, CnnConfig(**CNN), {"share_policy_params": False, "task": pictures()}),
        (IppoConfig, CnnConfig(**CNN), {"share_policy_params": False, "task": pictures(CaptionsClass)}),
    ],
    ids=["ippo", "qmix", "dico", "cnn", "several keys"],
)
def test_a_checkpoint_is_a_team(algorithm, model, options, experiment, tmp_path: Path) -> None:
    keep = Keep()
    experiment(algorithm, model, callbacks=[keep], checkpoint_at_end=True, **options).run()
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    (team,) = load_teams(path).values()
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    several = "picture" in keep.batch["agents"].keys()  # noqa: SIM118
    assert len(team.observation_keys) == 1 + several
    seen = keep.batch if several else keep.batch["agents", "observation"]
    assert gs.measure(team, seen).value == pytest.approx(keep.measure("agents"), rel=1e-5)
    assert gs.measure(team, seen, design="agents:2", rel_tol=0.5).agents == 4


def test_a_rollout_of_several_groups_is_measured_group_by_group(experiment, tmp_path: Path) -> None:
    keep = Keep()
    options = {**VmasTask.SIMPLE_TAG.get_from_yaml().config, "num_good_agents": 2, "num_adversaries": 3}
    task = VmasTask.SIMPLE_TAG.get_task(options)
    run = experiment(IppoConfig, PLAIN, callbacks=[keep], task=task, share_policy_params=False, checkpoint_at_end=True)
    run.run()
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    teams = load_teams(path)
    result = {group: gs.measure(team, keep.batch) for group, team in teams.items()}
    for group, names in run.group_map.items():
        assert result[group].value == pytest.approx(keep.measure(group), rel=1e-5)
        assert result[group].names == tuple(names)
        apart = gs.measure(teams[group], keep.batch[group, "observation"])
        assert apart.value == pytest.approx(result[group].value, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "answer"),
    [(lambda: GruConfig(**RNN), gru), (lambda: LstmConfig(**RNN), lstm), (gnn, graph_conv)],
    ids=["gru", "lstm", "gnn"],
)
def test_a_checkpoint_of_agents_that_remember_or_communicate(model, answer, experiment, tmp_path: Path) -> None:
    loop, keep = Loop(answer, gaussian), Keep()
    options = {"share_policy_params": False, "critic_model": None if answer is not graph_conv else PLAIN}
    experiment(IppoConfig, model(), callbacks=[loop, keep], checkpoint_at_end=True, **options).run()
    loop.on_batch_collected(keep.batch)  # with the policies as they are now
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    (team,) = load_teams(path, squashed=False).values()
    seen = keep.batch["agents", "observation"]  # [environments, time, agents, features]
    for given in (seen, keep.batch):
        behavior = team.evaluate(given)
        assert behavior.batch_shape == seen.shape[:-1]
        for estimate in (gs.measure(behavior), gs.measure(team, given)):
            assert estimate.value == pytest.approx(loop.values[-1], rel=1e-5)
    assert behavior.names == tuple(f"agent_{agent}" for agent in range(4))
    torch.testing.assert_close(gs.pairwise(team.evaluate(seen[None])), gs.pairwise(behavior))
    with pytest.raises(gs.InputError, match="observations"):
        gs.measure(team, seen[..., 0, :])
