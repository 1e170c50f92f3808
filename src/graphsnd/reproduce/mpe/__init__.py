"""Categorical policies in simple_spread."""

from graphsnd.reproduce.mpe.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
