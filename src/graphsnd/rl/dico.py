"""Diversity control during learning: one measurement per gradient step, and an audit of every rollout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from graphsnd.control import ControlledTeam, Controller, Seek, audit
from graphsnd.control.measurement import Measurement, Selection, measure_selected, select_pairs
from graphsnd.designs.design import as_design
from graphsnd.errors import InputError
from graphsnd.graphs import MovingGraph
from graphsnd.rl.controlled import ScaledPolicy
from graphsnd.rl.cuda import Stopwatch
from graphsnd.rl.log import Outcome, Row, Run
from graphsnd.rl.method import Companion
from graphsnd.rl.rollout import Minibatch, RolloutBuffer
from graphsnd.rl.settings import Settings
from graphsnd.rl.streams import CONTROL_GRAPHS, hashed
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import Discrete

MOST_FILLED = 1 << 24  # padding edges that a measurement may hold, about 50 bytes each
SUMS = ("scale", "saturated", "zero", "empty", "invalid")


@dataclass(frozen=True, eq=False)
class Group:
    """Consecutive runs that share a design and a controller, which has a target for each run."""

    controller: Controller
    rows: slice  # places among the stacked runs
    arm: str


class DiversityControl(Companion):
    """Controllers of all arms.

    Args:
        policy: Policies of all runs.
        runs: Arm, target and seed of each run.
        groups: Arms of the runs, with their controllers.
        settings: Settings, which limit the number of observations.
        world: World of the agents; read if a design needs positions.

    Attributes:
        states: States of the controllers, one for each group.
        sums: Sums over the gradient steps of an iteration, ``[len(SUMS), runs]``.
        audits: SND of each run in the audit of the last rollout, ``[runs]``.
        local_audits: Local measure of each run whose controller holds one.
        levels: Levels of the last rollout, ``[runs]``, of controllers that seek one; NaN for others.
    """

    def __init__(
        self,
        policy: ScaledPolicy,
        runs: Sequence[Run],
        groups: Sequence[Group],
        settings: Settings,
        world: World,
    ) -> None:
        self.policy, self.runs, self.groups, self.settings = policy, runs, groups, settings
        spatial = any(as_design(group.controller.design).needs_positions for group in groups)
        self.places = find_positions(world) if spatial else slice(0)  # features that hold the position
        device = policy.scale.device
        counts = [group.rows.stop - group.rows.start for group in groups]
        self.states = [group.controller.initial((count,), device) for group, count in zip(groups, counts, strict=True)]
        self.sums = torch.zeros(len(SUMS), len(runs), dtype=torch.float64, device=device)
        self.audits = torch.zeros(len(runs), device=device)
        self.local_audits: dict[int, Tensor] = {}
        self.levels = torch.full_like(self.sums[0], math.nan)
        self.generators: list[torch.Generator] = []
        self.neighbours: dict[int, tuple[MovingGraph, int]] = {}  # by first run: graph of all samples, most edges

    def scale(self) -> Tensor:
        """Return the scale of all runs without a new measurement: ``[runs]``, float64."""
        return torch.cat([g.controller.scale(s) for g, s in zip(self.groups, self.states, strict=True)])

    def team(self, run: int, *, squashed: bool = False, about: dict[str, Any] | None = None) -> ControlledTeam:
        """Return a copy of a run's policies at their present scale: :meth:`~graphsnd.control.ControlledPolicy.team`."""
        return self.policy.controlled.team(run, self.scale()[run], squashed=squashed, about=about)

    def before_rollout(self) -> None:
        """Let the policies act at the present scale."""
        self.policy.scale.copy_(self.scale())
        for group, state in zip(self.groups, self.states, strict=True):
            if isinstance(group.controller, Seek):
                self.levels[group.rows] = group.controller.level(state)

    def after_rollout(self, buffer: RolloutBuffer, iteration: int) -> None:
        """Audit the policies that acted, and begin an update; a controller that seeks a level sees the rewards."""
        self.audits, self.local_audits = self.audit(buffer)
        rewards = buffer.rewards.mean((1, 2, 3))
        for place, group in enumerate(self.groups):
            if isinstance(group.controller, Seek):
                self.states[place] = group.controller.observe(rewards[group.rows], self.states[place])
        self.sums.zero_()
        self.neighbours.clear()
        self.generators = [hashed(run.seed, CONTROL_GRAPHS, iteration) for run in self.runs]

    def audit(self, buffer: RolloutBuffer) -> tuple[Tensor, dict[int, Tensor]]:
        """Measure the policies of the last rollout at their scale, on its observations; nothing is fed back.

        Returns:
            SND over all pairs, ``[runs]``, and by run the local measure that its controller holds, if any.
        """
        chosen, (sample, _) = self.choose(buffer.observations), self._audited(buffer.observations)
        teams = [self.policy.controlled.team(run, scale) for run, scale in enumerate(self.policy.scale)]
        local = {}
        for group in self.groups:
            design = as_design(group.controller.design)
            for run in range(group.rows.start, group.rows.stop) if design.needs_positions else ():
                places = buffer.observations[run].flatten(0, 1)[sample][..., self.places]  # of all agents
                local[run] = audit(teams[run], chosen[run], design=design, positions=places)
        return torch.stack([audit(team, seen) for team, seen in zip(teams, chosen, strict=True)]), local

    def choose(self, part: Tensor) -> Tensor:
        """Return the audited part of a rollout's observations or episodes, ``[runs, observations, ...]``."""
        sample, agent = self._audited(part)
        return part.flatten(1, 2)[:, sample, agent]

    def _audited(self, part: Tensor) -> tuple[Tensor, Tensor]:
        """Return the samples of the audit, and the agent whose observation of each is used."""
        samples, agents = math.prod(part.shape[1:3]), part.shape[3]
        count = min(self.settings.audit_observations, samples * agents)
        sample, agent = choose_observations(min(count, samples), agents, count, part.device)
        return sample * samples // min(count, samples), agent  # evenly over the rollout, which is in order

    def before_step(self, samples: Minibatch, buffer: RolloutBuffer, index: Tensor, watch: Stopwatch) -> Tensor:
        """Measure every arm on observations of a minibatch, and step its controller.

        Args:
            samples: The whole rollout, as networks read it.
            buffer: Rollout as it was collected; positions of agents are read from it.
            index: int64 ``[runs, m]``, the minibatch.
            watch: Stopwatch, which counts ``policies:<arm>`` and ``distances:<arm>``.

        Returns:
            The scale of all runs, ``[runs]``.
        """
        runs, agents, count = samples.log_probs.shape
        sample, agent = choose_observations(index.shape[1], agents, self.settings.observations, index.device)
        first = torch.arange(runs, device=index.device).unsqueeze(1) * agents
        chosen = index[:, sample]
        rows = samples.observations.flatten(0, 2)[(first + agent) * count + chosen]
        scales = []
        for place, group in enumerate(self.groups):
            with watch(f"distances:{group.arm}"):
                selections = self._select(group, buffer, chosen[group.rows])
            measured = self._measure(group, rows[group.rows], selections, watch)
            scale, self.states[place], status = group.controller.step(measured, self.states[place])
            self.sums[1:, group.rows] += torch.stack([status.saturated, status.zero, status.empty, status.invalid])
            scales.append(scale)
        scale = torch.cat(scales)
        self.sums[0] += scale.detach()
        return scale

    def _select(self, group: Group, buffer: RolloutBuffer, chosen: Tensor) -> list[Selection]:
        """Choose the pairs of one arm in samples int64 ``[g, K]``."""
        design, (runs, count) = as_design(group.controller.design), chosen.shape
        agents, device = self.policy.controlled.batch[1], chosen.device
        if not design.needs_positions:
            return [select_pairs(design, count, agents, each, device=device) for each in self.generators[group.rows]]
        if group.rows.start not in self.neighbours:
            # Agents do not move during an update, so neighbours are searched once and not at every gradient step.
            graph = design.draw(agents, positions=buffer.observations[group.rows, ..., self.places].flatten(0, 2))
            assert isinstance(graph, MovingGraph)
            self.neighbours[group.rows.start] = graph, int(graph.starts.diff().max())
        graph, most = self.neighbours[group.rows.start]
        first = torch.arange(runs, device=device).unsqueeze(1) * (len(graph) // runs)
        # One crowded sample would pad all others. Graphs of different sizes need no padding, but wait for the device.
        if chosen.numel() * (most - graph.m / len(graph)) > MOST_FILLED:
            return [Selection(take_observations(graph, each)) for each in first + chosen]
        parts = zip(*fill_up(graph, first + chosen, most), strict=True)
        return [Selection(edges, weights=own) for edges, own in parts]

    def _measure(self, group: Group, rows: Tensor, selections: Sequence[Selection], watch: Stopwatch) -> Measurement:
        """Measure one arm on rows ``[g, K, f]``."""
        policy = self.policy.controlled
        with torch.set_grad_enabled(group.controller.differentiable):
            with watch(f"policies:{group.arm}"):
                asked = [each.agents for each in selections if each.agents is not None]
                values = policy.deviation(rows, torch.stack(asked) if asked else None, group.rows)
            with watch(f"distances:{group.arm}"):
                return measure_selected(selections, values)

    def rows(self, outcome: Outcome) -> list[Row]:
        """Return a row for each run."""
        steps, seconds = self.settings.optimiser_steps, outcome.seconds
        measuring = sum(each for name, each in seconds.items() if ":" in name)
        shown = self.policy.controlled.batch[1] * min(self.settings.minibatch, self.settings.samples)
        estimates = torch.cat([state.estimate for state in self.states])
        clear = torch.zeros_like(self.levels)
        for group, state in zip(self.groups, self.states, strict=True):
            if isinstance(group.controller, Seek):
                clear[group.rows] = group.controller.report(state).clear.double()
        own = torch.cat([torch.stack([self.audits.double(), estimates, self.levels, clear]), self.sums]).T.tolist()
        rows = []
        parts = zip(self.runs, outcome.numbers, own, strict=True)
        for place, (run, numbers, (audited, estimate, level, known, total, *counts)) in enumerate(parts):
            scale, local = total / steps, self.local_audits.get(place)
            sought = None if math.isnan(level) else level
            wanted = run.target if sought is None else sought
            rows.append(
                Row(
                    iteration=outcome.iteration,
                    arm=run.arm,
                    target=run.target,
                    seed=run.seed,
                    level=sought,
                    clear=None if sought is None else int(known),
                    estimate=estimate,
                    scale=scale,
                    applied=estimate * scale,
                    audit=audited,
                    tracking_error=_relative_error(estimate * scale, wanted),
                    audit_error=_relative_error(audited, wanted),
                    local_audit=None if local is None else float(local),
                    local_error=None if local is None else _relative_error(float(local), run.target),
                    observations=min(self.settings.observations, shown),
                    rollout_seconds=seconds["rollout"],
                    policy_seconds=seconds[f"policies:{run.arm}"],
                    distance_seconds=seconds[f"distances:{run.arm}"],
                    update_seconds=seconds["update"] - measuring,
                    audit_seconds=seconds["audit"],
                    **numbers,
                    **{name: int(count) for name, count in zip(SUMS[1:], counts, strict=True)},
                )
            )
        return rows

    def tensors(self) -> dict[str, Tensor]:
        """Return the controllers' states, by reference."""
        return {
            f"control.{place}.{key}": part
            for place, state in enumerate(self.states)
            for key, part in vars(state).items()
        }


def find_positions(world: World) -> slice:
    """Return which features of an observation are the agent's own position; they need not be the first ones.

    Raises:
        InputError: If none are.

    Example:
        >>> from graphsnd.rl.worlds import Navigation, SimpleSpread
        >>> find_positions(Navigation(3, 2)), find_positions(SimpleSpread(3, 2))
        (slice(0, 2, None), slice(2, 4, None))
    """
    state, generator = world.spawn(0, 4), torch.Generator().manual_seed(0)
    # After a step: some worlds begin with all agents on one point, at rest.
    if isinstance(world.actions, Discrete):
        actions = torch.randint(world.actions.count, (4, world.agents), generator=generator)
    else:
        actions = 2 * torch.rand(4, world.agents, world.actions.features, generator=generator) - 1
    state, step = world.step(state, actions.to(world.device))
    places, seen = state.positions, step.observations
    for first in range(seen.shape[-1] - 1):
        if torch.allclose(seen[..., first : first + 2], places.to(seen), rtol=1e-5, atol=1e-6):
            return slice(first, first + 2)
    fix = "Use a design without positions, such as matching."
    raise InputError("designs", f"without knn and radius for {world.name}", "positions that agents do not observe", fix)


@lru_cache(maxsize=8)
def choose_observations(samples: int, agents: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Choose (sample, agent) pairs to take ``count`` observations from, evenly over samples and agents.

    Samples of a minibatch are in random order, so the first ones are a random choice of them.

    Returns:
        Samples and agents, int64 on ``device``, at most samples * agents of them; not to be changed, they are cached.

    Example:
        >>> [part.tolist() for part in choose_observations(3, 2, 4, torch.device("cpu"))]
        [[0, 1, 2, 0], [0, 1, 0, 1]]
    """
    place = torch.arange(min(count, samples * agents))
    sample = place % samples
    return sample.to(device), ((place // samples + sample) % agents).to(device)


def fill_up(graph: MovingGraph, observations: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the edges of some observations side by side, without waiting for the device.

    Args:
        graph: Graph without weights.
        observations: Indices of observations, int64 ``[...]``; they may repeat.
        width: Largest number of edges of any observation. Shorter lists are padded with edges of other observations.

    Returns:
        int64 ``[..., width, 2]``, and float64 ``[..., width]``: 1 for an edge of the observation, 0 for padding.

    Example:
        >>> moving = MovingGraph(3, torch.tensor([[0, 1], [0, 2], [1, 2]]), torch.tensor([0, 1, 3]))
        >>> edges, own = fill_up(moving, torch.tensor([1, 0]), 2)
        >>> edges[0].tolist(), own.tolist()
        ([[0, 2], [1, 2]], [[1.0, 1.0], [1.0, 0.0]])
    """
    places = graph.starts[observations].unsqueeze(-1) + torch.arange(width, device=graph.device)
    own = places < graph.starts[observations + 1].unsqueeze(-1)
    places.clamp_(max=graph.m - 1)
    # A GPU gathers single numbers much faster than rows of two.
    return torch.stack([column[places] for column in graph.edges.unbind(1)], -1), own.double()


def take_observations(graph: MovingGraph, observations: Tensor) -> MovingGraph:
    """Return the graphs of the observations int64 ``[k]``, which may repeat; without weights.

    Example:
        >>> moving = MovingGraph(3, torch.tensor([[0, 1], [0, 2], [1, 2]]), torch.tensor([0, 1, 3]))
        >>> [each.edges.tolist() for each in take_observations(moving, torch.tensor([1, 0]))]
        [[[0, 2], [1, 2]], [[0, 1]]]
    """
    counts = graph.starts.diff()[observations]
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    places = (graph.starts[observations] - starts[:-1]).repeat_interleave(counts)
    places += torch.arange(len(places), device=graph.device)
    return MovingGraph._trusted(graph.n, graph.edges[places], starts)


def _relative_error(value: float, target: float | None) -> float | None:
    return None if target is None else abs(value - target) / target
