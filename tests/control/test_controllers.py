from __future__ import annotations

import math

import pytest
import torch

from graphsnd import InputError
from graphsnd.control import PI, Controller, DiCo, Homogeneous, PerGroup, Ramp, Scheduled, Unconstrained, measure_points
from graphsnd.designs import Complete


@pytest.mark.parametrize(("controller", "scale"), [(Unconstrained(), 1.0), (Homogeneous(), 0.0)])
def test_the_two_that_control_nothing(controller: Controller, scale: float) -> None:
    state = controller.initial((2,))
    assert controller.scale(state).tolist() == [scale, scale]
    found, state, status = controller.step(torch.tensor([0.3, 0.0]), state)
    assert found.tolist() == [scale, scale]
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


def test_groups_are_controlled_by_themselves(generator: torch.Generator) -> None:
    values = torch.randn(40, 5, 2, generator=generator)
    groups, targets = [[0, 3], [4, 1, 2]], [0.1, 0.6]
    control = PerGroup(groups, targets)
    scale, state, status = control.step(values, control.initial())
    scaled = values * scale.float().view(1, 5, 1)
    for group, target in zip(groups, targets, strict=True):
        assert float(measure_points(Complete(), scaled[:, group]).value) == pytest.approx(target, rel=1e-5)
    assert control.scale(state).tolist() == scale.tolist()
    assert status.describe().count("\n") == 1
    stacked, _, _ = control.step(torch.stack([values, 2 * values]), control.initial((2,)))
    assert stacked.shape == (2, 5)
    assert torch.allclose(stacked[0], 2 * stacked[1])


@pytest.mark.parametrize(("groups", "targets"), [
    ([[0, 1], [1, 2]], [0.1, 0.1]), ([[0, 1], [2]], [0.1, 0.1]), ([[0, 1]], [0.1, 0.1]), ([[0, 1]], [0.0]),
])  # fmt: skip
def test_groups_that_are_no_partition(groups: list[list[int]], targets: list[float]) -> None:
    with pytest.raises(InputError):
        PerGroup(groups, targets)


def test_groups_of_another_team_are_refused() -> None:
    control = PerGroup([[0, 1], [2, 3]], [0.1, 0.1])
    with pytest.raises(InputError, match="agents"):
        control.step(torch.zeros(3, 5, 2), control.initial())
    with pytest.raises(InputError, match="measured"):
        control.step(torch.tensor(0.2), control.initial())


@pytest.mark.parametrize("options", [{"kp": -1.0}, {"ki": 0.0}, {"tau": 2.0}, {"bounds": (0.0, 2.0)}, {"limit": 0.0}])
def test_gains_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        PI(0.1, **options)  # type: ignore[arg-type]
