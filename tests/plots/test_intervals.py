from __future__ import annotations

from graphsnd.plots import Study
from graphsnd.plots.intervals import estimate_handles, estimates_figure


def test_every_graph_has_a_row_and_the_truth_a_line(small: Study) -> None:
    [ax] = estimates_figure(small).axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [one.spec for one in (*small.sampled, *small.local)]
    assert ax.lines[0].get_xdata()[0] == small.exact.estimate.value
    widest = max(one.estimate.interval[1] for one in small.sampled)
    assert ax.get_xlim()[1] > widest


def test_the_legend_says_when_intervals_hold(small: Study) -> None:
    assert any("any team" in handle.get_label() for handle in estimate_handles(small))
    assert not any("any team" in handle.get_label() for handle in estimate_handles(small, explain=False))
