"""The compiled loops, loaded when one is first called: importing graphsnd does not load numba."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazy:
    """Stands for a module until something in it is asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, item: str) -> Any:
        return getattr(import_module(self.name), item)


loops = Lazy("graphsnd.bounds.forwarding.loops")
