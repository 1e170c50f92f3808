from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.plots.style import new_figure

TEAM = gs.plots.example_team(24, 200).behavior


def test_both_errors_are_drawn_and_explained() -> None:
    estimate = gs.measure(TEAM, design="uniform:60")
    ax = estimate.plot()
    drawn = {tuple(line.get_xdata()) for line in ax.lines}
    assert {estimate.interval, estimate.asymptotic_interval, estimate.population_interval} <= drawn
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [" ".join(text.split()[2:4]) for text in texts] == ["these observations,"] * 2 + ["similar observations,"]
    assert ax.get_legend().get_title().get_text() == "95% intervals"


def test_exact_numbers_have_no_interval_from_pairs_and_lists_are_rows() -> None:
    exact, sampled = gs.measure(TEAM), gs.measure(TEAM, design="agents:4")
    assert len(exact.plot().lines) == 2  # the value, and other observations
    ax = gs.plots.estimate([exact, sampled], truth=exact.value)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        f"complete\n{exact.value:.4g}", f"agents:4\n{sampled.value:.4g}"
    ]  # fmt: skip
    with pytest.raises(gs.InputError, match="at least one"):
        gs.plots.estimate([])


def test_groups_are_rows_and_few_observations_have_no_interval() -> None:
    teams = {"prey": gs.Deterministic(torch.randn(4, 3, 2)), "$wolves": gs.Deterministic(torch.randn(4, 3, 5))}
    ax = gs.plots.estimate({name: gs.measure(team) for name, team in teams.items()})
    assert [tick.get_text().partition("\n")[0] for tick in ax.get_yticklabels()] == ["prey", r"\$wolves"]
    assert len(ax.lines) == 2
    assert ax.get_legend() is None


def test_estimates_of_one_design_are_a_row_each() -> None:
    team = gs.Deterministic(torch.randn(16, 8, 2, generator=torch.Generator().manual_seed(0)))
    drawn = gs.plots.estimate([gs.measure(team, design="uniform:9", seed=seed) for seed in (0, 1)])
    assert len(drawn.get_yticklabels()) == 2


def test_a_curve_is_the_mean_and_its_band_the_range_of_what_was_measured() -> None:
    runs = torch.tensor([[1.0, float("nan"), 3.0, float("nan")], [3.0, 5.0, 9.0, float("nan")]], requires_grad=True)
    ax = gs.plots.over_time([0, 10, 20, 30], {"a": runs}, ax=new_figure(3, 3).subplots())
    line = ax.lines[0]
    assert line.get_xdata().tolist() == [0, 10, 20]  # at 30 nothing was measured
    assert line.get_ydata().tolist() == [2, 5, 6]
    band = ax.collections[0].get_paths()[0].vertices
    ends = {x: sorted({y for at, y in band.tolist() if at == x}) for x in (0.0, 10.0, 20.0)}
    assert ends == {0.0: [1, 3], 10.0: [5], 20.0: [3, 9]}


def test_other_summaries_steps_and_a_target() -> None:
    curves = {"a": np.ones((3, 2)), "$b": np.zeros(5)}
    steps = {"a": [1, 2], "$b": range(5)}
    median = lambda runs: (np.median(runs, 0),) * 3  # noqa: E731
    ax = gs.plots.over_time(steps, curves, summary=median, target=0.5, ylabel="reward")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["target 0.5", "a", r"\$b"]
    assert [len(line.get_xdata()) for line in ax.lines] == [2, 2, 5]
    assert ax.get_ylabel() == "reward"


@pytest.mark.parametrize("count", [2, 6])
def test_the_legend_covers_no_curve(count: int) -> None:
    steps = np.arange(50)
    ax = gs.plots.over_time(steps, {f"run {k}": (steps - 12.0 * k) ** 2 for k in range(count)}, target=900.0)
    ax.figure.draw_without_rendering()
    lowest = ax.get_legend().get_window_extent().y0
    for line in ax.lines:
        assert ax.transData.transform(line.get_xydata())[:, 1].max() < lowest


@pytest.mark.parametrize("curves", [{}, {"a": np.zeros((2, 3))}, {"a": np.zeros((1, 2, 4))}, {"a": np.zeros((0, 4))}])
def test_curves_that_do_not_fit_are_refused(curves: dict[str, np.ndarray]) -> None:
    with pytest.raises(gs.InputError, match="curves"):
        gs.plots.over_time(range(4), curves)
