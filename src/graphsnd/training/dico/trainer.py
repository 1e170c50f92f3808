"""The trainer: runs of all arms, stacked, one iteration at a time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy, ControlledTeam, audit
from graphsnd.control.policy import joined, stacked
from graphsnd.kernels.networks import engine_for
from graphsnd.teams import StackedMLP
from graphsnd.training.capture import Program
from graphsnd.training.dico.frames import Frames, shown
from graphsnd.training.dico.learner import SUMS, Learner
from graphsnd.training.dico.log import ControlRow
from graphsnd.training.dico.rollout import Memory, collect, head_of
from graphsnd.training.dico.stopwatch import Stopwatch
from graphsnd.training.dico.task import ControlTask
from graphsnd.training.episodes import make_episodes
from graphsnd.training.sampling import fill_noise
from graphsnd.training.state import below, copy_into
from graphsnd.training.streams import Streams, hashed
from graphsnd.training.trainer import rounded_products
from graphsnd.worlds import Discrete, World

GRAPHS = 200  # tells the seeds of estimators' draws from those of the streams


class ControlTrainer:
    """IPPO with controlled diversity, as in DiCo, on the runs of a task.

    Runs with the same seed begin with the same networks and the same episodes in every arm, and have random streams of
    their own: arms are paired, and a run comes out as it would alone, up to rounding.

    Args:
        task: Which runs.
        device: ``"cpu"`` or ``"cuda"``.
        capture: Whether to record the rollout and the optimisers' steps as CUDA graphs.

    Attributes:
        iteration: Iterations that are done.

    Example:
        >>> from graphsnd.training.dico import ControlSettings
        >>> settings = ControlSettings(environments=2, steps=4, passes=1, hidden=(8,))
        >>> trainer = ControlTrainer(ControlTask(3, (0.1,), ("full", "matching"), settings=settings))
        >>> [row.arm for row in trainer.step()]
        ['full', 'matching']
    """

    def __init__(self, task: ControlTask, device: str = "cpu", *, capture: bool = True) -> None:
        self.task, self.settings, self.runs = task, task.settings, task.runs()
        self.world = task.make_world(device)
        self.device = self.world.device
        self.streams = [Streams.make(run.seed, self.device) for run in self.runs]
        policy, critics = self._networks(self.world)
        self.learner = Learner(policy, critics, task.groups(self.device), self.settings, capture=capture)
        self.memory = Memory.empty(self.world, self.settings, policy)
        self.episodes = make_episodes(self.world, self.settings.environments, self.settings.steps, self.streams)
        self.iteration = 0

        def rollout() -> None:
            collect(self.world, policy, critics, self.episodes, self.memory)

        moving = list(self.episodes.tensors().values())
        self.rollout = Program(rollout, moving, self.device, capture=capture and self.episodes.capturable)

    def _networks(self, world: World) -> tuple[ControlledPolicy, StackedMLP]:
        discrete = isinstance(world.actions, Discrete)
        actions = world.actions.count if isinstance(world.actions, Discrete) else world.actions.features
        settings, sources = self.settings, [each.weights for each in self.streams]
        policy = ControlledPolicy.create(
            world.agents,
            world.observation_features,
            actions,
            generators=sources,
            hidden=settings.hidden,
            activation=settings.activation,
            kind="categorical" if discrete else "tanh-normal",
            device=self.device,
        )
        sizes = (world.observation_features, *settings.hidden, 1)
        critics = joined([stacked((world.agents,), sizes, each, settings.activation) for each in sources], self.device)
        networks = (policy.shared, policy.deviations, critics)
        engine = engine_for([each.sizes for each in networks], self.device, bfloat16=settings.bfloat16)
        for network in networks:
            network.engine = engine
        return policy, critics

    def step(self, progress: Callable[[int], None] = lambda done: None) -> list[ControlRow]:
        """One iteration: act, audit, learn.

        Args:
            progress: Called with the number of optimiser steps done.

        Returns:
            A row for each run.
        """
        watch = Stopwatch(self.device)
        for run, streams in enumerate(self.streams):
            fill_noise(self.memory.noise[run], head_of(self.learner.policy), streams.actions)
        scale = self.learner.scale()
        self.memory.scale.copy_(scale)
        with rounded_products(self.device, self.settings.tf32), watch("rollout"):
            self.rollout()
        with watch("audit"):
            audits = self.audit(scale)
        self.iteration += 1
        with rounded_products(self.device, self.settings.tf32), watch("learn"):
            generators = [hashed(run.seed, GRAPHS, self.iteration) for run in self.runs]
            frames = Frames.of(self.memory, self.settings, self.learner.policy.deviations.engine)
            self.learner.update(frames, self._shuffle, generators, watch, progress)
        self.episodes.refill()
        return self._rows(audits, watch.read())

    def audit(self, scale: Tensor) -> Tensor:
        """SND over all pairs at these scales on observations of the last rollout, ``[runs]``; read by nobody else."""
        seen = self.memory.observations.flatten(1, 2)
        frames, agents = seen.shape[1:3]
        count = min(self.settings.audit_observations, frames * agents)
        frame, agent = shown(min(count, frames), agents, count)
        frame = frame * frames // min(count, frames)  # evenly over the rollout, which is not in random order
        chosen = seen[:, frame.to(self.device), agent.to(self.device)]
        policy = self.learner.policy
        return torch.stack([audit(policy.team(run, scale[run]), chosen[run]) for run in range(len(self.runs))])

    def team(self, run: int) -> ControlledTeam:
        """A copy of one run's policies at their present scale."""
        return self.learner.policy.team(run, self.learner.scale()[run])

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training goes on from, by reference, and where the random streams stand."""
        found = self.learner.tensors()
        found |= {f"episodes.{name}": part for name, part in self.episodes.tensors().items()}
        for run, streams in enumerate(self.streams):
            found |= {f"streams.{run}.{name}": part for name, part in streams.state().items()}
        return found

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor], iteration: int) -> None:
        """Go back to where :meth:`tensors` was taken.

        Raises:
            InputError: When names or shapes are not those of this trainer.
        """
        copy_into(self.tensors(), tensors)
        for run, streams in enumerate(self.streams):
            streams.load(below(f"streams.{run}.", tensors))
        self.learner.rested = self.learner.inside.at_rest()
        self.iteration = iteration

    def _shuffle(self) -> Tensor:
        """A permutation of the frames for every run, from its own stream."""
        count = self.settings.frames
        return torch.stack(
            [torch.randperm(count, generator=each.shuffles, device=self.device) for each in self.streams]
        )

    def _rows(self, audits: Tensor, seconds: dict[str, float]) -> list[ControlRow]:
        rewards = self.memory.rewards.mean((1, 2, 3))
        head = torch.stack([rewards.double(), audits.double(), self.learner.estimates()])
        numbers = torch.cat([head, self.learner.sums]).T.tolist()
        steps = self.settings.optimiser_steps
        measuring = sum(each for name, each in seconds.items() if ":" in name)
        learning = seconds["learn"] - measuring
        observations = min(
            self.settings.observations, self.task.agents * min(self.settings.minibatch, self.settings.frames)
        )
        rows = []
        for run, (reward, audited, estimate, *sums) in zip(self.runs, numbers, strict=True):
            total = dict(zip(SUMS, sums, strict=True))
            scale = total["scale"] / steps
            rows.append(
                ControlRow(
                    iteration=self.iteration,
                    arm=run.arm,
                    target=run.target,
                    seed=run.seed,
                    reward=reward,
                    estimate=estimate,
                    scale=scale,
                    applied=estimate * scale,
                    audit=audited,
                    tracking_error=_error(estimate * scale, run.target),
                    audit_error=_error(audited, run.target),
                    saturated=int(total["saturated"]),
                    zero=int(total["zero"]),
                    empty=int(total["empty"]),
                    invalid=int(total["invalid"]),
                    value_loss=total["value_loss"] / steps,
                    overflow=total["overflow"] / steps,
                    observations=observations,
                    rollout_seconds=seconds["rollout"],
                    policy_seconds=seconds[f"policies:{run.arm}"],
                    distance_seconds=seconds[f"distances:{run.arm}"],
                    update_seconds=learning,
                    audit_seconds=seconds["audit"],
                )
            )
        return rows


def _error(value: float, target: float | None) -> float | None:
    return None if target is None else abs(value - target) / target
