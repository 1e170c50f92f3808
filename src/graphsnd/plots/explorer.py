"""The live part of a page: hover over pairs, pick an agent, sort, reorder, and choose the number of roles.

Plotly draws, where it is installed (``pip install graphsnd[page]``), and its code travels inside the page. Without it,
or without JavaScript, the page shows the pictures that stand beside it.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsnd.plots.clustering import behaviour_map
from graphsnd.plots.page import HtmlTable
from graphsnd.plots.style import DARK, GROUP_COLOURS

if TYPE_CHECKING:
    from graphsnd.plots.measurement import PairDistances

LIVE = 250  # agents up to which a page is live: beyond, it would take more than six megabytes
LISTED, ENDS = 500, 100  # agents up to which all are in the table; of more, those at each end of the order
ROLES = 12  # at most this many can be chosen

ORDERS = {"tree": "alike side by side", "contribution": "most distinctive first", "names": "as given"}


def is_live(agents: int) -> bool:
    """Return whether a page of this many agents is live: Plotly is there, and the matrix fits."""
    return agents <= LIVE and find_spec("plotly") is not None


def agents_table(pairs: PairDistances) -> tuple[HtmlTable, list[int]]:
    """Return a row for each agent, the most distinctive first, and the agents in that order.

    Of more than 500 agents, only the 100 most and the 100 least distinctive ones that have a pair.

    Args:
        pairs: What was measured; two more columns where it has roles.
    """
    names, roles, n = pairs.names, pairs.roles, len(pairs.names)
    means, degree = pairs.mean_by_agent()
    first, second = pairs.edges.T
    ends, others = np.concatenate([first, second]), np.concatenate([second, first])
    twice = np.tile(pairs.distances, 2)
    falling = np.argsort(-twice, kind="stable")
    nearest, closest = np.full(n, -1), np.zeros(n)
    nearest[ends[falling]], closest[ends[falling]] = others[falling], twice[falling]  # the last written is the nearest
    falling, rows = np.argsort(-means, kind="stable"), []
    if n > LISTED:
        falling = falling[degree[falling] > 0]
        falling = np.delete(falling, slice(ENDS, max(ENDS, len(falling) - ENDS)))
    order = falling.tolist()
    for agent in order:
        role = [] if roles is None else [str(int(roles.labels[agent]) + 1)]
        lost = [] if roles is None else [f"{float(roles.loss[agent]):+.4f}"]
        mean = f"{means[agent]:.4f}" if degree[agent] else "no pair"
        near = f"{names[nearest[agent]]} ({closest[agent]:.4f})" if degree[agent] else ""
        rows.append((names[agent], *role, mean, *lost, near))
    more = ("", "") if roles is None else ("role", "SND lost without")
    columns = ("agent", more[0], "mean distance", more[1], "acts most like")
    return HtmlTable(tuple(filter(None, columns)), rows, id="agents"), order


def describe_omission(listed: int, agents: int) -> str:
    """Return the sentence that says which agents a table lists; nothing where it lists all."""
    most = f" The table lists {listed:,} of {agents:,} agents, those with the largest and the smallest mean distances."
    return most if listed < agents else ""


def explorer_html(pairs: PairDistances, rows: list[int]) -> str:
    """Return controls, charts and their data as HTML; :func:`explorer_script` makes them live.

    Args:
        pairs: What was measured; the slider begins with its roles.
        rows: The agents in the order of the table.
    """
    edges, roles, n = pairs.edges, pairs.roles, len(pairs.names)
    count = 1 if roles is None else roles.count
    orders = {"contribution": rows, "names": [*range(n)]}
    places: NDArray[np.float64] = np.zeros((0, 2))
    labels: list[list[int]] = []
    if pairs.tree is not None and roles is not None:
        orders = {"tree": pairs.tree.order.tolist(), **orders}  # the first is shown at first
        matrix = np.zeros((n, n))
        matrix[tuple(edges.T)] = matrix[tuple(edges.T[::-1])] = pairs.distances
        places = behaviour_map(matrix)
        labels = [roles.cut(k).tolist() for k in range(1, min(max(ROLES, count), n) + 1)]
        labels[count - 1] = roles.labels.tolist()  # a few single agents may be with another role than in the tree
    data = {
        "names": pairs.names, "complete": bool(labels), "edges": [] if labels else edges.tolist(),
        "unit": pairs.unit, "orders": orders,
        "distances": [float(f"{value:.4g}") for value in pairs.distances], "places": places.round(5).tolist(),
        "roles": labels, "count": count, "rows": rows, "colours": GROUP_COLOURS, "dark": DARK,
    }  # fmt: skip
    # All pairs are in order and need no list. Nothing in a name can end the element: every "<" is written as its code.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    options = "".join(f'<option value="{key}">{ORDERS[key]}</option>' for key in orders)
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
