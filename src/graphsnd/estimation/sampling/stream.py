"""What was asked for, and the draws that answer it, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.estimation.designs import Design, FreshDesign
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.plan import Budget
from graphsnd.estimation.sampling.draws import device_generator
from graphsnd.estimation.sampling.sample import Sample, draw, join
from graphsnd.estimation.sampling.source import Source
from graphsnd.estimation.sampling.template import Template

Callback = Callable[[Estimate], None]


@dataclass(frozen=True)
class Cost:
    """What has been spent."""

    distances: int = 0
    evaluations: int = 0

    @classmethod
    def of(cls, design: Design, source: Source, draws: int) -> Cost:
        """Of so many draws of a design."""
        return cls(int(draws * design.pairs(source.agents)), draws * source.evaluations(design))

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.distances + other.distances, self.evaluations + other.evaluations)


@dataclass(frozen=True, eq=False)
class Task:
    """A fresh design on a source, and everything about the answer that was asked for."""

    source: Source
    design: FreshDesign
    confidence: float
    d_max: float | None  # certified bound on every distance, None when there is none
    clusters: Tensor | None
    seed: int
    budget: Budget | None
    callback: Callback | None
    why: str
    most: int | None = None  # observations to draw, at most
    resize: bool = False  # whether a pilot may change the number of agents an observation
    began: float = field(default_factory=perf_counter)

    def template(self) -> Template:
        """The design's template for this team."""
        return self.design.template(self.source.agents)

    def limit(self, spent: Cost | None = None) -> int | None:
        """Draws that the budget and the design allow; None for as many as needed."""
        spent = spent or Cost()
        limits = [] if self.most is None else [self.most]
        if self.budget is not None:
            counted = self.budget.draws(self.source, self.design, spent.distances, spent.evaluations)
            limits += [] if counted is None else [counted]
        if limits and min(limits) < 2 and spent == Cost():
            two = Cost.of(self.design, self.source, 2)
            need = f"for two observations: {two.distances} distances and {two.evaluations} policy evaluations"
            raise InputError("budget", need, self.budget)
        return min(limits) if limits else None

    def seconds_left(self) -> float:
        """Until the budget's time is over."""
        if self.budget is None or self.budget.seconds is None:
            return math.inf
        return self.budget.seconds - (perf_counter() - self.began)


class Stream:
    """Every observation once in random order, with fresh agents at each; then all of them again."""

    def __init__(self, task: Task, generator: torch.Generator) -> None:
        self.task, self.template, self.choice = task, task.template(), generator
        self.agents = device_generator(generator, task.source.device)
        self.order = self._passes()
        self.pending = torch.empty(0, dtype=torch.int64)
        self.sample: Sample | None = None
        self.seconds = 0.0

    def _passes(self) -> Iterator[Tensor]:
        while True:
            yield torch.randperm(self.task.source.observations, generator=self.choice)

    @property
    def draws(self) -> int:
        """So far."""
        return 0 if self.sample is None else self.sample.draws

    @property
    def pace(self) -> float:
        """Seconds a draw."""
        return self.seconds / max(1, self.draws)

    def extend(self, count: int) -> Sample:
        """Draw ``count`` more, at least one; returns all."""
        while len(self.pending) < count:
            self.pending = torch.cat([self.pending, next(self.order)])
        index, self.pending = self.pending[:count], self.pending[count:]
        begin = perf_counter()
        new = draw(self.task.source, self.template, index, self.agents)
        self.sample = new if self.sample is None else join([self.sample, new])
        self.seconds += perf_counter() - begin
        return self.sample
