"""Evaluation of a team that does not learn."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from graphsnd.control.actions import action_distribution
from graphsnd.errors import check_integer
from graphsnd.rl.rollout import fill_noise, noise_shape
from graphsnd.rl.worlds import World
from graphsnd.teams import StackedTeam


@dataclass(frozen=True)
class Evaluation:
    """Result of acting for some steps without resets.

    Example:
        >>> from graphsnd.rl import Settings, Trainer
        >>> from graphsnd.rl.worlds import Navigation
        >>> trainer = Trainer(Navigation(3, 8), Settings(steps=8, environments=4))
        >>> evaluation = evaluate_team(trainer.team(0), trainer.world, steps=16)
        >>> abs(evaluation.reward) < 0.1, evaluation.solved_at_end
        (True, 0.0)
    """

    reward: float  # reward per step, mean over agents and environments, until the environment's episode ended
    solved_at_end: float | None  # share of agents at their goal when their test episode or the time ended


@torch.no_grad()
def evaluate_team(
    team: StackedTeam, world: World, *, steps: int = 128, seed: int = 0, deterministic: bool = True
) -> Evaluation:
    """Let a team act, one episode in each environment.

    Args:
        team: The policies; agent i of the world acts by policy i.
        world: World to act in.
        steps: Largest number of steps.
        seed: Seed of the episodes, and of the actions where they are drawn.
        deterministic: Whether agents take their likeliest action instead of drawing one.

    Returns:
        Reward and the share of agents that reached their goal (None if agents have no goals of their own).

    Example:
        >>> from graphsnd.rl import Settings, Trainer
        >>> from graphsnd.rl.worlds import Navigation
        >>> trainer = Trainer(Navigation(3, 8), Settings(steps=8, environments=4))
        >>> evaluate_team(trainer.team(0), trainer.world, steps=16).solved_at_end
        0.0
    """
    check_integer("steps", steps, "to be an integer, at least 1", low=1)
    seed = check_integer("seed", seed, "to be an integer, at least 0", low=0)
    generator = torch.Generator(world.device).manual_seed(seed)
    state = world.spawn(seed)
    seen = world.observe(state)
    count, agents = seen.shape[:2]
    running = torch.ones(count, dtype=torch.bool, device=world.device)
    at_end = torch.zeros(count, agents, dtype=torch.bool, device=world.device)
    noise = torch.zeros(agents, count, *noise_shape(world.actions), device=world.device)
    earned, lasted = torch.zeros((), device=world.device), 0
    for _ in range(steps):
        distribution = action_distribution(team.head, team.network(seen.transpose(0, 1)))
        fill_noise(noise, world.actions, generator)
        actions = distribution.mode() if deterministic else distribution.act(noise)
        state, step = world.step(state, actions.transpose(0, 1))
        earned += (step.rewards.mean(-1) * running).sum()
        lasted += int(running.sum())
        solved = world.solved(state)
        if solved is not None:
            at_end = torch.where(running.unsqueeze(1), solved, at_end)
        seen = step.observations
        running = running & ~(step.terminated | step.truncated)
        if not bool(running.any()):
            break
    return Evaluation(float(earned) / lasted, None if solved is None else float(at_end.float().mean()))
