"""Where do agents differ? Local diversity over two features of the observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.analysis import Field, bin_field
from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance
from graphsnd.errors import InputError
from graphsnd.plots.arrays import Array
from graphsnd.plots.matrix import describe_unit
from graphsnd.plots.style import INK, draw_scale, drawing, label, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST = 0.3  # side of the square of a single observation, in units of its bin


@checked
def field(
    source: Behavior | Field | Array,
    features: Array | None = None,
    *,
    ax: Axes | None = None,
    bins: int = 12,
    distance: Distance | None = None,
    clusters: Array | None = None,
    names: Sequence[str] = ("x", "y"),
) -> Axes:
    """Draw SND over two features of the observations, such as where they were made.

    The colour of a square is the mean over the observations of its bin, and its size grows with their number. Outlined
    squares differ from the team's SND by more than chance: their 95% interval leaves it out.

    Args:
        source: A behaviour; SND at each observation (:func:`graphsnd.by_observation`); or a
            :class:`~graphsnd.Field`, for bins and a confidence of your own.
        features: ``[..., 2]``, of each observation.
        ax: To draw on; new ones when None.
        bins: Of each feature.
        distance: Of a behaviour; the family's default when None.
        clusters: Episode of each observation.
        names: Of the two features, for the axes.

    Returns:
        The axes.

    Example:
        >>> import graphsnd as gs, torch
        >>> ax = gs.plots.field(gs.Deterministic(torch.randn(256, 5, 2)), torch.rand(256, 2))
    """
    unit = "distance"
    if isinstance(source, Behavior):
        unit = describe_unit(as_distance(source, distance).name)
    if not isinstance(source, Field):
        if features is None:
            raise InputError("features", "of each observation, with shape (..., 2)", None)
        source = bin_field(source, features, bins=bins, distance=distance, clusters=clusters)
    if len(names) != 2:
        raise InputError("names", "to be two", len(names))
    with drawing(ax, 5.6, 4.6) as ax:
        squares = draw_field(ax, source)
        outlined, filled = (int(part.sum()) for part in (source.apart() != 0, source.counts > 0))
        draw_scale(ax, squares, f"local SND  [{unit}]").axhline(source.snd, color=shade(INK), linewidth=1.2)
        ax.set(xlabel=label(names[0]), ylabel=label(names[1]))
        ax.set_title(f"SND {source.snd:.3g} on {int(source.counts.sum()):,} observations")
        note = f"Size: observations, up to {int(source.counts.max()):,} in a bin. "
        note += f"Outlined: {outlined} of {filled} bins differ from SND at {source.confidence:.0%}."
        ax.annotate(note, (0, 0), (0, -38), "axes fraction", textcoords="offset points", fontsize=7.5, va="top")
    return ax


def draw_field(ax: Axes, field: Field, *, whole: bool = False, **look: Any) -> Any:
    """Add one square for each bin with observations, and return their collection; ``whole`` ones fill their bin."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    counts, means, apart = (part.numpy() for part in (field.counts, field.means, field.apart()))
    sides = np.maximum(SMALLEST, np.sqrt(counts / max(1, counts.max()))) if not whole else np.ones(counts.shape)
    x, y = (edges.numpy() for edges in field.edges)
    at = np.argwhere(counts > 0)
    patches = []
    for i, j in at:
        wide, high = (x[i + 1] - x[i]) * sides[i, j], (y[j + 1] - y[j]) * sides[i, j]
        patches.append(Rectangle(((x[i] + x[i + 1] - wide) / 2, (y[j] + y[j + 1] - high) / 2), wide, high))
    lines = np.where(apart[tuple(at.T)] != 0, 0.0 if whole else 1.4, 0.0)
    squares = PatchCollection(patches, edgecolors=shade(INK), linewidths=lines, **look)
    squares.set_array(means[tuple(at.T)])
    ax.add_collection(squares)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    return squares
