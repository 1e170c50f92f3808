"""Measure twenty policies exactly, then from a tenth of the pairs, and say who stands out."""

from functools import partial

import torch

import graphsnd as gs

torch.manual_seed(0)
team = [torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)) for _ in range(20)]
observations = torch.randn(4096, 6)


def act(policy: torch.nn.Module, observations: torch.Tensor) -> torch.distributions.Normal:
    """Distribution of the actions."""
    return torch.distributions.Normal(policy(observations), 0.3)


with torch.no_grad():
    behavior = gs.evaluate([partial(act, policy) for policy in team], observations)

print(gs.measure(behavior))
print(gs.measure(behavior, design="uniform:19"))

contributions = gs.contributions(behavior)
print(f"most distinct: agent {int(contributions.argmax())}, least: agent {int(contributions.argmin())}")
