"""One look for every figure: colours, type, and the two ways a figure leaves this package."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graphsnd.arguments import checked
from graphsnd.errors import printable
from graphsnd.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which the common colour-vision deficiencies keep apart; each group also has its own marker.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
GROUP_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY)
GROUP_MARKERS = ("o", "s", "^", "D", "P", "X")

INK, MUTED, FAINT = "#1B1F24", "#5F6771", "#D5DAE0"  # as in graphsnd.mplstyle
TRUTH = VERMILLION  # the exact SND, wherever it is drawn
ESTIMATE = BLUE  # anything that estimates it
LOCAL = MUTED  # measures that do not

DPI = 170
LABELLED = 40  # agents up to which their names are written
UNIT = "action units"  # of the demo team's distances


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this context; matplotlib's settings are restored afterwards."""
    import matplotlib

    with matplotlib.rc_context(fname=Path(__file__).with_name("graphsnd.mplstyle")):
        yield


@contextmanager
def styled_figure(
    width: float, height: float, *, layout: Literal["constrained"] | None = "constrained"
) -> Iterator[Figure]:
    """Make a figure of this size in inches, to be drawn in the project's style."""
    with style():
        yield new_figure(width, height, layout=layout)


def new_figure(width: float, height: float, *, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Return a figure of this size in inches, which belongs to no window and to no global list."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


def label(name: str) -> str:
    """Return a name as a figure may show it: without control characters, and with its dollars, which begin formulas."""
    return printable(name).replace("$", r"\$")


@checked
def save_png(figure: Figure, path: Path, *, dpi: int = DPI) -> Path:
    """Write a PNG, all of it or nothing, and return its path."""
    write_whole(path, png_bytes(figure, dpi=dpi))
    return path


def png_bytes(figure: Figure, *, dpi: int = DPI) -> bytes:
    """Return the figure as a PNG."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": "graphsnd"})
    return buffer.getvalue()


@checked
def svg_uri(figure: Figure) -> str:
    """Return the figure as a ``data:`` address, for a page that needs no other file."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="svg", dpi=DPI, metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def group_look(group: int) -> tuple[str, str]:
    """Return colour and marker of a group, which repeat after six."""
    return GROUP_COLOURS[group % len(GROUP_COLOURS)], GROUP_MARKERS[group % len(GROUP_MARKERS)]
