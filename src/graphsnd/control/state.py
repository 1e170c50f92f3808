"""The state of a controller between two steps, and its report on one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.errors import MOST_AGENTS, InputError, check_shape


@dataclass(frozen=True, eq=False)
class State:
    """The state between two steps of a controller; all tensors of one shape, ``[]``, or ``[runs]`` for stacked runs.

    Whether anything was measured yet is a separate flag: no value of the estimate means "none".

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(torch.tensor([0.1, 0.3]))  # two runs
        >>> _, state, _ = dico.step(torch.tensor([0.2, 0.2]), dico.initial())
        >>> state.estimate, state.begun.tolist(), state.steps.tolist()
        (tensor([0.2000, 0.2000], dtype=torch.float64), [True, True], [1, 1])
    """

    estimate: Tensor  # float64, smoothed diversity; read only where begun
    begun: Tensor  # bool, whether anything was measured
    integral: Tensor  # float64, of controllers that sum their error
    steps: Tensor  # int64, measurements so far

    @classmethod
    @checked
    def start(cls, shape: Sequence[int] = (), device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement.

        Example:
            >>> State.start((3,)).begun
            tensor([False, False, False])
        """
        if any(size < 0 for size in shape) or math.prod(shape) > MOST_AGENTS:
            raise InputError("shape", f"of at most {MOST_AGENTS} numbers", tuple(shape))
        zero = torch.zeros(tuple(shape), dtype=torch.float64, device=device)
        return cls(zero, zero.bool(), zero.clone(), zero.long())

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, for a checkpoint."""
        return dict(vars(self))

    @classmethod
    @checked
    def of(cls, tensors: Mapping[str, Tensor]) -> State:
        """Return the state from what :meth:`tensors` returned.

        Raises:
            InputError: For other names, and tensors that are not all of the estimate's shape.
        """
        names = [part.name for part in dataclasses.fields(cls)]
        if sorted(tensors) != sorted(names):
            raise InputError("tensors", f"to be {', '.join(names)}", ", ".join(map(str, tensors)))
        for name in names:
            check_shape(name, tensors[name], tensors["estimate"].shape)
        return cls(**{name: tensors[name] for name in names})


@dataclass(frozen=True, eq=False)
class Status:
    """The report on one step, as tensors of the state's shape; nothing is read from the device before it is printed.

    A scale for every agent (:class:`~graphsnd.control.PerGroup`) has an axis more than the rest.

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(0.1)
        >>> status = dico.step(torch.tensor(0.2), dico.initial())[2]
        >>> round(float(status.scale), 6), bool(status.saturated), bool(status.invalid)
        (0.5, False, False)
    """

    target: Tensor | None  # what diversity should be; None for controllers without one
    measured: Tensor  # raw, of this step
    estimate: Tensor  # after smoothing
    scale: Tensor  # that the deviations are multiplied by
    saturated: Tensor  # bool: the wanted scale is outside the bounds
    zero: Tensor  # bool: no diversity was measured at all
    empty: Tensor  # bool: the draw had no pairs, all were measured instead
    invalid: Tensor  # bool: the measurement was not finite or negative and was left out
    levels: tuple[str, ...] = ()  # names of the last axis, where it is one of levels: of groups, and between them

    def describe(self) -> str:
        """Return one line of text for each run; waits for the device.

        Example:
            >>> from graphsnd.control import DiCo
            >>> dico = DiCo(0.1)
            >>> print(dico.step(torch.tensor(0.2), dico.initial())[2].describe())
            scale 0.5: measured 0.2, estimate 0.2, target 0.1
        """
        count, levels = self.measured.numel(), self.levels or ("",)
        scales = self.scale.detach().reshape(count, -1).tolist()
        parts = [part.detach().reshape(-1).tolist() for part in (self.measured, self.estimate)]
        targets = None if self.target is None else self.target.reshape(-1).tolist()
        lines = []
        for run, (measured, estimate) in enumerate(zip(*parts, strict=True)):
            scale = ", ".join(f"{one:.4g}" for one in scales[run])
            wanted = "no target" if targets is None else f"target {targets[run]:.4g}"
            notes = "".join(f"; {note}" for note in self._notes(run))
            name = f"{levels[run % len(levels)]}: " if self.levels else ""
            lines.append(f"{name}scale {scale}: measured {measured:.4g}, estimate {estimate:.4g}, {wanted}{notes}")
        return "\n".join(lines)

    def check_reached(self) -> None:
        """Raise where a target is out of reach; the message says which level gave way. Waits for the device.

        Raises:
            InputError: Where any part of the status is saturated.
        """
        if bool(self.saturated.any()):
            lines = [line for line in self.describe().splitlines() if "saturated" in line]
            fix = "Widen the bounds of the scale, or choose levels that the team can have together."
            raise InputError("target", "that is within reach", "; ".join(lines), fix)

    def _notes(self, run: int) -> list[str]:
        flags = {
            "saturated: the target is out of reach within the bounds": self.saturated,
            "zero: all agents behave alike": self.zero,
            "empty draw: all pairs were measured instead": self.empty,
            "invalid: not finite or negative, left out": self.invalid,
        }
        return [note for note, flag in flags.items() if bool(flag.reshape(-1)[run])]
