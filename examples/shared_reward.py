"""Why does a team with a shared reward stop improving? Ask what its critics can know.

A critic that sees one agent is to predict the reward of all. It cannot see the time, but its agent's distance to the
goal tells it: near means late, and late means that little reward is left. So coming near looks expensive.
"""

from pathlib import Path

import torch

import graphsnd as gs
from graphsnd.control.actions import action_distribution
from graphsnd.rl.worlds import Navigation

TEAM = Path(__file__).parents[1] / "paper/results/training/navigation-100/seed-0"  # the paper's table, shared reward
STEPS, AHEAD, GAMMA = 128, 100, 0.99


def slope(values: torch.Tensor, distances: torch.Tensor) -> float:
    """Return by how much values rise with an agent's distance, by least squares; mean over agents."""
    x, y = (part.flatten(0, 1) - part.flatten(0, 1).mean(0) for part in (distances, values))
    return float(((x * y).sum(0) / x.square().sum(0)).mean())


@torch.no_grad()
def main(environments: int = 8) -> None:
    team = gs.Team.load(TEAM)
    size = {"world_spawning_x": 4.0, "world_spawning_y": 4.0, "agent_radius": 0.03}
    world = Navigation(team.agents, environments, **size)
    generator, state = torch.Generator().manual_seed(0), world.spawn(0)
    seen, distances, gains = world.observe(state), [], []
    for _ in range(STEPS + AHEAD):
        actions = action_distribution(team.head, team.network(seen.transpose(0, 1)))
        drawn = actions.act(torch.randn(team.agents, environments, 2, generator=generator))
        distances.append(state.shaping)
        state, step = world.step(state, drawn.transpose(0, 1))
        gains.append(distances[-1] - state.shaping)
        seen = step.observations
    way, returns = torch.stack(gains), []
    for start in range(STEPS):
        weights = GAMMA ** torch.arange(AHEAD).view(-1, 1, 1)
        returns.append((weights * way[start : start + AHEAD]).sum(0))
    own, away = torch.stack(returns), torch.stack(distances[:STEPS])
    shared = own.sum(-1, keepdim=True).expand_as(own)
    timeless = shared - shared.mean(1, keepdim=True), away - away.mean(1, keepdim=True)

    snd = gs.snd(gs.evaluate(team, seen.flatten(0, 1)))
    print(f"SND {float(snd):.3f}, {team.agents} agents, {environments} episodes")
    print("return to come, for each unit of distance that an agent still has to go:")
    print(f"  its own reward              {slope(own, away):+.2f}")
    print(f"  the shared reward           {slope(shared, away):+.2f}   what its critic learns")
    print(f"  the shared reward, by time  {slope(*timeless):+.2f}   what its critic would learn if it saw the time")
    print(f"of the variance of the shared return, time explains {float(shared.mean((1, 2)).var() / shared.var()):.0%}")


if __name__ == "__main__":
    main()
