"""Tables and lines of training: results with and without a controller, and progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, mean
from typing import TYPE_CHECKING, Any

from graphsnd.analysis import level_curve
from graphsnd.analysis.levels import LevelCurve
from graphsnd.control import audit_error, tracking_error
from graphsnd.plots.tables import format_duration, table

if TYPE_CHECKING:
    from rich.table import Table

Row = Any  # of a log, with the columns of metrics.csv as attributes
Stack = Any  # of a grid, with name, task, done, state and error
SHOWN = 20  # stacks in a table


def training_table(rows: Sequence[Row]) -> Table:
    """Return first and last reward, share solved in rollouts, and the last diversity measured, for each seed."""
    lines = []
    for mine in sorted(_by_seed(rows), key=lambda run: run[0].seed):
        last = mine[-1]
        diversity = ([row.snd for row in mine], [row.graph_snd for row in mine])
        measured = [next((f"{v:.4f}" for v in reversed(values) if v is not None), "-") for values in diversity]
        solved = "-" if last.solved is None else f"{last.solved:.0%}"
        rewards = (f"{mine[0].reward:+.4f}", f"{last.reward:+.4f}")
        lines.append((str(last.seed), str(last.iteration), *rewards, solved, *measured))
    heads = ("seed", "iterations", "first reward", "last reward", "solved", "SND", "Graph-SND")
    return table(heads, lines, caption="solved: in rollouts")


def grid_table(stacks: Sequence[Stack], seconds: float, before: int = 0) -> Table:
    """Return the progress of a grid: a row for each stack that runs or failed, and one line for the rest.

    Args:
        stacks: Stacks, as :func:`~graphsnd.rl.train_grid` reports them.
        seconds: Seconds since the training began.
        before: Iterations that were done at that time.
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
        held = [row for row in rows if row.target is not None]
        for name in ("audit_error", "tracking_error") if held else ():
            parts.append(f"{name.replace('_', ' ')} {fmean(getattr(row, name) for row in held):.1%}")
        for name in ("saturated", "zero", "empty", "invalid"):
            if count := sum(getattr(row, name) or 0 for row in rows):
                parts.append(f"{name} {count}")
        rate = frames / (rows[0].rollout_seconds + rows[0].update_seconds)
        return "  ".join([*parts, f"{rate:,.0f} frames/s"])

    return describe


def training_curves(rows: Sequence[Row]) -> dict[str, LevelCurve]:
    """Return reward against audited SND at the end of training, for each design; none where nothing is to compare.

    What is homogeneous or unconstrained is the same for all designs. Levels that were sought are left out.
    """
    window, ends = _window(rows), dict[tuple[str, float | None], list[list[float]]]()
    for key, mine in by_arm(rows).items():
        runs = [run[-window:] for run in _by_seed(mine)]
        ends[key] = [[mean(getattr(row, name) for row in run) for run in runs] for name in ("reward", "audit")]
    words = {0.0: ends.get(("homogeneous", None)), None: ends.get(("unconstrained", None))}
    curves = {}
    for design in dict.fromkeys(arm for arm, target in ends if target is not None) or ("",):
        held = sorted((target, found) for (arm, target), found in ends.items() if arm == design and target is not None)
        levels = {level: found for level, found in ((0.0, words[0.0]), *held, (None, words[None])) if found}
        several = any(len(rewards) > 1 for rewards, _ in levels.values())
        if len(levels) > 1 and {0.0, None} & levels.keys() and several:
            rewards, audits = zip(*levels.values(), strict=True)
            curves[design] = level_curve(levels, rewards, audits)
    return curves


def _window(rows: Sequence[Row]) -> int:
    """Return how many of the last iterations count: 50, or 10 of fewer than 100."""
    total: int = max(row.iteration for row in rows)
    return min(total, 50 if total >= 100 else 10)


def control_table(rows: Sequence[Row]) -> Table:
    """Return means over seeds of the last 50 iterations, or 10 of fewer than 100, for each arm and target."""
    total, window = max(row.iteration for row in rows), _window(rows)
    lines = [(arm, *_control_cells(mine, target, window)) for (arm, target), mine in by_arm(rows).items()]
    heads = ("arm", "target", "audit", "off by", "track", "reward", "policy s", "pairs s")
    caption = f"last {window} of {total} iterations; seconds of their estimates"
    for (arm, target), mine in by_arm(rows).items():
        if target is not None and mine[-1].local_audit is not None:
            ends = [[row.local_audit or 0.0 for row in run[-window:]] for run in _by_seed(mine)]
            off = mean(audit_error(end, target, last=window) for end in ends)
            caption += f"; what {arm} holds at {target:g}: {mean(map(mean, ends)):.4f}, {off:.2%} off"
    return table(heads, lines, caption=caption)


def _control_cells(rows: Sequence[Row], target: float | None, window: int) -> tuple[str, ...]:
    seeds = _by_seed(rows)
    end = [row for run in seeds for row in run[-window:]]
    wanted, errors = "-" if rows[-1].level is None else f"{mean(row.level for row in end):.3g}", ("-", "-")
    if target is not None:
        audits = mean(audit_error([row.audit or 0.0 for row in run], target, last=window) for run in seeds)
        tracked = mean(tracking_error([row.applied or 0.0 for row in run], target, last=window) for run in seeds)
        wanted, errors = f"{target:g}", (f"{audits:.2%}", f"{tracked:.2%}")
    audit, reward = (f"{mean(getattr(row, name) for row in end):.4f}" for name in ("audit", "reward"))
    costs = (f"{mean(getattr(row, name) for row in end):.2f}" for name in ("policy_seconds", "distance_seconds"))
    return (wanted, audit, *errors, reward, *costs)


def by_arm(rows: Sequence[Row]) -> dict[tuple[str, float | None], list[Row]]:
    """Return the rows of each arm and target, in the order of the rows."""
    arms: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        arms.setdefault((row.arm or "", row.target), []).append(row)
    return arms


def _by_seed(rows: Sequence[Row]) -> list[list[Row]]:
    return [[row for row in rows if row.seed == seed] for seed in dict.fromkeys(row.seed for row in rows)]
