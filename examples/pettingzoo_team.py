"""Train three agents of a PettingZoo environment with REINFORCE, and watch their diversity grow."""

import torch
from mpe2 import simple_spread_v3
from torch import nn

import graphsnd as gs
from graphsnd.integrations.pettingzoo import collect

torch.manual_seed(0)
env = simple_spread_v3.parallel_env(N=3, max_cycles=25)
networks = {name: nn.Sequential(nn.Linear(18, 32), nn.Tanh(), nn.Linear(32, 5)) for name in env.possible_agents}
optimisers = {name: torch.optim.Adam(network.parameters(), 3e-3) for name, network in networks.items()}
team = {name: lambda o, n=network: gs.Categorical(logits=n(o)) for name, network in networks.items()}
observations = collect(env, None, steps=100, seed=1)  # of random agents, the same for every measurement


def play(seed: int) -> float:
    """Play an episode, and move each agent towards the actions that were followed by high rewards."""
    seen, _ = env.reset(seed=seed)
    log_probs: dict[str, list[torch.Tensor]] = {name: [] for name in networks}
    rewards: dict[str, list[float]] = {name: [] for name in networks}
    while env.agents:
        actions = {}
        for name in env.agents:
            choice = torch.distributions.Categorical(logits=networks[name](torch.from_numpy(seen[name]).float()))
            actions[name] = choice.sample()
            log_probs[name].append(choice.log_prob(actions[name]))
        seen, gains, _, _, _ = env.step({name: int(action) for name, action in actions.items()})
        for name, gain in gains.items():
            rewards[name].append(float(gain))
    for name, optimiser in optimisers.items():
        to_go = torch.tensor(rewards[name]).flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(log_probs[name]) * (to_go - to_go.mean()) / to_go.std()).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return sum(map(sum, rewards.values()))


for episode in range(51):
    reward = play(episode)
    if episode % 10 == 0:
        diversity = gs.measure(team, observations.pooled, clusters=observations.clusters)
        print(f"episode {episode:3}  reward {reward:7.1f}  SND {diversity.value:.4f}")
