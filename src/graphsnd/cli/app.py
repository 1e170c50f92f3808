"""The application: its commands, its help, and how errors end."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphsnd import __version__
from graphsnd.cli.advise import advise
from graphsnd.cli.bench import bench
from graphsnd.cli.control import control
from graphsnd.cli.demo import demo
from graphsnd.cli.doctor import doctor
from graphsnd.cli.measure import measure
from graphsnd.cli.train import train
from graphsnd.errors import InputError, MissingExtraError


def join_lines(text: str | None) -> str:
    r"""Join the lines of each paragraph, because the terminal breaks them again; indented lines stay as they are.

    Example:
        >>> join_lines("One\nparagraph.\n\nCommand\n  meaning")
        'One paragraph.\n\nCommand\n  meaning'
    """
    return re.sub(r"(?<!\n)\n(?![\n ])", " ", inspect.cleandoc(text or ""))


class Commands(TyperGroup):
    """Commands whose bad input ends in one line on stderr and exit code 2; a bug keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (InputError, MissingExtraError) as error:
            message = str(error)
        except OSError as error:
            # Reading is guarded where it happens, so this is a file that could not be written.
            if isinstance(error, BrokenPipeError):
                raise
            message = f"Cannot use {error.filename!r}: {error.strerror}." if error.filename else str(error)
        typer.echo("graphsnd: " + " ".join(message.split()), err=True)
        raise typer.Exit(2)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphsnd {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Measure and control how differently the agents of a team behave.

    System Neural Diversity (SND) is the mean distance between what two agents would do on the same observations, over
    all pairs of agents, or over the edges of a graph (Graph-SND).

    [bold]Examples[/bold]

    [cyan]graphsnd demo[/cyan]
      Measure a built-in team of 100 agents, with figures and a page.

    [cyan]graphsnd measure team.npz[/cyan]
      SND over all pairs. The file holds loc and scale, or probs, or actions ...

    [cyan]graphsnd measure team.npz --design uniform:500 --json[/cyan]
      Estimate SND from 500 random pairs, with its interval, for scripts.

    [cyan]graphsnd measure team.npz --design knn:5 --html team.html[/cyan]
      Diversity among neighbours, with a page to share: a local measure, not SND.

    [bold]A file to start with[/bold]

    [cyan]numpy.savez("team.npz", loc=loc, scale=scale)[/cyan]
      Two arrays of shape observations x agents x actions.
    """


app.callback(help=join_lines(_options.__doc__))(_options)
# Options that control does not know may be for BenchMARL; it refuses the rest itself.
EXTRA: dict[Any, dict[str, Any]] = {control: {"allow_extra_args": True, "ignore_unknown_options": True}}
for command in (measure, advise, train, control, demo, bench, doctor):
    app.command(help=join_lines(command.__doc__), context_settings=EXTRA.get(command))(command)


def main() -> None:
    """Run the command line."""
    sys.exit(app(prog_name="graphsnd"))
