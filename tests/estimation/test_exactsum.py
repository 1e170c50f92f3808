from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from graphsnd.estimation.exactsum import ExactSum


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e290])
def test_exact_sums_are_exact(scale: float, generator: torch.Generator) -> None:
    values = torch.rand(200, 2, generator=generator, dtype=torch.float64) * scale
    values[3] = scale * 1e-12
    found = ExactSum.zeros(2)
    for part in values.split(13):
        found = found.plus(part)
    expected = [float(sum(Fraction(v) for v in column)) for column in values.T.tolist()]
    np.testing.assert_allclose(found.value(), expected, rtol=3e-16)


def test_a_larger_term_pushes_the_same_bits_out_in_every_order() -> None:
    values = torch.tensor([[1e-200], [3e-7], [1.0], [2e40], [7e39], [5e-324], [0.0]], dtype=torch.float64)
    found = []
    for shift in range(len(values)):
        total = ExactSum.zeros(1)
        for value in values.roll(shift, 0):
            total = total.plus(value[None])
        found.append((total.limbs.tolist(), total.top))
    assert all(f == found[0] for f in found)
