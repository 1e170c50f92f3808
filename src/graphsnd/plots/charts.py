"""Figures of a page as Plotly charts, whose points tell their agents, in colours for light and dark grounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphsnd.estimation import Estimate
from graphsnd.plots.distances import Array, Distances, behaviour_map, describe_unit
from graphsnd.plots.intervals import interval_bars
from graphsnd.plots.style import GROUP_COLOURS, MIDDLE
from graphsnd.plots.tables import escape

GREY = "#8A94A0"
LONG = 16  # characters of a name along an axis at most
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross", "x")


def estimate_chart(e: Estimate) -> Any:
    """Return the value and a row for each of its intervals."""
    traces: list[dict[str, Any]] = []
    for about, ends, colour, width in interval_bars(e):
        row = about.replace(", ", "<br>")
        line = {"color": MIDDLE[colour], "width": 2 * width}
        hover = f"{escape(about)}<br><b>%{{x:.4g}}</b><extra></extra>"
        traces.append({"x": ends, "y": [row, row], "mode": "lines", "line": line, "hovertemplate": hover})
    rows = [trace["y"][0] for trace in traces]
    point = {"color": GREY, "size": 9, "line": {"width": 1.5, "color": "#FFFFFF"}}
    hover = f"{e.target}<br><b>%{{x:.6g}}</b><extra></extra>"
    traces.append({"x": [e.value] * len(rows), "y": rows, "mode": "markers", "marker": point, "hovertemplate": hover})
    low, high = min(trace["x"][0] for trace in traces), max(trace["x"][-1] for trace in traces)
    room = [low - 0.15 * (high - low), high + 0.15 * (high - low)]
    axes = {"xaxis": {"title": {"text": f"{e.target}  [{describe_unit(e.distance)}]"}, "range": room}}
    return _figure([{"type": "scatter", **trace} for trace in traces], yaxis={"range": [len(rows) - 0.4, -0.6]}, **axes)


def heatmap_chart(given: Distances, groups: Array | None) -> Any:
    """Return the distance between every two agents, under the tree of those that act alike where all are known."""
    order = given.arrange("tree")
    names, colours = _safe(given.names), _colours(groups, len(order))
    ordered = [names[agent] for agent in order]
    axis = {"type": "category", "showgrid": False, "ticks": "", **_ticks(ordered)}
    matrix = {
        "type": "heatmap", "x": ordered, "y": ordered, "z": given.matrix[np.ix_(order, order)].astype(np.float32),
        "colorscale": "Viridis", "zmin": 0, "hoverongaps": False,
        "hovertemplate": "%{y}, %{x}<br><b>%{z:.4g}</b><extra></extra>",
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": given.unit, "side": "right"}},
    }  # fmt: skip
    traces, top = [matrix], 1.0
    hidden = {"visible": False, "fixedrange": True}
    layout: dict[str, Any] = {"xaxis": {**axis, "tickangle": -90}}
    if given.complete:
        from scipy.cluster.hierarchy import dendrogram

        top, tree = 0.82, dendrogram(given.links, no_plot=True)
        # Leaves of SciPy's tree stand at 5, 15, 25, ...; each link is four points, and a gap.
        x, y = (np.pad(np.array(tree[key]), ((0, 0), (0, 1)), constant_values=np.nan) for key in ("icoord", "dcoord"))
        lines = {"x": ((x - 5) / 10).ravel(), "y": y.ravel(), "line": {"color": GREY, "width": 1}, "hoverinfo": "skip"}
        traces.append({"type": "scatter", "mode": "lines", "xaxis": "x2", "yaxis": "y2", **lines})
        layout |= {"xaxis2": {**hidden, "range": [-0.5, len(order) - 0.5]}, "yaxis2": {**hidden, "domain": [0.86, 1]}}
    if groups is not None:
        strip = {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "y0": top + 0.008,
            "y1": top + 0.028,
            "line": {"width": 0},
        }
        starts = [at for at in range(len(order)) if at == 0 or colours[order[at]] != colours[order[at - 1]]]
        layout["shapes"] = [
            {**strip, "x0": start - 0.5, "x1": stop - 0.5, "fillcolor": colours[order[start]]}
            for start, stop in zip(starts, [*starts[1:], len(order)], strict=True)
        ]
    return _figure(traces, yaxis={**axis, "autorange": "reversed", "domain": [0, top]}, **layout)


def map_chart(given: Distances, groups: Array, roles: Sequence[str]) -> Any:
    """Return the agents in the plane, close where they act alike."""
    places, names, traces = behaviour_map(given.matrix), _safe(given.names), []
    for group, role in enumerate(_safe(roles)):
        mine = np.flatnonzero(np.asarray(groups) == group)
        line = {"width": 0.5, "color": "#FFFFFF"}
        marker = {"size": 10, "color": _colours([group], 1)[0], "symbol": SYMBOLS[group % len(SYMBOLS)], "line": line}
        look = {
            "mode": "markers+text" if len(names) <= 12 else "markers",
            "textposition": "top center",
            "cliponaxis": False,
        }
        text = {"text": [names[agent] for agent in mine], "hovertemplate": f"%{{text}}<br>{role}<extra></extra>"}
        x, y = places[mine].T
        traces.append({"type": "scatter", "x": x, "y": y, "name": role, "marker": marker, **look, **text})
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1.01, "x": 0}
    layout: dict[str, Any] = {"showlegend": len(roles) > 1, "legend": legend}
    layout["xaxis"] = {"title": {"text": "near agents act alike"}}
    return _figure(traces, yaxis={"title": {"text": f"[{given.unit}]"}, "scaleanchor": "x"}, **layout)


def contributions_chart(given: Distances, groups: Array | None) -> Any:
    """Return a bar for each agent that has a measured pair: its mean distance to the others, largest first."""
    order = [agent for agent in given.arrange("contribution") if given.partners[agent]]
    names, colours = _safe(given.names), _colours(groups, len(given.names))
    bars: dict[str, Any] = {"x": [names[agent] for agent in order], "y": given.contributions[order]}
    look = {"marker": {"color": [colours[agent] for agent in order], "line": {"width": 0}}}
    trace = {"type": "bar", **bars, **look, "hovertemplate": "%{x}<br><b>%{y:.4g}</b><extra></extra>"}
    axis = {"type": "category", "tickangle": -90, "showgrid": False, **_ticks(bars["x"])}
    return _figure([trace], xaxis=axis, yaxis={"title": {"text": "mean distance"}}, bargap=0.15)


def graph_chart(given: Distances) -> Any:
    """Return the agents on a circle, and a line for each pair that was measured."""
    names, n = _safe(given.names), len(given.names)
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    where = np.stack([np.sin(angles), np.cos(angles)], 1)
    edges = np.argwhere(np.triu(~np.isnan(given.matrix), 1))
    lines = np.concatenate([where[edges], np.full((len(edges), 1, 2), np.nan)], 1).reshape(-1, 2).astype(np.float32)
    x, y = lines.T
    thin = {"mode": "lines", "x": x, "y": y, "line": {"color": GREY, "width": 0.7}, "hoverinfo": "skip"}
    text = [f"{name}<br>{count} partners" for name, count in zip(names, given.partners, strict=True)]
    marker = {"color": MIDDLE[GROUP_COLOURS[0]], "size": 8}
    dots = {"mode": "markers", "x": where[:, 0], "y": where[:, 1], "marker": marker, "text": text}
    dots |= {"hovertemplate": "%{text}<extra></extra>"}
    hidden = {"visible": False}
    traces = [{"type": "scatter", **trace} for trace in (thin, dots)]
    return _figure(traces, xaxis=hidden, yaxis={**hidden, "scaleanchor": "x"})


def _figure(traces: list[dict[str, Any]], *, xaxis: dict[str, Any], yaxis: dict[str, Any], **layout: Any) -> Any:
    """Return a figure without a ground of its own; the page's style sheet colours its text and its grid."""
    import plotly.graph_objects as go

    axis = {"fixedrange": True, "zeroline": False, "automargin": True}
    font = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 12}
    look = {"template": "none", "font": font, "margin": dict.fromkeys("lrtb", 8), "dragmode": False}
    ground = dict.fromkeys(("paper_bgcolor", "plot_bgcolor"), "rgba(0,0,0,0)")
    both = {"xaxis": {**axis, **xaxis}, "yaxis": {**axis, **yaxis}, "hovermode": "closest", "showlegend": False}
    return go.Figure(traces, {**look, **ground, **both, **layout})


def _safe(names: Sequence[str]) -> list[str]:
    """Return names as Plotly shows them, which reads a little HTML."""
    return [escape(name) for name in names]


def _ticks(names: Sequence[str]) -> dict[str, Any]:
    """Return the texts of some names along an axis where these are long; Plotly finds room for short ones itself."""
    if max(map(len, names), default=0) <= LONG:
        return {}
    shown = names[:: -(-len(names) // 18)]
    return {"tickvals": shown, "ticktext": [name if len(name) <= LONG else f"{name[: LONG - 1]}…" for name in shown]}


def _colours(groups: Array | None, agents: int) -> list[str]:
    palette = [MIDDLE[colour] for colour in GROUP_COLOURS]
    return [palette[int(group) % len(palette)] for group in ([0] * agents if groups is None else groups)]
