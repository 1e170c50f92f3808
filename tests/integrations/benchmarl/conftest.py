from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("benchmarl")
from benchmarl.environments import VmasTask
from benchmarl.experiment import Experiment, ExperimentConfig
from torchrl.data import Bounded, Categorical, Composite, Unbounded

from graphsnd.integrations.benchmarl import DiCoModelConfig
from graphsnd.integrations.benchmarl.model import DiCoModel

# BenchMARL and TorchRL deprecate each other's names as they go.
pytestmark = pytest.mark.filterwarnings("ignore")


def small(folder: Path, **options: Any) -> ExperimentConfig:
    config = ExperimentConfig.get_from_yaml()
    values = {
        "loggers": ["csv"], "render": False, "evaluation": False, "create_json": False, "save_folder": str(folder),
        "max_n_iters": 2, "max_n_frames": None,
        "on_policy_collected_frames_per_batch": 40, "on_policy_n_envs_per_worker": 4,
        "on_policy_n_minibatch_iters": 2, "on_policy_minibatch_size": 20,
        "off_policy_collected_frames_per_batch": 40, "off_policy_n_envs_per_worker": 4,
        "off_policy_n_optimizer_steps": 3, "off_policy_train_batch_size": 16, "off_policy_memory_size": 100,
    }  # fmt: skip
    for name, value in {**values, **options}.items():
        setattr(config, name, value)
    return config


def make_experiment(
    folder: Path,
    algorithm: Any,
    model: Any,
    *,
    callbacks: Any = (),
    task: Any = None,
    critic_model: Any = None,
    **options: Any,
) -> Experiment:
    if task is None or isinstance(task, dict):  # options of dispersion
        task = VmasTask.DISPERSION.get_task({**VmasTask.DISPERSION.get_from_yaml().config, **(task or {})})
    return Experiment(
        task=task,
        algorithm_config=algorithm.get_from_yaml(),
        model_config=model,
        critic_model_config=critic_model,
        seed=0,
        config=small(folder, **options),
        callbacks=list(callbacks),
    )


@pytest.fixture
def experiment(tmp_path: Path) -> Callable[..., Experiment]:
    return partial(make_experiment, tmp_path)


def specs(agents: int, inputs: int, outputs: int, *, discrete: bool = False, low: Any = -1.0, high: Any = 1.0) -> Any:
    if discrete:
        action = Categorical(outputs, shape=(agents,))
    else:
        ends = (torch.as_tensor(end, dtype=torch.float32).expand(agents, 2) for end in (low, high))
        action = Bounded(*ends, shape=(agents, 2))

    def group(name: str, spec: Any) -> Composite:
        return Composite({"agents": Composite({name: spec}, shape=(agents,))})

    return {
        "input_spec": group("observation", Unbounded((agents, inputs))),
        "output_spec": group("logits", Unbounded((agents, outputs))),
        "action_spec": group("action", action),
        "agent_group": "agents",
        "input_has_agent_dim": True,
        "n_agents": agents,
        "centralised": False,
        "share_params": True,
        "device": "cpu",
    }


def build(agents: int = 4, inputs: int = 5, outputs: int = 4, *, spec: Any = None, **options: Any) -> DiCoModel:
    torch.manual_seed(0)
    config = DiCoModelConfig(**{"target": 0.1, "num_cells": (16,), **options})
    return config.get_model(**specs(agents, inputs, outputs, **(spec or {})))
