from __future__ import annotations

from typing import Any

import pytest
import torch

from graphsnd import InputError
from graphsnd.control import PI, Controller, DiCo, Homogeneous, Ramp, Scheduled, Unconstrained
from graphsnd.designs import Bernoulli


@pytest.mark.parametrize(("controller", "scale"), [(Unconstrained(), 1.0), (Homogeneous(), 0.0)])
def test_the_two_that_control_nothing(controller: Controller, scale: float) -> None:
    state = controller.initial((2,))
    assert controller.scale(state).tolist() == [scale, scale]
    scales, state, status = controller.step(torch.tensor([0.3, 0.0]), state)
    assert scales.tolist() == [scale, scale]
    assert state.estimate.tolist() == pytest.approx([0.3, 0.0])
    assert status.zero.tolist() == [False, True]
    assert "no target" in status.describe()


def test_all_are_of_one_protocol() -> None:
    several: list[Controller] = [
        Unconstrained(), Homogeneous(), DiCo(0.1), PI(0.1), Scheduled(DiCo(0.1), Ramp(0.1, 0.2, 5)),
    ]  # fmt: skip
    for controller in several:
        state = controller.initial()
        assert float(controller.scale(state)) in (0.0, 1.0)
        scale, state, status = controller.step(torch.tensor(0.2), state)
        assert scale.shape == state.estimate.shape == status.saturated.shape == ()
        assert float(controller.scale(state)) == float(scale)


@pytest.mark.parametrize("make", [Unconstrained, Homogeneous, lambda **o: DiCo(0.1, **o), lambda **o: PI(0.1, **o)])
def test_a_design_may_be_given_as_text(make: Any, generator: torch.Generator) -> None:
    by_text, by_value = make(design="bernoulli:0.5"), make(design=Bernoulli(0.5))
    assert by_text.design == Bernoulli(0.5)
    values = torch.randn(7, 6, 2, generator=generator)
    one, other = (
        each.step(values, each.initial(), generator=torch.Generator().manual_seed(3)) for each in (by_text, by_value)
    )
    assert torch.equal(one[1].estimate, other[1].estimate)
    with pytest.raises(InputError, match="design"):
        make(design="nonsense")
