"""SND on the complete graph, and the propositions that hold exactly."""

from graphsnd.reproduce.recovery.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
