"""How long a metric call takes."""

from graphsnd.reproduce.timing.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
