"""2 WHO acts: policies, stacked or listed, evaluated on shared observations."""

from graphsnd.teams.evaluate import Policy, evaluate

__all__ = ["Policy", "evaluate"]
