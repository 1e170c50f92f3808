"""An estimate in words: the same lines for the terminal and for the page."""

from __future__ import annotations

from graphsnd.estimation import Estimate
from graphsnd.plots.formatting import format_agents, format_interval, format_number

Lines = list[tuple[str, str]]  # names and sentences


def summarise(estimate: Estimate) -> Lines:
    """Return everything an :class:`~graphsnd.Estimate` says, as names and sentences.

    Args:
        estimate: What :func:`graphsnd.measure` returned.

    Example:
        >>> import torch, graphsnd as gs
        >>> summarise(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))[0]
        ('SND', '4')
    """
    e = estimate
    lines: Lines = [(e.target, format_number(e.value)), *_certainty(e)]
    if e.met is not None:
        looks = "once" if e.looks == 1 else f"{e.looks} times"
        lines.append(("tolerance", f"{'met' if e.met else 'NOT met'}, looked {looks}"))
    if e.observation_error is None:
        lines.append(("observation error", "unknown: it takes 16 observations to estimate one"))
    else:
        text = f"{e.observation_error:.3g}, from having {e.observations:,} observations"
        if e.population_interval is not None:
            text += f"; on others like them {100 * e.confidence:.4g}% in {format_interval(e.population_interval)}"
        lines.append(("observation error", text))
    used = f"{e.observations:,}"
    redrawn = e.design.partition(":")[0] in ("agents", "matching", "ring")
    pairs = f"{e.pairs_used:,} at each observation, redrawn," if redrawn else f"{e.pairs_used:,}"
    lines += [
        ("agents", format_agents(e.agents, e.names)),
        ("observations", used if e.observations == e.observations_total else f"{used} of {e.observations_total:,}"),
        ("pairs used", f"{pairs} of {e.pairs_total:,} ({100 * e.pairs_used / max(1, e.pairs_total):.3g}%)"),
        ("distance", e.distance),
        ("design", e.design),
    ]
    if e.empty_share:
        lines.append(("no neighbours", f"at {100 * e.empty_share:.3g}% of the observations, which count as 0"))
    if e.why:
        lines += [("why", e.why), ("cost", f"{e.distances:,} distances, {e.policy_evaluations:,} policy evaluations")]
    return [*lines, ("seconds", f"{e.seconds:.3g}")]


def _certainty(e: Estimate) -> Lines:
    sure = f"{100 * e.confidence:.4g}%"
    if e.target.startswith("Graph-SND"):
        return [("certainty", "exact on this graph, which defines a local measure: not an estimate of SND")]
    if e.exact:
        return [("certainty", "exact: every pair was used")]
    asymptotic = (f"asymptotic {sure}", f"{format_interval(e.asymptotic_interval)}, valid for large samples")
    sampled = "pairs" if e.observations == e.observations_total else "pairs and observations"
    error = ("standard error", f"{e.standard_error:.3g}, from looking at some {sampled} only")
    if not e.guaranteed:
        return [asymptotic, error]
    guaranteed = f"{format_interval(e.interval)}, valid for every team ({e.method})"
    return [(f"guaranteed {sure}", guaranteed), asymptotic, error]
