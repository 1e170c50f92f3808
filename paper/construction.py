r"""How long the graphs themselves take to build, compared with the metric that uses them.

Proposition 6 counts distances and leaves out the cost of the graph; the paper's table gives its time. Here the builders
take turns in blocks of calls, and the fastest call of a block counts. The metric on as many agents is timed after them,
because it would empty their caches: :func:`graphsnd.snd` over all pairs, :func:`graphsnd.graph_snd` on an existing
graph, and the Python loop over all pairs. All calls have one thread. Times are processor times, which leave out waiting
for other programs. All graphs have about :math:`|E| = nd/2` edges with :math:`d = \lceil \log_2 n \rceil`: Bernoulli
graphs on average, and nearest-neighbour graphs (the undirected union with k = d) a few more. The row of 10 000 agents
is not in the paper.

The paper's table is about plain numpy, torch and networkx. So the same four graphs, written in a few lines of those
libraries, take turns with ours. The plain versions return bare arrays of pairs. Ours are checked, sorted and free of
repetitions, and our random regular graphs with few edges are uniformly distributed.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.figures import make_log
from benchmarks.provenance import processor_name
from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.plots.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, VERMILLION, styled_figure
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.runner import Cells
from paper.shared.calls import Answers, Call, all_pairs, distance, fused_call, loop_call, loop_mean
from paper.shared.drawing import error_bars
from paper.shared.rollouts import one_thread
from paper.shared.stopwatch import CPU, Fastest, Timing, median_time, speedup, take_turns

SEED, ACTIONS, OBSERVATIONS = 0, 2, 4096
LOOP_AGENTS, LOOP_PAIRS, BLOCK = 20, 100, 6
LARGE = 500
# The paper's table of medians, in milliseconds: our times are divided by these; they are never a result.
PAPER_MS: dict[str, dict[int, float]] = {
    "bernoulli": {50: 0.016, 100: 0.036, 500: 0.875},
    "uniform": {50: 0.014, 100: 0.022, 500: 0.440},
    "regular": {50: 0.159, 100: 0.345, 500: 2.352},
    "knn": {50: 0.370, 100: 0.734, 500: 4.091},
}
BUILDERS, TABLE = tuple(PAPER_MS), tuple(PAPER_MS["knn"])  # names of the builders, and the table's team sizes
ORDER = ("uniform", "bernoulli", "regular", "knn")  # the table's order of speed, the fastest first
# Label of each call in the figure, colour, marker and line.
LOOKS = {
    "loop": ("SND, Python loop", MUTED, "X", "--"),
    "snd": ("SND, graphsnd", VERMILLION, "D", "--"),
    "graph_snd": ("Graph-SND, graphsnd", INK, "P", "--"),
    "knn": ("exact nearest neighbours", PURPLE, "v", "-"),
    "regular": ("random regular", BLUE, "o", "-"),
    "bernoulli": ("Bernoulli", ORANGE, "s", "-"),
    "uniform": ("uniform sample", GREEN, "^", "-"),
}


@dataclass(frozen=True)
class Size:
    """A team size, its degree, and how it is timed."""

    n: int
    degree: int
    trials: int
    metric_trials: int = 20
    observations: int = OBSERVATIONS  # observations of the fused calls; with fewer their time is scaled up


@dataclass(frozen=True, kw_only=True)
class Row(Size):
    """One size, timed."""

    calls: dict[str, Timing]  # every builder, "plain ..." at the paper's sizes, "snd", "graph_snd" and "loop"


@dataclass(frozen=True)
class Data:
    """All sizes."""

    sizes: list[Row]


_TABLE = (Size(50, 6, 50), Size(100, 7, 50), Size(500, 9, 20))
SIZES: dict[Scale, Sequence[Size]] = {
    Scale.SMOKE: (Size(50, 6, 3, 3, 256), Size(100, 7, 3, 3, 256)),
    Scale.LAPTOP: (*_TABLE, Size(10_000, 14, 20, 3, 16)),
    Scale.PAPER: (*_TABLE, Size(10_000, 14, 20, 5, 16)),
}


def run(scale: Scale, cells: Cells) -> Outcome:
    """Time builders and metric at every size, on the CPU."""
    maker = {"maker": processor_name()}
    rows = [cells.get(f"n={size.n}", asdict(size) | maker, partial(measure, size), Row) for size in SIZES[scale]]
    return Outcome(Data(rows), summarise(Data(rows)), (SEED,))


def measure(size: Size) -> Row:
    """Time the builders and then the metric at one size, with one thread.

    Example:
        >>> calls = measure(Size(50, 6, 2, 2, 16)).calls
        >>> calls["regular"].pairs, calls["snd"].whole, calls["loop"].whole
        ([150, 150], 256.0, 12.25)
    """
    parts = OBSERVATIONS / size.observations
    whole = {"snd": parts, "graph_snd": parts, "loop": math.comb(size.n, 2) / LOOP_PAIRS}
    with one_thread():
        builders = builder_calls(size)
        if size.n <= LARGE:  # the plain builders list all pairs
            builders |= {f"plain {name}": call for name, call in plain_calls(size).items()}
        clock = Fastest(CPU)
        timed = take_turns(builders, trials=size.trials, clock=clock, block=BLOCK, warm=1)
        timed |= take_turns(metric_calls(size), trials=size.metric_trials, clock=clock, warm=1)
        calls = {name: replace(timing, whole=whole.get(name, 1.0)) for name, timing in timed.items()}
        return Row(**vars(size), calls=calls)


def builder_calls(size: Size) -> dict[str, Call]:
    """Return the paper's four builders; positions are standard normal, with one dimension for each action."""
    n, edges = size.n, size.n * size.degree // 2
    generator = torch.Generator().manual_seed(SEED)
    positions = torch.randn(n, ACTIONS, generator=generator)
    return {
        "bernoulli": lambda: graphs.bernoulli(n, edges / math.comb(n, 2), seed=generator).m,
        "uniform": lambda: graphs.uniform(n, edges, seed=generator).m,
        "regular": lambda: graphs.random_regular(n, size.degree, seed=generator).m,
        "knn": lambda: graphs.knn(positions, size.degree).m,
    }


def plain_calls(size: Size) -> dict[str, Call]:
    """Return the four builders in plain numpy, torch and networkx."""
    n, edges, pairs = size.n, size.n * size.degree // 2, math.comb(size.n, 2)
    source, plain = np.random.default_rng(SEED), random.Random(SEED)  # networkx is slow with a NumPy generator
    positions = torch.randn(n, ACTIONS, generator=torch.Generator().manual_seed(SEED))

    def take(chosen: np.ndarray[Any, Any]) -> int:
        return len(torch.triu_indices(n, n, 1).T[torch.from_numpy(chosen)])

    def knn() -> int:
        apart = torch.cdist(positions, positions).fill_diagonal_(math.inf)
        near = apart.topk(size.degree, largest=False).indices
        both = torch.stack([torch.arange(n)[:, None].expand_as(near), near], -1).flatten(0, 1)
        return len(both.sort(-1).values.unique(dim=0))

    return {
        "bernoulli": lambda: take(source.random(pairs) < edges / pairs),
        "uniform": lambda: take(source.choice(pairs, edges, replace=False)),
        "regular": lambda: len(np.array(nx.random_regular_graph(size.degree, n, seed=plain).edges)),
        "knn": knn,
    }


def metric_calls(size: Size) -> dict[str, Call]:
    """Return the calls of the metric. The loop is timed on pairs of a few agents: all pairs take the same time."""
    generator = torch.Generator().manual_seed(SEED)
    team, few = (_team(n, o, generator) for n, o in ((size.n, size.observations), (LOOP_AGENTS, OBSERVATIONS)))
    graph = graphs.random_regular(size.n, size.degree, seed=SEED)
    pairs = all_pairs(LOOP_AGENTS)[:LOOP_PAIRS].tolist()
    return {
        "snd": fused_call(team),
        "graph_snd": fused_call(team, lambda: graph),
        "loop": loop_call(partial(loop_mean, partial(distance, Answers.of(few))), lambda: pairs),
    }


def _team(n: int, observations: int, generator: torch.Generator) -> Gaussian:
    shape = (observations, n, ACTIONS)
    return Gaussian(torch.randn(shape, generator=generator), torch.rand(shape, generator=generator) + 0.1)


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run."""
    calls = {row.n: row.calls for row in data.sizes}
    if not set(TABLE) <= set(calls):
        return {}
    ours, plain = ([calls[n][kind + name].seconds for n in TABLE for name in BUILDERS] for kind in ("", "plain "))
    over = [speedup(*both, medians=True) for both in zip(ours, plain, strict=True)]
    return {
        "knn_seconds_n500": median_time(calls[LARGE]["knn"].seconds),
        "plain_knn_seconds_n500": median_time(calls[LARGE]["plain knn"].seconds),
        "slowest_over_metric_n500": _slowest_over(calls[LARGE], "loop"),
        "slowest_over_fused_n500": _slowest_over(calls[LARGE], "snd"),
        "ours_over_plain": Number.timed_range(over, "builders and sizes", pick=statistics.median),
        "plain_in_order": _count_ordered([[calls[n][f"plain {name}"].seconds for name in ORDER] for n in TABLE]),
        **{f"plain_{name}_over_paper": _compare_builder(name, calls) for name in BUILDERS},
    }


def _compare_builder(name: str, calls: dict[int, dict[str, Timing]]) -> Number:
    """Return the times of a plain builder over the paper's."""
    seconds = [(calls[n][f"plain {name}"].seconds, paper / 1000) for n, paper in PAPER_MS[name].items()]
    return Number.timed_range((speedup(mine, [paper] * len(mine), medians=True) for mine, paper in seconds), "sizes")


def _count_ordered(sizes: Sequence[Sequence[Sequence[float]]]) -> Number:
    """Return at how many sizes the medians of the builders rise; the interval counts steps that noise may reverse."""
    steps = [[speedup(*two, medians=True) for two in itertools.pairwise(builders)] for builders in sizes]
    largest = [Number.timed(each, "steps", pick=max) for each in steps]
    value, low, high = (sum(getattr(one, end) < 1 for one in largest) for end in ("value", "high", "low"))
    return Number(value, low, high, kind=f"of {len(sizes)} sizes", clock=True)


def _slowest_over(calls: dict[str, Timing], metric: str) -> Number:
    """Return the median time of the slowest builder, ours or plain, over that of the metric."""
    builders = [call for name, call in calls.items() if name.removeprefix("plain ") in BUILDERS]
    above, below = max(builders, key=lambda one: one.number().value), calls[metric]
    # Builders are timed whole.
    return replace(speedup(above.seconds, [below.whole * s for s in below.seconds], medians=True), unit="")


def draw(data: Data) -> Figure:
    """Draw time against team size, with quartiles: builders beside the paper's, and builders beside the metric."""
    with styled_figure(9.8, 5.3) as figure:
        left, right = figure.subplots(1, 2)
        table = [row for row in data.sizes if row.n in TABLE]
        _draw_times(left, table, BUILDERS, "Builders: ours (full), the paper's (open), plain (x)")
        for name in BUILDERS:
            _, colour, marker, _ = LOOKS[name]
            look: dict[str, Any] = {"color": colour, "markerfacecolor": "white", "linewidth": 0.9, "markersize": 5.5}
            paper = [PAPER_MS[name][row.n] for row in table]
            left.plot([row.n for row in table], paper, marker, linestyle=":", zorder=2, **look)
            plain = [row.calls[f"plain {name}"].number(1000).value for row in table]
            left.plot([row.n for row in table], plain, "x", color=colour, markersize=6, zorder=3)
        _draw_times(right, data.sizes, LOOKS, "Builders beside a call of the metric")
        for ax, rows in ((left, table), (right, data.sizes)):
            make_log(ax, [row.n for row in rows])
        figure.legend(*right.get_legend_handles_labels(), ncols=4, loc="outside lower center")
        return figure


def _draw_times(ax: Axes, rows: list[Row], names: Iterable[str], title: str) -> None:
    for name in names:
        label, colour, marker, line = LOOKS[name]
        numbers = [row.calls[name].number(1000) for row in rows]
        error_bars(ax, [row.n for row in rows], numbers, color=colour, marker=marker, linestyle=line, label=label)
    ax.set(title=title, xlabel="agents, n", ylabel="processor time, median and quartiles  [ms]")
    ax.grid()


EXPERIMENT = Experiment("construction", "Time to build a graph, beside the metric on it", run, draw, Data)
