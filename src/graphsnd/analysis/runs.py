"""Runs as other programs log them: curves of named numbers, one run for each seed."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from graphsnd.analysis.comparing import Array, RunsComparison, compare_runs
from graphsnd.arguments import checked
from graphsnd.errors import InputError, check_number
from graphsnd.files import parse_json

METRICS = "metrics.csv"  # of graphsnd train and control
LAST = 0.1  # of the steps: the final value of a run is its mean over them
FINISHED = 0.9  # of the steps of the longest run of an algorithm: one that ends before has stopped early
# What to take for reward and for diversity, the first that all runs have.
MEANS = [f"{phase}_reward_episode_reward_mean" for phase in ("eval", "collection")]
REWARD = ["reward", *MEANS, "return", "*reward*mean", "*reward*", "*return*"]
DIVERSITY = ["snd", "audit", "diversity_total_snd", "*[_/]snd", "*snd*", "*diversity*"]
WANDB = re.compile(r"(.+) - (.+?)(__MIN|__MAX)?$")  # a column of an exported chart: "run - metric"
TENSORBOARD = re.compile(r"(?:run-)?(.+?)-tag-(.+)$")  # the name of a downloaded file: "run-<run>-tag-<metric>.csv"
COUNTS = ("iteration", "Step", "seed", "target", "arm")  # columns that are no metric
# First columns, in any case, of a chart or a CSV of one's own.
STEPS = ("step", "global_step", "iteration", "epoch", "frames", "timestep", "timesteps")


@dataclass(frozen=True, eq=False)
class LoggedRun:
    """One seed of one algorithm on one task.

    Example:
        >>> run = LoggedRun("0", curves={"reward": {1.0: 0.2, 2.0: 0.6}})  # as read_runs returns them
        >>> run.curves["reward"][2.0]
        0.6
    """

    seed: str  # as the log writes it
    task: str = ""  # where the log names one
    arm: str = ""  # where one log holds several algorithms
    curves: dict[str, dict[float, float]] = field(default_factory=dict)  # value by step, by metric


@checked
def read_runs(path: Path) -> list[LoggedRun]:
    r"""Read the runs in a folder or file, whichever program wrote it.

    Known are ``metrics.csv`` of ``graphsnd train`` and ``control``; BenchMARL's folders (``scalars/*.csv`` of its CSV
    logger, and its JSON); charts exported from Weights & Biases (``Step``, ``<run> - <metric>``); and files downloaded
    from TensorBoard (``Wall time,Step,Value``, named ``run-<run>-tag-<metric>.csv``); and a CSV of your own for each
    run, a step first and then metrics (``step,snd,reward``), or for all with a column ``seed``. Seeds are where those
    say so, or ``seed`` and a number in the name of the run or of its folder, or the place of the run.

    Args:
        path: A file, or a folder with any number of runs somewhere below.

    Raises:
        InputError: Where there is no run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "chart.csv"  # exported from Weights & Biases
        ...     _ = path.write_text("Step,ippo_seed3 - reward\n1,0.2\n2,0.6\n")
        ...     read_runs(path)
        [LoggedRun(seed='3', task='', arm='', curves={'reward': {1.0: 0.2, 2.0: 0.6}})]
    """
    path = path / METRICS if (path / METRICS).is_file() else path
    files = [path] if path.is_file() else sorted(path.rglob("*.csv")) + sorted(path.rglob("*.json"))
    runs: dict[tuple[str, str], LoggedRun] = {}
    for file in files:
        for key, run in _read_file(file):
            known = runs.setdefault((key, run.arm), replace(run, curves={}))
            known.curves.update({name: curve for name, curve in run.curves.items() if curve})
    logged = [run for run in runs.values() if run.curves]
    if not logged:
        fix = "Give folders of graphsnd train, of BenchMARL (csv logger), CSV files from W&B or TensorBoard, whose "
        fix += "event files are not read, or a CSV of your own for each run: step,snd,reward."
        raise InputError("PATH", "to hold runs", repr(str(path)), fix)
    return [replace(run, seed=run.seed or f"#{place}") for place, run in enumerate(logged)]


def _read_file(path: Path) -> Iterable[tuple[str, LoggedRun]]:
    """Yield the runs of a file, each with a key that files of the same run share."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InputError("PATH", "to be readable as text", repr(str(path))) from None
    if path.suffix == ".json":
        return _read_benchmarl(path, text)
    rows = list(csv.reader(text.splitlines()))
    if path.parent.name == "scalars" and rows and len(rows[0]) == 2:
        seed, task = _find_benchmarl_run(path.parents[1])
        curve = _curve((row[0], row[1]) for row in rows if len(row) == 2)
        return [(str(path.parents[1]), LoggedRun(seed, task, curves={path.stem: curve}))]
    head, body = (rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]) if rows else ([], [])
    if head == ["Wall time", "Step", "Value"]:
        match = TENSORBOARD.fullmatch(path.stem)
        name, metric = match.groups() if match else (path.stem, "value")
        curve = _curve((row[1], row[2]) for row in body)
        return [(f"{path.parent}/{name}", LoggedRun(_seed_in(name), curves={metric: curve}))]
    if path.name == METRICS and {"iteration", "seed"} <= set(head):
        return _read_columns(path, head, body)
    if head and head[0].lower() in STEPS:
        charted = _read_wandb(path, head, body)
        if charted and (head[0] == "Step" or all(map(WANDB.fullmatch, head[1:]))):
            return charted
        if "seed" in head:
            return _read_columns(path, ["iteration", *head[1:]], body)
        curves = {name: _curve((row[0], row[place]) for row in body) for place, name in enumerate(head) if place}
        return [(str(path), LoggedRun(_seed_in(f"{path.parent.name}/{path.stem}"), curves=curves))]
    return []


def _read_columns(path: Path, head: list[str], body: list[list[str]]) -> list[tuple[str, LoggedRun]]:
    """Return the runs of our own log, which has a row for each iteration and run."""
    runs: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in (dict(zip(head, cells, strict=True)) for cells in body):
        arm = row.get("arm", "") + (f" at {_shorten(row['target'])}" if row.get("target") else "")
        runs.setdefault((arm.strip(), row["seed"]), []).append(row)
    return [
        (f"{path}/{seed}", LoggedRun(seed, "", arm, {
            name: _curve((row["iteration"], row[name]) for row in rows) for name in head if name not in COUNTS
        }))
        for (arm, seed), rows in runs.items()
    ]  # fmt: skip


def _shorten(target: str) -> str:
    try:
        return f"{float(target):g}"
    except ValueError:
        return target  # a label


def _read_wandb(path: Path, head: list[str], body: list[list[str]]) -> list[tuple[str, LoggedRun]]:
    runs = []
    for place, match in ((place, WANDB.fullmatch(name)) for place, name in enumerate(head)):
        if match is not None and match[3] is None:
            curve = _curve((row[0], row[place]) for row in body)
            runs.append((f"{path.parent}/{match[1]}", LoggedRun(_seed_in(match[1]), curves={match[2]: curve})))
    return runs


def _read_benchmarl(path: Path, text: str) -> list[tuple[str, LoggedRun]]:
    """Return the runs of BenchMARL's JSON, which is marl-eval's: environment, task, algorithm, seed, step, values."""
    try:
        levels: Any = parse_json(text)
        runs = [
            (f"{environment}/{task}", algorithm, seed, steps)
            for environment, tasks in levels.items()
            for task, algorithms in tasks.items()
            for algorithm, by_seed in algorithms.items()
            for seed, steps in by_seed.items()
            if str(seed).startswith("seed_")
        ]
    except (ValueError, AttributeError):
        return []  # some other JSON
    logged, several = [], len({algorithm for _, algorithm, _, _ in runs}) > 1  # in a file of merged runs
    for task, algorithm, seed, steps in runs:
        try:
            points = [step for name, step in steps.items() if name.startswith("step_")]
            names = {name for step in points for name in step if name != "step_count"}
            curves = {n: _curve((s["step_count"], np.mean(s[n])) for s in points if n in s) for n in sorted(names)}
        except (ValueError, AttributeError, KeyError, TypeError):
            raise InputError("PATH", "with a step_count and numbers in each step", f"{str(path)!r}, {seed}") from None
        # Beside the JSON of one run, in a folder of the same name, lie the files of the CSV logger.
        key = str(path.parent / path.stem) + f"/{task}/{seed}" * (len(runs) > 1)
        logged.append((key, LoggedRun(seed.removeprefix("seed_"), task, algorithm if several else "", curves)))
    return logged


def _find_benchmarl_run(folder: Path) -> tuple[str, str]:
    """Return seed and task of a run from the settings that BenchMARL logs beside its numbers."""
    settings = sorted((folder / "texts").glob("hparams*.txt"))
    text = settings[0].read_text(encoding="utf-8", errors="replace") if settings else ""
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    parts = [lines[name] for name in ("environment_name", "task_name") if name in lines]
    return lines.get("seed", _seed_in(str(folder))), "/".join(parts)


def _seed_in(name: str) -> str:
    match = re.search(r"seed[-_ =]*(\d+)", name, re.IGNORECASE)
    return match[1] if match else ""


def _curve(points: Iterable[tuple[Any, Any]]) -> dict[float, float]:
    """Return the finite points; what is empty or NaN was not measured."""
    curve = {}
    for step, value in points:
        try:
            at, height = float(step), float(value)
        except ValueError:
            continue
        if np.isfinite(at) and np.isfinite(height):
            curve[at] = height
    return curve


@dataclass(frozen=True, eq=False)
class MetricComparison:
    r"""One metric of several algorithms.

    Example:
        >>> import tempfile
        >>> rows = [f"{step},{seed},{step + seed}" for seed in range(6) for step in range(1, 4)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("ippo", "dico"):
        ...         (Path(folder) / name).mkdir()
        ...         _ = (Path(folder) / name / "metrics.csv").write_text("\n".join(["iteration,seed,reward", *rows]))
        ...     reward = compare_folders({name: Path(folder) / name for name in ("ippo", "dico")})["reward"]
        >>> reward.metric, reward.curves["ippo"].shape, reward.final.differences["dico"].value
        ('reward', (6, 3), 0.0)
    """

    metric: str  # as the logs call it
    steps: dict[str, Array]  # [steps], by algorithm
    curves: dict[str, Array]  # [runs, steps], by algorithm; NaN before the first and after the last step of a run
    final: RunsComparison  # of the final values of the runs
    tasks: list[str]  # that all algorithms have
    stopped: list[str]  # "ippo seed 5 ends at step 4 of 99", whose value counts as it is


@checked
def compare_folders(
    paths: Mapping[str, Path],
    *,
    reward: str | None = None,
    diversity: str | None = None,
    last: float = LAST,
    pair: bool = True,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, MetricComparison]:
    r"""Compare the algorithms whose runs lie in these folders or files.

    Args:
        paths: By the name of the algorithm, what :func:`read_runs` reads. A log of several arms is several algorithms.
        reward: Name of the metric; found by the usual names when None.
        diversity: The same.
        last: Part of the steps, from the end, over which a run's value is averaged.
        pair: Whether runs are compared seed by seed where all algorithms have the same seeds.
        confidence: Coverage of the intervals.
        seed: Of bootstrap and tests.

    Returns:
        By ``"reward"`` and ``"diversity"``, where all runs have one.

    Raises:
        InputError: Where there is no run, no metric that all runs have, or a metric that was named is not there.

    Example:
        >>> import tempfile
        >>> head, rows = "iteration,seed,reward", [f"1,{seed},{seed}.5" for seed in range(6)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("ippo", "dico"):
        ...         (Path(folder) / name).mkdir()
        ...         _ = (Path(folder) / name / "metrics.csv").write_text("\n".join([head, *rows]))
        ...     found = compare_folders({name: Path(folder) / name for name in ("ippo", "dico")})
        >>> found["reward"].final.scores["ippo"].value, found["reward"].final.differences["dico"].verdict
        (3.0, 'not shown, p = 1')
    """
    check_number("last", last, low=0, high=1)
    if not paths:
        raise InputError("paths", "of at least one algorithm", "none")
    groups: dict[str, list[LoggedRun]] = {}
    for label, path in paths.items():
        for run in read_runs(path):
            name = run.arm if run.arm and len(paths) == 1 else f"{label} {run.arm}".strip()
            groups.setdefault(name, []).append(run)
    every_run, comparisons = [run for runs in groups.values() for run in runs], {}
    for kind, named, usual in (("reward", reward, REWARD), ("diversity", diversity, DIVERSITY)):
        metric = choose_metric(every_run, [named.lower()] if named else usual)
        if metric is None and named:
            raise InputError(f"--{kind}", "to be a metric that all runs have", repr(named), _offer(every_run))
        if metric is not None:
            stacked = {label: _stack_curves(runs, metric) for label, runs in groups.items()}
            ends = {label: _final_values(runs, metric, last) for label, runs in groups.items()}
            values, tasks, shared = _align(ends)
            final = compare_runs(values, paired=pair and shared, confidence=confidence, seed=seed)
            steps, curves = ({label: part[at] for label, part in stacked.items()} for at in (0, 1))
            comparisons[kind] = MetricComparison(metric, steps, curves, final, tasks, _list_stopped(groups, metric))
    if not comparisons:
        raise InputError("PATH", "with a metric that all runs have", "none of the usual names", _offer(every_run))
    return comparisons


def _list_stopped(groups: Mapping[str, Sequence[LoggedRun]], metric: str) -> list[str]:
    """Return where runs end that do so before ``FINISHED`` of the longest of their algorithm on their task.

    Logs do not say what a step is, iterations or frames. So an algorithm that ends before the others as a whole is one
    entry, which leaves that open.
    """
    ends = [(f"{name} {run.task}".strip(), run, max(run.curves[metric])) for name in groups for run in groups[name]]
    own, longest = ({}, {})  # by algorithm and task, by task
    for name, run, end in sorted(ends, key=lambda each: each[2]):
        own[name] = longest[run.task] = end
    stopped = [
        f"{name} seed {run.seed} ends at step {end:,.12g} of {own[name]:,.12g}"
        for name, run, end in ends
        if end < FINISHED * own[name]
    ]
    return stopped + [
        f"{name} ends by step {own[name]:,.12g} of {longest[task]:,.12g}, unless it counts other steps"
        for name, task in {name: run.task for name, run, _ in ends}.items()
        if own[name] < FINISHED * longest[task]
    ]


def _offer(runs: Sequence[LoggedRun]) -> str:
    return f"All runs have: {', '.join(sorted(_shared_metrics(runs))[:12]) or 'nothing in common'}."


def _shared_metrics(runs: Sequence[LoggedRun]) -> list[str]:
    return [name for name in runs[0].curves if all(name in run.curves for run in runs)]


def choose_metric(runs: Sequence[LoggedRun], patterns: Sequence[str]) -> str | None:
    """Return the first metric that fits a pattern and that all runs have; None where there is none.

    Example:
        >>> choose_metric([LoggedRun("0", curves={"reward": {}, "train/snd": {}})], DIVERSITY)
        'train/snd'
    """
    shared = _shared_metrics(runs)
    return next((name for pattern in patterns for name in shared if fnmatchcase(name.lower(), pattern)), None)


def _stack_curves(runs: Sequence[LoggedRun], metric: str) -> tuple[Array, Array]:
    """Return steps ``[steps]`` and values ``[runs, steps]``, NaN before the first and after the last of a run.

    Runs that were logged at other steps are interpolated.
    """
    steps = np.array(sorted({step for run in runs for step in run.curves[metric]}))
    curves = [run.curves[metric] for run in runs]
    rows = [np.interp(steps, sorted(c), [c[s] for s in sorted(c)], left=np.nan, right=np.nan) for c in curves]
    return steps, np.array(rows)


def _final_values(runs: Sequence[LoggedRun], metric: str, last: float) -> dict[str, dict[str, float]]:
    """Return the final value of each run, by task and seed: the mean over its last steps, at least one.

    Raises:
        InputError: For two runs with the same task and seed.
    """
    values: dict[str, dict[str, float]] = {}
    for run in runs:
        curve = run.curves[metric]
        since = max(curve) - last * (max(curve) - min(curve))
        if run.seed in values.setdefault(run.task, {}):
            raise InputError("PATH", "with one run for each seed and task", f"seed {run.seed} twice")
        values[run.task][run.seed] = float(np.mean([value for step, value in curve.items() if step >= since]))
    return values


def _align(ends: Mapping[str, dict[str, dict[str, float]]]) -> tuple[dict[str, list[list[float]]], list[str], bool]:
    """Return the values of each algorithm task by task, in the order of seeds; the tasks; and whether seeds are shared.

    Only tasks that all algorithms have. Names of tasks do not matter where each algorithm has one.
    """
    if all(len(by_task) == 1 for by_task in ends.values()):
        ends = {name: {"": next(iter(by_task.values()))} for name, by_task in ends.items()}
    first = next(iter(ends.values()))
    tasks = [task for task in first if all(task in by_task for by_task in ends.values())]
    if not tasks:
        raise InputError("PATH", "with a task that all algorithms have", ", ".join(sorted(first)))
    seeds = [{frozenset(by_task[task]) for by_task in ends.values()} for task in tasks]
    paired = all(len(each) == 1 and not any(seed.startswith("#") for seed in next(iter(each))) for each in seeds)
    values = {
        name: [[by_task[task][seed] for seed in sorted(by_task[task], key=_by_number)] for task in tasks]
        for name, by_task in ends.items()
    }
    return values, tasks, paired


def _by_number(seed: str) -> tuple[float, str]:
    return (int(seed), "") if seed.isdigit() else (math.inf, seed)
