"""Compiling ahead: programs are there before they are launched, and nothing else has happened."""

from __future__ import annotations

import pytest
import torch

from tests.training import control_settings, control_task


@pytest.mark.gpu
def test_programs_are_compiled_and_not_launched() -> None:
    from graphsnd.kernels.gpu.ahead import compile_ahead
    from graphsnd.rl.fused.learning import largest_overflow

    common, deviations = torch.full((1, 2, 5, 4), 3.0).cuda(), torch.full((1, 2, 5, 2), 3.0).cuda()
    found = []
    compile_ahead(lambda: found.append(largest_overflow(common, deviations, torch.ones(1, 2).cuda())[0]))
    assert not found[0].any()
    assert largest_overflow(common, deviations, torch.ones(1, 2).cuda())[0].min() > 1


@pytest.mark.gpu
def test_a_trainer_compiles_and_stays_as_it_is() -> None:
    settings = control_settings(environments=4, steps=5, epochs=1, minibatch=8, hidden=(64, 64), iterations=2)
    ahead, lazy = (
        control_task(4, (0.1,), settings=settings).make_trainer("cuda", capture=flag) for flag in (True, False)
    )
    for name, part in lazy.tensors().items():
        assert torch.equal(ahead.tensors()[name], part), name
