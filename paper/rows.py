"""Typed rows from JSON: read what ``json.dumps(row, default=asdict)`` wrote, by the types of the fields.

Committed results outlive the code that wrote them. So unknown entries of a file are ignored, and a field that a file
lacks takes its default.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints


def decode(kind: Any, value: Any) -> Any:
    """Return a value of a type from its JSON.

    Args:
        kind: A dataclass, an enum, a plain type, or ``list``, ``tuple``, ``Sequence``, ``dict[str, ...]`` and
            ``| None`` of them. ``Any`` leaves the JSON as it is.
        value: The value, as ``json.loads`` returns it.

    Raises:
        TypeError: For an object that lacks a field without a default.

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
    if origin in (list, Sequence):
        return [decode(inner[0], one) for one in value]
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is ... else inner
        return tuple(decode(one, part) for one, part in zip(kinds, value, strict=True))
    if origin is dict:
        return {key: decode(inner[1], one) for key, one in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: decode(hint, value[name]) for name, hint in _hints(kind).items() if name in value})
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass' fields; cached, because finding them evaluates annotations for every row."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}
