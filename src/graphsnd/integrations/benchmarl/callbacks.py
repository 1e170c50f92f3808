"""Callbacks: the log of an experiment with controlled diversity, and the loss that keeps actions in their range."""

from __future__ import annotations

import math
from typing import Any

import torch
from benchmarl.experiment import Callback
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.model import COUNTED, DiCoModel


class _Callback(Callback):  # type: ignore[misc]
    """Base of both callbacks: it looks up the models, and is pickled without the experiment."""

    def models(self) -> dict[str, DiCoModel]:
        """Return the models by group of agents."""
        modules = ((group, m) for group, policy in self.experiment.group_policies.items() for m in policy.modules())
        return {group: module for group, module in modules if isinstance(module, DiCoModel)}

    def on_setup(self) -> None:
        """Refuse set-ups that would make the numbers wrong."""
        if self.experiment.config.collect_with_grad:
            fix = "Set it to False: a rollout with gradients looks like a training forward and would move the estimate."
            raise InputError("collect_with_grad", "to be False", True, fix)
        if not self.models():
            raise InputError("model_config", "to be a DiCoModelConfig", type(self.experiment.model_config).__name__)

    def __getstate__(self) -> dict[str, Any]:
        # BenchMARL pickles callbacks into config.pkl, to restore them when a checkpoint is reloaded.
        return {**self.__dict__, "experiment": None}


class DiversityLog(_Callback):
    """Log diversity through the experiment's loggers, once per iteration.

    Under ``diversity/<group>/``: ``audit`` (SND over all pairs of the scaled policies on the batch just collected,
    before training: the test of the control), ``estimate`` (of the unscaled deviations, after training), ``scale``
    (mean over training forwards), ``applied`` (their product, which equals the target for any constant estimate, right
    or wrong), ``forwards``, and the share of them that were ``saturated`` (the bounds clipped the scale), ``empty`` (a
    draw without pairs, so that all were measured) and ``invalid`` (not finite, left out). Means over groups of a
    controller that has any; without estimates where nothing is measured.

    Args:
        most: Frames of the batch that the audit uses.

    Attributes:
        rows: The same numbers, one dictionary for each iteration and group.
    """

    def __init__(self, *, most: int = 4096) -> None:
        super().__init__()
        self.most = most
        self.rows: list[dict[str, Any]] = []
        self._audits: dict[str, float] = {}

    def on_batch_collected(self, batch: TensorDictBase) -> None:
        """Audit the policies that collected it, and restart the tally."""
        for group, model in self.models().items():
            self._audits[group] = float(model.audit(model.gather(batch), most=self.most))
            model.tally.zero_()

    def on_train_end(self, training_td: TensorDictBase, group: str) -> None:
        """Log the iteration of one group."""
        if model := self.models().get(group):
            numbers, step = {"audit": self._audits[group], **_summarise(model)}, self.experiment.n_iters_performed
            self.rows.append({"iteration": step, "group": group, **numbers})
            self.experiment.logger.log({f"diversity/{group}/{key}": v for key, v in numbers.items()}, step=step)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "rows": [], "_audits": {}}


def _summarise(model: DiCoModel) -> dict[str, float]:
    tally = dict(zip(COUNTED, model.tally.tolist(), strict=True))
    forwards = tally.pop("forwards")
    if not forwards:
        return {"scale": float(model.scale.mean()), "forwards": 0.0}
    means = {name: total / forwards for name, total in tally.items()} | {"forwards": forwards}
    estimate = float(model.estimate.mean())
    return means if math.isnan(estimate) else {"estimate": estimate, "applied": estimate * means["scale"], **means}


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
    """

    def __init__(self, *, lr: float = 3e-5) -> None:
        super().__init__()
        self.lr = lr
        self._optimizers: dict[str, torch.optim.Adam] = {}

    def on_setup(self) -> None:
        """Create the optimisers."""
        super().on_setup()
        for group, model in self.models().items():
            if model.discrete:
                raise InputError("task", "with continuous actions for ActionSpaceLoss", f"{group!r} with discrete ones")
            self._optimizers[group] = torch.optim.Adam(model.parameters(), lr=self.lr)

    def on_train_step(self, batch: TensorDictBase, group: str) -> TensorDictBase | None:
        """Take one step; the loss goes to ``train/<group>/loss_action_space``."""
        if (model := self.models().get(group)) is None:
            return None
        loss = action_overflow(model, model.gather(batch))
        self._step(loss, self._optimizers[group])
        return TensorDict({"loss_action_space": loss.detach()}, [])

    def on_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Add the optimisers to the checkpoint."""
        state_dict["action_space_loss"] = {group: each.state_dict() for group, each in self._optimizers.items()}

    def on_load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the optimisers, where the checkpoint has them."""
        for group, state in state_dict.get("action_space_loss", {}).items():
            self._optimizers[group].load_state_dict(state)

    def _step(self, loss: Tensor, optimizer: torch.optim.Adam) -> None:
        loss.backward()
        config = self.experiment.config
        if config.clip_grad_val is not None:
            clip = torch.nn.utils.clip_grad_norm_ if config.clip_grad_norm else torch.nn.utils.clip_grad_value_
            clip(optimizer.param_groups[0]["params"], config.clip_grad_val)
        optimizer.step()
        optimizer.zero_grad()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_optimizers": {}}


def action_overflow(model: DiCoModel, observations: Tensor) -> Tensor:
    """Return the mean over frames of the largest squared distance of an agent's ``loc`` from the range of actions."""
    space = model.action_spec[model.agent_group, "action"].space
    loc = model.network(observations, model.scale)[..., : model.network.controlled]
    inside = loc.detach().clamp(space.low.to(loc), space.high.to(loc))
    return (loc - inside).square().sum(-1).amax(-1).mean()
