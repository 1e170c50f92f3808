"""The author's public logs, reduced to the numbers that claims name, so that the same rules can be asked about them.

``python -m paper published CLONE`` reads the tables of a clone of the public repository and writes
``results/published.json``: numbers only, with the commit and the file of each. No file of the repository is copied.
Times get intervals as ours do, as far as the logs tell their noise.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from scipy import stats

from graphsnd.errors import InputError
from graphsnd.files import read_json, write_whole
from graphsnd.rl.log import Row
from paper import dico_50, timing
from paper.control.logs import group_by, split_runs
from paper.control.study import REFERENCE, Study, make_curves, summarise_run
from paper.experiment import Number, Scale
from paper.rows import decode
from paper.shared.stopwatch import speedup
from paper.store import RESULTS, as_dict

PATH = RESULTS / "published.json"
ARMS = {"bern": dico_50.BERNOULLI, "full": REFERENCE}
LOGS = "ControllingBehavioralDiversity-fork/results/neurips_final_n50_setpoint_sweep"
TRIALS = 20  # of a timing, as the paper says
Table = list[dict[str, str]]


@dataclass(frozen=True)
class PublishedNumber:
    """One number of the author's logs."""

    experiment: str
    name: str  # a field of that experiment's numbers
    number: Number
    file: str  # in the public repository


@dataclass(frozen=True)
class Published:
    """All of them."""

    repository: str
    commit: str
    numbers: tuple[PublishedNumber, ...]

    def find(self, experiment: str, name: str) -> PublishedNumber | None:
        """Return a number, None where the logs do not hold it."""
        return next((one for one in self.numbers if (one.experiment, one.name) == (experiment, name)), None)


def read_published(path: Path = PATH) -> Published | None:
    """Return what :func:`write_published` wrote; None where it was not run."""
    return cast(Published, decode(Published, read_json(path, path.name))) if path.is_file() else None


def write_published(clone: Path, path: Path = PATH) -> Published:
    """Reduce the logs of a clone and write the numbers.

    Raises:
        InputError: When it is no clone, or lacks a table.
    """
    origin = _git(clone, "config", "--get", "remote.origin.url", missing="").strip()
    commit = _git(clone, "rev-parse", "HEAD").strip()
    found = Published(origin or "github:shawnray-research/Graph-SND", commit, tuple(reduce_logs(clone)))
    write_whole(path, json.dumps(found, indent=1, default=as_dict) + "\n")
    return found


def reduce_logs(clone: Path) -> Iterator[PublishedNumber]:
    """Yield every number that the logs hold."""
    for experiment, file, reduce in (
        ("recovery", "results/exp1/recovery.csv", _recovery),
        ("unbiasedness", "results/exp1/unbiasedness.csv", _unbiasedness),
        ("concentration", "results/exp1/concentration.csv", _concentration),
        ("training", "results/scaling/n100_overnight_snd_log.csv", _training),
        ("timing", "results/exp1/timing.csv", _cpu_timing),
        ("timing", "results/exp2/timing_n100_250_500.csv", _gpu_timing),
        ("expanders", "results/exp3/expander_distortion.csv", _expanders),
        ("theory", "results/exp3/expander_distortion.csv", _theory),
        ("dico-50", "results/dico_n50_posthoc_full_snd/n50_posthoc_full_snd_per_cell.csv", _audits),
    ):
        table = list(csv.DictReader(io.StringIO(_git(clone, "show", f"HEAD:{file}"))))
        for name, number in reduce(table).items():
            yield PublishedNumber(experiment, name, number, file)
    file = "results/dico_expander_move1/summary.json"
    arms = json.loads(_git(clone, "show", f"HEAD:{file}"))["n10"]["variants"]
    for name, number in _ten_agents(arms).items():
        yield PublishedNumber("dico-10", name, number, file)
    for name, number in _control(clone).items():
        yield PublishedNumber("dico-50", name, number, f"{LOGS}/")


def _git(clone: Path, *arguments: str, missing: str | None = None) -> str:
    done = subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, text=True)
    if done.returncode and missing is None:
        raise InputError("CLONE", "to be a clone of the public repository", f"{clone}: {done.stderr.strip()}")
    return done.stdout or (missing or "")


def _column(table: Table, name: str) -> list[float]:
    return [float(row[name]) for row in table]


def _ten_agents(arms: dict[str, dict[str, float]]) -> dict[str, Number]:
    """Rewards get Welch's interval of two means of three seeds: the file has no single seeds, to be paired as ours."""
    full, sparse = arms["full"], {"knn": arms["knn"], "bernoulli": arms["bern"], "regular": arms["expander"]}
    tracking, time, reward = "tracking_rel_err_pct_mean", "metric_time_ms_median_of_late", "reward_late_mean"
    found = {
        "largest_tracking_error": Number.range([arm[tracking] / 100 for arm in sparse.values()], "arms"),
        "loop_metric_speedup": Number(
            min(full[time] / arm[time] for arm in sparse.values()), unit="x", kind="smallest of 3 arms", clock=True
        ),
    }
    for name, arm in (sparse | {"unconstrained": arms["ippo"]}).items():
        ours, theirs = arm["reward_late_sem"] ** 2, full["reward_late_sem"] ** 2
        half = stats.t.ppf(0.975, 2 * (ours + theirs) ** 2 / (ours**2 + theirs**2)) * math.sqrt(ours + theirs)
        found[f"reward_difference_{name}"] = Number.around(arm[reward] - full[reward], float(half), "Welch, 95%")
    return found


def _recovery(table: Table) -> dict[str, Number]:
    first, last = _column(table, "SND_full")
    errors = _column(table, "abs_err_D_path") + _column(table, "abs_err_direct_path")
    return {"largest_error": Number(max(errors)), "snd_growth": Number(last / first, unit="x")}


def _unbiasedness(table: Table) -> dict[str, Number]:
    z = [abs(value) for value in _column(table, "bias_over_se")]
    variance = {(row["iter_tag"], row["p"]): float(row["p"]) * float(row["HT_std"]) ** 2 for row in table}
    ratios = [variance[tag, "0.75"] / variance[tag, "0.1"] for tag in ("iter0", "iter100")]
    return {
        "covering_cells": Number(sum(value <= 1.96 for value in z)),
        "largest_z": Number.range(z),
        "variance_times_p_ratio": Number.range(ratios, "checkpoints", pick=statistics.fmean),
    }


def _concentration(table: Table) -> dict[str, Number]:
    teams = group_by(table, lambda row: row["iter_tag"]).values()
    slopes = {adjusted: [_slope(team, adjusted=adjusted) for team in teams] for adjusted in (False, True)}
    over = [float(row["p95_abs_err"]) / float(row["serfling_t"]) for row in table]
    return {
        "hoeffding_violation": Number(max(_column(table, "empirical_tail_hoeff"))),
        "serfling_violation": Number(max(_column(table, "empirical_tail_serfl"))),
        "empirical_slope": Number.range(slopes[False], "teams", pick=statistics.fmean),
        "adjusted_slope": Number.range(slopes[True], "teams", pick=statistics.fmean),
        "empirical_over_serfling": Number.range(over),
    }


def _slope(team: Table, *, adjusted: bool) -> float:
    x = [math.log(m) for m in _column(team, "m")]
    y = [math.log(error) for error in _column(team, "p95_abs_err")]
    if adjusted:
        y = [value - math.log(1 - share) / 2 for value, share in zip(y, _column(team, "m_frac"), strict=True)]
    return statistics.linear_regression(x, y).slope


def _training(table: Table) -> dict[str, Number]:
    full, sampled = _column(table, "SND_full"), _column(table, "GraphSND_p")
    gaps = [abs(a / b - 1) for a, b in zip(sampled, full, strict=True)]
    return {
        "largest_gap": Number(max(gaps), kind=f"largest of {len(gaps)}"),
        "curve_correlation": Number(statistics.correlation(full, sampled), kind="one seed"),
        "snd_growth": Number(full[-1] / full[0], unit="x", kind="one seed"),
        "loop_speedup": speedup(_column(table, "t_full_ms"), _column(table, "t_sample_ms"), medians=True),
        "final_snd_own_observations": Number(full[-1], kind="one seed"),
    }


def _time(row: dict[str, str], call: str) -> tuple[float, float]:
    """Return the mean time of a call and its relative variance, from the spread of its trials."""
    mean, deviation = (float(row[f"{call}_time_{what}"]) for what in ("mean", "std"))
    return mean, (deviation / mean) ** 2 / TRIALS


def _over(above: tuple[float, float], below: tuple[float, float] = (1.0, 0.0), unit: str = "x") -> Number:
    """Return the ratio of two mean times with its interval; the logs have no single trials, to make blocks as ours."""
    value, reach = above[0] / below[0], float(stats.t.ppf(0.975, TRIALS - 1)) * math.sqrt(above[1] + below[1])
    kind = f"95% t interval, {TRIALS} trials"
    return Number(value, value * math.exp(-reach), value * math.exp(reach), unit, kind, clock=True)


def _cpu_timing(table: Table) -> dict[str, Number]:
    sizes = group_by(table, lambda row: row["n"]).values()  # each by p, from 0.1 to 1
    tenth, whole = ([_over(_time(rows[at], "full"), _time(rows[at], "sample")) for rows in sizes] for at in (0, -1))
    sampled = [[_time(row, "sample") for row in rows] for rows in sizes]
    steps = [_over(before, after) for times in sampled for before, after in itertools.pairwise(times)]
    return {
        "cpu_loop_speedup_p01": Number.timed(tenth, "sizes", pick=statistics.median),
        "cpu_loop_speedup_p01_least": Number.timed_range(tenth, "sizes", pick=min),
        "cpu_loop_speedup_p1": Number.timed(whole, "sizes", pick=statistics.fmean),
        "cpu_loop_step_ratio": Number.timed(steps, "steps", pick=max),
    }


def _gpu_timing(table: Table) -> dict[str, Number]:
    law = [timing.law_error(_over(_time(row, "full"), _time(row, "sample")), float(row["p"])) for row in table]
    tenth = [row for row in table if row["p"] == "0.1"]  # by n: 100, 250, 500
    x, y = ([math.log(value) for value in _column(tenth, name)] for name in ("n_pairs", "full_time_mean"))
    full, sampled = (_time(tenth[-1], call) for call in ("full", "sample"))
    return {
        "gpu_loop_law_error": Number.timed(law, "cells", pick=max),
        "gpu_loop_exponent": Number(statistics.linear_regression(x, y).slope, clock=True),
        "gpu_loop_speedup_n500": _over(full, sampled),
        "gpu_loop_seconds_n500": _over(full, unit="s"),
        "gpu_sampled_seconds_n500": _over(sampled, unit="s"),
    }


def _expanders(table: Table) -> dict[str, Number]:
    fresh, trained = (_of(table, data_source=source) for source in ("synthetic", "checkpoint"))
    cells = group_by(fresh, lambda row: (int(row["n"]), int(row["d"])))
    degrees = group_by(trained, lambda row: int(row["d"]))
    wins, trained_wins = (sum(map(_tightest, groups.values())) for groups in (cells, degrees))
    knn = [float(row["num_edges"]) / (int(row["n"]) * int(row["d"]) / 2) for row in _of(fresh, graph_family="knn")]
    regular = (_of(rows, n="100", graph_family="random_regular") for rows in (trained, fresh))
    after, before = (_rms(_column(rows, "abs_distortion")) for rows in regular)
    return {
        "own_observation_ratio_deviation": _deviation(fresh),
        "trained_ratio_deviation": _deviation(trained),
        "regular_tightest_share": Number(wins / len(cells), kind=f"{wins} of {len(cells)} sizes and degrees"),
        "trained_tightest_degrees": Number(trained_wins, kind=f"of {len(degrees)} degrees"),
        "trained_over_synthetic_difference": Number(after / before, unit="x"),
        "knn_edges_over_matched": Number.range(knn, "graphs", unit="x"),
        **_indices(cells),
        **_spectral(cells),
    }


def _of(table: Table, **where: str) -> Table:
    return [row for row in table if all(row[key] == value for key, value in where.items())]


def _deviation(table: Table) -> Number:
    ratios = _column(_of(table, graph_family="random_regular"), "ratio_reciprocal")  # Graph-SND / SND
    kind = f"largest of {len(ratios)} graphs; ratios {min(ratios):.4f} to {max(ratios):.4f}"
    return Number(max(abs(ratio - 1) for ratio in ratios), kind=kind)


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(statistics.fmean(value**2 for value in values))


def _spread(table: Table) -> float:
    return _rms([ratio - 1 for ratio in _column(table, "ratio_reciprocal")])


def _tightest(cell: Table) -> bool:
    families = group_by(cell, lambda row: row["graph_family"])
    spread = {name: _spread(rows) for name, rows in families.items()}
    return min(spread, key=spread.__getitem__) == "random_regular"


def _indices(cells: dict[tuple[int, int], Table]) -> dict[str, Number]:
    scaled, ratios = [], []
    for (n, d), rows in cells.items():
        families = group_by(rows, lambda row: row["graph_family"])
        medians = {name: statistics.median(_column(mine, "pi_G")) for name, mine in families.items()}
        regular = medians.pop("random_regular")
        scaled.append(regular * d / (n * math.log2(n)))
        ratios += [(value / regular, f"{name}, d = {d}") for name, value in medians.items()] if n == 500 else []
    kind = "equal splits over ordered pairs"
    least, most = (Number(pick(ratios)[0], unit="x", kind=f"{kind}; {pick(ratios)[1]}") for pick in (min, max))
    return {
        "forwarding_scaled_spread": Number(max(scaled) / min(scaled), unit="x", kind=kind),
        "baseline_over_regular_smallest_n500": least,
        "baseline_over_regular_largest_n500": most,
    }


def _spectral(cells: dict[tuple[int, int], Table]) -> dict[str, Number]:
    regular = {cell: _of(rows, graph_family="random_regular") for cell, rows in cells.items()}
    ends = regular[50, 6], regular[500, 9]
    rho = [statistics.median(_column(rows, "D_nuclear_over_n_snd")) for rows in ends]
    bound = [statistics.median(_column(rows, "spectral_rel_bound")) for rows in ends]
    over = [statistics.median(_column(rows, "spectral_rel_bound")) / _spread(rows) for rows in regular.values()]
    return {
        "rho_growth": Number(rho[1] / rho[0]),
        "spectral_bound_growth": Number(bound[1] / bound[0]),
        "spectral_over_observed": Number.range(over, "sizes and degrees", pick=statistics.median, unit="x"),
    }


def _theory(table: Table) -> dict[str, Number]:
    rows = _of(table, graph_family="random_regular", data_source="synthetic")
    flags = [row["is_ramanujan"] == "True" for row in rows]
    vacuous = [bound >= 1 for bound in _column(rows, "spectral_rel_bound")]
    kind = f"of {len(rows)} random regular graphs, signed second eigenvalue"
    return {
        "ramanujan_share": Number(statistics.fmean(flags), kind=f"{sum(flags)} {kind}"),
        "spectral_vacuous": Number(statistics.fmean(vacuous), kind=f"{sum(vacuous)} {kind}"),
    }


def _audits(table: Table) -> dict[str, Number]:
    cells = group_by(table, lambda row: (ARMS[row["estimator"]], float(row["snd_des"])))
    apart = [statistics.fmean(_column(rows, "posthoc_minus_applied")) for rows in cells.values()]
    numbers = {
        "largest_audit_minus_applied": Number.range([abs(value) for value in apart]),
        "smallest_audit_minus_applied": Number.range(apart, pick=min),
    }
    for arm, name in dico_50.NAMES.items():
        mine = [rows for (one, _), rows in cells.items() if one == arm]
        errors = [statistics.fmean(_column(rows, "posthoc_full_snd_err_rel")) for rows in mine]
        numbers[f"largest_audit_error_{name}"] = Number.range(errors, "targets, 3 seeds")
    return numbers


def _control(clone: Path) -> dict[str, Number]:
    """Reduce the logs of the eighteen runs with the code that reduces ours."""
    task, window = dico_50.SIZES[Scale.PAPER].task, dico_50.SIZES[Scale.PAPER].window
    rows, times = [], []
    for target, seed, (short, arm) in itertools.product(dico_50.TARGETS, task.seeds, ARMS.items()):
        path = f"{LOGS}/seed{seed}/snd{target:g}/{short}/graph_snd_log.csv".replace("snd0.", "snd0p")
        table = list(csv.DictReader(io.StringIO(_git(clone, "show", f"HEAD:{path}"))))
        rows += [_row(line, arm, target, seed) for line in table]
        times.append((arm, target, statistics.median(_column(table, "metric_time_ms"))))
    histories = split_runs(rows)
    runs = tuple(summarise_run(history, window) for history in histories)
    curves = tuple(make_curves(histories))
    study = Study(task.agents or 0, task.settings.iterations, window, len(runs), (), runs, (), {}, curves)
    numbers = dico_50.compare_arms(study)
    # The logs have no audits, and the paper's values of Table 7 are their own.
    for name in [name for name in numbers if "audit" in name or name == "applied_largest_z"]:
        del numbers[name]
    medians = group_by(times, lambda one: one[:2])
    ms = {key: statistics.median(one[2] for one in mine) for key, mine in medians.items()}
    ratios = [ms[REFERENCE, target] / ms[dico_50.BERNOULLI, target] for target in dico_50.TARGETS]
    apart = Number.range(ratios, "targets", pick=statistics.median, unit="x")
    numbers["loop_metric_speedup"] = replace(apart, clock=True)
    starts = dico_50.compare_starts(runs)
    return numbers if starts is None else numbers | {"rollout_difference": starts}


def _row(line: dict[str, str], arm: str, target: float, seed: int) -> Row:
    applied = float(line["applied_snd"])
    return Row(
        iteration=int(line["iter"]) + 1, arm=arm, target=target, seed=seed, reward=float(line["reward_mean"]),
        applied=applied, audit=applied, value_loss=0, rollout_seconds=0, policy_seconds=0, distance_seconds=0,
        update_seconds=0, audit_seconds=0,
    )  # fmt: skip
