"""What does controlled diversity cost of a BenchMARL iteration on vmas/dispersion with 10 agents, and is it held?

IPPO has BenchMARL's defaults except for 600 frames per iteration instead of 6000, and 5 passes over them instead of 45.
So training, which bears the cost, has less weight here; it has its own column. without: a separate policy for each
agent, BenchMARL's MLP. uncontrolled: graphsnd's model, which adds a shared network to the agents' own, without control.
DiCo: the same model, held at a diversity over all pairs and all observations of a minibatch, in every forward of the
loss; then with options that use fewer of them. The cases take turns, each time as a new experiment with another seed,
whose first iteration is left out. Times are BenchMARL's own (with one thread those of the processor); an iteration is
collection and training. error: the relative distance from the target of the audit, SND of the policies that collected a
batch; mean over iterations and seeds. The estimate remembers 5 of the 10 training forwards of an iteration (tau=0.2).
limit: the time of the uncontrolled iteration plus the matrix products of DiCo's estimate, at the rate of a product of
two square matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.timing import Clock, Options, summarise_times, take_turns

PARTS = ("collection", "training", "iteration")
DEFAULTS = {"loggers": [], "render": False, "evaluation": False, "create_json": False, "max_n_frames": None}
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
            found, audits, cost = _run(row["case"], agents, settings, replace(options, seed=options.seed + turn))
            row["times"] += found
            row["audits"].append(audits)
    for row in rows:
        times = row.pop("times")
        row |= {part: summarise_times([each[part] for each in times]) for part in PARTS}
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
        times = _run_experiment(task, options, settings, [log] if own else [], model)
    for each in times:
        each["iteration"] = each["collection"] + each["training"]  # BenchMARL's own time includes the audit
    cost = sum(each.network.deviations.cost for each in log.models().values()) if own else 0
    return times, [row["audit"] for row in log.rows], cost


def _run_experiment(
    task: Any, options: Options, settings: dict[str, Any], callbacks: Sequence[Any], model: Any
) -> list[dict[str, float]]:
    """Run BenchMARL's IPPO, with an MLP where ``model`` is None; return the seconds of each iteration but the first."""
    from benchmarl.algorithms import IppoConfig
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models import MlpConfig

    few = {"on_policy_n_minibatch_iters": 1, "on_policy_n_envs_per_worker": 2} if options.quick else {}
    devices = dict.fromkeys(("sampling_device", "train_device", "buffer_device"), str(options.device))
    config, logged = ExperimentConfig.get_from_yaml(), []
    for name, value in {**DEFAULTS, **devices, **few, **settings}.items():
        setattr(config, name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BenchMARL and TorchRL deprecate each other's names
        plain = MlpConfig.get_from_yaml()
        parts = {"model_config": model or plain, "critic_model_config": plain, "callbacks": list(callbacks)}
        with TemporaryDirectory() as config.save_folder:
            algorithm = IppoConfig.get_from_yaml()
            experiment = Experiment(task=task, seed=options.seed, algorithm_config=algorithm, config=config, **parts)
            experiment.logger.log = lambda numbers, step=None: logged.append(dict(numbers))
            experiment.run()
    times = [numbers for numbers in logged if "timers/iteration_time" in numbers]
    return [{part: numbers[f"timers/{part}_time"] for part in PARTS} for numbers in times[1:]]


def _measure_rate(options: Options) -> float:
    """Return the operations per second of a product of matrices."""
    side = torch.ones(2048, 2048, device=options.device)
    times = take_turns({"product": lambda: side @ side}, Clock(options.device), rounds=4)
    return 2 * 2048**3 / min(times["product"])
