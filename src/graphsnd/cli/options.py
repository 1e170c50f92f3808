"""Helpers of several commands: options, checks of output files, and progress bars."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graphsnd.errors import InputError, printable

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def check_output(name: str, path: Path | None) -> None:
    """Raise, before any work is done, for a path to write that does not end in its kind or has no folder.

    Args:
        name: The kind, and the option that names the path: ``html``, ``png`` or ``csv``.
        path: Output file; nothing is checked when None.
    """
    if path is not None and path.suffix.lower() != f".{name}":
        raise InputError(name, f"to end in .{name}", repr(str(path)))
    if path is not None and not path.parent.is_dir():
        raise InputError(name, "in a folder that exists", repr(str(path)))


def list_written(paths: Iterable[Path]) -> None:
    """Print the files that were written."""
    for path in paths:
        typer.echo(f"wrote {printable(str(path))}")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line on stderr."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        typer.echo(f"graphsnd: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar of ``total`` named steps on a terminal. Yield a function to call with each step's name."""
    console = Console(stderr=True)
    if not console.is_terminal:  # with rich 13 and 14.0 a disabled bar still ends with an empty line
        yield lambda name: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}")
    columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        begun = -1

        def step(name: str) -> None:
            nonlocal begun
            begun += 1
            progress.update(task, description=name, completed=begun)

        yield step
