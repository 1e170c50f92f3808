from __future__ import annotations

from typing import Any

from benchmarks.verdict import crossover, verdict


def _rows(**fresh: float) -> list[dict[str, Any]]:
    """Rows in which exact SND takes 1 s, for example n4=2.0."""
    return [
        {"n": int(name[1:]), "contestants": {k: {"median_s": t} for k, t in contestants.items()}}
        for name, time in fresh.items()
        for contestants in ({"fused": 1.0, "sparse_fresh": time, "sparse": time},)
    ]


def test_the_border_is_where_sampling_wins_from_there_on() -> None:
    rows = _rows(n4=2.0, n50=1.5, n500=0.5, n2000=0.2)
    assert crossover(rows, "sparse_fresh") == 500
    assert "sampling a tenth of the pairs below n = 500 (measured up to n = 50)" in verdict(rows)


def test_always_and_never() -> None:
    assert "at every measured size, up to n = 50" in verdict(_rows(n4=2.0, n50=1.5))
    assert "at no measured size (n = 4 and above)" in verdict(_rows(n4=0.5, n50=0.2))


def test_a_lucky_win_is_said_and_moves_nothing() -> None:
    rows = _rows(n4=0.9, n50=1.5, n500=0.5)
    assert crossover(rows, "sparse_fresh") == 500
    assert "below n = 500 (measured up to n = 50, except at n = 4)" in verdict(rows)
    assert crossover(_rows(n4=0.9, n50=1.5), "sparse") is None
