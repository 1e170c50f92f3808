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
        """``size`` empty sums."""
        return cls(torch.zeros(LIMBS, size, dtype=torch.int64), LOWEST)

    def plus(self, values: Tensor) -> ExactSum:
        """With ``values [terms, k]`` added, one to each sum."""
        raised = self._raised(_limb_of(values))
        return ExactSum(raised.limbs + _cut(values, raised.top).sum(dim=1).cpu(), raised.top)

    def plus_grouped(self, values: Tensor, group: Tensor) -> ExactSum:
        """With all of ``values [terms, j]`` added, those of term t to the sum ``group[t]``."""
        raised = self._raised(_limb_of(values))
        added = _cut(values, raised.top).sum(dim=2).cpu()
        return ExactSum(raised.limbs.index_add(1, group, added), raised.top)

    def merged(self, other: ExactSum) -> ExactSum:
        """Both together."""
        top = max(self.top, other.top)
        return ExactSum(self._raised(top).limbs + other._raised(top).limbs, top)

    def spread(self, places: Tensor, size: int) -> ExactSum:
        """The same sums at ``places`` among ``size``, the others empty."""
        limbs = torch.zeros(LIMBS, size, dtype=torch.int64)
        limbs[:, places] = self.limbs
        return ExactSum(limbs, self.top)

    def value(self) -> Tensor:
        """The sums as float64 ``[k]``."""
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
    """The limb of the leading bit of the largest value."""
    largest = float(values.max()) if values.numel() else 0.0
    if not math.isfinite(largest) or (values.numel() and float(values.min()) < 0):
        raise InputError("behavior", "with finite distances", largest, "Look for a diverged policy.")
    return max(LOWEST, (math.frexp(largest)[1] - 1) // BITS) if largest > 0 else LOWEST


def _cut(values: Tensor, top: int) -> Tensor:
    """Limbs ``[LIMBS, ...]`` of the values, which lie below the limb above ``top``."""
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
