"""``graphsnd advise``: what to measure, before measuring it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsnd.cli import options as shared
from graphsnd.cli.measure import DISTANCE_HELP, DISTANCES, parse_distance
from graphsnd.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from graphsnd.estimation import Advice

GOALS = "[cyan]global[/cyan] (SND itself), [cyan]local[/cyan] (among neighbours), [cyan]proxy[/cyan] (inside training)."


def advise(
    agents: Annotated[int | None, typer.Option(show_default="that of --file", help="Number of agents.")] = None,
    observations: Annotated[
        int | None, typer.Option(show_default="that of --file", help="Number of observations.")
    ] = None,
    goal: Annotated[str, typer.Option(metavar="GOAL", help=f"What the number is for: {GOALS}")] = "global",
    rel_tol: Annotated[float, typer.Option(help="Tolerated error, relative to SND.")] = 0.01,
    confidence: Annotated[float, typer.Option(help="Probability that the error stays within it, in (0, 1).")] = 0.95,
    policy_cost: Annotated[
        float, typer.Option(help="Multiply-adds of a policy on an observation; 0 when all have been evaluated.")
    ] = 0.0,
    same_pairs: Annotated[
        bool, typer.Option("--same-pairs", help="A proxy that keeps its pairs at every call.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A team at some observations, to measure instead of assuming.")
    ] = None,
    max_bytes: shared.MaxBytes = 2**33,
    distance: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=DISTANCES, help=f"With --file. {DISTANCE_HELP}")
    ] = None,
    distance_spread: Annotated[float, typer.Option(help="Assumed spread of distances over pairs / SND.")] = 0.5,
    observation_spread: Annotated[
        float, typer.Option(help="Assumed spread of diversity over observations / SND.")
    ] = 0.3,
    d_max_ratio: Annotated[float, typer.Option(help="Assumed largest distance / SND; 0 when no bound is known.")] = 4.0,
    as_json: shared.AsJson = False,
) -> None:
    """Say which graph or design to use for a team, what it will cost, and why not another.

    Nothing is measured, unless a FILE is given: then a few pairs at a few observations replace the assumptions about
    how much the distances vary.
    """
    from graphsnd.cli.files import read_team
    from graphsnd.estimation import advise as ask

    pilot = None if file is None else read_team(file, max_bytes=max_bytes).evaluate()
    if distance is not None and pilot is None:
        raise InputError("--distance", "only with --file: its cost depends on the behaviours", repr(distance))
    agents = _require("--agents", agents, None if pilot is None else pilot.agents)
    observations = _require("--observations", observations, None if pilot is None else pilot.observations)
    advice = ask(
        agents,
        observations,
        goal.strip().lower(),
        rel_tol=rel_tol,
        confidence=confidence,
        same_pairs=same_pairs,
        policy_cost=policy_cost,
        distance_spread=distance_spread,
        observation_spread=observation_spread,
        d_max_ratio=d_max_ratio or None,
        device=device,
        pilot=pilot,
        distance=parse_distance(distance),
    )
    if as_json:
        typer.echo(json.dumps(advice.to_dict(), allow_nan=False))
        return
    _show(advice, agents, observations, rel_tol)


def _require(option: str, given: int | None, held: int | None) -> int:
    """Return what was given, or what the file holds."""
    size = held if given is None else given
    if size is None:
        raise InputError(option, "or a FILE", "neither", f"Write {option} 100, or --file team.npz.")
    return size


def _show(advice: Advice, agents: int, observations: int, rel_tol: float) -> None:
    from rich.console import Console
    from rich.text import Text

    from graphsnd.plots.tables import lines_table

    console = Console()
    head = f"{agents:,} agents, {observations:,} observations, goal {advice.goal}"
    console.print(Text(f"\n{head}" + ("" if advice.goal == "local" else f" within ±{rel_tol:.3g} x SND")))
    console.print(_table(advice))
    lines = [("use", f"{advice.recommended.name}: {advice.guarantee}"), ("run", advice.call)]
    lines += [("or, with policies", advice.call_policies), ("because", advice.recommended.why)]
    lines += [("assuming that", assumption) for assumption in advice.assumptions]
    console.print(lines_table([*lines, *((f"not {one.name}", one.why) for one in advice.rejected)]))


def _table(advice: Advice) -> Table:
    """Return the table of all options, the recommended one first and marked."""
    from graphsnd.estimation.advice import percent
    from graphsnd.plots.formatting import format_count
    from graphsnd.plots.tables import table

    caption = "work: multiply-adds of the sweep over all pairs that take as long"
    columns = ("", "what to measure", "distances", "policies", "work", "guaranteed", "typical")
    made = table(columns, align="<<>", caption=caption)
    for at, one in enumerate((advice.recommended, *advice.rejected)):
        counts = [format_count(count) for count in (one.cost.distances, one.cost.evaluations, one.cost.work)]
        errors = [error if error[0].isalpha() else f"±{error}" for error in map(percent, (one.radius, one.typical))]
        style = "bold green" if at == 0 else "" if one.met else "dim"
        made.add_row("→" if at == 0 else "", one.name, *counts, *errors, style=style)
    return made
