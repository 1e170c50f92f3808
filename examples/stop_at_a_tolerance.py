"""The diversity of 2,000 policies within 3%, without evaluating all of them on everything; a few seconds."""

import torch

import graphsnd as gs
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

# Two thousand small networks, stacked so that a layer of all of them is one product.
network = StackedMLP.create((2000,), (18, 64, 64, 4), init="linear", generator=torch.Generator().manual_seed(0))
team = StackedTeam(network, GaussianHead(2, mean="tanh", scale="network"))
observations = 2 * torch.rand(50_000, 18, generator=torch.Generator().manual_seed(1)) - 1

estimate = gs.measure(team, observations, rel_tol=0.03)
print(estimate)
share = estimate.policy_evaluations / (team.agents * len(observations))
print(f"{estimate.design}: {estimate.policy_evaluations:,} policy evaluations, {share:.2%} of all. {estimate.why}.")

# Agents that have been evaluated already: pairs redrawn per observation beat one graph with as many pairs.
with torch.no_grad():
    behavior = team.evaluate(observations[:512])
truth = float(gs.snd(behavior))
for design in ("uniform:2000", "ring:2"):
    one = gs.measure(behavior, design=design, seed=3)
    print(f"{design}: off by {one.value / truth - 1:+.3%}, standard error {one.standard_error / truth:.3%}")
