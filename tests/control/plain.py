"""DiCo once more, in plain Python and float64: one pair, one observation, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Pairs = Iterable[tuple[int, int]]
Values = NDArray[np.floating]  # [O, n, F]


def raw(values: Values, pairs: Pairs) -> float:
    """Mean over pairs and observations of |b_i(o) - b_j(o)|, values ``[O, n, F]``."""
    distances = []
    for i, j in pairs:
        for point in values:
            distances.append(
                math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(point[i], point[j], strict=True)))
            )
    return math.fsum(distances) / len(distances)


def run(
    batches: Sequence[NDArray[np.floating]],
    draws: Sequence[list[tuple[int, int]]],
    *,
    target: float,
    tau: float,
    desired: bool,
) -> list[tuple[float, float]]:
    """(scale, estimate) after every step; an empty draw takes all pairs."""
    rows, estimate = [], math.nan
    for values, pairs in zip(batches, draws, strict=True):
        measured = raw(values, pairs or list(combinations(range(values.shape[1]), 2)))
        first = target if desired else measured
        estimate = first if math.isnan(estimate) else (1 - tau) * estimate + tau * measured
        rows.append((target / estimate, estimate))
    return rows
