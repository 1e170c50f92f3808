"""What users hand to the figures, as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.errors import InputError, describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any  # an NDArray, a tensor on any device, also one that needs gradients, or nested lists


def to_array(values: Array, name: str = "values") -> NDArray[np.float64]:
    """Return the values as float64 on the CPU, without gradients; ``name`` is what an error calls them."""
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(name, "to be an array of numbers", describe(values)) from None


def to_groups(groups: Array, agents: int) -> NDArray[np.int64]:
    """Return the group of each agent ``[n]``, or raise."""
    given = to_array(groups, "groups")
    if given.shape != (agents,) or not np.isfinite(given).all() or (given != given.round()).any() or given.min() < 0:
        raise InputError("groups", f"to be {agents} integers, at least 0, one for each agent", describe(groups))
    return given.astype(np.int64)
