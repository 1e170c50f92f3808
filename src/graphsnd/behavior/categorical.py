"""Categorical behaviours: discrete actions, masked ones included."""

from __future__ import annotations

from typing import Any

import torch

from graphsnd.behavior.behavior import Behavior, PerAgent, broadcast, names_of, read_agents, stack_agents
from graphsnd.behavior.distances import Distance, Hellinger, JensenShannon, TotalVariation
from graphsnd.behavior.points import Norm, Points, flatten, widen
from graphsnd.errors import InputError, check_finite, check_tensor, shape_of

# How far a row of probabilities may be from 1 before it is not one: the rounding of a softmax in that dtype.
_SUM_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class Categorical(Behavior):
    """Policies over a finite set of actions, all on the same observations, by exactly one of ``probs`` and ``logits``.

    Args:
        probs: Probabilities, shape ``[..., agents, actions]``; each row sums to 1. Or a dict of one array
            ``[..., actions]`` per agent; so may be the others.
        logits: Unnormalised log-probabilities of the same shape; ``-inf`` marks an impossible action.
        mask: True where an action is allowed, broadcastable to ``logits``. Only with ``logits``.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> b = Categorical(logits=torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]))
        >>> b.probs.sum(-1)
        tensor([[1., 1.]])
    """

    distances = (TotalVariation, Hellinger, JensenShannon)
    distance = TotalVariation()

    def __init__(
        self,
        probs: PerAgent | None = None,
        logits: PerAgent | None = None,
        mask: PerAgent | None = None,
        *,
        validate: bool = True,
    ) -> None:
        if (probs is None) == (logits is None):
            both = "both" if probs is not None else "neither"
            raise InputError("probs", "or `logits`, exactly one of the two", both)
        if probs is not None and mask is not None:
            raise InputError("mask", "only together with `logits`", "probs and mask", "Mask before the softmax.")
        self.probs = _softmax(logits, mask, validate) if probs is None else _checked_probs(probs, validate)
        super().__init__(self.probs.shape, logits if probs is None else probs)

    def embed(self, distance: Distance) -> Points:
        """Return the probabilities under half the L1 norm or their own pair function, or for Hellinger their roots.

        Roots are kept in float64: rounded to float32, those of two nearly equal policies differ by chance.
        """
        probs = flatten(self.probs)
        if isinstance(distance, Hellinger):
            return Points(_HalfRoot.apply(probs), Norm.EUCLIDEAN, probs.dtype)
        return Points(probs, Norm.SQRT_JS if isinstance(distance, JensenShannon) else Norm.HALF_L1)


class _HalfRoot(torch.autograd.Function):
    """sqrt(p / 2) in float64, in two passes over memory, with the derivative 0 at p = 0.

    There sqrt has none; but that is where a masked action sits for every agent, and it counts as constant.
    """

    @staticmethod
    def forward(ctx: Any, probs: torch.Tensor) -> torch.Tensor:
        roots = torch.empty(probs.shape, dtype=torch.float64, device=probs.device)
        roots = torch.mul(probs, 0.5, out=roots).sqrt_()
        ctx.save_for_backward(roots)
        return roots

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (roots,) = ctx.saved_tensors  # autograd casts to the dtype of the probabilities
        return torch.where(roots > 0, grad / (4 * torch.where(roots > 0, roots, 1)), 0)


def _checked_probs(given: PerAgent, validate: bool) -> torch.Tensor:
    """Return probabilities that sum to 1, at least float32: in half precision total variation could exceed 1."""
    probs = read_agents("probs", given, "(..., agents, actions)", finite=validate)
    wide, off = widen(probs), 0.0
    if validate:
        values = probs.detach()
        if bool((values < 0).any()):
            raise InputError("probs", "to be non-negative", f"a minimum of {float(values.min()):g}", "Pass `logits=`?")
        off = float((values.double().sum(-1) - 1).abs().max())
        if off > _SUM_TOLERANCE[probs.dtype]:
            raise InputError("probs", "to sum to 1 over actions", f"a row off by {off:.3g}", "Pass `logits=`?")
    # Beyond the rounding of a softmax, so that its bits stay: half precision, and what people rounded themselves.
    rounded = wide is not probs or off > 64 * torch.finfo(probs.dtype).eps
    return wide / wide.sum(-1, keepdim=True) if rounded else probs


def _softmax(given: PerAgent | None, mask: PerAgent | None, validate: bool) -> torch.Tensor:
    logits = read_agents("logits", given, "(..., agents, actions)")
    if mask is not None:
        rows = check_tensor("mask", stack_agents("mask", mask, names_of(given)), 0, "(..., agents, actions)")
        allowed = broadcast("mask", rows.to(logits.device, torch.bool), logits.shape, f"logits' {shape_of(logits)}")
        logits = logits.masked_fill(~allowed, -torch.inf)
    if validate:
        values = logits.detach()
        if bool((torch.isnan(values) | (values == torch.inf)).any()):
            check_finite("logits", values.masked_fill(values == -torch.inf, 0), names_of(given))
        if bool((values == -torch.inf).all(dim=-1).any()):
            raise InputError("mask", "to allow at least one action for every agent and observation", "an empty row")
    # Half precision probabilities would not sum to 1 well enough to compare; the softmax is cheap in float32.
    return torch.softmax(widen(logits), dim=-1)
