"""Callbacks that log diversity and controllers in any experiment, and a loss that keeps actions in their range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from benchmarl.experiment import Callback
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.evaluation import evaluate_group, has_memory, sample_frames
from graphsnd.integrations.benchmarl.model import COUNTED, DiCoModel
from graphsnd.integrations.probe import Probe

SND = "snd_of_actions"  # after a tanh: not what a controller holds at its target, which is the audit


class _Callback(Callback):  # type: ignore[misc]
    """Base of both callbacks: it looks up the controlled models, and is pickled without the experiment."""

    def on_setup(self) -> None:
        """Refuse a set-up in which the controller's numbers would be wrong."""
        if self.models() and self.experiment.config.collect_with_grad:
            fix = "Set it to False: a rollout with gradients looks like a training forward and would move the estimate."
            raise InputError("collect_with_grad", "to be False", True, fix)

    def models(self) -> dict[str, DiCoModel]:
        """Return the controlled models by group of agents."""
        modules = ((group, m) for group, policy in self.experiment.group_policies.items() for m in policy.modules())
        return {group: module for group, module in modules if isinstance(module, DiCoModel)}

    def __getstate__(self) -> dict[str, Any]:
        # BenchMARL pickles callbacks into config.pkl, to restore them when a checkpoint is reloaded.
        return {**self.__dict__, "experiment": None}


class DiversityCallback(_Callback):
    """Log the diversity of every group of agents, in any BenchMARL experiment, and what controllers did.

    All agents of a group answer the same observations, those of all agents in the batch just collected
    (:func:`~graphsnd.integrations.benchmarl.evaluation.evaluate_group`), by the policies that collected it, without
    exploration. Logged under ``diversity/<group>/`` are ``snd_of_actions`` and its 95% interval over observations,
    ``snd_of_actions_low`` and ``snd_of_actions_high``, clustered by environment, or by episode if there is one
    environment. If several groups have pairs, ``diversity/total/snd_of_actions`` is the mean over the pairs within
    groups. Stochastic policies are compared by 2-Wasserstein distance (continuous) or total variation (discrete),
    deterministic ones by the distance of their actions. Q-learners are compared by their greedy actions: the share of
    observations on which two agents choose differently.

    A group of one agent has SND 0. So have agents that share all parameters, unless ``columns`` says where they read
    their identity. If a policy cannot be evaluated like this, a warning says so once, and training continues.

    For a group with a ``DiCoModel`` it also logs, in every iteration:

    - ``audit``: SND over all pairs of the scaled policies on the batch just collected, before training, in the quantity
      that is controlled. Compare it with the target, not ``snd_of_actions``, which is measured after a tanh.
    - ``reward``: mean over the batch.
    - ``estimate``: smoothed diversity of the unscaled deviations, after training; absent if nothing is measured.
    - ``scale``: mean over training forwards.
    - ``applied``: their product, which equals the target for any constant estimate, right or wrong.
    - ``forwards``: number of training forwards.
    - ``saturated``, ``empty``, ``invalid``: share of them in which the bounds clipped the scale, in which a draw had no
      pairs, so that all were measured, and in which the measurement was not finite, and was ignored.
    - ``level``, ``clear``: for a model that seeks its level, which sees the mean reward of every batch here. The level
      at which the batch was collected, and 1 if rewards differ between levels by more than noise.

    Args:
        every: Iterations from one measurement to the next.
        observations: Largest number of observations to measure on; recurrent policies see at least one whole sequence.
        positions: Number of features at the start of an observation that are the agent's position; for ``knn:3`` and
            ``radius:0.5``, which then choose the pairs of each frame.
        squashed: Whether actions are compared after the final tanh, as environments receive them, or before it.
        columns: Features in which observations tell a shared network for which agent it acts, ``slice(-3, None)``; see
            :func:`~graphsnd.integrations.benchmarl.evaluation.evaluate_group`.
        **options: Options of :func:`graphsnd.measure`: ``design``, ``distance``, ``rel_tol`` and so on. If a design
            defines the measure, as ``knn:3`` does, the number is called ``graph_snd_of_actions``.

    Example:
        >>> callback = DiversityCallback(design="bernoulli:0.1", every=10)  # Experiment(..., callbacks=[callback])
        >>> callback.rows  # a dictionary for each iteration and group after experiment.run()
        []
    """

    def __init__(
        self,
        *,
        every: int = 1,
        observations: int = 2048,
        positions: int | None = None,
        squashed: bool = True,
        columns: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.probe = Probe(every, observations, **options)
        self.positions = positions
        self.reading = {"squashed": squashed, "columns": columns}
        self._refused: set[str] = set()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The logged numbers, a dictionary for each iteration and group, with ``step`` and ``group``."""
        return self.probe.rows

    def on_batch_collected(self, batch: TensorDictBase) -> None:
        """Measure the policies that collected the batch, audit the controlled ones, and reset their tallies."""
        if self.probe.due(self.experiment.n_iters_performed):
            groups = self.experiment.group_map.items()
            self._log_total([self._log_group(batch, group, names) for group, names in groups])
        for group, model in self.models().items():
            audit = float(model.audit(model.gather(batch)))  # before the level may move
            reward = batch.get(("next", group, "reward"), None)
            reward = (batch.get(("next", "reward")) if reward is None else reward).mean()  # which all groups may share
            self._log(group, {"audit": audit, "reward": float(reward), **model.observe(reward)})
            model.tally.zero_()

    def on_train_end(self, training_td: TensorDictBase, group: str) -> None:
        """Log what the controller did in this iteration."""
        if model := self.models().get(group):
            self._log(group, _summarise(model))

    def _log_group(self, batch: TensorDictBase, group: str, names: Sequence[str]) -> tuple[int, float, str]:
        """Log the numbers of one group; return its number of pairs, their mean distance and the kind of behaviour."""
        kind, numbers = "", dict.fromkeys(("snd", "snd_low", "snd_high"), 0.0)
        if group in self._refused:
            return 0, 0.0, kind
        if len(names) > 1:
            policy, most = self.experiment.algorithm.get_policy_for_loss(group), self.probe.observations // len(names)
            frames, clusters = sample_frames(batch, max(1, most), sequences=has_memory(policy))
            try:
                behavior = evaluate_group(policy, frames, group, **self.reading).with_names(names)
                given = {"clusters": clusters.expand(behavior.batch_shape)}
                if self.positions is not None:
                    places = frames.get(policy.in_keys[0])[..., : self.positions]
                    given["positions"] = places.expand(*behavior.batch_shape, len(names), -1)
                numbers = self.probe.measure(self.experiment.n_iters_performed, behavior, **given)
            except InputError as error:
                self._refused.add(group)
                warnings.warn(f"The diversity of {group!r} is not measured: {error}", stacklevel=1)
                return 0, 0.0, kind
            kind = type(behavior).__name__
        self._log(group, {name.replace("snd", SND): value for name, value in numbers.items()})
        return math.comb(len(names), 2) * ("snd" in numbers), numbers.get("snd", 0.0), kind

    def _log_total(self, groups: list[tuple[int, float, str]]) -> None:
        groups = [each for each in groups if each[0]]
        if len(groups) > 1 and len({kind for *_, kind in groups}) == 1:  # others have other units
            total = math.fsum(pairs * value for pairs, value, _ in groups) / sum(pairs for pairs, *_ in groups)
            self._log("total", {SND: total})

    def _log(self, group: str, numbers: dict[str, float]) -> None:
        step = self.experiment.n_iters_performed
        self.probe.record(step, numbers, group=group)
        self.experiment.logger.log({f"diversity/{group}/{key}": value for key, value in numbers.items()}, step=step)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_refused": set()}


def _summarise(model: DiCoModel) -> dict[str, float]:
    tally = dict(zip(COUNTED, model.tally.tolist(), strict=True))
    forwards = tally.pop("forwards")
    if not forwards:
        return {"scale": float(model.scale), "forwards": 0.0}
    means = {name: total / forwards for name, total in tally.items()} | {"forwards": forwards}
    estimate = float(model.estimate)
    applied = estimate * means["scale"]
    return means if math.isnan(estimate) else {"estimate": estimate, "applied": applied, **means}


class ActionSpaceLoss(_Callback):
    r"""After every training step, take another one that keeps ``loc`` in the range of actions.

    .. math:: L = \frac1B \sum_{b} \max_i \lVert \mathrm{loc}_{b,i} - \mathrm{clamp}(\mathrm{loc}_{b,i}) \rVert^2

    The final tanh hides what lies beyond the range, so diversity there never reaches the environment. The loss uses the
    scale of the training forward. The reference code measures again for it, which changes the estimate by ``tau`` times
    the drift of one step.

    Only for continuous actions: discrete ones have no range.

    Args:
        lr: Learning rate of the Adam of this loss.

    Example:
        >>> loss = ActionSpaceLoss(lr=1e-4)  # Experiment(model_config=DiCoModelConfig(0.1), callbacks=[loss], ...)
        >>> loss.lr
        0.0001
    """

    def __init__(self, *, lr: float = 3e-5) -> None:
        super().__init__()
        self.lr = lr
        self._optimizers: dict[str, torch.optim.Adam] = {}

    def on_setup(self) -> None:
        """Create the optimisers."""
        super().on_setup()
        if not self.models():
            raise InputError("model_config", "to be a DiCoModelConfig", type(self.experiment.model_config).__name__)
        for group, model in self.models().items():
            self._optimizers[group] = torch.optim.Adam(model.parameters(), lr=self.lr)

    def on_train_step(self, batch: TensorDictBase, group: str) -> TensorDictBase | None:
        """Take one step; the loss goes to ``train/<group>/loss_action_space``."""
        if (model := self.models().get(group)) is None:
            return None
        loss = action_overflow(model, model.gather(batch))
        loss.backward()
        config, optimizer = self.experiment.config, self._optimizers[group]
        if config.clip_grad_val is not None:
            clip = torch.nn.utils.clip_grad_norm_ if config.clip_grad_norm else torch.nn.utils.clip_grad_value_
            clip(optimizer.param_groups[0]["params"], config.clip_grad_val)
        optimizer.step()
        optimizer.zero_grad()
        return TensorDict({"loss_action_space": loss.detach()}, [])

    def on_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Add the optimisers to the checkpoint."""
        state_dict["action_space_loss"] = {group: each.state_dict() for group, each in self._optimizers.items()}

    def on_load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the optimisers, where the checkpoint has them."""
        for group, state in state_dict.get("action_space_loss", {}).items():
            self._optimizers[group].load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_optimizers": {}}


def action_overflow(model: DiCoModel, observations: Tensor) -> Tensor:
    """Return the mean over frames of the largest squared distance of an agent's ``loc`` from the range of actions."""
    space = model.action_spec[model.agent_group, "action"].space
    loc = model.network(observations, model.scale)[..., : model.network.controlled]
    inside = loc.detach().clamp(space.low.to(loc), space.high.to(loc))
    return (loc - inside).square().sum(-1).amax(-1).mean()
