"""Progress for people: on stderr, only on a terminal, and gone when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

NEWS = "… "


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar over ``total`` named steps; call what it yields with the name of each step as it begins.

    A name that begins with ``NEWS`` only says how the running step is getting on.

    Args:
        total: Number of steps.
    """
    console = Console(stderr=True)
    if not console.is_terminal:  # with rich 13 and 14.0 a disabled bar still ends with an empty line
        yield lambda name: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}")
    columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        begun = 0

        def step(name: str) -> None:
            nonlocal begun
            # News of the step that is running does not count as another one.
            begun += not name.startswith(NEWS)
            progress.update(task, description=name.removeprefix(NEWS), completed=begun - 1)

        yield step
