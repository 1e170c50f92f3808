from __future__ import annotations

import math

import pytest
import torch

from graphsnd import InputError
from graphsnd.control import PI


def test_pi_drives_a_biased_loop_to_the_target() -> None:
    # What is applied is squashed and drifts; DiCo on the unsquashed value would stay off.
    pi = PI(0.1, kp=0.2, ki=0.3)
    state = pi.initial()
    for step in range(200):
        applied = torch.tanh(pi.scale(state) * (0.4 + 0.001 * step)) * 0.7
        _, state, status = pi.step(applied, state)
    assert float(applied) == pytest.approx(0.1, rel=0.01)
    assert not bool(status.saturated)


def test_pi_is_that_of_its_formula() -> None:
    pi, measured = PI(0.1, kp=0.3, ki=0.2), [0.2, 0.15, 0.05]
    state, total = pi.initial(), 0.0
    for value in measured:
        scale, state, _ = pi.step(torch.tensor(value), state)
        error = math.log(0.1 / value)
        total += 0.2 * error
        assert float(scale) == pytest.approx(math.exp(total + 0.3 * error), rel=1e-6)


def test_pi_does_not_wind_up() -> None:
    pi = PI(10.0, kp=0.0, ki=0.5, bounds=(0.1, 4.0))
    state = pi.initial()
    for _ in range(100):
        scale, state, status = pi.step(torch.tensor(0.0), state)
    assert (float(scale), bool(status.saturated), bool(status.zero)) == (pytest.approx(4.0), True, True)
    scale, _, status = pi.retarget(0.1).step(torch.tensor(0.2), state)
    assert float(scale) < 4.0
    assert not bool(status.saturated)


@pytest.mark.parametrize("options", [{"kp": -1.0}, {"ki": 0.0}, {"tau": 2.0}, {"bounds": (0.0, 2.0)}, {"limit": 0.0}])
def test_gains_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        PI(0.1, **options)  # type: ignore[arg-type]
