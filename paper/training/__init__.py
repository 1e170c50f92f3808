"""One hundred agents in training: sampled against full SND."""

from paper.training.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
