"""How training went: curves over iterations, and tables of where they ended, with and without a controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, mean
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.control import audit_error, tracking_error
from graphsnd.plots.curves import draw_curve
from graphsnd.plots.formatting import format_duration
from graphsnd.plots.style import INK, group_look, styled_figure
from graphsnd.plots.tables import table
from graphsnd.rl.grid import Stack
from graphsnd.rl.log import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

Rows = Sequence[Row]
DASHES = (0, (4, 2))
DOTS = (0, (1, 2))
SHOWN = 20  # stacks in a table


def curves_figure(rows: Sequence[Row]) -> Figure:
    """Return reward, and SND with Graph-SND, over iterations: the mean over seeds and their range.

    Args:
        rows: Rows of one training, as :func:`~graphsnd.rl.log.read_rows` gives them.
    """
    runs = len({row.seed for row in rows})
    solved = any(row.solved is not None for row in rows)
    measured = any(row.snd is not None for row in rows)
    panels = 1 + solved + measured
    with styled_figure(4.2 * panels + 0.4, 3.5) as figure:
        axes = figure.subplots(1, panels, squeeze=False)[0]
        _draw_band(axes[0], rows, "reward", 0, marker="")
        _label(axes[0], "Reward", "mean reward of a step")
        if solved:
            _draw_band(axes[1], rows, "solved", 2, marker="")
            _label(axes[1], "Solved in rollouts", "share of agents, when rollouts end", ylim=(-0.02, 1.02))
        if measured:
            _draw_band(axes[-1], rows, "snd", 3, label="SND, all pairs")
            _draw_band(axes[-1], rows, "graph_snd", 5, label="Graph-SND, sampled pairs", linestyle=DASHES)
            _label(axes[-1], "Diversity", "SND", ylim=(0, None))
            axes[-1].legend(loc="best")
        if runs > 1:
            figure.supxlabel(f"mean and range over {runs} seeds", fontsize=9, x=0.01, ha="left")
        return figure


def training_table(rows: Sequence[Row]) -> Table:
    """Return first and last reward, share solved in rollouts, and the last diversity measured, for each seed."""
    lines = []
    for seed in sorted({row.seed for row in rows}):
        mine = [row for row in rows if row.seed == seed]
        last = mine[-1]
        diversity = ([row.snd for row in mine], [row.graph_snd for row in mine])
        measured = [next((f"{v:.4f}" for v in reversed(values) if v is not None), "-") for values in diversity]
        solved = "-" if last.solved is None else f"{last.solved:.0%}"
        rewards = (f"{mine[0].reward:+.4f}", f"{last.reward:+.4f}")
        lines.append((str(seed), str(last.iteration), *rewards, solved, *measured))
    heads = ("seed", "iterations", "first reward", "last reward", "solved", "SND", "Graph-SND")
    return table(heads, lines, caption="solved: in rollouts")


def grid_table(stacks: Sequence[Stack], seconds: float, before: int = 0) -> Table:
    """Return how far the stacks of a grid are: those that run or failed, and the rest in one line.

    Args:
        stacks: As :func:`~graphsnd.rl.train_grid` reports them.
        seconds: Since it began.
        before: Iterations that were done then.
    """
    shown = [each for each in stacks if each.state in ("running", "failed")]
    lines = []
    for each in shown[:SHOWN]:
        names, done = each.task.run_names(), f"{each.done} of {each.task.settings.iterations}"
        runs = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        lines.append((each.name, runs, each.state, done, " ".join(each.error.split())[:200]))
    caption = describe_grid(stacks, seconds, before)
    return table(("stack", "runs", "state", "iterations", "error"), lines, align="<<<><", caption=caption)


def describe_grid(stacks: Sequence[Stack], seconds: float, before: int = 0) -> str:
    """Return the numbers of stacks by their states, iterations, and the time left at the pace so far."""
    states = Counter(each.state for each in stacks)
    done, total = sum(each.done for each in stacks), sum(each.task.settings.iterations for each in stacks)
    parts = [f"{states['finished']} of {len(stacks)} stacks finished"]
    parts += [f"{states[state]} {state}" for state in ("running", "waiting", "failed") if states[state]]
    parts.append(f"{done:,} of {total:,} iterations")
    if before < done < total:
        parts.append(f"about {format_duration(seconds / (done - before) * (total - done))} left")
    return ", ".join(parts)


def iteration_describer(frames: int) -> Callable[[Sequence[Any]], str]:
    """Return a function from the rows of an iteration, one for each run, to a line of their means.

    Between two measurements of diversity it shows the last one, with its iteration.

    Args:
        frames: Frames of an iteration, in all runs.
    """
    last: tuple[int, str] | None = None

    def describe(rows: Sequence[Any]) -> str:
        nonlocal last
        parts = [f"reward {fmean(row.reward for row in rows):+.4f}"]
        if None not in (solved := [row.solved for row in rows]):
            parts.append(f"solved in rollouts {fmean(solved):.0%}")
        if None not in (exact := [row.snd for row in rows]):
            sampled = fmean(row.graph_snd for row in rows)
            last = rows[0].iteration, f"SND {fmean(exact):.4f}  Graph-SND {sampled:.4f}"
        if last is not None:
            parts.append(last[1] if last[0] == rows[0].iteration else f"{last[1]} (of iteration {last[0]})")
        rate = frames / (rows[0].rollout_seconds + rows[0].update_seconds)
        return "  ".join([*parts, f"{rate:,.0f} frames/s"])

    return describe


def describe_control(rows: Sequence[Row]) -> str:
    """Return mean reward, and how far audits and the paper's applied signal are off, over the controlled runs."""
    parts = [f"reward {fmean(row.reward for row in rows):.4f}"]
    held = [row for row in rows if row.target is not None]
    if held:
        audit, tracking = (fmean(getattr(row, name) for row in held) for name in ("audit_error", "tracking_error"))
        parts.append(f"audit error {audit:.1%}  tracking error {tracking:.1%}")
    for name in ("saturated", "zero", "empty", "invalid"):
        if count := sum(getattr(row, name) for row in rows):
            parts.append(f"{name} {count}")
    return "  ".join(parts)


def control_figure(rows: Sequence[Row]) -> Figure:
    """Return target, controller's estimate, audit and reward over iterations: means and ranges over seeds.

    What the controller believes is its estimate times the scale, which says little about diversity (see
    :func:`~graphsnd.control.tracking_error`); the audit is over all pairs and was not fed back.

    Args:
        rows: Rows of one training, as :func:`~graphsnd.rl.log.read_rows` gives them.
    """
    held = any(row.target is not None for row in rows)
    with styled_figure(13.6 if held else 9.2, 3.9) as figure:
        axes = figure.subplots(1, 2 + held)
        for level in sorted({row.target for row in rows if row.target is not None}):
            axes[0].axhline(level, color=INK, linewidth=1.0, linestyle=DOTS, zorder=1)
        for place, ((arm, target), mine) in enumerate(_arms(rows).items()):
            name = arm if target is None else f"{arm}, target {target:g}"
            _draw_band(axes[0], mine, "audit", place, label=name)
            _draw_band(axes[-1], mine, "reward", place)
            if target is not None:
                _draw_dashes(axes[0], mine, "applied", place)
                _draw_band(axes[1], mine, "audit_error", place)
                _draw_dashes(axes[1], mine, "tracking_error", place)
        _label(axes[0], "Diversity", "SND over all pairs", ylim=(0, None))
        _label(axes[-1], "Reward", "mean reward of a step")
        if held:
            _label(axes[1], "Off target", "relative error", ylim=(0, None))
            # Errors below a thousandth are all the same to the eye.
            axes[1].set(yscale="log", ylim=(1e-3, None))
            axes[1].yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        _control_legend(figure, axes[0], held, len({row.seed for row in rows}))
        return figure


def _arms(rows: Sequence[Row]) -> dict[tuple[str, float | None], list[Row]]:
    """Return the rows of each arm and target, in the order of the rows."""
    arms: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        arms.setdefault((row.arm or "", row.target), []).append(row)
    return arms


def _by_seed(rows: Sequence[Row]) -> list[list[Row]]:
    return [[row for row in rows if row.seed == seed] for seed in dict.fromkeys(row.seed for row in rows)]


def _over_seeds(rows: Rows, name: str) -> dict[int, list[float]]:
    """Return the values over seeds at each iteration where there are any."""
    values: dict[int, list[float]] = {}
    for row in rows:
        value = getattr(row, name)
        if value is not None:
            values.setdefault(row.iteration, []).append(value)
    return dict(sorted(values.items()))


def _draw_band(ax: Axes, rows: Rows, name: str, place: int, **look: Any) -> None:
    """Draw the mean over seeds as a line and their range as a band."""
    values = _over_seeds(rows, name)
    low, middle, high = (np.array([f(v) for v in values.values()]) for f in (min, fmean, max))
    draw_curve(ax, list(values), (middle, low, high), place, **look)


def _draw_dashes(ax: Axes, rows: Rows, name: str, place: int) -> None:
    values = _over_seeds(rows, name)
    means = [mean(v) for v in values.values()]
    ax.plot(list(values), means, color=group_look(place)[0], linewidth=1.1, linestyle=DASHES)


def _label(ax: Axes, title: str, label: str, **limits: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set(title=title, xlabel="iteration", ylabel=label, **limits)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid()


def _control_legend(figure: Figure, ax: Axes, held: bool, seeds: int) -> None:
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    if held:
        handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle=DOTS))
        handles.append(Line2D([], [], color=INK, linewidth=1.1, linestyle=DASHES))
        labels += ["target", "estimate x scale, what the controller believes"]
    title = f"mean and range over {seeds} seeds" if seeds > 1 else None
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), title=title)


def control_table(rows: Sequence[Row]) -> Table:
    """Return means over seeds of the last 50 iterations, or 10 of fewer than 100, for each arm and target."""
    total = max(row.iteration for row in rows)
    window = min(total, 50 if total >= 100 else 10)
    lines = [(arm, *_control_cells(mine, target, window)) for (arm, target), mine in _arms(rows).items()]
    heads = ("arm", "target", "audit", "off by", "track", "reward", "policy s", "pairs s")
    caption = f"last {window} of {total} iterations; seconds of their estimates"
    for (arm, target), mine in _arms(rows).items():
        if target is not None and mine[-1].local_audit is not None:
            ends = [[row.local_audit or 0.0 for row in run[-window:]] for run in _by_seed(mine)]
            off = mean(audit_error(end, target, last=window) for end in ends)
            caption += f"; what {arm} holds at {target:g}: {mean(map(mean, ends)):.4f}, {off:.2%} off"
    return table(heads, lines, caption=caption)


def _control_cells(rows: Sequence[Row], target: float | None, window: int) -> tuple[str, ...]:
    seeds = _by_seed(rows)
    end = [row for run in seeds for row in run[-window:]]
    wanted, errors = "-", ("-", "-")
    if target is not None:
        audits = mean(audit_error([row.audit or 0.0 for row in run], target, last=window) for run in seeds)
        tracked = mean(tracking_error([row.applied or 0.0 for row in run], target, last=window) for run in seeds)
        wanted, errors = f"{target:g}", (f"{audits:.2%}", f"{tracked:.2%}")
    audit, reward = (f"{mean(getattr(row, name) for row in end):.4f}" for name in ("audit", "reward"))
    costs = (f"{mean(getattr(row, name) for row in end):.2f}" for name in ("policy_seconds", "distance_seconds"))
    return (wanted, audit, *errors, reward, *costs)
