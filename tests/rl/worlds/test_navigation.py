"""Navigation against stock VMAS, and its two ways of looking at pairs against each other."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.rl.worlds import Navigation, physics
from graphsnd.rl.worlds import lidar as lidar_module
from graphsnd.rl.worlds.lidar import Lidar
from graphsnd.rl.worlds.navigation import NavigationState
from tests.rl.worlds.vmas_twin import NavigationTwin

# Everything but the sums (contact forces, the team's reward) is computed in the same order. Positions of order 1
# differ by an ulp or two; rays that graze a disc turn that into up to 1e-5.
CLOSE = {"rtol": 0, "atol": 1e-5}

# Agents, environments, steps, pull of the goals, options.
CASES: list[tuple[int, int, int, float, dict[str, Any]]] = [
    (2, 6, 20, 0.0, {}),
    (2, 6, 12, 0.8, {"world_spawning_x": 0.5, "world_spawning_y": 2, "shared_rew": False}),
    (10, 5, 12, 0.0, {"shared_rew": False}),
    (10, 5, 12, 0.8, {}),
    (10, 3, 8, 0.8, {"n_lidar_rays": 7, "lidar_range": 0.5}),
    (10, 3, 8, 0.5, {"enforce_bounds": True, "pos_shaping_factor": 2.0, "agent_collision_penalty": -0.3}),
    (4, 5, 12, 0.8, {"collisions": False, "final_reward": 0.5}),
    (50, 2, 3, 0.5, {"world_spawning_x": 2, "world_spawning_y": 2, "agent_radius": 0.06}),
]


def crowded(world: Navigation, generator: torch.Generator) -> NavigationState:
    """A start in which many agents overlap, and some environments are nearly solved."""
    state = world.spawn(generator)
    positions = state.positions * 0.5
    positions[0] = state.targets[0] + 0.04 * torch.rand(state.targets[0].shape, generator=generator)
    if world.agents > 1:  # one pair in contact for sure
        positions[1, 1] = positions[1, 0] + torch.tensor([1.8 * world.agent_radius, 0.0])
    shaping = torch.linalg.vector_norm(positions - state.targets, dim=-1) * world.pos_shaping_factor
    velocities = torch.randn(positions.shape, generator=generator) * 0.1
    return dataclasses.replace(state, positions=positions, velocities=velocities, shaping=shaping)


def moves(state: NavigationState, generator: torch.Generator, seek: float) -> Tensor:
    """Uniform beyond the range, so that clamping is seen, mixed with a pull to the goal."""
    noise = 2.6 * torch.rand(state.positions.shape, generator=generator) - 1.3
    return (1 - seek) * noise + seek * 4 * (state.targets - state.positions)


@pytest.mark.parametrize(("agents", "environments", "steps", "seek", "options"), CASES)
def test_every_step_is_that_of_vmas(
    agents: int, environments: int, steps: int, seek: float, options: dict[str, Any], generator: torch.Generator
) -> None:
    pytest.importorskip("vmas")
    world = Navigation(agents, environments, horizon=10, vmas_compatible=True, **options)
    twin = NavigationTwin.of(world, **options)
    state = crowded(world, generator)
    twin.write(state)
    torch.testing.assert_close(world.observe(state), twin.observe(), **CLOSE)
    bumped = 0
    for _ in range(steps):
        actions = moves(state, generator, seek)
        after, step = world.step(state, actions)
        theirs, state = twin.step(actions.clone()), twin.read()
        torch.testing.assert_close(after.positions, state.positions, **CLOSE)
        torch.testing.assert_close(after.velocities, state.velocities, **CLOSE)
        torch.testing.assert_close(after.shaping, state.shaping, **CLOSE)
        torch.testing.assert_close(step.observations, theirs.observations, **CLOSE)
        torch.testing.assert_close(step.rewards, theirs.rewards, **CLOSE)
        assert torch.equal(step.terminated, theirs.terminated)
        assert torch.equal(step.truncated, theirs.truncated)
        assert torch.equal(after.steps, state.steps)
        bumped += int((step.rewards < world.agent_collision_penalty / 2).sum())
    assert bumped > 0 or not world.collisions


@pytest.mark.parametrize("agents", [2, 10])
def test_running_free_stays_close(agents: int, generator: torch.Generator) -> None:
    pytest.importorskip("vmas")
    world = Navigation(agents, 4, vmas_compatible=True)
    twin = NavigationTwin.of(world)
    state = world.spawn(generator)
    twin.write(state)
    for _ in range(15):
        actions = moves(state, generator, 0.5)
        state, step = world.step(state, actions)
        theirs = twin.step(actions.clone())
        # Contacts are stiff: a difference of an ulp grows tenfold in some steps.
        torch.testing.assert_close(state.positions, twin.read().positions, rtol=0, atol=1e-4)
        torch.testing.assert_close(step.rewards, theirs.rewards, rtol=0, atol=1e-4)
        assert torch.equal(step.terminated, theirs.terminated)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("agents", [1, 2, 17, 40])
def test_all_pairs_and_close_pairs_agree(agents: int, gated: bool, generator: torch.Generator) -> None:
    options: dict[str, Any] = {"world_spawning_x": 2, "world_spawning_y": 2, "vmas_compatible": gated}
    close, every = Navigation(agents, 4, **options), Navigation(agents, 4, dense=True, **options)
    state = crowded(close, generator)
    for _ in range(12):
        torch.testing.assert_close(close.observe(state), every.observe(state), rtol=0, atol=0)
        actions = moves(state, generator, 0.8)
        (after, step), (other, theirs) = close.step(state, actions), every.step(state, actions)
        torch.testing.assert_close(after.positions, other.positions, **CLOSE)
        torch.testing.assert_close(step.observations, theirs.observations, **CLOSE)
        torch.testing.assert_close(step.rewards, theirs.rewards, **CLOSE)
        assert torch.equal(step.terminated, theirs.terminated)
        state = after


def test_a_violent_push_makes_it_look_again() -> None:
    # Deep overlaps throw agents across the room: the pairs found at the start no longer do.
    close, every = Navigation(12, 3), Navigation(12, 3, dense=True)
    start = close.spawn(0)
    state = dataclasses.replace(start, positions=start.positions * 0.02, velocities=start.velocities + 3.0)
    actions = torch.zeros_like(state.positions)
    (after, step), (_, theirs) = close.step(state, actions), every.step(state, actions)
    assert (after.positions - state.positions).abs().max() > close.lidar_range
    torch.testing.assert_close(step.observations, theirs.observations, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(step.rewards, theirs.rewards, rtol=1e-4, atol=1e-4)


def two_agents(gaps: list[float], closing: list[float]) -> NavigationState:
    """Two agents in each environment, so far apart and meeting at such a speed."""
    positions = torch.tensor([[[0.0, 0.0], [0.2 + gap, 0.0]] for gap in gaps])
    velocities = torch.tensor([[[speed, 0.0], [-speed, 0.0]] for speed in closing])
    targets = torch.full_like(positions, 5.0)
    shaping = torch.linalg.vector_norm(positions - targets, dim=-1)
    return NavigationState(positions, velocities, targets, shaping, torch.zeros(len(gaps)).long())


@pytest.mark.parametrize("dense", [False, True])
def test_a_near_miss_depends_on_other_environments_only_when_asked(dense: bool) -> None:
    alone, beside = two_agents([0.003, 0.5], [0.0, 0.0]), two_agents([0.003, 0.05], [0.0, 0.4])
    still = torch.zeros(2, 2, 2)
    for compatible, expected in ((False, -1.0), (True, 0.0)):
        world = Navigation(2, 2, vmas_compatible=compatible, dense=dense)
        assert world.step(alone, still)[1].rewards[0].round().tolist() == [expected, expected]
        assert world.step(beside, still)[1].rewards[0].round().tolist() == [-1.0, -1.0]


def test_an_environment_does_not_feel_the_others(generator: torch.Generator) -> None:
    world = Navigation(8, 6)
    state = crowded(world, generator)
    actions = moves(state, generator, 0.5)
    _, together = world.step(state, actions)
    for e in range(6):
        fields = {f.name: getattr(state, f.name)[e : e + 1] for f in dataclasses.fields(state)}
        _, alone = world.step(NavigationState(**fields), actions[e : e + 1])
        torch.testing.assert_close(alone.observations[0], together.observations[e], rtol=0, atol=1e-6)
        torch.testing.assert_close(alone.rewards[0], together.rewards[e], rtol=0, atol=1e-6)


def test_solved_and_the_end(generator: torch.Generator) -> None:
    world = Navigation(3, 4, horizon=2)
    state = world.spawn(generator)
    assert not world.solved(state).any()
    home = dataclasses.replace(state, positions=state.targets.clone())
    after, step = world.step(home, torch.zeros(4, 3, 2))
    assert world.solved(home).all()
    assert step.terminated.all()
    assert not step.truncated.any()
    assert world.step(after, torch.zeros(4, 3, 2))[1].truncated.all()


@pytest.mark.parametrize(("options", "name"), [
    ({"agents": 0}, "agents"),
    ({"environments": 0}, "environments"),
    ({"horizon": 0}, "horizon"),
    ({"agent_radius": 0.0}, "agent_radius"),
    ({"lidar_range": float("nan")}, "lidar_range"),
    ({"n_lidar_rays": 0}, "n_lidar_rays"),
    ({"agents": "4"}, "agents"),
    ({"collisions": "false"}, "collisions"),
    ({"device": "gpu"}, "device"),
])  # fmt: skip
def test_options_are_checked(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InputError, match=name):
        Navigation(**{"agents": 4, "environments": 2, **options})


def test_actions_are_checked() -> None:
    world = Navigation(4, 2)
    with pytest.raises(InputError, match=r"\(2, 4, 2\)"):
        world.step(world.spawn(0), torch.zeros(2, 4))


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"vmas_compatible": True, "shared_rew": False, "enforce_bounds": True}])
def test_a_step_in_a_cuda_graph(options: dict[str, Any], generator: torch.Generator) -> None:
    world = Navigation(20, 8, world_spawning_x=2, world_spawning_y=2, device="cuda", **options)
    host = dataclasses.replace(world, device=torch.device("cpu"))
    start = crowded(host, generator)
    actions = moves(start, generator, 0.5)
    held = NavigationState(**{f.name: getattr(start, f.name).cuda() for f in dataclasses.fields(start)})
    pressed = actions.cuda()
    world.step(held, pressed)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        after, step = world.step(held, pressed)
    for _ in range(3):
        graph.replay()
        expected, theirs = host.step(start, actions)
        torch.testing.assert_close(after.positions.cpu(), expected.positions, rtol=0, atol=1e-5)
        torch.testing.assert_close(step.rewards.cpu(), theirs.rewards, rtol=0, atol=1e-4)
        # A ray that grazes a disc may hit on one machine and miss on the other.
        off = (step.observations.cpu() - theirs.observations).abs()
        assert (off > 1e-4).float().mean() < 1e-3
        assert torch.equal(step.terminated.cpu(), theirs.terminated)
        actions = moves(expected, generator, 0.5)
        start = expected
        pressed.copy_(actions)
        for f in dataclasses.fields(start):
            getattr(held, f.name).copy_(getattr(start, f.name))


@pytest.mark.gpu
@pytest.mark.parametrize(("agents", "spread"), [(1, 1.0), (7, 0.3), (130, 1.0), (130, 0.1)])
def test_programs_do_what_torch_does(
    agents: int, spread: float, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = (torch.randn(5, agents, 2, generator=generator) * spread).cuda()
    lidar = Lidar.make(12, 0.35, 0.1, torch.device("cuda"))

    def compute() -> list[Tensor]:
        forces = [physics.contact_dense(positions, 0.2, tail=tail) for tail in (False, True)]
        return [lidar.dense(positions), physics.count_contacts(positions, 0.1, None, gated=False), *forces]

    programs = compute()
    assert physics.has_programs(positions)
    for module in (physics, lidar_module):
        monkeypatch.setattr(module, "has_programs", lambda positions: False)
    plain = compute()
    assert torch.equal(programs[0], plain[0])  # readings: the same operations in the same order
    assert torch.equal(programs[1], plain[1])
    for one, two in zip(programs[2:], plain[2:], strict=True):
        # Forces are 100 times an overlap, so its rounding of 1e-7 is 1e-5 here; crowded agents sum several.
        torch.testing.assert_close(one, two, rtol=1e-5, atol=5e-5)
