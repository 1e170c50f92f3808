from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphsnd as gs
from graphsnd.errors import InputError
from graphsnd.integrations.pettingzoo import collect

gymnasium = pytest.importorskip("gymnasium")
pettingzoo = pytest.importorskip("pettingzoo")
mpe2 = pytest.importorskip("mpe2")
AGENTS = ["agent_0", "agent_1", "agent_2"]


def spread(kind: str = "parallel_env", **options: Any) -> Any:
    from mpe2 import simple_spread_v3

    return getattr(simple_spread_v3, kind)(**{"N": 3, "max_cycles": 7, **options})


class Rotation(pettingzoo.ParallelEnv):  # type: ignore[misc, name-defined]
    """One agent joins after a step, another leaves; each observes its own number and the time."""

    metadata = {"name": "rotation"}  # noqa: RUF012
    possible_agents = ["a", "b", "c"]  # noqa: RUF012

    def __init__(self) -> None:
        self.space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def action_space(self, agent: str) -> Any:
        return self.space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.time, self.agents = 0, ["a", "b"]
        return self._see(), {}

    def step(self, actions: dict[str, Any]) -> Any:
        assert list(actions) == self.agents
        self.time += 1
        before, self.agents = self.agents, [[], ["b", "c"], ["c"], []][self.time]
        over = dict.fromkeys(before, False)
        return self._see(), dict.fromkeys(before, 0.0), over, over, {}

    def _see(self) -> Any:
        return {name: np.array([ord(name), self.time], np.float64) for name in self.agents}


def dictionary(parts: Any) -> Any:
    return gymnasium.wrappers.TransformObservation(gymnasium.make("CartPole-v1"), parts, None)


def linear(seed: int, features: int = 18, actions: int = 5) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Linear(features, actions)


def discrete(seed: int) -> Any:
    network = linear(seed)
    return lambda observations: gs.Categorical(logits=network(observations))


def played(env: Any, choose: Any, steps: int, seed: int) -> dict[str, list[Any]]:
    """The observations of a parallel environment, by the loop of PettingZoo's documentation."""
    rows: dict[str, list[Any]] = {name: [] for name in env.possible_agents}
    observations, _ = env.reset(seed=seed)
    for _ in range(steps):
        for name in env.agents:
            rows[name].append(observations[name])
        observations, *_ = env.step({name: choose(name, observations[name]) for name in env.agents})
        if not env.agents:
            observations, _ = env.reset()
    return rows


def test_it_sees_what_the_loop_of_the_documentation_sees() -> None:
    networks = dict(zip(AGENTS, map(linear, range(3)), strict=True))
    greedy = {name: lambda o, n=network: n(o).argmax(-1) for name, network in networks.items()}
    by_hand = played(spread(), lambda name, o: int(networks[name](torch.tensor(o)).argmax()), 30, seed=3)
    seen = collect(spread(), greedy, 30, seed=3)
    assert list(seen.by_agent) == AGENTS
    for name, rows in by_hand.items():
        np.testing.assert_array_equal(seen.by_agent[name].numpy(), np.stack(rows))
    assert seen.episodes["agent_1"].tolist() == [step // 7 for step in range(30)]
    assert seen.pooled.shape == (90, 18)
    assert seen.clusters.shape == (90,)


def test_aec_turns_and_factories() -> None:
    networks = list(map(linear, range(3)))
    greedy = [lambda o, n=network: n(o).argmax(-1) for network in networks]
    seen = collect(lambda: spread("env"), greedy, 32, seed=3)
    env = spread("env")
    env.reset(seed=3)
    rows: dict[str, list[Any]] = {name: [] for name in AGENTS}
    for name in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            break
        rows[name].append(observation)
        env.step(int(networks[AGENTS.index(name)](torch.tensor(observation)).argmax()))
    for name in AGENTS:  # the first episode
        np.testing.assert_array_equal(seen.by_agent[name][:7].numpy(), np.stack(rows[name]))
    assert {name: len(rows) for name, rows in seen.by_agent.items()} == dict(zip(AGENTS, (11, 11, 10), strict=True))


def test_agents_join_and_leave() -> None:
    seen = collect(Rotation, {"a": None, "b": lambda o: o[..., :1] * 0, "c": None}, 6)
    times = {name: rows[:, 1].tolist() for name, rows in seen.by_agent.items()}
    assert times == {"a": [0, 0], "b": [0, 1, 0, 1], "c": [1, 2, 1, 2]}
    assert seen.episodes["c"].tolist() == [0, 0, 1, 1]
    team = {name: linear(i, 2, 2) for i, name in enumerate("abc")}
    assert gs.measure(team, seen.by_agent).value == gs.measure(team, seen.pooled).value


def test_the_team_is_measured_on_it() -> None:
    team = dict(zip(AGENTS, map(discrete, range(3)), strict=True))
    seen = collect(spread, team, 40, seed=1)
    measured = gs.measure(team, seen.pooled, clusters=seen.clusters)
    probs = [team[name](seen.pooled).probs.detach().double() for name in AGENTS]
    by_hand = np.mean([float((a - b).abs().sum(-1).mean() / 2) for a, b in combinations(probs, 2)])
    assert measured.value == pytest.approx(by_hand, rel=1e-6)
    assert measured.population_interval is not None


def test_seeds_decide_and_global_state_stays() -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    team = dict.fromkeys(AGENTS, discrete(0)) | {"agent_1": None}
    team |= {"agent_2": discrete(1)}
    state, numbers = torch.get_rng_state(), np.random.get_state()
    once, again, other = (collect(spread, team, 20, seed=seed).pooled for seed in (0, 0, 1))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(numbers[1], np.random.get_state()[1])


def test_actions_masks_are_kept() -> None:
    classic = pytest.importorskip("pettingzoo.classic.tictactoe_v3")
    even = lambda o: gs.Categorical(logits=torch.zeros(len(o), 9))  # noqa: E731
    seen = collect(classic.env, {"player_1": even, "player_2": None}, 60)
    never = lambda o: gs.Categorical(probs=torch.eye(9)[:1].expand(len(o), 9))  # noqa: E731
    stubborn = collect(classic.env, {"player_1": never, "player_2": None}, 60, seed=1)  # the first field is soon taken
    assert (torch.unique(stubborn.clusters, return_counts=True)[1][:-1] >= 5).all()
    # An illegal move would end the game with its first repeat; a game has at least five moves.
    lengths = torch.unique(seen.clusters, return_counts=True)[1]
    assert (lengths[:-1] >= 5).all()
    assert seen.by_agent["player_1"].shape[1:] == (3, 3, 2)


def test_gymnasium_lets_each_policy_act_by_itself() -> None:
    env = gymnasium.make("CartPole-v1")
    networks = [linear(seed, 4, 2) for seed in range(2)]
    seen = collect(env, [lambda o, n=n: n(o).argmax(-1) for n in networks], 25, seed=2)
    for index, network in enumerate(networks):
        observation, _ = env.reset(seed=2)
        for row in seen.by_agent[str(index)]:
            np.testing.assert_array_equal(row.numpy(), observation)
            observation, _, ended, cut, _ = env.step(int(network(torch.tensor(observation)).argmax()))
            if ended or cut:
                break
    assert seen.episodes["0"].max() < seen.episodes["1"].min()


class Indicated(pettingzoo.utils.BaseParallelWrapper):  # type: ignore[misc, name-defined]
    """Appends who observes as SuperSuit's agent_indicator_v0 does: the upper end of the space, or 1 if it has none."""

    def __init__(self, env: Any, types: bool = False) -> None:
        super().__init__(env)
        kinds = [name.split("_")[0] if types else name for name in env.possible_agents]
        one_hot = np.eye(len(set(kinds)), dtype=np.float32)
        self.rows = {name: one_hot[sorted(set(kinds)).index(kind)] for name, kind in zip(AGENTS, kinds, strict=True)}

    def indicate(self, seen: dict[str, Any]) -> dict[str, Any]:
        written = {}
        for name, row in seen.items():
            end = self.env.observation_space(name).high
            high = 1.0 if np.isinf(end).all() else end.max()
            written[name] = np.concatenate([row, high * self.rows[name]])
        return written

    def reset(self, **options: Any) -> Any:
        seen, infos = self.env.reset(**options)
        return self.indicate(seen), infos

    def step(self, actions: Any) -> Any:
        seen, *rest = self.env.step(actions)
        return self.indicate(seen), *rest


class Bounded(pettingzoo.utils.BaseParallelWrapper):  # type: ignore[misc, name-defined]
    """A space that ends at 9, of which SuperSuit makes an indicator of 9."""

    def observation_space(self, agent: str) -> Any:
        return gymnasium.spaces.Box(-9.0, 9.0, (18,))


@pytest.mark.parametrize(("wrap", "high"), [(lambda env: env, 1.0), (Bounded, 9.0)])
def test_one_network_that_reads_the_indicator_of_supersuit(wrap: Any, high: float) -> None:
    network, columns = linear(0, 21), slice(-3, None)
    policy = lambda o: gs.Categorical(logits=network(o))  # noqa: E731
    seen = collect(Indicated(wrap(spread())), policy, 30, seed=1)
    # What agents were told, in their order.
    identity = torch.stack([rows[0, columns] for rows in seen.by_agent.values()])
    assert torch.equal(identity, high * torch.eye(3))
    team = gs.Team.shared(policy, list(seen.by_agent), columns=columns, identity=identity)
    estimate = gs.measure(team, seen.pooled, clusters=seen.clusters)
    rows, weight, bias = seen.pooled.double(), network.weight.detach().double(), network.bias.detach().double()
    probs = [
        (torch.cat([rows[:, :18], identity[agent].double().expand(90, 3)], 1) @ weight.T + bias).softmax(-1)
        for agent in range(3)
    ]
    by_hand = np.mean([float((a - b).abs().sum(-1).mean() / 2) for a, b in combinations(probs, 2)])
    assert estimate.value == pytest.approx(by_hand, rel=1e-6)
    assert gs.measure(team, seen.by_agent).value == pytest.approx(by_hand, rel=1e-6)
    assert estimate.names == tuple(AGENTS)
    # The agents are one network: without columns they are shown the same indicator.
    assert gs.measure([policy] * 3, seen.pooled).value == 0


def test_agents_of_one_type_are_told_the_same() -> None:
    network, columns = linear(0, 19), slice(-1, None)
    policy = lambda o: gs.Categorical(logits=network(o))  # noqa: E731
    seen = collect(Indicated(spread(), types=True), policy, 10)
    identity = torch.stack([rows[0, columns] for rows in seen.by_agent.values()])
    team = gs.Team.shared(policy, list(seen.by_agent), columns=columns, identity=identity)
    assert gs.measure(team, seen.pooled).value == 0


def test_channels_of_images_are_columns_of_rows() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(4 * 5 * 6, 2))
    images = torch.rand(7, 4, 5, 6)  # height, width, and three channels before three that say who observes
    channels = torch.arange(4 * 5 * 6).view(4, 5, 6)[..., -3:].flatten().tolist()
    policy = lambda rows: network(rows.unflatten(1, (4, 5, 6)))  # noqa: E731
    team = gs.Team.shared(policy, 3, columns=channels, identity=torch.eye(3).repeat(1, 20))
    answers = []
    for agent in range(3):
        shown = images.clone()
        shown[..., 3:] = torch.eye(3)[agent]
        answers.append(network(shown).detach().double())
    by_hand = np.mean([float((a - b).norm(dim=-1).mean()) for a, b in combinations(answers, 2)])
    assert gs.measure(team, images.flatten(1)).value == pytest.approx(by_hand, rel=1e-6)


def tanh_normal(observations: torch.Tensor) -> Any:
    normal = torch.distributions.Normal(observations[:, :1], torch.ones(len(observations), 1))
    return torch.distributions.TransformedDistribution(normal, [torch.distributions.TanhTransform()])


class Spaced(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Takes the actions of any space, and no others."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))

    def __init__(self, space: Any) -> None:
        self.action_space = space

    def reset(self, **_: Any) -> Any:
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.action = action
        return np.zeros(3, np.float32), 0.0, False, False, {}


class Unsupported(torch.distributions.Distribution):
    """Does not say where its values are, like TorchRL's Delta."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__(values.shape, validate_args=False)
        self.values = values

    def sample(self, sample_shape: Any = ()) -> torch.Tensor:
        return self.values


FAR = torch.tensor([[-99.0]])
SEVERAL = torch.distributions.Categorical(probs=torch.eye(2).unsqueeze(0))
ACTIONS = [
    (gymnasium.spaces.Discrete(3, start=5), gs.Categorical(probs=torch.tensor([[0.0, 0.0, 1.0]])), 7),
    (gymnasium.spaces.Discrete(3, start=5), torch.distributions.Categorical(probs=torch.tensor([[0.0, 1.0, 0.0]])), 6),
    (gymnasium.spaces.Discrete(3, start=5), torch.tensor([5]), 5),
    (gymnasium.spaces.MultiDiscrete([4]), torch.tensor([[3]]), [3]),
    (gymnasium.spaces.MultiDiscrete([4, 2], start=[1, 3]), SEVERAL, [1, 4]),
    (gymnasium.spaces.MultiDiscrete([4, 2], start=[1, 3]), torch.distributions.Independent(SEVERAL, 1), [1, 4]),
    (gymnasium.spaces.MultiDiscrete([4, 2], start=[1, 3]), gs.Categorical(probs=SEVERAL.probs), [1, 4]),
    (gymnasium.spaces.MultiBinary(3), torch.distributions.Bernoulli(torch.tensor([[0.0, 1.0, 0.0]])), [0, 1, 0]),
    (gymnasium.spaces.MultiBinary(1), torch.tensor([[1]]), [1]),
    (gymnasium.spaces.Box(-1.0, 1.0, ()), torch.tensor([[2.0]]), 1.0),
    (gymnasium.spaces.Box(-1.0, 1.0, (2, 1)), torch.tensor([[2.0, 0.5]]), [[1.0], [0.5]]),
    (gymnasium.spaces.Box(-1.0, 1.0, (2,)), Unsupported(torch.tensor([[2.0, 0.5]])), [1.0, 0.5]),
    (gymnasium.spaces.Box(-1.0, 1.0, (1,)), gs.Deterministic(torch.tensor([[9.0]])), [1.0]),
    *((gymnasium.spaces.Box(-1.0, 1.0, (1,)), answer, [-1.0]) for answer in (
        {"mean": FAR, "log_std": torch.zeros(1), "value": FAR}, gs.Gaussian(FAR, torch.ones(1, 1)),
        torch.distributions.Normal(FAR, 1.0), (torch.distributions.Normal(FAR, 1.0), FAR),
        tanh_normal(FAR), torch.distributions.Independent(tanh_normal(FAR), 1),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("space", "answer", "action"), ACTIONS)
def test_answers_become_actions_of_their_space(space: Any, answer: Any, action: Any) -> None:
    env = Spaced(space)
    collect(env, {"a": lambda _: answer}, 2)
    np.testing.assert_array_equal(env.action, action)


@pytest.mark.parametrize(
    ("space", "answer"),
    [
        (gymnasium.spaces.Discrete(3), torch.tensor([3])),
        (gymnasium.spaces.Discrete(3), gs.Categorical(probs=torch.eye(5)[4:])),
        (gymnasium.spaces.Box(-1.0, 1.0, (2,)), torch.zeros(1, 3)),
        (gymnasium.spaces.Box(-1.0, 1.0, (2,)), torch.full((1, 2), torch.nan)),
        (gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2)]), torch.tensor([1])),
    ],
)
def test_answers_that_are_no_actions_are_refused(space: Any, answer: Any) -> None:
    with pytest.raises(InputError, match=r"`policies` to answer with actions of .* for 'a'"):
        collect(Spaced(space), {"a": lambda _: answer}, 2)


def test_different_observations_are_pooled_by_group() -> None:
    from mpe2 import simple_tag_v3

    seen = collect(simple_tag_v3.parallel_env, None, 10)
    with pytest.raises(InputError, match="adversary_0"):
        _ = seen.pooled
    assert seen.of(["adversary_0", "adversary_1"]).pooled.shape == (20, 16)


@pytest.mark.parametrize(
    ("env", "policies", "match"),
    [
        (7, None, "environment"),
        (lambda: gymnasium.make_vec("CartPole-v1", num_envs=2), None, "one PettingZoo or Gymnasium environment"),
        (spread, linear(0), "Categorical"),
        (spread, lambda o: "up", "agent_0"),
    ],
)
def test_what_it_refuses(env: Any, policies: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        collect(env, policies, 5)


def test_dict_observations_are_kept_by_part() -> None:
    plain = collect(gymnasium.make("CartPole-v1"), lambda o: (o[:, 2] > 0).long(), 9)
    shown: list[Any] = []

    def push(seen: Any) -> Any:
        shown.append(seen)
        return (seen["pole"][:, 0] > 0).long()

    env = dictionary(lambda o: {"cart": o[:2], "pole": o[2:], "side": int(o[0] > 0)})
    seen = collect(env, {"a": push, "b": push}, 9)
    assert torch.equal(seen.by_agent["a"]["cart"], plain.pooled[:, :2])
    assert torch.equal(seen.pooled["pole"], torch.cat([plain.pooled[:, 2:]] * 2))
    assert torch.equal(seen.pooled["side"], (seen.pooled["cart"][:, 0] > 0).float())
    assert shown[0]["cart"].shape == (1, 2)
    masked = collect(dictionary(lambda o: {"cart": o, "action_mask": np.array([0, 1], np.int8)}), None, 4)
    assert list(masked.pooled) == ["cart", "action_mask"]
    assert (masked.pooled["cart"][:, 1].diff() > 0).all()  # pushed to the right, as the mask allows nothing else
