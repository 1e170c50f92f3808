"""The trainer: several runs of a team, stacked, one iteration at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_integer
from graphsnd.teams import StackedTeam
from graphsnd.training.capture import Program
from graphsnd.training.diversity import Diversity, diversity, evenly
from graphsnd.training.episodes import make_episodes
from graphsnd.training.log import Row
from graphsnd.training.policies import Policies
from graphsnd.training.rollout import Memory, collect
from graphsnd.training.sampling import fill_noise
from graphsnd.training.settings import Settings
from graphsnd.training.state import below, copy_into
from graphsnd.training.streams import Streams, hashed
from graphsnd.training.update import Adam, update
from graphsnd.worlds import World

GRAPHS = 100  # tells the seeds of sampled graphs from those of the streams


class Trainer:
    """Independent PPO: every agent of every run has an actor and a critic of its own and learns by itself.

    Runs with different seeds are stacked into the same tensors. Each has its own random streams, so a run comes out as
    it would alone, up to the rounding of products that are batched differently.

    Args:
        world: Where agents act. Its device is where everything is; its number of environments is not read.
        settings: What PPO is told.
        seeds: One for each run, all different.
        capture: Whether to record rollout and update as CUDA graphs; by default wherever the world allows it.

    Attributes:
        iteration: Iterations that are done.

    Raises:
        InputError: For no seed or equal ones, fewer than two agents, or several seeds of a simulator whose state is
            not a tensor.

    Example:
        >>> from graphsnd.worlds import Navigation
        >>> trainer = Trainer(Navigation(3, 4), Settings(steps=8, environments=4, minibatch=16), seeds=(0, 1))
        >>> [row.seed for row in trainer.step()]
        [0, 1]
    """

    def __init__(
        self, world: World, settings: Settings | None = None, *, seeds: Sequence[int] = (0,), capture: bool = True
    ) -> None:
        self.world, self.settings = world, settings or Settings()
        self.seeds = tuple(check_integer("seeds", seed, "to hold integers, at least 0", low=0) for seed in seeds)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError("seeds", "to be different, at least one", seeds)
        if world.agents < 2:
            raise InputError("world", "with at least 2 agents, as diversity is between agents", world.agents)
        self.streams = [Streams.make(seed, world.device) for seed in self.seeds]
        self.policies = Policies(world, self.settings, self.streams)
        self.adam = Adam(self.policies.flat)
        self.episodes = make_episodes(world, self.settings.environments, self.settings.steps, self.streams)
        self.memory = Memory.empty(world, self.settings, self.policies)
        runs = len(self.seeds)
        self.shuffles = torch.zeros(runs, self.settings.epochs, self.settings.samples, dtype=torch.long)
        self.shuffles = self.shuffles.to(world.device)
        self.stats = torch.zeros(runs, 4, device=world.device)
        self.iteration = 0
        self._warm = False
        self._make_programs(capture and self.episodes.capturable)

    def _make_programs(self, capture: bool) -> None:
        device, settings = self.world.device, self.settings
        wait = not capture or device.type != "cuda"

        def rollout() -> None:
            collect(self.world, self.policies, self.episodes, self.memory, restart=settings.restart, wait=wait)

        def learn() -> None:
            update(self.policies, self.adam, self.memory, self.shuffles, self.stats, settings)

        moving = list(self.episodes.tensors().values())
        self.rollout = Program(rollout, moving, device, capture=capture)
        self.learn = Program(learn, [self.policies.flat, *self.adam.tensors().values()], device, capture=capture)

    def step(self, *, measure: bool | None = None) -> list[Row]:
        """One iteration: act, learn, and measure diversity where it is due.

        Args:
            measure: Whether to measure diversity; by the settings when None.

        Returns:
            A row for each run.
        """
        self._draw()
        start = self._now()
        with rounded_products(self.world.device, self.settings.tf32):
            self.rollout()
            acted = self._now()
            self.learn()
            learnt = self._now()
        self.episodes.refill()
        self.iteration += 1
        due = self._due() if measure is None else measure
        found: Sequence[Diversity | None] = self.measure() if due else [None] * len(self.seeds)
        return self._rows(found, acted - start, learnt - acted)

    def measure(self) -> Sequence[Diversity]:
        """Diversity of every run on the observations of the last rollout."""
        if not self._warm:
            # Kernels are compiled by their first call, which is no part of what they cost.
            self._warm = True
            self._measure(0)
        return [self._measure(run) for run in range(len(self.seeds))]

    def observations(self, run: int) -> Tensor:
        """Pooled observations of a run's last rollout, as many as diversity is measured on: ``[rows, features]``."""
        seen = self.memory.observations[run]
        return evenly(seen, self.settings.diversity_observations)

    def _measure(self, run: int) -> Diversity:
        return diversity(
            self.policies.team(run),
            self.memory.observations[run],
            most=self.settings.diversity_observations,
            probability=self.settings.diversity_probability,
            # Of the iteration, not of a stream: one measurement more must not change the next.
            generator=hashed(self.seeds[run], GRAPHS, self.iteration),
        )

    def team(self, seed: int) -> StackedTeam:
        """A copy of the actors that learnt with ``seed``, with its origin in ``about``."""
        about: dict[str, Any] = {"world": self.world.name, "seed": seed, "iteration": self.iteration}
        return self.policies.team(self.seeds.index(seed), about)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training goes on from, by reference, and where the random streams stand."""
        found = {"parameters": self.policies.flat}
        found |= {f"adam.{name}": part for name, part in self.adam.tensors().items()}
        found |= {f"episodes.{name}": part for name, part in self.episodes.tensors().items()}
        for seed, streams in zip(self.seeds, self.streams, strict=True):
            found |= {f"streams.{seed}.{name}": part for name, part in streams.state().items()}
        return found

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor], iteration: int) -> None:
        """Go back to where :meth:`tensors` was taken.

        Raises:
            InputError: When names or shapes are not those of this trainer.
        """
        copy_into(self.tensors(), tensors)
        for seed, streams in zip(self.seeds, self.streams, strict=True):
            streams.load(below(f"streams.{seed}.", tensors))
        self.iteration = iteration

    @property
    def eager(self) -> str | None:
        """Why the programs are not captured; None when they are."""
        return self.rollout.eager or self.learn.eager

    def _due(self) -> bool:
        every = self.settings.diversity_every
        first_or_last = self.iteration in (1, self.settings.iterations)
        return every > 0 and (first_or_last or self.iteration % every == 0)

    def _draw(self) -> None:
        """Noise and permutations of one iteration, each run's from its own streams."""
        for run, streams in enumerate(self.streams):
            fill_noise(self.memory.noise[run], self.policies.head, streams.actions)
            for epoch in self.shuffles[run]:
                torch.randperm(len(epoch), generator=streams.shuffles, out=epoch)

    def _rows(self, found: Sequence[Diversity | None], acting: float, learning: float) -> list[Row]:
        numbers = torch.cat([self.memory.rewards.mean((1, 2, 3)).unsqueeze(1), self.stats, self.memory.solved], 1)
        ended = self.memory.done.sum((1, 2)).tolist()
        rows = []
        for seed, each, episodes, one in zip(self.seeds, numbers.tolist(), ended, found, strict=True):
            reward, policy, value, entropy, kl, solved, counted = each
            rows.append(
                Row(
                    iteration=self.iteration,
                    seed=seed,
                    reward=reward,
                    episodes=episodes,
                    solved=solved / counted if counted else None,
                    policy_loss=policy,
                    value_loss=value,
                    entropy=entropy,
                    kl=kl,
                    rollout_seconds=acting,
                    update_seconds=learning,
                    **_measured(one),
                )
            )
        return rows

    def _now(self) -> float:
        if self.world.device.type == "cuda":
            torch.cuda.synchronize(self.world.device)
        return perf_counter()


def _measured(one: Diversity | None) -> dict[str, Any]:
    names = ("snd", "graph_snd", "snd_seconds", "graph_snd_seconds", "behavior_seconds")
    found = {name: None if one is None else getattr(one, name) for name in names}
    return found | {"snd_observations": None if one is None else one.observations}


@contextmanager
def rounded_products(device: torch.device, tf32: bool) -> Iterator[None]:
    """Let a GPU round matrix products inside, or not, and set things back afterwards. A CPU is left as it is."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
