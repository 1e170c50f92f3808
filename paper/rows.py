"""Typed rows from JSON: objects that ``json.dumps(row, default=asdict)`` wrote, read by the types of their fields.

Results are committed and outlive the code that wrote them. So a file may hold more than is read, and a field that a
file lacks takes its default.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from graphsnd.errors import InputError

# The types that JSON has for ours; enums check their values themselves.
_JSON: dict[Any, Any] = {list: list, Sequence: list, tuple: list, dict: dict, str: str, bool: bool}
_JSON |= {int: int, float: (int, float)}


def decode(kind: Any, value: Any) -> Any:
    """Return a value of a type from its JSON.

    Args:
        kind: A dataclass, an enum, a plain type, or ``list``, ``tuple``, ``Sequence``, ``dict[str, ...]`` and
            ``| None`` of them. ``Any`` leaves the JSON as it is.
        value: As JSON reads it.

    Raises:
        InputError: For a value of another type, and an object that lacks a field without a default.

    Example:
        >>> from paper.experiment import Number
        >>> decode(dict[str, tuple[Number, ...]], {"a": [{"value": 2.0}]})
        {'a': (Number(value=2.0, low=None, high=None, unit='', kind='', clock=False),)}
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        (kind,) = (one for one in inner if one is not type(None))
        return None if value is None else decode(kind, value)
    wanted = _JSON.get(origin or kind, dict if is_dataclass(kind) else object)
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        raise InputError(getattr(kind, "__name__", str(kind)), "with JSON of its type", repr(value)[:80])
    if origin in (list, Sequence):
        return [decode(inner[0], one) for one in value]
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is ... else inner
        return tuple(decode(one, part) for one, part in zip(kinds, value, strict=True))
    if origin is dict:
        return {key: decode(inner[1], one) for key, one in value.items()}
    if is_dataclass(kind):
        return _decode_object(kind, value)
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value


def _decode_object(kind: Any, value: Any) -> Any:
    try:
        return kind(**{name: decode(hint, value[name]) for name, hint in _hints(kind).items() if name in value})
    except TypeError as error:
        raise InputError(kind.__name__, f"with {', '.join(_hints(kind))}", str(error)) from None


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of the fields of a dataclass; finding them evaluates annotations, and rows are many."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}
