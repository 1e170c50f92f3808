"""Categorical policies in simple_spread."""

from paper.mpe.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
