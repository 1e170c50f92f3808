from __future__ import annotations

import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.integrations.identity import locate, tell


def test_each_place_is_told_its_agent_and_the_rest_stays() -> None:
    seen = torch.randn(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)
    identity = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    told = tell(seen, [5, 1], identity)
    for place in torch.cartesian_prod(*map(torch.arange, seen.shape)).tolist():
        time, environment, agent, column = place
        expected = identity[agent, [5, 1].index(column)] if column in (5, 1) else seen[time, environment, agent, column]
        assert torch.equal(told[tuple(place)], expected)
    told.sum().backward()
    assert identity.grad is not None
    assert bool(identity.grad.eq(6).all())
    assert torch.equal(tell(seen, slice(-4, None))[1, 2, :, 2:], torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize("columns", [slice(2), 0, {"a": 0, "b": 1}, {"c": 0}, {}])
def test_columns_of_several_arrays_need_a_key(columns: object) -> None:
    with pytest.raises(InputError, match="`columns` to name one of the arrays 'a', 'b'"):
        locate(columns, ["a", "b"])


def test_columns_have_their_array() -> None:
    assert locate(slice(2), ["a"]) == ("a", slice(2))
    assert locate({"b": 0}, ["a", "b"]) == ("b", 0)
