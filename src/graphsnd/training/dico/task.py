"""Which runs there are: seeds, targets and estimators, as JSON can say them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphsnd import designs
from graphsnd.control import Bootstrap, Controller, DiCo, Homogeneous, Unconstrained
from graphsnd.designs import Complete, Design
from graphsnd.errors import InputError, check_integer
from graphsnd.training.dico.settings import ControlSettings
from graphsnd.worlds import World, parse_world

FORMAT, VERSION = "graphsnd-control", 1
FREE: dict[str, type[Unconstrained] | type[Homogeneous]] = {"unconstrained": Unconstrained, "homogeneous": Homogeneous}
# The task file of the reference is lost; the food's radius is the one whose first rewards agree with its log.
DISPERSION = {"food_radius": 0.08, "share_reward": True, "horizon": 100}


@dataclass(frozen=True)
class Run:
    """One team that is trained."""

    arm: str  # the estimator of its controller, or "unconstrained" or "homogeneous"
    target: float | None  # None where nothing is controlled
    seed: int


@dataclass(frozen=True, eq=False)
class Group:
    """Runs beside each other that share a design, and so one controller with a target for each."""

    controller: Controller
    design: Design
    rows: slice  # of the stacked runs
    arm: str


@dataclass(frozen=True)
class ControlTask:
    """Everything that a training with control is made from.

    Args:
        agents: Size of the team.
        targets: Wanted diversities above 0, and the words ``"unconstrained"`` and ``"homogeneous"``.
        estimators: As :func:`graphsnd.designs.parse` reads them; every target is run with each.
        seeds: One run for each, with the same networks and episodes in all arms.
        world: What :func:`~graphsnd.worlds.parse_world` reads.
        options: Of the world.
        settings: The rest.

    Raises:
        InputError: For repeats, unknown words, targets that are not above 0.

    Example:
        >>> [run.arm for run in ControlTask(4, (0.1, "unconstrained"), ("complete", "matching")).runs()]
        ['complete', 'matching', 'unconstrained']
    """

    agents: int
    targets: tuple[float | str, ...]
    estimators: tuple[str, ...] = ("complete",)
    seeds: tuple[int, ...] = (0,)
    world: str = "dispersion"
    options: dict[str, Any] = field(default_factory=lambda: dict(DISPERSION))
    settings: ControlSettings = field(default_factory=ControlSettings)

    def __post_init__(self) -> None:
        check_integer("agents", self.agents, "to be an integer, at least 2", low=2)
        for seed in self.seeds:
            check_integer("seeds", seed, "to hold integers, at least 0", low=0)
        for target in self.targets:
            if isinstance(target, str) and target not in FREE:
                raise InputError("targets", f"to be numbers above 0, {' or '.join(FREE)}", repr(target))
            if not isinstance(target, str):
                DiCo(target)
        for text in self.estimators:
            designs.parse(text, "estimators")
        for name in ("targets", "estimators", "seeds"):
            given = getattr(self, name)
            if not given or len(set(given)) < len(given):
                raise InputError(name, "to be different, at least one", given)

    def runs(self) -> list[Run]:
        """In the order in which they are stacked: arm by arm, target by target, seed by seed."""
        numbers = [target for target in self.targets if not isinstance(target, str)]
        words = [target for target in self.targets if isinstance(target, str)]
        found = [Run(arm, float(t), seed) for arm in self.estimators for t in numbers for seed in self.seeds]
        return found + [Run(word, None, seed) for word in words for seed in self.seeds]

    def groups(self, device: torch.device) -> list[Group]:
        """The arms of :meth:`runs`, each with its controller."""
        runs, found, start = self.runs(), [], 0
        for arm in dict.fromkeys(run.arm for run in runs):
            targets = [run.target for run in runs if run.arm == arm]
            rows = slice(start, start + len(targets))
            start += len(targets)
            if arm in FREE:
                found.append(Group(FREE[arm](), Complete(), rows, arm))
                continue
            design = designs.parse(arm)
            dico = DiCo(
                torch.tensor(targets, dtype=torch.float64, device=device),
                tau=self.settings.tau,
                bootstrap=Bootstrap(self.settings.bootstrap),
                bounds=self.settings.bounds,
                design=design,
                through=self.settings.through,
            )
            found.append(Group(dico, design, rows, arm))
        return found

    def make_world(self, device: str) -> World:
        """The world, on ``device``."""
        return parse_world(self.world, self.agents, self.settings.environments, device=device, **self.options)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, found: Any, where: Path) -> ControlTask:
        """What :meth:`to_dict` gave.

        Raises:
            InputError: When it is something else, or of another version.
        """
        if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != VERSION:
            raise InputError("checkpoint", f"of format {FORMAT!r}, version {VERSION}", f"another in {where}")
        parts = {part.name: found[part.name] for part in dataclasses.fields(cls)}
        for name in ("targets", "estimators", "seeds"):
            parts[name] = tuple(parts[name])
        # A training that was saved before there was a choice goes on as it was.
        settings = {"bfloat16": False, **parts["settings"]}
        return cls(**parts | {"settings": ControlSettings().replace(**settings)})
