"""How far sampled pairs are from SND, and how far they may be."""

from paper.concentration.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
