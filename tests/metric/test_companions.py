from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

import graphsnd as gs
from graphsnd.metric.companions import LINKAGES

TEAMS = {
    "blob": lambda r: r.normal(size=(9, 3)),
    "camps": lambda r: np.repeat(4 * r.normal(size=(3, 3)), 4, axis=0) + 0.2 * r.normal(size=(12, 3)),
    "far": lambda r: np.vstack([r.normal(size=(7, 2)), [[60.0, 0.0]]]),
    "pair": lambda r: r.normal(size=(2, 2)),
}
teams = pytest.mark.parametrize("name", TEAMS)


def matrix_of(name: str, seed: int = 0) -> np.ndarray:
    return squareform(pdist(TEAMS[name](np.random.default_rng(seed))))


def entropy_by_levels(matrix: np.ndarray, method: str) -> float:
    """The integral of the definition, level by level: scipy cuts its tree, and we count."""
    tree = linkage(squareform(matrix), method)
    levels = np.r_[0, np.unique(tree[:, 2])]
    value = 0.0
    for low, high in pairwise(levels):
        sizes = np.bincount(fcluster(tree, (low + high) / 2, "distance"))
        shares = sizes[sizes > 0] / len(matrix)
        value += (high - low) * -(shares * np.log2(shares)).sum()
    return value


def similarities(matrix: np.ndarray, width: float) -> np.ndarray:
    return np.array([[math.exp(-d / width) for d in row] for row in matrix])


def vendi_by_hand(matrix: np.ndarray, width: float, order: float) -> float:
    # Singular values of a Cholesky factor: squared, they are the eigenvalues, by another route.
    factor = np.linalg.cholesky(similarities(matrix, width) / len(matrix))
    shares = [s * s for s in np.linalg.svd(factor, compute_uv=False)]
    if order == 1:
        return math.exp(-math.fsum(s * math.log(s) for s in shares))
    return math.fsum(s**order for s in shares) ** (1 / (1 - order))


def effective_by_hand(matrix: np.ndarray, width: float, order: float) -> float:
    n = len(matrix)
    ordinary = [math.fsum(math.exp(-d / width) for d in row) / n for row in matrix]
    if order == 1:
        return math.exp(-math.fsum(math.log(z) for z in ordinary) / n)
    return (math.fsum(z ** (order - 1) for z in ordinary) / n) ** (1 / (1 - order))


@teams
@pytest.mark.parametrize("method", LINKAGES)
def test_social_entropy_is_the_integral_over_levels(name: str, method: str) -> None:
    for seed in range(3):
        matrix = matrix_of(name, seed)
        value = gs.companions.social_entropy(torch.from_numpy(matrix), linkage=method)
        assert float(value) == pytest.approx(entropy_by_levels(matrix, method), rel=1e-12)


@teams
@pytest.mark.parametrize("width", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0])
def test_counts_of_kinds_against_loops(name: str, width: float, order: float) -> None:
    matrix = matrix_of(name)
    given, rel = torch.from_numpy(matrix), {"rel": 1e-9}
    assert float(gs.companions.vendi(given, width=width, order=order)) == pytest.approx(
        vendi_by_hand(matrix, width, order), **rel
    )
    assert float(gs.companions.effective_number(given, width=width, order=order)) == pytest.approx(
        effective_by_hand(matrix, width, order), **rel
    )


@teams
@pytest.mark.parametrize("width", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("order", [0.5, 1.0, 2.0])
def test_vendi_against_the_package_of_its_authors(name: str, width: float, order: float) -> None:
    pytest.importorskip("sklearn")
    vendi_score = pytest.importorskip("vendi_score.vendi")
    matrix = matrix_of(name)
    expected = vendi_score.score_K(similarities(matrix, width), q=order)
    assert float(gs.companions.vendi(torch.from_numpy(matrix), width=width, order=order)) == pytest.approx(
        expected, rel=1e-6
    )


@teams
@pytest.mark.parametrize("width", [0.3, 1.0, 7.0])
def test_log_determinant_against_the_cholesky_factor(name: str, width: float) -> None:
    matrix = matrix_of(name)
    value = float(gs.companions.log_determinant(torch.from_numpy(matrix), width=width))
    kernel = similarities(matrix, width)
    assert value == pytest.approx(2 * np.log(np.diag(np.linalg.cholesky(kernel))).sum(), rel=1e-9, abs=1e-12)
    assert value <= 0


def test_determinant_of_two_is_the_closed_form() -> None:
    d = torch.tensor(0.7, dtype=torch.float64)
    matrix = torch.stack([torch.zeros(2), torch.ones(2)]).double()
    matrix = d * (matrix - matrix.T).abs()
    assert float(gs.companions.log_determinant(matrix, width=2.0).exp()) == pytest.approx(1 - math.exp(-0.7))


@teams
def test_nearest_is_the_loop(name: str) -> None:
    matrix = matrix_of(name)
    for k in (1, min(3, len(matrix) - 1)):
        rows = [sorted(np.delete(row, i))[:k] for i, row in enumerate(matrix)]
        value = float(gs.companions.nearest(torch.from_numpy(matrix), neighbours=k))
        assert value == pytest.approx(float(np.mean(rows)), rel=1e-12)


MEASURES: list[Callable[[torch.Tensor], torch.Tensor]] = [
    gs.companions.social_entropy,
    gs.companions.nearest,
    gs.companions.vendi,
    gs.companions.effective_number,
    gs.companions.log_determinant,
]
each = pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)


@each
def test_gradients_reach_the_policies(measure: Callable[[torch.Tensor], torch.Tensor]) -> None:
    actions = torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: measure(gs.pairwise(gs.Deterministic(a))), [actions], atol=1e-6)


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_precision_of_the_input_is_kept(measure: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype) -> None:
    given = torch.from_numpy(matrix_of("blob")).to(dtype)
    value = measure(given)
    assert value.dtype == dtype
    assert float(value) == pytest.approx(float(measure(given.double())), rel=2 * torch.finfo(dtype).eps)


@each
def test_values_of_identical_agents(measure: Callable[[torch.Tensor], torch.Tensor]) -> None:
    same = torch.zeros(5, 5, dtype=torch.float64, requires_grad=True)
    value = measure(same)
    expected = {"vendi": 1.0, "effective_number": 1.0, "log_determinant": -math.inf}.get(measure.__name__, 0.0)
    assert value.item() == pytest.approx(expected, abs=1e-12)
    value.backward()
    assert same.grad is not None
    assert same.grad.isfinite().all()


def test_one_pair_of_copies_ends_the_determinant_alone() -> None:
    places = torch.tensor([[0.0, 0.0, 2.0, 5.0]], dtype=torch.float64)
    matrix = (places - places.T).abs().requires_grad_()
    value = gs.companions.log_determinant(matrix)
    assert value.item() == -math.inf
    value.backward()
    assert matrix.grad is not None
    assert not matrix.grad.any()
    assert gs.companions.vendi(matrix).item() == pytest.approx(
        vendi_by_hand(matrix.detach().numpy() + 1e-9 * (1 - np.eye(4)), 1.0, 1.0), rel=1e-6
    )


def test_copies_count_as_one_kind_each() -> None:
    # Far apart, effective numbers count camps by their shares, whatever their distance.
    far = torch.full((6, 6), 1e3, dtype=torch.float64)
    for camp in (slice(0, 3), slice(3, 5), slice(5, 6)):
        far[camp, camp] = 0
    shares = [1 / 2, 1 / 3, 1 / 6]
    assert float(gs.companions.vendi(far)) == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)))
    assert float(gs.companions.vendi(far, order=0)) == pytest.approx(3)
    assert float(gs.companions.effective_number(far)) == pytest.approx(1 / sum(p * p for p in shares))
    assert float(gs.companions.effective_number(far, order=0)) == pytest.approx(3)


def test_orders_near_one_and_far_from_it() -> None:
    given = torch.tensor(squareform(pdist(np.random.default_rng(0).normal(size=(6, 2)))))
    similar = (-given).exp()
    values = {gs.companions.vendi: torch.linalg.eigvalsh(similar / 6), gs.companions.effective_number: similar.mean(1)}
    for measure, own in values.items():
        assert float(measure(given, order=1e9)) == pytest.approx(1 / float(own.max()), rel=1e-6)
        for order in (1 - 1e-15, 1 + 1e-12, 1 + 1e-7):
            assert float(measure(given, order=order)) == pytest.approx(float(measure(given, order=1.0)), rel=1e-6)


def test_effective_number_follows_snd_for_small_distances() -> None:
    matrix = torch.from_numpy(matrix_of("blob"))
    n, snd = len(matrix), float(matrix.sum()) / 72
    value = float(gs.companions.effective_number(1e-5 * matrix))
    assert value - 1 == pytest.approx((n - 1) / n * 1e-5 * snd, rel=1e-4)


def test_kernel_is_positive_definite_for_means_of_distances() -> None:
    # Of mean Euclidean distances the squared exponential is not: the reason for the choice.
    generator = torch.Generator().manual_seed(0)
    least = {"laplace": math.inf, "gaussian": math.inf}
    for _ in range(50):
        d = gs.pairwise(gs.Deterministic(torch.randn(2, 12, 1, generator=generator, dtype=torch.float64)))
        for name, power in (("laplace", 1), ("gaussian", 2)):
            least[name] = min(least[name], float(torch.linalg.eigvalsh((-(d**power)).exp())[0]))
    assert least["laplace"] > 0
    assert least["gaussian"] < -1e-3


def test_side_by_side_is_each_of_them() -> None:
    team = gs.Deterministic(torch.randn(4, 6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))
    matrix = gs.pairwise(team)
    table = gs.companions.side_by_side(matrix, width=2.0)
    assert table["snd"] == pytest.approx(float(gs.snd(team)), rel=1e-12)
    for measure in MEASURES:
        options = {} if measure.__name__ in ("social_entropy", "nearest") else {"width": 2.0}
        assert table[measure.__name__] == float(measure(matrix, **options))
    assert list(table) == ["snd", "social_entropy", "nearest", "vendi", "effective_number", "log_determinant"]


BAD = [
    (torch.zeros(1, 1), "shape"),
    (torch.zeros(2, 3), "shape"),
    (torch.zeros(3), "shape"),
    (torch.zeros(0, 0), "shape"),
    (torch.zeros(3, 3, dtype=torch.int64), "floating"),
    (torch.ones(3, 3), "diagonal"),
    (torch.tensor([[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
    (torch.tensor([[0.0, -1.0], [-1.0, 0.0]]), "negative"),
    (torch.tensor([[0.0, math.nan], [math.nan, 0.0]]), "finite"),
    (torch.tensor([[0.0, math.inf], [math.inf, 0.0]]), "finite"),
]


@each
@pytest.mark.parametrize(("given", "words"), BAD)
def test_what_is_no_distance_matrix_is_refused(
    measure: Callable[[torch.Tensor], torch.Tensor], given: torch.Tensor, words: str
) -> None:
    with pytest.raises(gs.InputError, match=words):
        measure(given)


def test_other_arguments_are_checked() -> None:
    matrix = torch.ones(3, 3) - torch.eye(3)
    for call, name in (
        (lambda: gs.companions.vendi(matrix, width=0), "width"),
        (lambda: gs.companions.vendi(matrix, order=-1), "order"),
        (lambda: gs.companions.effective_number(matrix, order=math.inf), "order"),
        (lambda: gs.companions.nearest(matrix, neighbours=3), "neighbours"),
        (lambda: gs.companions.social_entropy(matrix, linkage="ward"), "linkage"),
    ):
        with pytest.raises(gs.InputError, match=f"`{name}`"):
            call()


def test_hellinger_between_gaussians_is_that_of_their_densities() -> None:
    means, scales = [0.3, -0.8], [0.7, 1.9]

    def density(x: float, k: int) -> float:
        return math.exp(-(((x - means[k]) / scales[k]) ** 2) / 2) / (scales[k] * math.sqrt(2 * math.pi))

    affinity, _ = integrate.quad(lambda x: math.sqrt(density(x, 0) * density(x, 1)), -20, 20)
    loc, scale = (torch.tensor(part, dtype=torch.float64).unsqueeze(1) for part in (means, scales))
    team = gs.Gaussian(loc.unsqueeze(0), scale)
    assert float(gs.snd(team, gs.Hellinger())) == pytest.approx(math.sqrt(1 - affinity), rel=1e-9)


def test_hellinger_of_near_agents_keeps_its_digits() -> None:
    # To first order the distance is |difference| / (sqrt(8) scale).
    for step in (1e-3, 1e-7, 1e-12):
        loc = torch.tensor([[[0.0], [step]]], dtype=torch.float64)
        assert float(gs.snd(gs.Gaussian(loc, 1.0), gs.Hellinger())) == pytest.approx(step / math.sqrt(8), rel=1e-6)


def test_hellinger_of_policies_without_spread_is_zero_or_one() -> None:
    loc = torch.tensor([[[0.0, 1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.0]]], requires_grad=True)
    scale = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.5]]], requires_grad=True)
    matrix = gs.pairwise(gs.Gaussian(loc, scale), gs.Hellinger())
    expected = torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
    assert torch.equal(matrix, expected)
    matrix.sum().backward()
    assert loc.grad is not None
    assert scale.grad is not None
    assert not loc.grad.any()
    assert not scale.grad.any()


def test_hellinger_at_extreme_scales() -> None:
    for size in (1e-200, 1e200):
        loc = size * torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)
        value = float(gs.snd(gs.Gaussian(loc, torch.full((1,), size, dtype=torch.float64)), gs.Hellinger()))
        assert value == pytest.approx(math.sqrt(-math.expm1(-1 / 8)), rel=1e-12)


def test_hellinger_of_gaussians_works_where_distances_do() -> None:
    team = gs.Gaussian(torch.randn(64, 12, 2, generator=torch.Generator().manual_seed(0)), 0.5)
    exact = float(gs.snd(team, gs.Hellinger()))
    for design in ("bernoulli:0.5", "ring:4", "agents:4"):
        estimate = gs.measure(team, design=design, distance=gs.Hellinger())
        assert estimate.interval[0] <= exact <= estimate.interval[1] <= 1
    with pytest.raises(gs.InputError, match="compiled kernel"):
        gs.snd(team, gs.Hellinger(), backend="cpu")
    with pytest.raises(gs.InputError, match="to fit"):
        gs.snd(gs.MultivariateGaussian(torch.zeros(2, 3, 2), torch.eye(2)), gs.Hellinger())
