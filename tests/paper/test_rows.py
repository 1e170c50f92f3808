from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from graphsnd.errors import InputError
from paper.experiment import Scale
from paper.rows import decode


@dataclass(frozen=True)
class Inner:
    name: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outer:
    scale: Scale
    first: Inner
    more: dict[str, list[Inner]]
    pair: tuple[int, Inner]
    row: Sequence[int]
    none: Inner | None = None
    some: Inner | None = None
    plain: dict[str, Any] = field(default_factory=dict)


VALUE = Outer(
    Scale.LAPTOP, Inner("a", (0.1, 1e-300)), {"x": [Inner("b")]}, (1, Inner("c")), [3], some=Inner("d"), plain={"k": 1}
)


def test_there_and_back_through_json() -> None:
    stored = json.loads(json.dumps(VALUE, default=asdict))
    assert decode(Outer, stored) == VALUE
    assert stored["scale"] == "laptop"
    assert stored["none"] is None


def test_a_file_may_hold_more_and_defaults_fill_what_it_lacks() -> None:
    assert decode(Inner, {"name": "a", "older": 1}) == Inner("a")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InputError, match=r"Inner.*name"):
        decode(list[Inner], [{"values": []}])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (list[int], 3), (list[int], {"a": 1}), (tuple[int, ...], "ab"), (dict[str, int], []), (Inner, [1]),
        (Inner, None), (float, "x"), (float, True), (int, 0.5), (str, 1), (float, None), (Scale, "huge"),
        (Inner, {"name": 3}),
    ],
)  # fmt: skip
def test_values_of_another_type_are_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"got|huge"):
        decode(kind, value)
