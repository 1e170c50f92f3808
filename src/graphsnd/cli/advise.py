"""``graphsnd advise``: what to measure, before measuring it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from graphsnd.cli.options import AsJson


def advise(
    agents: Annotated[int, typer.Option(metavar="N", help="Number of agents.")],
    observations: Annotated[int, typer.Option(metavar="N", help="Number of observations.")],
    goal: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="global: SND itself. local: diversity among neighbours. proxy: a signal inside training.",
        ),
    ] = "global",
    device: Annotated[str, typer.Option(metavar="cpu|cuda", help="Where it will be measured.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Recommend which pairs to measure. Nothing is measured."""
    from graphsnd.estimation import advise as ask

    advice = ask(agents, observations, goal.strip().lower(), device=device)
    typer.echo(json.dumps(advice.to_dict()) if as_json else str(advice))
