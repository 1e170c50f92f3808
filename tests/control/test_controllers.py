from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import pytest
import torch
from torch import Tensor

from graphsnd import InputError, graphs
from graphsnd.control import Controller, DiCo, Homogeneous, Unconstrained
from graphsnd.control.controllers import BOOTSTRAPS
from graphsnd.control.measurement import measure_points
from graphsnd.designs.design import Bernoulli, Complete, Design
from tests.control import plain

STEPS, TARGET = 100, 0.1


def _batches() -> list[Tensor]:
    """A fixed batch of a team whose deviations drift."""
    generator = torch.Generator().manual_seed(5)
    first = torch.randn(7, 6, 2, generator=generator)
    drift = 0.02 * torch.randn(7, 6, 2, generator=generator)
    return [0.15 * (first + step * drift) for step in range(STEPS)]


@pytest.mark.parametrize("bootstrap", BOOTSTRAPS)
@pytest.mark.parametrize("p", [None, 0.1, 0.5])
def test_scale_and_estimate_are_those_of_the_plain_controller(p: float | None, bootstrap: str) -> None:
    design: Design = Complete() if p is None else Bernoulli(p)
    every = list(combinations(range(6), 2))
    twin = torch.Generator().manual_seed(11)
    draws = [every if p is None else graphs.bernoulli(6, p, seed=twin).edges.tolist() for _ in range(STEPS)]
    batches = _batches()
    expected = plain.run(
        [b.double().numpy() for b in batches], draws, target=TARGET, tau=0.01, desired=bootstrap == "target"
    )
    dico = DiCo(TARGET, bootstrap=bootstrap, design=design)
    state, generator, empty = dico.initial(), torch.Generator().manual_seed(11), 0
    for values, (scale, held) in zip(batches, expected, strict=True):
        applied, state, status = dico.step(values, state, generator=generator)
        assert float(applied) == pytest.approx(scale, rel=1e-6)
        assert float(state.estimate) == pytest.approx(held, rel=1e-6)
        assert float(dico.scale(state)) == float(applied)
        empty += int(status.empty)
    assert empty == sum(not draw for draw in draws)
    if p == 0.1:
        assert empty > 5  # 0.9^15 of the draws


def test_scaled_policies_have_the_target_diversity(generator: torch.Generator) -> None:
    values = torch.randn(50, 5, 3, generator=generator)
    dico = DiCo(0.37)
    scale, _, _ = dico.step(values, dico.initial())
    assert float(measure_points(Complete(), values * scale.float()).value) == pytest.approx(0.37, rel=1e-5)


@pytest.mark.parametrize(("measured", "scale"), [(1e-6, 5.0), (1e6, 0.2)])
def test_saturation_is_bounded_and_said(measured: float, scale: float) -> None:
    dico = DiCo(0.1, bounds=(0.2, 5.0))
    applied, _, status = dico.step(torch.tensor(measured), dico.initial())
    assert float(applied) == scale
    assert bool(status.saturated)
    assert not bool(dico.step(torch.tensor(0.1), dico.initial())[2].saturated)


def test_zero_diversity_is_said_and_recovers() -> None:
    dico = DiCo(0.1)
    scale, state, status = dico.step(torch.ones(4, 3, 2), dico.initial())
    assert float(scale) == dico.bounds[1]
    assert (bool(status.zero), bool(status.saturated)) == (True, True)
    for _ in range(2000):
        scale, state, status = dico.step(torch.tensor(0.2), state)
    assert float(scale) == pytest.approx(0.5, rel=1e-6)
    assert not bool(status.zero)


def test_runs_are_stacked_and_do_not_notice_each_other() -> None:
    targets = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    together = DiCo(targets, tau=0.3)
    state, alone = together.initial(), [DiCo(float(t), tau=0.3) for t in targets]
    states = [each.initial() for each in alone]
    for step in range(5):
        measured = torch.tensor([0.3, 0.2 + step, math.nan if step < 2 else 1.0])
        scale, state, _ = together.step(measured, state)
        for run, each in enumerate(alone):
            own, states[run], _ = each.step(measured[run], states[run])
            assert float(scale[run]) == pytest.approx(float(own), rel=1e-12)  # vectors may fuse what scalars do not


def test_gradients_stop_unless_asked_through(generator: torch.Generator) -> None:
    values = torch.randn(8, 4, 2, generator=generator, dtype=torch.float64).requires_grad_()
    stopped = DiCo(0.1, tau=0.5).step(values, DiCo(0.1).initial())[0]
    assert not stopped.requires_grad
    dico = DiCo(0.1, tau=0.5, differentiable=True)
    _, state, _ = dico.step(torch.tensor(0.3), dico.initial())

    def scale(points: Tensor) -> Tensor:
        return dico.step(points, state)[0]

    assert torch.autograd.gradcheck(scale, (values,))
    assert not dico.step(values, state)[1].estimate.requires_grad
    same = torch.ones(8, 4, 2, dtype=torch.float64, requires_grad=True)
    flat = DiCo(0.1, differentiable=True).step(same, DiCo(0.1).initial())[0]
    assert torch.autograd.grad(flat, same)[0].abs().max() == 0


@pytest.mark.parametrize("options", [
    {"target": 0.0}, {"target": -1.0}, {"target": math.nan}, {"target": torch.tensor([0.1, 0.0])},
    {"target": 0.1, "tau": 0.0}, {"target": 0.1, "tau": 1.5}, {"target": 0.1, "bounds": (2.0, 3.0)},
    {"target": 0.1, "bounds": (0.1, math.inf)}, {"target": "0.1"}, {"target": None}, {"target": 0.1, "tau": "0.01"},
    {"target": 0.1, "bootstrap": "first"},
])  # fmt: skip
def test_values_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        DiCo(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1.0, -1e-300, torch.nan, torch.inf])
def test_what_no_diversity_can_be_is_left_out(wrong: float) -> None:
    dico = DiCo(0.1, tau=0.5)
    _, state, _ = dico.step(torch.tensor(0.25), dico.initial())
    scale, after, status = dico.step(torch.tensor(wrong, dtype=torch.float64), state)
    assert bool(status.invalid)
    assert float(scale) == 0.1 / 0.25
    assert float(after.estimate) == float(state.estimate)
    first, state, status = dico.step(torch.tensor(wrong, dtype=torch.float64), dico.initial())
    assert (float(first), bool(status.invalid), bool(state.initialized)) == (1.0, True, False)


@pytest.mark.parametrize(("controller", "scale"), [(Unconstrained(), 1.0), (Homogeneous(), 0.0)])
def test_the_two_that_control_nothing(controller: Controller, scale: float) -> None:
    state = controller.initial((2,))
    assert controller.scale(state).tolist() == [scale, scale]
    scales, state, status = controller.step(torch.tensor([0.3, 0.0]), state)
    assert scales.tolist() == controller.scale(state).tolist() == [scale, scale]
    assert state.estimate.tolist() == pytest.approx([0.3, 0.0])
    assert status.zero.tolist() == [False, True]


@pytest.mark.parametrize("make", [Unconstrained, Homogeneous, lambda **options: DiCo(0.1, **options)])
def test_every_controller_measures_points_numbers_and_measurements(make: Callable[..., Controller]) -> None:
    values = torch.tensor([[[0.0], [0.5]]])
    controller = make(design="complete")
    given = (values, torch.tensor(0.5), measure_points("complete", values))
    states = [controller.step(each, controller.initial())[1] for each in given]
    assert [float(state.estimate) for state in states] == [0.5] * 3
    for wrong in (torch.zeros(2, 2), torch.zeros(2), torch.zeros(3, 1, 2, 1)):  # neither points nor a number per run
        with pytest.raises(InputError, match="measured"):
            controller.step(wrong, controller.initial())
    with pytest.raises(InputError, match="design"):
        make(design="nonsense")
