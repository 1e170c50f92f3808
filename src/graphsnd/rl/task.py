"""What a training is made from, as JSON can say it: independent policies, or arms of controlled ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from typing_extensions import Self

from graphsnd import designs
from graphsnd.control import Controller, DiCo, Homogeneous, Unconstrained
from graphsnd.control.dico import Bootstrap
from graphsnd.errors import MOST_AGENTS, InputError, check_choice, check_integer, check_type, describe, number
from graphsnd.rl.control import DiversityControl, Group, Run
from graphsnd.rl.controlled import ControlledLearner, make_networks
from graphsnd.rl.log import ControlRow, Row, run_folder
from graphsnd.rl.roles import Method
from graphsnd.rl.settings import BRIEF, ControlSettings, PPOSettings, Settings, check_different, largest_product
from graphsnd.rl.streams import Streams
from graphsnd.rl.trainer import Trainer
from graphsnd.rl.worlds import World, parse_world
from graphsnd.rl.worlds.world import store

VERSION = 1
MOST = {"cpu": 4, "cuda": 12}  # runs of a stack; more gain little where a core or a GPU is busy with these
T = TypeVar("T")
FREE: dict[str, type[Unconstrained] | type[Homogeneous]] = {"unconstrained": Unconstrained, "homogeneous": Homogeneous}
# The task file of the reference is lost; the food's radius is the one whose first rewards agree with its log.
DISPERSION = {"food_radius": 0.08, "share_reward": True, "horizon": 100}
NO_PRESET = "none"  # the world by itself with the default settings, where a preset has the world's name


class AnyTask:
    """What :class:`Task` and :class:`ControlTask` have in common."""

    world: str  # what parse_world reads
    agents: int | None
    options: dict[str, Any]  # of the world
    seeds: tuple[int, ...]
    settings: Any  # of the class: the defaults

    format: ClassVar[str]  # in files
    command: ClassVar[str]  # that trains it
    row: ClassVar[type[Row] | type[ControlRow]]  # of its log
    settings_before: ClassVar[dict[str, Any]] = {}  # in files that do not say
    settings_kind: ClassVar[type[PPOSettings]]

    def __post_init__(self) -> None:
        check_type("world", self.world, str, "to be the name of a world")
        check_type("options", self.options, dict, "to be the world's options by name")
        check_type("settings", self.settings, self.settings_kind, f"to be {self.settings_kind.__name__}")
        check_type("seeds", self.seeds, (list, tuple), "to be a list of integers")
        expected = "to hold integers, at least 0"
        store(self, seeds=tuple(check_integer("seeds", seed, expected, low=0) for seed in self.seeds))
        if self.agents is not None:
            expected = f"to be an integer in 1 .. {MOST_AGENTS}"
            store(self, agents=check_integer("agents", self.agents, expected, low=1, high=MOST_AGENTS))

    def make_world(self, device: str) -> World:
        """Return the world, on ``device``."""
        for name in {"text", "agents", "environments", "device"} & self.options.keys():
            fix = "Agents and environments have options of their own: --agents, --envs."
            raise InputError(f"option of {self.world}", "other than those of the training", repr(name), fix)
        return parse_world(self.world, self.agents, self.settings.environments, device=device, **self.options)

    def make_trainer(self, device: str = "cpu", *, capture: bool = True) -> Trainer:
        """Return a trainer before its first iteration."""
        return Trainer(self.make_world(device), self.settings, seeds=self.seeds, capture=capture)

    def run_names(self) -> list[str]:
        """Return the name of every run's folder, in the order of their rows."""
        return [f"seed-{seed}" for seed in self.seeds]

    def with_iterations(self, iterations: int) -> Self:
        """Return the same task, longer or shorter."""
        return dataclasses.replace(self, settings=self.settings.replace(iterations=iterations))  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that is ready for JSON."""
        return {"format": self.format, "version": VERSION, **dataclasses.asdict(self)}  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, saved: Any, where: Path) -> Self:
        """Return the task that :meth:`to_dict` saved.

        Raises:
            InputError: When it is something else, or of another version.
        """
        if not isinstance(saved, dict) or saved.get("format") != cls.format or saved.get("version") != VERSION:
            raise InputError("checkpoint", f"of format {cls.format!r}, version {VERSION}", f"another in {where}")
        try:
            parts = {part.name: saved[part.name] for part in dataclasses.fields(cls)}  # type: ignore[arg-type]
            settings = cls.settings.replace(**cls.settings_before | parts["settings"])
            return cls(**parts | {"settings": settings})
        except (KeyError, TypeError) as error:
            raise InputError("checkpoint", f"with a complete task in {where}", f"trouble with {error}") from None

    def with_config(self, given: Any, where: str) -> Self:
        """Return the task with what a configuration says; the rest stays.

        Args:
            given: Fields by name, ``settings`` and ``options`` themselves dicts that may leave out what stays; as
                :meth:`to_dict` writes them, or the record of a run (``about.json``), which holds that as ``task``.
            where: For the message.

        Raises:
            InputError: For unknown names, and the task of another command.

        Example:
            >>> Task("navigation", 4).with_config({"agents": 8, "settings": {"iterations": 5}}, "run.yaml").agents
            8
        """
        given = given.get("task", given) if isinstance(given, dict) else given
        known = [part.name for part in dataclasses.fields(self)]  # type: ignore[arg-type]
        wanted = {"format": self.format, "version": VERSION}
        if not isinstance(given, dict) or wanted | given != given | wanted:
            other = {name: given.get(name) for name in wanted} if isinstance(given, dict) else type(given).__name__
            raise InputError("config", f"of graphsnd {self.command}, version {VERSION}, in {where}", repr(other))
        given = {name: value for name, value in given.items() if name not in wanted}
        for name, value in given.items():
            named = isinstance(value, dict) and all(isinstance(key, str) for key in value)
            if name not in known or (name in ("settings", "options") and not named):
                expected = f"with {', '.join(known)} in {where}, settings and options being dicts by names"
                raise InputError("config", expected, f"{name}: {describe(value)}")
        options = {} if given.get("world", self.world) != self.world else self.options  # which are of a world
        changed = {"options": options, **given, "settings": self.settings.replace(**given.get("settings", {}))}
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]


@dataclass(frozen=True)
class Task(AnyTask):
    """A training of independent policies.

    Args:
        world: What :func:`~graphsnd.rl.worlds.parse_world` reads.
        agents: Size of the team; that of the world when None.
        options: Options of the world.
        seeds: One run for each.
        settings: The rest.

    Example:
        >>> from graphsnd.rl import Settings
        >>> task = Task("navigation", 8, {"lidar_range": 0.5}, seeds=(0, 1, 2), settings=Settings(iterations=100))
        >>> task.run_names(), task.settings.iterations
        (['seed-0', 'seed-1', 'seed-2'], 100)
    """

    world: str
    agents: int | None
    options: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    settings: Settings = Settings()  # noqa: RUF009 (frozen)

    format: ClassVar[str] = "graphsnd-training"
    command: ClassVar[str] = "train"
    settings_kind: ClassVar[type[PPOSettings]] = Settings
    row: ClassVar[type[Row] | type[ControlRow]] = Row


@dataclass(frozen=True)
class ControlTask(AnyTask):
    """A training with control: every target with every design and every seed, all stacked.

    Args:
        agents: Size of the team.
        targets: Wanted diversities above 0, and the words ``"unconstrained"`` and ``"homogeneous"``.
        designs: As :func:`graphsnd.designs.parse` reads them; every target is run with each.
        seeds: One run for each, with the same networks and episodes in all arms.
        world: What :func:`~graphsnd.rl.worlds.parse_world` reads.
        options: Options of the world.
        settings: The rest.

    Raises:
        InputError: For repeats, unknown words, targets that are not above 0.

    Example:
        >>> [run.arm for run in ControlTask(4, (0.1, "unconstrained"), ("complete", "matching")).runs()]
        ['complete', 'matching', 'unconstrained']
    """

    agents: int
    targets: tuple[float | str, ...]
    designs: tuple[str, ...] = ("complete",)
    seeds: tuple[int, ...] = (0,)
    world: str = "dispersion"
    options: dict[str, Any] = field(default_factory=lambda: dict(DISPERSION))
    settings: ControlSettings = ControlSettings()  # noqa: RUF009 (frozen)

    format: ClassVar[str] = "graphsnd-control"
    command: ClassVar[str] = "control"
    settings_kind: ClassVar[type[PPOSettings]] = ControlSettings
    row: ClassVar[type[Row] | type[ControlRow]] = ControlRow
    # A training that was saved before there was a choice goes on as it was.
    settings_before: ClassVar[dict[str, Any]] = {"bfloat16": False}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("agents", self.agents, "to be an integer, at least 2", low=2)
        for name in ("targets", "designs"):
            check_type(name, getattr(self, name), (list, tuple), "to be a list")
        store(self, targets=tuple(map(_check_target, self.targets)), designs=tuple(self.designs))
        for text in self.designs:
            check_type("designs", text, str, "to be texts such as bernoulli:0.1")
            designs.parse(text, "designs")
        for name in ("targets", "designs", "seeds"):
            check_different(name, getattr(self, name))

    def runs(self) -> list[Run]:
        """Return the runs in the order in which they are stacked: arm by arm, target by target, seed by seed."""
        numbers = [target for target in self.targets if not isinstance(target, str)]
        words = [target for target in self.targets if isinstance(target, str)]
        controlled = [Run(arm, float(t), seed) for arm in self.designs for t in numbers for seed in self.seeds]
        return controlled + [Run(word, None, seed) for word in words for seed in self.seeds]

    def run_names(self) -> list[str]:
        """Return the name of every run's folder, in the order of their rows."""
        return [run_folder(run) for run in self.runs()]

    def groups(self, device: torch.device) -> list[Group]:
        """Return the arms of :meth:`runs`, each with its controller."""
        groups: list[Group] = []
        for arm, runs in groupby(self.runs(), lambda run: run.arm):
            targets, start = [run.target for run in runs], groups[-1].rows.stop if groups else 0
            groups.append(Group(self._make_controller(arm, targets, device), slice(start, start + len(targets)), arm))
        return groups

    def _make_controller(self, arm: str, targets: Sequence[float | None], device: torch.device) -> Controller:
        if arm in FREE:
            return FREE[arm]()
        return DiCo(
            torch.tensor(targets, dtype=torch.float64, device=device),
            tau=self.settings.tau,
            bootstrap=Bootstrap(self.settings.bootstrap),
            bounds=self.settings.bounds,
            design=arm,
            through=self.settings.through,
        )

    def make_trainer(self, device: str = "cpu", *, capture: bool = True) -> Trainer:
        """Return a trainer before its first iteration.

        Runs with the same seed start with the same networks and the same episodes in every arm: arms are paired.
        """
        seeds = [run.seed for run in self.runs()]
        return Trainer(self.make_world(device), self.settings, seeds=seeds, method=self._make_method, capture=capture)

    def _make_method(self, world: World, _: PPOSettings, streams: Sequence[Streams], seeds: Sequence[int]) -> Method:
        policy, critic = make_networks(world, self.settings, streams)
        control = DiversityControl(policy, self.runs(), self.groups(world.device), self.settings, world)
        return Method(policy, critic, ControlledLearner(policy, critic, self.settings), control)


def _check_target(target: Any) -> float | str:
    """Return a target as a float, or as the word it is."""
    plain = target if isinstance(target, str) else number(target)
    if plain not in FREE if isinstance(plain, str) else not 0 < plain < math.inf:
        raise InputError("targets", f"to be numbers above 0, {' or '.join(FREE)}", repr(target))
    return plain


def cut_grid(task: Task | ControlTask, device: str = "cpu", *, stack: int = 0) -> list[Task] | list[ControlTask]:
    """Cut a grid of runs into stacks, each a task of its own, by a rule of the grid and the kind of device alone.

    A stack has one design, and seeds before targets. On a CPU it has one thread, up to 4 runs, and fewer where the
    largest product of a gradient step would ask for a second thread (see ``choose_threads``); on a GPU up to 12 runs.
    The bits of a run depend on its stack and its threads, so this does not look at how many workers there are.

    Args:
        task: Task of all runs.
        device: ``"cpu"`` or ``"cuda"``.
        stack: Runs of a stack; 0 for the rule.

    Example:
        >>> from graphsnd.rl import Settings
        >>> grid = Task("navigation", 2, seeds=tuple(range(6)), settings=Settings(minibatch=64))
        >>> [part.seeds for part in cut_grid(grid)]
        [(0, 1, 2), (3, 4, 5)]
        >>> [part.run_names() for part in cut_grid(ControlTask(4, (0.1, "homogeneous"), seeds=(0, 1)), stack=2)]
        [['complete-target-0.1-seed-0', 'complete-target-0.1-seed-1'], ['homogeneous-seed-0', 'homogeneous-seed-1']]
    """
    check_choice("device", device, MOST)
    check_integer("stack", stack, "to be an integer, at least 0", low=0)
    check_different("seeds", task.seeds)
    most = stack or _fit(task, device)
    settings: Any = task.settings.replace(threads=task.settings.threads or 1)
    seeds = _split(task.seeds, most)
    if not isinstance(task, ControlTask):
        return [dataclasses.replace(task, seeds=part, settings=settings) for part in seeds]
    words = [(target,) for target in task.targets if isinstance(target, str)]
    numbers = _split(tuple(t for t in task.targets if not isinstance(t, str)), max(1, most // len(task.seeds)))
    arms: Any = product([*product(task.designs, numbers), *product(task.designs[:1], words)], seeds)
    return [dataclasses.replace(task, designs=(d,), targets=t, seeds=s, settings=settings) for (d, t), s in arms]


def _fit(task: Task | ControlTask, device: str) -> int:
    agents = task.make_world("cpu").agents
    brief = (BRIEF - 1) // largest_product(task.settings, agents) if device == "cpu" else MOST[device]
    return max(1, min(MOST[device], brief))


def _split(values: tuple[T, ...], most: int) -> list[tuple[T, ...]]:
    """Return consecutive parts of at most ``most`` values whose sizes differ by at most one."""
    size, count = len(values), -(-len(values) // most)
    return [values[size * place // count : size * (place + 1) // count] for place in range(count)]


def load_task(saved: Any, where: Path) -> Task | ControlTask:
    """Return the task of either kind that :meth:`AnyTask.to_dict` saved; other errors are those of ``from_dict``."""
    controlled = isinstance(saved, dict) and saved.get("format") == ControlTask.format
    return (ControlTask if controlled else Task).from_dict(saved, where)


PAPER_NAVIGATION = {"world_spawning_x": 4.0, "world_spawning_y": 4.0, "agent_radius": 0.03, "horizon": 200}
PRESETS: dict[str, Task] = {
    # The paper's run with 100 agents.
    "navigation": Task("navigation", 100, PAPER_NAVIGATION),
    # The same world for a team that is to get to its goals: each agent is rewarded for its own way. With the reward
    # shared, an agent's critic learns that it is late, and rewards are few, when its agent is near the goal; so it
    # counts against coming near, more than that way is worth. And a contact that costs as much as 30 steps
    # of the way drowns the way in noise, where there are 100 agents (docs/training.md).
    "navigation-100": Task(
        "navigation",
        100,
        {**PAPER_NAVIGATION, "shared_rew": False, "agent_collision_penalty": -0.1},
        settings=Settings(
            environments=64, minibatch=1024, learning_rate=1e-3, anneal=True, entropy_coefficient=0.0, iterations=400
        ),
    ),
    # Four agents that get to their goals within 100 iterations. The paper's table on the same world, with the reward
    # shared, leaves a third to a half of them short of it: each agent is then rewarded for what the other three do.
    "navigation-small": Task(
        "navigation",
        4,
        {"shared_rew": False, "horizon": 200},
        settings=Settings(
            environments=64, learning_rate=1e-3, entropy_coefficient=0.0, iterations=100, diversity_probability=0.5
        ),
    ),
    # The paper's second task. Its code made 20 rollouts of 25 steps for every agent and used them for that agent
    # alone; here all agents learn from the same 20.
    "simple_spread": Task(
        "simple_spread",
        10,
        {"horizon": 25},
        settings=Settings(
            steps=25, environments=20, minibatch=256, activation="relu", init="linear", actor_gain=1.0, iterations=500
        ),
    ),
}
CONTROL_PRESETS: dict[str, ControlSettings] = {
    "paper": ControlSettings(),
    # For a CPU: a hundredth of the work of an iteration, with steps that are larger in return. An iteration has 120
    # steps; with the paper's tau the estimate would lag behind by 100 of them.
    "small": ControlSettings(
        environments=32, epochs=30, minibatch=800, learning_rate=1e-4, hidden=(64, 64), observations=512,
        audit_observations=1024, iterations=40, tau=0.05,
    ),
}  # fmt: skip
