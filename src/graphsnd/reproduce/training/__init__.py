"""One hundred agents in training: sampled against full SND."""

from graphsnd.reproduce.training.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
