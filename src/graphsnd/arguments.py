"""One way of checking arguments: :func:`checked` compares what a public callable is given with its annotations.

Annotations say what kind of value an argument is; ranges, shapes and what arguments have to do with each other are
checked by the function itself, with :mod:`graphsnd.errors`. No check reads the values of a tensor, so none waits for a
GPU, and none runs where torch compiles.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, overload

import torch
from torch import Tensor

from graphsnd.errors import MOST_AGENTS, InputError, as_integer, check_device, describe, number, plain_tensor

T = TypeVar("T")
NO = object()  # what a kind returns for a value that is not of it
MOST = 1 << 24  # elements of a sequence
# Integers whose name says what they count: the least and the most that makes sense.
RANGES = dict.fromkeys(("agents", "environments", "features", "actions"), (1, MOST_AGENTS)) | {"n": (2, MOST_AGENTS)}
RANGES |= {"directions": (1, 2**20), "observations": (1, 2**63 - 1), "last": (1, 2**63 - 1)}
# What to write where people give something else.
FIXES = {
    "Behavior": "Policies: graphsnd.evaluate(policies, observations). Their actions: graphsnd.Deterministic(actions).",
    "Distance": "Write the object, such as graphsnd.Hellinger(): names are for the command line.",
}
RANGES |= dict.fromkeys(("run", "start", "stop", "seed", "generator"), (0, 2**63 - 1))


@dataclass(frozen=True)
class Kind:
    """A kind of argument."""

    words: str  # for the message, after "to be"
    read: Callable[[Any], Any]  # the value in its plain form (an int, a float, a tensor, ...), or NO
    fix: str = ""  # for the message, at its end


ANY = Kind("a value", lambda value: value)  # where the annotation says nothing
NAMED_DEVICE = Kind("the name of a device", lambda value: str(check_device(value)) if isinstance(value, str) else NO)


@overload
def checked(thing: T, /) -> T: ...
@overload
def checked(*, own: str) -> Callable[[T], T]: ...
def checked(thing: Any = None, /, *, own: str = "") -> Any:
    """Check the arguments of a function, or of a class' constructor and public methods, by their annotations.

    Numbers of other libraries become int or float, arrays become tensors. What has no annotation, or one that says
    nothing at run time (``Any``, a protocol), passes.

    Args:
        thing: A function or a class.
        own: Names that it checks itself, with messages that say more.

    Example:
        >>> @checked
        ... def double(count: int) -> int:
        ...     return 2 * count
        >>> double("a")
        Traceback (most recent call last):
        graphsnd.errors.InputError: Expected `count` to be an integer, got 'a' of type str.
    """
    if thing is None:
        return functools.partial(_check, own=own.split())
    return _check(thing, [])


def _check(thing: Any, own: Sequence[str]) -> Any:
    if isinstance(thing, FunctionType):
        return _wrap(thing, own)
    for name, part in list(vars(thing).items()):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if isinstance(part, FunctionType):
            setattr(thing, name, _wrap(part, own))
        elif isinstance(part, classmethod | staticmethod):
            setattr(thing, name, type(part)(_wrap(part.__func__, own)))
    return thing


def _wrap(function: Any, own: Sequence[str]) -> Any:
    parameters = inspect.signature(function).parameters.values()
    if all(each.name == "self" for each in parameters):
        return function
    names = [each.name for each in parameters if each.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD]
    kinds: dict[str, Kind] | None = None  # read at the first call, when everything has been imported

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        nonlocal kinds
        if torch.compiler.is_compiling():
            return function(*args, **options)
        if kinds is None:
            kinds = _kinds(function, own)
        first = [_read(kinds, name, value) for name, value in zip(names, args, strict=False)]
        options = {name: _read(kinds, name, value) for name, value in options.items()}
        return function(*first, *args[len(first) :], **options)

    return call


def _read(kinds: dict[str, Kind], name: str, value: Any) -> Any:
    kind = kinds.get(name, ANY)
    plain = kind.read(value)
    if plain is NO:
        raise InputError(name, f"to be {kind.words}", describe(value), kind.fix)
    return plain


def _kinds(function: Any, own: Sequence[str]) -> dict[str, Kind]:
    kinds, scope = {}, vars(sys.modules[function.__module__])
    for name, hint in function.__annotations__.items():
        if name in ("self", "return", *own):
            continue
        try:
            hint = eval(hint, scope) if isinstance(hint, str) else hint
            kind = NAMED_DEVICE if (name, hint) == ("device", str) else _kind(hint)
        except NameError:  # imported for type checkers only
            kind = _by_name(hint.split(".")[-1]) if hint.replace(".", "").isidentifier() else ANY
        if name in RANGES and int in (hint, *get_args(hint)):
            kind = _whole(*RANGES[name], get_args(hint))
        kinds[name] = kind
    return kinds


def _kind(hint: Any) -> Kind:
    origin, inside = get_origin(hint), get_args(hint)
    if (origin or hint) in PLAIN:
        return PLAIN[origin or hint]
    if origin in (Union, UnionType):
        return _union(inside)
    if origin in (Sequence, list, tuple):
        many = origin is not tuple or inside[1:] == (...,)
        return _sequence(_kind(inside[0]), None if many else len(inside), as_tuple=origin is tuple)
    if origin in (Mapping, dict):
        return _mapping(_kind(inside[1]))
    if origin is Callable:
        return Kind("callable", lambda value: value if callable(value) else NO)
    if origin is type:
        return _instance(type)
    # With Python 3.10 Iterable[int] is a type too, but one that isinstance refuses.
    tells = origin is None and isinstance(hint, type) and hint is not Any and not getattr(hint, "_is_protocol", False)
    return _instance(hint) if tells else ANY


def _instance(cls: type) -> Kind:
    article = "an" if cls.__name__[0] in "AEIOU" else "a"
    fix = FIXES.get(cls.__name__, "")
    return Kind(f"{article} {cls.__name__}", lambda value: value if isinstance(value, cls) else NO, fix)


def _by_name(cls: str) -> Kind:
    return Kind(f"a {cls}", lambda value: value if cls in [base.__name__ for base in type(value).__mro__] else NO)


def _union(hints: Sequence[Any]) -> Kind:
    if torch.device in hints:  # beside which a text is the name of one
        hints = [hint for hint in (type(None), torch.device) if hint in hints]
    kinds = [_kind(hint) for hint in hints if hint is not str or not any(get_origin(o) is os.PathLike for o in hints)]
    if ANY in kinds:
        return ANY

    def read(value: Any) -> Any:
        return next((plain for kind in kinds if (plain := kind.read(value)) is not NO), NO)

    return Kind(" or ".join(kind.words for kind in kinds), read, " ".join(filter(None, (kind.fix for kind in kinds))))


def _sequence(element: Kind, length: int | None, *, as_tuple: bool) -> Kind:
    """Return sequences of a kind of element, or of a length; as tuples where annotations say tuple."""

    def read(value: Any) -> Any:
        if isinstance(value, str | bytes | bytearray | Mapping):
            return NO
        if not isinstance(value, Sequence) and getattr(value, "ndim", 0) == 1:
            value = value.tolist()
        if not isinstance(value, Sequence) or len(value) > MOST or (length is not None and len(value) != length):
            return NO
        plain = [element.read(one) for one in value]
        if any(one is NO for one in plain):
            return NO
        return tuple(plain) if as_tuple or isinstance(value, tuple) else plain

    return Kind("a sequence" + f" of length {length}" * (length is not None) + _each(element), read)


def _mapping(element: Kind) -> Kind:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return NO
        plain = {key: element.read(one) for key, one in value.items()}
        return NO if any(one is NO for one in plain.values()) else plain

    return Kind("a dict with names as keys" + _each(element), read)


def _each(element: Kind) -> str:
    return "" if element is ANY else f", each {element.words}"


def _whole(low: int, most: int, hints: Sequence[Any]) -> Kind:
    """Return integers in ``low .. most``, and generators or None where the annotation has them beside."""
    beside = tuple(hint for hint in (torch.Generator, type(None)) if hint in hints)

    def read(value: Any) -> Any:
        if isinstance(value, beside):
            return value
        integer = as_integer(value)
        return NO if integer is None or not low <= integer <= most else integer

    words = [
        f"an integer, at least {low}" + f" and at most {most}" * (most < 2**63 - 1),
        *("None" if hint is type(None) else "a torch.Generator" for hint in beside),
    ]
    return Kind(" or ".join(words), read)


def _path(value: Any) -> Any:
    plain = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(plain, str) or "\0" in plain:
        return NO
    try:
        os.fsencode(plain)
    except UnicodeEncodeError:  # half of a surrogate pair: no file system has such a name
        return NO
    return Path(plain)


def _is_slice(value: Any) -> bool:
    ends = (value.start, value.stop, value.step) if isinstance(value, slice) else ("",)
    return all(end is None or as_integer(end) is not None for end in ends) and ends[-1] != 0


def _or_no(value: Any) -> Any:
    return NO if value is None else value


PLAIN: dict[Any, Kind] = {
    bool: Kind("True or False", lambda value: bool(value) if type(value).__name__ in ("bool", "bool_") else NO),
    int: Kind("an integer", lambda value: _or_no(as_integer(value))),
    float: Kind("a finite number", lambda value: plain if math.isfinite(plain := number(value)) else NO),
    str: Kind("a string", lambda value: value if isinstance(value, str) else NO),
    type(None): Kind("None", lambda value: None if value is None else NO),
    Tensor: Kind("a dense torch.Tensor or array of numbers", lambda value: _or_no(plain_tensor(value))),
    torch.device: Kind("a device", check_device),
    Path: Kind("a path", _path),
    os.PathLike: Kind("a path", _path),
    slice: Kind("a slice of integers", lambda value: value if _is_slice(value) else NO),
}
