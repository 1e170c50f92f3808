"""Measure a behaviour on a graph and say how sure the number is."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.fixed import exact, on_graph
from graphsnd.estimation.sampling.source import BehaviorSource
from graphsnd.graphs import Graph
from graphsnd.metric.pairwise import check_graph


def measure(
    behavior: Behavior,
    graph: Graph | None = None,
    *,
    distance: Distance | None = None,
    confidence: float = 0.95,
    clusters: Tensor | None = None,
    backend: str = "auto",
) -> Estimate:
    """SND or Graph-SND with its error.

    Without a graph, every pair is used and the number is SND itself. With a sampled graph (Bernoulli, uniform,
    random regular) it estimates SND and the interval covers SND: for every team, not only for large samples. With a
    fixed graph (k nearest neighbours, radius, cliques, your own) the graph *defines* the measure and the value is
    exact.

    The interval of a Bernoulli or uniform graph is the narrower of Serfling's and the empirical
    Bernstein-Serfling interval, each at half the failure probability, with the certified diameter as D_max. That of
    a random regular graph comes from its exact second moments and holds for every n and degree. The unseen pairs lie
    between 0 and the diameter, so the seen ones alone bound SND for certain; the interval is cut to that range.

    For an answer at a tolerance or a budget use :func:`~graphsnd.estimate`.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        graph: Graph on the same agents; None for all pairs.
        distance: Distance object; the family's default when None.
        confidence: Coverage of the interval.
        clusters: Episode or environment of every observation, integers of the behaviour's leading shape, for the
            error over observations; contiguous blocks when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The estimate.

    Raises:
        InputError: For a confidence outside (0, 1), clusters of another shape, or a sampled graph without edges.

    Example:
        >>> import graphsnd as gs
        >>> print(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 (exact over 3 pairs, 1 observations)
    """
    check_confidence(confidence)
    source = BehaviorSource(behavior, distance, backend)
    if graph is not None:
        check_graph(graph, source.agents)
    groups = check_clusters(clusters, source.observations)
    with torch.no_grad():
        if graph is None or (graph.is_complete and graph.weights is None):
            return exact(source, confidence, clusters=groups, backend=backend)
        return on_graph(source, graph, confidence, clusters=groups, backend=backend)


def check_confidence(confidence: float) -> None:
    """A probability that is neither 0 nor 1."""
    if not 0 < confidence < 1:
        raise InputError("confidence", "in (0, 1)", confidence)


def check_clusters(clusters: Tensor | None, observations: int) -> Tensor | None:
    """One integer for every observation, flattened, on the CPU."""
    if clusters is None:
        return None
    clusters = torch.as_tensor(clusters)
    if clusters.is_floating_point() or clusters.numel() != observations:
        got = f"{clusters.dtype} of shape {tuple(clusters.shape)}"
        raise InputError("clusters", f"to be {observations} integers, one for each observation", got)
    return clusters.detach().flatten().cpu().long()
