"""``graphsnd demo``: the library on a built-in team."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsnd.cli.options import steps
from graphsnd.errors import printable

if TYPE_CHECKING:
    from graphsnd.plots.study import Study

STEPS = 17  # the stages of run_study() and the files of write_demo(), for the bar


def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write the figures and the page.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the team and of the graphs.")] = 0,
    agents: Annotated[int, typer.Option(help="Team size, at least 8.")] = 100,
    observations: Annotated[int, typer.Option(help="Number of observations, shared by all agents.")] = 2000,
) -> None:
    """Measure a built-in team of 100 agents with four hidden roles.

    Prints exact SND, estimates from sampled graphs with their intervals, and each agent's share. Writes figures, one
    self-contained page, and the team itself as team.npz into FOLDER.
    """
    with steps(STEPS) as step:
        step("loading")
        from graphsnd import plots
        from graphsnd.plots.demo import write_demo
        from graphsnd.plots.study import run_study

        step("team")
        team = plots.example_team(agents, observations, seed)
        study = run_study(team, seed=seed, step=step)
        command = f"graphsnd demo --seed {seed} --agents {agents} --observations {observations}"
        written = write_demo(study, out, command, step=step)
    _show(study, written)


def _show(study: Study, written: list[Path]) -> None:
    from rich.console import Console

    from graphsnd.plots.tables import agents_table, estimates_table, roles_table

    console = Console(highlight=False)

    def head(title: str) -> None:
        console.print()
        console.rule(f"[bold]{title}[/bold]", align="left", style="dim")

    e = study.exact.estimate
    head("A team with hidden roles")
    console.print(f"{e.agents} agents with Gaussian policies, four hidden roles.\n[bold]{e}[/bold]")
    head("Every graph, beside the truth")
    console.print(estimates_table(study))
    console.print(
        "The guaranteed interval holds for every team and is wide for that reason. The asymptotic one is narrow "
        "and relies on a large sample. The rows in italics are exact, but the graph defines another measure, of "
        "diversity among neighbours or within roles: they do not estimate SND.",
        style="dim",
    )
    head("Whose diversity it is")
    console.print(agents_table(study))
    console.print(roles_table(study))
    console.print(
        f"Cut into {len(study.team.role_names)} branches, the tree of distances puts "
        f"[bold]{study.recovered:.0%}[/bold] of the agents with their role; the measure never saw the roles."
    )
    head("Written")
    page, team, *pictures = written
    console.print(f"{printable(str(page))}  everything on one page", markup=False)
    console.print(
        f"{printable(str(team))}  the team: what each agent would do, where it stands, its name", markup=False
    )
    console.print(f"{', '.join(path.name for path in pictures)} beside them", style="dim")
    head("Try next")
    file, report = (shlex.quote(str(path)) for path in (team, team.with_name("report.html")))
    for words, why in (
        (f"{file} --html {report}", "who differs from whom, on a page"),
        (f"{file} --design {study.sampled[1].spec}", "SND from a tenth of the pairs, and how sure that is"),
        (f"{file} --design knn:5", "diversity among neighbours, by their positions"),
    ):
        console.print(f"graphsnd measure {words}", soft_wrap=True, markup=False)
        console.print(f"  {why}", style="dim")
