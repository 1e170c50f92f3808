"""A check of results that are stored in the repository: that a known commit made them."""

from __future__ import annotations

from pathlib import Path

from graphsnd.errors import InputError
from graphsnd.plots import provenance


def verify_commit(name: str, root: Path) -> None:
    """Refuse to go on where the sources that run are not those of a known commit.

    Args:
        name: Of what would be written.
        root: Of the checkout or copy that the caller lies in, in case the package was imported from another one.

    Raises:
        InputError: For changed sources, and for those of no commit.
    """
    about, here = provenance.find_commit(), Path(provenance.__file__).resolve().parents[3]
    if about["commit"] is None or about["dirty"] or here != root.resolve():
        of = f"changed since commit {about['commit']}" if about["dirty"] else "of no commit"
        got = f"sources {of}" if here == root.resolve() else f"graphsnd from {here}"
        fix = "Commit the changes. For a machine without the repository use make pack."
        raise InputError(name, "to be made by the unchanged sources of a commit", got, fix)
