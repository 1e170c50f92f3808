r"""On the complete graph Graph-SND is SND: four agents, before and after training (Appendix B of the paper).

Both are computed in float64, from the matrix of distances and directly, by every kernel of this machine. The other
statements about fixed graphs (:mod:`paper.recovery.propositions`) are tried beside it.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import stats

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.metric import edge_distances, graph_snd, pairwise, snd
from graphsnd.metric.snd import weighted_mean
from graphsnd.training.streams import hashed
from paper.cells import Cells
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.recovery import propositions
from paper.recovery.figure import figure
from paper.shared.navigation import ROLLOUT_SEED, TRAINING_SEED, Snapshot, at_checkpoints
from paper.unbiasedness.run import many_bernoulli

AGENTS = 4
CLUSTER = 10  # agents of each of the two clusters
PROBABILITY = 0.1  # of the graphs that sample the clusters
SEED = 7  # of random teams and graphs
CASES = {Scale.SMOKE: 40, Scale.LAPTOP: 400, Scale.PAPER: 400}  # random teams of a proposition
DRAWS = {Scale.SMOKE: 200, Scale.LAPTOP: 2000, Scale.PAPER: 2000}  # graphs that sample the clusters


def run(scale: Scale, cells: Cells) -> Outcome:
    """Compute both at both checkpoints, and try the propositions."""
    draws, cases = DRAWS[scale], CASES[scale]
    settings = {"draws": draws, "cluster": CLUSTER, "probability": PROBABILITY, "seed": SEED}
    teams = at_checkpoints(scale, cells, AGENTS, settings, lambda found: _team(found, draws))
    tried = cells.get("propositions", {"cases": cases, "seed": SEED}, lambda: _propositions(cases))
    data = {"agents": AGENTS, "teams": teams, "propositions": tried}
    return Outcome(data, numbers(teams, tried), (TRAINING_SEED, ROLLOUT_SEED, SEED))


def _team(found: Snapshot, draws: int) -> dict[str, Any]:
    behavior = found.behavior()
    routes = recover(behavior)
    return {**found.about(), "routes": routes, "clusters": hidden(behavior, draws)}


def recover(behavior: Gaussian) -> list[dict[str, Any]]:
    """SND and Graph-SND on the complete graph, from the matrix and directly, by every kernel.

    Example:
        >>> team = propositions.random_team(4, hashed(0))
        >>> all(abs(route["snd"] - route["graph_snd"]) < 1e-14 for route in recover(team))
        True
    """
    everyone = graphs.complete(behavior.agents)
    i, j = everyone.edges.T
    routes = []
    for backend in propositions.backends():
        matrix = pairwise(behavior, backend=backend)
        over_pairs = matrix.sum() / (len(matrix) * (len(matrix) - 1))
        direct = snd(behavior, backend=backend), graph_snd(behavior, everyone, backend=backend)
        by_matrix = over_pairs, weighted_mean(matrix[i, j], everyone)
        for route, (exact, sparse) in (("matrix", by_matrix), ("direct", direct)):
            routes.append({"route": route, "kernel": backend, "snd": float(exact), "graph_snd": float(sparse)})
    return routes


def hidden(behavior: Gaussian, draws: int) -> dict[str, float]:
    """Two clusters, as a graph within clusters sees them and as random graphs do, relative to SND (section 7)."""
    team, labels = propositions.clusters(behavior, CLUSTER, SEED)
    distances = edge_distances(team, graphs.complete(team.agents))
    exact, generator = float(distances.mean()), hashed(SEED, 7)
    within = float(graph_snd(team, graphs.cliques(labels)))
    drawn = many_bernoulli(team.agents, PROBABILITY, draws, generator)
    drawn = drawn[drawn.sum(1) > 0]  # the mean over no edges is not a mean; 2e-9 of the graphs
    means = drawn @ distances / drawn.sum(1) / exact
    half = float(stats.norm.ppf(0.995)) * float(means.std(correction=1)) / math.sqrt(len(means))
    mean = float(means.mean())
    return {"snd": exact, "within": within, "share": within / exact, "sampled": mean, "half_width": half}


def _propositions(cases: int) -> dict[str, Any]:
    return {
        "nonnegativity_failures": propositions.nonnegativity_failures(cases, SEED),
        "renaming": propositions.renaming_changes(SEED),
        "partition_error": propositions.partition_error(cases // 4, SEED),
        "distances_beyond_edges": propositions.distances_beyond_edges(SEED),
        "knn_edges_share": propositions.knn_edges_share(SEED),
    }


def numbers(teams: list[dict[str, Any]], tried: dict[str, Any]) -> dict[str, Number]:
    """What claims are held against."""
    errors = [abs(route["graph_snd"] - route["snd"]) for team in teams for route in team["routes"]]
    first, last = (team["routes"][0]["snd"] for team in teams)
    shares, clusters = tried["knn_edges_share"], teams[-1]["clusters"]
    sampled, half = clusters["sampled"], clusters["half_width"]
    return {
        "largest_error": Number(max(errors), min(errors), max(errors), kind=f"range of {len(errors)} cells"),
        "snd_growth": Number(last / first, unit="x"),
        "nonnegativity_failures": Number(tried["nonnegativity_failures"]),
        "automorphism_error": Number(tried["renaming"]["change"]),
        "partition_error": Number(tried["partition_error"]),
        "distances_beyond_edges": Number(max(tried["distances_beyond_edges"], key=abs)),
        "knn_edges_share": Number(max(shares), min(shares), max(shares), kind=f"range of {len(shares)} graphs"),
        "cluster_share": Number(clusters["share"]),
        "cluster_share_bernoulli": Number(sampled, sampled - half, sampled + half, kind="99% interval of the mean"),
    }


EXPERIMENT = Experiment("recovery", "Recovery on the complete graph, and the propositions", run, figure)
