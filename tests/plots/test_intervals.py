from __future__ import annotations

import pytest
import torch

import graphsnd as gs

TEAM = gs.plots.example_team(24, 200).behavior


def test_both_errors_are_drawn_and_explained() -> None:
    estimate = gs.measure(TEAM, design="uniform:60")
    ax = estimate.plot()
    drawn = {tuple(line.get_xdata()) for line in ax.lines}
    assert {estimate.interval, estimate.asymptotic_interval, estimate.population_interval} <= drawn
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [" ".join(text.split()[2:4]) for text in texts] == ["these observations,"] * 2 + ["others like"]
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
