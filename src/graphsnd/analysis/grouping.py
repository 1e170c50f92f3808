"""Roles: groups of agents that act alike, how many there are, and what each agent adds to SND."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import pdist, squareform

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError, check_finite, check_integer, check_type
from graphsnd.estimation import Estimate
from graphsnd.metric import pairwise

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]
# Mean silhouette of every role: its agents are less than half as far from each other as from the next role.
CLEAR = 0.55
COVERED = 0.9  # share of the agents that roles must take in; the others are single agents far from all
DRAWS = 99  # teams without roles that a grouping has to beat, all of them: an error rate of 1% for each question
MOST = 200  # agents of such a team; with more its silhouette only varies less
SCALED = 2000  # agents, drawn from more of them, whose principal axes are found, which takes n^3 steps
LARGE = 12  # agents from which on two that act alike are no role yet


@dataclass(frozen=True, eq=False)
class Roles:
    """Groups of agents that act alike.

    Example:
        >>> import torch, graphsnd as gs
        >>> places = torch.tensor([0.0, 0.1, 0.2, 0.3, 5.0, 5.1, 5.2, 5.3])[:, None]
        >>> gs.roles(gs.Deterministic(places.expand(16, 8, 1))).labels
        tensor([0, 0, 0, 0, 1, 1, 1, 1])
    """

    labels: torch.Tensor  # [n] int64, role 0 is the largest
    count: int  # number of roles
    representatives: tuple[int, ...]  # agent of each role that is nearest to its other agents
    loss: torch.Tensor  # [n], SND minus SND without the agent; may be negative
    silhouette: float  # mean over agents, -1 to 1; 0 for one role
    snd: float  # SND of the whole team
    names: tuple[str, ...]  # names of the agents
    linkage: NDArray[np.float64]  # [n - 1, 4], scipy's average linkage of the distances

    def cut(self, count: int) -> torch.Tensor:
        """Return labels ``[n]`` of at most ``count`` groups, fewer at ties; group 0 is the largest."""
        count = check_integer("count", count, f"in 1 .. {len(self.names)}", low=1, high=len(self.names))
        return torch.from_numpy(cut_tree(self.linkage, count))

    def groups(self) -> list[tuple[str, ...]]:
        """Return the names of the agents of each role."""
        labels = self.labels.tolist()
        return [tuple(n for n, own in zip(self.names, labels, strict=True) if own == k) for k in range(self.count)]

    def __str__(self) -> str:
        if self.count == 1:
            return f"1 role: these {len(self.names)} agents form no groups that act alike (SND {self.snd:.4g})"
        lines = [f"{self.count} roles, silhouette {self.silhouette:.2f} (SND {self.snd:.4g})"]
        for names, agent in zip(self.groups(), self.representatives, strict=True):
            shown = ", ".join(names[:8]) + f" and {len(names) - 8} more" * (len(names) > 8)
            lines.append(f"  {len(names)} like {self.names[agent]}: {shown}")
        return "\n".join(lines)


def cut_tree(links: Matrix, groups: int) -> Labels:
    """Return the group of each agent ``[n]`` with scipy's linkage cut into at most ``groups``, the largest group first.

    Example:
        >>> cut_tree(linkage([[0.0], [9.0], [1.0], [8.0], [8.5]], "average"), 2).tolist()
        [1, 0, 1, 0, 0]
    """
    _, branches, sizes = np.unique(fcluster(links, groups, "maxclust"), return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")[branches]


def roles(
    source: Behavior | Estimate,
    distance: Distance | str | None = None,
    *,
    smallest: int | None = None,
    seed: int = 0,
    backend: str = "auto",
) -> Roles:
    """Find groups of agents that act alike: which agents may share parameters?

    The tree of average linkage is cut where the mean silhouette is highest, among the cuts in which every role's own
    is above 0.55. The grouping stands if it beats all of 99 teams without roles, drawn uniformly from the box around
    this one (by its principal axes, after classical scaling) and grouped in the same way: of all shapes without a gap,
    the uniform one looks most like groups, which is why Tibshirani, Walther and Hastie take it for their gap statistic.
    Every role is then asked the same question by itself, because silhouettes of the whole do not see two roles that
    are near each other and far from the rest. A team without roles has one.

    Single agents far from all others, up to a tenth of the team, form no role: each goes to the nearest one, and its
    ``loss`` shows it.

    Args:
        source: Behaviour of ``n`` agents on shared observations, or an estimate that kept the distances of all pairs.
        distance: A distance or its name, for a behaviour; the family's default when None.
        smallest: Agents of the smallest role; 3 when None, or 2 in teams of fewer than 12 agents.
        seed: Seed of the teams that it is compared with.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The roles.

    Raises:
        InputError: For distances that are not finite, an estimate without all pairs, or ``smallest`` below 2.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]]))
        >>> print(gs.roles(team.with_names(["ann", "bob", "cat", "dan", "eve", "fay"])))
        2 roles, silhouette 0.97 (SND 3.053)
          3 like bob: ann, bob, cat
          3 like eve: dan, eve, fay
    """
    seed = check_integer("seed", seed, "to be an integer, at least 0", low=0)
    check_type("source", source, (Behavior, Estimate), "to be a Behavior or an Estimate")
    names = source.names or tuple(map(str, range(source.agents)))
    if isinstance(source, Estimate):
        measured = source.matrix()
        if measured is None or measured.isnan().any():
            raise InputError("source", "to have the distances of all pairs", "an estimate without them")
    else:
        with torch.no_grad():
            measured = pairwise(source, distance, backend=backend)
        check_finite("source", measured)
    matrix, n = measured.double().cpu().numpy(), len(measured)
    smallest = (3 if n >= LARGE else 2) if smallest is None else smallest
    smallest = check_integer("smallest", smallest, "to be an integer, at least 2", low=2)
    generator, waiting, done = np.random.default_rng(seed), [np.arange(n)], []
    while waiting:
        agents = waiting.pop()
        parts = _split(matrix[np.ix_(agents, agents)], smallest, generator)
        done += [agents] if parts is None else []
        waiting += [] if parts is None else [agents[parts == part] for part in range(parts.max() + 1)]
    done.sort(key=lambda agents: (-len(agents), agents[0]))
    labels = np.empty(n, dtype=np.int64)
    for role, agents in enumerate(done):
        labels[agents] = role
    nearest = [int(agents[matrix[np.ix_(agents, agents)].sum(1).argmin()]) for agents in done]
    sums, pairs = matrix.sum(1), math.comb(n, 2)
    total = float(sums.sum()) / 2
    # With two agents, the one that remains has no pair, and SND 0.
    loss = torch.from_numpy(total / pairs - (total - sums) / max(1, math.comb(n - 1, 2)) * (n > 2))
    sizes, to_roles = np.bincount(labels), matrix @ np.eye(len(done))[labels]
    quality = float(_silhouettes(to_roles, labels, sizes).mean()) if len(done) > 1 else 0.0
    return Roles(
        torch.from_numpy(labels), len(done), tuple(nearest), loss, quality, total / pairs, names,
        linkage(squareform(matrix, checks=False), "average"),
    )  # fmt: skip


def _split(matrix: Matrix, smallest: int, generator: np.random.Generator) -> Labels | None:
    """Return the labels of the best grouping ``[n]``; None if teams without roles have an equally good one."""
    best, labels = _group(matrix, smallest)
    if labels is None:
        return None
    within = labels >= 0
    scaled = np.flatnonzero(within)
    if len(scaled) > SCALED:
        scaled = generator.choice(scaled, SCALED, replace=False)
    points = scale_distances(matrix[np.ix_(scaled, scaled)])
    low, high, size = points.min(0), points.max(0), min(len(points), MOST)
    for _ in range(DRAWS):
        drawn = generator.uniform(low, high, (size, len(low)))
        if _group(squareform(pdist(drawn)), smallest)[0] >= best:
            return None
    means = np.stack([matrix[:, labels == role].mean(1) for role in range(labels.max() + 1)], 1)
    return np.where(within, labels, means.argmin(1))


def _group(matrix: Matrix, smallest: int) -> tuple[float, Labels | None]:
    """Return the highest mean silhouette of a cut whose roles are all clear, and its labels, -1 for agents in none.

    Agents in no role count as 0, or else the best cut would be the one that leaves most of them out.
    """
    n, best, chosen = len(matrix), 0.0, None
    if n < 2 * smallest:
        return best, chosen
    links = linkage(squareform(matrix, checks=False), "average")
    order, heights, merged = leaves_list(links), links[:, 2], links[:, :2].astype(int)
    matrix = matrix[np.ix_(order, order)]  # each branch is a range of agents
    members, starts = [1] * n + links[:, 3].astype(int).tolist(), {2 * n - 2: 0}  # of the branches
    kept: dict[int, int] = {}  # sizes of roles by their first agent
    sums: dict[int, Matrix] = {}  # distances from all agents to these roles, once they are needed
    unclear = -1  # the first agent of a role that was not clear: it mostly stays so until it is split
    for at in range(n - 2, 0, -1):  # each cut splits one branch of the cut before; other sums stay
        start = starts.pop(n + at)
        kept.pop(start, None)
        sums.pop(start, None)
        for branch in merged[at].tolist():
            starts[branch], size = start, members[branch]
            if size >= smallest:
                kept[start] = size
            start += size
        if sum(kept.values()) < COVERED * n:
            break  # further cuts only leave out more
        if len(kept) < 2 or heights[at - 1] == heights[at]:  # branches of one height are split together
            continue
        firsts = sorted(kept)
        sums |= {first: matrix[first : first + kept[first]].sum(0) for first in firsts if first not in sums}
        sizes = np.array([kept[first] for first in firsts])
        if unclear in kept and _mean_silhouette(firsts.index(unclear), firsts, sizes, sums) < CLEAR - 1e-9:
            continue
        own = np.repeat(np.arange(len(sizes)), sizes)
        within = np.concatenate([np.arange(first, first + kept[first]) for first in firsts])
        silhouettes = _silhouettes(np.stack([sums[first] for first in firsts])[:, within].T, own, sizes)
        means = np.bincount(own, silhouettes) / sizes
        unclear = firsts[means.argmin()]
        if means.min() > CLEAR and silhouettes.sum() / n > best:
            best, chosen = float(silhouettes.sum() / n), np.full(n, -1)
            chosen[order[within]] = own
    return best, chosen


def _mean_silhouette(role: int, firsts: list[int], sizes: Labels, sums: dict[int, Matrix]) -> float:
    """Return the silhouette of a single role, at lower cost than those of all."""
    rows = slice(firsts[role], firsts[role] + sizes[role])
    distances = np.stack([sums[first][rows] for first in firsts], 1)
    return float(_silhouettes(distances, np.full(sizes[role], role), sizes).mean())


def _silhouettes(sums: Matrix, labels: Labels, sizes: Labels) -> Matrix:
    """Return Rousseeuw's silhouettes ``[n]``: (b - a) / max(a, b), of distances within and to the next group.

    Args:
        sums: Sums of the distances from each agent to each group, ``[n, groups]``.
        labels: The group of each agent, ``[n]``.
        sizes: Sizes of the groups.
    """
    own = (np.arange(len(labels)), labels)
    within = sums[own] / np.maximum(sizes[labels] - 1, 1)
    means = sums / sizes
    means[own] = np.inf
    nearest, most = means.min(1), np.maximum(means.min(1), within)
    return np.divide(nearest - within, most, out=np.zeros(len(labels)), where=(most > 0) & (sizes[labels] > 1))


def scale_distances(matrix: Matrix) -> Matrix:
    """Return points ``[n, d]`` in their principal axes, the longest first, with about these distances.

    This is classical multidimensional scaling.
    """
    squares = matrix**2
    products = -0.5 * (squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean())
    values, vectors = np.linalg.eigh(products)
    positive = np.flatnonzero(values > 1e-9 * max(values.max(), np.finfo(float).tiny))[::-1]
    return vectors[:, positive] * np.sqrt(values[positive])
