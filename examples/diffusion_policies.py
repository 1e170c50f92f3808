"""Diffusion policies, which can only be sampled: who goes where, and do two of them act alike?"""

import torch
from torch import nn

import graphsnd as gs

STEPS = 20
signal = torch.linspace(1, 0.05, STEPS) ** 2  # the share of the action that is left after each step of noise


class DiffusionPolicy(nn.Module):
    """Turn noise into an action, step by step; nothing says how probable an action is."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def predict(self, noisy: torch.Tensor, observations: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Return the noise in a noisy action."""
        return self.network(torch.cat([noisy, observations, level], dim=-1))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Draw one action for each observation ``[observations, 2]``."""
        action = torch.randn(len(observations), 1)
        for step in reversed(range(STEPS)):
            kept = signal[step]
            noise = self.predict(action, observations, kept.expand(len(action), 1))
            clean = ((action - (1 - kept).sqrt() * noise) / kept.sqrt()).clamp(-3, 3)
            before = signal[step - 1] if step else torch.ones(())
            action = before.sqrt() * clean + (1 - before).sqrt() * torch.randn_like(action) * (step > 0)
        return action


def train(sides: float) -> DiffusionPolicy:
    """Imitate an expert that passes an obstacle on both sides, or aims at it with as much spread."""
    policy = DiffusionPolicy()
    optimiser = torch.optim.Adam(policy.parameters(), 3e-3)
    for _ in range(1000):
        seen, noise = torch.randn(256, 2), torch.randn(256, 1)
        action = 0.5 * seen[:, :1] + sides * torch.randn(256, 1).sign() + (1.04 - sides**2) ** 0.5 * torch.randn(256, 1)
        kept = signal[torch.randint(STEPS, (256, 1))]
        loss = (policy.predict(kept.sqrt() * action + (1 - kept).sqrt() * noise, seen, kept) - noise).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return policy


torch.manual_seed(0)
around = train(sides=1.0)
team = {"around": around, "its copy": around, "straight on": train(sides=0.0)}
samples = gs.draw_samples(team, torch.randn(64, 2), samples=64)
moments = gs.Gaussian(samples.samples.mean(dim=-2), samples.samples.std(dim=-2))
for name, matrix in (("moments", gs.pairwise(moments)), ("samples", gs.pairwise(samples, gs.Sliced(debias=True)))):
    print(f"by {name}: copy {matrix[0, 1]:.3f}, straight on {matrix[0, 2]:.3f}")
print(gs.measure(samples, distance=gs.Sliced(debias=True)))
