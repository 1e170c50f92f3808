"""What users hand to the figures, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphsnd.errors import InputError, describe, plain_tensor

Array = Any  # an NDArray, a tensor on any device, also one that needs gradients, or nested lists


def to_array(values: Array, name: str = "values") -> NDArray[np.float64]:
    """Return the values as float64 on the CPU, without gradients; ``name`` is what an error calls them."""
    tensor = plain_tensor(values)
    if tensor is None and isinstance(values, torch.Tensor):  # sparse, complex, without values, ...
        raise InputError(name, "to be dense and of real numbers", describe(values))
    try:
        plain = values if tensor is None else tensor.detach().to("cpu", torch.float64)  # NumPy has no bfloat16
        return np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(name, "to be an array of numbers", describe(values)) from None


def to_groups(groups: Array, agents: int) -> NDArray[np.int64]:
    """Return the group of each agent ``[n]``, or raise."""
    given = to_array(groups, "groups")
    if given.shape != (agents,) or not np.isfinite(given).all() or (given != given.round()).any() or given.min() < 0:
        raise InputError("groups", f"to be {agents} integers, at least 0, one for each agent", describe(groups))
    return given.astype(np.int64)
