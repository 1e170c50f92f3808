from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from tests import oracles

pytest.importorskip("torchrl")
from tensordict import TensorDict
from tensordict.nn import CompositeDistribution, NormalParamExtractor, TensorDictModule, TensorDictSequential
from torch import Tensor
from torchrl.collectors import SyncDataCollector
from torchrl.data import Categorical as CategoricalSpec
from torchrl.envs import VmasEnv
from torchrl.modules import (
    ActorCriticWrapper,
    Delta,
    IndependentNormal,
    MaskedCategorical,
    MaskedOneHotCategorical,
    MultiAgentMLP,
    OneHotCategorical,
    ProbabilisticActor,
    QValueModule,
    TanhDelta,
    TanhNormal,
    TruncatedNormal,
    ValueOperator,
)
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


class Contiguous(torch.nn.Module):
    """TorchRL's TruncatedNormal fails on the strides that a MultiAgentMLP puts out."""

    def forward(self, output: Tensor) -> Tensor:
        return output.contiguous()


def gaussian(distribution=TanhNormal, **options) -> ProbabilisticActor:
    outputs = [("agents", "loc"), ("agents", "scale")]
    layers = torch.nn.Sequential(network(4, **options), Contiguous(), NormalParamExtractor())
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


def with_value(actor: torch.nn.Module) -> TensorDictSequential:
    """An actor-critic, whose critic sees all agents."""
    keys = {"in_keys": [OBSERVATION], "out_keys": [("agents", "state_value")]}
    return ActorCriticWrapper(actor, ValueOperator(network(1, centralized=True), **keys))


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


def delta(family=TanhDelta) -> ProbabilisticActor:
    keys = {"in_keys": {"param": ("agents", "param")}, "out_keys": [("agents", "action")]}
    return ProbabilisticActor(module(2, "param"), **keys, distribution_class=family)


def quantiles(a: Tensor, b: Tensor, make) -> float:
    """2-Wasserstein distance by the trapezoidal rule, from quantiles that SciPy knows."""
    return oracles.wasserstein_product(*(make(*NormalParamExtractor()(each)) for each in (a, b)))


def tanh_quantiles(loc: Tensor, scale: Tensor) -> np.ndarray:
    return np.tanh(loc.numpy()[:, None] + scale.numpy()[:, None] * oracles.GRID)


def truncated_quantiles(loc: Tensor, scale: Tensor) -> np.ndarray:
    loc, scale = (each.numpy()[:, None] for each in (loc, scale))
    ends = (-1 - loc) / scale, (1 - loc) / scale
    return stats.truncnorm.ppf(stats.norm.cdf(oracles.GRID), *ends, loc=loc, scale=scale)


@pytest.mark.parametrize(
    ("family", "make"),
    [(TanhNormal, tanh_quantiles), (TruncatedNormal, truncated_quantiles)],
    ids=["tanh", "truncated"],
)
def test_distributions_of_actions(family, make) -> None:
    actor = gaussian(family)
    estimate = gs.measure(ActorTeam(actor), rollout()[OBSERVATION])
    assert estimate.value == pytest.approx(by_hand(actor, lambda a, b: quantiles(a, b, make)), rel=1e-4)


def discrete(family, **parameters) -> ProbabilisticActor:
    """Logits, and a mask that depends on the observation where the family takes one."""
    seen, logits = [OBSERVATION], ("agents", "logits")
    layers, keys = [module(3, "logits")], {"logits": logits}
    if parameters:
        layers += [TensorDictModule(mask_of, in_keys=seen, out_keys=[("agents", name)]) for name in parameters]
        keys |= {name: ("agents", name) for name in parameters}
    body = TensorDictSequential(*layers)
    return ProbabilisticActor(body, in_keys=keys, out_keys=[("agents", "action")], distribution_class=family)


def mask_of(seen: Tensor) -> Tensor:
    return torch.stack([torch.ones_like(seen[..., 0]), seen[..., 0] > 0, seen[..., 1] > 0], dim=-1).bool()


def total_variation(a: Tensor, b: Tensor) -> float:
    return float((a.softmax(-1) - b.softmax(-1)).abs().sum()) / 2


def composite() -> ProbabilisticActor:
    split = TensorDictModule(
        lambda raw: (*NormalParamExtractor()(raw[..., :4]), raw[..., 4:]),
        in_keys=[("agents", "raw")],
        out_keys=[("params", "move", "loc"), ("params", "move", "scale"), ("params", "grip", "logits")],
    )
    families = {"move": IndependentNormal, "grip": OneHotCategorical}
    return ProbabilisticActor(
        TensorDictSequential(module(7, "raw"), split),
        in_keys=["params"],
        out_keys=["move", "grip"],
        distribution_class=CompositeDistribution,
        distribution_kwargs={"distribution_map": families},
    )


def test_composite_distributions() -> None:
    actor = composite()
    team = ActorTeam(actor, weights={"move": 1, "grip": 3})
    estimate = gs.measure(team, rollout()[OBSERVATION])
    apart = lambda a, b: (normal(a[:4], b[:4]) + 3 * total_variation(a[4:], b[4:])) / 4  # noqa: E731
    assert estimate.value == pytest.approx(by_hand(actor, apart), rel=1e-5)
    assert estimate.distance == "0.25 wasserstein + 0.75 total-variation"
    with pytest.raises(gs.InputError, match=r"`weights` for parts that differ in distance"):
        gs.measure(ActorTeam(actor), rollout()[OBSERVATION])


@pytest.mark.parametrize("family", [MaskedCategorical, MaskedOneHotCategorical])
def test_masks_belong_to_observations(family) -> None:
    actor = discrete(family, mask=True)
    (net,) = [each for each in actor.modules() if isinstance(each, MultiAgentMLP)]
    rows = rollout()[OBSERVATION].flatten(0, 1)
    logits = net(rows.unsqueeze(1).expand(-1, AGENTS, -1)).detach().double()
    total = 0.0
    for row, answers in zip(rows, logits, strict=True):
        kept = mask_of(row)
        total += sum(total_variation(a[kept], b[kept]) for a, b in combinations(answers, 2)) / 6 / len(rows)
    assert gs.measure(ActorTeam(actor), rows).value == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(
    ("actor", "apart"),
    [
        (lambda: discrete(OneHotCategorical), total_variation),
        (lambda: gaussian(IndependentNormal), normal),
        (lambda: network(2), lambda a, b: float((a - b).norm())),
        (lambda: module(2), lambda a, b: float((a - b).norm())),
        (gaussian, normal),
        (delta, lambda a, b: float((a - b).norm())),
        (lambda: delta(Delta), lambda a, b: float((a - b).norm())),
        (greedy, lambda a, b: float(a.argmax() != b.argmax())),
        (lambda: module(3, "logits"), total_variation),
    ],
    ids=["one-hot", "independent", "mlp", "module", "probabilistic", "tanh-delta", "delta", "greedy", "logits"],
)
def test_actors_are_compared_on_the_same_observations(actor, apart) -> None:
    made = actor()
    team = ActorTeam(made, squashed=False)
    estimate = gs.measure(team, rollout()[OBSERVATION])
    assert estimate.value == pytest.approx(by_hand(made, apart), rel=1e-5)
    assert (estimate.agents, estimate.observations) == (AGENTS, 6 * AGENTS)


@pytest.mark.parametrize("squashed", [True, False])
def test_an_actor_beside_a_value_is_its_policy(squashed: bool) -> None:
    actor = gaussian()
    apart = (lambda a, b: quantiles(a, b, tanh_quantiles)) if squashed else normal
    for made in (with_value(actor), TensorDictSequential(TensorDictSequential(actor), module(1, "state_value"))):
        value = gs.measure(ActorTeam(made, squashed=squashed), rollout()).value
        assert value == pytest.approx(by_hand(actor, apart), rel=1e-5)
    key = ("agents", "action")
    doubled = TensorDictModule(lambda action: 2 * action, in_keys=[key], out_keys=[key])
    for changed in (doubled, gaussian()):
        with pytest.raises(gs.InputError, match="drawn once and stays as it is"):
            ActorTeam(TensorDictSequential(actor, changed))


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
    policies, entries = [torch.nn.Linear(FEATURES, 2)] * 2, rollout()["agents"]["observation"]
    with pytest.raises(gs.InputError, match=r"a dict by agent, got a TensorDict.*the entry that policies read"):
        gs.measure(policies, TensorDict({"observation": entries, "next": entries + 1}, entries.shape[:-1]))


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
    trainer.register_op("pre_steps_log", lambda batch: seen.append(batch.clone()))
    DiversityHook(team := ActorTeam(actor)).register(trainer)
    trainer.train()
    assert len(seen) == 3
    log = trainer._log_dict
    for index, batch in enumerate(seen):  # [3 environments, 10 steps], an episode each
        episodes = torch.arange(3)[:, None, None].expand(batch[OBSERVATION].shape[:-1])
        estimate = gs.measure(team, batch[OBSERVATION], clusters=episodes)
        assert log["snd"][index] == estimate.value
        assert (log["snd_low"][index], log["snd_high"][index]) == estimate.population_interval
        rows = gs.measure(team, batch[OBSERVATION]).population_interval
        assert log["snd_high"][index] - log["snd_low"][index] > 2 * (rows[1] - rows[0])  # that rows were apart
    hook = DiversityHook(team, observations=37)
    for batch, clusters in ((seen[0].exclude("collector"), True), (seen[0].exclude("collector")[0], False)):
        rows = batch[OBSERVATION].flatten(0, -2)
        places = torch.linspace(0, len(rows) - 1, 37).round().long()
        given = {"clusters": places // (10 * batch[OBSERVATION].shape[-2])} if clusters else {}
        estimate = gs.measure(team, rows[places], **given)
        assert hook(batch)["snd"] == estimate.value
        assert (hook(batch)["snd_low"], hook(batch)["snd_high"]) == estimate.population_interval
    with pytest.raises(gs.InputError, match=r"`team` to be an ActorTeam.*list"):
        DiversityHook([actor])


def test_absent_package_names_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensordict", None)
    monkeypatch.delitem(sys.modules, "graphsnd.integrations.torchrl")
    with pytest.raises(MissingExtraError, match="torchrl"):
        __import__("graphsnd.integrations.torchrl")
