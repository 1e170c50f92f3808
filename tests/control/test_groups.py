from __future__ import annotations

import pytest
import torch

from graphsnd import InputError
from graphsnd.control import DiCo, PerGroup, measure_points
from graphsnd.designs import Complete


def test_groups_are_controlled_by_themselves(generator: torch.Generator) -> None:
    values = torch.randn(40, 5, 2, generator=generator)
    groups, targets = [[0, 3], [4, 1, 2]], [0.1, 0.6]
    control = PerGroup(groups, DiCo(torch.tensor(targets, dtype=torch.float64)))
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
        PerGroup(groups, DiCo(torch.tensor(targets)))


def test_groups_of_another_team_are_refused() -> None:
    control = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.1])))
    with pytest.raises(InputError, match="agents"):
        control.step(torch.zeros(3, 5, 2), control.initial())
    with pytest.raises(InputError, match="measured"):
        control.step(torch.tensor(0.2), control.initial())


def test_the_options_are_those_of_its_dico(generator: torch.Generator) -> None:
    dico = DiCo(
        torch.tensor([0.1, 0.6], dtype=torch.float64), tau=0.5, bounds=(0.5, 2.0), design="matching", through=True
    )
    control = PerGroup([[0, 1, 2], [3, 4]], dico)
    assert (control.design, control.through, control.applied) == (dico.design, True, False)
    state = control.initial()
    for measured in ([0.2, 0.6], [0.4, 0.6], [0.1, 3.0]):
        expected, after, _ = dico.step(torch.tensor(measured), state)
        scale, state, _ = control.step(torch.tensor(measured), state)
        assert torch.equal(state.estimate, after.estimate)
        assert torch.equal(scale, expected[[0, 0, 0, 1, 1]])
    values = torch.randn(8, 5, 2, generator=generator).requires_grad_()
    control.step(values, state, generator=generator)[0].sum().backward()
    assert values.grad is not None
