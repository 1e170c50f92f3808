"""Which backend runs a call.

``auto`` takes the fastest backend that can run it; naming one that cannot raises and lists those that can. The
compiled backends are imported on first use, so that importing graphsnd loads neither numba nor Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce, wraps
from importlib import import_module
from operator import add
from types import ModuleType
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from graphsnd.behavior.points import Norm, Points
from graphsnd.errors import InputError
from graphsnd.kept import place
from graphsnd.kernels import reference, separable
from graphsnd.kernels.autograd import CODES, Differentiable
from graphsnd.sums import mean

Operation = TypeVar("Operation", bound=Callable[..., Any])
COMPILED = {"gpu": "triton", "cpu": "numba"}  # backend and the package it needs
MAX_FEATURES = {"gpu": 128, "cpu": 4096}  # the GPU unrolls some loops over features
SMALL = 1 << 16  # pair-features below which plain torch is done before a compiled kernel has loaded
Backend = Differentiable | ModuleType  # the module is `reference`


def sum_over_blocks(operation: Operation) -> Operation:
    """Make an operation on points of one norm one on joint points too: the weighted sum over their blocks."""

    @wraps(operation)
    def run(points: Points, *args: Any, **kwargs: Any) -> Any:
        if points.norm is not Norm.JOINT:
            return operation(points, *args, **kwargs)
        return reduce(add, (weight * operation(part, *args, **kwargs) for weight, part in points.split()))

    return cast(Operation, run)


@sum_over_blocks
def pair_totals(points: Points, *, backend: str = "auto") -> Tensor:
    """Return the sum over all pairs i < j, for each observation: ``[observations]``, float64, differentiable.

    Under ``auto``, separable norms are summed by sorting, in O(n log n).

    Args:
        points: Points ``[observations, agents, features]``.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd import kernels
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> kernels.pair_totals(points)  # [observations]
        tensor([12.], dtype=torch.float64)
    """
    if backend == "auto" and points.separable:
        return separable.pair_totals(points)
    return choose(backend, points).pair_totals(points)


def pair_mean(points: Points, *, backend: str = "auto") -> Tensor:
    """Return the mean over observations and pairs, a scalar in the precision of the input, differentiable.

    Compiled kernels have it in fewer operations than the mean of :func:`pair_totals`, which counts for small teams.

    Args:
        points: Points ``[observations, agents, features]``.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd import kernels
        >>> from graphsnd.behavior.behavior import embed
        >>> kernels.pair_mean(embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        tensor(4.)
    """
    if points.norm is not Norm.JOINT and not (backend == "auto" and points.separable):
        return choose(backend, points).pair_mean(points)
    pairs = points.agents * (points.agents - 1) / 2
    return (mean(pair_totals(points, backend=backend)) / pairs).to(points.result_dtype)


@sum_over_blocks
def pair_matrix(points: Points, weight: Tensor | None = None, *, backend: str = "auto") -> Tensor:
    """Weighted sum of distance matrices (uniform mean by default): ``[agents, agents]``, float64, differentiable.

    Args:
        points: Points ``[observations, agents, features]``.
        weight: ``[observations]``; 1 / observations when None.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd import kernels
        >>> from graphsnd.behavior.behavior import embed
        >>> kernels.pair_matrix(embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))).shape
        torch.Size([3, 3])
    """
    if weight is None:
        o = points.observations
        weight = torch.full((o,), 1.0 / o, dtype=torch.float64, device=points.values.device)
    return choose(backend, points).pair_matrix(points, weight)


@sum_over_blocks
def edge_means(points: Points, edges: Tensor, *, backend: str = "auto") -> Tensor:
    """Return the mean distance over observations along each edge: ``[edges]``, float64, differentiable.

    Args:
        points: Points ``[observations, agents, features]``.
        edges: int64 ``[edges, 2]``, on any device.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd import kernels
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> kernels.edge_means(points, torch.tensor([[0, 1], [0, 2]]))  # [edges]
        tensor([3., 6.], dtype=torch.float64)
    """
    return choose(backend, points, edges.shape[0]).edge_means(points, place(edges, points.parts[0].device))


@sum_over_blocks
def edge_totals(
    points: Points, edges: Tensor, coefficient: Tensor | None = None, *, ordered: bool = False, backend: str = "auto"
) -> Tensor:
    """Sum over edges of coefficient (or 1) times distance, for each observation: ``[observations]``, differentiable.

    Args:
        points: Points ``[observations, agents, features]``.
        edges: int64 ``[edges, 2]``, on any device.
        coefficient: ``[edges]``.
        ordered: Whether edges are sorted, as those of a graph are: a GPU then need not sort them.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd import kernels
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> kernels.edge_totals(points, torch.tensor([[0, 1], [0, 2]]))  # [observations]
        tensor([9.], dtype=torch.float64)
    """
    edges = place(edges, points.parts[0].device)
    return choose(backend, points, len(edges)).edge_totals(points, edges, coefficient, ordered)


@torch.no_grad()
def edge_means_and_totals(
    points: Points,
    edges: Tensor,
    coefficient: Tensor | None = None,
    *,
    ordered: bool = False,
    radii: bool = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Return the means of :func:`edge_means` and the totals of :func:`edge_totals` from one visit of the edges.

    Args:
        points: Points ``[observations, agents, features]``.
        edges: int64 ``[edges, 2]``, on any device.
        coefficient: ``[edges]``; used for the totals only.
        ordered: Whether edges are sorted, as those of a graph are: a GPU then need not sort them.
        radii: Whether to measure the distances of all agents to the mean agent too; no total has them.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Returns:
        Mean distance along each edge ``[edges]``, with radii ``[edges + agents]``, and sum over edges of coefficient or
        1 times distance at each observation ``[observations]``; both float64, without gradient.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd import kernels
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]], [[0.0], [1.0], [2.0]]])))
        >>> kernels.edge_means_and_totals(points, torch.tensor([[0, 1], [0, 2]]))
        (tensor([2., 4.], dtype=torch.float64), tensor([9., 3.], dtype=torch.float64))
    """
    if points.norm is not Norm.JOINT:
        chosen = choose(backend, points, len(edges) + points.agents * radii)
        if edges.device != points.parts[0].device:
            edges = place(edges, points.parts[0].device)
        return chosen.edge_means_and_totals(points, edges, coefficient, ordered, radii)
    options: dict[str, Any] = {"ordered": ordered, "radii": radii, "backend": backend}
    parts = [
        [weight * sums for sums in edge_means_and_totals(part, edges, coefficient, **options)]
        for weight, part in points.split()
    ]
    means, totals = (reduce(add, sums) for sums in zip(*parts, strict=True))
    return means, totals


@sum_over_blocks
def observation_edges(points: Points, edges: Tensor, *, backend: str = "auto") -> Tensor:
    """Distances along edges that each observation has for itself: ``[observations, k]``, float64, differentiable.

    Args:
        points: Points ``[observations, agents, features]``.
        edges: int64 ``[observations, k, 2]``.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]], [[0.0], [1.0], [2.0]]])))
        >>> gs.kernels.observation_edges(points, torch.tensor([[[0, 1]], [[0, 2]]]))  # [observations, k]
        tensor([[3.],
                [2.]], dtype=torch.float64)
    """
    return choose(backend, points, edges.shape[1]).observation_edges(points, edges)


@sum_over_blocks
def ragged_edges(points: Points, edges: Tensor, starts: Tensor, *, backend: str = "auto") -> Tensor:
    """Distances along ``edges [m, 2]``, of which observation o has ``starts[o]`` to ``starts[o + 1]``: ``[m]``.

    float64, differentiable. The agents of all observations stand side by side, as those of one observation.

    Args:
        points: Points ``[observations, agents, features]``.
        edges: int64 ``[m, 2]``, those of the first observation first.
        starts: int64 ``[observations + 1]``, from 0 to m.
        backend: ``auto`` or the name of a backend, see :func:`available`.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]], [[0.0], [1.0], [2.0]]])))
        >>> edges = torch.tensor([[0, 1], [1, 2], [0, 2]])  # two of the first observation, one of the second
        >>> gs.kernels.ragged_edges(points, edges, torch.tensor([0, 2, 3]))
        tensor([3., 3., 2.], dtype=torch.float64)
    """
    o, n = points.observations, points.agents
    flat = points.replace(points.values.reshape(1, o * n, points.features))
    first = n * torch.repeat_interleave(starts.diff(), output_size=len(edges))
    own = (edges + first.unsqueeze(1)).unsqueeze(0)
    return choose(backend, flat, len(edges)).observation_edges(flat, own, starts).squeeze(0)


def choose(backend: str, points: Points, pairs: int | None = None) -> Backend:
    """Return the backend for a call over ``pairs`` pairs of each observation, all of them when None."""
    if backend == "reference":
        return reference
    if backend == "auto":
        values = points.parts[0]
        device = "gpu" if values.is_cuda else "cpu"
        o, n, _ = values.shape
        pairs = n**2 // 2 if pairs is None else pairs
        small = (n + pairs) * o * points.features < SMALL
        # A compiled kernel has nothing to iterate over without pairs; torch handles empty tensors.
        if small or pairs == 0 or obstacle(device, points):
            return reference
        return _load(device)
    why = obstacle(backend, points) if isinstance(backend, str) and backend in COMPILED else "there is no such backend"
    if why:
        able = [name for name in COMPILED if not obstacle(name, points)] + ["reference"]
        raise InputError("backend", f"that can run this ({', '.join(able)}, or auto)", repr(backend), f"Here {why}.")
    return _load(backend)


def available() -> dict[str, str | None]:
    """Each backend with the reason it cannot run on this machine, None where it can.

    Example:
        >>> available()["reference"] is None, sorted(available())
        (True, ['cpu', 'gpu', 'reference'])
    """
    return {name: _missing(name) for name in COMPILED} | {"reference": None}


def obstacle(backend: str, points: Points) -> str | None:
    """Why a compiled backend cannot run on these points, None when it can."""
    values = points.parts[0]
    if backend == "gpu" and not values.is_cuda:
        return "the points are not on a CUDA device"
    if backend == "cpu" and values.device.type != "cpu":
        return "the points are not on the CPU"
    if points.norm not in CODES:
        return f"the {points.norm.value} norm has no compiled kernel"
    if points.features > MAX_FEATURES[backend]:
        return f"{points.features} features are more than {MAX_FEATURES[backend]}"
    if values.dtype not in (torch.float32, torch.float64):
        return f"{values.dtype} is not supported"
    return _missing(backend)


@lru_cache
def _missing(backend: str) -> str | None:
    if backend == "gpu" and not torch.cuda.is_available():
        return "there is no CUDA device"
    try:
        import_module(COMPILED[backend])
    except ImportError as error:
        return f"{COMPILED[backend]} cannot be imported ({error})"
    return None


@lru_cache
def _load(backend: str) -> Backend:
    return import_module(f"graphsnd.kernels.{backend}.launch").backend
