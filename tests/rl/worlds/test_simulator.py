"""What the adapters of real simulators share."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.rl.worlds.parse import parse_world
from graphsnd.rl.worlds.simulator import SimulatorWorld
from graphsnd.rl.worlds.world import Continuous, Discrete, Step, merge


class Counter(SimulatorWorld):
    """A simulator that is a list of counters, one per environment."""

    def __init__(self, *spaces: Any, agents: int | None = None) -> None:
        super().__init__("counter", agents, 3, None, "cpu")
        self._describe("scenario", agents, [Box(0.0, 1.0)] * len(spaces), list(spaces))

    def _start(self, environments: int, generator: Any) -> tuple[list[int], Tensor]:
        return [0] * environments, torch.zeros(environments, self.agents, 1)

    def _advance(self, simulator: list[int], actions: Tensor) -> Step:
        simulator[:] = [count + 1 for count in simulator]
        flags = torch.zeros(len(simulator), dtype=torch.bool)
        counts = torch.tensor(simulator, dtype=torch.float32).view(-1, 1).expand(-1, self.agents)
        return Step(counts.unsqueeze(-1), counts, flags, flags)

    def _reset(self, simulator: list[int], rows: list[int], before: Tensor, generator: Any) -> Tensor:
        for row in rows:
            simulator[row] = 0
        return torch.where(torch.tensor([count == 0 for count in simulator]).view(-1, 1, 1), 0.0, before)

    def _places(self, simulator: list[int], kind: str) -> Tensor | None:
        return torch.tensor(simulator) if kind == "agents" else None


class Box:
    shape = (1,)

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = torch.tensor([low]), torch.tensor([high])


class Moves:
    n = 5


def test_a_state_is_good_for_one_step() -> None:
    world = Counter(Moves(), Moves())
    first = world.spawn(0)
    second, step = world.step(first, torch.zeros(3, 2, dtype=torch.int64))
    assert torch.equal(world.observe(second), step.observations)
    assert world.reset_done(second, torch.zeros(3, dtype=torch.bool), 0) is second
    third = world.reset_done(second, torch.tensor([False, True, False]), 0)
    assert world.observe(third)[:, 0, 0].tolist() == [1.0, 0.0, 1.0]
    assert world.positions(third).tolist() == [1, 0, 1]
    assert world.goals(third) is None
    for old in (first, second):
        with pytest.raises(InputError, match="newest"):
            world.step(old, torch.zeros(3, 2, dtype=torch.int64))
        with pytest.raises(InputError, match="newest"):
            world.positions(old)
    with pytest.raises(InputError, match="reset_done"):
        merge(third, torch.ones(3, dtype=torch.bool), third)


def test_spaces_are_read_and_must_be_alike() -> None:
    assert (Counter(Moves()).actions, Counter(Box(-2.0, 3.0)).actions) == (Discrete(5), Continuous(1, -2.0, 3.0))
    with pytest.raises(InputError, match="same flat actions"):
        Counter(Moves(), Box(0.0, 1.0))
    with pytest.raises(InputError, match="to be 2, which counter has"):
        Counter(Moves(), Moves(), agents=3)


@pytest.mark.parametrize(("package", "text"), [("vmas", "vmas:balance"), ("mpe2", "mpe2:simple_spread_v3")])
def test_a_missing_package_names_its_extra(package: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"pip install {package}"):
        parse_world(text, 3, 2)
