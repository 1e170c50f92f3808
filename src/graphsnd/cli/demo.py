"""``graphsnd demo``: the library on a built-in team."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from graphsnd.cli.options import list_written, steps

TEAM = "team.npz"


def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write the page and the team.")] = Path("demo"),
    agents: Annotated[int, typer.Option(metavar="N", help="Team size, at least 8.")] = 100,
) -> None:
    """Measure a built-in team of 100 agents with four hidden roles.

    Prints its SND, and writes into FOLDER the page of graphsnd measure --html and the team itself.
    """
    with steps(2) as step:
        step("measuring")
        from rich.console import Console

        import graphsnd
        from graphsnd.files import write_whole
        from graphsnd.plots.tables import lines_table, summarise

        team = graphsnd.plots.example_team(agents)
        # Names tell the hidden roles to people; no measure reads them.
        names = [f"{team.role_names[int(role)]}-{agent}" for agent, role in enumerate(team.roles)]
        behavior = team.behavior.with_names(names)
        estimate = graphsnd.measure(behavior)
        step("drawing")
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "index.html", graphsnd.plots.report(estimate))
        graphsnd.save_behavior(behavior, out / TEAM)
    console = Console(highlight=False)
    console.print(lines_table(summarise(estimate)))
    list_written([out / "index.html", out / TEAM])
    typer.echo(f"Try next: graphsnd measure {shlex.quote(str(out / TEAM))} --design bernoulli:0.1")
