r"""The ablation of graph families as an experiment: sizes, degrees and teams in cells that survive being stopped.

Four kinds of teams see the same graphs:

``initial``: fresh policies on shared observations, equation (1);
``initial-own``: the same policies, each on observations of its own, which is what the paper's code compares;
``trained-s``: the 100 agents that training left behind, on what they saw in their world;
``trained-own-s``: the same, each on uniform noise of its own, the paper's panel of trained policies.

Forwarding indices do not depend on the team, so each drawn graph is routed once. A search that reaches its time limit
leaves certified bounds that are wider, and on another machine may leave others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.metric import pairwise
from paper.cells import Cells
from paper.expanders.facts import Facts, look
from paper.expanders.families import FOUR, SEEDS, SIZES, Family, build, degrees
from paper.expanders.figure import expanders_figure
from paper.expanders.numbers import numbers
from paper.expanders.ratios import Distances, Row, compare
from paper.expanders.small import small_graphs
from paper.expanders.teams import OBSERVATIONS, initial_team, mean_actions, trained_team
from paper.experiment import Experiment, Outcome, Scale

TRAINED, TRAINED_AGENTS = "training/navigation-100", 100
DIGITS = 7  # of the values that are published with the result; numbers are computed before


@dataclass(frozen=True)
class Plan:
    """How much of the ablation."""

    sizes: Sequence[int]
    seeds: Sequence[int]
    observations: int
    families: Sequence[Family]
    routed: Mapping[int, int]  # by size, of how many seeds of every family the forwarding index is computed
    seconds: float  # of each search for it
    trained: Sequence[int]  # seeds of the training runs


_SIX = (*FOUR, Family.UNION, Family.CIRCULANT)
PLANS: dict[Scale, Plan] = {
    Scale.SMOKE: Plan((12,), (0, 1), 64, tuple(Family), {12: 1}, 0.2, (0,)),
    Scale.LAPTOP: Plan(SIZES, SEEDS, OBSERVATIONS, _SIX, {50: 5, 100: 2, 200: 1, 500: 1}, 1.0, (0, 1, 2)),
    Scale.PAPER: Plan(SIZES, SEEDS, OBSERVATIONS, tuple(Family), dict.fromkeys(SIZES, 5), 20.0, (0, 1, 2)),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A team to be measured, looked at only where a cell is missing."""

    label: str
    n: int
    about: dict[str, Any]  # what its behaviour depends on
    behavior: Callable[[], Behavior]

    @cached_property
    def measured(self) -> tuple[Distances, Tensor]:
        """Its distances, and where every agent stands among the actions."""
        with torch.no_grad():
            behavior = self.behavior()
            return Distances.of(pairwise(behavior).double().cpu()), mean_actions(behavior).cpu()

    @property
    def own(self) -> bool:
        """Whether policies see different observations."""
        return "own" in self.label


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Every graph, then every team on every graph."""
    plan = PLANS[scale]
    small = cells.get("small", {"version": 1}, small_graphs)
    teams: dict[str, list[Row]] = {}
    for subject in subjects(plan, cells.results):
        for asked, degree in degrees(subject.n):
            drawn = {f: _drawn(plan, cells, f, subject.n, asked, degree) for f in plan.families if f.drawn}
            settings = {**subject.about, **_settings(plan, subject.n, asked, degree)}
            settings |= {"families": [family.value for family in plan.families]}
            name = f"team={subject.label},n={subject.n},d={degree}"
            found = cells.get(name, settings, partial(_rows, plan, subject, asked, degree, drawn))
            teams.setdefault(subject.label, []).extend(Row(**one) for one in found)
    columns = [field.name for field in fields(Row)]
    values = {label: [[_short(getattr(row, key)) for key in columns] for row in rows] for label, rows in teams.items()}
    data = {"columns": columns, "teams": values, "small": small, "observations": plan.observations}
    read = (f"results/{TRAINED}",) if any(label.startswith("trained") for label in teams) else ()
    return Outcome(data, numbers(teams, small), plan.seeds, read)


def subjects(plan: Plan, results: Path) -> Iterator[Subject]:
    """The teams, one for each size; without trained ones where there are none among the results."""
    for own in (False, True):
        label = "initial-own" if own else "initial"
        for n in plan.sizes:
            about = {"team": label, "observations": plan.observations}
            yield Subject(label, n, about, partial(initial_team, n, observations=plan.observations, own=own))
        for seed in plan.trained:
            folder = results / TRAINED / f"seed-{seed}"
            if folder.is_dir():
                label = f"trained-own-{seed}" if own else f"trained-{seed}"
                about = {"team": label, "observations": plan.observations, "files": _digest(folder)}
                make = partial(trained_team, folder, observations=plan.observations, own=own)
                yield Subject(label, TRAINED_AGENTS, about, make)


def _drawn(plan: Plan, cells: Cells, family: Family, n: int, asked: int, degree: int) -> list[Facts]:
    """The graphs of one family that do not depend on a team."""

    def make() -> list[dict[str, Any]]:
        found = []
        for place, seed in enumerate(plan.seeds):
            graph = build(family, n, degree, seed, torch.empty(0))
            options: dict[str, Any] = {"forwarding": place < plan.routed.get(n, 0), "seconds": plan.seconds}
            found.append(look(graph, family=family.value, degree=degree, asked_degree=asked, seed=seed, **options))
        return [one.to_dict() for one in found]

    settings = {"family": family.value, **_settings(plan, n, asked, degree)}
    return [Facts(**one) for one in cells.get(f"graphs,n={n},d={degree},{family.name.lower()}", settings, make)]


def _rows(
    plan: Plan, subject: Subject, asked: int, degree: int, drawn: Mapping[Family, Sequence[Facts]]
) -> list[dict[str, Any]]:
    """One team on the graphs of one degree; nearest-neighbour graphs are its own and are routed here."""
    distances, positions = subject.measured
    rows = []
    for family in plan.families:
        for facts in drawn.get(family, [None]):
            seed = facts.seed if facts else None
            row = compare(
                distances,
                build(family, subject.n, degree, seed or 0, positions),
                family=family.value,
                degree=degree,
                asked_degree=asked,
                forwarding=subject.n in plan.routed and not subject.own,
                seconds=plan.seconds,
                facts=facts,
            )
            rows.append(row.to_dict())
    return rows


def _settings(plan: Plan, n: int, asked: int, degree: int) -> dict[str, Any]:
    routed = plan.routed.get(n, 0)
    about = {"n": n, "asked": asked, "degree": degree, "seeds": list(plan.seeds), "routed": routed}
    return {**about, "seconds": plan.seconds if routed else None}


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.iterdir() if path.suffix == ".safetensors")
    return sha256(b"".join(sha256(path.read_bytes()).digest() for path in files)).hexdigest()[:16]


def _short(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


EXPERIMENT = Experiment("expanders", "Graph families at equal numbers of edges", run, expanders_figure)
