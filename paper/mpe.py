"""Does the graph layer carry over to discrete actions? Ten agents of simple_spread, total variation (Appendix C).

Independent PPO with the constants of the preset ``simple_spread``: 20 rollouts of 25 cycles per iteration, hidden
layers 64-64 with ReLU and the initialisation of ``torch.nn.Linear``, Adam at 3e-4, 4 epochs, minibatches of 256 of the
500 samples of an agent, discount 0.99, lambda 0.95, clip 0.2, entropy bonus 0.01, gradient norm 0.5 for each agent. All
agents learn from the same 20 rollouts, and every reward of these is used.

Policies are compared on the pooled observations of all agents in a rollout of their own, as equation (1) says. The
protocol behind the paper's table is measured too. Its only "observation" is a vector of standard normal noise that no
agent ever sees.

For the Python loop a graph is drawn in the simple way: a random number for every pair, or networkx. For ten agents this
is many times faster than the builders of the fused call, which are made for large graphs.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import networkx as nx
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior import Categorical
from graphsnd.designs.design import Bernoulli, Regular
from graphsnd.errors import plural
from graphsnd.metric import pairwise
from graphsnd.plots.style import BLUE, GREEN, INK, ORANGE, VERMILLION, styled_figure
from graphsnd.rl import PRESETS, Task, Trainer
from graphsnd.rl.streams import hashed
from paper.experiment import Z95, Experiment, Number, Outcome, Scale
from paper.mpe_panel import DESIGNS, DRAW_SEED, QUARTER, RINGS, TENTH, THRESHOLD, PanelRow, TeamRow, measure_seed
from paper.runner import Cells, train_cell
from paper.shared.calls import Call, Pairs, all_pairs, fused_call, loop_call, loop_mean, some_pairs
from paper.shared.rollouts import observe, one_thread, pooled
from paper.shared.stopwatch import speedup, take_turns

AGENTS = 10
REGIMES, PROTOCOLS = ("trained", "random-init"), ("rollout", "noise")
ROLLOUT_SEED, NOISE_SEED, GRAPH_SEED, WARM_CALLS = 42, 66, 77, 3
# Regime and protocol, their label, colour, marker, and horizontal offset.
TEAMS = (
    ("trained", "rollout", "trained, rollouts", BLUE, "o", -0.27),
    ("trained", "noise", "trained, one noise vector", VERMILLION, "s", -0.09),
    ("random-init", "rollout", "untrained, rollouts", GREEN, "^", 0.09),
    ("random-init", "noise", "untrained, one noise vector", ORANGE, "D", 0.27),
)
# The paper's table: share beyond 0.05 for trained policies, in the order of the designs.
PAPER_SHARES = (0.6252, 0.3757, 0.2302)
# Table 5: mean milliseconds of a call, trained and random-init; that of all pairs is 4.87 and 4.86 times the first.
CALLS = ("all pairs", "bernoulli:0.1", "bernoulli:0.25", "regular:2")
PAPER_MS = {"": (0.307, 0.063, 0.107, 0.158), "_initial": (0.306, 0.063, 0.106, 0.143)}


@dataclass(frozen=True)
class Size:
    """The amount of work at one scale."""

    iterations: int
    environments: int  # number of rollouts per iteration
    seeds: tuple[int, ...]
    draws: int
    trials: int  # number of timed trials


SIZES = {
    Scale.SMOKE: Size(iterations=2, environments=4, seeds=(0,), draws=100, trials=5),
    Scale.LAPTOP: Size(iterations=200, environments=20, seeds=(0, 1, 2), draws=2000, trials=200),
    Scale.PAPER: Size(iterations=500, environments=20, seeds=(0, 1, 2), draws=2000, trials=500),
}


@dataclass(frozen=True)
class CallTime:
    """The time of all pairs over that of one call, both in a loop or both fused."""

    speedup: Number
    mean_s: float


@dataclass(frozen=True)
class Times:
    """Calls named ``"loop, all pairs"``, ``"loop, bernoulli:0.1"``, ``"fused, all pairs"`` and so on."""

    rollout: dict[str, CallTime]
    noise: dict[str, CallTime]


@dataclass(frozen=True)
class Data:
    """Panel and times."""

    panel: list[PanelRow]
    times: Times

    def select(self, regime: str | None, protocol: str, design: Bernoulli | Regular | None = None) -> list[PanelRow]:
        """Return rows of the panel; None selects all."""
        rows = [row for row in self.panel if row.protocol == protocol and regime in (None, row.regime)]
        return [row for row in rows if design is None or row.estimator == str(design)]


def run(scale: Scale, cells: Cells) -> Outcome:
    """Train, evaluate the policies, measure on random graphs, and time the calls."""
    size, task = SIZES[scale], make_task(SIZES[scale])
    about = {**task.to_dict(), "seeds_of_rollout_and_noise": [ROLLOUT_SEED, NOISE_SEED]}
    with one_thread():
        teams = cells.get("teams", about, partial(measure_teams, task, cells), list[TeamRow])
        drawn = {**about, "draws": size.draws, "draw_seed": DRAW_SEED}
        panel = []
        for seed in size.seeds:
            make = partial(measure_seed, teams, seed, size.draws)
            panel += cells.get(f"panel,seed={seed}", drawn, make, list[PanelRow])
        timed = {**about, "trials": size.trials, "graph_seed": GRAPH_SEED}
        times = cells.get("times", timed, partial(measure_times, task, cells, size.trials), Times)
    data = Data(panel, times)
    return Outcome(data, summarise(data), size.seeds)


def make_task(size: Size) -> Task:
    """Return the training of a scale.

    Example:
        >>> make_task(SIZES[Scale.PAPER]).settings.samples
        500
    """
    spread = PRESETS["simple_spread"]
    settings = spread.settings.replace(iterations=size.iterations, environments=size.environments)
    return Task(spread.world, AGENTS, spread.options, size.seeds, settings=settings)


def measure_teams(task: Task, cells: Cells) -> list[TeamRow]:
    """Train, and compute the distances of all teams, before and after, on both kinds of observations."""
    trained = train_cell(task, cells, "training")
    initial = Trainer(task.make_world("cpu"), task.settings, seeds=task.seeds)
    rows = []
    for regime, trainer in zip(REGIMES, (trained, initial), strict=True):
        for seed in task.seeds:
            for protocol in PROTOCOLS:
                distances = pairwise(answer(trainer, seed, protocol), graph=graphs.complete(AGENTS)).double()
                rows.append(TeamRow(regime, seed, protocol, distances.tolist()))
    return rows


@torch.no_grad()
def answer(trainer: Trainer, seed: int, protocol: str) -> Categorical:
    """Return the behaviour of a seed's policies on the observations of a protocol.

    Args:
        trainer: Trainer, before or after training.
        seed: Seed of one of its runs.
        protocol: ``"rollout"``, all observations of all agents in as many episodes as training has in an iteration, or
            ``"noise"``, one vector of standard normal numbers.
    """
    team, world = trainer.team(seed), trainer.world
    if protocol == "rollout":
        seen = observe(team, world, steps=trainer.settings.steps, seed=ROLLOUT_SEED + seed)
        observations = pooled(seen, seen.numel())
    else:
        observations = torch.randn(1, world.observation_features, generator=hashed(NOISE_SEED, seed))
    behavior = team.evaluate(observations)
    assert isinstance(behavior, Categorical)
    return behavior


def measure_times(task: Task, cells: Cells, trials: int) -> Times:
    """Time the calls on the trained team of the first seed, on both kinds of observations."""
    trainer = train_cell(task, cells, "training")
    return Times(*(time_calls(answer(trainer, task.seeds[0], name), trials) for name in PROTOCOLS))


def time_calls(team: Categorical, trials: int) -> dict[str, CallTime]:
    """Time all pairs and every graph of the panel, drawn inside the timed part; all calls take turns."""
    timed = take_turns(make_calls(team), trials=trials, warm=WARM_CALLS)
    times = {}
    for name, timing in timed.items():
        whole = timed[f"{name.partition(',')[0]}, all pairs"]
        # Medians, because other programs disturb calls of microseconds.
        ratio = speedup(whole.seconds, timing.seconds, medians=True)
        times[name] = CallTime(ratio, statistics.fmean(timing.seconds))
    return times


def make_calls(team: Categorical) -> dict[str, Call]:
    """Return the calls that take turns."""
    n, probs = team.agents, team.probs.flatten(0, -3).transpose(0, 1).contiguous()  # a tensor for every agent
    everyone, mean = all_pairs(n).tolist(), partial(loop_mean, partial(total_variation, probs))
    calls = {"loop, all pairs": loop_call(mean, lambda: everyone), "fused, all pairs": fused_call(team)}
    for place, design in enumerate(DESIGNS):
        calls[f"loop, {design}"] = loop_call(mean, _draw_for_loop(design, n, place))
        calls[f"fused, {design}"] = fused_call(team, partial(design.draw, n, hashed(GRAPH_SEED, place)))
    return calls


def total_variation(probs: Tensor, i: int, j: int) -> float:
    """Return the mean total variation of two agents.

    Args:
        probs: ``[agents, observations, actions]``.
        i: One agent.
        j: The other.

    Example:
        >>> total_variation(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]]), 0, 2)
        0.5
    """
    return (probs[i] - probs[j]).abs().sum(dim=-1).mean().item() / 2


def _draw_for_loop(design: Bernoulli | Regular, n: int, place: int) -> Callable[[], Pairs]:
    if isinstance(design, Bernoulli):
        return partial(some_pairs, all_pairs(n), design.p, np.random.default_rng((GRAPH_SEED, place)))
    source = random.Random(GRAPH_SEED)
    return lambda: list(nx.random_regular_graph(RINGS.degree, n, seed=source).edges)


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run. Speed-ups of the loop are in the paper's setting, one observation."""
    noise = {design: data.select("trained", "noise", design) for design in DESIGNS}
    shares = {design: [row.violations for row in rows] for design, rows in noise.items()}
    violations = {design: Number.range(own, "seeds", pick=statistics.fmean) for design, own in shares.items()}
    real = statistics.fmean(row.violations for row in data.select("trained", "rollout", TENTH))
    initial, trained = data.select("random-init", "noise"), data.select("trained", "noise")
    scores = [abs(row.bias) / row.bias_error for row in data.select(None, "rollout") if row.bias_error]
    below = violations[TENTH].value
    return {
        "noise_violation_bernoulli_010": violations[TENTH],
        "noise_violation_bernoulli_025": violations[QUARTER],
        "noise_violation_regular_2": violations[RINGS],
        "noise_violation_initial": Number.range(row.violations for row in initial),
        "real_over_noise_violation": Number(real / below, kind="means over seeds") if below else None,
        "noise_bias_bernoulli_010": _largest_bias(noise[TENTH]),
        "noise_bias_bernoulli_025": _largest_bias(noise[QUARTER]),
        "noise_bias_regular_2": _largest_bias(noise[RINGS]),
        "noise_bias_initial": _largest_bias(initial),
        "real_largest_z": Number(max(scores), kind=f"largest of {len(scores)}"),
        "hoeffding_violation": Number.range(row.hoeffding_violations_largest for row in data.panel),
        "radius_over_threshold": Number.range(
            (row.radius / THRESHOLD for row in trained), "teams and graphs", pick=min
        ),
        "loop_speedup_bernoulli_010": data.times.noise[f"loop, {TENTH}"].speedup,
        "loop_speedup_bernoulli_025": data.times.noise[f"loop, {QUARTER}"].speedup,
        "loop_speedup_regular_2": data.times.noise[f"loop, {RINGS}"].speedup,
        **_compare_times(data.times),
        "fused_speedup_bernoulli_010": data.times.rollout[f"fused, {TENTH}"].speedup,
        "disconnected_share_regular_2": _disconnected(data.select("trained", "rollout", RINGS)),
    }


def _compare_times(times: Times) -> dict[str, Number]:
    """Return our times of the loop over the paper's; a time does not depend on the policies."""
    milliseconds, numbers = [1000 * times.noise[f"loop, {call}"].mean_s for call in CALLS], {}
    for name, paper in PAPER_MS.items():
        over = (ms / one for ms, one in zip(milliseconds, paper, strict=True))
        numbers[f"loop_time_over_paper{name}"] = Number.range(over, "calls", unit="x")
    return numbers


def _largest_bias(rows: Sequence[PanelRow]) -> Number:
    """Return the largest absolute bias with its 95% interval."""
    row = max(rows, key=lambda one: abs(one.bias))
    size, reach = abs(row.bias), Z95 * row.bias_error
    return Number(size, max(0.0, size - reach), size + reach, kind=f"largest of {len(rows)}, its 95% interval")


def _disconnected(rows: Sequence[PanelRow]) -> Number:
    # The same graphs serve all teams of a seed.
    share, draws = statistics.fmean(row.disconnected for row in rows), sum(row.draws for row in rows)
    reach = Z95 * math.sqrt(share * (1 - share) / draws)
    return Number(share, max(0.0, share - reach), min(1.0, share + reach), kind=f"95% interval, {draws} graphs")


def draw(data: Data) -> Figure:
    """Draw the share of draws beyond 0.05: seeds and their mean, beside the paper's."""
    with styled_figure(7.4, 4.9) as figure:
        ax = figure.subplots()
        for regime, protocol, label, colour, marker, shift in TEAMS:
            for place, design in enumerate(DESIGNS):
                values, x = [row.violations for row in data.select(regime, protocol, design)], place + shift
                ax.plot([x] * len(values), values, marker, color=colour, markersize=4, alpha=0.45, markeredgewidth=0)
                named = label if place == 0 else None
                ax.plot(x, statistics.fmean(values), marker, color=colour, markersize=7.5, label=named)
        ends = ([k + side for k in range(len(PAPER_SHARES))] for side in (-0.4, 0.4))
        ax.hlines(PAPER_SHARES, *ends, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label="the paper: trained")
        ax.set(xlim=(-0.5, len(DESIGNS) - 0.5), ylim=(-0.03, 1), ylabel=f"share of draws off by over {THRESHOLD:g}")
        ax.set_xticks(range(len(DESIGNS)), map(str, DESIGNS))
        ax.grid(axis="y")
        seeds = len({row.seed for row in data.panel})
        title = f"{data.panel[0].draws:,} draws for each of {seeds} {plural('seed', seeds)}"
        figure.legend(*ax.get_legend_handles_labels(), ncols=2, loc="outside lower center", title=title)
        return figure


TITLE = "Ten agents with discrete actions: simple_spread and total variation"
EXPERIMENT = Experiment("mpe", TITLE, run, draw, Data)
