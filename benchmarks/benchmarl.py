"""How long does a BenchMARL iteration on navigation take: stock VMAS task, or graphsnd's?

IPPO with BenchMARL's defaults, but for 600 frames per iteration in place of 6000. The two take turns, each time as a
new experiment, whose first iteration is left out. Times are BenchMARL's own, in seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.timing import Options, Tables, summarise_times

PARTS = ("collection", "training", "iteration")
DEFAULTS = {"loggers": [], "render": False, "evaluation": False, "create_json": False, "max_n_frames": None}


def measure(options: Options) -> dict[str, Any]:
    """Time both tasks with 100 agents, or 4."""
    from benchmarl.environments import VmasTask

    from graphsnd.integrations.benchmarl import GraphsndTask

    agents, frames, pairs = (4, 40, 1) if options.quick else (100, 600, 5 if options.full else 3)
    world = {"n_agents": agents, "world_spawning_x": 4, "world_spawning_y": 4}
    settings = {"on_policy_collected_frames_per_batch": frames, "max_n_iters": 3}
    tasks = {"VMAS": VmasTask.NAVIGATION, "graphsnd": GraphsndTask.NAVIGATION}
    times: dict[str, list[dict[str, float]]] = {name: [] for name in tasks}
    for turn in range(pairs):
        for name, task in tasks.items():
            options.step(f"{name}, turn {turn + 1} of {pairs}")
            chosen = task.get_task({**task.get_from_yaml().config, **world})
            times[name] += run_experiment(chosen, options, settings)
    rows = [{"task": name, **summarise_parts(times[name])} for name in tasks]
    ratio = rows[0]["iteration"]["median_s"] / rows[1]["iteration"]["median_s"]
    return {"agents": agents, "frames": frames, "tasks": rows, "times_as_fast": ratio}


def run_experiment(
    task: Any, options: Options, settings: dict[str, Any], callbacks: Sequence[Any] = (), model: Any = None
) -> list[dict[str, float]]:
    """Run IPPO on a task.

    Args:
        task: Of BenchMARL.
        options: Device and seed; ``quick`` for few gradient steps.
        settings: Of the experiment.
        callbacks: Of the experiment.
        model: Configuration of the policy, an MLP when None.

    Returns:
        The seconds of the parts of each iteration but the first.
    """
    from benchmarl.algorithms import IppoConfig

    logged = follow_experiment(task, options, settings, IppoConfig.get_from_yaml(), callbacks, model)
    times = [numbers for numbers in logged if "timers/iteration_time" in numbers]
    return [{part: numbers[f"timers/{part}_time"] for part in PARTS} for numbers in times[1:]]


def follow_experiment(
    task: Any,
    options: Options,
    settings: dict[str, Any],
    algorithm: Any,
    callbacks: Sequence[Any] = (),
    model: Any = None,
    critic: Any = None,
) -> list[dict[str, float]]:
    """Run any algorithm on a task; arguments as in :func:`run_experiment`, and all that is logged comes back."""
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
        models = {"model_config": model or plain, "critic_model_config": critic or plain}
        chosen = {"algorithm_config": algorithm, "callbacks": list(callbacks), "config": config}
        with TemporaryDirectory() as config.save_folder:
            experiment = Experiment(task=task, seed=options.seed, **models, **chosen)
            experiment.logger.log = lambda numbers, step=None: logged.append(dict(numbers))
            experiment.run()
    return logged


def summarise_parts(times: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return median, min and quartiles of each part."""
    return {part: summarise_times([each[part] for each in times]) for part in PARTS}


def tables(result: dict[str, Any]) -> Tables:
    """Return the parts of an iteration by task."""
    title = f"IPPO on navigation with {result['agents']} agents: {result['times_as_fast']:.1f} times as fast"
    return {title: (result["tasks"], ("task", *PARTS))}
