"""Progress of experiments, and of the cells of the one that is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

import typer

PATIENCE = 2.0  # seconds between two lines on cells where there is no terminal


class Watch(Protocol):
    """What is told, in this order: begin, cells, end; and say between them."""

    def begin(self, name: str) -> None:
        """An experiment begins."""

    def cell(self, name: str) -> None:
        """A cell of it begins."""

    def end(self, text: str) -> None:
        """It is over."""

    def say(self, text: str) -> None:
        """A line that stays."""


@contextmanager
def watch_experiments(total: int) -> Iterator[Watch]:
    """Show a bar on a terminal, with a line for each finished experiment, and lines elsewhere; on stderr.

    Args:
        total: Number of experiments.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines()
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), BarColumn(bar_width=12), MofNCompleteColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, total)


class _Bar:
    def __init__(self, progress: object, total: int) -> None:
        from rich.progress import Progress

        assert isinstance(progress, Progress)
        self.progress, self.name = progress, ""
        self.task = progress.add_task("", total=total)

    def begin(self, name: str) -> None:
        self.name = name
        self.progress.update(self.task, description=name)

    def cell(self, name: str) -> None:
        self.progress.update(self.task, description=f"{self.name}: {name}")

    def end(self, text: str) -> None:
        self.progress.advance(self.task)
        self.say(text)

    def say(self, text: str) -> None:
        self.progress.console.print(text, style="dim", markup=False)


class _Lines:
    def __init__(self) -> None:
        self.name, self.start, self.last = "", perf_counter(), 0.0

    def begin(self, name: str) -> None:
        self.name, self.last = name, perf_counter()

    def cell(self, name: str) -> None:
        if perf_counter() - self.last > PATIENCE:
            self.say(f"{self.name}: {name}")

    def end(self, text: str) -> None:
        self.say(text)

    def say(self, text: str) -> None:
        self.last = perf_counter()
        typer.echo(f"{self.last - self.start:7.1f} s  {text}", err=True)
