"""How long a metric call takes."""

from paper.timing.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
