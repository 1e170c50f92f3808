"""What does DiversityCallback cost of a BenchMARL iteration on vmas/balance with 4 agents?

IPPO with BenchMARL's defaults and the callback's, and a policy of its own for each agent, which is more to measure than
one that is shared. Experiments with and without it take turns, and the first iteration
of each is left out. Times are seconds. share: of the callback in its own iterations, by its own clock, which is
far finer than the difference of the two medians.
"""

from __future__ import annotations

from typing import Any

from benchmarks.benchmarl import run_experiment, summarise_parts
from benchmarks.timing import Options, Tables, summarise_times


def measure(options: Options) -> dict[str, Any]:
    """Time iterations with and without the callback."""
    from benchmarl.environments import VmasTask

    from graphsnd.integrations.benchmarl import DiversityCallback

    settings = {"max_n_iters": 4, "share_policy_params": False}
    settings |= {"on_policy_collected_frames_per_batch": 40} if options.quick else {}
    pairs = 1 if options.quick else 5 if options.full else 3
    times: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    seconds: list[float] = []
    for turn in range(pairs):
        for name in times:
            options.step(f"{name} the callback, turn {turn + 1} of {pairs}")
            callback = DiversityCallback()
            task, added = VmasTask.BALANCE.get_from_yaml(), [callback] if name == "with" else []
            times[name] += run_experiment(task, options, settings, added)
            seconds += [row["seconds"] for row in callback.rows[1:]]
    shares = sorted(spent / whole["iteration"] for spent, whole in zip(seconds, times["with"], strict=True))
    rows = [{"callback": name, **summarise_parts(each)} for name, each in times.items()]
    ratio = rows[1]["iteration"]["median_s"] / rows[0]["iteration"]["median_s"]
    return {
        "agents": 4,
        "iterations": rows,
        "seconds": summarise_times(seconds),
        "share": shares[len(shares) // 2],
        "largest_share": shares[-1],
        "with_over_without": ratio,
    }


def tables(result: dict[str, Any]) -> Tables:
    """Return the parts of an iteration, and what the callback took of it."""
    costs = ("seconds", "share", "largest_share", "with_over_without")
    parts = ("callback", "collection", "training", "iteration")
    return {"Iterations": (result["iterations"], parts), "DiversityCallback": ([result], costs)}
