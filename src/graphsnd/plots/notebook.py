"""What notebooks show for a value: a few calm lines that take the notebook's own colours, light or dark.

Text takes the colour around it, and lines and bars are middle tones that can be seen on both grounds, because themes of
notebooks are not the reader's colour scheme and cannot be asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphsnd.behavior import Behavior
from graphsnd.estimation import Estimate
from graphsnd.graphs import Graph
from graphsnd.plots.intervals import interval_bars
from graphsnd.plots.style import BLUE, GREEN, MIDDLE
from graphsnd.plots.tables import escape, format_agents, format_count, format_interval, summarise
from graphsnd.teams.team import Team

PAIRS, OBSERVATIONS = MIDDLE[BLUE], MIDDLE[GREEN]
Rows = Sequence[tuple[str, ...]]  # name, sentence and, where it has a bar, its colour
ROW = "display:flex;flex-wrap:wrap;padding:0;background:none"
SENTENCE = "flex:1 1 16em;opacity:.8;max-width:44em;white-space:normal"
CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;background:none;border:0"


def estimate_html(estimate: Estimate) -> str:
    """Return the number, its two errors and what they are about; everything else is folded away."""
    e, sure = estimate, f"{100 * estimate.confidence:.4g}%"
    rows: list[tuple[str, ...]] = []
    if e.target.startswith("Graph-SND"):
        rows.append(("local", "exact on this graph, which defines a measure of its own: not an estimate of SND."))
    elif not e.exact:
        kinds = ("large samples", e.asymptotic_interval), ("every team", e.interval if e.guaranteed else None)
        ends = ", ".join(f"{format_interval(e, each)} for {kind}" for kind, each in kinds if each) or "no interval"
        about = f"SND on these observations: {sure} in {ends}."
        rows.append((f"± {e.standard_error:.2g} from the pairs", about, PAIRS))
    if e.population_interval is not None:
        ends = format_interval(e, e.population_interval)
        about = f"{e.target} on other observations like these: {sure} in {ends} for large samples ({e.clusters})."
        rows.append((f"± {e.observation_error:.2g} in all", about, OBSERVATIONS))
    title, _, note = str(e).partition(" (")
    note = f"{e.agents:,} agents, {note}".replace(")", "", 1)
    return _card(title, note, rows, _bars(e) + _folded("all of it", summarise(e)))


def behavior_html(behavior: Behavior) -> str:
    """Return who acts, on how much, and how they are compared."""
    shape = " x ".join(f"{size:,}" for size in behavior.batch_shape)
    observations = format_count(behavior.observations) + f" ({shape})" * (len(behavior.batch_shape) > 1)
    rows = [("agents", _named(behavior)), ("observations", observations)]
    rows.append(("compared by", behavior.distance.name))
    return _card(type(behavior).__name__, "what every agent would do on the same observations", rows)


def team_html(team: Team) -> str:
    """Return the agents and what they observe."""
    features = "unknown" if team.observation_features is None else f"{team.observation_features:,} features"
    rows = [("agents", _named(team)), ("an observation", features)]
    if team.cost is not None:
        rows.append(("one policy, one observation", f"{team.cost:,} multiply-adds"))
    return _card(type(team).__name__, "policies that are evaluated where a measurement asks", rows)


def graph_html(graph: Graph) -> str:
    """Return which pairs count, and a small picture of them."""
    rows = [("agents", format_agents(graph.n, graph.names))]
    rows.append(("pairs", f"{graph.m:,} of {graph.pairs:,} ({100 * graph.m / graph.pairs:.3g}%)"))
    low, high = (int(end) for end in graph.degrees().aminmax())
    rows.append(("partners of an agent", f"{low:,}" if low == high else f"{low:,} to {high:,}"))
    if graph.inclusion is not None:
        rows.append(("drawn", f"each pair with probability {graph.inclusion:.3g}: estimates SND"))
    else:
        rows.append(("fixed", "it defines a measure of its own" if not graph.is_complete else "every pair: SND itself"))
    if graph.weights is not None:
        rows.append(("weighted", "yes"))
    return _card(f"Graph, {graph.family}", "", rows, before=_circle(graph))


def _card(title: str, note: str, rows: Rows, after: str = "", before: str = "") -> str:
    """Return a heading, a line below it, and rows of names and sentences; only ``after`` and ``before`` are HTML."""
    head = f"<div style='font-size:1.2em;font-weight:600'>{escape(title)}</div>"
    head += f"<div style='opacity:.7'>{escape(note)}</div>" if note else ""
    return f"<div style='line-height:1.45;margin:2px 0 8px'>{before}{head}{_rows(rows)}{after}</div>"


def _rows(rows: Rows) -> str:
    body = ""
    # Side by side where there is room, and the sentence below its name where there is not.
    side = f"flex:0 0 {2.5 + 0.55 * max((len(name) for name, *_ in rows), default=0):.1f}em"
    for name, text, *colour in rows:
        look = "display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.5em"
        dot = f"<b style='{look};background:{colour[0]}'></b>" if colour else ""
        body += f"<tr style='{ROW}'><td style='{CELL};{side}'>{dot}{escape(name)}</td>"
        body += f"<td style='{CELL};{SENTENCE}'>{escape(text)}</td></tr>"
    return f"<table style='border:0;margin:4px 0'>{body}</table>" if rows else ""


def _folded(name: str, rows: Rows) -> str:
    return f"<details><summary style='opacity:.7;cursor:pointer'>{escape(name)}</summary>{_rows(rows)}</details>"


def _named(one: Behavior | Team) -> str:
    return format_agents(one.agents, one.names if one.named else None)


def _bars(e: Estimate) -> str:
    """Return the intervals as bars over one axis; nothing where there is none."""
    bars = [bar for bar in interval_bars(e) if bar[1][0] < bar[1][1]]
    if not bars:
        return ""
    low, high = min(bar[1][0] for bar in bars), max(bar[1][1] for bar in bars)

    def x(value: float) -> float:
        return 60 + 300 * (value - low) / (high - low)

    lines = "".join(
        f"<line x1='{x(a):.1f}' x2='{x(b):.1f}' y1='{y}' y2='{y}' stroke='{MIDDLE[colour]}' stroke-width='{width}'/>"
        for _, (a, b), colour, width in bars
        for y in [19 if colour == GREEN else 8]
    )
    point = f"<circle cx='{x(e.value):.1f}' cy='8' r='3.5' fill='currentColor'/>"
    text = "<text x='{}' y='17' fill='currentColor' font-size='11' text-anchor='{}'>{:.4g}</text>"
    ends = text.format(54, "end", low) + text.format(366, "start", high)
    size = "width='420' viewBox='0 0 420 26' style='max-width:100%'"
    return f"<svg {size} role='img' aria-label='intervals'>{lines}{point}{ends}</svg>"


def _circle(graph: Graph) -> str:
    """Return the graph on a circle, where few enough lines make a picture."""
    if graph.n > 60 or graph.m > 600:
        return ""
    angles = (2 * math.pi * k / graph.n for k in range(graph.n))
    places = [(50 + 44 * math.sin(a), 50 - 44 * math.cos(a)) for a in angles]
    lines = "".join(
        f"<line x1='{places[i][0]:.1f}' y1='{places[i][1]:.1f}' x2='{places[j][0]:.1f}' y2='{places[j][1]:.1f}'/>"
        for i, j in graph.edges.tolist()
    )
    dots = "".join(f"<circle cx='{a:.1f}' cy='{b:.1f}' r='2.2' fill='{PAIRS}'/>" for a, b in places)
    style = "float:left;margin:0 16px 4px 0"
    shown = min(0.8, 60 / max(graph.m, 1) + 0.15)
    group = f"<g stroke='currentColor' stroke-opacity='{shown:.2f}' stroke-width='.6'>{lines}</g>"
    return f"<svg width='92' height='92' viewBox='0 0 100 100' style='{style}' aria-hidden='true'>{group}{dots}</svg>"
