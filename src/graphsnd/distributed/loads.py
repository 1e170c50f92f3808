"""What a call sends, computes and holds: a model, which the tests compare with counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from graphsnd.arguments import checked
from graphsnd.distributed.ranks import NOTE
from graphsnd.distributed.shards import BLOCK, SHARDS
from graphsnd.errors import InputError, as_integer, check_choice, check_integer, describe


@dataclass(frozen=True)
class Load:
    """The most of any rank."""

    sent: int  # bytes to other ranks
    pairs: int  # distances, one for each observation and pair
    held: int  # bytes: its own shard; of all agents one block, and its copy to be sent; and gradients at all of it


@checked(own="agents")
def load(
    agents: int | Sequence[int],
    observations: int,
    features: int,
    ranks: int,
    *,
    shard: str = "agents",
    edges: int | None = None,
    gradient: bool = False,
    itemsize: int = 4,
) -> Load:
    r"""Return what :func:`~graphsnd.distributed.snd` or :func:`~graphsnd.distributed.graph_snd` asks of a rank.

    Of n agents, O observations, F features of s bytes and P ranks, a rank with shards of agents sends

    .. math:: s F \frac{n}{P} \Big(O - \frac{O}{P}\Big),

    the same again for the gradient, and a note to each other rank. It measures O / P observations. With shards of
    observations it sends the note and the sum.

    Args:
        agents: Of the team, shared out evenly; or of each rank.
        observations: Of the team.
        features: Of a point: 4 for Gaussians of two actions.
        ranks: Their number.
        shard: ``agents`` or ``observations``.
        edges: Of the graph; all pairs when None.
        gradient: Whether one is asked for.
        itemsize: Bytes of a number.

    Example:
        >>> load(10_000, 4096, 4, 8)
        Load(sent=71737352, pairs=25597440000, held=216000000)
    """
    check_choice("shard", shard, SHARDS)
    check_integer("ranks", ranks, "to be an integer, at least 1 and at most 2**20", low=1, high=2**20)
    for name, value in (("observations", observations), ("features", features), ("itemsize", itemsize)):
        check_integer(name, value, "to be an integer, at least 1", low=1)
    if isinstance(agents, int):
        own = [agents // ranks + (rank < agents % ranks) for rank in range(ranks)]
    else:
        own = [count for count in map(as_integer, agents if isinstance(agents, Sequence) else ()) if count is not None]
    n, size = sum(own), features * itemsize
    if len(own) != ranks or min(own) < 0 or n < 2:
        raise InputError("agents", f"to be at least 2, one number or {ranks} of them", describe(agents))
    shares = [(r + 1) * observations // ranks - r * observations // ranks for r in range(ranks)]
    words = (ranks - 1) * NOTE + 8 * (ranks > 1)
    turned = shard == "agents"
    sent = [
        words + turned * size * (mine * (observations - share) + gradient * share * (n - mine))
        for mine, share in zip(own, shares, strict=True)
    ]
    rows = min(max(shares), max(1, BLOCK // (n * features)))
    held = max(own) * observations + 2 * rows * n if turned else max(shares) * n
    pairs = max(shares) * (math.comb(n, 2) if edges is None else edges)
    return Load(max(sent), pairs, held * size * (1 + gradient))
