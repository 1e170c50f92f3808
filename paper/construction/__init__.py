"""How long graphs take to build."""

from paper.construction.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
