"""``graphsnd compare``: two teams on the same observations."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from graphsnd.cli import options as shared
from graphsnd.errors import InputError


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A file of actions, or a saved team.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another one.")],
    observations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For two saved teams, unless they lie beside the first.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Coverage of the interval, in (0, 1).")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the test.")] = 0,
    as_json: shared.AsJson = False,
) -> None:
    """Compare the SND of two teams on the same observations: a paired interval over observations, and a test.

    Both are over episodes where a file has [cyan]clusters[/cyan].
    """
    import graphsnd
    from graphsnd.cli.files import read_team
    from graphsnd.teams.saved import OBSERVATIONS

    for name, path in (("FIRST", first), ("SECOND", second)):
        if not path.exists():
            raise InputError(name, "to be a file or a folder", repr(str(path)))
    beside = observations or (first / OBSERVATIONS if first.is_dir() else None)
    one = read_team(first, observations)
    two = read_team(second, beside if second.is_dir() else None)
    clusters = one.clusters if one.clusters is not None else two.clusters
    found = graphsnd.compare(one.evaluate(), two.evaluate(), clusters=clusters, confidence=confidence, seed=seed)
    typer.echo(json.dumps(dataclasses.asdict(found), allow_nan=False) if as_json else str(found))
