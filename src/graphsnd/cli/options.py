"""Options that several commands read alike."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from graphsnd.errors import InputError, check_choice, printable

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Html = Annotated[Path | None, typer.Option(metavar="PATH", help="Write one self-contained page.")]
Png = Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figure.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files of another kind.")]
ANY = "any"  # what --ray means without an address
# How files of each kind begin.
KINDS = {
    "page": rb"\s*<(!doctype )?html",
    "PNG": rb"\x89PNG",
    "GIF": rb"GIF8",
    "MP4": rb"....ftyp",
    "NPZ": rb"PK\x03\x04",
    "JSON": rb"\s*[{[]",
}


def check_output(
    option: str, path: Path | None, kind: str | None, *, inputs: Iterable[Path] = (), force: bool = False
) -> None:
    """Refuse a path that cannot be written, that is an input, or that holds something else, before any work is done.

    Args:
        option: For the message.
        path: Where to write; nothing is checked when None.
        kind: One of ``KINDS``, which an existing file has to be; None for any.
        inputs: Files that are read. Links to them count; ``force`` does not help here.
        force: Whether a file of another kind may be replaced.

    Raises:
        InputError: With what is in the way.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise InputError(option, "in a folder that exists", repr(str(path)))
    if path.is_dir():
        raise InputError(option, "to be a file", f"the folder {str(path)!r}")
    if not path.exists():
        return
    for one in inputs:
        if one.exists() and path.samefile(one):
            raise InputError(option, "to be another file than the input", repr(str(path)))
    if force or kind is None or not path.is_file():
        return
    with path.open("rb") as file:
        begin = file.read(64)
    if begin and not re.match(KINDS[kind], begin, re.IGNORECASE | re.DOTALL):
        fix = "Choose another name, or add --force."
        raise InputError(option, f"to be new, or a {kind} to replace", f"{str(path)!r}, which is something else", fix)


def check_pictures(html: Path | None, png: Path | None, *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuse paths of a page and a figure as :func:`check_output` does, and one path for both."""
    check_output("--html", html, "page", inputs=inputs, force=force)
    check_output("--png", png, "PNG", inputs=inputs, force=force)
    if html is not None and png is not None and os.path.realpath(html) == os.path.realpath(png):
        raise InputError("--png", "to be another file than --html", repr(str(png)))


def check_folder(out: Path, kinds: dict[str, str], *, force: bool = False) -> None:
    """Refuse a folder in which files of these names are of another kind than is written there."""
    for name, kind in kinds.items() if out.is_dir() else ():
        check_output("--out", out / name, kind, force=force)


def show_path(path: Path) -> str:
    """Return a path for rich's console: without control characters, and with its brackets as they are."""
    from rich.markup import escape

    return escape(printable(str(path)))


def list_written(paths: Iterable[Path]) -> None:
    """Print the files that were written."""
    from rich.console import Console

    for path in paths:
        Console(highlight=False).print(f"wrote {show_path(path)}", soft_wrap=True)


def parse_device(name: str, *, here: bool = True) -> str:
    """Return the device that ``auto``, ``cpu`` or ``cuda`` stands for, here or on a cluster."""
    import torch

    check_choice("--device", name, ("auto", "cpu", "cuda"))
    if name == "cuda" and here and not torch.cuda.is_available():
        raise InputError("--device", "that this machine has", "cuda", "Use cpu.")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
