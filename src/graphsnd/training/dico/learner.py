"""Learning from one rollout: three optimisers, and one measurement of diversity for each of their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy, Measurement, State, measure_selected
from graphsnd.teams import StackedMLP
from graphsnd.training.capture import Program
from graphsnd.training.dico.frames import Frames, shown
from graphsnd.training.dico.objective import beyond, objective_for
from graphsnd.training.dico.optimiser import Optimiser
from graphsnd.training.dico.settings import ControlSettings
from graphsnd.training.dico.stopwatch import Stopwatch
from graphsnd.training.dico.task import Group

SUMS = ("scale", "saturated", "zero", "empty", "invalid", "value_loss", "overflow")


@dataclass(frozen=True, eq=False)
class Recorded:
    """A step of the optimisers on a minibatch of one size, and what it reads."""

    index: Tensor  # int64 [runs, frames]
    scale: Tensor  # [runs]
    program: Program


class Learner:
    """Policies, critics, their optimisers and controllers.

    Args:
        policy: All runs.
        critics: Batch ``(runs, agents)``, one output.
        groups: Arms of the runs, with their controllers.
        settings: The rest.
        capture: Whether to record a step of the optimisers as a CUDA graph.

    Attributes:
        states: Of the controllers, one for each group.
        sums: ``[len(SUMS), runs]``, added up over the steps of an update.
    """

    def __init__(
        self,
        policy: ControlledPolicy,
        critics: StackedMLP,
        groups: Sequence[Group],
        settings: ControlSettings,
        *,
        capture: bool = False,
    ) -> None:
        self.policy, self.critics, self.groups, self.settings = policy, critics, groups, settings
        actors, device = list(policy.parameters()), policy.shared.weights[0].device
        longest, epsilon = settings.max_gradient_norm, settings.epsilon
        rate, action_rate = settings.learning_rate, settings.action_learning_rate
        self.objective = objective_for(policy, settings.clip, through=settings.through)
        self.actor = Optimiser(actors, learning_rate=rate, epsilon=epsilon, longest=longest)
        self.critic = Optimiser(list(critics.parameters()), learning_rate=rate, epsilon=epsilon, longest=longest)
        self.inside = Optimiser(actors, learning_rate=action_rate, epsilon=1e-8, longest=longest)
        counts = [group.rows.stop - group.rows.start for group in groups]
        self.states = [group.controller.initial((count,), device) for group, count in zip(groups, counts, strict=True)]
        self.sums = torch.zeros(len(SUMS), policy.batch[0], dtype=torch.float64, device=device)
        # Where gradients flow through the estimate, it cannot be left out of what is recorded.
        self.capture = capture and device.type == "cuda" and not settings.through
        self.frames: Frames | None = None
        self.recorded: dict[int, Recorded] = {}
        self.rested = True  # whether the third optimiser is at rest, so that steps without overflow may leave it out

    def scale(self) -> Tensor:
        """Of all runs, without a measurement: ``[runs]``, float64."""
        return torch.cat([g.controller.scale(s) for g, s in zip(self.groups, self.states, strict=True)])

    def estimates(self) -> Tensor:
        """Of all runs, ``[runs]``."""
        return torch.cat([state.estimate for state in self.states])

    def update(
        self,
        frames: Frames,
        shuffle: Callable[[], Tensor],
        generators: Sequence[torch.Generator],
        watch: Stopwatch,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Learn from one rollout.

        Args:
            frames: The rollout.
            shuffle: Gives a permutation of the frames for every run, int64 ``[runs, frames]``.
            generators: For the designs' draws, one for each run.
            watch: Counts ``policies:<arm>`` and ``distances:<arm>``.
            progress: Called with the number of steps done.
        """
        self.sums.zero_()
        # A recorded step reads the same memory in every iteration.
        if self.frames is None or not self.capture:
            self.frames = frames
        else:
            self.frames.copy_(frames)
        done = 0
        for _ in range(self.settings.passes):
            for index in shuffle().split(self.settings.minibatch, 1):
                self.step(self.frames, index, generators, watch)
                done += 1
                progress(done)

    def step(self, frames: Frames, index: Tensor, generators: Sequence[torch.Generator], watch: Stopwatch) -> None:
        """One minibatch, frames ``index`` of every run: measure, then learn."""
        scale = self.control(frames, index, generators, watch)
        self.sums[0] += scale.detach()
        if not self.capture:
            self.learn(frames.take(index, self.policy.deviations.engine), scale)
            return
        size = index.shape[1]
        if size not in self.recorded:
            self.recorded[size] = self._record(frames, torch.zeros_like(index), torch.zeros_like(scale))
        recorded = self.recorded[size]
        recorded.index.copy_(index)
        recorded.scale.copy_(scale)
        recorded.program()

    def _record(self, frames: Frames, index: Tensor, scale: Tensor) -> Recorded:
        engine = self.policy.deviations.engine
        changes = [part for name, part in self.tensors().items() if not name.startswith("control.")]
        program = Program(
            lambda: self.learn(frames.take(index, engine), scale), [*changes, self.sums], scale.device, capture=True
        )
        return Recorded(index, scale, program)

    def learn(self, batch: Frames, scale: Tensor) -> None:
        """Policy, critics, and means that left the box: one step of each optimiser."""
        self.actor.step(self.objective.losses(batch, scale).sum())
        errors = (self.critics(batch.observations).squeeze(-1) - batch.returns).square().mean((1, 2))
        self.sums[5] += errors.detach()
        self.critic.step(errors.sum())
        if self.policy.kind != "categorical":
            self._pull_inside(batch.observations, scale.detach())

    def control(self, frames: Frames, index: Tensor, generators: Sequence[torch.Generator], watch: Stopwatch) -> Tensor:
        """Measure every arm on some observations of a minibatch, step its controller.

        Returns:
            The scale of all runs, ``[runs]``.
        """
        runs, agents, count = frames.log_probs.shape
        frame, agent = _places(index.shape[1], agents, self.settings.observations, index.device)
        first = torch.arange(runs, device=index.device).unsqueeze(1) * agents
        chosen = index[:, frame]
        rows = frames.observations.flatten(0, 2)[(first + agent) * count + chosen]
        scales = []
        for place, group in enumerate(self.groups):
            where = None
            if group.design.needs_positions:
                where = _of_frames(frames.places[group.rows], chosen[group.rows])
            found = self._measure(group, rows[group.rows], where, generators[group.rows], watch)
            state = self.states[place]
            if group.controller.applied:
                value = found.value * group.controller.scale(state)
                found = Measurement(value, found.pairs, found.empty)
            scale, after, status = group.controller.step(found, state)
            self._keep(place, after)
            self.sums[1:5, group.rows] += torch.stack([status.saturated, status.zero, status.empty, status.invalid])
            scales.append(scale)
        return torch.cat(scales)

    def _measure(
        self, group: Group, rows: Tensor, where: Tensor | None, generators: Sequence[torch.Generator], watch: Stopwatch
    ) -> Measurement:
        """Rows are ``[g, K, f]``; the places of all agents in those frames ``[g, K, agents, 2]``."""
        agents, device = self.policy.batch[1], rows.device
        with torch.set_grad_enabled(group.controller.through):
            with watch(f"distances:{group.arm}"):
                places = [None] * len(generators) if where is None else list(where)
                selections = [
                    group.design.select(rows.shape[1], agents, each, device=device, positions=place)
                    for each, place in zip(generators, places, strict=True)
                ]
            with watch(f"policies:{group.arm}"):
                asked = [selection.agents for selection in selections if selection.agents is not None]
                if asked:
                    values = self.policy.deviation_of(rows, torch.stack(asked), group.rows)
                else:
                    values = self.policy.deviation(rows, group.rows)
            with watch(f"distances:{group.arm}"):
                return measure_selected(selections, values)

    def _pull_inside(self, seen: Tensor, scale: Tensor) -> None:
        """Minimise the square of the longest way by which an agent's mean left [-1, 1], mean over frames.

        Only one agent of a frame has a gradient, and only where it is outside. So all agents are looked at without
        one, and then those again: a hundredth of the rows or less.
        """
        if seen.is_cuda and not self.policy.deviations.engine.fused:
            self._pull_all(seen, scale)  # plain torch would have to wait for the number of rows
            return
        over, agent = self.objective.furthest(seen, scale)
        self.sums[6] += over.sqrt().mean(1)
        outside = over > 0
        # Looking is free on a CPU. Without overflow the gradient is 0, and so is the step while Adam's moments are.
        if not seen.is_cuda and not bool(outside.any()):
            (self.inside.rest if self.rested else self.inside.idle)()
            return
        self.rested = False
        loc = self.policy.means_of(seen, agent, outside, scale)
        self.inside.step((beyond(loc) * outside).sum() / over.shape[1])

    def _pull_all(self, seen: Tensor, scale: Tensor) -> None:
        """The same with a gradient for every row."""
        over = beyond(self.policy.parameters_of(seen, scale)[0]).amax(1)
        self.sums[6] += over.detach().sqrt().mean(1)
        self.rested = False
        self.inside.step(over.mean(1).sum())

    def _keep(self, place: int, after: State) -> None:
        self.states[place] = after

    def tensors(self) -> dict[str, Tensor]:
        """Everything that learning goes on from, by reference."""
        found = {f"policy.{name}": part.data for name, part in self.policy.named_parameters()}
        found |= {f"critics.{name}": part.data for name, part in self.critics.named_parameters()}
        for name, each in (("actor", self.actor), ("critic", self.critic), ("inside", self.inside)):
            found |= {f"{name}.{key}": part for key, part in each.tensors().items()}
        for place, state in enumerate(self.states):
            found |= {f"control.{place}.{key}": part for key, part in state.tensors().items()}
        return found


def _of_frames(places: Tensor, chosen: Tensor) -> Tensor:
    """Of ``[g, agents, S, 2]``, in frames int64 ``[g, K]``: ``[g, K, agents, 2]``."""
    index = chosen.unsqueeze(1).unsqueeze(-1).expand(-1, places.shape[1], -1, places.shape[3])
    return places.gather(2, index).transpose(1, 2)


@lru_cache(maxsize=8)
def _places(frames: int, agents: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    frame, agent = shown(frames, agents, count)
    return frame.to(device), agent.to(device)
