"""Ten agents held at a diversity of 0.1 by five controllers (section 6.2, figure 3).

DiCo on dispersion with all pairs, nearest neighbours, Bernoulli-0.1 and random regular graphs, and without control. At
paper scale the logs of the committed runs are read and nothing is trained; at the others a smaller study is run here,
with the same arms in a team of six. The metric's cost is timed by itself with ten agents at either scale.

What the paper calls tracking is estimate times scale, which is on target by construction; beside it stands the audit,
SND over all pairs of what acted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphsnd.training.dico import ControlSettings, ControlTask
from paper.cells import Cells
from paper.control.calls import speedups, time_calls
from paper.control.costs import cost_numbers
from paper.control.data import Study, assemble, committed
from paper.control.figure import control_figure
from paper.control.logs import trained
from paper.control.study import of_its_team, seeds_of
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.shared.rollouts import one_thread

COMMITTED = "control/n10"
KNN, BERNOULLI, REGULAR = "knn:3", "bernoulli:0.1", "regular:3"
SPARSE = {"knn": KNN, "bernoulli": BERNOULLI, "regular": REGULAR}
ARMS, TARGETS = ("full", KNN, BERNOULLI, REGULAR), (0.1, "unconstrained")
MINIBATCH = 4096 * 10  # observations that the published metric looks at

# Two cores have room for a small team, few frames and narrow networks; steps are as long as in the preset for CPUs.
SMALL = ControlSettings(
    environments=8, minibatch=200, passes=10, hidden=(32, 32), learning_rate=1e-4, observations=256,
    audit_observations=1024, iterations=30,
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A study, and how the metric is timed beside it."""

    task: ControlTask
    window: int
    trials: int


SIZES = {
    Scale.SMOKE: Size(
        ControlTask(6, TARGETS, ARMS, (0, 1), settings=SMALL.replace(
            environments=2, steps=25, minibatch=25, passes=2, hidden=(8,), observations=25, audit_observations=50,
            iterations=4)),
        2, 3,
    ),
    Scale.LAPTOP: Size(ControlTask(6, TARGETS, ARMS, (0, 1), settings=SMALL), 10, 21),
    Scale.PAPER: Size(ControlTask(10, TARGETS, ARMS, (0, 1, 2)), 10, 51),
}  # fmt: skip


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Read the committed runs, or train a smaller study; time the metric."""
    size = SIZES[scale]
    sources: tuple[str, ...] = ()
    if scale is Scale.PAPER:
        histories, _, sources = committed(cells, COMMITTED)
    else:
        with one_thread():
            histories, _ = trained(size.task, cells, "study")
    data = assemble(Study.of(size.task, size.window), histories)
    arms = list(SPARSE.values())
    about = {"agents": 10, "observations": MINIBATCH, "fused": 2048, "trials": size.trials, "arms": arms}
    data["timed"] = cells.get(
        "timed", about,
        lambda: time_calls(10, arms, loop=MINIBATCH, fused=2048, trials=size.trials),
    )  # fmt: skip
    return Outcome(data, numbers(data, scale), data["seeds"], sources)


def numbers(data: dict[str, Any], scale: Scale) -> dict[str, Number]:
    """What claims are held against; errors of an arm are means over its seeds."""
    cells = {cell["arm"]: cell for cell in data["cells"]}
    found: dict[str, Number] = {}
    for name, arms, key in (
        ("largest_tracking_error", (KNN, BERNOULLI, REGULAR), "tracking_error_of_mean"),
        ("largest_audit_error", (BERNOULLI, REGULAR), "audit_error"),
        ("knn_audit_error", (KNN,), "audit_error"),
        ("full_audit_error", ("full",), "audit_error"),
    ):
        values = [cells[arm][key] for arm in arms if arm in cells]
        if values:
            seeds = seeds_of([cells[arm] for arm in arms if arm in cells], data["wanted_seeds"])
            counted = f"{len(values)} arms" if len(values) == len(arms) else f"{len(values)} of {len(arms)} arms"
            kind = f"largest and range of {counted}, means of {seeds}" if len(arms) > 1 else f"mean of {seeds}"
            found[name] = Number(max(values), min(values), max(values), kind=kind)
    for name, arm in {**SPARSE, "unconstrained": "unconstrained"}.items():
        pair = next((pair for pair in data["pairs"] if pair["arm"] == arm), None)
        if pair is not None and pair["low"] is not None:
            kind = f"95% t interval, {len(pair['differences'])} seeds"
            found[f"reward_difference_{name}"] = Number(pair["mean"], pair["low"], pair["high"], kind=kind)
    found = {name: of_its_team(number, data, 10) for name, number in found.items()}
    return found | _speedups(data, scale) | cost_numbers(data["costs"])


def _speedups(data: dict[str, Any], scale: Scale) -> dict[str, Number]:
    """The smallest over arms; fused from training at paper scale, from calls by themselves elsewhere."""
    if scale is Scale.SMOKE:
        return {}
    loop = speedups(data["timed"], "loop")
    slowest = min(loop, key=lambda arm: loop[arm]["value"])
    trials = f"{slowest}, range of {data['timed']['trials']['loop']} trials"
    found = {"loop_metric_speedup": Number(**loop[slowest], unit="x", kind=trials)}
    if scale is Scale.PAPER:
        fused = {arm: next(iter(ratios.values())) for arm, ratios in data["metric_speedups"].items() if ratios}
        kind = "in training, range of arms"
    else:
        fused = {arm: ratio["value"] for arm, ratio in speedups(data["timed"], "fused").items()}
        kind = "calls by themselves, 2 048 observations, range of arms"
    if fused:
        low, high = min(fused.values()), max(fused.values())
        found["fused_metric_speedup"] = Number(low, low, high, "x", kind)
    return found


EXPERIMENT = Experiment("dico-10", "Ten agents held at a diversity of 0.1", run, control_figure)
