"""What every compiled backend must do, on whatever device; ``test_cpu`` and ``test_gpu`` choose the cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from graphsnd import kernels
from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels import reference
from graphsnd.kernels.reference import PAIR_FUNCTIONS

Shape = tuple[int, int, int]  # observations, agents, features
NORMS = [Norm.EUCLIDEAN, Norm.HALF_L1]
DTYPES = [torch.float32, torch.float64]
SCALES = [1e-25, 1e-20, 1e15, 1e19, 1e30]
VALUE_RTOL = {torch.float64: 1e-11, torch.float32: 3e-6}
SLOPE_RTOL = {torch.float64: 1e-11, torch.float32: 3e-5}


@dataclass(frozen=True)
class Inputs:
    """Everything besides the points, random for a number of observations and agents."""

    weight: torch.Tensor  # [observations]
    sparse: torch.Tensor  # [edges, 2], few edges for each agent
    dense: torch.Tensor  # [edges, 2], many
    coefficient: torch.Tensor  # [edges] of `dense`, of both signs
    own: torch.Tensor  # [observations, k, 2]
    ragged: torch.Tensor  # [edges, 2], of observation o those from starts[o] to starts[o + 1]
    starts: torch.Tensor  # [observations + 1]

    @staticmethod
    def draw(observations: int, agents: int, device: str) -> Inputs:
        g = torch.Generator().manual_seed(7)

        def edges(*shape: int) -> torch.Tensor:
            i = torch.randint(agents, shape, generator=g)
            step = torch.randint(1, agents, shape, generator=g)
            return torch.stack([i, (i + step) % agents], dim=-1).to(device)

        starts = torch.cat(
            [torch.zeros(1, dtype=torch.int64), torch.randint(90, (observations,), generator=g).cumsum(0)]
        )
        return Inputs(
            weight=torch.rand(observations, generator=g, dtype=torch.float64).to(device),
            sparse=edges(2 * agents + 1),
            dense=edges(9 * agents + 1),
            coefficient=torch.randn(9 * agents + 1, generator=g, dtype=torch.float64).to(device),
            own=edges(observations, 67),
            ragged=edges(int(starts[-1])),
            starts=starts.to(device),
        )


Operation = Callable[[Points, Inputs, str], torch.Tensor]
OPERATIONS: dict[str, Operation] = {
    "pair_totals": lambda p, i, b: kernels.pair_totals(p, backend=b),
    "pair_matrix": lambda p, i, b: kernels.pair_matrix(p, i.weight, backend=b),
    "edge_means": lambda p, i, b: kernels.edge_means(p, i.sparse, backend=b),
    "edge_totals": lambda p, i, b: kernels.edge_totals(p, i.sparse, backend=b),
    "weighted_edge_totals": lambda p, i, b: kernels.edge_totals(p, i.dense, i.coefficient, backend=b),
    "observation_edges": lambda p, i, b: kernels.observation_edges(p, i.own, backend=b),
    "ragged_edges": lambda p, i, b: kernels.ragged_edges(p, i.ragged, i.starts, backend=b),
}
each_operation = pytest.mark.parametrize("operation", OPERATIONS)


def draw(shape: Shape, norm: Norm, dtype: torch.dtype, *, ties: bool = True) -> torch.Tensor:
    """Random points: two agents equal and a third nearly so."""
    g = torch.Generator().manual_seed(11)
    values = torch.randn(shape, generator=g, dtype=torch.float64)
    if ties and shape[1] > 2:
        values[:, 1] = values[:, 0]
        values[:, 2] = values[:, 0] * (1 + 1e-3)
    return values.to(dtype)


def run(operation: str, values: torch.Tensor, norm: Norm, backend: str) -> torch.Tensor:
    inputs = Inputs.draw(*values.shape[:2], str(values.device))
    return OPERATIONS[operation](Points(values, norm), inputs, backend)


def differentiate(operation: str, values: torch.Tensor, norm: Norm, backend: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and its gradient for a random one upstream; both on the CPU."""
    values = values.detach().requires_grad_()
    sums = run(operation, values, norm, backend)
    upstream = torch.randn(sums.shape, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    (slope,) = torch.autograd.grad(sums, values, upstream.to(sums.device))
    assert sums.dtype == torch.float64
    assert slope.dtype == values.dtype
    return sums.detach().cpu(), slope.cpu()


def assert_close(sums: torch.Tensor, expected: torch.Tensor, rtol: float) -> None:
    """Relative error of the whole: a small entry may be the difference of large ones."""
    assert sums.shape == expected.shape
    error = torch.linalg.vector_norm(sums.double().cpu() - expected.double().cpu())
    size = torch.linalg.vector_norm(expected.double())
    assert error <= rtol * size, f"relative error {float(error / size):.2e} is more than {rtol:.0e}"


def check_agreement(
    operation: str, values: torch.Tensor, norm: Norm, backend: str, *, rtol: float | None = None
) -> None:
    """Values, with and without a gradient asked for, and gradients as the reference has them in float64."""
    expected, expected_slope = differentiate(operation, values.cpu().double(), norm, "reference")
    sums, slope = differentiate(operation, values, norm, backend)
    assert_close(sums, expected, rtol or VALUE_RTOL[values.dtype])
    assert_close(run(operation, values, norm, backend), expected, rtol or VALUE_RTOL[values.dtype])
    assert_close(slope, expected_slope, SLOPE_RTOL[values.dtype])


def check_identical_agents(operation: str, values: torch.Tensor, norm: Norm, backend: str) -> None:
    """An exact 0, which the user sees as a team that does not differ at all, and no pull."""
    sums, slope = differentiate(operation, values, norm, backend)
    assert not sums.any()
    assert not run(operation, values, norm, backend).any()
    assert not slope.any()


def check_scale(operation: str, shape: Shape, scale: float, norm: Norm, backend: str, device: str) -> None:
    """Far beyond where float32 can be squared."""
    values = (draw(shape, norm, torch.float64) * scale).float().to(device)
    check_agreement(operation, values, norm, backend, rtol=1e-5)


def results_of_agent_3(operation: str, results: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Return a mask of the results that depend on what the fourth agent does at the first observation."""
    touched = torch.zeros_like(results, dtype=torch.bool)
    if operation == "pair_matrix":
        touched[3], touched[:, 3] = True, True
        touched.fill_diagonal_(False)
    elif operation == "edge_means":
        touched = (inputs.sparse == 3).any(dim=-1)
    elif operation == "observation_edges":
        touched[0] = (inputs.own[0] == 3).any(dim=-1)
    elif operation == "ragged_edges":
        touched[: inputs.starts[1]] = (inputs.ragged[: inputs.starts[1]] == 3).any(dim=-1)
    else:
        touched[0] = True
    return touched


def check_nan(operation: str, shape: Shape, norm: Norm, dtype: torch.dtype, backend: str, device: str) -> None:
    """A NaN reaches every result that depends on it, and no other."""
    values = draw(shape, norm, dtype, ties=False)
    clean = values.clone()
    values[0, 3, 0] = torch.nan
    inputs = Inputs.draw(*shape[:2], "cpu")
    expected = run(operation, clean.double(), norm, "reference")
    touched = results_of_agent_3(operation, expected, inputs)
    for wanted in (False, True):
        sums = run(operation, values.to(device).requires_grad_(wanted), norm, backend).detach().cpu()
        assert sums[touched].isnan().all()
        if operation == "pair_matrix":  # an agent's distance to itself may be NaN or 0
            sums[3, 3] = expected[3, 3]
        assert_close(sums[~touched], expected[~touched], VALUE_RTOL[dtype])


def check_strides(operation: str, shape: Shape, norm: Norm, dtype: torch.dtype, backend: str, device: str) -> None:
    """Transposed and thinned out points, and an expanded gradient upstream."""
    plain = draw(shape, norm, dtype).to(device)
    turned = plain.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    thinned = plain.repeat_interleave(2, dim=1)[:, ::2]
    for values in (turned, thinned):
        assert not values.is_contiguous() or 1 in shape
        check_agreement(operation, values, norm, backend)
    leaf = turned.detach().requires_grad_()
    run(operation, leaf, norm, backend).sum().backward()
    wide = plain.cpu().double().requires_grad_()
    run(operation, wide, norm, "reference").sum().backward()
    assert leaf.grad is not None
    assert wide.grad is not None
    assert_close(leaf.grad, wide.grad, SLOPE_RTOL[dtype])


def check_expanded_weight(shape: Shape, norm: Norm, dtype: torch.dtype, backend: str, device: str) -> None:
    """One number for all observations or edges, as ``expand`` gives it: stride 0."""
    values = draw(shape, norm, dtype)
    edges = Inputs.draw(*shape[:2], "cpu").sparse
    one = torch.tensor(0.7, dtype=torch.float64)
    for here, at, name in ((values.double(), "cpu", "reference"), (values.to(device), device, backend)):
        points, e = Points(here, norm), edges.to(at)
        weight, coefficient = one.to(at).expand(shape[0]), one.to(at).expand(len(edges))
        results = [
            kernels.pair_matrix(points, weight, backend=name),
            kernels.edge_totals(points, e, coefficient, backend=name),
        ]
        if name == "reference":
            expected = results
    for sums, wide in zip(results, expected, strict=True):
        assert_close(sums, wide, VALUE_RTOL[dtype])


def _apart(loc: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return loc.contiguous(), scale.contiguous()


# How two tensors, whose features are side by side in the points, lie in memory.
LAYOUTS: dict[str, Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "apart": _apart,
    "reversed": lambda loc, scale: _apart(scale, loc)[::-1],
    "one tensor": lambda loc, scale: torch.cat([loc, scale], dim=-1).chunk(2, dim=-1),
    "one for all": lambda loc, scale: (loc.contiguous(), scale[:1, :1].expand(scale.shape)),
    "turned": lambda loc, scale: (loc.contiguous(), scale.permute(2, 1, 0).contiguous().permute(2, 1, 0)),
}


def check_parts(shape: Shape, layout: str, dtype: torch.dtype, backend: str, device: str) -> None:
    """Mean and totals of points in two tensors, and their gradients, as of one tensor in float64."""
    halves = draw(shape, Norm.EUCLIDEAN, dtype).to(device).chunk(2, dim=-1)
    parts = tuple(part.detach().requires_grad_() for part in LAYOUTS[layout](*halves))
    whole = torch.cat(parts, dim=-1).detach().cpu().double().requires_grad_()
    joined, plain = Points(parts, Norm.EUCLIDEAN), Points(whole, Norm.EUCLIDEAN)
    for operation in (kernels.pair_mean, kernels.pair_totals):
        found, expected = operation(joined, backend=backend), operation(plain, backend="reference")
        slopes = torch.autograd.grad(found.sum(), parts)
        (slope,) = torch.autograd.grad(expected.sum(), whole)
        assert_close(found.detach(), expected.detach(), VALUE_RTOL[dtype])
        assert_close(torch.cat(slopes, dim=-1), slope, SLOPE_RTOL[dtype])
        with torch.no_grad():
            assert_close(operation(joined, backend=backend), expected, VALUE_RTOL[dtype])
    assert kernels.pair_mean(joined, backend=backend).dtype == dtype
    if backend == "gpu":
        assert "values" not in vars(joined), "the parts were copied side by side"


def check_gradients(operation: str, shape: Shape, norm: Norm, backend: str, device: str) -> None:
    values = draw(shape, norm, torch.float64, ties=False).to(device)
    values.requires_grad_()
    inputs = Inputs.draw(*shape[:2], device)
    # Sums of float64 atomics come in any order.
    assert torch.autograd.gradcheck(
        lambda v: OPERATIONS[operation](Points(v, norm), inputs, backend),
        (values,),
        atol=1e-6,
        nondet_tol=1e-11,
        fast_mode=shape[0] > 2,
    )


def check_second_derivatives_are_refused(operation: str, shape: Shape, backend: str, device: str) -> None:
    values = draw(shape, Norm.EUCLIDEAN, torch.float64).to(device).requires_grad_()
    sums = run(operation, values, Norm.EUCLIDEAN, backend)
    (slope,) = torch.autograd.grad(sums.square().sum(), values, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()


def check_precision_of_totals(shape: Shape, backend: str, device: str, *, rtol: float = 1e-6) -> None:
    """Far from the origin and over many pairs, the error stays that of single distances."""
    values = draw(shape, Norm.EUCLIDEAN, torch.float64, ties=False).add(100).float()
    expected = torch.stack([torch.nn.functional.pdist(one).sum() for one in values.double()])
    for wanted in (False, True):
        points = Points(values.to(device).requires_grad_(wanted), Norm.EUCLIDEAN)
        sums = kernels.pair_totals(points, backend=backend).detach().cpu()
        torch.testing.assert_close(sums, expected, rtol=rtol, atol=0)


def check_precision_of_edges(shape: Shape, edges: int, backend: str, device: str) -> None:
    values = draw(shape, Norm.EUCLIDEAN, torch.float64, ties=False).add(100).float()
    i = torch.arange(edges) % shape[1]
    e = torch.stack([i, (i + 1 + torch.arange(edges) // shape[1]) % shape[1]], dim=-1)
    wide, points = Points(values.double(), Norm.EUCLIDEAN), Points(values.to(device), Norm.EUCLIDEAN)
    expected = reference.edge_totals(wide, e, None)
    sums = kernels.edge_totals(points, e.to(device), backend=backend).cpu()
    torch.testing.assert_close(sums, expected, rtol=1e-6, atol=0)
    mean = reference.edge_means(wide, e)
    sums = kernels.edge_means(points, e.to(device), backend=backend).cpu()
    torch.testing.assert_close(sums, mean, rtol=1e-6, atol=0)


def check_means_and_totals(
    shape: Shape, norm: Norm, dtype: torch.dtype, scale: float, backend: str, device: str
) -> None:
    """One visit of the edges gives what two operations give, and the distances of a loop in float64."""
    values = (draw(shape, norm, torch.float64) * scale).to(dtype).to(device).requires_grad_()
    inputs, points = Inputs.draw(*shape[:2], device), Points(values, norm)
    exact = Points(values.detach().cpu().double(), norm)
    pairs = [
        PAIR_FUNCTIONS[norm](*(exact.values[:, k] / scale for k in edge)) * scale for edge in inputs.dense.tolist()
    ]
    loop = torch.stack(pairs, dim=1)  # [observations, edges]
    for coefficient in (None, inputs.coefficient):
        means, totals = kernels.edge_means_and_totals(points, inputs.dense, coefficient, backend=backend)
        assert (means.dtype, totals.dtype) == (torch.float64, torch.float64)
        assert not means.requires_grad
        assert not totals.requires_grad
        weights = torch.ones(len(inputs.dense), dtype=torch.float64) if coefficient is None else coefficient.cpu()
        rtol = VALUE_RTOL[dtype]
        assert_close(means, loop.mean(dim=0), rtol)
        assert_close(totals, loop @ weights, rtol)
        assert_close(means, kernels.edge_means(points, inputs.dense, backend=backend).detach(), rtol)
        assert_close(totals, kernels.edge_totals(points, inputs.dense, coefficient, backend=backend).detach(), rtol)
        radii = PAIR_FUNCTIONS[norm](exact.values / scale, exact.values.mean(dim=1, keepdim=True) / scale) * scale
        joined, same = kernels.edge_means_and_totals(points, inputs.dense, coefficient, radii=True, backend=backend)
        assert_close(joined, torch.cat([loop, radii], dim=1).mean(dim=0), rtol)
        assert_close(same, loop @ weights, rtol)


def check_no_edges(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto``, however large the team."""
    monkeypatch.setattr(kernels.dispatch, "SMALL", 0)
    values = torch.rand(5, 6, 3).to(device).requires_grad_()
    points, none = Points(values, Norm.EUCLIDEAN), torch.zeros(0, 2, dtype=torch.int64, device=device)
    sums, totals = kernels.edge_means(points, none), kernels.edge_totals(points, none)
    own = kernels.observation_edges(points, none.expand(5, 0, 2))
    assert sums.shape == (0,)
    assert totals.tolist() == [0.0] * 5
    assert own.shape == (5, 0)
    (sums.sum() + totals.sum() + own.sum()).backward()
    assert values.grad is not None
    assert not values.grad.any()
