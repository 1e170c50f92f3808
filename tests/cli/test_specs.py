from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.cli.specs import FORMS, parse_distance, parse_graph

POSITIONS = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bernoulli:0.4", gs.graphs.bernoulli(12, 0.4, seed=5)),
        ("uniform:20", gs.graphs.uniform(12, 20, seed=5)),
        ("regular:3", gs.graphs.random_regular(12, 3, seed=5)),
        ("knn:2", gs.graphs.knn(POSITIONS, 2)),
        ("radius:0.9", gs.graphs.radius(POSITIONS, 0.9)),
        (" Regular:3 ", gs.graphs.random_regular(12, 3, seed=5)),
    ],
)
def test_every_form_builds_the_graph_of_the_library(text: str, expected: gs.Graph) -> None:
    graph = parse_graph(text).build(12, POSITIONS, seed=5)
    assert graph is not None
    assert torch.equal(graph.edges, expected.edges)
    assert graph.inclusion == expected.inclusion


def test_complete_lists_no_edges() -> None:
    assert parse_graph("complete").build(10**9, None, seed=0) is None


def test_the_examples_of_the_help_parse() -> None:
    for name, form in FORMS.items():
        assert parse_graph(form.example).form is FORMS[name]


@pytest.mark.parametrize("text", ["", "star", "bernouilli:0.1", ":3", "graph_p01"])
def test_unknown_forms_list_all_forms(text: str) -> None:
    with pytest.raises(gs.InputError, match=r"complete, bernoulli:0\.1, uniform:500, regular:8, knn:5, radius:0\.5"):
        parse_graph(text)


@pytest.mark.parametrize("text", ["bernoulli", "bernoulli:", "bernoulli:many", "uniform:3.5", "regular:a", "knn:1e3"])
def test_numbers_that_do_not_parse_name_the_form(text: str) -> None:
    with pytest.raises(gs.InputError, match="Write "):
        parse_graph(text)


def test_complete_takes_no_number() -> None:
    with pytest.raises(gs.InputError, match="complete without a number"):
        parse_graph("complete:4")


@pytest.mark.parametrize(
    "text",
    ["bernoulli:0", "bernoulli:1.5", "bernoulli:nan", "uniform:0", "uniform:67", "regular:12", "knn:12", "radius:-1"],
)
def test_values_out_of_range_are_the_builders_errors(text: str) -> None:
    with pytest.raises(gs.InputError):
        parse_graph(text).build(12, POSITIONS, seed=0)


@pytest.mark.parametrize("text", ["knn:3", "radius:1"])
def test_spatial_graphs_need_positions(text: str) -> None:
    with pytest.raises(gs.InputError, match=r"`positions`.*no such key"):
        parse_graph(text).build(12, None, seed=0)
    with pytest.raises(gs.InputError, match=r"`positions` with shape \(12, f\)"):
        parse_graph(text).build(12, POSITIONS[:7], seed=0)


def test_distances_by_name() -> None:
    assert parse_distance(None) is None
    assert parse_distance("Hellinger") == gs.Hellinger()
    with pytest.raises(gs.InputError, match="wasserstein, total-variation, hellinger, jensen-shannon"):
        parse_distance("euclid")
