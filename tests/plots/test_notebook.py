"""What notebooks show; how it looks was inspected in a browser, here is what it says."""

from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from tests.plots.test_page import Outline

NASTY = "<script>alert(1)</script>"
TEAM = gs.Gaussian(torch.randn(64, 8, 2, generator=torch.Generator().manual_seed(0)), torch.ones(2))
POLICIES = StackedTeam(
    StackedMLP.create((3,), (5, 8, 2), generator=torch.Generator().manual_seed(0)), GaussianHead(2, batch=(3,))
)
SHOWN = {
    "behavior": TEAM.with_names([NASTY, *"abcdefg"]),
    "joint": gs.Joint([TEAM, gs.Categorical(logits=torch.randn(64, 8, 3))], [1, 1]),
    "team": POLICIES.with_names([NASTY, "b", "c"]),
    "graph": gs.graphs.uniform(8, 9).with_names([NASTY, *"abcdefg"]),
    "large graph": gs.graphs.complete(100),
    "weighted": gs.Graph(3, torch.tensor([[0, 1]]), weights=torch.ones(1)),
    "exact": gs.measure(TEAM.with_names([NASTY, *"abcdefg"])),
    "sampled": gs.measure(TEAM, design="uniform:9"),
    "per observation": gs.measure(TEAM, design="agents:4"),
    "local": gs.measure(TEAM, design=gs.graphs.circulant(8, 2)),
    "few": gs.measure(gs.Deterministic(torch.randn(2, 3, 2))),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_views_are_small_balanced_escaped_and_take_the_notebooks_colours(kind: str) -> None:
    html = SHOWN[kind]._repr_html_()  # type: ignore[attr-defined]
    assert Outline(html).open == []
    assert NASTY not in html
    assert "color:" not in html.replace("background", "").replace("currentColor", "")
    assert len(html) < 60_000
    assert len(repr(SHOWN[kind])) < 200
    assert "\n" not in repr(SHOWN[kind])


def test_both_errors_of_a_sampled_number_are_explained_beside_it() -> None:
    estimate = SHOWN["sampled"]
    assert isinstance(estimate, gs.Estimate)
    html = estimate._repr_html_()
    assert f"± {estimate.standard_error:.2g} from the pairs" in html
    assert f"± {estimate.observation_error:.2g} in all" in html
    assert "SND on these observations: 95% in" in html
    assert "flex-wrap:wrap" in html  # the sentence goes below its name on a phone
    assert "viewBox='0 0 420 26'" in html  # and the bars shrink
    assert "SND on other observations like these: 95% in" in html
    assert estimate.number() in html
    assert "from the pairs" not in SHOWN["exact"]._repr_html_()  # type: ignore[attr-defined]
    assert "from the pairs" not in SHOWN["local"]._repr_html_()  # type: ignore[attr-defined]


def test_the_table_of_an_estimate_has_every_field() -> None:
    estimate = SHOWN["sampled"]
    assert isinstance(estimate, gs.Estimate)
    rows = [line.split()[0] for line in estimate.table().splitlines()]
    assert {*rows, "exact", "text"} == set(estimate.to_dict())
    assert repr(SHOWN["sampled"]).startswith("Estimate(SND ")
