"""How long graphs take to build."""

from graphsnd.reproduce.construction.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
