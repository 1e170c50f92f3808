r"""On the complete graph Graph-SND is SND: four agents, before and after training (Appendix C of the paper).

Both are computed in float64, from the matrix of distances and directly, by every kernel of this machine. The other
statements about fixed graphs (:mod:`paper.propositions`) are checked too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure
from scipy import stats

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.graphs.graph import weighted_mean
from graphsnd.metric import graph_snd, pairwise, snd
from graphsnd.plots.style import ESTIMATE, MUTED, TRUTH, styled_figure
from graphsnd.rl.streams import hashed
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.propositions import Propositions, backends, check_propositions, clusters
from paper.runner import Cells
from paper.shared.draws import many_bernoulli
from paper.shared.navigation import ROLLOUT_SEED, TRAINING_SEED, Snapshot, at_checkpoints

AGENTS = 4
CLUSTER = 10  # number of agents in each of the two clusters
PROBABILITY = 0.1  # edge probability of the graphs that sample the clusters
SEED = 7  # seed of random teams and graphs
CASES = {Scale.SMOKE: 40, Scale.LAPTOP: 400, Scale.PAPER: 400}  # random teams of a proposition
DRAWS = {Scale.SMOKE: 200, Scale.LAPTOP: 2000, Scale.PAPER: 2000}  # graphs that sample the clusters


@dataclass(frozen=True)
class Route:
    """SND and Graph-SND on the complete graph, computed in one way."""

    route: str  # "matrix" or "direct"
    kernel: str
    snd: float
    graph_snd: float


@dataclass(frozen=True)
class Clusters:
    """Two clusters of agents, measured on a graph within clusters and on random graphs (section 7)."""

    share: float  # Graph-SND on the edges within clusters, over SND
    sampled: float  # mean of Graph-SND over Bernoulli graphs, divided by SND
    half_width: float  # half the width of its 99% interval


@dataclass(frozen=True)
class Team:
    """One team at one point of its training."""

    iteration: int
    routes: list[Route]
    clusters: Clusters


@dataclass(frozen=True)
class Data:
    """Both teams, and the propositions."""

    teams: list[Team]
    propositions: Propositions


def run(scale: Scale, cells: Cells) -> Outcome:
    """Compute both at both checkpoints, and check the propositions."""
    draws, cases = DRAWS[scale], CASES[scale]
    settings = {"draws": draws, "cluster": CLUSTER, "probability": PROBABILITY, "seed": SEED}

    def measure_team(snapshot: Snapshot) -> Team:
        behavior = snapshot.behavior()
        return Team(snapshot.iteration, recover(behavior), hide_clusters(behavior, draws))

    teams = at_checkpoints(scale, cells, AGENTS, settings, measure_team, Team)
    settings = {"cases": cases, "seed": SEED}
    checked = cells.get("propositions", settings, lambda: check_propositions(cases, SEED), Propositions)
    data = Data(teams, checked)
    return Outcome(data, summarise(data), (TRAINING_SEED, ROLLOUT_SEED, SEED))


def recover(behavior: Gaussian) -> list[Route]:
    """Compute SND and Graph-SND on the complete graph, from the matrix and directly, by every kernel.

    Example:
        >>> from paper.propositions import random_team
        >>> all(abs(route.graph_snd - route.snd) < 1e-14 for route in recover(random_team(4, hashed(0))))
        True
    """
    complete = graphs.complete(behavior.agents)
    i, j = complete.edges.T
    routes = []
    for backend in backends():
        matrix = pairwise(behavior, backend=backend)
        over_pairs = matrix.sum() / (len(matrix) * (len(matrix) - 1))
        direct = snd(behavior, backend=backend), graph_snd(behavior, complete, backend=backend)
        by_matrix = over_pairs, weighted_mean(matrix[i, j], complete)
        for name, (exact, sparse) in (("matrix", by_matrix), ("direct", direct)):
            routes.append(Route(name, backend, float(exact), float(sparse)))
    return routes


def hide_clusters(behavior: Gaussian, draws: int) -> Clusters:
    """Make two clusters from a team, and compare a graph within clusters and random graphs with SND."""
    team, labels = clusters(behavior, CLUSTER, SEED)
    distances = pairwise(team, graph=graphs.complete(team.agents))
    exact, within = float(distances.mean()), float(graph_snd(team, graphs.cliques(labels)))
    drawn = many_bernoulli(team.agents, PROBABILITY, draws, hashed(SEED, 7))
    drawn = drawn[drawn.sum(1) > 0]  # graphs without edges have no mean; 2e-9 of the graphs
    means = drawn @ distances / drawn.sum(1) / exact
    half = float(stats.norm.ppf(0.995)) * float(means.std(correction=1)) / math.sqrt(len(means))
    return Clusters(within / exact, float(means.mean()), half)


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run."""
    first, last = (team.routes[0].snd for team in data.teams)
    errors = [abs(route.graph_snd - route.snd) for team in data.teams for route in team.routes]
    checked, hidden = data.propositions, data.teams[-1].clusters
    return {
        "largest_error": Number.range(errors),
        "snd_growth": Number(last / first, unit="x"),
        "nonnegativity_failures": Number(checked.nonnegativity_failures),
        "automorphism_error": Number(checked.renaming.change),
        "partition_error": Number(checked.partition_error),
        "distances_beyond_edges": Number(max(checked.distances_beyond_edges, key=abs)),
        "knn_edges_share": Number.range(checked.knn_edges_share, "graphs"),
        "cluster_share": Number(hidden.share),
        "cluster_share_bernoulli": Number.around(hidden.sampled, hidden.half_width, "99% interval of the mean"),
    }


def draw(data: Data) -> Figure:
    """Draw the ratio to SND of two clusters, on a fixed graph and on random graphs."""
    hidden = data.teams[-1].clusters
    with styled_figure(5.4, 3.9) as figure:
        ax = figure.subplots()
        ax.axhline(1, color=TRUTH, linestyle="--", linewidth=1.2)
        ax.annotate("SND, all pairs", (-0.45, 1), (0, -13), textcoords="offset points", color=TRUTH)
        ax.plot(0, hidden.share, "s", color=MUTED, markersize=8)
        ax.errorbar(1, hidden.sampled, hidden.half_width, fmt="o", color=ESTIMATE, markersize=7, capsize=5)
        for place, value in enumerate((hidden.share, hidden.sampled)):
            ax.annotate(f"{value:.2f}", (place, value), (0, 14), textcoords="offset points", ha="center")
        ax.set_xticks([0, 1], ["edges within\nclusters only", "Bernoulli graphs\nmean, 99% interval"])
        ax.set(xlim=(-0.5, 1.5), ylim=(0, 1.25), ylabel="Graph-SND / SND", title="Two clusters of agents")
        return figure


EXPERIMENT = Experiment("recovery", "Recovery on the complete graph, and the propositions", run, draw, Data)
