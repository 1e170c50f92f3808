"""One look for every figure: colours, type, and the two ways a figure leaves this package."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
LOCAL = MUTED  # measures that do not

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

DPI = 170
LABELLED = 40  # agents up to which all their names are written
PHONE = 3.9  # inches of a figure that stands alone on a page: 374 pixels, so that a phone hardly shrinks its text
UNIT = "action units"  # of the demo team's distances
Theme = Literal["light", "dark"]
_theme: ContextVar[Theme] = ContextVar("theme", default="light")


@contextmanager
def theme(name: Theme | None = None) -> Iterator[None]:
    """Draw inside this context in one look; matplotlib's settings are restored afterwards.

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
    """Return a colour of the light style as the current settings need it: another one on a dark ground.

    Args:
        colour: One of this module's.
        dark: Whether the ground is dark; what matplotlib's settings say when None, so that a style of the user counts.
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    dark = sum(to_rgb(rcParams["axes.facecolor"])) < 1.5 if dark is None else dark
    return DARK.get(f"#{colour.lstrip('#').upper()}", colour) if dark else colour


@contextmanager
def drawing(ax: Axes | None, width: float = 5.4, height: float = 4.0) -> Iterator[Axes]:
    """Give the axes to draw on: those of the user in the user's style, or new ones in the project's.

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


def draw_scale(ax: Axes, drawn: Any, text: str) -> Axes:
    """Draw the colour bar of an image or of patches, and return its axes."""
    # Inside the axes, so that it is as high as they are in every layout.
    bar: Any = ax.figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)))
    bar.set_label(text)
    bar.outline.set_visible(False)
    bar.ax.tick_params(color=shade(MUTED), labelcolor=shade(INK))
    return bar.ax


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


def phone_figure(height: float, draw: Callable[..., Any], *data: Any) -> Figure:
    """Return a figure as narrow as a phone, drawn by ``draw(ax, *data)``."""
    with styled_figure(PHONE, height) as figure:
        draw(figure.subplots(), *data)
        return figure


def style_rows(ax: Axes) -> None:
    """Style axes whose rows have names at the left: no line and no ticks there, and a grid across."""
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color=shade(FAINT))


def label(name: str) -> str:
    """Return a name as a figure may show it: without control characters, and with its dollars, which begin formulas."""
    return printable(name).replace("$", r"\$")


def save_png(figure: Figure, path: Path, *, dpi: int = DPI) -> Path:
    """Write a PNG, all of it or nothing, and return its path.

    Args:
        figure: A matplotlib figure.
        path: The file.
        dpi: Dots per inch.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     figure = gs.plots.tree(gs.Deterministic(torch.randn(8, 5, 2))).figure
        ...     save_png(figure, Path(folder) / "tree.png").name
        'tree.png'
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


def svg_uri(figure: Figure) -> str:
    """Return a figure of the light style as a ``data:`` address, for a page that needs no other file.

    It follows dark mode: the colours in it are variables, which the reader's preference sets.

    Args:
        figure: Drawn inside ``theme("light")``.

    Example:
        >>> import torch, graphsnd as gs
        >>> svg_uri(gs.plots.tree(gs.Deterministic(torch.randn(8, 5, 2))).figure)[:26]
        'data:image/svg+xml;base64,'
    """
    buffer = io.StringIO()
    with theme("light"):
        figure.savefig(buffer, format="svg", dpi=DPI, metadata={"Date": None})
    # Each colour of DARK becomes a variable, which the dark preference sets otherwise.
    known = {light.lower(): f"--{at}" for at, light in enumerate(DARK)}
    colours = r"(?<=: )#[0-9a-f]{6}\b"
    text = re.sub(colours, lambda c: f"var({known[c[0]]})" if c[0] in known else c[0], buffer.getvalue())
    # Places to a hundredth of a point: a third of the size. Factors below 1, of glyphs, stay as they are.
    text = re.sub(r"\b([1-9]\d*\.\d\d)\d+", r"\1", text)
    light, dark = (";".join(f"--{at}:{colour}" for at, colour in enumerate(side)) for side in (DARK, DARK.values()))
    rules = f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    text = re.sub(r"(<svg\b[^>]*>)", lambda tag: tag[0] + rules, text, count=1)
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode("ascii")


def group_look(group: int) -> tuple[str, str]:
    """Return colour and marker of a group, which repeat after six."""
    return shade(GROUP_COLOURS[group % len(GROUP_COLOURS)]), GROUP_MARKERS[group % len(GROUP_MARKERS)]
