"""The style of all figures: colours, fonts, and how a figure becomes a file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graphsnd.errors import InputError, check_choice, describe, printable
from graphsnd.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which the common colour-vision deficiencies keep apart; each group also has its own marker.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
GROUP_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY)
GROUP_MARKERS = ("o", "s", "^", "D", "P", "X")

INK, MUTED, FAINT = "#1B1F24", "#5F6771", "#D5DAE0"  # as in graphsnd.mplstyle
TRUTH = VERMILLION  # the exact SND, wherever it is drawn
ESTIMATE = BLUE  # anything that estimates it

# What a colour of the light style is in the dark one: lighter, in the same order, and still told apart.
DARK = {
    INK: "#E6E9ED",
    MUTED: "#9AA4B0",
    FAINT: "#333B45",
    "#FFFFFF": "#1A2027",
    BLUE: "#4FA8E8",
    ORANGE: "#F0B429",
    GREEN: "#2FC29A",
    VERMILLION: "#F5803E",
    PURPLE: "#E49AC6",
    SKY: "#9AD4F7",
}

# Between the two, for pages and notebooks whose ground is the reader's choice.
MIDDLE = {
    BLUE: "#3D94D1",
    ORANGE: "#E69F00",
    GREEN: "#1FA67F",
    VERMILLION: "#E0691F",
    PURPLE: "#CC79A7",
    SKY: "#56B4E9",
}

DPI = 170
LABELLED = 40  # agents up to which all their names are written
Theme = Literal["light", "dark"]
_theme: ContextVar[Theme] = ContextVar("theme", default="light")


@contextmanager
def theme(name: Theme | None = None) -> Iterator[None]:
    """Draw inside this context in the project's style; matplotlib's settings are restored afterwards.

    Args:
        name: ``"light"`` or ``"dark"``; when None, that of the context around this one, or light.

    Example:
        >>> import graphsnd as gs
        >>> with gs.plots.theme("dark"):
        ...     ax = gs.plots.over_time([1, 2], {"SND": [0.1, 0.3]})
    """
    import matplotlib

    name = _theme.get() if name is None else name
    check_choice("name", name, ("light", "dark"))
    token = _theme.set(name)
    try:
        look = matplotlib.rc_params_from_file(Path(__file__).with_name("graphsnd.mplstyle"), use_default_template=False)
        if name == "dark":
            look.update({key: shade(value, dark=True) for key, value in look.items() if key.endswith("color")})
        with matplotlib.rc_context(look):
            yield
            # Pyplot turns this on when a notebook's backend is first used, which may be now; it is no matter of style.
            interactive = matplotlib.rcParams["interactive"]
        matplotlib.rcParams["interactive"] = interactive
    finally:
        _theme.reset(token)


def shade(colour: str, *, dark: bool | None = None) -> str:
    """Return a colour of the light style, or its counterpart on a dark background.

    Args:
        colour: One of this module's.
        dark: Whether the background is dark; matplotlib's settings decide when None.
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    dark = sum(to_rgb(rcParams["axes.facecolor"])) < 1.5 if dark is None else dark
    return DARK.get(f"#{colour.lstrip('#').upper()}", colour) if dark else colour


@contextmanager
def drawing(ax: Axes | None, width: float = 5.4, height: float = 4.0) -> Iterator[Axes]:
    """Yield the axes to draw on: the user's in the user's style, or new ones in the project's style.

    New ones come from pyplot, so that notebooks show them.
    """
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    if ax is not None:
        if not isinstance(ax, Axes):
            raise InputError("ax", "to be axes of matplotlib", describe(ax))
        yield ax
        return

    with theme():
        new = pyplot.figure(figsize=(width, height), layout="constrained").add_subplot()
        # Ticks are made when the figure is drawn, with the settings of then; these stay.
        for axis in "xy":
            colours = {"color": pyplot.rcParams[f"{axis}tick.color"], "labelcolor": pyplot.rcParams["text.color"]}
            new.tick_params(axis=axis, **colours)
        yield new


@contextmanager
def styled_figure(
    width: float, height: float, *, layout: Literal["constrained"] | None = "constrained"
) -> Iterator[Figure]:
    """Make a figure of this size in inches, to be drawn in the project's style."""
    with theme():
        yield new_figure(width, height, layout=layout)


def new_figure(width: float, height: float, *, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Return a figure of this size in inches, which belongs to no window and to no global list."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


def style_rows(ax: Axes) -> None:
    """Style axes whose rows have names at the left: no line and no ticks there, and a grid across."""
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color=shade(FAINT))


def label(name: str) -> str:
    """Return a name as a figure may show it: without control characters, and with its dollars, which begin formulas."""
    return printable(name).replace("$", r"\$")


def save_png(figure: Figure, path: Path, *, dpi: int = DPI) -> Path:
    """Write a PNG as a whole and return its path.

    Args:
        figure: A matplotlib figure.
        path: The file.
        dpi: Dots per inch.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     figure = gs.plots.map(gs.Deterministic(torch.randn(8, 5, 2))).figure
        ...     save_png(figure, Path(folder) / "map.png").name
        'map.png'
    """
    path = Path(path)
    write_whole(path, png_bytes(figure, dpi=dpi))
    return path


def png_bytes(figure: Figure, *, dpi: int = DPI) -> bytes:
    """Return the figure as a PNG."""
    buffer = io.BytesIO()
    with theme():
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": "graphsnd"})
    return buffer.getvalue()


def group_look(group: int) -> tuple[str, str]:
    """Return colour and marker of a group, which repeat after six."""
    return shade(GROUP_COLOURS[group % len(GROUP_COLOURS)]), GROUP_MARKERS[group % len(GROUP_MARKERS)]
