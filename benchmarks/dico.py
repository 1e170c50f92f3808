"""What does controlled diversity cost of a BenchMARL iteration on vmas/dispersion with 10 agents, and is it held?

IPPO with BenchMARL's defaults, but for 600 frames per iteration in place of 6000, and 5 passes over them in place of
45: training, which bears the cost, has less weight here, and a column of its own. without: a policy of its own for each
agent, BenchMARL's MLP. uncontrolled: graphsnd's model, which has a shared network beside the agents' own, and no
control. DiCo: the same model, held at a diversity over all pairs and all observations of a minibatch, in every forward
of the loss; then with options that look at less. They take turns, each time as a new experiment with another seed,
whose first iteration is left out. Times are BenchMARL's own (with one thread those of the processor); an iteration is
collection and training. error: the distance of the audit, SND of the policies that collected a batch, from the target,
over the target; mean over iterations and seeds. The estimate remembers 5 of the 10 training forwards of an iteration
(tau=0.2). limit: the uncontrolled iteration and the products of the estimate of DiCo, at the rate of a product of two
square matrices.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.benchmarl import PARTS, run_experiment, summarise_parts
from benchmarks.timing import Clock, Options, Tables

TARGET, PASSES = 0.5, 5
HELD = {"target": TARGET, "tau": 0.2}
CASES: dict[str, dict[str, Any]] = {
    "without": {},
    "uncontrolled": {"target": None},
    "DiCo": HELD,
    "observations=800": {**HELD, "observations": 800},
    "observations=400": {**HELD, "observations": 400},
    "design=agents:4": {**HELD, "design": "agents:4"},
    "design=agents:2": {**HELD, "design": "agents:2"},
}


def measure(options: Options) -> dict[str, Any]:
    """Time iterations of all cases, and audit the policies on the way."""
    agents, frames, iterations, turns = (3, 40, 3, 1) if options.quick else (10, 600, 6, 5 if options.full else 3)
    settings = {"on_policy_collected_frames_per_batch": frames, "max_n_iters": iterations}
    rows: list[dict[str, Any]] = [{"case": name, "times": [], "audits": []} for name in CASES]
    rate = 0.0
    for turn in range(turns):
        rate = max(rate, _measure_rate(options))
        for row in rows:
            options.step(f"{row['case']}, turn {turn + 1} of {turns}")
            times, audits, cost = _run(row["case"], agents, settings, replace(options, seed=options.seed + turn))
            row["times"] += times
            row["audits"].append(audits)
    for row in rows:
        row |= summarise_parts(row.pop("times"))
        held = CASES[row["case"]].get("target") is not None
        row["error"] = fmean(abs(a / TARGET - 1) for run in row["audits"] for a in run[1:]) if held else None
    operations = 2.0 * cost * agents * PASSES * frames * agents  # all networks on the observations of all agents
    limit = {"case": "limit", "operations": operations, "operations_per_second": rate}
    for part in ("training", "iteration"):
        limit[part] = {name: s + operations / rate for name, s in rows[1][part].items() if name.endswith("_s")}
        for row in (*rows, limit):
            row[f"{part}_over_without"] = row[part]["median_s"] / rows[0][part]["median_s"]
    return {"agents": agents, "frames": frames, "passes": PASSES, "target": TARGET, "models": rows, "limit": limit}


def _run(
    case: str, agents: int, settings: dict[str, Any], options: Options
) -> tuple[list[dict[str, float]], list[float], int]:
    """Return the times of iterations, the audit of each, and the multiply-adds of a network on an observation."""
    from benchmarl.environments import VmasTask

    from graphsnd.integrations.benchmarl import DiCoModelConfig, DiversityCallback

    task = VmasTask.DISPERSION.get_task({**VmasTask.DISPERSION.get_from_yaml().config, "n_agents": agents})
    own, log = case != "without", DiversityCallback(every=settings["max_n_iters"])
    settings = settings | {"on_policy_n_minibatch_iters": PASSES, "share_policy_params": own}
    model = DiCoModelConfig(**CASES[case]) if own else None
    alone = options.device.type == "cpu" and torch.get_num_threads() == 1
    with patch("benchmarl.experiment.experiment.time", SimpleNamespace(time=process_time if alone else perf_counter)):
        times = run_experiment(task, options, settings, [log] if own else [], model)
    for each in times:
        each["iteration"] = each["collection"] + each["training"]  # BenchMARL's own has the audit in it
    cost = sum(each.network.deviations.cost for each in log.models().values()) if own else 0
    return times, [row["audit"] for row in log.rows], cost


def _measure_rate(options: Options) -> float:
    """Return the operations per second of a product of matrices."""
    side = torch.ones(2048, 2048, device=options.device)
    return 2 * 2048**3 / min(Clock(options.device).seconds(lambda: side @ side) for _ in range(4))


def tables(result: dict[str, Any]) -> Tables:
    """Return the parts of an iteration by model."""
    title = f"IPPO on dispersion with {result['agents']} agents"
    columns = ("case", *PARTS, "training_over_without", "iteration_over_without", "error")
    return {title: ([*result["models"], result["limit"]], columns)}
