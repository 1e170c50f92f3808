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
    agents: Annotated[int, typer.Option(help="Team size, at least 8.")] = 100,
) -> None:
    """Measure a built-in team of 100 agents with four hidden roles.

    Prints its SND and writes the page of [bold]graphsnd measure --html[/bold], and the team itself, into FOLDER.
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
    console.print("\nTry next:")
    file = shlex.quote(str(out / TEAM))
    console.print(f"graphsnd measure {file} --design bernoulli:0.1", soft_wrap=True, markup=False)
    console.print("  SND from a tenth of the pairs, and how sure that is", style="dim")
