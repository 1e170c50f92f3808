from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import graphsnd as gs
from graphsnd.errors import InputError
from graphsnd.integrations.pettingzoo import collect

sb3 = pytest.importorskip("stable_baselines3")
gymnasium = pytest.importorskip("gymnasium")
contrib = pytest.importorskip("sb3_contrib")

from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize, VecTransposeImage  # noqa: E402

from graphsnd.integrations.sb3 import DiversityCallback, ModelTeam  # noqa: E402

REPLAY = {"buffer_size": 500, "learning_starts": 30, "batch_size": 16}
ROLLOUT = {"n_steps": 32}
pytestmark = pytest.mark.integration
# What each algorithm trains on, and its options.
ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "PPO": ("CartPole-v1", {**ROLLOUT, "batch_size": 16}),
    "A2C": ("Pendulum-v1", ROLLOUT),
    "SAC": ("Pendulum-v1", REPLAY),
    "TD3": ("Pendulum-v1", REPLAY),
    "DQN": ("CartPole-v1", REPLAY),
}


def population(algorithm: str, count: int = 3, **more: Any) -> dict[str, Any]:
    task, options = ALGORITHMS[algorithm]
    made = getattr(sb3, algorithm)
    # Stable-Baselines3 writes into policy_kwargs.
    small = ({"policy_kwargs": {"net_arch": [8]}, "device": "cpu", "seed": seed} for seed in range(count))
    return {f"m{one['seed']}": made("MlpPolicy", task, **options, **one, **more) for one in small}


def observations(algorithm: str, models: dict[str, Any]) -> Tensor:
    return collect(lambda: gymnasium.make(ALGORITHMS[algorithm][0]), models, 20).pooled


def layers(modules: Any, rows: Tensor) -> Tensor:
    """Run linear layers and activations in float64."""
    for module in modules:
        linear = isinstance(module, torch.nn.Linear)
        rows = rows @ module.weight.double().T + module.bias.double() if linear else module(rows)
    return rows


def hidden(policy: Any, rows: Tensor) -> Tensor:
    return layers([*policy.mlp_extractor.policy_net, policy.action_net], rows)


def squashed(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
    """2-Wasserstein distance after tanh and the scale of Pendulum, [-2, 2], by quantiles."""
    levels = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    one, other = (
        2 * torch.tanh(loc[..., None] + scale[..., None] * torch.special.ndtri(levels)) for loc, scale in (a, b)
    )
    return (one - other).square().mean(-1).sum(-1).sqrt()


def sac(policy: Any, rows: Tensor) -> tuple[Tensor, Tensor]:
    latent = layers(policy.actor.latent_pi, rows)
    return layers([policy.actor.mu], latent), layers([policy.actor.log_std], latent).clamp(-20, 2).exp()


# By algorithm: what a model answers to rows, from its layers in float64; and how far two answers are apart.
BY_HAND: dict[str, tuple[Callable[[Any, Tensor], Any], Callable[[Any, Any], Tensor]]] = {
    "PPO": (lambda p, o: hidden(p, o).softmax(-1), lambda a, b: (a - b).abs().sum(-1) / 2),
    "A2C": (
        lambda p, o: torch.cat([hidden(p, o), p.log_std.double().exp().expand(len(o), -1)], -1),
        lambda a, b: (a - b).norm(dim=-1),
    ),
    "SAC": (sac, squashed),
    "TD3": (lambda p, o: 2 * layers(p.actor.mu, o), lambda a, b: (a - b).norm(dim=-1)),
    "DQN": (lambda p, o: layers(p.q_net.q_net, o).argmax(-1), lambda a, b: (a != b).double()),
}


@torch.no_grad()
def by_hand(algorithm: str, models: dict[str, Any], rows: Tensor) -> float:
    answer, apart = BY_HAND[algorithm]
    answers = [answer(model.policy, rows.double()) for model in models.values()]
    return float(np.mean([float(apart(a, b).mean()) for a, b in combinations(answers, 2)]))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_trained_population_has_the_number_of_a_loop(algorithm: str, tmp_path: Path) -> None:
    models = population(algorithm)
    callback = DiversityCallback(models, every=32)
    for model in models.values():
        model.learn(64, callback=callback)
    rows = observations(algorithm, models)
    measured = gs.measure(ModelTeam(models), rows)
    assert measured.value == pytest.approx(by_hand(algorithm, models, rows), rel=1e-4)
    assert measured.names == ("m0", "m1", "m2")
    assert [row["model"] for row in callback.rows] == ["m0", "m0", "m1", "m1", "m2", "m2"]
    # A saved model is the same.
    for name, model in models.items():
        model.save(tmp_path / name)
    loaded = {name: type(model).load(tmp_path / name, device="cpu") for name, model in models.items()}
    assert gs.measure(ModelTeam(loaded), rows).value == measured.value


class Counted(gymnasium.Env):
    """Observations that say which environment and episode they are of; episodes have 2 to 4 steps."""

    observation_space, action_space = gymnasium.spaces.Box(-9, 99, (3,)), gymnasium.spaces.Discrete(2)

    def __init__(self, number: int) -> None:
        self.number, self.episode = number, 0

    def reset(self, **options: Any) -> Any:
        self.episode, self.left = self.episode + 1, 2 + (self.episode + self.number) % 3
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        return self._observe(), 0.0, self.left == 0, False, {}

    def _observe(self) -> Any:
        return np.array([self.number, self.episode, self.left], "f4")


@pytest.mark.parametrize("algorithm", ["A2C", "DQN"])
def test_the_callback_knows_the_episodes_of_its_buffers(algorithm: str) -> None:
    options = {"n_steps": 12} if algorithm == "A2C" else {"buffer_size": 600, "train_freq": 12}
    models = []
    for seed in range(2):
        env = DummyVecEnv([lambda number=number: Counted(number) for number in range(3)])
        models.append(getattr(sb3, algorithm)("MlpPolicy", env, learning_rate=0.0, seed=seed, device="cpu", **options))
    callback = DiversityCallback(models, every=1)
    for model in models:
        model.learn(72, callback=callback)
    buffers = [model.rollout_buffer if algorithm == "A2C" else model.replay_buffer for model in models]
    rows = [(each.observations if each.full else each.observations[: each.pos]).reshape(-1, 3) for each in buffers]
    marked = [[number, *row[:2]] for number, each in enumerate(rows) for row in each.tolist()]
    clusters = np.unique(np.array(marked), axis=0, return_inverse=True)[1].reshape(-1)
    seen = torch.tensor(np.concatenate(rows))
    expected = gs.measure(ModelTeam(models), seen, clusters=torch.tensor(clusters))
    row = callback.rows[-1]
    assert (row["snd_low"], row["snd_high"]) == pytest.approx(expected.population_interval, rel=1e-5)
    assert row["snd"] == pytest.approx(expected.value, rel=1e-5)
    assert row["snd_low"] < row["snd"] < row["snd_high"]
    assert models[1].logger.name_to_value["diversity/snd_low"] == row["snd_low"]


def answer_in_training(model: Any, rows: Tensor) -> Any:
    """Return what a model does on observations of the environment, normalised as in its training."""
    statistics = model.get_vec_normalize_env().obs_rms
    normal = ((rows.double().numpy() - statistics.mean) / np.sqrt(statistics.var + 1e-8)).clip(-10, 10)
    return BY_HAND[type(model).__name__][0](model.policy, torch.tensor(normal))


@torch.no_grad()
@pytest.mark.parametrize("algorithm", ["A2C", "TD3"])
def test_each_model_normalises_by_its_own_statistics(algorithm: str) -> None:
    def far(factor: float) -> Any:
        box = gymnasium.spaces.Box(-np.inf, np.inf, (3,))
        made = gymnasium.make("Pendulum-v1")
        return gymnasium.wrappers.TransformObservation(made, lambda o: 5 + factor * o, box)

    options = {**REPLAY, "learning_starts": 1000} if algorithm == "TD3" else {"learning_rate": 0.0, "n_steps": 24}
    small = {"policy_kwargs": {"net_arch": [8]}, "seed": 0, "device": "cpu"}
    # One network, with other statistics: all that they differ in.
    models = {
        str(factor): getattr(sb3, algorithm)(
            "MlpPolicy", VecNormalize(DummyVecEnv([lambda f=factor: far(f)])), **options, **small
        )
        for factor in (1, 30)
    }
    callback = DiversityCallback(models, every=1, observations=1000)
    with torch.enable_grad():
        for model in models.values():
            model.learn(24, callback=callback)
    buffers = [model.replay_buffer if algorithm == "TD3" else model.rollout_buffer for model in models.values()]
    kept = [buffer.observations[:24].reshape(24, 3) for buffer in buffers]
    if algorithm == "A2C":
        made = (model.get_vec_normalize_env() for model in models.values())
        kept = [env.unnormalize_obs(rows) for env, rows in zip(made, kept, strict=True)]
    rows = torch.tensor(np.concatenate(kept)).float()
    expected = float(BY_HAND[algorithm][1](*(answer_in_training(model, rows) for model in models.values())).mean())
    assert expected > 0.01
    assert callback.rows[-1]["snd"] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(InputError, match="`normalize` to be given, as '1' was trained with a VecNormalize"):
        ModelTeam(models)
    assert gs.measure(ModelTeam(models, normalize=True), rows).value == pytest.approx(expected, rel=1e-4)
    assert gs.measure(ModelTeam(models, normalize=False), rows).value == 0.0
    if algorithm == "TD3":  # where they act, they see the same
        seen = collect(lambda: far(30), models["30"], 5)
        with gymnasium.make("Pendulum-v1") as env:
            shown, _ = env.reset(seed=0)
            for row in seen.pooled:
                assert np.allclose(row, 5 + 30 * shown, atol=1e-4)
                loc = answer_in_training(models["30"], row[None])[0, :1]
                shown, *_ = env.step(loc.float().numpy().clip(-2, 2))


def test_models_of_different_kinds_are_compared_by_their_actions() -> None:
    models = {"ppo": population("A2C", 1)["m0"], "sac": population("SAC", 1)["m0"]}
    rows = torch.randn(30, 3)
    with pytest.raises(InputError, match="one family"):
        gs.measure(ModelTeam(models), rows)
    actions = [torch.tensor(model.predict(rows.numpy(), deterministic=True)[0]).double() for model in models.values()]
    assert (actions[1].abs() <= 2).all()
    by_hand = float((actions[0] - actions[1]).norm(dim=-1).mean())
    assert gs.measure(ModelTeam(models, deterministic=True), rows).value == pytest.approx(by_hand, rel=1e-6)


@torch.no_grad()
def test_actions_of_a_range_that_is_not_symmetric() -> None:
    class Still(gymnasium.Env):  # type: ignore[misc, name-defined]
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
        action_space = gymnasium.spaces.Box(np.float32([[-1], [-3]]), np.float32([[3], [7]]))

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.zeros(3, np.float32), {}

    rows = torch.rand(6, 3) * 2 - 1
    models = {kind: [kind("MlpPolicy", Still(), seed=s, device="cpu") for s in (11, 12)] for kind in (sb3.TD3, sb3.SAC)}
    actions = [model.predict(rows.numpy(), deterministic=True)[0].astype(float)[..., 0] for model in models[sb3.TD3]]
    expected = np.linalg.norm(actions[0] - actions[1], axis=-1).mean()
    assert gs.measure(ModelTeam(models[sb3.TD3]), rows).value == pytest.approx(expected, rel=1e-5)
    normal = torch.special.ndtri((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)
    actions = []  # by quantile, in the units in which Stable-Baselines3 itself gives them to the environment
    for model in models[sb3.SAC]:
        mean, log_std, _ = model.actor.get_action_dist_params(rows)
        drawn = torch.tanh(mean.double() + log_std.double().exp() * normal[:, None, None])
        actions.append(model.policy.unscale_action(drawn[..., None].numpy())[..., 0])
    expected = np.sqrt(((actions[0] - actions[1]) ** 2).mean(0).sum(-1)).mean()
    assert gs.measure(ModelTeam(models[sb3.SAC]), rows).value == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(
    ("actions", "sizes"),
    [
        (gymnasium.spaces.Discrete(4), [4]),
        (gymnasium.spaces.MultiDiscrete([2, 3]), [2, 3]),
        (gymnasium.spaces.MultiBinary(2), [2, 2]),
    ],
    ids=["discrete", "multi-discrete", "multi-binary"],
)
def test_masks_are_shown_with_the_observations(actions: Any, sizes: list[int]) -> None:
    allowed = np.arange(sum(sizes)) != 1

    def by_softmax(rows: Any, masks: Any) -> float:
        """Return the mean total variation over the parts of the action, of a softmax over what is allowed."""
        answers = []
        for model in models:
            logits = hidden(model.policy, torch.tensor(rows).double()).masked_fill(~torch.tensor(masks), -np.inf)
            answers.append([part.softmax(-1) for part in logits.split(sizes, -1)])
        return float(np.mean([float((a - b).abs().sum(-1).mean()) / 2 for a, b in zip(*answers, strict=True)]))

    models = []
    for seed in range(2):
        env = Scene(gymnasium.spaces.Box(-1.0, 1.0, (3,)))
        env.action_space, env.action_masks = actions, lambda: allowed
        options = {"n_steps": 8, "batch_size": 8, "learning_rate": 0.0, "seed": seed, "device": "cpu"}
        models.append(contrib.MaskablePPO("MlpPolicy", env, **options))
        weight = models[-1].policy.action_net.weight
        weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed)))
    rows = np.random.default_rng(0).uniform(-1, 1, (8, 3)).astype("f4")
    masks = np.stack([allowed, allowed | True] * 4)
    given = {"observation": rows, "action_mask": masks}
    assert by_softmax(rows, masks) != pytest.approx(by_softmax(rows, masks | True), rel=0.01)
    assert gs.measure(ModelTeam(models), given).value == pytest.approx(by_softmax(rows, masks), rel=1e-4)
    if len(sizes) == 1:
        chosen = [model.predict(rows, action_masks=masks, deterministic=True)[0] for model in models]
        measured = gs.measure(ModelTeam(models, deterministic=True), given).value
        assert measured == pytest.approx((chosen[0] != chosen[1]).mean())
    with pytest.raises(InputError, match="with the arrays 'action_mask', 'observation', got"):
        gs.measure(ModelTeam(models), rows)
    callback = DiversityCallback(models)
    with torch.enable_grad():
        models[0].learn(8, callback=callback)
    seen = models[0].rollout_buffer.observations.reshape(8, 3)
    assert callback.rows[-1]["snd"] == pytest.approx(by_softmax(seen, np.stack([allowed] * 8)), rel=1e-4)


class Scene(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Shows random scenes in episodes of 5 steps."""

    def __init__(self, observation_space: Any, discrete: bool = False) -> None:
        spaces = gymnasium.spaces
        self.observation_space, self.steps = observation_space, 0
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-2.0, 2.0, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.observation_space.sample(), 0.0, False, self.steps == 5, {}


CAMERA = gymnasium.spaces.Box(0, 255, (36, 40, 3), np.uint8)  # channels last, as environments have them


def scene() -> Any:
    spaces = gymnasium.spaces
    return spaces.Dict({"camera": CAMERA, "kind": spaces.Discrete(3), "speed": spaces.Box(-1.0, 1.0, (4,))})


@torch.no_grad()
def by_framework(model: Any, rows: Any) -> Any:
    """Return what a model answers, by the calls that Stable-Baselines3 makes itself where it acts."""
    shown = model.policy.obs_to_tensor(rows)[0]
    if isinstance(model, sb3.A2C):
        normal = model.policy.get_distribution(shown).distribution
        return torch.cat([normal.mean, normal.stddev], -1).double()
    if isinstance(model, sb3.SAC):
        mean, log_std, _ = model.actor.get_action_dist_params(shown)
        return mean.double(), log_std.double().exp()
    return torch.tensor(model.predict(rows, deterministic=True)[0]).double()


def mean_apart(models: list[Any], rows: Any) -> float:
    kind = type(models[0]).__name__
    answers = [by_framework(model, rows) for model in models]
    apart = BY_HAND[kind][1]
    return float(np.mean([float(apart(a, b).mean()) for a, b in combinations(answers, 2)]))


def scenes(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    camera = rng.integers(0, 256, (count, *CAMERA.shape), dtype=np.uint8)
    return {"camera": camera, "kind": rng.integers(0, 3, count), "speed": rng.normal(size=(count, 4)).astype("f4")}


@pytest.mark.parametrize("algorithm", ["A2C", "SAC", "TD3", "DQN"])
@pytest.mark.parametrize("policy", ["CnnPolicy", "MultiInputPolicy"])
def test_images_and_dicts_have_the_number_of_a_loop(policy: str, algorithm: str) -> None:
    space = CAMERA if policy == "CnnPolicy" else scene()
    small = {"net_arch": [8], "features_extractor_kwargs": {"features_dim" if space is CAMERA else "cnn_output_dim": 8}}
    options = {"buffer_size": 20} if algorithm != "A2C" else {}
    models = [
        getattr(sb3, algorithm)(
            policy, Scene(space, algorithm == "DQN"), policy_kwargs={**small}, seed=seed, device="cpu", **options
        )
        for seed in range(3)
    ]
    assert getattr(models[0].observation_space, "spaces", {"camera": models[0].observation_space})["camera"].shape == (
        3,
        36,
        40,
    )
    given = scenes(20)
    rows = given["camera"] if space is CAMERA else given
    expected = mean_apart(models, rows)
    assert expected > 0
    team = ModelTeam(models)
    assert gs.measure(team, rows).value == pytest.approx(expected, rel=1e-4)
    assert gs.measure(team, rows, design="agents:3").value == pytest.approx(expected, rel=1e-4)  # asks some of them
    first = np.moveaxis(given["camera"], -1, -3)  # channels first, as the policies see them
    moved = torch.as_tensor(first) if space is CAMERA else {**given, "camera": first}
    assert gs.measure(team, moved).value == gs.measure(team, rows).value
    # What the models themselves see where they act.
    seen = collect(lambda: Scene(space, algorithm == "DQN"), models, 4)
    acted = seen.pooled if space is CAMERA else {key: part.numpy() for key, part in seen.pooled.items()}
    expected = mean_apart(models, acted.numpy() if space is CAMERA else acted)
    assert gs.measure(team, seen.pooled, clusters=seen.clusters).value == pytest.approx(expected, rel=1e-4)
    whose = gs.measure(team, seen.by_agent)
    assert whose.value == pytest.approx(expected, rel=1e-4)


def test_the_callback_measures_on_buffers_of_dicts() -> None:
    models, small = [], {"net_arch": [8], "features_extractor_kwargs": {"cnn_output_dim": 8}}
    options = {"learning_rate": 0.0, "n_steps": 4, "device": "cpu"}
    for seed in range(2):
        env = VecNormalize(VecTransposeImage(DummyVecEnv([lambda: Scene(scene())] * 2)), norm_obs_keys=["speed"])
        models.append(sb3.A2C("MultiInputPolicy", env, policy_kwargs={**small}, seed=seed, **options))
    callback = DiversityCallback(models, every=1)
    for model in models:
        model.learn(8, callback=callback)
    seen = []
    for model in models:
        shapes = model.observation_space.spaces
        flat = {key: held.reshape(-1, *shapes[key].shape) for key, held in model.rollout_buffer.observations.items()}
        seen.append(model.get_vec_normalize_env().unnormalize_obs(flat))
    shown = {key: np.concatenate([part[key] for part in seen]).astype("f4") for key in seen[0]}
    answers = [by_framework(model, model.get_vec_normalize_env().normalize_obs(shown)) for model in models]
    expected = float(BY_HAND["A2C"][1](*answers).mean())
    assert callback.rows[-1]["snd"] == pytest.approx(expected, rel=1e-4)
    assert expected > 0


@pytest.mark.parametrize("policy", ["MlpLstmPolicy", "MultiInputLstmPolicy"])
def test_recurrent_models_roll_their_own_memory_along_shared_sequences(policy: str) -> None:
    plain = policy == "MlpLstmPolicy"
    make = (lambda: gymnasium.make("Pendulum-v1")) if plain else (lambda: Scene(scene()))
    options = {"lstm_hidden_size": 6, "n_lstm_layers": 2, "net_arch": [8]}
    models = {
        f"m{seed}": contrib.RecurrentPPO(policy, make(), policy_kwargs={**options}, seed=seed, device="cpu")
        for seed in range(3)
    }
    rows = {"x": np.random.default_rng(0).normal(size=(20, 3)).astype("f4")} if plain else scenes(20)
    sequences: Any = {key: part.reshape(4, 5, *part.shape[1:]) for key, part in rows.items()}
    answers = []
    for model in models.values():
        state, starts, steps = (torch.zeros(2, 4, 6), torch.zeros(2, 4, 6)), torch.zeros(4), []
        for time in range(5):  # as it acts, one step after another
            at = {key: part[:, time] for key, part in sequences.items()}
            shown = model.policy.obs_to_tensor(at["x"] if plain else at)[0]
            with torch.no_grad():
                made, state = model.policy.get_distribution(shown, state, starts)
            steps.append(torch.cat([made.distribution.mean, made.distribution.stddev], -1).double())
        answers.append(torch.stack(steps, 1))
    expected = float(np.mean([float((a - b).norm(dim=-1).mean()) for a, b in combinations(answers, 2)]))
    sequences = sequences["x"] if plain else sequences
    team = ModelTeam(models)
    behavior = team.evaluate(sequences)
    assert behavior.batch_shape == (4, 5)
    for estimate in (gs.measure(behavior), gs.measure(team, sequences)):
        assert estimate.value == pytest.approx(expected, rel=1e-4)
        assert estimate.names == ("m0", "m1", "m2")
    assert float(gs.snd(ModelTeam([models["m0"]] * 2).evaluate(sequences)).detach()) == 0
    if plain:
        act_with_memory(make(), models["m0"])


def act_with_memory(env: Any, model: Any) -> None:
    """Compare what ``collect`` shows with the loop of sb3-contrib's documentation."""
    seen = collect(env, model, 210)  # 200 steps are an episode of Pendulum
    row, _ = env.reset(seed=0)
    torch.manual_seed(0)
    state, rows, over = None, [], False
    for _ in range(210):
        rows.append(row)
        action, state = model.predict(row, state=state, episode_start=np.array([over]))
        row, _, _, over, _ = env.step(action)
        row = env.reset()[0] if over else row
        state = None if over else state
    np.testing.assert_allclose(seen.pooled.numpy(), np.stack(rows), atol=1e-5)


def told(rows: Any, agent: int, agents: int = 2) -> Any:
    """Return observations in which the last columns say who acts."""
    written = torch.as_tensor(rows).clone()
    written[..., -agents:] = torch.eye(agents)[agent]
    return written


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_agents_that_share_a_model_have_the_number_of_a_loop(algorithm: str) -> None:
    model, (answer, apart) = population(algorithm, 1)["m0"], BY_HAND[algorithm]
    rows = torch.randn(30, *model.observation_space.shape)
    team = ModelTeam.shared(model, ["scout", "guard"], columns=slice(-2, None))
    assert gs.measure(ModelTeam([model] * 2), rows).value == 0
    with torch.no_grad():
        expected = float(apart(*(answer(model.policy, told(rows, agent).double()) for agent in range(2))).mean())
    estimate = gs.measure(team, rows)
    assert estimate.value == pytest.approx(expected, rel=1e-4)
    assert estimate.names == ("scout", "guard")
    same = ModelTeam.shared(model, 2, columns=slice(-2, None), identity=torch.ones(2, 2))
    assert gs.measure(same, rows).value == 0


@torch.no_grad()
def test_shared_models_read_who_they_are_in_one_of_several_arrays() -> None:
    given, space = scenes(12), scene()
    model = sb3.A2C("MultiInputPolicy", Scene(space), policy_kwargs={"net_arch": [8]}, seed=0, device="cpu")
    answers = [by_framework(model, {**given, "speed": told(given["speed"], agent).numpy()}) for agent in range(2)]
    team = ModelTeam.shared(model, 2, columns={"speed": slice(-2, None)})
    expected = float((answers[0] - answers[1]).norm(dim=-1).mean())
    assert expected > 0
    assert gs.measure(team, given).value == pytest.approx(expected, rel=1e-4)
    kinds = [by_framework(model, {**given, "kind": np.full(12, kind)}) for kind in (2, 0)]
    team = ModelTeam.shared(model, 2, columns={"kind": 0}, identity=torch.tensor([2, 0]))
    assert gs.measure(team, given).value == pytest.approx(float((kinds[0] - kinds[1]).norm(dim=-1).mean()), rel=1e-4)

    env = Scene(gymnasium.spaces.Box(-1.0, 1.0, (3,)), discrete=True)
    env.action_masks = lambda: np.ones(3, bool)  # type: ignore[attr-defined]
    masked = contrib.MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    rows, masks = torch.randn(12, 3), torch.tensor([[True, False, True], [True, True, True]] * 6)
    logits = [hidden(masked.policy, told(rows, agent).double()).masked_fill(~masks, -np.inf) for agent in range(2)]
    team = ModelTeam.shared(masked, 2, columns={"observation": slice(-2, None)})
    expected = float((logits[0].softmax(-1) - logits[1].softmax(-1)).abs().sum(-1).mean()) / 2
    measured = gs.measure(team, {"observation": rows, "action_mask": masks}).value
    assert measured == pytest.approx(expected, rel=1e-4)
    with pytest.raises(InputError, match="`columns` to name one of the arrays 'action_mask', 'observation'"):
        ModelTeam.shared(masked, 2, columns=slice(-2, None))


@torch.no_grad()
def test_shared_recurrent_models_roll_a_memory_for_each_agent() -> None:
    (model,), sequences = recurrent(1), torch.randn(4, 6, 3)
    answers = []
    for agent in range(2):
        layers, size = model.policy.lstm_actor.num_layers, model.policy.lstm_actor.hidden_size
        state, steps = (torch.zeros(layers, 4, size), torch.zeros(layers, 4, size)), []
        for time in range(6):
            shown = told(sequences[:, time], agent)
            made, state = model.policy.get_distribution(shown, state, torch.zeros(4))
            steps.append(torch.cat([made.distribution.mean, made.distribution.stddev], -1).double())
        answers.append(torch.stack(steps, 1))
    expected = float((answers[0] - answers[1]).norm(dim=-1).mean())
    team = ModelTeam.shared(model, ["scout", "guard"], columns=[1, 2])
    estimate = gs.measure(team, sequences)
    assert estimate.value == pytest.approx(expected, rel=1e-4)
    assert estimate.names == ("scout", "guard")


def test_the_callback_tells_apart_agents_that_share_a_model() -> None:
    class Seat(Counted):
        """One of two agents of a game, which end together."""

        def __init__(self, number: int) -> None:
            super().__init__(number // 2)
            self.seat, self.observation_space = number % 2, gymnasium.spaces.Box(-9, 99, (5,))

        def _observe(self) -> Any:
            return np.concatenate([super()._observe(), np.eye(2, dtype="f4")[self.seat]])

    games = DummyVecEnv([lambda number=number: Seat(number) for number in range(6)])  # three of them
    env = VecNormalize(games, training=False)
    env.obs_rms.mean, env.obs_rms.var = np.linspace(0, 2, 5), np.linspace(1, 3, 5)
    options = {"learning_rate": 0.0, "n_steps": 12, "batch_size": 12, "n_epochs": 1}
    model = sb3.PPO("MlpPolicy", env, seed=0, device="cpu", **options)
    shared = {"agents": ["left", "right"], "columns": slice(-2, None)}
    callback = DiversityCallback([model], every=1, shared=shared)
    model.learn(72, callback=callback)
    seen = env.unnormalize_obs(model.rollout_buffer.observations.reshape(-1, 5))
    clusters = np.unique(seen[:, :2].round(), axis=0, return_inverse=True)[1].reshape(-1)  # game and episode
    team = ModelTeam.shared(model, **shared, normalize=True)
    expected = gs.measure(team, torch.tensor(seen), clusters=torch.tensor(clusters))
    with torch.no_grad():
        answers = [answer_in_training(model, told(torch.tensor(seen), agent)) for agent in range(2)]
    assert expected.value == pytest.approx(float((answers[0] - answers[1]).abs().sum(-1).mean()) / 2, rel=1e-4)
    row = callback.rows[-1]
    assert (row["snd"], row["snd_low"]) == pytest.approx((expected.value, expected.population_interval[0]), rel=1e-5)
    assert expected.value > 0


def recurrent(count: int) -> list[Any]:
    return [contrib.RecurrentPPO("MlpLstmPolicy", "Pendulum-v1", seed=seed, device="cpu") for seed in range(count)]


def camera_model() -> Any:
    return sb3.A2C("CnnPolicy", Scene(CAMERA), device="cpu")


def shared_of(model: Any) -> Any:
    return ModelTeam.shared(ModelTeam(model) if isinstance(model, list) else model, 3, columns=slice(-2, None))


BAD = {
    "two that are shared": (lambda: shared_of(list(population("A2C", 2).values())), "policy"),
    "images that are shared": (lambda: shared_of(camera_model()), "policy"),
    "columns of nothing": (lambda: gs.measure(shared_of(population("A2C", 1)["m0"]), torch.zeros(5, 3)), "columns"),
    "no model": (lambda: ModelTeam({}), "policies"),
    "spaces": (lambda: ModelTeam([population("A2C", 1)["m0"], population("PPO", 1)["m0"]]), "models"),
    "callback of a memory": (lambda: DiversityCallback(recurrent(2)), "models"),
    "memory of one": (lambda: ModelTeam([*recurrent(1), population("A2C", 1)["m0"]]), "models"),
    "no sequences": (lambda: gs.measure(ModelTeam(recurrent(2)), torch.zeros(5, 3)), "observations"),
    "fewer parts": (lambda: gs.measure(scene_team(), {"camera": scenes(3)["camera"]}), "observations"),
    "no whole numbers": (lambda: gs.measure(scene_team(), {**scenes(3), "camera": scenes(3)["camera"] / 255}), None),
}


def scene_team() -> Any:
    return ModelTeam([sb3.A2C("MultiInputPolicy", Scene(scene()), seed=seed, device="cpu") for seed in range(2)])


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    use, name = BAD[case]
    with pytest.raises(InputError) as error:
        use()
    assert error.value.name == (name or "observations['camera']")
