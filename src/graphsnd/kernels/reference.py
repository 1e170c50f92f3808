"""The plain torch backend: every norm, every device, any dtype; the oracle of the others.

It works through the observations and rows in chunks, so that memory stays bounded, and recomputes each chunk
on the way back instead of storing it. After it come the distance between two rows of features, for every norm, and
the unit that keeps squares inside the range of floats.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.autograd.function import once_differentiable

from graphsnd.behavior.points import Norm, Points, mean_agent
from graphsnd.sums import add_last

CHUNK = 1 << 22  # elements of the largest temporary
PairFunction = Callable[[Tensor, Tensor], Tensor]


def pair_totals(points: Points) -> Tensor:
    """Return the sum of the distances over all pairs i < j, for each observation: ``[observations]``, float64."""
    n, f = points.values.shape[1:]
    if points.norm is Norm.BURES:  # an SVD for each pair: none is computed twice
        return edge_totals(points, torch.triu_indices(n, n, 1, device=points.values.device).T, None)

    def block(part: Tensor, start: int, stop: int) -> Tensor:
        d = across(points.norm, part[:, start:stop], part[:, start:])
        return add_last(torch.triu(d, diagonal=1).double().flatten(1))

    x, scale, run = _prepare(points, block)
    rows, step = _split_chunks(n, n * f)
    totals = []
    for part in x.split(step):
        sums = run(part, 0, rows)
        for start in range(rows, n, rows):
            sums = sums + run(part, start, start + rows)
        totals.append(sums)
    return torch.cat(totals) * scale


def pair_mean(points: Points) -> Tensor:
    """Return the mean over observations and pairs, in the dtype of the results."""
    totals, n = pair_totals(points), points.values.shape[1]
    return (add_last(totals) / len(totals) / (n * (n - 1) / 2)).to(points.result_dtype)


def pair_matrix(points: Points, weight: Tensor) -> Tensor:
    """Return the weighted sum of the distance matrices over observations: ``[agents, agents]``, float64."""
    n, f = points.values.shape[1:]

    def block(part: Tensor, w: Tensor, start: int, stop: int) -> Tensor:
        d = across(points.norm, part[:, start:stop], part)
        return torch.einsum("oij,o->ij", d.double(), w)

    x, scale, run = _prepare(points, block)
    rows, step = _split_chunks(n, n * f)
    w = weight.double() * scale
    chunks = list(zip(x.split(step), w.split(step), strict=True))
    matrix = [
        functools.reduce(torch.add, (run(part, v, start, min(start + rows, n)) for part, v in chunks))
        for start in range(0, n, rows)
    ]
    return torch.cat(matrix)


def edge_means(points: Points, edges: Tensor) -> Tensor:
    """Return the mean distance along each edge: ``[edges]``, float64."""
    return edge_means_and_totals(points, edges, None)[0]


def edge_totals(points: Points, edges: Tensor, coefficient: Tensor | None, ordered: bool = False) -> Tensor:
    """Return the sum over edges of coefficient times distance, for each observation: ``[observations]``, float64."""
    return edge_means_and_totals(points, edges, coefficient)[1]


def edge_means_and_totals(
    points: Points, edges: Tensor, coefficient: Tensor | None, ordered: bool = False, radii: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the mean distance along each edge ``[edges]``, and the edge totals ``[observations]``, both float64.

    With ``radii``, also each agent's mean distance to the mean agent, ``[edges + agents]``.
    """
    if radii:
        parts, edges, coefficient = add_star(points.parts, edges, coefficient)
        joined = edge_means_and_totals(Points(parts, points.norm), edges, coefficient)
        return joined[0].roll(-points.agents), joined[1]
    x, o, m, distance = points.values, points.values.shape[0], edges.shape[0], PAIR_FUNCTIONS[points.norm]
    if m == 0:  # still of the graph that autograd walks
        return x.reshape(-1)[:0].double(), x.reshape(o, -1)[:, :0].sum(dim=1, dtype=torch.float64)

    def block(part: Tensor, e: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        # The gradient of part[:, index] would be added up in the order in which threads come.
        d = distance(part.index_select(1, e[:, 0]), part.index_select(1, e[:, 1])).double()
        return torch.einsum("om,o->m", d, weight.expand(len(part))), d @ c

    x, scale, run = _prepare(points, block)
    weight = scale / o
    width, step = _split_chunks(m, x.shape[2])
    coefficient = x.new_ones(m, dtype=torch.float64) if coefficient is None else coefficient.double()
    pieces = list(zip(edges.split(width), coefficient.split(width), strict=True))
    means, totals = x.new_zeros(m, dtype=torch.float64), []
    for part in x.split(step):
        along, sums = [], []
        for e, c in pieces:
            some, own = run(part, e, c)
            along.append(some)
            sums.append(own)
        means = means + torch.cat(along)
        totals.append(functools.reduce(torch.add, sums))
    return means, torch.cat(totals) * scale


def add_star(
    parts: tuple[Tensor, ...], edges: Tensor, coefficient: Tensor | None
) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Return points with the mean agent before the others, and edges with those to it first: they stay sorted.

    The coefficient of the new ones is 0.
    """
    agents = torch.arange(1, parts[0].shape[1] + 1, device=edges.device)
    joined = torch.cat([torch.stack([torch.zeros_like(agents), agents], dim=1), edges + 1])
    rest = torch.ones(len(edges), dtype=torch.float64, device=edges.device) if coefficient is None else coefficient
    both = []
    for part in parts:
        both.append(torch.cat([mean_agent(part), part], dim=1))
    return tuple(both), joined, torch.cat([rest.new_zeros(len(agents)), rest])


def observation_edges(points: Points, edges: Tensor, starts: Tensor | None = None) -> Tensor:
    """Return distances along each observation's own edges ``[observations, k, 2]``: ``[observations, k]``, float64."""
    if starts is not None:  # one observation with any number of edges
        return edge_means(points, edges[0]).unsqueeze(0)
    o, _, f = points.values.shape
    distance = PAIR_FUNCTIONS[points.norm]

    def block(part: Tensor, e: Tensor) -> Tensor:
        return distance(*(part.gather(1, e[..., k, None].expand(-1, -1, f)) for k in (0, 1))).double()

    x, scale, run = _prepare(points, block)
    step = max(1, CHUNK // max(1, edges.shape[1] * f))
    parts = [run(x[at : at + step], edges[at : at + step]) for at in range(0, o, step)]
    return torch.cat(parts) * scale


def _prepare(points: Points, block: Callable[..., Any]) -> tuple[Tensor, Tensor, Callable[..., Any]]:
    """Return values in the unit of their scale, the scale, and the block to run on each chunk of them.

    Where a gradient is needed, temporaries of a block are not kept: they are computed again.
    """
    x, scale = points.values, scale_of(points.values, points.norm)
    if torch.is_grad_enabled() and x.requires_grad:
        from torch.utils.checkpoint import checkpoint

        # Nothing is drawn in a block; restoring the global random state would disturb other threads.
        block = functools.partial(checkpoint, block, use_reentrant=False, preserve_rng_state=False)
    return x / scale if points.norm in HOMOGENEOUS else x, scale.double(), block


def _split_chunks(count: int, size: int) -> tuple[int, int]:
    """Return how many of ``count`` items of ``size`` elements fit a chunk, and how many observations of those."""
    items = max(1, min(count, CHUNK // size))
    return items, max(1, CHUNK // (items * size))


def across(norm: Norm, x: Tensor, y: Tensor) -> Tensor:
    """Return the distances ``[..., i, j]`` between ``x [..., i, features]`` and ``y [..., j, features]``."""
    # Torch's own function is as exact in this mode, and takes a quarter of the time on a CPU. It has neither second
    # derivatives nor those of the forward mode.
    plain = not (torch.is_grad_enabled() and x.requires_grad) and unpack_dual(x).tangent is None
    if norm is Norm.EUCLIDEAN and plain and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    return PAIR_FUNCTIONS[norm](x.unsqueeze(-2), y.unsqueeze(-3))


def safe_sqrt(squared: Tensor) -> Tensor:
    """Return the square root, with gradient 0 at 0, so that coincident agents do not pull on each other."""
    zero = squared <= 0  # not `> 0` denied: NaN must come out as NaN
    return torch.where(zero, 1, squared).sqrt() * ~zero


def euclidean(x: Tensor, y: Tensor) -> Tensor:
    """Return the Euclidean distance; a matmul form would lose the small distances to cancellation."""
    return safe_sqrt(add_last((x - y).square()))


def cross(x: Tensor, y: Tensor) -> Tensor:
    """Return the root, with its sign, of the product of two halves' differences, whose noise is independent."""
    one, two = (x - y).chunk(2, dim=-1)
    product = add_last(one * two)
    return product.sign() * safe_sqrt(product.abs())


def half_l1(x: Tensor, y: Tensor) -> Tensor:
    """Return half the sum of absolute differences."""
    return add_last((x - y).abs()) / 2


def sqrt_js(p: Tensor, q: Tensor) -> Tensor:
    """Return the square root of the Jensen-Shannon divergence in nats."""
    return safe_sqrt(_JensenShannon.apply(*torch.broadcast_tensors(p, q)))


class _JensenShannon(torch.autograd.Function):
    """Divergence without cancellation between nearly equal distributions.

    With m = (p + q)/2 and delta = (p - q)/(p + q), a category contributes m * h(delta), where
    h(t) = ((1 + t) log(1 + t) + (1 - t) log(1 - t)) / 2 = t^2/2 + t^4/12 + ... The logarithms cancel to second
    order near 0, so there the series is used; the textbook form loses every digit in float32 once p and q
    agree to three.
    """

    # Below the threshold 14 terms leave a relative error under 1e-17.
    THRESHOLD = 0.25
    SERIES = tuple(1.0 / (2 * k * (2 * k - 1)) for k in range(14, 0, -1))

    @staticmethod
    def forward(ctx: Any, p: Tensor, q: Tensor) -> Tensor:
        total = p + q
        delta = torch.where(total > 0, (p - q) / total, 0)
        squared = delta.square()
        series = torch.zeros_like(squared)
        for coefficient in _JensenShannon.SERIES:
            series = (series + coefficient) * squared
        direct = (torch.xlogy(1 + delta, 1 + delta) + torch.xlogy(1 - delta, 1 - delta)) / 2
        ctx.save_for_backward(delta)
        return add_last(total / 2 * torch.where(delta.abs() < _JensenShannon.THRESHOLD, series, direct))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        (delta,) = ctx.saved_tensors
        # d/dp = log(p/m)/2 is -inf at p = 0. An impossible (masked) action is a constant of the policy, so its
        # derivative counts as 0; otherwise the softmax in front would turn 0 * inf into NaN.
        grad = grad.unsqueeze(-1) / 2
        to_p = torch.where(delta > -1, torch.log1p(delta), 0)
        to_q = torch.where(delta < 1, torch.log1p(-delta), 0)
        return grad * to_p, grad * to_q


def bures(x: Tensor, y: Tensor) -> Tensor:
    """Return the 2-Wasserstein distance between Gaussians given as ``[loc, flattened covariance square root]``.

    tr(A + B - 2 (A^1/2 B A^1/2)^1/2) is the smallest ||A^1/2 - B^1/2 R||^2 over orthogonal R. In this form
    nothing cancels, equal covariances give 0 to the last bit in two dimensions, and, R being a minimiser, the
    gradient is the one with R held constant, so no derivative of an SVD is needed.
    """
    actions = round((math.sqrt(1 + 4 * x.shape[-1]) - 1) / 2)
    shape = (*torch.broadcast_shapes(x.shape, y.shape)[:-1], actions, actions)
    a = x[..., actions:].expand(*shape[:-2], -1).reshape(shape)
    b = y[..., actions:].expand(*shape[:-2], -1).reshape(shape)
    with torch.no_grad():
        rotation = _rotation_2d(a, b) if actions == 2 else _rotation(a, b)
    spread = (a - _matmul(b, rotation)).square().sum(dim=(-1, -2))
    squared = (x - y)[..., :actions].square().sum(dim=-1) + spread
    same = (x == y).all(dim=-1)  # an SVD returns the identity only up to rounding
    return safe_sqrt(torch.where(same, 0, squared))


def _rotation_2d(a: Tensor, b: Tensor) -> Tensor:
    """Return the rotation R that maximises tr(R a b): its cosine and sine are proportional to two sums."""
    cos = (a * b).sum(dim=(-1, -2))
    upper = a[..., 0, 0] * b[..., 0, 1] + a[..., 0, 1] * b[..., 1, 1]
    lower = a[..., 1, 0] * b[..., 0, 0] + a[..., 1, 1] * b[..., 1, 0]
    sin = upper - lower
    length = torch.hypot(cos, sin)
    cos, sin = torch.where(length > 0, cos / length, 1), torch.where(length > 0, sin / length, 0)
    return torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)


def _rotation(a: Tensor, b: Tensor) -> Tensor:
    left, _, right = torch.linalg.svd(a @ b)
    return right.mT @ left.mT


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    # Elementwise in two dimensions: a batched matmul may fuse multiply-adds and break the exact zero.
    if a.shape[-1] != 2:
        return a @ b
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(dim=-2)


PAIR_FUNCTIONS: dict[Norm, PairFunction] = {
    Norm.EUCLIDEAN: euclidean,
    Norm.CROSS: cross,
    Norm.HALF_L1: half_l1,
    Norm.SQRT_JS: sqrt_js,
    Norm.BURES: bures,
}

# Times as long as a Euclidean distance of as many features takes, on one thread of a CPU, to a factor of three. Not
# timed when needed: a seed must choose the same design in every run, and on every rank.
SLOWNESS = {
    Norm.CROSS: 20.0,
    Norm.SQRT_JS: 50.0,
    Norm.BURES: 2000.0,
}

HOMOGENEOUS = frozenset({Norm.EUCLIDEAN, Norm.CROSS, Norm.BURES})  # they square: scaling guards against overflow
LONG = 32  # numbers that torch on a CPU compares at once


def slowness(points: Points) -> float:
    """Return how many times as long a distance of these points takes as a Euclidean one of as many features."""
    parts = [(block.norm, block.features) for block in points.blocks] or [(points.norm, points.features)]
    return sum(features * SLOWNESS.get(norm, 1.0) for norm, features in parts) / points.features


def scale_of(values: Tensor, norm: Norm) -> Tensor:
    """Return the unit to divide by before squaring, a 0-dim tensor on the same device; 1 for norms that do not square.

    A power of two about as large as the largest difference between agents.
    Distances are homogeneous, so dividing by it is free of rounding and keeps the squares of 1e-20 and 1e20
    inside float32. The difference counts and not the magnitude: an action that is padded with -3e38 for all
    agents would push the others below the smallest float. It is computed on the device: no host read.

    Args:
        values: Shape ``[observations, agents, features]``.
        norm: Norm of the difference of two agents' features.
    """
    if norm not in HOMOGENEOUS:
        return torch.ones((), dtype=values.dtype, device=values.device)
    high, low = extremes(values.detach())
    _, magnitude = torch.frexp(torch.maximum(high, -low).max())
    spread = (high / 2 - low / 2).max()  # halves, because a difference of two floats may overflow
    _, exponent = torch.frexp(spread)
    # `room` is how much larger than 1 a value may become: float32 is only subtracted, float64 (Bures) multiplied too.
    limit, room = (126, 126) if values.dtype == torch.float32 else (1022, 500)
    power = torch.where(spread > 0, torch.maximum(exponent, magnitude - room), magnitude).clamp(-limit, limit)
    return torch.ldexp(torch.ones_like(spread), power)


def extremes(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest and the smallest value over the agents of ``[observations, agents, features]``.

    Each ``[observations, features]``. Torch on a CPU compares few features number by number, so several agents count as
    one with many features first, and are compared with each other in the end: that takes a tenth of the time.
    """
    o, n, f = values.shape
    side = LONG // math.gcd(LONG, f)
    whole = n // side * side
    if values.device.type != "cpu" or side == 1 or whole <= side:
        return values.amax(1), values.amin(1)
    folded, rest = values[:, :whole].reshape(o, -1, side * f), values[:, whole:]
    high, low = folded.amax(1).view(o, side, f), folded.amin(1).view(o, side, f)
    return torch.cat([high, rest], dim=1).amax(1), torch.cat([low, rest], dim=1).amin(1)
