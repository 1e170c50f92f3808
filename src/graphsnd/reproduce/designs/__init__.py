"""What the paper does not have: pairs that change with the observation."""

from graphsnd.reproduce.designs.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
