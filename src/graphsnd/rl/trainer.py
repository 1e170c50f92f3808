"""The trainer: several runs of a team, stacked, one iteration at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_integer
from graphsnd.kernels.dispatch import available
from graphsnd.kernels.threads import limit_threads
from graphsnd.rl.cuda import CudaGraph, Stopwatch, matmul_precision, restored
from graphsnd.rl.diversity import DiversityLog
from graphsnd.rl.episodes import Bank
from graphsnd.rl.independent import CentralCritic, IndependentCritic, IndependentLearner, IndependentPolicy
from graphsnd.rl.log import Outcome, Row
from graphsnd.rl.method import Method
from graphsnd.rl.rollout import Minibatch, RolloutBuffer, collect, fill_noise
from graphsnd.rl.settings import BRIEF, Settings, check_different, largest_product
from graphsnd.rl.streams import NAMES, Streams
from graphsnd.rl.worlds import World
from graphsnd.teams import StackedTeam

MakeMethod = Callable[[World, Settings, Sequence[Streams], Sequence[int]], Method]


def independent(world: World, settings: Settings, streams: Sequence[Streams], seeds: Sequence[int]) -> Method:
    """Return independent PPO or MAPPO, with diversity measured every ``diversity_every`` iterations.

    Raises:
        InputError: For equal seeds: runs with the same seed would be the same.
    """
    check_different("seeds", seeds)
    policy = IndependentPolicy(world, settings, streams)
    critic = (CentralCritic if settings.critic == "central" else IndependentCritic)(world, settings, streams)
    learner = IndependentLearner(policy, critic, settings)
    return Method(policy, critic, learner, DiversityLog(policy, seeds, settings))


@dataclass(frozen=True, eq=False)
class CapturedStep:
    """A gradient step on a minibatch of one size, and the tensors it reads."""

    index: Tensor  # int64 [runs, samples]
    scale: Tensor | None  # [runs]
    graph: CudaGraph


class Trainer:
    """PPO on stacked runs: act, learn, and do what the companion does.

    Each run has its own random streams, so it comes out as it would alone, up to the rounding of products that are
    batched differently. Runs with the same seed start with the same networks and the same episodes.

    Args:
        world: Where agents act. Its device is where everything is; its number of environments is not read.
        settings: Settings of PPO.
        seeds: One for each run.
        method: Makes policies, critics, learner and companion; independent PPO by default.
        capture: Whether to capture rollout and gradient steps as CUDA graphs; by default wherever the world allows it.

    Attributes:
        iteration: Iterations that are done.

    Raises:
        InputError: For no seed or equal ones, or fewer than two agents.

    Example:
        >>> from graphsnd.rl.worlds import Navigation
        >>> trainer = Trainer(Navigation(3, 4), Settings(steps=8, environments=4, minibatch=16), seeds=(0, 1))
        >>> [row.seed for row in trainer.step()]
        [0, 1]
    """

    def __init__(
        self,
        world: World,
        settings: Settings | None = None,
        *,
        seeds: Sequence[int] = (0,),
        method: MakeMethod = independent,
        capture: bool = True,
    ) -> None:
        self.world, self.settings = world, settings or Settings()
        self.seeds = tuple(check_integer("seeds", seed, "to hold integers, at least 0", low=0) for seed in seeds)
        if not self.seeds:
            raise InputError("seeds", "to be different, at least one", seeds)
        if world.agents < 2:
            raise InputError("world", "with at least 2 agents, as diversity is between agents", world.agents)
        self.streams = [Streams.make(seed, world.device) for seed in self.seeds]
        made = method(world, self.settings, self.streams, self.seeds)
        self.policy, self.critic, self.learner, self.companion = made
        self.buffer = RolloutBuffer.empty(world, self.settings, len(self.seeds))
        self.episodes = Bank(world, self.settings.environments, self.settings.steps, self.streams)
        self.iteration = 0
        self.acts_briefly = is_brief(self, self.settings.environments)
        self._make_graphs(capture)

    def _make_graphs(self, capture: bool) -> None:
        device, capture = self.world.device, capture and self.world.device.type == "cuda"

        def rollout(steps: int | None = None) -> None:
            collect(
                self.world, self.policy, self.critic, self.episodes, self.buffer,
                restart=self.settings.restart, wait=not capture, steps=steps,
            )  # fmt: skip

        moving = list(self.episodes.tensors().values())
        self.rollout = CudaGraph(rollout, moving, device, capture=capture, warm_up=partial(rollout, 1))
        self.estimate_advantages = CudaGraph(
            lambda: self.buffer.estimate_advantages(self.settings), [], device, capture=capture
        )
        self.samples: Minibatch | None = None
        self.captures_steps = capture and self.learner.capturable
        self.captured: dict[int, CapturedStep] = {}
        if self.captures_steps and available()["gpu"] is None:
            self._compile(partial(rollout, 1), moving)

    def _compile(self, act: Callable[[], None], moving: Sequence[Tensor]) -> None:
        """Compile the Triton programs of acting and learning side by side, and leave everything as it is."""
        from graphsnd.kernels.gpu.ahead import compile_ahead

        changes = [*moving, *self.learner.tensors().values(), self.learner.sums]
        size = min(128, self.settings.minibatch, self.settings.samples)  # a tile; programs are the same for more
        index = torch.zeros(len(self.seeds), size, dtype=torch.int64, device=self.world.device)

        def work() -> None:
            act()
            samples = Minibatch.from_rollout(self.buffer, self.settings, self.policy.engine)
            self.learner.learn(samples.take(index, self.policy.engine), self.companion.scale())

        with matmul_precision(self.world.device, tf32=self.settings.tf32), restored(changes):
            compile_ahead(work)

    def step(self, *, progress: Callable[[int], None] = lambda done: None) -> Sequence[Row]:
        """Do one iteration: act, and learn from it.

        Args:
            progress: Called with the number of gradient steps done.

        Returns:
            A row for each run.
        """
        watch, device = Stopwatch(self.world.device), self.world.device
        for run, streams in enumerate(self.streams):
            fill_noise(self.buffer.noise[run], self.world.actions, streams.actions)
        self.companion.before_rollout()
        threads = 1 if self.acts_briefly else torch.get_num_threads()
        with matmul_precision(device, tf32=self.settings.tf32), watch("rollout"), limit_threads(threads):
            self.rollout()
        self.iteration += 1
        with watch("audit"):
            self.companion.after_rollout(self.buffer, self.iteration)
        with matmul_precision(device, tf32=self.settings.tf32), watch("update"), self.learner.update():
            self.update(watch, progress)
        self.episodes.refill()
        outcome = Outcome(self.iteration, self.buffer, self._numbers(), watch.read())
        return self.companion.rows(outcome)

    def _numbers(self) -> list[dict[str, Any]]:
        """Return reward and statistics of each run, means over steps."""
        rewards = self.buffer.rewards.mean((1, 2, 3)).unsqueeze(0)
        columns = torch.cat([rewards, self.learner.sums / self.settings.optimiser_steps]).T.tolist()
        names = ("reward", *self.learner.statistics)
        return [dict(zip(names, values, strict=True)) for values in columns]

    def update(self, watch: Stopwatch, progress: Callable[[int], None] = lambda done: None) -> None:
        """Learn from the rollout in the buffer: some epochs of gradient steps on minibatches.

        Args:
            watch: Counts what the companion does.
            progress: Called with the number of gradient steps done.
        """
        self.learner.sums.zero_()
        self.estimate_advantages()
        samples = Minibatch.from_rollout(self.buffer, self.settings, self.policy.engine)
        if self.samples is None or not self.captures_steps:
            self.samples = samples
        else:
            self.samples.copy_(samples)  # a captured step reads the same memory in every iteration
        done = 0
        for _ in range(self.settings.epochs):
            for index in self.draw_permutations().split(self.settings.minibatch, 1):
                scale = self.companion.before_step(self.samples, self.buffer, index, watch)
                self._learn(self.samples, index, scale)
                done += 1
                progress(done)

    def draw_permutations(self) -> Tensor:
        """Draw an order of the samples for every run from its own stream, int64 ``[runs, samples]``."""
        count, device = self.settings.samples, self.world.device
        return torch.stack([torch.randperm(count, generator=each.shuffles, device=device) for each in self.streams])

    def _learn(self, samples: Minibatch, index: Tensor, scale: Tensor | None) -> None:
        engine = self.policy.engine
        if not self.captures_steps:
            self.learner.learn(samples.take(index, engine), scale)
            return
        size = index.shape[1]
        if size not in self.captured:
            held_index, held_scale = torch.zeros_like(index), None if scale is None else torch.zeros_like(scale)
            changes = [*self.learner.tensors().values(), self.learner.sums]

            def learn() -> None:
                self.learner.learn(samples.take(held_index, engine), held_scale)

            graph = CudaGraph(learn, changes, index.device, capture=True)
            self.captured[size] = CapturedStep(held_index, held_scale, graph)
        step = self.captured[size]
        step.index.copy_(index)
        if step.scale is not None and scale is not None:
            step.scale.copy_(scale)
        step.graph()

    def team(self, seed: int) -> StackedTeam:
        """Return a copy of the independent actors that learnt with ``seed``, with its origin in ``about``.

        Raises:
            InputError: Where diversity is controlled.
        """
        if not isinstance(self.policy, IndependentPolicy):
            raise InputError("team", "of independent policies", "controlled ones", "Use trainer.companion.team(run).")
        about = {"world": self.world.name, "seed": seed, "iteration": self.iteration}
        return self.policy.team(self.seeds.index(seed), about)

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that training goes on from, by reference, and where the random streams stand."""
        state = self.learner.tensors() | self.companion.tensors()
        state |= {f"episodes.{name}": part for name, part in self.episodes.tensors().items()}
        for run, streams in enumerate(self.streams):
            state |= {f"streams.{run}.{name}": part for name, part in streams.state().items()}
        return state

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor], iteration: int) -> None:
        """Go back to where :meth:`tensors` was taken.

        Raises:
            InputError: When names or shapes are not those of this trainer.
        """
        copy_tensors(tensors, self.tensors())
        for run, streams in enumerate(self.streams):
            streams.load({name: tensors[f"streams.{run}.{name}"] for name in NAMES})
        self.iteration = iteration

    @property
    def eager(self) -> str | None:
        """Why rollout or gradient steps are not captured; None when they are."""
        graphs = [self.rollout, *(step.graph for step in self.captured.values())]
        return next((graph.eager for graph in graphs if graph.eager is not None), None)


def is_brief(trainer: Trainer, rows: int | None = None) -> bool:
    """Return whether no product takes a core longer than a time slice, on ``rows`` of each agent or a minibatch."""
    product = len(trainer.seeds) * largest_product(trainer.settings, trainer.world.agents, rows)
    return trainer.world.device.type == "cpu" and product < BRIEF


def copy_tensors(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    """Copy every tensor over the one of the same name.

    Raises:
        InputError: When names or shapes differ.
    """
    for name in sorted(target.keys() | source.keys()):
        if name not in target or name not in source or target[name].shape != source[name].shape:
            got = f"shape {tuple(source[name].shape)}" if name in source else "nothing"
            expected = f"with {name} of shape {tuple(target[name].shape)}" if name in target else f"without {name}"
            raise InputError("checkpoint", expected, got)
        target[name].copy_(source[name])
