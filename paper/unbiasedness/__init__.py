"""Horvitz-Thompson estimates on average."""

from paper.unbiasedness.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
