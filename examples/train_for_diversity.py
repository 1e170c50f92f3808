"""Differentiate through SND: bring four policies to a diversity of 0.5 with as little effort as it takes."""

import torch

import graphsnd as gs

torch.manual_seed(0)
target, observations = 0.5, torch.randn(256, 3)
team = torch.nn.ModuleList(torch.nn.Linear(3, 2) for _ in range(4))
optimizer = torch.optim.Adam(team.parameters(), lr=0.02)

for step in range(201):
    behavior = gs.evaluate(list(team), observations)
    diversity = gs.snd(behavior)
    effort = behavior.actions.square().mean()
    loss = (diversity - target) ** 2 + 0.01 * effort
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3d}  SND {diversity.item():.4f}  effort {effort.item():.4f}")
