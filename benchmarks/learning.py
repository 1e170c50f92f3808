"""Do independent and central critics learn vmas/navigation as BenchMARL's IPPO and MAPPO do?

graphsnd's training, with its own world, against the curves that the benchmark curves recorded of BenchMARL: the same
networks, hyper-parameters and frames. Losses are averaged over agents, as BenchMARL does. One thing differs: BenchMARL
clips the gradients of IPPO's actors and critics each by a norm of their own, graphsnd by one norm. Near misses are
punished by VMAS's rule, which looks at all environments of a state, so that each seed trains alone; and always, as
graphsnd's world does by default, three seeds at once. Three seeds; --full: five of graphsnd's by VMAS's rule.
whole: mean reward of a step over all iterations; last: over the last ten. apart: the difference of the two means over
seeds, in standard deviations of a difference of two such means. overlap: the share of iterations in which the ranges
of the seeds' rewards meet.
"""

from __future__ import annotations

import statistics
from math import sqrt
from typing import Any

from benchmarks.curves import ALGORITHMS, HIDDEN, LEARNING, SEEDS, last_reward, shape
from benchmarks.timing import Options, Tables
from graphsnd.files import parse_json
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.worlds import Navigation

CRITICS = dict(zip(ALGORITHMS, ("independent", "central"), strict=True))
RULES = ("VMAS", "graphsnd")  # for near misses


def measure(options: Options) -> dict[str, Any]:
    """Train with both critics by both rules, and compare."""
    from benchmarks.__main__ import RESULTS

    # VMAS's rule would look across the runs of one trainer.
    alone: list[tuple[int, ...]] = [(seed,) for seed in (range(5) if options.full else SEEDS)]
    stacked: list[tuple[int, ...]] = [SEEDS]
    curves = [
        curve
        for rule, together in zip(RULES, (alone, stacked), strict=True)
        for algorithm in ALGORITHMS
        for seeds in together
        for curve in learn(algorithm, rule, seeds, options)
    ]
    recorded = parse_json((RESULTS / "benchmarl" / "curves-cpu-2-cores.json").read_bytes())
    rows = [
        {"rule": rule, **compare(algorithm, recorded["curves"], [curve for curve in curves if curve["rule"] == rule])}
        for rule in RULES
        for algorithm in ALGORITHMS
    ]
    about = {name: recorded[name] for name in ("command", "commit", "shape", "learning")}
    return {"shape": shape(options), "learning": LEARNING, "benchmarl": about, "comparison": rows, "curves": curves}


def learn(algorithm: str, rule: str, seeds: tuple[int, ...], options: Options) -> list[dict[str, Any]]:
    """Return the rewards of every seed, one for each iteration."""
    given: dict[str, Any] = {**shape(options), **LEARNING}
    world = Navigation(
        given.pop("agents"), given["environments"], shared_rew=False, horizon=100, vmas_compatible=rule == "VMAS",
        device=options.device,
    )  # fmt: skip
    settings = Settings(
        **given, critic=CRITICS[algorithm], hidden=HIDDEN, policy="tanh-normal", init="linear",
        actor_gain=1.0, joint=True, value_coefficient=2.0, entropy_coefficient=0.0, normalise_advantages=False,
        bootstrap_time_limits=False, restart=False, diversity_every=0,
    )  # fmt: skip
    options.step(f"{algorithm}, {rule}'s rule, seeds {seeds}")
    trainer = Trainer(world, settings, seeds=seeds)
    rewards = [[row.reward for row in trainer.step()] for _ in range(settings.iterations)]
    return [
        {"rule": rule, "algorithm": algorithm, "seed": seed, "rewards": list(own)}
        for seed, own in zip(seeds, zip(*rewards, strict=True), strict=True)
    ]


def compare(algorithm: str, theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over seeds of both, and how far they are apart."""
    groups = [[curve for curve in side if curve["algorithm"] == algorithm] for side in (theirs, ours)]
    row: dict[str, Any] = {"algorithm": algorithm}
    for name, number in (("whole", lambda curve: statistics.fmean(curve["rewards"])), ("last", last_reward)):
        seeds = [[number(curve) for curve in group] for group in groups]
        means = [statistics.fmean(each) for each in seeds]
        spread = sqrt(sum(statistics.variance(each) / len(each) for each in seeds))
        row |= {f"{name}_benchmarl": means[0], f"{name}_graphsnd": means[1]}
        row[f"{name}_apart"] = (means[1] - means[0]) / spread
    columns = [list(zip(*(curve["rewards"] for curve in group), strict=True)) for group in groups]
    meets = [min(a) <= max(b) and min(b) <= max(a) for a, b in zip(*columns, strict=False)]
    return row | {"overlap": sum(meets) / len(meets)}


def tables(result: dict[str, Any]) -> Tables:
    """Return the comparison by rule and algorithm."""
    names = [f"{part}_{side}" for part in ("whole", "last") for side in ("benchmarl", "graphsnd", "apart")]
    rows = {rule: [row for row in result["comparison"] if row["rule"] == rule] for rule in RULES}
    columns = ("algorithm", *names, "overlap")
    return {f"Reward of a step by {rule}'s rule, means over seeds": (mine, columns) for rule, mine in rows.items()}
