"""An estimate in words: the same lines for the terminal and for the page."""

from __future__ import annotations

from graphsnd.behavior import DISTANCES
from graphsnd.estimation import Estimate

Facts = list[tuple[str, str]]


def number(value: float) -> str:
    """Six significant digits, enough to tell two runs apart.

    Example:
        >>> number(1.0926960119), number(2.5e-20)
        ('1.0927', '2.5e-20')
    """
    return f"{value:.6g}"


def interval(ends: tuple[float, float]) -> str:
    """Four significant digits at both ends.

    Example:
        >>> interval((0.91851, 1.14))
        '[0.9185, 1.140]'
    """
    return f"[{ends[0]:#.4g}, {ends[1]:#.4g}]"


def unit(distance: str) -> str:
    """What one unit of a distance is, for axis labels."""
    maximum = DISTANCES[distance].maximum
    return "action units" if maximum is None else f"{distance.replace('-', ' ')}, at most {maximum:.3g}"


def facts(estimate: Estimate, graph: str, seconds: float) -> Facts:
    """Everything an :class:`~graphsnd.Estimate` says, as names and sentences.

    Args:
        estimate: The estimate.
        graph: The graph or design as the user wrote it.
        seconds: How long it took.
    """
    e = estimate
    rows: Facts = [(e.target, number(e.value)), *_certainty(e)]
    if e.met is not None:
        rows.append(("tolerance", f"{'met' if e.met else 'NOT met within the budget'}, looked {_times(e.looks)}"))
    if e.observation_error is None:
        rows.append(("observation error", "unknown: it takes 16 observations to estimate one"))
    else:
        rows.append(("observation error", f"{e.observation_error:.3g}, from having {e.observations:,} observations"))
    used = f"{e.observations:,}"
    rows += [
        ("agents", f"{e.agents:,}"),
        ("observations", used if e.observations == e.observations_total else f"{used} of {e.observations_total:,}"),
        ("pairs used", f"{e.pairs_used:,} of {e.pairs_total:,} ({100 * e.pairs_used / e.pairs_total:.3g}%)"),
        ("distance", e.distance),
        ("graph" if not e.why else "design", graph),
    ]
    if e.why:
        rows += [("why", e.why), ("cost", f"{e.distances:,} distances, {e.policy_evaluations:,} policy evaluations")]
    return [*rows, ("seconds", f"{seconds:.3g}")]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _certainty(e: Estimate) -> Facts:
    sure = f"{100 * e.confidence:.4g}%"
    if e.target != "SND":
        return [("certainty", "exact on this graph, which defines a local measure: not an estimate of SND")]
    if e.exact:
        return [("certainty", "exact: every pair was used")]
    asymptotic = (f"asymptotic {sure}", f"{interval(e.asymptotic_interval)}, valid for large samples")
    some = "pairs" if e.observations == e.observations_total else "pairs and observations"
    error = ("standard error", f"{e.standard_error:.3g}, from looking at some {some} only")
    if not e.guaranteed:
        return [asymptotic, error]
    return [(f"guaranteed {sure}", f"{interval(e.interval)}, valid for every team ({e.method})"), asymptotic, error]
