"""The application: its commands, and how errors are shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from graphsnd import __version__
from graphsnd.cli.advise import advise
from graphsnd.cli.demo import demo
from graphsnd.cli.doctor import doctor
from graphsnd.cli.measure import measure
from graphsnd.cli.train import train
from graphsnd.errors import InputError, MissingExtraError, printable

# Arguments of the library that the command line calls otherwise, if the command has that option or argument.
CALLED = {"n": "agents", "path": "files", "folder": "out", "loggers": "logger", "settings": "change"} | dict.fromkeys(
    ("p", "m", "degree", "k", "r"), "design"
)


class Command(TyperCommand):
    """A command whose errors name its options, and whose help names arguments without their Python types."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options."""
        for one in self.params:
            if one.param_type_name == "argument":
                vars(one)["display_type_rich"] = lambda ctx: None
        super().format_options(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            own: dict[str | None, str] = {
                one.name: str(one.metavar) if one.param_type_name == "argument" else one.opts[0] for one in self.params
            }
            error.name = own.get(error.name) or own.get(CALLED.get(error.name), error.name)
            raise


class Commands(TyperGroup):
    """Commands that end in one line on stderr and with exit code 2 when the input, a file or an extra is at fault.

    Anything else is a bug, and ends in Python's traceback.
    """

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Parse the command line, run the command, and exit."""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # for outputs that cannot show ± or a file's name
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        try:
            sys.exit(super().main(words, *rest, **options | {"standalone_mode": False}))
        except (InputError, MissingExtraError, OSError) as error:
            message = str(error)
        except Exception as error:
            if not hasattr(error, "format_message"):  # of click's usage errors; newer typers have a click of their own
                raise
            message = error.format_message()
        typer.echo(f"graphsnd: {printable(' '.join(message.split()))}", err=True)
        sys.exit(2)


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphsnd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Measure and control how differently the agents of a team behave.

    System Neural Diversity (SND) is the mean distance between what two agents would do on the same observations, over
    all pairs of agents. Graph-SND is the mean over the edges of a graph.

    \b
    Try:
      graphsnd demo                               a built-in team of 100 agents
      graphsnd measure team.npz                   SND of your own team
      graphsnd measure team.npz --rel-tol 0.01    SND to 1%
      graphsnd train dispersion --target 0.3      train a team, and hold its SND

    \b
    A file to start with, from two arrays [observations, agents, actions]:
      numpy.savez("team.npz", loc=loc, scale=scale)
    """  # noqa: D301 (the mark before lines that stay as they are)


for command in (measure, advise, train, demo, doctor):
    app.command(cls=Command)(command)


def main() -> None:
    """Run the command line."""
    app(prog_name="graphsnd")
