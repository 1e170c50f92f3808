from __future__ import annotations

import io

import pytest
import torch
from rich.console import Console

import graphsnd as gs
from graphsnd.plots.tables import format_duration, lines_table, summarise, table

TEAM = gs.Deterministic(torch.randn(40, 10, 2, generator=torch.Generator().manual_seed(0)))


def _text(shown: object, width: int = 100) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(shown)
    return console.export_text()


def test_words_are_left_numbers_right_and_brackets_are_no_markup() -> None:
    made = table(("name", "value", "error"), [("a [bold]b", "1", "[red]")], caption="below")
    assert [column.justify for column in made.columns] == ["left", "right", "right"]
    assert [column.no_wrap for column in made.columns] == [False, True, True]
    assert "a [bold]b" in _text(made)
    assert "[red]" in _text(made)
    assert "below" in _text(made)
    assert [column.justify for column in table("abc", align="><").columns] == ["right", "left", "left"]


def test_lines_show_everything() -> None:
    text = _text(lines_table([("SND", "1.0"), ("graph", "[a]")]))
    assert "SND" in text
    assert "[a]" in text


def _facts(graph: gs.Graph | None, team: gs.Behavior = TEAM) -> dict[str, str]:
    return dict(summarise(gs.measure(team, design=graph)))


def test_a_sample_has_both_intervals_and_both_errors() -> None:
    found = _facts(gs.graphs.uniform(10, 40))
    assert "valid for every team" in found["guaranteed 95%"]
    assert "valid for large samples" in found["asymptotic 95%"]
    assert "standard error" in found
    assert "for other observations like these" in found["on others 95%"]
    assert found["clusters"] == "assumes blocks of 1 row are independent; pass clusters="
    assert found["pairs used"] == "40 of 45 pairs by uniform (88.9%)"


def test_few_pairs_have_no_asymptotic_interval_and_the_reason() -> None:
    found = _facts(gs.graphs.uniform(10, 12))
    assert found["asymptotic 95%"] == "none: the pairs and draws tell as much as 11 independent ones, and it takes 30"


def test_pairs_that_are_redrawn_are_those_of_one_observation() -> None:
    found = dict(summarise(gs.measure(TEAM, design="agents:4")))
    assert found["pairs used"] == "6 of 45 pairs redrawn at each observation by agents:4 (13.3%)"


def test_all_pairs_are_exact() -> None:
    assert _facts(None)["certainty"] == "exact: every pair was used"


def test_a_fixed_graph_is_exact_and_not_snd() -> None:
    found = _facts(gs.graphs.cliques([0, 1] * 5))
    assert "Graph-SND" in found
    assert "not an estimate of SND" in found["certainty"]


def test_few_observations_have_no_observation_error() -> None:
    found = _facts(None, gs.Deterministic(torch.eye(2).expand(3, 2, 2)))
    assert found["SND"].startswith("1.41421 ± unknown (")
    assert "16 observations" in found["clusters"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0009994, "999 us"), (0.0009996, "1.00 ms"), (0.9996, "1.00 s"), (99.96, "100 s")]
)
def test_durations_keep_three_digits_where_the_unit_changes(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
