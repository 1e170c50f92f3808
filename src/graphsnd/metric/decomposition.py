"""SND split into a part within groups of agents and a part between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import torch

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import in_order
from graphsnd.errors import InputError, plural, shape_of
from graphsnd.metric.pair_distances import pairwise


@dataclass(frozen=True, eq=False)
class Decomposition:
    """SND as a part within groups and a part between groups, ``snd = within + between``.

    Example:
        >>> import torch, graphsnd as gs
        >>> print(gs.decompose(gs.Deterministic(torch.tensor([[[0.0], [1.0], [6.0]]])), ["a", "a", "b"]))
        SND 4 = 0.333333 within + 3.66667 between 2 groups
    """

    groups: tuple[Hashable, ...]  # the labels, in the order in which they first occur
    snd: torch.Tensor  # SND of the whole team
    within: torch.Tensor  # distances of pairs in one group, summed and divided by the number of all pairs
    between: torch.Tensor  # the same of pairs in two groups
    shares: torch.Tensor  # [g, g], upper triangle: the part of each group, and of each pair of groups; sums to SND
    means: torch.Tensor  # [g, g], symmetric: each group's own SND, and mean distances between groups
    pairs: torch.Tensor  # [g, g], symmetric, int64: the number of pairs behind each mean

    def __str__(self) -> str:
        parts = f"{float(self.within):.6g} within + {float(self.between):.6g} between"
        return f"SND {float(self.snd):.6g} = {parts} {len(self.groups)} {plural('group', len(self.groups))}"


def decompose(
    behavior: Behavior,
    labels: torch.Tensor | Sequence[Hashable] | Mapping[str, Hashable],
    distance: Distance | str | None = None,
    *,
    backend: str = "auto",
) -> Decomposition:
    r"""Split SND into a part within groups of agents and a part between them.

    .. math:: \mathrm{SND} = \binom{n}{2}^{-1} \Big( \sum_{g} \sum_{i<j \in g} d(i,j)
        + \sum_{g<h} \sum_{i \in g, j \in h} d(i,j) \Big)

    Every pair is in one of the two sums, so the parts add up to SND, to rounding. A group of one agent has no pair:
    its own SND is 0.

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        labels: ``[n]``, a tensor or a sequence of anything hashable, such as the name of each agent's role; or a dict
            of them by the agents' names.
        distance: A distance or its name; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The parts, differentiable.

    Raises:
        InputError: Unless there is one label for each agent.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [1.0], [6.0]]]))
        >>> print(gs.decompose(team, ["scout", "scout", "guard"]))
        SND 4 = 0.333333 within + 3.66667 between 2 groups
    """
    matrix = pairwise(behavior, distance, backend=backend)
    if isinstance(labels, Mapping):
        labels = in_order("labels", labels, behavior.names)
    if isinstance(labels, torch.Tensor) and labels.dim() != 1:
        raise InputError("labels", "to be flat, one for each agent", shape_of(labels), "Give names or numbers.")
    names = labels.tolist() if isinstance(labels, torch.Tensor) else list(labels)
    n = len(matrix)
    if len(names) != n:
        raise InputError("labels", f"to be {n}, one for each agent", len(names))
    groups = tuple(dict.fromkeys(names))
    places = {name: place for place, name in enumerate(groups)}
    rows = torch.tensor([places[name] for name in names], device=matrix.device)
    member = torch.nn.functional.one_hot(rows, len(groups)).double()  # [n, g]
    both = member.T @ matrix.double() @ member  # pairs within a group stand here twice, as (i, j) and (j, i)
    sums = both - both.diag().diag() / 2
    sizes = member.sum(dim=0)
    counts = sizes.outer(sizes) - (sizes * (sizes + 1) / 2).diag()
    shares = sums.triu() / (n * (n - 1) / 2)
    return Decomposition(
        groups,
        snd=shares.sum().to(matrix.dtype),
        within=shares.diag().sum().to(matrix.dtype),
        between=shares.triu(1).sum().to(matrix.dtype),
        shares=shares.to(matrix.dtype),
        means=(sums / counts.clamp(min=1)).to(matrix.dtype),
        pairs=counts.long(),
    )
