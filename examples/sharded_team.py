"""Policies on several processes: torchrun --nproc-per-node 2 examples/sharded_team.py; alone it is one rank."""

import os

import torch
from torch import distributed, nn

import graphsnd as gs

rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if ranks > 1:
    distributed.init_process_group("gloo")  # nccl, with policies and observations on each rank's GPU

# Every rank holds policies of its own, and all see the same observations.
policies = []
for agent in range(rank, 40, ranks):
    torch.manual_seed(agent)
    policies.append(nn.Sequential(nn.Linear(18, 64), nn.Tanh(), nn.Linear(64, 2), nn.Tanh()))
observations = torch.randn(2048, 18, generator=torch.Generator().manual_seed(0))
say = print if rank == 0 else lambda _: None
with torch.no_grad():
    behavior = gs.evaluate(policies, observations)
say(f"SND {gs.distributed.snd(behavior).item():.5f}")

# Gradients arrive at the rank that owns the agent.
optimizer = torch.optim.Adam(nn.ModuleList(policies).parameters(), lr=1e-3)
for step in range(3):
    value = gs.distributed.snd(gs.evaluate(policies, observations[:256]))
    optimizer.zero_grad()
    (-value).backward()
    optimizer.step()
    say(f"step {step}: SND {value.item():.5f}")

if ranks > 1:
    distributed.destroy_process_group()  # without it gloo's threads may abort a process that has finished
