"""RLlib pins a gymnasium of its own, so this runs where `make test-integrations` puts it; elsewhere it is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import graphsnd as gs
from graphsnd.errors import InputError

tree = pytest.importorskip("tree")  # which ray[rllib] needs, and nothing else here
rllib = pytest.importorskip("ray.rllib")
import ray  # noqa: E402
from mpe2 import simple_spread_v3  # noqa: E402
from ray.rllib.algorithms import DQNConfig, PPOConfig, SACConfig  # noqa: E402
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.apis import ValueFunctionAPI  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.core.rl_module.torch import TorchRLModule  # noqa: E402
from ray.rllib.env.multi_agent_env import MultiAgentEnv  # noqa: E402
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv  # noqa: E402
from ray.tune.registry import register_env  # noqa: E402

from graphsnd.integrations.rllib import DiversityCallback, ModuleTeam, load_team  # noqa: E402

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
AGENTS = ["agent_0", "agent_1", "agent_2"]
ON_POLICY = {"train_batch_size_per_learner": 60, "minibatch_size": 30, "num_epochs": 1}
OFF_POLICY = {
    "train_batch_size_per_learner": 8,
    "num_steps_sampled_before_learning_starts": 20,
    "replay_buffer_config": {"type": "MultiAgentEpisodeReplayBuffer", "capacity": 500},
}
# What each is called, its configuration, and whether actions are continuous.
ALGORITHMS: dict[str, tuple[Any, dict[str, Any], bool]] = {
    "PPO, discrete": (PPOConfig, ON_POLICY, False),
    "PPO, continuous": (PPOConfig, ON_POLICY, True),
    "SAC": (SACConfig, OFF_POLICY, True),
    "DQN": (DQNConfig, OFF_POLICY, False),
}


def spread(config: Any) -> Any:
    env = simple_spread_v3.parallel_env(N=3, max_cycles=10, continuous_actions=config["continuous"])
    return ParallelPettingZooEnv(env)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error"):
        yield


def build(name: str, callback: Any, module_of: Any = lambda agent, *_, **__: agent, **config: Any) -> Any:
    algorithm, training, continuous = ALGORITHMS[name]
    register_env("spread", spread)
    return (
        algorithm()
        .environment("spread", env_config={"continuous": continuous})
        .multi_agent(policies=set(map(module_of, AGENTS)), policy_mapping_fn=module_of)
        .env_runners(num_env_runners=config.get("runners", 0))
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8], vf_share_layers=False))
        .training(**training)
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=30)
        .callbacks(callback)
        .debugging(seed=0)
        .build_algo()
    )


def layers(rows: Tensor, *networks: nn.Module) -> Tensor:
    """Run linear layers and tanh in float64."""
    for module in (part for network in networks for part in network.modules()):
        if isinstance(module, nn.Linear):
            rows = rows @ module.weight.double().T + module.bias.double()
        elif isinstance(module, nn.Tanh):
            rows = rows.tanh()
    return rows


def gaussian(logits: Tensor) -> Tensor:
    loc, log_std = logits.chunk(2, -1)
    return torch.cat([loc, log_std.exp()], -1)


def squashed(a: Tensor, b: Tensor) -> Tensor:
    """2-Wasserstein distance after the tanh, by quantiles."""
    normal = torch.special.ndtri((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)
    pairs = (x.chunk(2, -1) for x in (a, b))
    one, other = (torch.tanh(loc[..., None] + scale[..., None] * normal) for loc, scale in pairs)
    return (one - other).square().mean(-1).sum(-1).sqrt()


@torch.no_grad()
def by_hand(name: str, modules: Any, rows: Tensor) -> float:
    rows = rows.double()
    answers = []
    for agent in AGENTS:
        module = modules[agent]
        if name.startswith("PPO"):
            answers.append(layers(rows, module.encoder.actor_encoder, module.pi))
        elif name == "SAC":
            answers.append(layers(rows, module.pi_encoder, module.pi))
        else:
            answers.append(layers(rows, module.encoder, module.af).argmax(-1))
    apart = {
        "PPO, discrete": lambda a, b: (a.softmax(-1) - b.softmax(-1)).abs().sum(-1) / 2,
        "PPO, continuous": lambda a, b: (gaussian(a) - gaussian(b)).norm(dim=-1),
        "SAC": lambda a, b: squashed(gaussian(a), gaussian(b)),
        "DQN": lambda a, b: (a != b).double(),
    }[name]
    return float(np.mean([float(apart(a, b).mean()) for a, b in combinations(answers, 2)]))


class Watched(DiversityCallback):
    """Does the same by hand, with the modules and observations of the moment."""

    values: list[float] = []  # noqa: RUF012

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**options)
        self.name = name

    def on_sample_end(self, *, env_runner: Any, metrics_logger: Any, samples: Any, **options: Any) -> None:
        before = dict(self.probe._last)
        super().on_sample_end(env_runner=env_runner, metrics_logger=metrics_logger, samples=samples, **options)
        if self.probe._last != before:
            rows = torch.tensor(np.stack([row for row, _ in self._seen]))
            self.values.append(by_hand(self.name, env_runner.module, rows))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_callback_and_a_checkpoint_have_the_number_of_a_loop(name: str, tmp_path: Path) -> None:
    Watched.values.clear()
    algorithm = build(name, partial(Watched, name, every=20))
    logged = algorithm.train()["env_runners"]["diversity"]
    assert logged["snd"] == pytest.approx(sum(Watched.values) / len(Watched.values), rel=1e-4)
    assert logged["snd"] > 0
    assert logged["snd_low"] < logged["snd"] < logged["snd_high"]
    rows, modules = torch.randn(40, 18), algorithm.env_runner.module
    team = load_team(algorithm.save_to_path(tmp_path))
    assert gs.measure(team, rows).value == pytest.approx(by_hand(name, modules, rows), rel=1e-4)
    same = dict.fromkeys(AGENTS, modules["agent_0"])
    assert gs.measure(ModuleTeam(same), rows).value == 0.0
    algorithm.stop()


def test_agents_that_share_a_module_are_0_apart() -> None:
    whole = build("PPO, continuous", DiversityCallback, lambda *_, **__: "all")
    assert whole.train()["env_runners"]["diversity"]["snd"] == 0.0
    whole.stop()
    partly = build("PPO, continuous", DiversityCallback, lambda agent, *_, **__: "a" if agent == "agent_1" else "b")
    assert partly.train()["env_runners"]["diversity"]["snd"] > 0
    partly.stop()


spaces = gymnasium.spaces
PAIR = spaces.Tuple([spaces.Discrete(3), spaces.Box(-1.0, 1.0, ())])
SCENE = spaces.Dict(
    {"speed": spaces.Box(-1.0, 1.0, (4,)), "camera": spaces.Box(0, 255, (6, 5, 3), np.uint8), "it": PAIR}
)


SMALL = DefaultModelConfig(fcnet_hiddens=[8], vf_share_layers=False)


class Scenes(MultiAgentEnv):  # type: ignore[misc]
    """Shows random observations of a space to two agents, in episodes of 7 steps."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.agents = self.possible_agents = ["a", "b"]
        self.space = config["space"]
        self.observation_spaces = dict.fromkeys(self.agents, self.space)
        self.action_spaces = dict.fromkeys(self.agents, spaces.Box(-1.0, 1.0, (2,)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.space.seed(seed)
        self.steps = 0
        return self.show(), {}

    def step(self, actions: Any) -> Any:
        self.steps += 1
        over = {"__all__": self.steps == 7}
        return self.show(), dict.fromkeys(self.agents, 0.0), over, {"__all__": False}, {}

    def show(self) -> dict[str, Any]:
        return {agent: self.space.sample() for agent in self.agents}


class Reader(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """Reads all parts of SCENE, and keeps the types in which they came."""

    types: list[Any] = []  # noqa: RUF012

    def setup(self) -> None:
        self.camera, self.kind = nn.Conv2d(3, 2, 3), nn.Embedding(3, 4)
        self.head, self.value = nn.Linear(2 * 12 + 4 + 4 + 1, 4), nn.Linear(4, 1)

    def _forward(self, batch: Any, **_: Any) -> Any:
        seen = batch["obs"]
        self.types.append(tree.map_structure(lambda part: part.dtype, seen))
        camera = self.camera(seen["camera"].movedim(-1, 1) / 255).flatten(1)
        kind, place = seen["it"]
        return {
            "action_dist_inputs": self.head(torch.cat([camera, seen["speed"], self.kind(kind), place[:, None]], -1))
        }

    def compute_values(self, batch: Any, embeddings: Any = None) -> Any:
        return self.value(batch["obs"]["speed"]).squeeze(-1)


class Seen(DiversityCallback):
    """Does the same by RLlib's own calls, with the modules and observations of the moment."""

    values: list[float] = []  # noqa: RUF012
    rows: list[Any] = []  # noqa: RUF012

    def on_sample_end(self, *, env_runner: Any, metrics_logger: Any, samples: Any, **options: Any) -> None:
        parts = [part for episode in samples for part in episode.agent_episodes.values()]
        self.rows[:] = [part.get_observations(step) for part in parts for step in range(len(part) + 1)]
        self.values.append(by_framework(env_runner.module, self.rows))
        super().on_sample_end(env_runner=env_runner, metrics_logger=metrics_logger, samples=samples, **options)


@torch.no_grad()
def by_framework(modules: Any, rows: list[Any]) -> float:
    shown = {"obs": tree.map_structure(lambda *each: torch.as_tensor(np.stack(each)), *rows)}
    one, other = (gaussian(modules[name].forward_inference(shown)["action_dist_inputs"].double()) for name in "ab")
    return float((one - other).norm(dim=-1).mean())


def build_scenes(
    space: Any, callback: Any, connector: Any = None, env: Any = Scenes, module_of: Any = str, **module: Any
) -> Any:
    register_env("scenes", env)
    return (
        PPOConfig()
        .environment("scenes", env_config={"space": space})
        .multi_agent(
            policies={module_of("a"), module_of("b")}, policy_mapping_fn=lambda agent, *_, **__: module_of(agent)
        )
        .env_runners(num_env_runners=0, env_to_module_connector=connector)
        .rl_module(**module)
        .training(train_batch_size_per_learner=40, minibatch_size=20, num_epochs=1)
        .callbacks(callback)
        .debugging(seed=0)
        .build_algo()
    )


def train_scenes(space: Any, callback: Any, connector: Any = None, **module: Any) -> tuple[Any, float]:
    algorithm = build_scenes(space, callback, connector, **module)
    return algorithm, float(algorithm.train()["env_runners"]["diversity"]["snd"])


def test_dict_and_tuple_observations(tmp_path: Path) -> None:
    Seen.values.clear()
    Reader.types.clear()
    spec = MultiRLModuleSpec(rl_module_specs={name: RLModuleSpec(module_class=Reader) for name in "ab"})
    algorithm, logged = train_scenes(SCENE, Seen, rl_module_spec=spec)
    assert logged == pytest.approx(Seen.values[0], rel=1e-5)
    assert logged > 0
    integers = {"camera": torch.uint8, "it": (torch.int64, torch.float32), "speed": torch.float32}
    assert all(types == integers for types in Reader.types)  # RLlib's calls and ours
    team = load_team(algorithm.save_to_path(tmp_path))
    expected = by_framework(algorithm.env_runner.module, Seen.rows)
    algorithm.stop()
    kinds = np.array([row["it"][0] for row in Seen.rows]), np.array([row["it"][1] for row in Seen.rows])
    given = {"it": kinds, **{key: np.stack([row[key] for row in Seen.rows]) for key in ("speed", "camera")}}
    assert gs.measure(team, given).value == pytest.approx(expected, rel=1e-5)
    halves = [tree.map_structure(lambda part, half=half: part[half::2], given) for half in (0, 1)]
    whose = gs.measure(team, dict(zip("ab", halves, strict=True)))
    assert whose.value == pytest.approx(expected, rel=1e-5)
    with pytest.raises(InputError, match=r"`observations\['it'\]` with the arrays 0, 1, got 0"):
        gs.measure(team, {**given, "it": kinds[:1]})


class Numbered(Scenes):
    """The last two features say who observes, as SuperSuit writes them where a space ends at 2; b joins later."""

    identity = {"b": np.float32([2, 0]), "a": np.float32([0, 2])}  # noqa: RUF012

    def show(self) -> dict[str, Any]:
        self.agents = ["a", "b"][: 1 + (self.steps > 2)]
        rows = super().show()
        for agent, row in rows.items():
            (row["speed"] if isinstance(row, dict) else row)[-2:] = self.identity[agent]
        return rows


class Told(DiversityCallback):
    """Does the same by RLlib's own calls, with the module and observations of the moment."""

    values: list[float] = []  # noqa: RUF012

    def on_sample_end(self, *, env_runner: Any, **options: Any) -> None:
        super().on_sample_end(env_runner=env_runner, **options)
        rows = [row for row, _ in self._seen]
        self.values.append(told_apart(env_runner.module["all"], rows, Numbered.identity))


@torch.no_grad()
def told_apart(module: Any, rows: list[Any], identity: Any) -> float:
    answers = []
    for agent in "ab":
        written = tree.map_structure(np.copy, rows)
        for row in written:
            (row["speed"] if isinstance(row, dict) else row)[-2:] = identity[agent]
        shown = {"obs": tree.map_structure(lambda *each: torch.as_tensor(np.stack(each)), *written)}
        answers.append(gaussian(module.forward_inference(shown)["action_dist_inputs"].double()))
    return float((answers[0] - answers[1]).norm(dim=-1).mean())


@pytest.mark.parametrize("kind", ["vector", "dict"])
def test_agents_that_share_a_module_and_know_who_they_are(kind: str, tmp_path: Path) -> None:
    Told.values.clear()
    space, columns = (spaces.Box(-2.0, 2.0, (5,)), slice(-2, None)) if kind == "vector" else (SCENE, {"speed": [2, 3]})
    spec = MultiRLModuleSpec(rl_module_specs={"all": RLModuleSpec(module_class=Reader)})
    options: dict[str, Any] = {"rl_module_spec": spec} if kind == "dict" else {"model_config": SMALL}
    callback = partial(Told, every=1, columns=columns)
    algorithm = build_scenes(space, callback, env=Numbered, module_of=lambda _: "all", **options)
    logged = algorithm.train()["env_runners"]["diversity"]["snd"]
    assert logged == pytest.approx(Told.values[-1], rel=1e-5)
    assert logged > 0
    module, env = algorithm.env_runner.module["all"], Scenes({"space": space})
    rows = [row for _ in range(9) for row in env.reset(seed=1)[0].values()]
    one_hot = dict(zip("ab", np.eye(2, dtype="f4"), strict=True))
    expected = told_apart(module, rows, one_hot)
    saved = load_team(algorithm.save_to_path(tmp_path))
    given = tree.map_structure(lambda *each: np.stack(each), *rows)
    for shared in (module, saved):
        estimate = gs.measure(ModuleTeam.shared(shared, ["scout", "guard"], columns=columns), given)
        assert estimate.value == pytest.approx(expected, rel=1e-5)
        assert estimate.names == ("scout", "guard")
    algorithm.stop()


def test_columns_of_agents_with_modules_of_their_own_are_refused() -> None:
    callback = partial(DiversityCallback, every=1, columns=slice(-2, None))
    algorithm = build_scenes(spaces.Box(-2.0, 2.0, (5,)), callback, model_config=SMALL)
    with pytest.raises(InputError, match="`policy` to be the one that agents share"):
        algorithm.train()
    algorithm.stop()


def test_recurrent_modules_roll_their_own_memory_along_shared_sequences(tmp_path: Path) -> None:
    model = DefaultModelConfig(fcnet_hiddens=[8], use_lstm=True, lstm_cell_size=6, max_seq_len=5)
    algorithm = build_scenes(spaces.Box(-1.0, 1.0, (4,)), DiversityCallback, model_config=model)
    team = load_team(algorithm.save_to_path(tmp_path))
    modules, sequences, answers = algorithm.env_runner.module, torch.rand(3, 5, 4) * 2 - 1, []
    for name in "ab":
        state = tree.map_structure(lambda one: torch.stack([one] * 3), modules[name].get_initial_state())
        for time in range(5):  # as it acts, one step after another
            with torch.no_grad():
                made = modules[name].forward_inference({"obs": sequences[:, time : time + 1], "state_in": state})
            state = made["state_out"]
            answers.append(gaussian(made["action_dist_inputs"].double()))
    one, other = torch.cat(answers[:5], 1), torch.cat(answers[5:], 1)
    behavior = team.evaluate(sequences)
    assert behavior.batch_shape == (3, 5)
    for estimate in (gs.measure(behavior), gs.measure(team, sequences)):
        assert estimate.value == pytest.approx(float((one - other).norm(dim=-1).mean()), rel=1e-5)
    for use, match in (
        (lambda: team.evaluate(sequences[0]), r"\(batch, time, features\)"),
        (lambda: algorithm.train(), r"without a memory.*measure\(team, sequences\)"),
    ):
        with pytest.raises(InputError, match=match):
            use()
    algorithm.stop()
