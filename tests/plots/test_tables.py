from __future__ import annotations

import io

from rich.console import Console

from graphsnd.plots.study import Study
from graphsnd.plots.tables import ESTIMATE_COLUMNS, estimate_rows, estimates_table, lines_table, table


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


def test_estimates_have_a_row_for_each_graph(small: Study) -> None:
    rows = estimate_rows(small)
    assert {len(row) for row in rows} == {len(ESTIMATE_COLUMNS)}
    assert rows[0][4] == "exact: SND"
    assert [row[4] for row in rows][-3:] == ["local, not SND"] * 3
    assert estimates_table(small).row_count == len(rows) == 7
