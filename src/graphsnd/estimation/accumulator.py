"""SND of a rollout that never fits in memory, batch by batch and rank by rank."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, check_names, embed
from graphsnd.behavior.distances import DISTANCES
from graphsnd.behavior.points import Points
from graphsnd.errors import InputError, check_clusters, check_integer, describe, plain_tensor
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.exactsum import LIMBS, LOWEST, ExactSum
from graphsnd.estimation.intervals import PairError, check_confidence, cluster_error, random_graph_error
from graphsnd.estimation.on_graph import check_not_empty, make_estimate
from graphsnd.estimation.source import Source
from graphsnd.graphs import Graph
from graphsnd.kernels.dispatch import obstacle, sum_over_blocks
from graphsnd.metric.diversity import normalised_weights, weighted_mean
from graphsnd.metric.pair_distances import check_graph

CHUNK = 1 << 22  # edge distances held at a time
ROWS = 16  # observations below which the compiled kernel sums in another order


Clusters = tuple[Tensor, Tensor, ExactSum]  # ids, of which some may be equal before they are joined; sizes; sums


@checked(own="clusters confidence")
class SndAccumulator:
    r"""Collects SND, or Graph-SND on one graph, over batches of observations.

    .. math:: \mathrm{SND} = \frac{1}{|O|} \sum_{b} \sum_{o \in O_b} \mathrm{SND}_o

    Sums are exact (:class:`~graphsnd.estimation.exactsum.ExactSum`), and on a CPU what an observation adds does not
    depend on the batch it comes in. So the result is the same *to the bit* however the observations were split into
    batches, in whatever order the batches came, and however partial accumulators were merged. On a GPU the kernels
    give no such promise for single observations; there merging agrees to rounding.

    Names of the agents are those of the first behaviour, graph or other accumulator that has any; others are refused.

    Args:
        agents: Size of the team.
        graph: Graph on these agents; None for all pairs.
        distance: Distance object; the default of the first behaviour when None.
        clusters: Whether every update names the episode or environment of its observations, for the error over
            observations. Without it that error is None: contiguous blocks would depend on the order.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = SndAccumulator(3)
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [1.0], [2.0]]])))
        >>> print(accumulator.compute())
        SND 2.66667 (exact over 3 pairs, 2 shared observations)
    """

    def __init__(
        self, agents: int, *, graph: Graph | None = None, distance: Distance | None = None, clusters: bool = False
    ) -> None:
        self.agents = check_integer("agents", agents, "to be at least 2", low=2)
        if not isinstance(clusters, bool):
            raise InputError("clusters", "to be True or False", describe(clusters), "Give the clusters to update().")
        if graph is not None:
            check_graph(graph, self.agents)
            check_not_empty("graph", graph)
        self.graph = None if graph is not None and graph.is_complete and graph.weights is None else graph
        self.distance, self.clusters = distance, clusters
        self.names: tuple[str, ...] | None = None if graph is None else graph.names
        self.observations = 0
        self.family: str | None = None  # of the behaviours
        # The total of all pairs, or of each edge; of a random graph also the distance of each agent to the mean agent.
        self._sums = ExactSum.zeros(1 if self.graph is None else self.graph.m + self._drawn * self.agents)
        none = torch.zeros(0, dtype=torch.int64)
        self._clusters: Clusters = none, none, ExactSum.zeros(0)

    def update(self, behavior: Behavior, clusters: Tensor | Sequence[int] | None = None) -> None:
        """Add a batch of observations.

        Args:
            behavior: What the agents would do on them.
            clusters: One integer for each, flat or in their shape, where the accumulator has ``clusters=True``.

        Raises:
            InputError: For other agents, or clusters given or missing against what was
                declared.
        """
        points = embed(behavior, self.distance)
        if points.agents != self.agents:
            raise InputError("behavior", f"of {self.agents} agents", points.agents)
        names = _same_names("behavior", self.names, behavior._names)
        self._check_batch(behavior, clusters)
        self._take(points, check_clusters(clusters, behavior.batch_shape))
        self.names, self.family = names, type(behavior).__name__
        self.distance = as_distance(behavior, self.distance)

    def _check_batch(self, behavior: Behavior | None, clusters: Any) -> None:
        """Raise for another family than before, a pooled distance, or clusters against what was declared."""
        if behavior is not None and self.family not in (None, type(behavior).__name__):
            raise InputError("behavior", f"to be {self.family}, as before", type(behavior).__name__)
        if (clusters is not None) != self.clusters:
            fix = "Say clusters=True when making the accumulator, and give them with every update, or never."
            raise InputError("clusters", "given" if self.clusters else "to be None", clusters, fix)

    @torch.no_grad()
    def _take(self, points: Points, groups: Tensor | None) -> None:
        """Add points of all agents, with the cluster of each observation, that :meth:`update` would accept."""
        points = replace(points, values=points.values.detach())
        step = points.observations if self.graph is None else max(1, CHUNK // max(1, self.graph.m))
        before = self._sums, self._clusters, self.observations
        try:
            for start in range(0, points.observations, max(1, step)):
                part = points.slice(start, start + step)
                self._add(part, None if groups is None else groups[start : start + step])
        except InputError:  # of distances that are not finite, perhaps after parts without any
            self._sums, self._clusters, self.observations = before
            raise

    def _add(self, points: Points, groups: Tensor | None) -> None:
        values = totals(points)[:, None] if self.graph is None else distances(points, self.graph.edges)
        self._sums = self._sums.plus(torch.cat([values, radii(points)], dim=1) if self._drawn else values)
        if groups is not None:
            weights = None if self.graph is None else normalised_weights(self.graph, values.device)[0]
            own = ExactSum.of_rows(values if weights is None else values * weights)
            self._clusters = _join(self._clusters, (groups, torch.ones_like(groups), own))
        self.observations += points.observations

    @staticmethod
    def merge(one: SndAccumulator, two: SndAccumulator) -> SndAccumulator:
        """Return a new accumulator of what both have collected; neither is changed.

        Raises:
            InputError: When they measure different things.
        """
        _check_alike(one, two)
        distance = one.distance or two.distance
        merged = SndAccumulator(one.agents, graph=one.graph, distance=distance, clusters=one.clusters)
        merged.names = _same_names("two", one.names, two.names)
        merged.family = one.family or two.family
        merged.observations = one.observations + two.observations
        merged._sums = one._sums.merged(two._sums)
        merged._clusters = _join(one._clusters, two._clusters)
        return merged

    def state(self) -> dict[str, Any]:
        """Return everything collected, as tensors and plain numbers, to be saved or sent to another rank."""
        ids, sizes, own = self._clusters
        state: dict[str, Any] = {"agents": self.agents, "observations": self.observations, "clusters": self.clusters}
        state |= {"sums": self._sums.limbs, "top": self._sums.top, "ids": ids, "sizes": sizes}
        state |= {"own": own.limbs, "own_top": own.top, "names": self.names, "family": self.family}
        return state | {"graph": fingerprint(self.graph), "distance": self.distance and repr(self.distance)}

    @classmethod
    def from_state(
        cls, state: dict[str, Any], *, graph: Graph | None = None, distance: Distance | None = None
    ) -> SndAccumulator:
        """Resume from :meth:`state`, with the graph and the distance it was collected for.

        Args:
            state: What :meth:`state` returned.
            graph: The same graph; the state has only its fingerprint.
            distance: The same distance; one of graphsnd's own may be left out.

        Raises:
            InputError: For another graph or distance, and for a state that no accumulator has.
        """
        missing = sorted(cls(2).state().keys() - state.keys())
        if missing:
            raise InputError("state", "to be whole", f"none of {', '.join(missing)}")
        agents = check_integer("state['agents']", state["agents"], "to be at least 2", low=2)
        known = {repr(each): each for each in DISTANCES.values()}
        distance = known.get(state["distance"]) if distance is None else distance
        made = cls(agents, graph=graph, distance=distance, clusters=bool(state["clusters"]))
        _check_sums(made, state)
        for name, own in (("graph", fingerprint(made.graph)), ("distance", made.distance and repr(made.distance))):
            if state[name] is not None and own != state[name]:
                got = f"{own}, and a state collected for {state[name]}"
                fix = "Pass the same one again; a Joint has its own: .distance."
                raise InputError(name, "that the state was collected for", got, fix)
        if state["names"] is not None:
            check_names(state["names"], agents)
        made.names = _same_names("state", made.names, state["names"])
        made.family = None if state["family"] is None else str(state["family"])
        made.observations = state["observations"]
        made._sums = ExactSum(state["sums"], state["top"])
        made._clusters = state["ids"], state["sizes"], ExactSum(state["own"], state["own_top"])
        return made

    def compute(self, confidence: float = 0.95) -> Estimate:
        """Return the estimate over everything collected, as :func:`graphsnd.measure` would give it.

        Args:
            confidence: Coverage of the intervals.

        Raises:
            InputError: Before the first update.
        """
        confidence = check_confidence(confidence)
        if self.observations == 0 or self.distance is None:
            raise InputError("accumulator", "with at least one observation", "none", "Call update first.")
        means, graph = self._sums.value() / self.observations, self.graph
        if graph is None:
            target, design, pairs = "SND", "complete", math.comb(self.agents, 2)
            value, weight = float(means[0]) / pairs, float(pairs)
            error = PairError(0.0, (value, value), "exact: all pairs")
        else:
            target, design, pairs = "SND" if self._drawn else "Graph-SND", graph.family, graph.m
            means, radii = means.split([graph.m, len(means) - graph.m])
            weight = float(normalised_weights(graph, means.device)[1])
            value = float(weighted_mean(means, graph.to("cpu")))
            error = PairError(0.0, (value, value), "exact: every edge")
            if self._drawn:
                # No distance exceeds the sum of the two largest ones to the mean agent.
                bound = float(radii.topk(2).values.sum()) * (1 + 16 * torch.finfo(torch.float32).eps)
                d_max = min(bound, self.distance.maximum or math.inf)
                error = random_graph_error(graph, means, value, d_max, 1 - confidence)
        _, sizes, own = self._clusters
        around = cluster_error(own.value() / (weight or 1.0), sizes, value, confidence, error.standard_error)
        # An accumulator has all of a source that an estimate reads.
        return make_estimate(cast(Source, self), value, target, error, around, confidence, pairs, design)

    @property
    def _drawn(self) -> bool:
        """Whether the graph is a random sample of the pairs and SND is what it estimates."""
        return self.graph is not None and self.graph.inclusion is not None and self.graph.weights is None


def _join(one: Clusters, two: Clusters) -> Clusters:
    ids, group = torch.cat([one[0], two[0]]).unique(return_inverse=True)
    sizes = torch.zeros_like(ids).index_add(0, group, torch.cat([one[1], two[1]]))
    return ids, sizes, one[2].grouped(two[2], group, len(ids))


def _same_names(name: str, known: Sequence[str] | None, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names that are known, or raise where both are and differ."""
    if known and given and tuple(known) != tuple(given):
        raise InputError(name, f"with the agents {', '.join(known)}", ", ".join(given))
    return tuple(known or given or ()) or None


def fingerprint(graph: Graph | None) -> str:
    """Return what tells a graph from all others: its edges, weights and how it was drawn."""
    if graph is None:
        return "all pairs"
    sha = hashlib.sha256(repr((graph.n, graph.inclusion, graph.sampling)).encode())
    for part in (graph.edges, None if graph.weights is None else graph.weights.double()):
        sha.update(b"none" if part is None else part.detach().cpu().numpy().tobytes())
    return sha.hexdigest()


def _check_sums(made: SndAccumulator, state: dict[str, Any]) -> None:
    """Raise unless the sums and counts of a state are such as an accumulator like ``made`` has."""
    count = check_integer("state['observations']", state["observations"], "to be at least 0", low=0)
    for name in ("top", "own_top"):
        check_integer(f"state[{name!r}]", state[name], f"in {LOWEST} .. {-LOWEST}", low=LOWEST, high=-LOWEST)
    groups = state["ids"].numel() if isinstance(state["ids"], Tensor) else 0
    shapes = {"sums": made._sums.limbs.shape, "ids": (groups,), "sizes": (groups,), "own": (LIMBS, groups)}
    for name, shape in shapes.items():
        part = state[name]
        if plain_tensor(part) is None or part.dtype != torch.int64 or tuple(part.shape) != tuple(shape):
            asked = f" of {shape[1]} sums, as the graph asks for" if name == "sums" else f" with int64 {tuple(shape)}"
            raise InputError("state", f"{name}{asked}", describe(part))
        if name != "ids" and part.numel() and int(part.min()) < 0:
            raise InputError("state", f"with {name} that are not negative", int(part.min()))
    if int(state["sizes"].sum()) != (count if made.clusters else 0):
        raise InputError("state", f"with clusters of {count} observations in all", int(state["sizes"].sum()))
    if count == 0 and int(state["sums"].sum()):
        raise InputError("state", "without sums where there are no observations", "some")


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


@sum_over_blocks
def totals(points: Points) -> Tensor:
    """Return the sum over all pairs for each observation ``[observations]``, on a CPU the same bits in every batch."""
    if points.values.is_cuda:
        return kernels.pair_totals(points)
    if points.separable or obstacle("cpu", points):
        # A matrix product may sum in another order for other numbers of rows; a single row has only one.
        return torch.cat([kernels.pair_totals(points.slice(o, o + 1)) for o in range(points.observations)])
    missing = max(0, ROWS - points.observations)
    values = torch.cat([points.values, points.values[-1:].expand(missing, -1, -1)])
    return kernels.pair_totals(replace(points, values=values), backend="cpu")[: points.observations]


@sum_over_blocks
def distances(points: Points, edges: Tensor) -> Tensor:
    """Return the distance along each edge ``[observations, m]``; every distance is computed for itself."""
    edges = edges.to(points.values.device)
    if edges.shape[0] == 0:
        return points.values.new_zeros((points.observations, 0), dtype=torch.float64)
    if not points.values.is_cuda and obstacle("cpu", points):
        rows = [points.slice(o, o + 1) for o in range(points.observations)]
        return torch.cat([kernels.observation_edges(row, edges[None], backend="reference") for row in rows])
    backend = "auto" if points.values.is_cuda else "cpu"
    return kernels.observation_edges(points, edges.expand(points.observations, -1, -1), backend=backend)


def radii(points: Points) -> Tensor:
    """Return the distance of each agent to the mean agent under a metric, ``[observations, agents]``."""
    points = points.metric()
    centers = torch.cat([points.slice(o, o + 1).center().values for o in range(points.observations)])
    both = replace(points, values=torch.cat([points.values, centers], dim=1))
    others = torch.arange(points.agents, device=points.values.device)
    return distances(both, torch.stack([others, torch.full_like(others, points.agents)], dim=1))
