"""Tables and sentences of README.md and docs are made again from the files they quote: text that drifts fails here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.share import crossing

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
CPU, GPU = "cpu-2-cores", "h200"
Line = tuple[str, str]  # page, and what it has to say


def load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def time(seconds: dict[str, Any]) -> str:
    """A median to three digits, microseconds to whole ones."""
    s = seconds["median_s"]
    value, unit = (s, "s") if s >= 1 else (1e3 * s, "ms") if s >= 1e-3 else (1e6 * s, "µs")
    return f"{value:,.{0 if unit == 'µs' else max(0, 2 - math.floor(math.log10(value)))}f} {unit}"


def speed() -> Iterator[Line]:
    for file, name in ((CPU, "2 CPU cores"), (GPU, "H200")):
        for found in (found for found in load(f"speed/{file}")["exact"] if found["n"] not in (4, 50)):
            loop, cdist, exact, *others = (time(found["contestants"][key]) for key in (
                "pair_loop", "cdist", "fused", "fused_backward", "sparse", "sparse_fresh",
            ))  # fmt: skip
            size, share = f"{found['n']:,}", f"{found['fraction_of_limit']:.0%}"
            line = row(name, size, f"{found['observations']:,}", loop, cdist, f"**{exact}**", *others, share)
            yield "docs/benchmarks.md", line
            if file == CPU and found["n"] >= 100:
                peers = (time(found["contestants"][key]) for key in ("keops", "cdist", "cdist_exact", "compiled"))
                yield "docs/benchmarks.md", row(size, f"{found['observations']:,}", f"**{exact}**", *peers)
            if found["n"] in {CPU: (100, 500), GPU: (500, 10_000)}[file]:
                yield (
                    "README.md",
                    row(f"{size} agents, {'CPU' if file == CPU else 'H200'}", f"**{exact}**", cdist, loop),
                )
            rounded = 1e3 * found["contestants"]["fused"]["median_s"]
            if (file, found["n"]) in ((CPU, 500), (GPU, 10_000)):
                yield "docs/estimation.md", f"observations take {rounded:.0f} ms on"
            if (file, found["n"]) == (CPU, 100):
                yield "docs/logging.md", f"distances take {rounded:.1f} ms on two CPU cores"


def calls() -> Iterator[Line]:
    found = load("calls/h200")
    rows = [one for one in found["calls"] if (one["n"], one["observations"]) == (500, 4096)]
    rows = [one for one in rows if "gradient" not in one["case"] and "jensen-shannon" not in one["case"]]
    rows.sort(key=lambda one: one["case"] != "wasserstein")
    times = [one["contestants"] for one in rows]
    yield "docs/benchmarks.md", row("graphsnd", *(f"{1e3 * one['queued']['median_s']:.2f} ms" for one in times))
    yield "docs/benchmarks.md", row("`torch.cdist`", *(time(one["cdist"]) if "cdist" in one else "-" for one in times))
    yield "docs/benchmarks.md", row("of the limit", *(f"{one['fraction_of_limit']:.0%}" for one in rows[:6]), "-")
    for one in found["sampled"]:
        over = one["over_snd"]
        exact = f"{1e3 * one['contestants']['snd']['median_s']:.3g} ms"
        graphs = (f"{over[name]:.2f}" for name in ("kept_graph", "new_graph"))
        yield "docs/benchmarks.md", row(f"{one['n']:,}", exact, *graphs)
    for one in load("calls/cpu")["sampled"]:
        over = one["over_snd"]
        exact = f"{1e3 * one['contestants']['snd']['median_s']:.3g} ms"
        calls = ("kept_graph_queued", "new_graph_queued", "measure", "bernoulli:0.1")
        yield (
            "docs/benchmarks.md",
            row(f"{one['n']:,}", one["features"], exact, *(f"{over[name]:.2f}" for name in calls)),
        )


def queues() -> Iterator[Line]:
    """Say which times of the README are means of several calls in a row."""
    for file, n in ((CPU, 100), (CPU, 500), (GPU, 500), (GPU, 10_000)):
        (found,) = (one for one in load(f"speed/{file}")["exact"] if one["n"] == n)
        times = [found["contestants"][key] for key in ("pair_loop", "cdist", "fused")]
        rows = [(time(one), one["repeats"]) for one in times if one["repeats"] > 1]
        yield from (("README.md", f"{value} is the mean of {count} ") for value, count in rows)
    (one,) = (
        one["contestants"]["one_call"]
        for one in load("calls/h200")["calls"]
        if (one["case"], one["n"], one["observations"], one["features"]) == ("wasserstein", 500, 4096, 4)
    )
    yield "README.md", f"A call by itself takes {1e3 * one['median_s']:.2f} ms there."


def designs() -> Iterator[Line]:
    found = load(f"designs/{CPU}")
    for team in found["designs"]:
        graph, *_ = team["designs"]
        ring = [one for one in team["designs"] if one["name"].startswith("ring")][-1]
        better = " better" if (team["team"], team["n"]) == ("trained", 50) else ""  # which says what the number is
        cells = f"{graph['rmse']:.2%}", f"{ring['rmse']:.3%} ({ring['rmse_gain']:.0f}x{better})"
        yield "docs/benchmarks.md", row(f"{team['n']} agents, {team['team']}", *cells)
    (team,) = (team for team in found["designs"] if (team["team"], team["n"]) == ("trained", 100))
    for name, key, digits in (
        ("one Bernoulli graph, p = 0.1", "bernoulli:0.1", 2),
        ("the same, Horvitz-Thompson", "bernoulli:0.1, horvitz-thompson", 2),
        ("matching", "matching", 2),
        ("ring of degree 8", "ring:8", 3),
    ):
        (one,) = (one for one in team["designs"] if one["name"] == key)
        work = f"{one['distances']:,.0f}", f"{one['evaluations']:,}", f"{1e3 * one['time']['median_s']:.0f} ms"
        yield "docs/estimation.md", row(name, f"{one['rmse']:.{digits}%}", *work)


def training() -> Iterator[Line]:
    gpu = load("training/h200")
    machines = (("2 CPU cores", load(f"training/{CPU}"), 2), ("H200", gpu, 3), ("H200, 1,000 agents", gpu["large"], 3))
    for name, one, digits in machines:
        parts = (f"{one[part]['median_s']:.{digits}f} s" for part in ("rollout", "update", "iteration"))
        yield "docs/benchmarks.md", row(name, *parts)
    half, whole, regular = (f"{one['per_run_s']:.2f} s" for one in gpu["controlled"])
    for name, seconds in (("bfloat16", half), ("TF32", whole)):
        line = row(f"three of 50 agents, {name}", "all 204,800 observations of a minibatch", seconds)
        yield "docs/benchmarks.md", line
    yield "docs/benchmarks.md", f"gradient steps | {regular}, 1.9% of it"


def frameworks() -> Iterator[Line]:
    for ours, fast in zip(load(f"worlds/{CPU}")["worlds"], load("worlds/h200")["worlds"], strict=True):
        times, ratio = list(ours["contestants"].values()), f"{ours['ratio']:.0f}" if ours["ratio"] else ""
        replayed = f"{1e3 * fast['contestants']['graphsnd, CUDA graph']['median_s']:.3f} ms"
        yield "docs/worlds.md", f" {time(times[0])} | {ratio + ' ' if ratio else ''}| {replayed} |"
    found = load(f"benchmarl/dico-{CPU}")
    for one in (*found["models"], found["limit"]):
        error = f"{one['error']:.1%}" if one.get("error") else "-"
        yield (
            "docs/benchmarl.md",
            f"| {one['training_over_without']:.2f} | {one['iteration_over_without']:.2f} | {error} |",
        )


def sentences() -> Iterator[Line]:
    page = "docs/benchmarks.md"
    yield page, f"takes {time(load('speed/h200')['equation_1']['contestants']['fused'])}. There, exact SND"
    cpu, gpu = ({(one["case"], one["n"], one["features"]): one["contestants"] for one in load(f"calls/{file}")["calls"]
                 if one["observations"] <= 4096} for file in ("cpu", GPU))  # fmt: skip
    gradient = "wasserstein and gradient"
    four, many = (1e3 * gpu[gradient, 500, features]["queued"]["median_s"] for features in (4, 32))
    yield page, f"With the gradient 4 features take {four:.2f} ms and 32 take {many:.1f} ms."
    repeated = (1e3 * gpu[case, n, 4]["repeated"]["median_s"] for case in ("wasserstein", gradient) for n in (50, 500))
    yield page, "{:.3f} ms with 50 agents and {:.2f} with 500, with the gradient {:.2f} and {:.2f}".format(*repeated)
    ms = {(case, many): 1e3 * one["queued"]["median_s"] for (case, n, many), one in cpu.items() if n == 500}
    for many, digits in ((4, 1), (32, 0)):
        forward, both = ms["wasserstein", many], ms[gradient, many]
        yield page, f"| {many} features | {forward:.{digits}f} ms, with the gradient {both:.0f} ms |"
        yield "docs/kernels.md", f"{both / forward:.1f} times "
    other = 1e3 * cpu["wasserstein", 500, 128]["cdist"]["median_s"]
    yield page, f"| 128 features | {ms['wasserstein', 128]:.0f} ms, where `cdist` takes {other:.0f} ms |"
    shares = load("share/cpu-1-thread"), load("share/h200")
    for at, n, words in (
        (0, 500, "reaches {:.0%} of the core's arithmetic limit with 4 features and {:.0%} with 128."),
        (1, 500, "On the H200 it reaches {:.0%} and {:.0%},"),
        (1, 2000, "with 2,000 agents {:.0%} and {:.0%}."),
    ):
        reached = {one["features"]: one["share"] for one in shares[at]["features"] if one["n"] == n}
        yield page, words.format(reached[4], reached[128])
    for name, label in (
        ("tenth of the pairs", "a tenth of the pairs on a new graph"),
        ("agents:8", "eight random agents per observation"),
        ("ring:4", "a new ring per observation"),
    ):
        yield page, row(label, *(f"{round(crossing(found, name) or 0, -1):,.0f}" for found in shares))
    covered = [one["covered"] for one in load(f"designs/coverage-{CPU}")["coverage"] if "asymptotic" in one["kind"]]
    yield page, f"95% intervals covered {100 * min(covered):.1f} to {max(covered):.1%} (asymptotic"


def layouts() -> Iterator[Line]:
    rows = [row for row in load("coverage/cpu")["coverage"] if row["team"].endswith("environments, effect 0.5")]
    low, high = (100 * end(row["covered"] for row in rows) for end in (min, max))
    words = f"covered in {low:.1f} to {high:.1f}% of {rows[0]['repetitions']:,} repetitions, in both layouts"
    yield "docs/intervals.md", words


def crossovers() -> Iterator[Line]:
    for name, key in (("`bernoulli:0.1`", "tenth of the pairs"), ("`agents:8`", "agents:8")):
        sizes = (crossing(load(f"share/{machine}"), key) or math.inf for machine in ("cpu-1-thread", "h200"))
        yield "docs/estimation.md", row(name, *(f"from {size:,.0f} agents" for size in sizes))


@pytest.mark.parametrize(
    "lines",
    [speed, calls, queues, designs, training, frameworks, sentences, layouts, crossovers],
    ids=lambda lines: lines.__name__,
)
def test_pages_say_what_the_files_do(lines: Any) -> None:
    missing = [(page, line) for page, line in lines() if line not in " ".join(read(page).split())]
    assert missing == []
