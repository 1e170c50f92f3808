"""Batched worlds as BenchMARL tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarl.environments import Task, VmasClass
from benchmarl.utils import _read_yaml_config

from graphsnd.integrations.world_env import WorldEnv
from graphsnd.rl.worlds.parse import BATCHED, parse_world
from graphsnd.rl.worlds.world import Discrete

OPTIONS = Path(__file__).parent / "conf" / "task" / "graphsnd"


class GraphsndClass(VmasClass):  # type: ignore[misc]
    """A batched world as a task, with BenchMARL's ``n_agents`` and ``max_steps`` and the other options of the world."""

    def get_env_fun(self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any) -> Callable[[], Any]:
        """Return a function that makes the environment."""
        options = {**self.config, "device": device}
        agents, options["horizon"] = options.pop("n_agents"), options.pop("max_steps")
        name = self.name.lower()
        return lambda: WorldEnv(
            parse_world(name, agents, num_envs, **options), seed=seed or 0, discrete=not continuous_actions
        )

    def supports_continuous_actions(self) -> bool:
        """Return whether the world has continuous actions; all have discrete ones, at least as a grid."""
        return not isinstance(BATCHED[self.name.lower()].actions, Discrete)

    def has_render(self, env: Any) -> bool:
        """Return False: nothing is drawn."""
        return False

    @staticmethod
    def env_name() -> str:
        """Return the name of the folder with the tasks."""
        return "graphsnd"


class GraphsndTask(Task):  # type: ignore[misc]
    """The batched worlds.

    Example:
        >>> task = GraphsndTask.NAVIGATION.get_from_yaml()  # Experiment(task=task, ...)
        >>> task.config["n_agents"], task.max_steps(None)
        (3, 100)
    """

    NAVIGATION = None
    DISPERSION = None
    SIMPLE_SPREAD = None

    @staticmethod
    def associated_class() -> type[GraphsndClass]:
        """Return the class of the tasks."""
        return GraphsndClass

    def get_from_yaml(self, path: str | None = None) -> GraphsndClass:
        """Return the task with the options of a file, those of BenchMARL's own task when None."""
        return self.get_task(_read_yaml_config(path or str(OPTIONS / f"{self.name.lower()}.yaml")))
