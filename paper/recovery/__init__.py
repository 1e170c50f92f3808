"""SND on the complete graph, and the propositions that hold exactly."""

from paper.recovery.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
