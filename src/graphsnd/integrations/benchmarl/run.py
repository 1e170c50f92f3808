"""BenchMARL experiments with controlled diversity, from Hydra's command line.

``graphsnd control --engine benchmarl task=vmas/dispersion model.target=0.1 model.design=bernoulli:0.1`` and, for
many of them, ``-m model.target=0.1,0.2 seed=0,1,2``. All of BenchMARL's own configuration groups are there.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.callbacks import ActionSpaceLoss, DiversityLog
from graphsnd.integrations.benchmarl.tasks import CONF, provide_mpe
from graphsnd.integrations.hydra import run_jobs


def load_experiment(config: Any, task: str) -> Any:
    """Return the experiment that a composed configuration describes, with its callbacks.

    Args:
        config: As ``conf/config.yaml`` lays it out.
        task: For example ``vmas/dispersion``.

    Returns:
        A ``benchmarl.experiment.Experiment``.

    Raises:
        InputError: Without ``model.target``, and for what BenchMARL's loaders hand to graphsnd.
    """
    from benchmarl.hydra_config import load_experiment_from_hydra
    from omegaconf import OmegaConf

    if OmegaConf.is_missing(config.model, "target"):
        fix = "Write model.target=0.1, 0 for agents that are all the same, or null for no control."
        raise InputError("model.target", "to be given", "nothing", fix)
    callbacks: list[Any] = [DiversityLog(most=config.audit_frames)]
    if config.action_space_loss is not None:
        callbacks.append(ActionSpaceLoss(lr=config.action_space_loss))
    if task.startswith("pettingzoo/simple_"):
        provide_mpe()
    with warnings.catch_warnings():  # our worlds check their options themselves
        warnings.filterwarnings("ignore", "TaskConfig python dataclass not found")
        return load_experiment_from_hydra(config, task_name=task, callbacks=callbacks)


def main(argv: Sequence[str]) -> None:
    """Run Hydra on ``argv``: overrides, and Hydra's own options such as ``-m`` and ``--cfg job``.

    Args:
        argv: Without the program's name.

    Raises:
        InputError: For a configuration that graphsnd cannot accept; the other jobs of a multirun are run all the same.
        MissingExtraError: Without Hydra.
    """

    def job(config: Any) -> None:
        from hydra.core.hydra_config import HydraConfig

        load_experiment(config, HydraConfig.get().runtime.choices.task).run()

    run_jobs(job, argv, program="graphsnd control --engine benchmarl", config_name="config", config_path=str(CONF))
