"""How do BenchMARL's IPPO and MAPPO learn vmas/navigation with 4 agents?

Every agent has an actor of its own. IPPO has a critic of its own for each agent; MAPPO has one that reads the
observations of all agents side by side and gives one value for the team, BenchMARL's default. A tanh-squashed Gaussian
for actions, two hidden layers of 64, 60 environments of at most 100 steps, 6,000 frames in each of 30 iterations, the
mean reward of a step over agents. Three seeds. The benchmark learning compares graphsnd's training with the file.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.benchmarl import follow_experiment
from benchmarks.timing import Options, Tables

ALGORITHMS, SEEDS, WORKERS = ("IPPO", "MAPPO"), (0, 1, 2), 3
SHAPE = {"agents": 4, "environments": 60, "steps": 100, "epochs": 5, "minibatch": 400, "iterations": 30}
QUICK = SHAPE | {"environments": 4, "steps": 10, "epochs": 1, "minibatch": 20, "iterations": 2}
LEARNING = {"learning_rate": 1e-3, "gamma": 0.99, "gae_lambda": 0.9, "clip": 0.2, "max_gradient_norm": 5.0}
HIDDEN = (64, 64)


def measure(options: Options) -> dict[str, Any]:
    """Train with both algorithms and every seed, three runs at a time."""
    seeds = SEEDS[:1] if options.quick else SEEDS
    jobs = [(name, dataclasses.replace(options, seed=seed)) for seed in seeds for name in ALGORITHMS]
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        curves = list(pool.map(learn, *zip(*jobs, strict=True)))
    return {"shape": shape(options), "learning": LEARNING, "curves": curves}


def shape(options: Options) -> dict[str, int]:
    """Return the sizes of a run."""
    return QUICK if options.quick else SHAPE


def learn(algorithm: str, options: Options) -> dict[str, Any]:
    """Return the rewards of one run of BenchMARL, one for each iteration."""
    from benchmarl.algorithms import IppoConfig, MappoConfig
    from benchmarl.environments import VmasTask
    from benchmarl.models import MlpConfig

    size = shape(options)
    config = {"IPPO": IppoConfig, "MAPPO": MappoConfig}[algorithm].get_from_yaml()
    config.share_param_critic, config.lmbda = algorithm == "MAPPO", LEARNING["gae_lambda"]
    config.clip_epsilon = LEARNING["clip"]
    settings = {
        "share_policy_params": False,
        "gamma": LEARNING["gamma"],
        "lr": LEARNING["learning_rate"],
        "adam_eps": 1e-8,
        "clip_grad_val": LEARNING["max_gradient_norm"],
        "on_policy_collected_frames_per_batch": size["environments"] * size["steps"],
        "on_policy_n_envs_per_worker": size["environments"],
        "on_policy_n_minibatch_iters": size["epochs"],
        "on_policy_minibatch_size": size["minibatch"],
        "max_n_iters": size["iterations"],
    }
    task = VmasTask.NAVIGATION
    chosen = task.get_task({**task.get_from_yaml().config, "n_agents": size["agents"]})
    model = MlpConfig.get_from_yaml()
    model.num_cells = list(HIDDEN)
    options.step(f"{algorithm}, seed {options.seed}")
    logged = follow_experiment(chosen, options, settings, config, model=model, critic=model)
    key = "collection/reward/reward_mean"
    return {"algorithm": algorithm, "seed": options.seed, "rewards": [each[key] for each in logged if key in each]}


def tables(result: dict[str, Any]) -> Tables:
    """Return rewards at the start and at the end of every run."""
    rows = [{**curve, "first": curve["rewards"][0], "last": last_reward(curve)} for curve in result["curves"]]
    title = "Reward of a step, in the first and in the last ten iterations"
    return {title: (rows, ("algorithm", "seed", "first", "last"))}


def last_reward(curve: dict[str, Any]) -> float:
    """Return the mean reward of the last ten iterations."""
    last = curve["rewards"][-10:]
    return float(sum(last) / len(last))
