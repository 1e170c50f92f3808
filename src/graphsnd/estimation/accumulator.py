"""SND of a rollout that does not fit in memory, batch by batch and rank by rank."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, check_names, distance_by_name, embed
from graphsnd.behavior.distances import DISTANCES
from graphsnd.behavior.points import Points
from graphsnd.bounds.concentration import check_metric
from graphsnd.errors import EmptyDrawError, InputError, check_clusters, check_integer, check_number, check_type
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import ObservationError, PairError, cluster_error, make_estimate, random_graph_error
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import check_graph, normalised_weights, ratio, weighted_mean
from graphsnd.sums import total

TENSORS = ("sums", "ids", "sizes", "own")  # of a state


class SndAccumulator:
    r"""Collects SND, or Graph-SND on one graph, over batches of observations.

    .. math:: \mathrm{SND} = \frac{1}{|O|} \sum_{b} \sum_{o \in O_b} \mathrm{SND}_o

    Sums are kept in double precision, so the result is the same to rounding however the observations were split into
    batches and however partial accumulators were merged.

    Names of the agents are those of the first behaviour, graph or other accumulator that has any; others are refused.

    Args:
        agents: Size of the team.
        graph: Graph on these agents; None for all pairs.
        distance: A distance or its name; the default of the first behaviour when None.
        clusters: Whether every update names the episode or environment of its observations, for the error over
            observations. Without it that error is None: contiguous blocks would depend on the order.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = SndAccumulator(3)
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [1.0], [2.0]]])))
        >>> print(accumulator.compute())
        SND 2.66667 ± unknown (2-Wasserstein of actions, all 3 pairs, 2 observations)
    """

    def __init__(
        self, agents: int, *, graph: Graph | None = None, distance: Distance | str | None = None, clusters: bool = False
    ) -> None:
        self.agents = check_integer("agents", agents, "to be at least 2", low=2)
        check_type("clusters", clusters, bool, "to be True or False", "Give the clusters to update().")
        if graph is not None:
            check_graph(graph, self.agents)
            if graph.m == 0 and graph.inclusion is not None:
                raise EmptyDrawError("graph")
        self.graph = None if graph is not None and graph.is_complete and graph.weights is None else graph
        self.distance = distance_by_name(distance) if isinstance(distance, str) else distance
        self.clusters = clusters
        self.names: tuple[str, ...] | None = None if graph is None else graph.names
        self.observations = 0
        self.family: str | None = None  # of the behaviours
        # Float64: the total of all pairs, or of each edge; of a random graph also of each agent to the mean agent.
        drawn = self.graph is not None and self.graph.estimates_snd
        self._sums = torch.zeros(1 if self.graph is None else self.graph.m + drawn * self.agents, dtype=torch.float64)
        # Number, observations and sum of diversities of each cluster, sorted by number.
        self._ids = self._sizes = torch.zeros(0, dtype=torch.int64)
        self._own = torch.zeros(0, dtype=torch.float64)

    @torch.no_grad()
    def update(self, behavior: Behavior, clusters: Tensor | Sequence[int] | None = None) -> None:
        """Add a batch of observations.

        Args:
            behavior: Behaviour of all agents on them.
            clusters: Cluster of each, integers, flat or in their shape; only with ``clusters=True``.

        Raises:
            InputError: For other agents, and for clusters given or missing against what was declared.
        """
        points = embed(behavior, self.distance).detach()
        if points.agents != self.agents:
            raise InputError("behavior", f"of {self.agents} agents", points.agents)
        names = _same_names("behavior", self.names, behavior._names)
        self._check_batch(behavior, clusters)
        self._add(points, check_clusters(clusters, behavior.batch_shape))
        self.names, self.family = names, type(behavior).__name__
        self.distance = as_distance(behavior, self.distance)

    def _check_batch(self, behavior: Behavior | None, clusters: Any) -> None:
        """Raise for another family than before, and for clusters against what was declared."""
        if behavior is not None and self.family not in (None, type(behavior).__name__):
            raise InputError("behavior", f"to be {self.family}, as before", type(behavior).__name__)
        if (clusters is not None) != self.clusters:
            fix = "Say clusters=True when making the accumulator, and give them with every update, or never."
            raise InputError("clusters", "given" if self.clusters else "to be None", clusters, fix)

    def _add(self, points: Points, groups: Tensor | None) -> None:
        """Add points of all agents, with the cluster of each observation."""
        sums, values = self._measure(points)
        self._sums = self._sums + sums.cpu()
        self.observations += points.observations
        if groups is not None:
            self._join(groups, torch.ones_like(groups), values.cpu())

    def _measure(self, points: Points) -> tuple[Tensor, Tensor]:
        """Return the sums over observations, and the diversity at each observation."""
        if self.graph is None:
            totals = kernels.pair_totals(points)
            return total(totals)[None], totals / math.comb(self.agents, 2)
        edges = self.graph.edges
        weights, weight_sum = normalised_weights(self.graph, points.parts[0].device)
        radii = self.graph.estimates_snd
        if radii:
            check_metric(points)
        means, totals = kernels.edge_means_and_totals(points, edges, weights, ordered=True, radii=radii)
        return points.observations * means, ratio(totals, weight_sum)

    def _join(self, ids: Tensor, sizes: Tensor, own: Tensor) -> None:
        """Add clusters, some of which may be there already."""
        self._ids, group = torch.cat([self._ids, ids]).unique(return_inverse=True)
        self._sizes = torch.zeros_like(self._ids).index_add(0, group, torch.cat([self._sizes, sizes]))
        self._own = self._sums.new_zeros(len(self._ids)).index_add(0, group, torch.cat([self._own, own]))

    @staticmethod
    def merge(one: SndAccumulator, two: SndAccumulator) -> SndAccumulator:
        """Return a new accumulator with the sums of both; neither is changed.

        Raises:
            InputError: When they measure different things.
        """
        _check_alike(one, two)
        distance = one.distance or two.distance
        merged = SndAccumulator(one.agents, graph=one.graph, distance=distance, clusters=one.clusters)
        merged.names = _same_names("two", one.names, two.names)
        merged.family = one.family or two.family
        merged.observations = one.observations + two.observations
        merged._sums = one._sums + two._sums
        for each in (one, two):
            merged._join(each._ids, each._sizes, each._own)
        return merged

    def state(self) -> dict[str, Any]:
        """Return all sums as tensors and plain numbers, to be saved or sent to another rank."""
        state: dict[str, Any] = {"agents": self.agents, "observations": self.observations, "clusters": self.clusters}
        state |= {"sums": self._sums, "ids": self._ids, "sizes": self._sizes, "own": self._own}
        state |= {"names": self.names, "family": self.family, "graph": fingerprint(self.graph)}
        return state | {"distance": self.distance and repr(self.distance)}

    @classmethod
    def from_state(
        cls, state: dict[str, Any], *, graph: Graph | None = None, distance: Distance | str | None = None
    ) -> SndAccumulator:
        """Resume from :meth:`state`, with the graph and the distance it was collected for.

        Args:
            state: Result of :meth:`state`.
            graph: The same graph; the state has only its fingerprint.
            distance: The same distance; one of graphsnd's own may be left out.

        Raises:
            InputError: For another graph or distance, and for a state that no accumulator has.
        """
        missing = sorted(cls(2).state().keys() - state.keys())
        if missing:
            raise InputError("state", "to be whole", f"none of {', '.join(missing)}")
        known = {repr(each): each for each in DISTANCES.values()}
        distance = known.get(state["distance"]) if distance is None else distance
        made = cls(state["agents"], graph=graph, distance=distance, clusters=bool(state["clusters"]))
        for name, own in (("graph", fingerprint(made.graph)), ("distance", made.distance and repr(made.distance))):
            if state[name] is not None and own != state[name]:
                got = f"{own}, and a state collected for {state[name]}"
                fix = "Pass the same one again; a Joint has its own: .distance."
                raise InputError(name, "that the state was collected for", got, fix)
        if state["names"] is not None:
            check_names(state["names"], made.agents)
        made.names = _same_names("state", made.names, state["names"])
        made.family = None if state["family"] is None else str(state["family"])
        made.observations = check_integer("state['observations']", state["observations"], "to be at least 0", low=0)
        _check_sums(made, state)
        made._sums, made._ids, made._sizes, made._own = (state[name] for name in TENSORS)
        return made

    def compute(self, confidence: float = 0.95) -> Estimate:
        """Return the estimate over all batches, as :func:`graphsnd.measure` would give it.

        Args:
            confidence: Coverage of the intervals.

        Raises:
            InputError: Before the first update.
        """
        confidence = check_number("confidence", confidence, above=0, below=1)
        if self.observations == 0 or self.distance is None:
            raise InputError("accumulator", "with at least one observation", "none", "Call update first.")
        means, graph = self._sums / self.observations, self.graph
        target, design = "SND", "complete"
        if graph is None:
            value = float(means[0]) / math.comb(self.agents, 2)
            error = PairError(0.0, (value, value), "exact: all pairs")
        else:
            target, design = "SND" if graph.estimates_snd else "Graph-SND", graph.family
            means, radii = means.split([graph.m, len(means) - graph.m])
            value = float(weighted_mean(means, graph.to("cpu")))
            error = PairError(0.0, (value, value), "exact: every edge")
            if graph.estimates_snd:
                # No distance exceeds the sum of the two largest ones to the mean agent.
                bound = float(radii.topk(2).values.sum()) * (1 + 16 * torch.finfo(torch.float32).eps)
                d_max = min(bound, self.distance.maximum or math.inf)
                error = random_graph_error(graph, means, value, d_max, 1 - confidence)
        found = cluster_error(self._own, self._sizes, value, confidence, error)
        known = f"{len(self._ids):,} clusters, as given" if found[0] is not None else ObservationError.clusters
        others, kept = ObservationError(*found, known), means if graph else None
        return make_estimate(value, target, error, others, self, kept, graph, confidence=confidence, design=design)


def _same_names(name: str, known: Sequence[str] | None, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names that are known, or raise where both are and differ."""
    if known and given and tuple(known) != tuple(given):
        raise InputError(name, f"with the agents {', '.join(known)}", ", ".join(given))
    return tuple(known or given or ()) or None


def fingerprint(graph: Graph | None) -> str:
    """Return what identifies a graph: its edges, weights and how it was drawn."""
    if graph is None:
        return "all pairs"
    sha = hashlib.sha256(repr((graph.n, graph.inclusion, graph.sampling)).encode())
    for part in (graph.edges, None if graph.weights is None else graph.weights.double()):
        sha.update(b"none" if part is None else part.detach().cpu().numpy().tobytes())
    return sha.hexdigest()


def _check_sums(made: SndAccumulator, state: dict[str, Any]) -> None:
    """Raise unless the tensors of a state have the shapes and counts of an accumulator like ``made``."""
    shapes = {name: tuple(getattr(state[name], "shape", ())) for name in TENSORS}
    clusters = shapes["ids"]
    if shapes != {"sums": tuple(made._sums.shape), "ids": clusters, "sizes": clusters, "own": clusters}:
        raise InputError("state", f"with {len(made._sums)} sums, and one number for each cluster", shapes)
    if not made.observations and bool(state["sums"].any()):
        raise InputError("state", "without sums where there are no observations", "some")
    if int(state["sizes"].sum()) != (made.observations if made.clusters else 0):
        raise InputError("state", f"with clusters of {made.observations} observations", int(state["sizes"].sum()))


def _check_alike(one: SndAccumulator, two: SndAccumulator) -> None:
    made, other = ({"agents": each.agents, "clusters": each.clusters} for each in (one, two))
    if made != other:
        raise InputError("two", f"to be made like the other, with {made}", other)
    if fingerprint(one.graph) != fingerprint(two.graph):
        got = "other edges, weights or inclusion probability"
        raise InputError("two", "on the same graph", got, "Send the graph to all ranks, or its seed.")
    if one.family and two.family and one.family != two.family:
        raise InputError("two", f"of behaviours that are {one.family}", two.family)
    if one.distance and two.distance and one.distance != two.distance:
        raise InputError("two", f"with the distance {one.distance.name}", two.distance.name)
