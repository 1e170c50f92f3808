"""The rules of ``RULES.md``: each question of the study, and its answer from the logs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from graphsnd.analysis.levels import Gain, LevelCurve
from graphsnd.control import audit_error
from graphsnd.plots.training_tables import training_curves
from graphsnd.rl.log import Row
from paper.beyond.tasks import ALL, LARGE, STUDIED, TENTH, Studied
from paper.control.logs import History, split_runs
from paper.control.study import pair

YES, NO, OPEN = "yes", "no", "open"
LAST = 50  # last iterations that are averaged, as in the library's curves
LAST_LARGE = 30
OFF = 0.02, 0.05  # relative audit error: accurate up to the first, inaccurate above the second
NEAR = 0.1  # negligible difference of rewards, as a share of the range of mean rewards over levels
Logs = Mapping[str, Sequence[Row]]  # log rows by name of the stack


@dataclass(frozen=True)
class Answer:
    """One question and what the logs say."""

    question: str
    answer: str  # yes, no or open
    what: str  # the numbers that decide it


def answer_all(logs: Logs) -> list[Answer]:
    """Return the answers to all questions whose stacks are complete, in the order of the rules."""
    found = []
    for name, studied in STUDIED.items():
        rows = [row for design in ("complete", "bernoulli") for row in logs.get(f"beyond/{name}/{design}", ())]
        if {row.arm for row in rows} >= {ALL, TENTH, studied.sought}:
            found += list(answer_task(name, studied, rows))
    longer = [row for name, rows in logs.items() if name.startswith("beyond/dispersion-600/") for row in rows]
    shorter = logs.get("beyond/dispersion/complete", ())
    if len({row.seed for row in longer}) > 1 and shorter:
        curves = [training_curves(rows)[ALL] for rows in (shorter, longer)]
        answer = YES if _outcome(curves[0]) == _outcome(curves[1]) else NO
        found.append(
            Answer("Is the verdict on dispersion the same with five times the frames?", answer, curves[1].verdict)
        )
    return found + [answer_large(name, logs[name]) for name in LARGE if name in logs]


def answer_task(name: str, studied: Studied, rows: Sequence[Row]) -> Iterator[Answer]:
    """Yield the answers to the questions about one task."""
    curves, runs = training_curves(rows), split_runs(rows)
    curve = curves[ALL]
    spread = max(curve.rewards) - min(curve.rewards)
    assert curve.over_shared is not None
    assert curve.gain is not None
    yield Answer(f"Does diversity pay in {name}?", _sign(curve.gain), curve.verdict)
    forced = curve.over_shared[curve.levels.index(studied.levels[-1])]
    less = Gain(-forced.value, -forced.high, -forced.low)
    yield Answer(
        f"Does an SND of {studied.levels[-1]:g} cost reward in {name}?", _sign(less), f"less level 0: {forced}"
    )
    if (free := curve.gain_over_unconstrained) is not None:
        yield Answer(f"Is a level better than no constraint in {name}?", _sign(free), f"best level: {free}")
    differences: dict[int, list[float]] = {}
    for level, seed in product(studied.levels, sorted({run.run.seed for run in runs})):
        tenth, full = (_end(_pick(runs, design, level, seed)) for design in (TENTH, ALL))
        differences.setdefault(seed, []).append(tenth - full)
    sampled = _student([statistics.fmean(each) for each in differences.values()])
    same = _near(sampled, spread)
    yield Answer(f"Does a tenth of the pairs leave the reward in {name} as it is?", same, f"{sampled}")
    held = [run for run in runs if run.run.target is not None]
    errors = [audit_error([row.audit or 0.0 for row in run.rows], run.run.target or 1.0, last=LAST) for run in held]
    accurate = YES if max(errors) <= OFF[0] else NO if max(errors) > OFF[1] else OPEN
    yield Answer(f"Is SND held at every level in {name}?", accurate, f"audits at most {max(errors):.1%} off")
    yield from _answer_seek(name, studied, curve, runs, spread)


def _answer_seek(
    name: str, studied: Studied, curve: LevelCurve, runs: Sequence[History], spread: float
) -> Iterator[Answer]:
    sought = sorted((run for run in runs if run.run.arm == studied.sought), key=lambda run: run.run.seed)
    arms = {0.0: "homogeneous", None: "unconstrained"}
    best = curve.levels[curve.best]
    others = [_pick(runs, arms.get(best, ALL), best or None, run.run.seed) for run in sought]
    late = _student([_end(run) - _end(other) for run, other in zip(sought, others, strict=True)])
    levels = ", ".join(f"{statistics.fmean(row.level or 0.0 for row in run.rows[-LAST:]):.2g}" for run in sought)
    at = "unconstrained" if best is None else f"{best:g}"
    what = f"less the best fixed level ({at}): {late}; levels {levels}"
    yield Answer(f"Does Seek end as high as the best fixed level in {name}?", _not_below(late, spread), what)
    whole = _student([
        statistics.fmean(row.reward for row in run.rows)
        - statistics.fmean(row.reward for row in _pick(runs, "unconstrained", None, run.run.seed).rows)
        for run in sought
    ])  # fmt: skip
    yield Answer(f"Is Seek better than no constraint over all frames in {name}?", _sign(whole), f"{whole}")


def answer_large(name: str, rows: Sequence[Row]) -> Answer:
    """Return whether larger teams are held at their target."""
    errors: dict[str, list[float]] = {}
    for run in split_runs(rows):
        error = audit_error([row.audit or 0.0 for row in run.rows], run.run.target or 1.0, last=LAST_LARGE)
        errors.setdefault(run.run.arm, []).append(error)
    worst = max(map(max, errors.values()))
    answer = YES if worst <= OFF[0] else NO if worst > OFF[1] else OPEN
    what = ", ".join(f"{arm} {max(values):.1%}" for arm, values in errors.items())
    return Answer(f"Is SND held with {name.rpartition('/')[2]} agents?", answer, f"audits at most off by: {what}")


def _pick(runs: Sequence[History], arm: str, target: float | None, seed: int) -> History:
    return next(each for each in runs if (each.run.arm, each.run.target, each.run.seed) == (arm, target, seed))


def _end(run: History) -> float:
    return statistics.fmean(row.reward for row in run.rows[-LAST:])


def _student(differences: Sequence[float]) -> Gain:
    found = pair(differences).interval
    assert found is not None
    return Gain(found.value, found.low or 0.0, found.high or 0.0)


def _sign(gain: Gain) -> str:
    return YES if gain.low > 0 else NO if gain.high < 0 else OPEN


def _near(difference: Gain, spread: float) -> str:
    """Return yes if the whole interval is near 0, no if none of it is, and open otherwise."""
    limit = NEAR * spread
    if -limit <= difference.low and difference.high <= limit:
        return YES
    return NO if difference.low > limit or difference.high < -limit else OPEN


def _not_below(difference: Gain, spread: float) -> str:
    limit = NEAR * spread
    return YES if difference.low >= -limit else NO if difference.high < -limit else OPEN


def _outcome(curve: LevelCurve) -> str:
    assert curve.gain is not None
    return _sign(curve.gain)
