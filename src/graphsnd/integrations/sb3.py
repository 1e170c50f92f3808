"""Models of Stable-Baselines3 as a team, and a callback that logs the diversity of a population.

Needs ``stable-baselines3``. See ``docs/stable_baselines3.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Behavior, from_distribution
from graphsnd.errors import InputError, require
from graphsnd.integrations.probe import Probe
from graphsnd.integrations.spaces import SpacesTeam, by_name, map_arrays, read_actions, split_arrays, squash
from graphsnd.teams.answers import map_tensors

__all__ = ["DiversityCallback", "ModelTeam"]

BaseCallback = require("stable_baselines3.common.callbacks", "stable-baselines3").BaseCallback
spaces = require("gymnasium.spaces", "stable-baselines3")


class ModelTeam(SpacesTeam):
    """Models of Stable-Baselines3, each of which answers for one agent of a team or one member of a population.

    PPO, A2C and SAC are compared by their distributions, as the environment receives actions: after SAC's tanh, and in
    the units of the action space. TD3 and DDPG are compared by the action without noise, DQN by the greedy action:
    total variation is the share of observations on which two models choose differently. Policies are read at every
    call, so results follow training.

    Observations are ``[..., *shape]`` of the observation space, images with channels first or last. Those of
    ``MultiInputPolicy`` are a dict of such, by the keys of its Dict space. Those of ``MaskablePPO`` are a dict of
    ``observation`` and ``action_mask``. Recurrent models of sb3-contrib take sequences ``[batch, time, *shape]``, along
    which each rolls a state of its own: ``graphsnd.measure(team, sequences)``.

    Args:
        models: Models by name, or a list; each with a ``policy``, as all of Stable-Baselines3 have.
        deterministic: Compare all by the action that they take without exploration, which algorithms of different kinds
            need.
        squashed: Whether SAC is compared after its tanh, or before it.
        normalize: Required for models with a ``VecNormalize``. True: observations are those of the environment, and
            each model normalises them by its own statistics. False: they are normalised already.

    Raises:
        InputError: For different spaces, recurrent models beside others, and a ``VecNormalize`` without ``normalize``.

    Example:
        >>> import gymnasium, torch, graphsnd as gs
        >>> from stable_baselines3 import A2C
        >>> models = [A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu") for _ in range(2)]
        >>> gs.measure(ModelTeam(models), torch.randn(16, 4)).value
        0.0
    """

    def __init__(
        self,
        models: Mapping[str, Any] | Sequence[Any],
        *,
        deterministic: bool = False,
        squashed: bool = True,
        normalize: bool | None = None,
    ) -> None:
        held = by_name(models)
        for name, model in held.items():
            if normalize is not False and _normalizer(model) and not normalize:
                fix = "True: each model normalises observations of the environment. False: they are normalised already."
                raise InputError("normalize", f"to be given, as {name!r} was trained with a VecNormalize", None, fix)
        policies = [_Policy(model, deterministic, squashed, bool(normalize)) for model in held.values()]
        recurrent = {name: hasattr(model.policy, "lstm_actor") for name, model in held.items()}
        own = {name: (policy.space, policy.actions) for name, policy in zip(held, policies, strict=True)}
        super().__init__("models", own, policies, squashed=squashed, recurrent=recurrent)


class _Policy(nn.Module):
    """Computes the behaviour of one model."""

    def __init__(self, model: Any, deterministic: bool, squashed: bool, normalize: bool) -> None:
        super().__init__()
        self.policy, self.deterministic, self.squashed = model.policy, deterministic, squashed
        self.model, self.normalize = model, normalize
        self.space, self.actions = self.policy.observation_space, self.policy.action_space
        chosen: Any = getattr(self.policy, "action_dist", None)
        self.masked = hasattr(chosen, "apply_masking")  # MaskablePPO of sb3-contrib
        if self.masked:
            choices = np.sum(getattr(chosen, "action_dims", None) or chosen.action_dim)
            self.space = spaces.Dict({"observation": self.space, "action_mask": spaces.MultiBinary(int(choices))})

    def forward(self, observations: Tensor) -> Behavior:
        shown = split_arrays(self.space, observations)
        masks = {}
        if self.masked:
            masks, shown = {"action_masks": shown["action_mask"]}, shown["observation"]
        normalizer = _normalizer(self.model) if self.normalize else None
        if normalizer:
            normal = normalizer.normalize_obs(map_arrays(lambda part: part.cpu().numpy(), shown))
            shown = map_arrays(lambda part: torch.as_tensor(part).to(observations.device), normal)
        if hasattr(self.policy, "lstm_actor"):  # of sb3-contrib, which takes sequences one after another
            batch, lstm = observations.shape[:2], self.policy.lstm_actor
            state = torch.zeros(lstm.num_layers, batch[0], lstm.hidden_size, device=observations.device)
            flat, starts = map_arrays(lambda part: part.flatten(0, 1), shown), state.new_zeros(batch.numel())
            answer = self.policy.get_distribution(flat, (state, state), starts)[0]
            behavior = self._read(answer, to_range=self.policy.squash_output)
            return map_tensors(lambda given, _: given[0].unflatten(0, batch), [behavior])
        actor: Any = getattr(self.policy, "actor", None)
        if not self.deterministic and hasattr(self.policy, "get_distribution"):
            return self._read(self.policy.get_distribution(shown, **masks), to_range=self.policy.squash_output)
        if not self.deterministic and hasattr(actor, "action_dist"):
            mean, log_std, more = actor.get_action_dist_params(shown)
            return self._read(actor.action_dist.proba_distribution(mean, log_std, **more), to_range=True)
        # In the units of the action space, and clipped to it.
        arrays = map_arrays(lambda part: part.cpu().numpy(), shown)
        action = torch.as_tensor(self.policy.predict(arrays, deterministic=True, **masks)[0])
        return read_actions(action, self.actions)

    def _read(self, distribution: Any, *, to_range: bool) -> Behavior:
        # The torch distribution, before the tanh; MaskablePPO has several under another name.
        base = getattr(distribution, "distributions", None) or distribution.distribution
        if isinstance(base, D.Bernoulli):
            base = D.Independent(base, 1)
        if to_range:
            base = squash(base, self.actions.low, self.actions.high)
        return from_distribution(base, squashed=self.squashed)


def _normalizer(model: Any) -> Any:
    """Return the ``VecNormalize`` that makes the observations of a model; None where they are the environment's."""
    normalizer = getattr(model, "get_vec_normalize_env", lambda: None)()
    return normalizer if normalizer is not None and normalizer.norm_obs else None


class DiversityCallback(BaseCallback):  # type: ignore[misc, valid-type]
    """Log the SND of a population while one of its models learns, as ``diversity/snd``.

    ``diversity/snd_low`` and ``diversity/snd_high`` are its interval over episodes, where observations allow one.

    Pass the same callback to the ``learn`` of all models. All are measured on the same observations, those in the
    buffers of all models: of the last rollout (PPO, A2C) or the replay buffer (SAC, TD3, DDPG, DQN). They are those of
    the environment, which a model with a ``VecNormalize`` normalises by its own statistics of the moment.

    Args:
        models: Models by name, or a list, at least two; or one that agents share.
        every: Steps of the model that learns from one measurement to the next.
        observations: Largest number of observations to measure on, evenly spaced in the buffers.
        shared: Arguments of :meth:`ModelTeam.shared` beside the model: ``{"agents": 3, "columns": slice(-3, None)}``.
            Each agent is an environment of the model, and those of one game lie side by side, as SuperSuit makes them.
        **options: Options of :func:`graphsnd.measure`: ``design``, ``distance``, ``rel_tol`` and so on.

    Example:
        >>> from stable_baselines3 import A2C
        >>> models = {name: A2C("MlpPolicy", "CartPole-v1", n_steps=8, seed=0, device="cpu") for name in ("a", "b")}
        >>> callback = DiversityCallback(models)
        >>> _ = models["a"].learn(8, callback=callback)
        >>> callback.rows
        [{'step': 8, 'model': 'a', 'snd': 0.0}]
    """

    def __init__(
        self, models: Any, *, every: int = 1000, observations: int = 2048, shared: Any = None, **options: Any
    ) -> None:
        super().__init__()
        each = ModelTeam(models, normalize=True)
        each.refuse_memory("models")
        self.models, self.team = by_name(models), ModelTeam.shared(each, **shared) if shared else each
        self.seats = self.team.agents if shared else 1
        self.probe = Probe(every, observations, **options)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The same numbers, a dictionary for each measurement, with ``step`` and ``model``."""
        return self.probe.rows

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        learner = next((name for name, model in self.models.items() if model is self.model), None)
        if learner is None:
            raise InputError("models", "to hold the model that learns", "a population without it")
        if self.probe.due(self.num_timesteps, learner):
            seen, episodes = _buffered(list(self.models.values()), self.probe, self.seats)
            numbers = self.probe.measure(self.num_timesteps, self.team, seen, clusters=episodes)
            self.probe.record(self.num_timesteps, numbers, model=learner)
            for name, number in numbers.items():
                self.logger.record(f"diversity/{name}", number)


def _buffered(models: Sequence[Any], probe: Probe, seats: int) -> tuple[Any, Tensor]:
    """Return a probe's choice of observations in the models' buffers as environments made them, and their episodes.

    Args:
        models: The models.
        probe: Probe that chooses the observations.
        seats: Number of consecutive environments that form one game.

    Returns:
        Observations ``[observations, ...]``, and int64 ``[observations]``.
    """
    buffers = [getattr(model, "rollout_buffer", None) or model.replay_buffer for model in models]
    ends = np.cumsum([0, *(buffer.size() * buffer.n_envs for buffer in buffers)])
    places = probe.places(ends[-1]).numpy()
    rows, episodes = [], []
    for model, buffer, low, high in zip(models, buffers, ends, ends[1:], strict=False):
        own = places[(low <= places) & (places < high)] - low  # before anything is copied: replay buffers are large
        space = model.observation_space
        shapes = {key: part.shape for key, part in space.items()} if hasattr(space, "items") else space.shape or (1,)
        # A rollout that was learnt from lies flat already.
        seen = map_arrays(lambda held, shape, own=own: held.reshape(-1, *shape)[own], buffer.observations, shapes)
        normalizer = _normalizer(model)
        # Rollouts are kept as VecNormalize made them, replay buffers as the environment did.
        if normalizer and not hasattr(model, "replay_buffer"):
            seen = normalizer.unnormalize_obs(seen)
        if hasattr(buffer, "action_masks"):
            masks = buffer.action_masks.reshape(-1, buffer.mask_dims)[own]
            seen = {"observation": seen, "action_mask": masks}
        rows.append(seen)
        # There are fewer than two numbers for each entry.
        episodes.append(_number_episodes(buffer, seats)[own] + 2 * low)
    join = partial(map_arrays, lambda *each: torch.as_tensor(np.concatenate(each)))
    return map_arrays(join, *rows), join(*episodes)  # masks lie beside observations that may be dicts themselves


def _number_episodes(buffer: Any, seats: int) -> Any:
    """Return the episode of each entry of a buffer, in the order of its observations; that of a game's first seat."""
    begins = buffer.episode_starts if hasattr(buffer, "episode_starts") else np.roll(buffer.dones, 1, axis=0)
    numbers = begins[: buffer.size()].astype(np.int64).cumsum(0) * buffer.n_envs + np.arange(buffer.n_envs)
    numbers = numbers[:, np.arange(buffer.n_envs) // seats * seats]
    # A rollout that was learnt from lies flat, one environment after the other.
    return (numbers.T if getattr(buffer, "generator_ready", False) else numbers).reshape(-1)
