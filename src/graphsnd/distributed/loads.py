"""What a call sends, computes and holds: a model, which the tests compare with counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from graphsnd.distributed.ranks import NOTE
from graphsnd.distributed.shards import BLOCK, SHARDS
from graphsnd.errors import InputError, check_choice, check_integer


@dataclass(frozen=True)
class Load:
    """The largest load of any rank.

    Example:
        >>> most = load([1250] * 8, 4096, 4)  # 10,000 agents on 8 ranks
        >>> round(most.sent / 2**20), round(most.held / 2**20)  # MiB
        (68, 270)
    """

    sent: int  # bytes to other ranks
    pairs: int  # distances, one for each observation and pair
    held: int  # bytes: its own shard; three blocks (measured, sent, received); and gradients at all of it


def load(
    agents: Sequence[int], observations: int, features: int, *, shard: str = "agents", edges: int | None = None,
    gradient: bool = False, itemsize: int = 4,
) -> Load:  # fmt: skip
    r"""Return what :func:`~graphsnd.distributed.snd` or :func:`~graphsnd.distributed.graph_snd` asks of a rank.

    Of n agents, O observations, F features of s bytes and P ranks, a rank with n / P agents sends

    .. math:: s F \frac{n}{P} \Big(O - \frac{O}{P}\Big)

    bytes, the same again for the gradient, and a note to each other rank. It measures O / P observations. With shards
    of observations it sends the note and the sum.

    Args:
        agents: Number of agents of each rank; for shards of observations the team's, once for each rank.
        observations: Number of observations, shared out evenly.
        features: Number of features of a point: 4 for Gaussians of two actions.
        shard: ``agents`` or ``observations``.
        edges: Number of edges of the graph; all pairs when None.
        gradient: Whether one is asked for.
        itemsize: Bytes of a number.

    Example:
        >>> load([1250] * 8, 4096, 4)
        Load(sent=71737352, pairs=25597440000, held=283040000)
    """
    check_choice("shard", shard, SHARDS)
    check_integer("itemsize", itemsize, "to be an integer, at least 1", low=1)
    if not isinstance(agents, Sequence) or not len(agents):
        raise InputError("agents", "to be a list, those of each rank", agents)
    own = [check_integer("agents", count, "to be at least 0", low=0) for count in agents]
    turned, ranks, size = shard == "agents", len(own), features * itemsize
    n = sum(own) if turned else max(own)
    if n < 2:
        raise InputError("agents", "to be at least 2 over all ranks", n)
    shares = [(rank + 1) * observations // ranks - rank * observations // ranks for rank in range(ranks)]
    both = list(zip(own, shares, strict=True))
    moved = [mine * (observations - share) + gradient * share * (n - mine) for mine, share in both] if turned else [0]
    rows = min(max(shares), max(1, BLOCK // (n * features)))
    held = max(own) * observations + 3 * rows * n if turned else max(shares) * n
    return Load(
        sent=(ranks - 1) * NOTE + 8 * (ranks > 1) + max(moved) * size,
        pairs=max(shares) * (math.comb(n, 2) if edges is None else edges),
        held=held * size * (1 + gradient),
    )
