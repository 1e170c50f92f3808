from __future__ import annotations

from typing import Any

import pytest
import torch

from graphsnd import InputError
from graphsnd.control import Controller, DiCo, Homogeneous, State, Status, Unconstrained
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
    several: list[Controller] = [Unconstrained(), Homogeneous(), DiCo(0.1)]
    for controller in several:
        state = controller.initial()
        assert float(controller.scale(state)) in (0.0, 1.0)
        scale, state, status = controller.step(torch.tensor(0.2), state)
        assert scale.shape == state.estimate.shape == status.saturated.shape == ()
        assert float(controller.scale(state)) == float(scale)


@pytest.mark.parametrize("make", [Unconstrained, Homogeneous, lambda **o: DiCo(0.1, **o)])
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


def test_a_state_goes_through_a_checkpoint() -> None:
    dico = DiCo(0.1)
    _, state, _ = dico.step(torch.tensor(0.2), dico.initial())
    again = State.of({name: part.clone() for name, part in state.tensors().items()})
    assert float(dico.step(torch.tensor(0.3), again)[0]) == float(dico.step(torch.tensor(0.3), state)[0])


@pytest.mark.parametrize("name", ["begun", "steps"])
@pytest.mark.parametrize("shape", [(3, 2), (1, 3, 2), (2,), ()])
def test_a_state_of_several_shapes_is_refused(name: str, shape: tuple[int, ...]) -> None:
    tensors = State.start((3, 3, 2)).tensors()
    assert State.of(tensors).tensors() == tensors
    with pytest.raises(InputError, match=rf"`{name}` with shape \(3, 3, 2\)"):
        State.of(tensors | {name: torch.zeros(shape, dtype=tensors[name].dtype)})


def test_a_status_names_its_flags_for_each_run() -> None:
    scale, numbers = torch.tensor([1.0, 2.0]), torch.tensor([0.1, 0.2])
    no, yes = torch.tensor([False, False]), torch.tensor([False, True])
    lines = Status(numbers, numbers, numbers, scale, yes, no, yes, no).describe().split("\n")
    assert lines[0] == "scale 1: measured 0.1, estimate 0.1, target 0.1"
    assert lines[1].endswith("out of reach within the bounds; empty draw: all pairs were measured instead")
