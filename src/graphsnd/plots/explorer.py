"""The live part of a page: hover over pairs, pick an agent, sort, reorder, and choose the number of roles.

Plotly draws, where it is installed (``pip install graphsnd[page]``), and its code travels inside the page. Without it,
or without JavaScript, the page shows the pictures that stand beside it.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.plots.clustering import Tree, behaviour_map, cut
from graphsnd.plots.page import HtmlTable
from graphsnd.plots.style import DARK, GROUP_COLOURS

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIVE = 250  # agents up to which a page is live: beyond, it would take more than six megabytes
ROLES = 12  # at most this many can be chosen

ORDERS = {"tree": "alike side by side", "contribution": "most distinctive first", "names": "as given"}


def is_live(agents: int) -> bool:
    """Return whether a page of this many agents is live: Plotly is there, and the matrix fits."""
    return agents <= LIVE and find_spec("plotly") is not None


def agents_table(names: tuple[str, ...], edges: Any, distances: Any, labels: Any | None) -> tuple[HtmlTable, list[int]]:
    """Return a row for each agent, the most distinctive first, and the agents in that order.

    Args:
        names: Of the agents.
        edges: Measured pairs ``[m, 2]``.
        distances: Of them ``[m]``.
        labels: Role of each agent ``[n]``; no column of roles when None.
    """
    n = len(names)
    ends, twice = edges.T.reshape(-1), np.tile(distances, 2)
    degree = np.bincount(ends, minlength=n)
    means = np.bincount(ends, weights=twice, minlength=n) / np.maximum(degree, 1)
    nearest = np.full(n, -1)
    others = np.concatenate([edges[:, 1], edges[:, 0]])
    by_distance = np.argsort(twice, kind="stable")[::-1]
    nearest[ends[by_distance]] = others[by_distance]  # the last one written is the nearest
    closest = np.full(n, np.inf)
    np.minimum.at(closest, ends, twice)
    total, pairs = float(np.sum(distances)), len(distances)
    order = np.argsort(-means, kind="stable").tolist()
    complete = pairs == n * (n - 1) // 2
    columns = ["agent", *["role"] * (labels is not None), "mean distance", *["SND lost without"] * (complete and n > 2)]
    rows = []
    for agent in order:
        row = [names[agent], *([] if labels is None else [str(int(labels[agent]) + 1)])]
        row.append(f"{means[agent]:.4f}" if degree[agent] else "no pair")
        if complete and n > 2:
            rest = (total - means[agent] * (n - 1)) / ((n - 1) * (n - 2) / 2)
            row.append(f"{total / pairs - rest:+.4f}")
        near = "" if nearest[agent] < 0 else f"{names[nearest[agent]]} ({closest[agent]:.4f})"
        rows.append((*row, near))
    return HtmlTable((*columns, "acts most like"), rows, id="agents"), order


def explorer_html(
    names: tuple[str, ...], edges: Any, distances: Any, tree: Tree | None, unit: str, rows: list[int], count: int
) -> str:
    """Return controls, charts and their data as HTML; :func:`explorer_script` makes them live.

    Args:
        names: Of the agents.
        edges: Measured pairs ``[m, 2]``.
        distances: Of them ``[m]``.
        tree: Of the agents, where all pairs were measured.
        unit: Of the distances.
        rows: The agents in the order of the table.
        count: Number of roles to begin with.
    """
    n, names_of_orders = len(names), dict(ORDERS)
    orders = {"tree": [] if tree is None else tree.order.tolist(), "contribution": rows, "names": [*range(n)]}
    places: NDArray[np.float64] = np.zeros((0, 2))
    labels: list[list[int]] = []
    if tree is None:
        del orders["tree"], names_of_orders["tree"]
    else:
        matrix = np.zeros((n, n))
        matrix[tuple(edges.T)] = matrix[tuple(edges.T[::-1])] = distances
        places = behaviour_map(matrix)
        labels = [cut(tree, k).tolist() for k in range(1, min(ROLES, n) + 1)]
    data = {
        "names": names, "complete": tree is not None, "edges": edges.tolist() if tree is None else [],
        "unit": unit, "orders": orders,
        "distances": [float(f"{value:.4g}") for value in distances], "places": places.round(5).tolist(),
        "roles": labels, "count": count, "rows": rows, "colours": GROUP_COLOURS, "dark": DARK,
    }  # fmt: skip
    # All pairs are in order and need no list. Nothing in a name can end the element: every "<" is written as its code.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    options = "".join(f'<option value="{key}">{text}</option>' for key, text in names_of_orders.items())
    slider = (
        f'<label>Roles <input type="range" id="roles" min="1" max="{len(labels)}" value="{count}"> '
        '<output id="roles-shown"></output></label>'
    )
    plane = '<figure class="themed"><div id="map"></div></figure>' if labels else ""
    return (
        f'<div class="live-only"><div class="controls"><label>Order <select id="order">{options}</select></label>'
        f"{slider if labels else ''}</div>"
        f'<div class="charts"><figure class="themed"><div id="heatmap"></div></figure>{plane}</div>'
        '<figure class="themed panel"><p id="picked"></p><div id="neighbours" hidden></div></figure></div>'
        f'<script type="application/json" id="team">{text}</script>'
    )


def explorer_script() -> str:
    """Return the code that makes the explorer live: Plotly's, and ours."""
    from plotly.offline import get_plotlyjs

    ours = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    kept = {"plotly": get_plotlyjs(), "ours": ours}
    parts = [f'<script type="text/plain" id="{name}">{text}</script>' for name, text in kept.items()]
    # Plotly's five megabytes are read when the pictures are on the screen, so that the page opens at once.
    start = (
        "requestAnimationFrame(() => setTimeout(() => { for (const id of ['plotly', 'ours']) { "
        "const code = document.createElement('script'); code.textContent = document.getElementById(id).textContent; "
        "document.body.append(code); } }));"
    )
    return "\n".join([*parts, f"<script>{start}</script>"])
