"""What a user's typed code may look like; `make package` checks it with `mypy --strict` against the built wheel."""

import torch

import graphsnd as gs
from graphsnd.analysis.grouping import Roles
from graphsnd.control import DiCo
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam


def measure(policies: list[torch.nn.Module], observations: torch.Tensor) -> gs.Estimate:
    """Measure modules exactly, and from a sample."""
    exact: gs.Estimate = gs.measure(policies, observations)
    sampled = gs.measure(policies, observations, design="uniform:3", seed=1)
    named = gs.measure(policies, observations, outputs="logits", distance="hellinger")
    shared = gs.measure(gs.Team.shared(policies[0], agents=2, columns=slice(2)), observations)
    assert named.agents == len(policies)
    assert shared.agents == 2
    low, high = sampled.interval
    assert low <= float(exact) <= high
    return exact


def inspect(behavior: gs.Behavior) -> list[int]:
    """Ask for distances, graphs, roles and contributions."""
    matrix: torch.Tensor = gs.pairwise(behavior, distance=gs.Wasserstein())
    graph: gs.Graph = gs.graphs.circulant(behavior.agents, 2)
    local: torch.Tensor = gs.graph_snd(behavior, graph)
    found: Roles = gs.roles(behavior)
    assert local <= matrix.max()
    assert gs.contributions(behavior).shape == (behavior.agents,)
    return [int(label) for label in found.labels]


def control(behavior: gs.Behavior) -> float:
    """Take a step of a controller."""
    controller = DiCo(target=0.3)
    scale, _, _ = controller.step(gs.snd(behavior), controller.initial())
    return float(scale)


def main() -> None:
    """Use all of them."""
    torch.manual_seed(0)
    observations = torch.randn(32, 3)
    print(measure([torch.nn.Linear(3, 2) for _ in range(4)], observations))
    network = StackedMLP.create((5,), (3, 8, 4), init="linear", generator=torch.Generator().manual_seed(0))
    team = StackedTeam(network, GaussianHead(2, mean="tanh", scale="network"))
    behavior = team.evaluate(observations)
    print(inspect(behavior), control(behavior))


if __name__ == "__main__":
    main()
