"""``graphsnd bench``: how fast exact SND is on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import typer

from graphsnd.cli import options as shared

AGENTS = (10, 50, 100, 500)
OBSERVATIONS = 256
ROUNDS = 5


def bench(
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")] = "auto",
    as_json: shared.AsJson = False,
) -> None:
    """Time exact SND on this machine, next to torch.cdist.

    Gaussian teams of several sizes; both take turns, so a busy moment slows both. Takes a few seconds.
    """
    import torch

    from graphsnd.plots.provenance import collect_provenance

    where = torch.device(shared.parse_device(device))
    teams = [time_team(agents, where) for agents in AGENTS]
    if as_json:
        about = collect_provenance(f"graphsnd bench --device {where.type}", 0)
        typer.echo(json.dumps(about | {"device": where.type, "observations": OBSERVATIONS, "teams": teams}))
        return
    _show(teams, where.type)


def time_team(agents: int, device: Any) -> dict[str, Any]:
    """Return the median seconds of exact SND and of torch.cdist for a random Gaussian team, taking turns."""
    import torch

    from graphsnd import Gaussian, snd

    generator = torch.Generator().manual_seed(0)
    loc, scale = (torch.rand(OBSERVATIONS, agents, 2, generator=generator).to(device) + 0.1 for _ in range(2))
    team, points = Gaussian(loc, scale), torch.cat([loc, scale], dim=-1)  # whose distance is 2-Wasserstein
    contestants: dict[str, Callable[[], float]] = {
        "snd": lambda: float(snd(team)),
        "cdist": lambda: float(torch.cdist(points, points).sum(dim=(1, 2)).mean()) / (agents * (agents - 1)),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(1 + ROUNDS):  # the first compiles
        for name, call in contestants.items():
            begin = perf_counter()
            call()  # returns a Python number, so a GPU has finished
            times[name].append(perf_counter() - begin)
    return {"agents": agents, **{f"{name}_s": median(seconds[1:]) for name, seconds in times.items()}}


def _show(teams: list[dict[str, Any]], device: str) -> None:
    from rich.console import Console

    from graphsnd.plots.formatting import format_duration, format_ratio
    from graphsnd.plots.tables import table

    rows = []
    for team in teams:
        exact, cdist = team["snd_s"], team["cdist_s"]
        times = (format_duration(exact), format_duration(cdist), format_ratio(cdist / exact))
        rows.append((f"{team['agents']:,}", f"{team['agents'] * (team['agents'] - 1) // 2:,}", *times))
    console = Console(highlight=False)
    console.print(table(("agents", "pairs", "exact SND", "torch.cdist", "cdist / SND"), rows, align=">"))
    largest = teams[-1]
    console.print(
        f"All pairs of {largest['agents']} agents on {OBSERVATIONS} observations take "
        f"{format_duration(largest['snd_s'])} on this {device}: sampling pairs cannot save more than that."
    )
