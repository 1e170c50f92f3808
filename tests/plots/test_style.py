from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import pytest

import graphsnd as gs
from graphsnd.plots import theme
from graphsnd.plots.style import BLUE, DARK, GROUP_COLOURS, INK, MUTED, save_png, shade, styled_figure


def test_drawing_leaves_matplotlib_as_it_was(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    files = []
    for name in ("a.png", "b.png"):
        with styled_figure(3, 3) as figure:
            gs.plots.heatmap([[0.0, 1.0], [1.0, 0.0]], ax=figure.subplots())
        files.append(save_png(figure, tmp_path / name).read_bytes())
    assert dict(matplotlib.rcParams) == before
    assert files[0] == files[1]


def test_the_dark_theme_is_dark_nests_and_is_restored() -> None:
    before = dict(matplotlib.rcParams)
    with theme("dark"):
        ax = gs.plots.over_time([1, 2], {"a": [1.0, 2.0]})
        assert ax.get_facecolor() == matplotlib.colors.to_rgba("#1A2027")
        assert ax.lines[0].get_color() == DARK[BLUE]
        with theme():
            assert shade(INK) == DARK[INK]
    assert dict(matplotlib.rcParams) == before
    assert shade(INK) == INK
    ax.figure.savefig(io.BytesIO())  # ticks that are made now are those of the dark theme
    assert {tick.get_color() for tick in ax.get_xticklabels()} == {DARK[INK]}
    with pytest.raises(gs.InputError, match="light, dark"), theme("blue"):  # type: ignore[arg-type]
        pass


def test_colours_of_figures_stay_apart_in_both_themes() -> None:
    for colours in (GROUP_COLOURS, [DARK[colour] for colour in GROUP_COLOURS]):
        assert len(set(colours)) == len(GROUP_COLOURS)
    ground = {"light": "#FFFFFF", "dark": DARK["#FFFFFF"]}
    for ink, paper in ((INK, ground["light"]), (MUTED, ground["light"]), (DARK[INK], ground["dark"])):
        assert contrast(ink, paper) > 4.5  # WCAG AA for text
    assert contrast(DARK[MUTED], ground["dark"]) > 4.5


def contrast(one: str, other: str) -> float:
    """WCAG 2's contrast ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in matplotlib.colors.to_rgb(colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
