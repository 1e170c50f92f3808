"""Arguments are compared with annotations, and come out in one plain form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import GenericAlias
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import graphsnd as gs
from graphsnd.arguments import checked


@checked
def take(
    integer: int = 1,
    real: float = 1.0,
    flag: bool = True,
    text: str = "",
    tensor: Tensor | None = None,
    graph: gs.Graph | None = None,
    sizes: Sequence[int] = (),
    ends: tuple[float, float] = (0.0, 1.0),
    by_name: Mapping[str, float] | None = None,
    call: Callable[..., Any] = len,
    device: torch.device | str | None = None,
    seed: int | torch.Generator = 0,
    path: Path = Path(),
    n: int = 2,
    part: slice = slice(None),
    anything: Any = None,
) -> dict[str, Any]:
    return locals()


ACCEPTED = [
    ("integer", np.int8(3), 3),
    ("integer", torch.tensor(3), 3),
    ("real", 2, 2.0),
    ("real", Fraction(1, 4), 0.25),
    ("real", np.float32(0.5), 0.5),
    ("flag", np.bool_(False), False),
    ("sizes", np.array([1, 2]), [1, 2]),
    ("sizes", range(2), [0, 1]),
    ("ends", (0, 2), (0.0, 2.0)),
    ("ends", [0, 2], (0.0, 2.0)),
    ("by_name", {"a": 1}, {"a": 1.0}),
    ("device", "cpu", torch.device("cpu")),
    ("seed", 2**63 - 1, 2**63 - 1),
    ("path", "a", Path("a")),
]
REFUSED: dict[str, list[Any]] = {
    "integer": [1.0, True, "1", None, 2**63, 10**400, torch.tensor([1]), torch.tensor(True), 1j],
    "real": [float("nan"), float("inf"), 10**400, "1", True, 1j, torch.zeros(2), None],
    "flag": [1, 0.0, None, "yes"],
    "text": [b"", None, 1],
    "tensor": [
        [1.0], "a", torch.zeros(2).to_sparse(), torch.zeros(2, device="meta"), torch.zeros(2, dtype=torch.complex64),
        torch.zeros(2).to(torch.float8_e5m2), torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8),
        torch.zeros(1).expand(2**40), np.array(["a"]), np.ma.masked_array([1.0], [True]),
    ],
    "graph": [torch.eye(3), "complete", gs.Graph],
    "sizes": ["12", [1.5], 3, {1: 2}, [None]],
    "ends": [(1.0,), (0.0, float("nan")), 1.0],
    "by_name": [{1: 1.0}, {"a": "b"}, [1.0]],
    "call": [None, "len"],
    "device": ["gpu", "cuda:99", "meta", b"cpu", True, 1.5, ""],
    "seed": [-1, 2**63, "a", None, 0.5, np.random.default_rng(0)],
    "path": [b"a", None, 3, "a\0b", "\ud800"],
    "n": [1, 0, -1, 2**70, 2.0],
    "part": [slice("a", "b"), slice(None, None, 0), 3],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value", "plain"), ACCEPTED)
def test_values_come_out_plain(name: str, value: Any, plain: Any) -> None:
    got = take(**{name: value})[name]
    assert got == plain
    assert type(got) is type(plain)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_other_kinds_are_refused_in_one_line(name: str, value: Any) -> None:
    with pytest.raises(gs.InputError, match=f"^Expected `{name}` to be .*, got .*[.]$") as error:
        take(**{name: value})
    assert len(str(error.value)) < 300


def test_what_people_give_in_place_of_a_behavior_or_a_distance_is_answered_with_what_to_write() -> None:
    policies, behavior = [torch.nn.Sequential(torch.nn.Linear(2, 2))] * 3, gs.Deterministic(torch.zeros(2, 3, 1))
    for given in (policies, torch.zeros(2, 3, 1)):
        with pytest.raises(
            gs.InputError, match=r"evaluate\(policies, observations\).*Deterministic\(actions\)"
        ) as error:
            gs.roles(given)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
    with pytest.raises(gs.InputError, match=r"graphsnd\.Hellinger\(\)"):
        gs.roles(behavior, distance="hellinger")  # type: ignore[arg-type]


def test_what_an_annotation_does_not_tell_passes() -> None:
    thing = object()
    assert take(anything=thing)["anything"] is thing
    generator = torch.Generator()
    assert take(seed=generator)["seed"] is generator


def test_generics_of_python_3_10_which_say_that_they_are_types_tell_nothing() -> None:
    class Generic(GenericAlias):
        __class__ = property(lambda self: type)  # type: ignore[assignment]

    def count(things: Any) -> int:
        return len(list(things))

    count.__annotations__["things"] = Generic(Iterable, (int,))
    assert isinstance(count.__annotations__["things"], type)
    assert checked(count)(iter("ab")) == 2


def test_classes_check_constructors_and_methods_but_not_what_they_check_themselves() -> None:
    @checked(own="level")
    @dataclass(frozen=True)
    class Tap:
        size: int
        level: float = 0.5

        def turn(self, by: float) -> float:
            return by + self.level

        @classmethod
        def make(cls, size: int) -> Tap:
            return cls(size)

    assert Tap.make(np.int64(2)).turn(1) == 1.5
    assert Tap(1, "own").level == "own"  # type: ignore[arg-type]
    for wrong in (lambda: Tap("a"), lambda: Tap(1).turn("a"), lambda: Tap.make(None)):  # type: ignore[arg-type]
        with pytest.raises(gs.InputError):
            wrong()


def test_python_speaks_for_itself_about_names_and_numbers_of_arguments() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        take(nothing=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing"):
        gs.graphs.relabelled()  # type: ignore[call-arg]
    assert functools.partial(take, 3)()["integer"] == 3


def test_compiled_code_is_not_checked() -> None:
    assert torch.compile(lambda x: take(tensor=x)["tensor"] + 1, backend="eager")(torch.ones(1)).item() == 2.0
