from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import control
from graphsnd.designs import Adaptive, Fixed, adapt, adaptive
from graphsnd.designs.adaptive import _between, _within, allocate, split_blocks

CPU = torch.device("cpu")
# Groups of every size, and beliefs that have nothing to do with the team: right, turned around, zero, absurd.
GROUPS = [(0, 0, 0, 1, 1), (0, 1, 1, 1), (0, 1, 2, 0, 1), (0, 0, 0, 0), (0, 1, 2, 3)]
BELIEFS = {"none": None, "zero": 0.0, "even": 1.0, "one block": "first", "random": "random"}


def spreads(labels: tuple[int, ...], kind: str) -> tuple[tuple[float, ...], ...] | None:
    groups = max(labels) + 1
    if BELIEFS[kind] is None:
        return None
    if isinstance(BELIEFS[kind], float):
        return ((float(BELIEFS[kind]),) * groups,) * groups
    if kind == "one block":
        return tuple(tuple(1e9 if g == h == 0 else 1e-9 for g in range(groups)) for h in range(groups))
    drawn = np.random.default_rng(0).exponential(size=(groups, groups))
    return tuple(map(tuple, (drawn + drawn.T).tolist()))


def all_draws(design: Adaptive, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """The weight of each pair in the estimate, for all equally likely draws: ``[draws, N]``."""
    n = len(design.labels)
    asked: list[tuple[int, int]] = []

    def note(agents: int, size: int, count: int, *_: object) -> torch.Tensor:
        asked.append((agents, size))
        return torch.arange(size).expand(count, -1)

    monkeypatch.setattr(adaptive, "ordered_subsets", note)
    design.select(1, n, torch.Generator(), device=CPU)
    orders = [[torch.tensor([order]) for order in itertools.permutations(range(a), k)] for a, k in asked]
    place = {pair: at for at, pair in enumerate(itertools.combinations(range(n), 2))}
    rows = []
    for chosen in itertools.product(*orders):
        queue = list(chosen)
        monkeypatch.setattr(adaptive, "ordered_subsets", lambda *_, queue=queue: queue.pop(0))
        selection = design.select(1, n, torch.Generator(), device=CPU)
        assert isinstance(selection.edges, torch.Tensor)
        assert selection.weights is not None
        row = torch.zeros(len(place), dtype=torch.float64)
        for (i, j), weight in zip(selection.edges[0].tolist(), selection.weights, strict=True):
            at = place[min(i, j), max(i, j)]
            assert row[at] == 0, "a pair was drawn twice"
            row[at] = weight / selection.weights.sum()
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("labels", GROUPS, ids=str)
@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("defence", [1e-6, 0.5, 1.0])
def test_all_draws_have_snd_as_their_mean_whatever_was_believed(
    labels: tuple[int, ...], belief: str, defence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, pairs = len(labels), math.comb(len(labels), 2)
    least = len(split_blocks(Adaptive(pairs, labels)))
    for count in sorted({least, (least + pairs) // 2}):
        design = Adaptive(count, labels, spreads(labels, belief), defence)
        rows = all_draws(design, monkeypatch)
        assert len(rows) <= 50_000
        assert ((rows > 0).sum(1) == count).all()
        # Of every pair, so of every team: the mean weight is one over the number of pairs.
        np.testing.assert_allclose(rows.mean(0), 1 / pairs, rtol=0, atol=1e-14)
        distances = torch.rand(pairs, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
        assert float((rows @ distances).mean()) == pytest.approx(float(distances.mean()), rel=1e-13)


@pytest.mark.parametrize("labels", GROUPS, ids=str)
@pytest.mark.parametrize("belief", ["none", "one block", "random"])
def test_the_worst_factor_is_that_of_the_worst_team(
    labels: tuple[int, ...], belief: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, pairs = len(labels), math.comb(len(labels), 2)
    for count in range(len(split_blocks(Adaptive(pairs, labels))), pairs):
        design = Adaptive(count, labels, spreads(labels, belief))
        rows = all_draws(design, monkeypatch)
        rows = rows - rows.mean(0)
        largest = torch.linalg.eigvalsh(rows.T @ rows / len(rows))[-1]  # of the variance as a function of the distances
        # That of random pairs, in the textbook's form: S^2 (1/m - 1/N).
        uniform = (1 / count - 1 / pairs) / (pairs - 1)
        assert design.worst_factor(n) == pytest.approx(float(largest) / uniform, rel=1e-9, abs=1e-12)


def test_the_worst_team_is_reached() -> None:
    # A team that differs in one block alone; the belief has put all pairs elsewhere.
    labels = (0,) * 6 + (1,) * 6
    design = Adaptive(12, labels, ((1e-9, 1e-9), (1e-9, 1.0)), defence=0.25)
    matrix = torch.ones(12, 12, dtype=torch.float64)
    noise = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    worst = max(split_blocks(design), key=lambda block: block.size * block.factor())
    assert worst.two is not None
    noise = noise - noise.mean(0) - noise.mean(1, keepdim=True) + noise.mean()
    matrix[:6, 6:], matrix[6:, :6] = 1 + 0.2 * noise, 1 + 0.2 * noise.T
    chosen = design.select(40_000, 12, torch.Generator().manual_seed(1), device=CPU)
    assert isinstance(chosen.edges, torch.Tensor)
    assert chosen.weights is not None
    distances = matrix[chosen.edges[..., 0], chosen.edges[..., 1]]
    values = (distances * chosen.weights).sum(1) / 66
    upper = matrix[torch.triu_indices(12, 12, 1).unbind()]
    uniform = float(upper.var()) * (1 / 12 - 1 / 66)
    assert float(values.var()) / uniform == pytest.approx(design.worst_factor(12), rel=0.05)
    assert design.worst_factor(12) > 1


def test_defence_bounds_the_cost_of_a_wrong_belief() -> None:
    generator = np.random.default_rng(0)
    worst = dict.fromkeys((0.25, 0.5, 1.0), 0.0)
    for _ in range(60):
        labels = tuple(np.unique(generator.integers(0, 4, 40), return_inverse=True)[1].tolist())
        groups = max(labels) + 1
        believed = generator.exponential(size=(groups, groups)) ** 8
        for defence in worst:
            design = Adaptive(120, labels, tuple(map(tuple, (believed + believed.T).tolist())), defence)
            worst[defence] = max(worst[defence], design.worst_factor(40))
            if defence == 1:
                continue  # no pairs are left to round each share up
            counted = [(block.factor(), len(block.places), block.size) for block in split_blocks(design)]
            graphs, share = max(c / (1 / m - 1 / N) for c, m, N in counted if m < N), 120 / math.comb(40, 2)
            assert design.worst_factor(40) <= graphs / defence * (1 - defence * share) / (1 - share)
    assert 1 < worst[1.0] < worst[0.5] < worst[0.25] < 4 * 1.5
    assert worst[0.5] < 2 * 1.5


def test_templates_are_different_pairs_of_nearly_equal_degrees() -> None:
    for s, t in itertools.product(range(1, 8), range(1, 8)):
        for m in range(1, s * t + 1):
            edges = _between(s, t, m)
            assert len({tuple(edge) for edge in edges.tolist()}) == m
            for side, size in ((edges[:, 0], s), (edges[:, 1], t)):
                degrees = torch.bincount(side, minlength=size)
                assert int(degrees.max() - degrees.min()) <= 1
    for s in range(2, 10):
        for m in range(1, math.comb(s, 2) + 1):
            edges = _within(s, m)
            assert (edges[:, 0] != edges[:, 1]).all()
            assert len({frozenset(edge) for edge in edges.tolist()}) == m
            degrees = torch.bincount(edges.flatten(), minlength=s)
            assert int(degrees.max() - degrees.min()) <= 2


def test_allocation_is_neymans_where_nothing_binds() -> None:
    sizes, believed = [400, 300, 300], [1.0, 2.0, 5.0]
    wanted = [120 * size * spread / 2500 for size, spread in zip(sizes, believed, strict=True)]
    assert allocate(sizes, believed, 120, 1e-9) == pytest.approx(wanted, abs=1)
    assert allocate(sizes, believed, 120, 1.0) == [48, 36, 36]
    assert allocate([3, 500], [1e9, 1e-9], 100, 0.01) == [3, 97]
    assert sum(allocate([1, 1, 1000], [0, 0, 1], 3, 0.5)) == 3


def test_roles_are_found_from_distances_and_make_the_error_small(generator: torch.Generator) -> None:
    centres = 4 * torch.randn(4, 2, generator=generator, dtype=torch.float64)
    actions = centres.repeat(8, 1) + 0.3 * torch.randn(256, 32, 2, generator=generator, dtype=torch.float64)
    team = gs.Deterministic(actions)
    design = adapt(gs.pairwise(gs.Deterministic(actions[:32])), 64)
    assert design.labels == tuple([0, 1, 2, 3] * 8)
    assert adapt(gs.Deterministic(actions[:32]), 64).labels == design.labels
    noise = gs.Deterministic(torch.randn(32, 32, 2, generator=generator))
    assert adapt(noise, 64).counts() == [64]  # without structure, one group
    given = adapt(gs.pairwise(team), 64, labels=torch.tensor([7, 3, 5, 1] * 8))
    assert given.labels == design.labels

    def squared_error(kind: gs.designs.Design | str) -> float:
        exact = float(gs.snd(team))
        return float(np.mean([(gs.measure(team, design=kind, seed=k).value - exact) ** 2 for k in range(20)]))

    assert squared_error(design) < squared_error("ring:4") / 5


def test_controllers_measure_it_as_a_loop_does(generator: torch.Generator) -> None:
    design = Adaptive(9, (0, 0, 0, 1, 1, 1, 2), ((1.0, 2.0, 3.0), (2.0, 0.0, 1.0), (3.0, 1.0, 0.0)))
    values = torch.randn(20, 7, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    measured = control.measure_points(design, values, torch.Generator().manual_seed(3))
    chosen = design.select(20, 7, torch.Generator().manual_seed(3), device=CPU)
    assert isinstance(chosen.edges, torch.Tensor)
    assert chosen.weights is not None
    expected = 0.0
    weights = chosen.weights.tolist()
    for row, edges in zip(values, chosen.edges.tolist(), strict=True):
        expected += sum(w * float((row[i] - row[j]).norm()) for (i, j), w in zip(edges, weights, strict=True)) / 21 / 20
    assert measured.value.item() == pytest.approx(expected, rel=1e-12)
    assert int(measured.pairs) == 9
    measured.value.backward()
    assert values.grad is not None
    assert values.grad.any()
    # A controller reads it as it reads any other design.
    controller = control.DiCo(0.5, design=design)
    scale, _, _ = controller.step(values.detach(), controller.initial(), generator=torch.Generator().manual_seed(3))
    assert float(scale) == pytest.approx(0.5 / expected, rel=1e-6)


def test_odd_teams_and_wrong_arguments() -> None:
    assert Adaptive(1, (0, 0)).worst_factor(2) == 0
    assert Adaptive(1, (0, 1)).select(3, 2, torch.Generator(), device=CPU).pairs(2) == 1
    listed = Adaptive(3, [0, 0, 1, 1], [[1.0, 1.0], [1.0, 1.0]])  # type: ignore[arg-type]
    assert listed == Adaptive(3, (0, 0, 1, 1), ((1.0, 1.0), (1.0, 1.0)))
    same = adapt(torch.zeros(8, 8), 8)
    assert same.pairs(8) == 8
    good = torch.rand(6, 6)
    for call, name in (
        (lambda: Adaptive(2, (0, 0, 1, 1)), "count"),
        (lambda: Adaptive(7, (0, 0, 1, 1)), "count"),
        (lambda: Adaptive(3, (0, 0, 2, 2)), "labels"),
        (lambda: Adaptive(3, (0, 0, 1, 1), ((1.0,),)), "spreads"),
        (lambda: Adaptive(3, (0, 0, 1, 1), defence=0.0), "defence"),
        (lambda: Adaptive(3, (0,)), "count"),
        (lambda: Adaptive(3, (0, 0, 1, 1)).select(2, 5, torch.Generator(), device=CPU), "design"),
        (lambda: Adaptive(3, (0, 0, 1, 1)).select(2, 4, None, device=CPU), "generator"),
        (lambda: adapt(good[:, :5], 4), "belief"),
        (lambda: adapt(good * math.nan, 4), "belief"),
        (lambda: adapt(good - 1, 4), "belief"),
        (lambda: adapt(good.double() * 1e200, 4), "belief"),
        (lambda: adapt(good, 4, groups=0), "groups"),
        (lambda: adapt(good, 4, labels=torch.full((6,), math.nan)), "labels"),
        (lambda: Adaptive(3, (0, 0, 1, 1), ((1e308, 1e308), (1e308, 1e308))), "spreads"),
        (lambda: adapt(good, 4, labels=torch.zeros(5)), "labels"),
    ):
        with pytest.raises(gs.InputError, match=f"`{name}`"):
            call()


def test_its_text_is_a_name_and_the_object_is_what_is_kept() -> None:
    design = adapt(torch.rand(600, 600, generator=torch.Generator().manual_seed(0)), 800, groups=3)
    assert pickle.loads(pickle.dumps(design)) == design
    assert Adaptive(design.count, design.labels, design.spreads, design.defence) == design
    for text in (str(design), "adaptive"):
        with pytest.raises(gs.InputError, match=rf"got '{text}'. It holds groups of agents.*graphsnd.designs.adapt"):
            gs.designs.parse(text)
    graph = gs.graphs.complete(2)
    names = {"adaptive:800": design, "complete graph": Fixed(graph), r"Graph\(complete, n=2, m=1\)": graph}
    for name, given in names.items():
        with pytest.raises(gs.InputError, match=f"got {name}, which says which pairs. Give it as design="):
            gs.measure([torch.nn.Identity()] * 2, given)  # type: ignore[arg-type]
    with pytest.raises(gs.InputError, match="Write design='matching'"):
        gs.measure([torch.nn.Identity()] * 2, gs.designs.Matching())  # type: ignore[arg-type]
