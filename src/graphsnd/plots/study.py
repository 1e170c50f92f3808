"""One team measured every way the library knows, with the exact answer beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from graphsnd import graphs
from graphsnd.designs.design import Bernoulli, Design, Nearest, Radius, Regular, Uniform
from graphsnd.estimation import Estimate, measure
from graphsnd.graphs import Graph
from graphsnd.metric import pairwise
from graphsnd.plots.clustering import Tree, agreement, cluster
from graphsnd.plots.team import ExampleTeam

REDRAWS = 200  # how often every design is drawn again, to show where its estimates fall
CONFIDENCE = 0.95  # of the intervals


@dataclass(frozen=True, eq=False)
class GraphResult:
    """One graph and what it says."""

    spec: str  # as on the command line, where the command line has it
    graph: Graph
    estimate: Estimate
    redraws: torch.Tensor  # [REDRAWS] values of the same design under other seeds; empty for fixed graphs


@dataclass(frozen=True, eq=False)
class Study:
    """Everything the demo shows.

    Example:
        >>> import torch, graphsnd as gs
        >>> study = run_study(gs.plots.example_team(12, 64))
        >>> study.matrix.shape, study.contributions.shape, [result.spec for result in study.local]
        (torch.Size([12, 12]), torch.Size([12]), ['knn:5', 'radius:1.5', 'cliques by role'])
    """

    team: ExampleTeam  # that was measured
    exact: GraphResult  # all pairs
    sampled: tuple[GraphResult, ...]  # designs whose value estimates SND
    local: tuple[GraphResult, ...]  # fixed graphs, each of which defines a measure of its own
    matrix: torch.Tensor  # [agents, agents], d(i, j)
    contributions: torch.Tensor  # [agents], mean distance of each agent to all others
    tree: Tree  # average linkage of the matrix
    recovered: float  # share of agents whose branch, cut at the number of roles, has their role as its majority
    seed: int  # of the sampled graphs


def run_study(team: ExampleTeam, *, seed: int = 0, step: Callable[[str], None] = lambda name: None) -> Study:
    """Measure a team exactly, by every sampling design at a tenth of the pairs, and on local graphs.

    Args:
        team: The team.
        seed: Seed of the sampled graphs.
        step: Called with the name of each stage as it begins.

    Example:
        >>> import graphsnd as gs
        >>> study = run_study(gs.plots.example_team(12, 64))
        >>> study.exact.estimate.exact, [result.spec for result in study.sampled]
        (True, ['bernoulli:0.18', 'uniform:7', 'regular:2'])
    """
    n = team.behavior.agents
    step("distance matrix")
    matrix = pairwise(team.behavior)
    tree = cluster(matrix)

    def run(name: str, build: Callable[[int], Graph], redraws: int = 0) -> GraphResult:
        step(name)
        graph = build(seed)
        estimate = measure(team.behavior, design=graph, confidence=CONFIDENCE)
        again = [_mean(matrix, build(seed + 1 + draw)) for draw in range(redraws)]
        return GraphResult(name, graph, estimate, torch.tensor(again))

    def run_design(design: Design) -> GraphResult:
        def build(seed: int) -> Graph:
            graph = design.draw(n, torch.Generator().manual_seed(seed), team.positions)
            assert isinstance(graph, Graph)  # as all designs of the study draw
            return graph

        return run(str(design), build, REDRAWS if design.unbiased else 0)

    tenth = max(1, round(n * (n - 1) / 20))  # of the pairs
    likely = max(0.1, round(12 / max(n * (n - 1) // 2, 12), 2))  # that a small team draws no pair at all is rare
    sampled = (Bernoulli(likely), Uniform(tenth), Regular(max(2, 2 * round((n - 1) / 20))))
    return Study(
        team=team,
        exact=run("complete", lambda _: graphs.complete(n)),
        sampled=tuple(run_design(design) for design in sampled),
        local=(
            *(run_design(design) for design in (Nearest(min(5, n - 1)), Radius(1.5))),
            run("cliques by role", lambda _: graphs.cliques(team.roles)),
        ),
        matrix=matrix,
        contributions=matrix.sum(dim=1) / (n - 1),
        tree=tree,
        recovered=agreement(tree, team.roles, len(team.role_names)),
        seed=seed,
    )


def _mean(matrix: torch.Tensor, graph: Graph) -> float:
    return float(matrix[graph.edges[:, 0], graph.edges[:, 1]].mean()) if graph.m else 0.0
