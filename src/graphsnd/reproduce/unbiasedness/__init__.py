"""Horvitz-Thompson estimates on average."""

from graphsnd.reproduce.unbiasedness.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
