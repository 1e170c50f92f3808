r"""Pairs chosen by what is known about them: groups of agents, and more pairs where distances are believed to vary.

Groups split the pairs of agents into blocks, one for each group and one for each two groups. In block h, with
:math:`N_h` pairs of agents, :math:`m_h` are measured at each observation: a graph of nearly equal degrees, laid over
the block's agents in a random order. Every pair of the block is then measured with probability :math:`m_h / N_h`, and
with Horvitz-Thompson weights

.. math:: \hat X_o = \frac1N \sum_h \frac{N_h}{m_h} \sum_{e \in S_h} d_o(e), \qquad E \hat X_o = \mathrm{SND}_o

whatever was believed: groups and numbers decide the variance alone. What differs between blocks is measured without
error, and within a block effects of single agents cancel, as they do in a ring.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance, embed
from graphsnd.bounds.relabelling import factor_from_counts
from graphsnd.designs.design import Call, Design, Selection, require_generator
from graphsnd.designs.subsets import ordered_subsets
from graphsnd.errors import InputError, check_edges, check_finite, check_inclusion, check_integer, describe, shape_of

LARGEST = 1e150  # distance whose square does not overflow
DEFENCE = 0.5  # share of the pairs that goes to blocks by their size alone
SIZES = (1, 2, 3, 4, 6, 8, 12)  # numbers of groups that are tried
TRIALS, DRAWS = 64, 2048  # at each observation and about in all, to choose among them
WORTH = 1.1  # times the smallest squared error, which is small by chance too: the fewest groups within that are taken


@dataclass(frozen=True, eq=False)
class PairBlock:
    """The pairs between two groups of agents, or within one."""

    one: Tensor  # int64 [s], agents
    two: Tensor | None  # int64 [t]; None within a group
    places: Tensor  # int64 [m, 2], which of them are paired, before they are put in a random order

    @property
    def size(self) -> int:
        """Number of pairs of agents."""
        return math.comb(len(self.one), 2) if self.two is None else len(self.one) * len(self.two)

    def factor(self) -> float:
        """Return the smallest c with Var(mean over the places) <= c * (mean squared deviation), for every team."""
        m, rows = len(self.places), torch.bincount(self.places[:, 0]).double()
        if self.two is None:
            degrees = torch.bincount(self.places.flatten()).double()
            return factor_from_counts(len(self.one), m, int((degrees * (degrees - 1) / 2).sum()))
        # Distances are row effects, column effects and interactions; the three do not mix.
        s, t, columns = len(self.one), len(self.two), torch.bincount(self.places[:, 1]).double()
        sides = [(part, size) for part, size in ((rows, s), (columns, t)) if size > 1]
        parts = [(float(part.square().sum()) - m * m / size) * size / (size - 1) for part, size in sides]
        if len(sides) == 2:
            same_row, same_column = (float((part * (part - 1)).sum()) for part in (rows, columns))
            apart = m * (m - 1) - same_row - same_column
            parts += [m - same_row / (t - 1) - same_column / (s - 1) + apart / ((s - 1) * (t - 1))]
        return max([0.0, *parts]) / m**2

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
        """Return the agents of the pairs at ``count`` observations, int64 ``[count, m, 2]``."""

        def lay(agents: Tensor, places: Tensor) -> Tensor:
            order = ordered_subsets(len(agents), int(places.max()) + 1, count, generator, device)
            return agents.to(device)[order][:, places.to(device)]

        if self.two is None:
            return lay(self.one, self.places)
        return torch.stack([lay(self.one, self.places[:, 0]), lay(self.two, self.places[:, 1])], dim=-1)


@checked
@dataclass(frozen=True)
class Adaptive(Design):
    """Pairs by blocks of agents, redrawn for each observation; :func:`adapt` makes it from what is known.

    Args:
        count: Pairs at each observation, at least one for each block.
        labels: Group of each agent, 0, 1, ...
        spreads: Believed standard deviation of the distances between two groups, ``[groups][groups]``; blocks count by
            their size alone when None.
        defence: Share of the pairs that goes to blocks by their size, whatever is believed: the other part is in
            proportion to size times spread (Neyman). :meth:`worst_factor` says what a wrong belief can cost.

    Example:
        >>> design = Adaptive(30, (0,) * 10 + (1,) * 10)
        >>> str(design), design.counts(), round(design.worst_factor(20), 2)
        ('adaptive:30', [7, 16, 7], 1.24)
    """

    count: int
    labels: tuple[int, ...]
    spreads: tuple[tuple[float, ...], ...] | None = None
    defence: float = DEFENCE

    family, example = "adaptive", "adaptive:400"

    def __post_init__(self) -> None:
        check_inclusion("defence", self.defence)
        groups, given = len(set(self.labels)), self.spreads
        if set(self.labels) != set(range(groups)):
            raise InputError("labels", "to be 0, 1, ... without a gap", describe(self.labels))
        if given is not None and (
            len(given) != groups or any(len(row) != groups or not 0 <= min(row) <= max(row) <= LARGEST for row in given)
        ):
            raise InputError("spreads", f"to be {groups} times {groups}, in 0 .. {LARGEST}", describe(given))
        split_blocks(self)

    def counts(self) -> list[int]:
        """Return the number of pairs measured in each block: 0 and 0, 0 and 1, ..."""
        return [len(block.places) for block in split_blocks(self)]

    def pairs(self, n: int) -> int:  # noqa: D102
        self._check(n)
        return self.count

    def worst_factor(self, n: int) -> float:
        r"""Return the largest variance, for any team of ``n``, in units of that of as many random pairs.

        .. math:: \max_h \Big(\frac{N_h}{N}\Big)^2 \frac{c_h}{N_h} \Big/ \frac{1/m - 1/N}{N - 1}

        The variance is a sum over blocks of squared deviations within them, each by at most :math:`c_h`, and those of
        random pairs has all squared deviations with one factor; so the largest ratio is that of one block. It is
        reached by a team that differs in that block only. 0 where all pairs are measured.
        """
        self._check(n)
        pairs = math.comb(n, 2)
        if self.count == pairs:
            return 0.0
        worst = max((block.size / pairs) ** 2 * block.factor() / block.size for block in split_blocks(self))
        return worst * (pairs - 1) / (1 / self.count - 1 / pairs)

    def _select(self, call: Call) -> Selection:
        self._check(call.agents)
        check_edges("observations", call.observations * self.count)
        edges, weights = self._draw(call.observations, require_generator(call.generator, self), call.device)
        return Selection(edges, weights=weights)

    def _draw(self, count: int, generator: torch.Generator, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the pairs of ``count`` observations, ``[count, m, 2]``, and their weights, float64 ``[m]``."""
        edges = [block.draw(count, generator, device) for block in split_blocks(self)]
        each = [block.size / len(block.places) for block in split_blocks(self) for _ in block.places]
        # At each observation they sum to the number of all pairs, so that dividing by their sum changes nothing.
        return torch.cat(edges, dim=1), torch.tensor(each, dtype=torch.float64).to(device)

    def _check(self, n: int) -> None:
        if n != len(self.labels):
            raise InputError("design", f"for the team's {n} agents", f"one for {len(self.labels)}", "Adapt it again.")

    def __str__(self) -> str:
        """Return a name, without the groups: it cannot be parsed, and other groups have it too."""
        return f"{self.family}:{self.count}"


@checked
def adapt(
    belief: Behavior | Tensor,
    count: int,
    *,
    groups: int | None = None,
    labels: Tensor | None = None,
    distance: Distance | None = None,
    defence: float = DEFENCE,
) -> Adaptive:
    """Choose pairs by what is believed about the distances, from a few observations or from earlier iterations.

    Agents that were near each other are grouped (Ward's linkage), and blocks whose distances varied more are measured
    more. The estimate is unbiased whatever the belief; a good one makes its error smaller.

    Args:
        belief: What the agents would do on a few observations, 16 say; or distances ``[n, n]``.
        count: Pairs to measure at each observation.
        groups: Number of groups. When None, the fewest with nearly the smallest error on the second half of the
            observations when they are chosen by the first; of distances, which have no halves, as many as an agent has
            partners, up to 8.
        labels: Group of each agent, as of :func:`graphsnd.roles`, instead of ``groups``.
        distance: Of a behaviour; the family's default when None.
        defence: Share of the pairs that goes to blocks by their size alone.

    Example:
        >>> line = torch.tensor([0.0, 0.1, 0.2, 9.0, 9.1, 9.2])
        >>> adapt((line[:, None] - line).abs(), 6, groups=2).labels
        (0, 0, 0, 1, 1, 1)
    """
    if isinstance(belief, Behavior):
        points = embed(belief, distance).detach()
        check_edges("belief", points.observations * points.agents**2)
        known = torch.stack([kernels.pair_matrix(points.slice(o, o + 1)) for o in range(points.observations)])
    else:
        known = belief.detach().double().unsqueeze(0)
    n, known = known.shape[-1], known.cpu()
    if known.dim() != 3 or known.shape[1] != n or n < 2:
        raise InputError("belief", "with shape (agents, agents), at least 2 agents", shape_of(known[0]))
    check_finite("belief", known)
    if not 0 <= float(known.min()) <= float(known.max()) <= LARGEST:
        raise InputError("belief", f"to be distances in 0 .. {LARGEST}", "others")
    if labels is None:
        groups = _choose_groups(known, count, defence) if groups is None else groups
        check_integer("groups", groups, f"in 1 .. {n}", low=1, high=n)
        labels = _group(known.mean(0), groups)
    if labels.shape != (n,):
        raise InputError("labels", f"to be {n}, one for each agent", shape_of(labels))
    check_finite("labels", labels)
    return _build(known.mean(0), labels, count, defence)


def _group(matrix: Tensor, groups: int) -> Tensor:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform((matrix + matrix.T).numpy() / 2, checks=False), "ward")
    return torch.from_numpy(fcluster(tree, groups, "maxclust"))


def _build(matrix: Tensor, labels: Tensor, count: int, defence: float) -> Adaptive:
    names = {label: place for place, label in enumerate(dict.fromkeys(labels.tolist()))}
    index = torch.tensor([names[label] for label in labels.tolist()])
    member = [(index == group).nonzero().flatten() for group in range(len(names))]
    spreads = tuple(tuple(_spread(matrix, one, two) for two in member) for one in member)
    return Adaptive(count, tuple(index.tolist()), spreads, defence)


def _choose_groups(known: Tensor, count: int, defence: float) -> int:
    """Return the number of groups whose design, made from one half of the observations, does best on the other."""
    half, n = len(known) // 2, known.shape[-1]
    usual = max(1, min(8, n // 4, round(2 * count / n)))
    if half < 2:
        return usual
    trials = max(1, min(TRIALS, DRAWS // half))
    first, rows = known[:half].mean(0), torch.arange(half, len(known)).repeat(trials).unsqueeze(1)
    exact = (known.sum((1, 2)) / (n * (n - 1)))[rows[:, 0]]

    def error(groups: int) -> float:
        design = _build(first, _group(first, groups), count, defence)
        edges, weights = design._draw(len(rows), torch.Generator().manual_seed(0), torch.device("cpu"))
        drawn = known[rows, edges[..., 0], edges[..., 1]] * weights
        return float((drawn.sum(1) / math.comb(n, 2) - exact).square().mean())

    errors = {groups: error(groups) for groups in SIZES if groups <= max(1, n // 4) and groups**2 <= count}
    return next(groups for groups, own in errors.items() if own <= WORTH * min(errors.values()))


def _spread(matrix: Tensor, one: Tensor, two: Tensor) -> float:
    """Return the standard deviation of the distances between two groups, or within one."""
    block = matrix[one][:, two]
    values = block if one is not two else block[torch.triu_indices(len(one), len(one), 1).unbind()]
    return float(values.std(correction=0)) if values.numel() > 1 else 0.0


@lru_cache(maxsize=64)
def split_blocks(design: Adaptive) -> tuple[PairBlock, ...]:
    """Return what is measured in each block; raise where there are too few pairs for all of them."""
    labels = torch.tensor(design.labels)
    member = [(labels == group).nonzero().flatten() for group in range(len(set(design.labels)))]
    couples = list(itertools.combinations_with_replacement(range(len(member)), 2))
    couples = [(g, h) for g, h in couples if g != h or len(member[g]) > 1]
    sizes = [math.comb(len(member[g]), 2) if g == h else len(member[g]) * len(member[h]) for g, h in couples]
    if not 1 <= len(sizes) <= design.count <= sum(sizes):
        expected, fix = f"in {len(sizes)} .. {sum(sizes)}: at least one pair for each block", "Or use fewer groups."
        raise InputError("count", expected, design.count, fix)
    spreads = [1.0 if design.spreads is None else design.spreads[g][h] for g, h in couples]
    counts = allocate(sizes, spreads, design.count, design.defence)
    return tuple(_lay_block(member[g], member[h], count) for (g, h), count in zip(couples, counts, strict=True))


def _lay_block(one: Tensor, two: Tensor, count: int) -> PairBlock:
    if one is two:
        return PairBlock(one, None, _within(len(one), count))
    return PairBlock(one, two, _between(len(one), len(two), count))


def allocate(sizes: Sequence[int], spreads: Sequence[float], count: int, defence: float) -> list[int]:
    """Return how many of ``count`` pairs each block has: at least its share by size, rounded up, and at most all.

    Where that leaves none for the belief, at least one, and otherwise as near as can be.

    Example:
        >>> allocate([10, 100], [1.0, 1.0], 11, 0.5), allocate([10, 100], [9.0, 0.1], 11, 0.5)
        ([1, 10], [5, 6])
    """
    varying = [size * spread for size, spread in zip(sizes, spreads, strict=True)]
    varying, pairs = varying if sum(varying) > 0 else list(map(float, sizes)), sum(sizes)
    shares = [defence * size / pairs for size in sizes]
    beliefs = [(1 - defence) * part / sum(varying) for part in varying]
    wanted = [count * (share + belief) for share, belief in zip(shares, beliefs, strict=True)]
    least = [max(1, math.ceil(count * share)) for share in shares]
    least = least if sum(least) <= count else [1] * len(sizes)
    counts = [max(low, min(size, int(part))) for low, size, part in zip(least, sizes, wanted, strict=True)]
    while (missing := count - sum(counts)) != 0:
        step = 1 if missing > 0 else -1
        free = [k for k, size in enumerate(sizes) if least[k] <= counts[k] + step <= size]
        best = max(free, key=lambda k: step * (wanted[k] - counts[k]))
        counts[best] += step
    return counts


def _between(s: int, t: int, m: int) -> Tensor:
    """Return ``m`` different pairs of ``s`` and ``t`` places, ``[m, 2]``, with degrees that differ by at most one."""
    step = torch.arange(m)
    # All s t pairs in turn: along a diagonal, which closes after their least common multiple, then along the next.
    return torch.stack([step % s, (step + step // math.lcm(s, t)) % t], dim=1)


def _within(s: int, m: int) -> Tensor:
    """Return ``m`` different pairs of ``s`` places, ``[m, 2]``, with degrees that differ by at most two."""
    step = torch.arange(m)
    shift, at = step // s + 1, step % s
    # Around a ring, every second edge first, so that half a round is a matching. Opposite places are joined once.
    turns = torch.cat([torch.arange(0, s, 2), torch.arange(1, s, 2)])
    start = torch.where(2 * shift == s, at, turns[at])
    return torch.stack([start, (start + shift) % s], dim=1)
