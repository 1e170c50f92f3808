from __future__ import annotations

import pytest
import torch

from graphsnd.control import DiCo, State, Status
from graphsnd.errors import InputError


def test_a_state_goes_through_a_checkpoint() -> None:
    dico = DiCo(0.1)
    _, state, _ = dico.step(torch.tensor(0.2), dico.initial())
    again = State.of({name: part.clone() for name, part in state.tensors().items()})
    assert float(dico.step(torch.tensor(0.3), again)[0]) == float(dico.step(torch.tensor(0.3), state)[0])


@pytest.mark.parametrize("name", ["begun", "integral", "steps"])
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
