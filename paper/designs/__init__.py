"""What the paper does not have: pairs that change with the observation."""

from paper.designs.run import EXPERIMENT

__all__ = ["EXPERIMENT"]
