"""The task of a training, in values that JSON can hold: world, seeds, settings, and targets of a controller."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any, TypeVar

import torch
from typing_extensions import Self

from graphsnd import designs
from graphsnd.control import Controller, DiCo, Homogeneous, Seek, Unconstrained
from graphsnd.errors import MOST_AGENTS, InputError, check_integer, check_type, number
from graphsnd.rl.controlled import ControlledLearner, make_networks
from graphsnd.rl.dico import DiversityControl, Group
from graphsnd.rl.log import Run, run_folder
from graphsnd.rl.method import Method
from graphsnd.rl.settings import BRIEF, Settings, check_different, largest_product
from graphsnd.rl.streams import Streams
from graphsnd.rl.trainer import Trainer, independent
from graphsnd.rl.worlds import World, parse_world
from graphsnd.rl.worlds.world import store

FORMAT, VERSION = "graphsnd-training", 2
MOST = {"cpu": 4, "cuda": 12}  # runs of a stack; more gain little where a core or a GPU is busy with these
T = TypeVar("T")
FREE: dict[str, type[Unconstrained] | type[Homogeneous]] = {"unconstrained": Unconstrained, "homogeneous": Homogeneous}
TARGETS = f"to be numbers, at least 0, {', '.join(FREE)} or seek:LOW:HIGH"


@dataclass(frozen=True)
class Task:
    """A training of some runs, stacked: one for each seed, or with control one for each target, design and seed.

    Args:
        world: Name or world, as :func:`~graphsnd.rl.worlds.parse_world` reads it.
        agents: Size of the team; the world's default when None.
        options: Options of the world.
        seeds: Seeds, one run for each, with the same networks and episodes in all arms.
        target: Target of control: a diversity, ``"unconstrained"``, ``"homogeneous"`` (or 0), ``"seek:0.05:0.8"`` to
            look for the best level between two (:class:`~graphsnd.control.Seek`, with the first design), or several of
            these; kept as a tuple. None for independent policies.
        design: Pairs that the controller measures, as :func:`graphsnd.designs.parse` reads it; one or several. Every
            target is run with each.
        settings: Settings of the training.

    Raises:
        InputError: For repeats, unknown words, targets that are not above 0.

    Example:
        >>> task = Task("navigation", 8, {"lidar_range": 0.5}, seeds=(0, 1, 2), settings=Settings(iterations=100))
        >>> task.run_names(), task.settings.iterations
        (['seed-0', 'seed-1', 'seed-2'], 100)
        >>> Task("dispersion", 4, target=(0.1, "unconstrained"), design=("complete", "matching")).run_names()
        ['complete-target-0.1-seed-0', 'matching-target-0.1-seed-0', 'unconstrained-seed-0']
    """

    world: str
    agents: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    target: Any = None  # None, or a tuple of numbers and words
    design: Any = ("complete",)  # a tuple of texts
    settings: Settings = Settings()  # noqa: RUF009 (frozen)

    def __post_init__(self) -> None:
        check_type("settings", self.settings, Settings, "to be Settings")
        check_type("seeds", self.seeds, (list, tuple), "to be a list of integers")
        expected = "to hold integers, at least 0"
        store(self, seeds=tuple(check_integer("seeds", seed, expected, low=0) for seed in self.seeds))
        if self.agents is not None:
            expected = f"to be an integer in 1 .. {MOST_AGENTS}"
            store(self, agents=check_integer("agents", self.agents, expected, low=1, high=MOST_AGENTS))
        store(self, design=_as_tuple(self.design))
        for text in self.design:
            check_type("design", text, str, "to be texts such as bernoulli:0.1")
            designs.parse(text, "design")
        if self.target is not None:
            store(self, target=tuple(map(check_target, _as_tuple(self.target))))
            for name in ("target", "design", "seeds"):
                check_different(name, getattr(self, name))

    def runs(self) -> list[Run]:
        """Return the runs in the order in which they are stacked: by arm, then target, then seed."""
        if self.target is None:
            return [Run("", None, seed) for seed in self.seeds]
        numbers = [target for target in self.target if not isinstance(target, str)]
        words = [target for target in self.target if isinstance(target, str)]
        controlled = [Run(arm, target, seed) for arm in self.design for target in numbers for seed in self.seeds]
        return controlled + [Run(word, None, seed) for word in words for seed in self.seeds]

    def run_names(self) -> list[str]:
        """Return the name of every run's folder, in the order of their rows."""
        return [run_folder(run) for run in self.runs()]

    def with_iterations(self, iterations: int) -> Self:
        """Return the same task, longer or shorter."""
        return dataclasses.replace(self, settings=self.settings.replace(iterations=iterations))

    def make_world(self, device: str) -> World:
        """Return the world, on ``device``."""
        return parse_world(self.world, self.agents, self.settings.environments, device=device, **self.options)

    def make_trainer(self, device: str = "cpu", *, capture: bool = True) -> Trainer:
        """Return a trainer before its first iteration.

        Runs with the same seed start with the same networks and the same episodes in every arm: arms are paired.

        Args:
            device: ``"cpu"`` or ``"cuda"``.
            capture: Passed to :class:`~graphsnd.rl.Trainer`.
        """
        seeds, method = [run.seed for run in self.runs()], self._control if self.target else independent
        return Trainer(self.make_world(device), self.settings, seeds=seeds, method=method, capture=capture)

    def _control(self, world: World, settings: Settings, streams: Sequence[Streams], seeds: Sequence[int]) -> Method:
        policy, critic = make_networks(world, settings, streams)
        control = DiversityControl(policy, self.runs(), self.groups(world.device), settings, world)
        return Method(policy, critic, ControlledLearner(policy, critic, settings), control)

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
        names = ("tau", "bootstrap", "bounds", "differentiable")
        options: dict[str, Any] = {name: getattr(self.settings, name) for name in names}
        if ends := read_range(arm):
            return Seek(ends, design=self.design[0], **options)
        return DiCo(torch.tensor(targets, dtype=torch.float64, device=device), design=arm, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that is ready for JSON."""
        return {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, saved: Any, where: Path) -> Self:
        """Return the task that :meth:`to_dict` saved.

        Raises:
            InputError: When it is something else, or of another version.
        """
        if not isinstance(saved, dict) or saved.get("format") != FORMAT or saved.get("version") != VERSION:
            raise InputError("checkpoint", f"of format {FORMAT!r}, version {VERSION}", f"another in {where}")
        try:
            parts = {part.name: saved[part.name] for part in dataclasses.fields(cls)}
            return cls(**parts | {"settings": Settings(**parts["settings"])})
        except (KeyError, TypeError) as error:
            raise InputError("checkpoint", f"with a complete task in {where}", f"trouble with {error}") from None


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def check_target(target: Any, name: str = "target") -> float | str:
    """Return a target as a float, or as the word it is; 0 is homogeneous."""
    if isinstance(target, str):
        if target not in FREE and read_range(target) is None:
            raise InputError(name, TARGETS, repr(target))
        return target
    plain = number(target)
    if not 0 <= plain < math.inf:
        raise InputError(name, TARGETS, repr(target))
    return plain or "homogeneous"


def read_range(word: str) -> tuple[float, float] | None:
    """Return lowest and highest level of ``seek:LOW:HIGH``; None for another word.

    Example:
        >>> read_range("seek:0.05:0.8"), read_range("unconstrained")
        ((0.05, 0.8), None)
    """
    try:
        kind, low, high = word.split(":")
        ends = float(low), float(high)
    except ValueError:
        return None
    return ends if kind == "seek" and 0 < ends[0] < ends[1] < math.inf else None


def cut_grid(task: Task, device: str = "cpu", *, stack: int = 0) -> list[Task]:
    """Cut a grid of runs into stacks, each a task of its own, by a rule of the grid and the kind of device alone.

    A stack has one design, and seeds before targets. On a CPU it has one thread, up to 4 runs, and fewer where the
    largest product of a gradient step would ask for a second thread (see ``choose_threads``); on a GPU up to 12 runs.
    The bits of a run depend on its stack and its threads, so this does not look at how many workers there are.

    Args:
        task: Task of all runs.
        device: ``"cpu"`` or ``"cuda"``.
        stack: Runs of a stack; 0 for the rule.

    Example:
        >>> grid = Task("navigation", 2, seeds=tuple(range(6)), settings=Settings(minibatch=64))
        >>> [part.seeds for part in cut_grid(grid)]
        [(0, 1, 2), (3, 4, 5)]
        >>> grid = Task("dispersion", 4, seeds=(0, 1), target=(0.1, "homogeneous"))
        >>> [part.run_names() for part in cut_grid(grid, stack=2)]
        [['complete-target-0.1-seed-0', 'complete-target-0.1-seed-1'], ['homogeneous-seed-0', 'homogeneous-seed-1']]
    """
    check_different("seeds", task.seeds)
    most = stack or _fit(task, device)
    settings = task.settings.replace(threads=task.settings.threads or 1)
    seeds = _split(task.seeds, most)
    if task.target is None:
        return [dataclasses.replace(task, seeds=part, settings=settings) for part in seeds]
    words = [(target,) for target in task.target if isinstance(target, str)]
    numbers = _split(tuple(t for t in task.target if not isinstance(t, str)), max(1, most // len(task.seeds)))
    arms: Any = product([*product(task.design, numbers), *product(task.design[:1], words)], seeds)
    return [dataclasses.replace(task, design=(d,), target=t, seeds=s, settings=settings) for (d, t), s in arms]


def _fit(task: Task, device: str) -> int:
    agents = task.make_world("cpu").agents
    brief = (BRIEF - 1) // largest_product(task.settings, agents) if device == "cpu" else MOST[device]
    return max(1, min(MOST[device], brief))


def _split(values: tuple[T, ...], most: int) -> list[tuple[T, ...]]:
    """Return consecutive parts of at most ``most`` values whose sizes differ by at most one."""
    size, count = len(values), -(-len(values) // most)
    return [values[size * place // count : size * (place + 1) // count] for place in range(count)]
