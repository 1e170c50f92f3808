from __future__ import annotations

import pickle

import pytest
import torch

import graphsnd as gs
from graphsnd.control.measurement import select_pairs
from graphsnd.designs.design import FORMS, Bernoulli, Design, Nearest, Radius, parse

POSITIONS = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bernoulli:0.4", gs.graphs.bernoulli(12, 0.4, seed=5)),
        ("uniform:20", gs.graphs.uniform(12, 20, seed=5)),
        ("regular:3", gs.graphs.random_regular(12, 3, seed=5)),
        ("knn:2", gs.graphs.knn(POSITIONS, 2)),
        ("radius:0.9", gs.graphs.radius(POSITIONS, 0.9)),
    ],
)
def test_every_design_draws_the_graph_of_the_library(text: str, expected: gs.Graph) -> None:
    design = parse(text)
    graph = design.draw(12, torch.Generator().manual_seed(5), POSITIONS)
    assert isinstance(graph, gs.Graph)
    assert torch.equal(graph.edges, expected.edges)
    assert graph.inclusion == expected.inclusion
    assert design.unbiased == (graph.inclusion is not None)


@pytest.mark.parametrize("text", ["uniform:67", "regular:12", "knn:12"])
def test_values_out_of_range_are_the_builders_errors(text: str) -> None:
    design = parse(text)
    with pytest.raises(gs.InputError):
        design.draw(12, torch.Generator(), POSITIONS)


@pytest.mark.parametrize("text", ["knn:3", "radius:1"])
def test_spatial_designs_need_positions(text: str) -> None:
    design = parse(text)
    assert design.needs_positions
    with pytest.raises(gs.InputError, match=rf"`positions`.*{text}, got none"):
        design.draw(12, None)
    for wrong in (POSITIONS[:7], POSITIONS[0], POSITIONS.expand(3, 2, -1, -1)):
        with pytest.raises(gs.InputError, match=r"`positions` with shape \(..., 12, d\)"):
            design.draw(12, None, wrong)
    with pytest.raises(gs.InputError, match="`positions` for 6 observations, got one for 5"):
        select_pairs(design, 6, 12, None, device=torch.device("cpu"), positions=POSITIONS.expand(5, -1, -1))


def test_random_designs_need_a_generator() -> None:
    with pytest.raises(gs.InputError, match="`generator`"):
        parse("uniform:3").draw(12, None)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-600, 2.0**-100, 2.0**100, 2.0**600, 2.0**1000])
def test_neighbours_do_not_depend_on_the_units(unit: float) -> None:
    positions = torch.randn(3, 6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for make in (lambda unit: Nearest(2), Radius):
        one, two = (make(u).draw(6, None, positions * u) for u in (1.0, unit))
        assert torch.equal(one.edges, two.edges)
        assert torch.equal(one.starts, two.starts)


EXAMPLES = [form.example for form in FORMS.values()]


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_design_is_written_as_it_is_read(text: str) -> None:
    design = parse(text)
    assert str(design) == text
    assert text.partition(":")[0] == design.family
    assert parse(f" {text.upper()} ") == pickle.loads(pickle.dumps(design)) == design


@pytest.mark.parametrize("design", [Bernoulli(1 / 3), Bernoulli(1), Bernoulli(1e-7), Radius(0.1 + 0.2)], ids=str)
def test_all_digits_are_written(design: Design) -> None:
    assert parse(str(design)) == design


WRONG = ["", "half", "full", "all", "circulant:2", "ht:0.1", "complete:3", "bernoulli", "bernoulli:x",
         "bernoulli:2", "knn:0", "knn:1.5", "uniform:0", "regular:-1", "radius:0", "ring:3", "agents:1", "matching:0",
         "agents:8@500"]  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_what_the_caller_says(text: str) -> None:
    with pytest.raises(gs.InputError, match="--design") as caught:
        parse(text, "--design")
    assert caught.value.name == "--design"
    assert repr(text) in str(caught.value)
    if text == "half":
        assert all(example in str(caught.value) for example in EXAMPLES)


@pytest.mark.parametrize(("text", "pairs", "evaluations"), [
    ("complete", 45, 10), ("matching", 5, 10), ("matching:3", 3, 6), ("matching:30", 5, 10), ("ring:4", 20, 10),
    ("ring:10", 45, 10), ("agents:4", 6, 4), ("agents:99", 45, 10), ("uniform:12", 12, 10), ("bernoulli:0.2", 9, 10),
    ("regular:3", 15, 10), ("knn:2", 20, 10), ("knn:9", 45, 10), ("radius:0.5", 45, 10),
])  # fmt: skip
def test_knows_its_cost(text: str, pairs: float, evaluations: int) -> None:
    assert parse(text).pairs(10) == pytest.approx(pairs)
    assert parse(text).evaluations(10) == evaluations


@pytest.mark.parametrize("case", ["bernoulli:0.3", "uniform:9", "regular:3", "matching", "ring:2", "agents:3"])
def test_every_design_is_unbiased(case: str) -> None:
    design = parse(case)
    assert design.unbiased
    generator = torch.Generator().manual_seed(5)
    team = gs.Deterministic(torch.randn(12, 8, 2, generator=generator) * torch.arange(1.0, 13).view(-1, 1, 1))
    truth, values = float(gs.snd(team)), []
    for seed in range(500):
        try:
            values.append(gs.measure(team, design=design, seed=seed).value)
        except gs.InputError:  # an empty Bernoulli draw: the normalised mean is unbiased given that there are edges
            assert case == "bernoulli:0.3"
    found = torch.tensor(values, dtype=torch.float64)
    error = float(found.std()) / len(values) ** 0.5
    assert abs(float(found.mean()) - truth) < 4 * error
    assert error > 0
