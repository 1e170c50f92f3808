from __future__ import annotations

import pytest
import torch

from graphsnd.control import DiCo, Ramp, Scheduled


def test_a_schedule_moves_the_target() -> None:
    climbing = Scheduled(DiCo(1.0, tau=1.0), Ramp(0.1, 0.3, 10))
    state = climbing.initial()
    for step in range(15):
        scale, state, status = climbing.step(torch.tensor(0.5), state)
        wanted = 0.1 + 0.2 * min(1.0, step / 10)
        assert float(scale) == pytest.approx(wanted / 0.5)
        assert status.target is not None
        assert float(status.target) == pytest.approx(wanted)
        assert float(climbing.scale(state)) == float(scale)
