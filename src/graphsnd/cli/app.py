"""The application: its commands, its help, and how errors end."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from graphsnd import __version__
from graphsnd.cli.advise import advise
from graphsnd.cli.control import control
from graphsnd.cli.demo import demo
from graphsnd.cli.doctor import doctor
from graphsnd.cli.measure import measure
from graphsnd.cli.options import ANY
from graphsnd.cli.train import train
from graphsnd.errors import InputError, MissingExtraError, printable

BUG = 70  # exit code for an error that is ours: EX_SOFTWARE of sysexits.h
LONG = 2**63  # beyond this, integers fit neither torch nor numpy
# Arguments of the library that options call otherwise.
ALIASES = {"environments": "envs", "n": "agents", "scenario": "world"}
PYTHON = re.compile(r" or None(?=, got )| of type (?:int|float|str)(?=\.)")  # what a terminal need not know
FULL = re.compile("can't allocate memory|not enough memory|out of memory", re.IGNORECASE)  # in torch's errors


def join_lines(text: str | None) -> str:
    r"""Join the lines of each paragraph, because the terminal breaks them again; indented lines stay as they are.

    Example:
        >>> join_lines("One\nparagraph.\n\nCommand\n  meaning")
        'One paragraph.\n\nCommand\n  meaning'
    """
    return re.sub(r"(?<!\n)\n(?![\n ])", " ", inspect.cleandoc(text or ""))


class Command(TyperCommand):
    """A command that takes no empty words, which would mean the default, and no integers of more than 64 bits.

    Its help shows every default, and errors of the library name its options.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for option in self.params:
            if option.param_type_name == "option" and option.default is None and option.show_default is True:  # type: ignore[attr-defined]
                option.show_default = "none"  # type: ignore[attr-defined]

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            name, wanted = "FILE" if error.name == "path" else error.name, ALIASES.get(error.name, error.name)
            for option in self.params:
                if option.name == wanted and ctx.get_parameter_source(wanted).name == "COMMANDLINE":
                    name = option.opts[0] if option.param_type_name == "option" else str(option.name).upper()
            if any(pair.startswith(f"{error.name}=") for pair in ctx.params.get("change") or ()):
                name = f"--set {error.name}"
            from graphsnd.designs.design import FORMS  # not for --help, which does without torch

            for asked in ("design", "designs"):
                for text in (ctx.params.get(asked) or "").lower().replace(" ", "").split(","):
                    family, _, value = text.partition(":")
                    own = getattr(FORMS.get(family), "__dataclass_fields__", ())
                    if error.name in own and f"{value}." in str(error):
                        name = f"{error.name}` in `--{asked} {text}"
            if name != error.name:
                words = PYTHON.sub("", str(error).replace(f"`{error.name}`", f"`{name}`", 1))
                error.args = (words.replace(f"{error.name}=", f"{name} "),)
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check the words before they are parsed, and the integers afterwards."""
        # typer knows no options whose value may be left out.
        ends = [not after or after.startswith("-") for after in [*args[1:], ""]]
        args = [f"--ray={ANY}" if word == "--ray" and end else word for word, end in zip(args, ends, strict=False)]
        for before, word in zip(["", *args], args, strict=False):
            option = word if word.startswith("--") else f"{before}={word}"
            name, equals, value = option.partition("=")
            if equals and not value.strip():
                raise InputError(name if name.startswith("-") else "ARGUMENT", "not to be empty", repr(value))
        rest = super().parse_args(ctx, args)
        for name, value in ctx.params.items():
            if isinstance(value, int) and abs(value) >= LONG:
                raise InputError(f"--{name.replace('_', '-')}", "to have at most 63 bits", str(value)[:24])
        return rest


class Commands(TyperGroup):
    """Commands that end in one line on stderr when something is wrong.

    Exit code 2 is for input that cannot be accepted, a file that cannot be written, or too little memory; 70 for a
    bug, whose traceback goes to a file, or to the terminal with ``--debug``.
    """

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Parse the command line, run the command, and exit."""
        words = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in words
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # for outputs that cannot show ± or a file's name
        try:
            return super().main([word for word in words if word != "--debug"], *rest, **options)
        except Exception as error:
            message, code = _explain(error), 2
            if message is None:
                message, code = f"{type(error).__name__}: {error}. This is a bug. {_report(error, words, debug)}", BUG
            typer.echo(f"graphsnd: {printable(' '.join(message.split()))}", err=True)
        sys.exit(code)

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the words before the command."""
        with _printable_usage():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with _printable_usage():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("graphsnd: stopped", err=True)
            raise typer.Exit(130) from None


def _explain(error: Exception) -> str | None:
    """Return what is wrong with the input or the machine; None when it is a bug."""
    if isinstance(error, InputError | MissingExtraError):
        return str(error)
    if isinstance(error, OSError):  # reading is guarded where it happens, so this is a file that could not be written
        return f"Cannot use {error.filename!r}: {error.strerror}." if error.filename else str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and FULL.search(str(error))):
        return f"Not enough memory: {str(error).splitlines()[0] if str(error) else 'use less data or fewer agents'}."
    return None


def _report(error: Exception, words: list[str], debug: bool) -> str:
    """Write traceback, versions and command line to a file that only its owner can read, and say where it is."""
    import tempfile
    import traceback

    trace = "".join(traceback.format_exception(error))
    if debug:
        typer.echo(trace, err=True, nl=False)
        return "Please report it with this traceback."
    loaded = {name: getattr(module, "__dict__", {}) for name, module in sorted(sys.modules.items()) if "." not in name}
    versions = [f"{name} {held['__version__']}" for name, held in loaded.items() if "__version__" in held]
    try:
        descriptor, path = tempfile.mkstemp(prefix="graphsnd-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join([f"graphsnd {words!r}", f"Python {sys.version}", ", ".join(versions), trace]))
    except OSError:
        return "Repeat it with --debug, and please report what you see."
    return f"Please report it with {path}, or repeat it with --debug."


@contextmanager
def _printable_usage() -> Iterator[None]:
    """Keep control characters out of the messages about wrong usage, which quote the command line as it is."""
    try:
        yield
    except Exception as error:
        if isinstance(getattr(error, "message", None), str):
            error.message = printable(error.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug; also behind a command.")] = False,
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
# Options that these do not know may be for Hydra or BenchMARL; they refuse the rest themselves.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
EXTRA: dict[Any, dict[str, Any]] = {train: PASS_ON, control: PASS_ON}
for command in (measure, advise, train, control, demo, doctor):
    app.command(cls=Command, help=join_lines(command.__doc__), context_settings=EXTRA.get(command))(command)


def main() -> None:
    """Run the command line."""
    sys.exit(app(prog_name="graphsnd"))
