"""Policies with a hidden state, rolled along sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, check_shape, shape_of
from graphsnd.teams.answers import combine, read_single


@checked
class Unroll:
    """A policy for sequences, made of one that takes a step: use with ``graphsnd.evaluate(..., whole=True)``.

    Args:
        step: Maps observations ``[..., features]`` and a state to ``(answer, state)``, an answer being as in
            :func:`~graphsnd.evaluate`.
        state: Before the first step.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Example:
        >>> import torch, graphsnd as gs
        >>> policies = [Unroll(lambda o, h, a=a: (o + a * h, o + a * h), 0.0) for a in (0.1, 0.9)]
        >>> gs.evaluate(policies, torch.ones(50, 8, 2), whole=True)
        Deterministic(agents=2, observations=400)
    """

    def __init__(
        self, step: Callable[[Tensor, Any], tuple[Any, Any]], state: Any = None, *, squashed: bool = True
    ) -> None:
        self.step, self.state, self.squashed = step, state, squashed

    def __call__(self, sequences: Tensor) -> Behavior:
        """Return the answers to ``[time, batch, features]``, one step after another."""
        check_shape("sequences", sequences, ("time", "batch", "features"))
        if not len(sequences):
            raise InputError("sequences", "to hold at least one step", shape_of(sequences))
        state, answers = self.state, []
        for observations in sequences:
            answer, state = self.step(observations, state)
            answers.append(read_single(answer, observations.shape[:-1], squashed=self.squashed))
        return combine(answers, lambda steps, _: torch.stack(steps), validate=True)
