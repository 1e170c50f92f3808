"""What does controlled diversity cost of a BenchMARL iteration on vmas/dispersion with 10 agents?

IPPO with BenchMARL's defaults, but for 600 frames per iteration in place of 6000, and 5 passes over them in place of
45: training, which bears the cost, has less weight here, and a column of its own. without: a policy of its own for each
agent, BenchMARL's MLP. uncontrolled: graphsnd's model, which has a shared network beside the agents' own, and no
control. DiCo: the same model, held at a diversity over all pairs and all observations of a minibatch, in every forward
of the loss; the last one at 400 of these observations, drawn at random. They take turns, each time as a new experiment,
whose first iteration is left out. Times are BenchMARL's own, in seconds.
"""

from __future__ import annotations

from typing import Any

from benchmarks.benchmarl import PARTS, run_experiment, summarise_parts
from benchmarks.timing import Options, Tables

TARGET = 0.5


def measure(options: Options) -> dict[str, Any]:
    """Time iterations of all four."""
    from benchmarl.environments import VmasTask

    from graphsnd.integrations.benchmarl import DiCoModelConfig

    agents, frames, turns = (3, 40, 1) if options.quick else (10, 600, 5 if options.full else 3)
    settings = {"on_policy_collected_frames_per_batch": frames, "max_n_iters": 4, "on_policy_n_minibatch_iters": 5}
    models = {
        "without": None,
        "uncontrolled": DiCoModelConfig(),
        "DiCo": DiCoModelConfig(target=TARGET),
        "DiCo, 400 observations": DiCoModelConfig(target=TARGET, observations=400),
    }
    task = VmasTask.DISPERSION.get_task({**VmasTask.DISPERSION.get_from_yaml().config, "n_agents": agents})
    times: dict[str, list[dict[str, float]]] = {name: [] for name in models}
    for turn in range(turns):
        for name, model in models.items():
            options.step(f"{name}, turn {turn + 1} of {turns}")
            own = settings | {"share_policy_params": model is not None}
            times[name] += run_experiment(task, options, own, model=model)
    rows = [{"case": name, **summarise_parts(times[name])} for name in models]
    for row in rows:
        for part in ("training", "iteration"):
            row[f"{part}_over_without"] = row[part]["median_s"] / rows[0][part]["median_s"]
    return {"agents": agents, "frames": frames, "models": rows}


def tables(result: dict[str, Any]) -> Tables:
    """Return the parts of an iteration by model."""
    title = f"IPPO on dispersion with {result['agents']} agents"
    return {title: (result["models"], ("case", *PARTS, "training_over_without", "iteration_over_without"))}
