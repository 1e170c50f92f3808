from __future__ import annotations

import pytest

from graphsnd import InputError
from graphsnd.control import audit_error, error_of_mean, mean_error, tracking_error


def test_error_functionals() -> None:
    values = [5.0, 0.8, 1.1, 1.3]
    assert mean_error(values[1:], 1.0) == pytest.approx((0.2 + 0.1 + 0.3) / 3)
    assert error_of_mean(values[1:], 1.0) == pytest.approx(0.2 / 3)
    assert audit_error(values, 1.0, last=3) == pytest.approx(0.2 / 3)
    assert audit_error(values, 1.0, last=3, signed=False) == tracking_error(values, 1.0, last=3)
    with pytest.raises(InputError):
        mean_error([], 1.0)


def test_the_tracking_error_of_a_wrong_estimate_is_zero() -> None:
    # The estimate is ten times the truth and constant: the applied signal is on target, the team is not.
    target, truth, estimate = 0.1, 0.2, 2.0
    scale = target / estimate
    assert tracking_error([estimate * scale] * 60, target) == pytest.approx(0.0)
    assert audit_error([truth * scale] * 60, target) == pytest.approx(0.9)
