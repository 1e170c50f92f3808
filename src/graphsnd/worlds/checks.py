"""What every world asks of its options and of the tensors it is given."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_integer, number, shape_of
from graphsnd.graphs.draws import source


def check_counts(agents: Any, environments: Any, horizon: Any) -> None:
    """Raise unless there is an agent, an environment, and a horizon of at least a step or None."""
    check_integer("agents", agents, "to be an integer, at least 1", low=1)
    check_integer("environments", environments, "to be an integer, at least 1", low=1)
    if horizon is not None:
        check_integer("horizon", horizon, "to be an integer, at least 1, or None for no limit", low=1)


def check_length(name: str, value: Any, *, zero: bool = False) -> None:
    """Raise unless ``value`` is a finite length above 0, or from 0 with ``zero``."""
    length = number(value)
    if not (0 <= length < math.inf) or (length == 0 and not zero):
        raise InputError(name, f"to be a finite number {'from' if zero else 'above'} 0", repr(value))


def check_moves(actions: Tensor, shape: tuple[int, ...], *, integers: bool = False) -> None:
    """Raise unless ``actions`` has the shape that the state asks for. Reads no value of the tensor."""
    symbolic = "(environments, agents)" if integers else "(environments, agents, 2)"
    if not isinstance(actions, Tensor):
        raise InputError("actions", f"to be a torch.Tensor with shape {symbolic}", type(actions).__name__)
    if tuple(actions.shape) != shape:
        raise InputError("actions", f"with shape {symbolic} = {shape}", shape_of(actions))
    if integers and (actions.is_floating_point() or actions.dtype == torch.bool):
        raise InputError("actions", "to have an integer dtype", actions.dtype, "Actions are numbered from 0.")


def uniform(generator: torch.Generator | int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Draws from [-1, 1), made where the generator lives and kept on ``device``."""
    drawn_from, _ = source(generator, None)
    return torch.rand(shape, generator=drawn_from, device=drawn_from.device).mul_(2).sub_(1).to(device)
