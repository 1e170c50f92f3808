"""``graphsnd advise``: what to measure, before measuring it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from graphsnd.cli import options as shared

GOALS = "[cyan]global[/cyan] (SND itself), [cyan]local[/cyan] (among neighbours), [cyan]proxy[/cyan] (inside training)."


def advise(
    agents: Annotated[int, typer.Option(help="Number of agents.")],
    observations: Annotated[int, typer.Option(help="Number of observations.")],
    goal: Annotated[str, typer.Option(metavar="GOAL", help=f"What the number is for: {GOALS}")] = "global",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    as_json: shared.AsJson = False,
) -> None:
    """Say which pairs to measure for a team of this size, and why. Nothing is measured."""
    from graphsnd.estimation import advise as ask

    advice = ask(agents, observations, goal.strip().lower(), device=device)
    typer.echo(json.dumps(advice.to_dict()) if as_json else str(advice))
