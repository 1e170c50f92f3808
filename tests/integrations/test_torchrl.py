from __future__ import annotations

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
from torchrl.collectors import Collector
from torchrl.data import Categorical as CategoricalSpec
from torchrl.envs import VmasEnv
from torchrl.modules import (
    ActorCriticWrapper,
    Delta,
    GRUModule,
    IndependentNormal,
    MaskedCategorical,
    MaskedOneHotCategorical,
    MultiAgentConvNet,
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

from graphsnd.integrations.torchrl import ActorTeam, DiversityCallback

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
        spec=CategoricalSpec(3),
        action_space=None,
    )
    return TensorDictSequential(module(3, "action_value"), head)


def with_value(actor: torch.nn.Module) -> TensorDictSequential:
    """An actor-critic, whose critic sees all agents."""
    keys = {"in_keys": [OBSERVATION], "out_keys": [("agents", "state_value")]}
    return ActorCriticWrapper(actor, ValueOperator(network(1, centralized=True), **keys))


def after_features(name: str) -> TensorDictSequential:
    """Two steps, of which the first puts out features for the second."""
    double = TensorDictModule(lambda raw: 2 * raw, in_keys=[("agents", "raw")], out_keys=[("agents", name)])
    return TensorDictSequential(module(3, "raw"), double)


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
        (lambda: after_features("action"), lambda a, b: float(2 * (a - b).norm())),
        (lambda: after_features("logits"), lambda a, b: total_variation(2 * a, 2 * b)),
    ],
    ids=[
        *("one-hot", "independent", "mlp", "module", "probabilistic", "tanh-delta", "delta", "greedy", "logits"),
        *("features-action", "features-logits"),
    ],
)
def test_actors_are_compared_on_the_same_observations(actor, apart) -> None:
    made = actor()
    team = ActorTeam(made, squashed=False)
    estimate = gs.measure(team, rollout()[OBSERVATION])
    assert estimate.value == pytest.approx(by_hand(made, apart), rel=1e-5)
    assert (estimate.agents, estimate.observations) == (AGENTS, 6 * AGENTS)


def test_an_actor_beside_a_value_is_its_policy_operator() -> None:
    actor = gaussian()
    value = gs.measure(ActorTeam(with_value(actor).get_policy_operator()), rollout()).value
    assert value == pytest.approx(by_hand(actor, lambda a, b: quantiles(a, b, tanh_quantiles)), rel=1e-5)


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


def by_place(actor: torch.nn.Module, scene: TensorDict, key: object, columns: object, identity: Tensor) -> list[Tensor]:
    """What agents do in a scene, by the actor's own forward, each in its place with its identity written by hand."""
    answers = []
    for agent, row in enumerate(identity):
        shown = scene.clone()
        shown[key][..., columns] = row.to(shown[key].dtype)
        with torch.no_grad():
            made = actor.get_dist(shown)
        answers.append(made.probs[:, agent].double())
    return answers


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("told", [None, "vectors"])
def test_actors_that_read_who_they_are_have_the_number_of_a_loop(share: bool, told: str | None) -> None:
    actor = gaussian(IndependentNormal, share_params=share)
    identity = None if told is None else torch.randn(AGENTS, AGENTS, generator=torch.Generator().manual_seed(3))
    names, columns = ["scout", "guard", "medic", "cook"], slice(1, None)
    team = ActorTeam.shared(actor, names, columns=columns, identity=identity)
    assert team.names == tuple(names)
    written, total = torch.eye(AGENTS) if identity is None else identity, 0.0
    (net,) = [each for each in actor.modules() if isinstance(each, MultiAgentMLP)]
    weights = [each.detach().double() for _, each in sorted(net.params.flatten_keys(".").items())]
    for row in rollout()[OBSERVATION].flatten(0, 1).double():
        answers = []
        for agent in range(AGENTS):
            b0, w0, b1, w1 = (each if share else each[agent] for each in weights)
            seen = row.clone()
            seen[columns] = written[agent]
            answers.append(w1 @ torch.tanh(w0 @ seen + b0) + b1)
        total += sum(normal(a, b) for a, b in combinations(answers, 2)) / 6 / 24
    for given in (rollout(), rollout()[OBSERVATION], rollout()[OBSERVATION].flatten(0, 1)):
        assert gs.measure(team, given).value == pytest.approx(total, rel=1e-5)
    assert gs.measure(team, rollout(), design="agents:2", seed=1).value == pytest.approx(total, rel=0.5)
    assert DiversityCallback(team)(rollout().unsqueeze(0))["snd"] == pytest.approx(total, rel=1e-5)


def test_gradients_reach_identities_that_are_written_into_columns() -> None:
    actor = network(2, share_params=True).double()
    identity = torch.randn(AGENTS, 2, dtype=torch.float64, requires_grad=True)
    seen = torch.randn(3, FEATURES, dtype=torch.float64, requires_grad=True)

    def total(identity: Tensor, seen: Tensor) -> Tensor:
        team = ActorTeam.shared(actor, AGENTS, columns=[4, 1], identity=identity)
        return (team.evaluate(seen).actions * torch.arange(8).view(AGENTS, 2)).sum()

    assert torch.autograd.gradcheck(total, (identity, seen))


def test_networks_told_the_same_or_nothing_are_exactly_no_diversity() -> None:
    seen, same = rollout()[OBSERVATION], torch.ones(AGENTS, 2)
    bare = network(2, share_params=True)
    assert gs.measure(ActorTeam.shared(bare, AGENTS, columns=slice(2), identity=same), seen).value == 0
    told = gs.measure(ActorTeam.shared(bare, AGENTS, columns=slice(AGENTS)), seen)
    rows, answers = seen.flatten(0, 1), []
    for agent in range(AGENTS):
        shown = torch.cat([torch.eye(AGENTS)[agent].expand(len(rows), -1), rows[:, AGENTS:]], -1)
        answers.append(bare(shown.unsqueeze(1).expand(-1, AGENTS, -1))[:, 0].detach().double())
    expected = sum(float((a - b).norm(dim=-1).mean()) for a, b in combinations(answers, 2)) / 6
    assert told.value == pytest.approx(expected, rel=1e-5)
    assert "told which agent it is, use ActorTeam.shared." in str(gs.measure(ActorTeam(bare), seen))


def test_one_of_several_entries_says_who_acts() -> None:
    actor, scene = seeing("masked"), scenes(6)
    columns, identity = slice(0, 2), torch.randn(AGENTS, 2, generator=torch.Generator().manual_seed(5))
    total = 0.0
    for seat in range(AGENTS):
        first = scene.apply(lambda each, seat=seat: each[:, [seat] * AGENTS], batch_size=[6])
        answers = by_place(actor, first, SPEED, columns, identity)
        total += sum(float((a - b).abs().sum(-1).mean()) / 2 for a, b in combinations(answers, 2)) / 6 / AGENTS
    options = {"identity": identity, "feature_dims": {PIXELS: 3}}
    team = ActorTeam.shared(actor, AGENTS, columns={SPEED: columns}, **options)
    assert gs.measure(team, scene).value == pytest.approx(total, rel=1e-5)
    assert total > 1e-3


PIXELS, SPEED, MASK = ("agents", "pixels"), ("agents", "speed"), ("agents", "action_mask")


def scenes(*lead: int) -> TensorDict:
    """Pictures of 3 x 6 x 7, vectors, and masks that allow the first action at least."""
    draws = torch.Generator().manual_seed(2)
    parts = {
        "pixels": torch.randint(256, (*lead, AGENTS, 3, 6, 7), generator=draws, dtype=torch.uint8),
        "speed": torch.randn(*lead, AGENTS, FEATURES, generator=draws),
        "action_mask": torch.rand(*lead, AGENTS, 3, generator=draws) < 0.6,
    }
    parts["action_mask"][..., 0] = True
    return TensorDict({"agents": TensorDict(parts, [*lead, AGENTS])}, list(lead))


def looking(outputs: int) -> list[TensorDictModule]:
    """Layers from pixels and speed to a raw output; pixels have to be uint8, as in training."""
    torch.manual_seed(0)
    look = MultiAgentConvNet(AGENTS, centralized=False, share_params=False, in_features=3, num_cells=[2],
                             kernel_sizes=3, strides=1)  # fmt: skip
    join = network(outputs, n_agent_inputs=FEATURES + 2 * 4 * 5)
    scale = lambda pixels: pixels.float() / 255 if pixels.dtype == torch.uint8 else torch.nan * pixels  # noqa: E731
    return [
        TensorDictModule(scale, [PIXELS], [("agents", "scaled")]),
        TensorDictModule(look, [("agents", "scaled")], [("agents", "looked")]),
        TensorDictModule(
            lambda looked, speed: join(torch.cat([looked, speed], -1)),
            [("agents", "looked"), SPEED],
            [("agents", "raw")],
        ),
    ]


def seeing(kind: str) -> torch.nn.Module:
    """An actor that reads pixels and speed, and a mask too where it is discrete."""
    if kind == "masked":
        keys = {"logits": ("agents", "raw"), "mask": MASK}
        return ProbabilisticActor(
            TensorDictSequential(*looking(3)), in_keys=keys, out_keys=[("agents", "action")],
            distribution_class=MaskedCategorical,
        )  # fmt: skip
    outputs = [("agents", "loc"), ("agents", "scale")]
    extract = TensorDictModule(NormalParamExtractor(), [("agents", "raw")], outputs)
    body = TensorDictSequential(*looking(4), extract)
    return ProbabilisticActor(
        body, in_keys=outputs, out_keys=[("agents", "action")], distribution_class=IndependentNormal
    )


def alone(actor: torch.nn.Module, scene: TensorDict, agent: int, others: TensorDict) -> Tensor:
    """What an agent does in its own place, by the actor's own forward, with anything in the other places."""
    shown = others.clone()
    for key in scene.keys(True, True):
        shown[key][agent] = scene[key]
    with torch.no_grad():
        made = actor.get_dist(shown[None])
    if isinstance(made, MaskedCategorical):
        return made.probs[0, agent].double()
    return torch.cat([made.mean, made.base_dist.stddev], -1)[0, agent].double()


@pytest.mark.parametrize("kind", ["gaussian", "masked"])
def test_actors_that_read_several_keys(kind: str) -> None:
    actor, rollout = seeing(kind), scenes(5)
    team, junk = ActorTeam(actor, feature_dims={PIXELS: 3}), scenes(6)[5]
    assert set(team.observation_keys) == {PIXELS, SPEED} | ({MASK} if kind == "masked" else set())
    distances = []
    for frame in rollout:
        for seat in range(AGENTS):
            scene = TensorDict({key: frame[key][seat] for key in (PIXELS, SPEED, MASK)}, [])
            answers = [alone(actor, scene, agent, junk) for agent in range(AGENTS)]
            for one, other in combinations(answers, 2):
                apart = (one - other).abs().sum() / 2 if kind == "masked" else (one - other).norm()
                distances.append(float(apart))
    expected = sum(distances) / len(distances)
    assert expected > 0.01
    parts = {key: rollout[key] for key in team.observation_keys}
    by_agent = {str(agent): {key: part[:, agent] for key, part in parts.items()} for agent in range(AGENTS)}
    for given in (rollout, parts, {key: part.numpy() for key, part in parts.items()}, by_agent):
        estimate = gs.measure(team, given)
        assert estimate.value == pytest.approx(expected, rel=1e-5)
        assert (estimate.agents, estimate.observations) == (AGENTS, 5 * AGENTS)
    assert gs.measure(team, rollout, design="agents:2", rel_tol=0.2).value == pytest.approx(expected, rel=0.3)
    # The same in a trainer, whose batches hold environments and time.
    batch = scenes(3, 5)
    assert DiversityCallback(team)(batch)["snd"] == pytest.approx(gs.measure(team, batch).value, rel=1e-6)
    kept = torch.arange(15).reshape(3, 5) % 4 > 0  # of padded trajectories
    batch["collector"] = TensorDict({"mask": kept}, [3, 5])
    assert DiversityCallback(team)(batch)["snd"] == pytest.approx(gs.measure(team, batch[kept]).value, rel=1e-6)


def test_a_trainer_logs_diversity() -> None:
    pytest.importorskip("vmas")
    environment = VmasEnv("dispersion", num_envs=3, max_steps=10, device="cpu", seed=0)
    features = environment.observation_spec[OBSERVATION].shape[-1]
    actor = module(2, n_agent_inputs=features)
    collector = Collector(environment, actor, frames_per_batch=30, total_frames=90)
    seen = []
    trainer = Trainer(
        collector=collector, total_frames=90, frame_skip=1, optim_steps_per_batch=1, progress_bar=False,
        loss_module=lambda batch: TensorDict({"loss": torch.zeros(())}),
    )  # fmt: skip
    trainer.register_op("pre_steps_log", lambda batch: seen.append(batch.clone()))
    DiversityCallback(team := ActorTeam(actor)).register(trainer)
    trainer.train()
    assert len(seen) == 3
    log = trainer._log_dict
    for index, batch in enumerate(seen):  # [3 environments, 10 steps], an episode each
        episodes = torch.arange(3)[:, None, None].expand(batch[OBSERVATION].shape[:-1])
        estimate = gs.measure(team, batch[OBSERVATION], clusters=episodes)
        assert log["snd"][index] == estimate.value
        assert (log["snd_low"][index], log["snd_high"][index]) == estimate.population_interval
        apart = torch.arange(batch[OBSERVATION].shape[:-1].numel())
        rows = gs.measure(team, batch[OBSERVATION], clusters=apart).population_interval
        assert log["snd_high"][index] - log["snd_low"][index] > 2 * (rows[1] - rows[0])  # that rows were apart


def doubled() -> TensorDictSequential:
    key = ("agents", "action")
    return TensorDictSequential(gaussian(), TensorDictModule(lambda action: 2 * action, in_keys=[key], out_keys=[key]))


def remembering() -> TensorDictSequential:
    rolled = GRUModule(input_size=FEATURES, hidden_size=4, in_key="observation", out_key="hidden")
    return TensorDictSequential(rolled, TensorDictModule(torch.nn.Linear(4, 2), ["hidden"], ["action"]))


def mixing() -> TensorDictModule:
    return TensorDictModule(lambda seen: seen - seen.mean(-2, keepdim=True), in_keys=["o"], out_keys=["action"])


def reading(*keys: object) -> TensorDictModule:
    return TensorDictModule(network(2), in_keys=list(keys), out_keys=["action"])


BAD = {
    "centralised": (lambda: ActorTeam(network(2, centralized=True)), "actor"),
    "number of agents": (lambda: ActorTeam(TensorDictModule(torch.sin, [OBSERVATION], ["action"])), "agents"),
    "a state of all": (lambda: ActorTeam(reading(OBSERVATION, "state")), "actor"),
    "another group": (lambda: ActorTeam(reading(OBSERVATION, ("others", "observation"))), "actor"),
    "memory": (lambda: ActorTeam(remembering(), agents=AGENTS), "actor"),
    "mixed agents": (lambda: ActorTeam(mixing(), agents=AGENTS).evaluate(torch.randn(6, FEATURES)), "team"),
    "changed action": (lambda: ActorTeam(doubled()), "actor"),
    "composite weights": (lambda: gs.measure(ActorTeam(composite()), rollout()[OBSERVATION]), "weights"),
    "features": (lambda: gs.measure(ActorTeam(module(2)), torch.randn(6, 7)), "observations"),
    "absent entry": (lambda: gs.measure(ActorTeam(gaussian()), rollout()["agents"]), "observations"),
    "bare network": (lambda: gs.measure(ActorTeam(network(2)), rollout()), "observations"),
    "one of two keys": (lambda: gs.measure(looking_team(), scenes(5)[SPEED]), "observations"),
    "columns of no entry": (lambda: gs.measure(told_team(slice(2)), scenes(5)), "columns"),
    "columns of another entry": (lambda: gs.measure(told_team({("agents", "id"): 0}), scenes(5)), "columns"),
    "columns of another length": (lambda: gs.measure(told_team({SPEED: 0}), scenes(5)), "columns"),
    "identity of others": (
        lambda: gs.measure(ActorTeam.shared(module(2), AGENTS, columns=0, identity=torch.eye(3)), rollout()),
        "identity",
    ),
    "beside a value": (lambda: ActorTeam(with_value(gaussian())), "actor"),
}


def looking_team() -> ActorTeam:
    return ActorTeam(seeing("gaussian"), feature_dims={PIXELS: 3})


def told_team(columns: object) -> ActorTeam:
    return ActorTeam.shared(seeing("gaussian"), AGENTS, columns=columns, feature_dims={PIXELS: 3})


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    use, name = BAD[case]
    with pytest.raises(gs.InputError) as error:
        use()
    assert error.value.name == name
