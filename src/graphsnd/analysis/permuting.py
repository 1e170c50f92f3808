"""Do two agents act alike? A permutation test on their samples."""

from __future__ import annotations

import torch

from graphsnd import kernels
from graphsnd.arguments import checked
from graphsnd.behavior import Distance, Samples
from graphsnd.behavior.behavior import embed
from graphsnd.errors import InputError, check_integer

CHUNK = 1 << 22  # numbers that are permuted at a time


@checked
@torch.no_grad()
def act_alike(
    behavior: Samples,
    first: int | str,
    second: int | str,
    *,
    distance: Distance | None = None,
    permutations: int = 199,
    seed: int = 0,
) -> float:
    """Return the p-value of "these two agents act alike": small where their samples show that they do not.

    If they do, their samples at an observation are exchangeable. So they are pooled and dealt out again at random, at
    each observation by itself, and the p-value is the share of deals, the real one included, at least as far apart.
    It is at most ``a`` with probability at most ``a``, for every number of samples and every distance.

    Args:
        behavior: Independent samples of all agents.
        first: An agent, by name or index.
        second: Another one.
        distance: Of samples; the default of samples when None.
        permutations: Deals beside the real one; the smallest p-value is ``1 / (permutations + 1)``.
        seed: Of the deals.

    Raises:
        InputError: For an agent that is none of the behaviour's, the same one twice, and no permutations.

    Example:
        >>> import torch, graphsnd as gs
        >>> noise = torch.randn(8, 3, 16, 2, generator=torch.Generator().manual_seed(0))
        >>> team = gs.Samples(noise + torch.tensor([0, 0, 1]).view(3, 1, 1))
        >>> gs.act_alike(team, 0, 1) > 0.05, gs.act_alike(team, 0, 2)
        (True, 0.005)
    """
    check_integer("permutations", permutations, "to be an integer, at least 1", low=1)
    pair = [_index(behavior, "first", first), _index(behavior, "second", second)]
    if pair[0] == pair[1]:
        raise InputError("second", "to be another agent than the first", repr(second))
    samples = behavior.samples[..., pair, :, :]
    pool = samples.reshape(-1, 2 * samples.shape[-2], samples.shape[-1])  # [observations, samples of both, features]
    generator = torch.Generator().manual_seed(seed)
    measured = [_distances(pool.unsqueeze(1), distance)]
    step = max(1, CHUNK // pool.numel())
    for start in range(0, permutations, step):
        shape = (len(pool), min(step, permutations - start), pool.shape[1])
        order = torch.rand(shape, generator=generator, dtype=torch.float64).argsort(dim=-1).to(pool.device)
        rows = torch.arange(len(pool), device=pool.device).view(-1, 1, 1)
        measured.append(_distances(pool[rows, order], distance))
    real, *dealt = torch.cat(measured).tolist()
    # Deals of discrete samples are often the same up to rounding, and those count.
    return (1 + sum(each >= real * (1 - 1e-6) for each in dealt)) / (1 + permutations)


def _distances(pools: torch.Tensor, distance: Distance | None) -> torch.Tensor:
    """Return the distance between the two parts of each deal of ``[observations, deals, samples, features]``."""
    deals = pools.shape[1]
    behavior = Samples(pools.unflatten(2, (2, -1)).flatten(1, 2), validate=False)
    edges = torch.arange(2 * deals, device=pools.device).view(deals, 2)
    return kernels.edge_means(embed(behavior, distance), edges)


def _index(behavior: Samples, name: str, agent: int | str) -> int:
    known = [*range(behavior.agents), *behavior.names]
    if agent not in known:
        raise InputError(name, f"to be one of {behavior.agents} agents, by name or index", repr(agent))
    return known.index(agent) % behavior.agents
