from __future__ import annotations

import base64
from pathlib import Path

import matplotlib

from graphsnd.plots import Study, save_png, svg_uri
from graphsnd.plots.matrix import contributions_figure, heatmap_figure


def test_png_and_svg(small: Study, tmp_path: Path) -> None:
    figure = contributions_figure(small)
    assert save_png(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    address = svg_uri(figure)
    svg = base64.b64decode(address.removeprefix("data:image/svg+xml;base64,"))
    assert b"<svg" in svg
    again = svg_uri(contributions_figure(small))
    assert again == address


def test_drawing_leaves_matplotlib_as_it_was(small: Study) -> None:
    before = dict(matplotlib.rcParams)
    heatmap_figure(small)
    assert dict(matplotlib.rcParams) == before
