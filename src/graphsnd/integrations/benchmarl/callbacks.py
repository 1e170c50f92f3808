"""Callbacks: the diversity of any experiment, what controllers did, and the loss that keeps actions in their range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch
from benchmarl.experiment import Callback
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import embed
from graphsnd.control.measurement import measure_points
from graphsnd.designs import Design, parse
from graphsnd.errors import EmptyDrawError, InputError, check_integer
from graphsnd.estimation import Estimate, measure
from graphsnd.estimation.estimate import Interval
from graphsnd.graphs import Graph
from graphsnd.integrations.benchmarl.evaluation import evaluate_group, has_memory, sample_frames
from graphsnd.integrations.benchmarl.model import COUNTED, DiCoModel
from graphsnd.metric import contributions

SND = "snd_of_actions"  # after a tanh: not what a controller holds at its target, which is the audit


class _Callback(Callback):  # type: ignore[misc]
    """Base of all callbacks: it looks up the models, and is pickled without the experiment."""

    def models(self) -> dict[str, DiCoModel]:
        """Return the controlled models by group of agents."""
        modules = ((group, m) for group, policy in self.experiment.group_policies.items() for m in policy.modules())
        return {group: module for group, module in modules if isinstance(module, DiCoModel)}

    def check_control(self) -> None:
        """Refuse set-ups without control, or with one whose numbers would be wrong."""
        if self.experiment.config.collect_with_grad:
            fix = "Set it to False: a rollout with gradients looks like a training forward and would move the estimate."
            raise InputError("collect_with_grad", "to be False", True, fix)
        if not self.models():
            raise InputError("model_config", "to be a DiCoModelConfig", type(self.experiment.model_config).__name__)

    def __getstate__(self) -> dict[str, Any]:
        # BenchMARL pickles callbacks into config.pkl, to restore them when a checkpoint is reloaded.
        return {**self.__dict__, "experiment": None}


class DiversityCallback(_Callback):
    """Log the diversity of every group of agents, in any BenchMARL experiment.

    All agents of a group are put on the same observations, those of all agents in the batch just collected
    (:func:`~graphsnd.integrations.benchmarl.evaluation.evaluate_group`), with the policies that collected it, without
    exploration. Under ``diversity/<group>/``: ``snd_of_actions``, over all pairs; ``snd_of_actions_low`` and
    ``snd_of_actions_high``, its 95% interval over observations, by environments, or episodes of the only one;
    ``contribution_<agent>``, the agent's mean distance to the others; and ``seconds``. With a ``design`` also
    ``graph_snd_of_actions``, with ``graph_snd_of_actions_low`` and ``graph_snd_of_actions_high``, the interval for what
    the design leaves out. Where several groups have pairs, ``diversity/total/snd_of_actions`` is the mean over the
    pairs within groups. Stochastic policies are compared by 2-Wasserstein distance (continuous) or total variation
    (discrete), deterministic ones by the distance of their actions. Q-learners are compared by their greedy actions:
    the share of observations on which two agents choose differently.

    A group of one agent, and agents that share all parameters, have SND 0. Where a policy cannot be evaluated like
    this, a warning says so once, and training goes on.

    Args:
        every: Iterations from one measurement to the next.
        design: Which pairs to measure besides all of them: a design, a graph, or text such as ``"bernoulli:0.1"``.
        observations: Largest number of observations to measure on; recurrent policies see at least one whole sequence.
        positions: Number of features, the first of an observation, that are the agent's position; for ``knn:3`` and
            ``radius:0.5``, whose pairs are then those of each frame.
        distance: The family's default when None.
        squashed: Whether actions are compared after the final tanh, as environments receive them, or before it.

    Attributes:
        rows: The same numbers, one dictionary for each iteration and group.

    Raises:
        InputError: For a design that needs positions, without them.

    Example:
        >>> callback = DiversityCallback(design="bernoulli:0.1", every=10)  # Experiment(..., callbacks=[callback])
        >>> str(callback.design), callback.rows  # a dictionary for each iteration and group after experiment.run()
        ('bernoulli:0.1', [])
    """

    def __init__(
        self,
        *,
        every: int = 1,
        design: Design | Graph | str | None = None,
        observations: int = 2048,
        positions: int | None = None,
        distance: Distance | None = None,
        squashed: bool = True,
    ) -> None:
        super().__init__()
        self.every = check_integer("every", every, "to be at least 1", low=1)
        self.observations = check_integer("observations", observations, "to be at least 1", low=1)
        self.design = parse(design) if isinstance(design, str) else design
        if isinstance(self.design, Design) and self.design.needs_positions and positions is None:
            fix = "Write positions=2 where the first two features of an observation are the agent's position."
            raise InputError("positions", f"to be given for {self.design}", None, fix)
        self.positions, self.distance, self.squashed = positions, distance, squashed
        self._rows: dict[tuple[int, str], dict[str, Any]] = {}
        self._refused: set[str] = set()
        self._estimates: dict[str, Estimate] = {}  # of groups with pairs, at this iteration

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The numbers so far."""
        return list(self._rows.values())

    def on_batch_collected(self, batch: TensorDictBase) -> None:
        """Measure the policies that collected it."""
        if self.experiment.n_iters_performed % self.every:
            return
        self._estimates.clear()
        for group, names in self.experiment.group_map.items():
            if group in self._refused:
                continue
            try:
                self.record(group, self.measure(batch, group, names))
            except InputError as error:
                self._refuse(group, f"The diversity of {group!r} is not measured: {error}")
        estimates = self._estimates.values()
        if len(estimates) > 1 and len({each.distance for each in estimates}) == 1:  # others have other units
            pairs = [each.pairs_total for each in estimates]
            terms = [count * each.value for count, each in zip(pairs, estimates, strict=True)]
            self.record("total", {SND: math.fsum(terms) / sum(pairs)})

    def measure(self, batch: TensorDictBase, group: str, names: Sequence[str]) -> dict[str, float]:
        """Return the numbers of one group on a batch."""
        began = perf_counter()
        numbers = {SND: 0.0, **_ends(SND, (0.0, 0.0))}
        if len(names) > 1:
            policy = self.experiment.algorithm.get_policy_for_loss(group)
            most = max(1, self.observations // len(names))
            frames, groups = sample_frames(batch, most, sequences=has_memory(policy))
            behavior = evaluate_group(policy, frames, group, squashed=self.squashed).with_names(names)
            clusters = None if groups is None else groups.expand(behavior.batch_shape)
            estimate = measure(behavior, distance=self.distance, clusters=clusters)
            self._estimates[group] = estimate
            numbers = {SND: estimate.value, **_ends(SND, estimate.population_interval)}
            each = contributions(behavior, self.distance).tolist()
            numbers |= {f"contribution_{name}": value for name, value in zip(names, each, strict=True)}
            if self.design is not None and f"{group}/graph_{SND}" not in self._refused:
                try:
                    numbers |= self._measure_design(behavior, estimate, frames.get(policy.in_keys[0]))
                except InputError as error:  # a graph of another group, for example: SND is there all the same
                    self._refuse(f"{group}/graph_{SND}", f"The Graph-SND of {group!r} is not measured: {error}")
        return {**numbers, "seconds": perf_counter() - began}

    def _measure_design(self, behavior: Behavior, all_pairs: Estimate, seen: Tensor) -> dict[str, float]:
        generator = torch.Generator().manual_seed(self.experiment.n_iters_performed)
        if isinstance(self.design, Design) and self.design.needs_positions:
            points = embed(behavior, self.distance)
            places = seen[..., : self.positions].expand(behavior.agents, *seen.shape[:-1], -1).flatten(0, -3)
            measured = measure_points(self.design, points.values, generator, positions=places, norm=points.norm)
            return {f"graph_{SND}": float(measured.value)}
        try:
            estimate = measure(behavior, design=self.design, distance=self.distance, seed=generator)
        except EmptyDrawError:  # the rule of controllers: all pairs instead
            estimate = all_pairs
        return {f"graph_{SND}": estimate.value, **_ends(f"graph_{SND}", estimate.interval)}

    def _refuse(self, what: str, message: str) -> None:
        self._refused.add(what)
        warnings.warn(message, stacklevel=1)

    def record(self, group: str, numbers: dict[str, float]) -> None:
        """Log numbers of this iteration."""
        step = self.experiment.n_iters_performed
        self._rows.setdefault((step, group), {"iteration": step, "group": group}).update(numbers)
        self.experiment.logger.log({f"diversity/{group}/{key}": value for key, value in numbers.items()}, step=step)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rows": {}, "_refused": set(), "_estimates": {}}


def _ends(name: str, interval: Interval | None) -> dict[str, float]:
    return {} if interval is None else {f"{name}_low": interval[0], f"{name}_high": interval[1]}


class DiversityLog(DiversityCallback):
    """Log what :class:`DiversityCallback` does, and what the controller did.

    Added under ``diversity/<group>/``: ``audit`` (SND over all pairs of the scaled policies on the batch just
    collected, before training, in the quantity that is controlled: compare this one with the target, not
    ``snd_of_actions``, which is measured after a tanh), ``estimate`` (of the unscaled deviations, after training),
    ``scale`` (mean over training forwards), ``applied`` (their product, which equals the target for any constant
    estimate, right or wrong), ``forwards``, and the share of them that were ``saturated`` (the bounds clipped the
    scale), ``empty`` (a draw without pairs, so that all were measured) and ``invalid`` (not finite, left out). There is
    no estimate where nothing is measured. The controller's numbers are logged in every iteration.

    Args:
        most: Frames of the batch that the audit uses.
        **options: Options of :class:`DiversityCallback`.

    Example:
        >>> log = DiversityLog(every=10)  # Experiment(model_config=DiCoModelConfig(0.1), callbacks=[log], ...)
        >>> log.every, log.most
        (10, 4096)
    """

    def __init__(self, *, most: int = 4096, **options: Any) -> None:
        super().__init__(**options)
        self.most = most

    def on_setup(self) -> None:
        """Refuse set-ups that would make the numbers wrong."""
        self.check_control()

    def on_batch_collected(self, batch: TensorDictBase) -> None:
        """Audit the policies that collected it, and restart the tally."""
        super().on_batch_collected(batch)
        for group, model in self.models().items():
            self.record(group, {"audit": float(model.audit(model.gather(batch), most=self.most))})
            model.tally.zero_()

    def on_train_end(self, training_td: TensorDictBase, group: str) -> None:
        """Log what the controller did in this iteration."""
        if model := self.models().get(group):
            self.record(group, _summarise(model))


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

    The final tanh hides what lies beyond the range, so diversity there never reaches the environment. The loss is
    computed with the scale as it stands after the training forward; the reference measures again for it, at the price
    of a second measurement for a change of ``tau`` times the drift of one step.

    Args:
        lr: Learning rate of its own Adam.

    Raises:
        InputError: At setup, for discrete actions, which have no range.

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
        self.check_control()
        for group, model in self.models().items():
            if model.discrete:
                raise InputError("task", "with continuous actions for ActionSpaceLoss", f"{group!r} with discrete ones")
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
