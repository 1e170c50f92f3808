"""Dispersion against stock VMAS: equal to the bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.rl.worlds import Dispersion
from graphsnd.rl.worlds.dispersion import DispersionState
from tests.rl.worlds.vmas_twin import DispersionTwin

# Agents, environments, steps, pull of the food, options.
CASES: list[tuple[int, int, int, float, dict[str, Any]]] = [
    (2, 8, 30, 0.8, {}),
    (10, 8, 20, 0.0, {"penalise_by_time": True}),
    (10, 8, 20, 0.8, {}),
    (10, 8, 16, 0.8, {"share_reward": True, "penalise_by_time": True}),
    (10, 4, 16, 0.8, {"n_food": 3, "food_radius": 0.2, "share_reward": True}),
    (50, 3, 4, 0.8, {"n_food": 20, "food_radius": 0.1, "pos_range": 0.3}),
]


@pytest.mark.parametrize(("agents", "environments", "steps", "seek", "options"), CASES)
def test_every_step_is_that_of_vmas(
    agents: int, environments: int, steps: int, seek: float, options: dict[str, Any], generator: torch.Generator
) -> None:
    pytest.importorskip("vmas")
    world = Dispersion(agents, environments, horizon=12, **options)
    twin = DispersionTwin.of(world, **options)
    state = world.spawn(generator)
    twin.write(state)
    assert torch.equal(world.observe(state), twin.observe())
    eaten = 0.0
    for _ in range(steps):
        prey = state.food[:, torch.arange(agents) % state.food.shape[1]]
        noise = 2.6 * torch.rand(state.positions.shape, generator=generator) - 1.3
        actions = (1 - seek) * noise + seek * 4 * (prey - state.positions)
        state, step = world.step(state, actions)  # never synchronised: there is nothing to drift
        theirs = twin.step(actions.clone())
        assert torch.equal(state.positions, twin.read().positions)
        assert torch.equal(state.velocities, twin.read().velocities)
        assert torch.equal(state.eaten, twin.read().eaten)
        assert torch.equal(step.observations, theirs.observations)
        assert torch.equal(step.rewards, theirs.rewards)
        assert torch.equal(step.terminated, theirs.terminated)
        assert torch.equal(step.truncated, theirs.truncated)
        eaten += float(step.rewards.clamp(min=0).sum())
    assert eaten > 0 or seek == 0


def plate(agents: list[list[float]], food: list[list[float]]) -> DispersionState:
    positions, places = torch.tensor([agents]), torch.tensor([food])
    eaten = torch.zeros(1, len(food), dtype=torch.bool)
    return DispersionState(positions, torch.zeros_like(positions), places, eaten, torch.zeros(1).long())


def test_food_is_shared_by_those_who_are_there_and_paid_once() -> None:
    world = Dispersion(3, 1, n_food=2, penalise_by_time=True)
    state = plate([[0.0, 0.0], [0.01, 0.0], [0.9, 0.9]], [[0.0, 0.0], [-0.9, 0.0]])
    still = torch.zeros(1, 3, 2)
    state, step = world.step(state, still)
    torch.testing.assert_close(step.rewards, torch.tensor([[0.5, 0.5, -0.01]]))
    assert step.observations[0, 0, 6] == 1  # already seen as eaten
    torch.testing.assert_close(world.step(state, still)[1].rewards, torch.full((1, 3), -0.01))


def test_walls_stop_positions_and_not_velocities() -> None:
    world = Dispersion(1, 1)
    state = plate([[0.99, 0.0]], [[-0.5, -0.5]])
    for _ in range(3):
        state, _ = world.step(state, torch.ones(1, 1, 2))
    assert state.positions[0, 0, 0] == 1
    assert state.velocities[0, 0, 0] > 0.1


@pytest.mark.parametrize("options", [{"agents": 0}, {"n_food": 0}, {"food_radius": -1.0}, {"pos_range": 0.0}])
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Dispersion(**{"agents": 4, "environments": 2, **options})


@pytest.mark.gpu
def test_a_step_and_a_reset_in_a_cuda_graph() -> None:
    from graphsnd.rl.worlds.world import merge

    world = Dispersion(10, 8, device="cuda")
    start, fresh = world.spawn(0), world.spawn(1)
    actions = torch.rand(8, 10, 2, device="cuda") * 2 - 1
    done = torch.arange(8, device="cuda") % 2 == 0
    world.step(start, actions)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        after, step = world.step(start, actions)
        mixed = merge(after, done, fresh)
    graph.replay()
    host = dataclasses.replace(world, device=torch.device("cpu"))
    began = DispersionState(**{f.name: getattr(start, f.name).cpu() for f in dataclasses.fields(start)})
    expected, theirs = host.step(began, actions.cpu())
    torch.testing.assert_close(after.positions.cpu(), expected.positions, rtol=0, atol=1e-6)
    torch.testing.assert_close(step.observations.cpu(), theirs.observations, rtol=0, atol=1e-6)
    torch.testing.assert_close(step.rewards.cpu(), theirs.rewards, rtol=0, atol=1e-6)
    assert torch.equal(mixed.food[::2], fresh.food[::2])
    assert torch.equal(mixed.positions[1::2], after.positions[1::2])
