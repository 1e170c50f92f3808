"""What users hand to the figures, as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any  # an NDArray, a tensor on any device, also one that needs gradients, or nested lists


def to_array(values: Array) -> NDArray[np.float64]:
    """Return the values as float64 on the CPU, without gradients."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=np.float64)
