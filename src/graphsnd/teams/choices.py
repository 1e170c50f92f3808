"""Options that are one of a few words."""

from __future__ import annotations

from collections.abc import Collection

from graphsnd.errors import InputError


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InputError(name, f"to be one of {', '.join(choices)}", repr(value))
