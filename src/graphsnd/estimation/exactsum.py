"""Sums that do not depend on the order of their terms, to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.errors import InputError

BITS = 24  # of a limb; an int64 then has room for 5e11 terms
LIMBS = 4  # at least 73 significant bits of the largest term are kept, 20 more than a float64 has
LOWEST = -46  # below the limb of the smallest positive float64


@dataclass(frozen=True, eq=False)
class ExactSum:
    """Sums of non-negative float64 numbers, kept as integers.

    A number is cut into limbs of 24 bits at *fixed* places of the binary scale, and limbs are added as integers. What
    a term adds to a limb depends on the term alone, and integer addition is associative; so is the result. The limb
    of the largest term so far and the three below it are kept. When a larger term comes the window moves up, and what
    falls out below would have fallen out in every other order too. Nothing is carried from limb to limb before the
    end, which is what makes that true.

    Example:
        >>> one = ExactSum.zeros(1).plus(torch.tensor([[0.1], [0.2]])).plus(torch.tensor([[0.3]]))
        >>> two = ExactSum.zeros(1).plus(torch.tensor([[0.3], [0.2], [0.1]]))
        >>> torch.equal(one.limbs, two.limbs)
        True
    """

    limbs: Tensor  # int64 [LIMBS, k]
    top: int  # the first limb counts multiples of 2 ** (BITS * top)

    @classmethod
    def zeros(cls, size: int) -> ExactSum:
        """Return ``size`` empty sums."""
        return cls(torch.zeros(LIMBS, size, dtype=torch.int64), LOWEST)

    def plus(self, values: Tensor) -> ExactSum:
        """Return the sums with ``values [terms, k]`` added, one to each."""
        raised = self._raised(_limb_of(values))
        return ExactSum(raised.limbs + _split(values, raised.top).sum(dim=1).cpu(), raised.top)

    @classmethod
    def of_rows(cls, values: Tensor) -> ExactSum:
        """Return one sum for each row of ``values [k, terms]``."""
        top = _limb_of(values)
        return cls(_split(values, top).sum(dim=2).cpu(), top)

    def merged(self, other: ExactSum) -> ExactSum:
        """Return both together, sum by sum."""
        top = max(self.top, other.top)
        return ExactSum(self._raised(top).limbs + other._raised(top).limbs, top)

    def grouped(self, other: ExactSum, group: Tensor, groups: int) -> ExactSum:
        """Return both side by side, with those of one ``group`` added to each other."""
        top = max(self.top, other.top)
        both = torch.cat([self._raised(top).limbs, other._raised(top).limbs], dim=1)
        return ExactSum(both.new_zeros(LIMBS, groups).index_add(1, group, both), top)

    def value(self) -> Tensor:
        """Return the sums as float64 ``[k]``."""
        limbs = list(self.limbs)
        for at in range(LIMBS - 1, 0, -1):
            limbs[at - 1] = limbs[at - 1] + (limbs[at] >> BITS)
            limbs[at] = limbs[at] & (2**BITS - 1)
        total = torch.zeros(self.limbs.shape[1], dtype=torch.float64)
        for limb in limbs:
            total = total * 2.0**BITS + limb.double()
        return _scaled(total, self.top - (LIMBS - 1))

    def _raised(self, top: int) -> ExactSum:
        shift = top - self.top
        if shift <= 0:
            return self
        kept = max(0, LIMBS - shift)
        limbs = torch.zeros_like(self.limbs)
        limbs[LIMBS - kept :] = self.limbs[:kept]
        return ExactSum(limbs, top)


def _limb_of(values: Tensor) -> int:
    """Return the limb of the leading bit of the largest value."""
    largest = float(values.max()) if values.numel() else 0.0
    if not math.isfinite(largest) or (values.numel() and float(values.min()) < 0):
        raise InputError("behavior", "with finite distances", largest, "Look for a diverged policy.")
    return max(LOWEST, (math.frexp(largest)[1] - 1) // BITS) if largest > 0 else LOWEST


def _split(values: Tensor, top: int) -> Tensor:
    """Return limbs ``[LIMBS, ...]`` of the values, which lie below the limb above ``top``."""
    rest, limbs = _scaled(values.double(), -top), []
    for _ in range(LIMBS):
        whole = rest.floor()
        limbs.append(whole.long())
        rest = (rest - whole) * 2.0**BITS
    return torch.stack(limbs)


def _scaled(values: Tensor, limbs: int) -> Tensor:
    """Times ``2 ** (BITS * limbs)``, in two steps because the factor itself may leave the range of a float."""
    half = BITS * limbs // 2
    return values * 2.0**half * 2.0 ** (BITS * limbs - half)
