"""Fifty agents at three diversities, all pairs against Bernoulli-0.1, audited (section 6.2, appendix D).

At paper scale the logs of the committed runs are read; at the others a smaller study is trained here, with the same
arms in a team of six. A third arm, which the paper does not have, asks four random agents at every observation. Some
things need no training of fifty agents and are measured at their full size: the metric by itself, in a loop and fused;
the edges of the graphs that training draws; what part of a published step its estimates take. A controller that is
wrong on purpose shows what tracking error and audit can tell.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphsnd.training.dico import ControlSettings, ControlTask
from paper.cells import Cells
from paper.control.actions import write_actions
from paper.control.calls import estimate_share, mean_edges, published_share, time_calls
from paper.control.data import Study, assemble, committed
from paper.control.figure import control_figure
from paper.control.logs import History, trained
from paper.control.mistaken import FACTOR, mistaken_study
from paper.control.numbers import BERNOULLI, numbers
from paper.dico_10 import SMALL
from paper.experiment import Experiment, Outcome, Scale
from paper.shared.rollouts import one_thread

COMMITTED = "control/n50"
TARGETS, ARMS, THIRD = (0.12, 0.14, 0.15), ("full", BERNOULLI), "agents:4"
AGENTS, P = 50, 0.1
PUBLISHED = ControlSettings(environments=120)
# Observations of many episodes differ little from one iteration to the next, as in the published runs.
MISTAKEN = SMALL.replace(iterations=20, environments=16, minibatch=400, passes=5, learning_rate=5e-5)
_TINY = SMALL.replace(
    environments=2, steps=25, minibatch=25, passes=2, hidden=(8,), observations=25, audit_observations=50, iterations=4
)


@dataclass(frozen=True)
class Size:
    """A study and what is measured beside it."""

    task: ControlTask
    window: int
    mistaken: ControlSettings
    mistaken_window: int
    loop: int  # observations in the loop over pairs
    trials: int
    edges: tuple[int, int]  # seeds and iterations whose graphs are drawn
    frames: int  # of the minibatch in which estimates are timed


SIZES = {
    Scale.SMOKE: Size(
        ControlTask(6, TARGETS, (*ARMS, THIRD), (0,), settings=_TINY), 2, _TINY, 2, 200, 1, (1, 2), 2
    ),
    Scale.LAPTOP: Size(
        ControlTask(6, TARGETS, (*ARMS, THIRD), (0, 1), settings=SMALL.replace(iterations=25)),
        10, MISTAKEN, 10, 4096, 25, (1, 20), 16,
    ),
    Scale.PAPER: Size(
        ControlTask(AGENTS, TARGETS, (*ARMS, THIRD), (0, 1, 2), settings=PUBLISHED),
        50, MISTAKEN.replace(iterations=60), 20, 4096 * AGENTS, 9, (1, 167), 64,
    ),
}  # fmt: skip


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Read the committed runs, or train a smaller study; then measure what is beside it."""
    size = SIZES[scale]
    histories, actions, sources = _runs(scale, size, cells)
    data = assemble(Study.of(size.task, size.window), histories)
    data |= {"actions": actions, "published": published_share(), **_beside(scale, size, cells)}
    return Outcome(data, numbers(data, scale), data["seeds"], sources)


def _runs(scale: Scale, size: Size, cells: Cells) -> tuple[list[History], list[dict[str, Any]], tuple[str, ...]]:
    if scale is Scale.PAPER:
        return committed(cells, COMMITTED)
    with one_thread():
        histories, folder = trained(size.task, cells, "study")
        actions = cells.get("actions", size.task.to_dict(), lambda: _actions(folder))
    return histories, actions, ()


def _actions(folder: Path) -> list[dict[str, Any]]:
    return write_actions(folder)


def _beside(scale: Scale, size: Size, cells: Cells) -> dict[str, Any]:
    """Cells that are measured here at every scale."""
    wrong = {**asdict(size.mistaken), "window": size.mistaken_window, "agents": 4, "target": 0.12, "factor": FACTOR}
    found = {
        "mistaken": cells.get(
            "mistaken", wrong, lambda: mistaken_study(4, 0.12, size.mistaken, window=size.mistaken_window)
        )
    }
    if scale is Scale.SMOKE:
        return found
    seeds, iterations = size.edges
    drawn: dict[str, Any] = {"seeds": list(range(seeds)), "iterations": iterations, "steps": PUBLISHED.optimiser_steps}
    timed = {"loop": size.loop, "fused": PUBLISHED.observations, "trials": size.trials}
    return found | {
        "edges": cells.get("edges", {"agents": AGENTS, "p": P, **drawn}, lambda: mean_edges(AGENTS, P, **drawn)),
        "timed": cells.get("timed", {"agents": AGENTS, **timed}, lambda: time_calls(AGENTS, [BERNOULLI], **timed)),
        "step": cells.get(
            "step", {"agents": AGENTS, "frames": size.frames, "steps": 4},
            lambda: estimate_share(AGENTS, size.frames, steps=4),
        ),
    }  # fmt: skip


EXPERIMENT = Experiment("dico-50", "Fifty agents at three diversities, full against sampled", run, control_figure)
