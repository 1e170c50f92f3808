"""Which agents may share parameters? Train apart, find roles, train again with one network for each role."""

import torch

import graphsnd as gs

AGENTS, FEATURES, SAMPLES = 12, 6, 24


def make_policy() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))


def train(labels: list[int], observations: torch.Tensor, wanted: torch.Tensor, steps: int = 200) -> list:
    """Return a policy for each agent; agents with the same label share one, and learn from all their samples."""
    networks = {label: make_policy() for label in labels}
    policies = [networks[label] for label in labels]
    optimiser = torch.optim.Adam([part for network in networks.values() for part in network.parameters()], lr=1e-2)
    for _ in range(steps):
        actions = torch.stack([policy(own) for policy, own in zip(policies, observations, strict=True)])
        optimiser.zero_grad()
        (actions - wanted).square().mean().backward()  # minus the reward
        optimiser.step()
    return policies


def score(policies: list, jobs: list[int], wants: torch.Tensor) -> float:
    """Return the mean reward on observations that were not trained on."""
    fresh = torch.randn(512, FEATURES)
    with torch.no_grad():
        actions = torch.stack([policy(fresh) for policy in policies])
    return -float((actions - fresh @ wants[jobs]).square().mean())


def main() -> None:
    torch.manual_seed(0)
    # Nobody told the agents that there are three jobs among them; each has few samples of its own.
    jobs = [agent % 3 for agent in range(AGENTS)]
    wants = 1.5 * torch.randn(3, FEATURES, 2)
    observations = torch.randn(AGENTS, SAMPLES, FEATURES)
    wanted = observations @ wants[jobs] + 0.5 * torch.randn(AGENTS, SAMPLES, 2)

    apart = train(list(range(AGENTS)), observations, wanted)
    with torch.no_grad():
        behavior = gs.evaluate(apart, observations.flatten(0, 1))
    roles = gs.roles(behavior)
    print(roles)
    print(gs.decompose(behavior, roles.labels))

    by_role = train(roles.labels.tolist(), observations, wanted)
    together = train([0] * AGENTS, observations, wanted)
    for name, policies in (("12 networks", apart), (f"{roles.count} networks", by_role), ("1 network", together)):
        print(f"{name:12} reward {score(policies, jobs, wants):+.3f}")


if __name__ == "__main__":
    main()
