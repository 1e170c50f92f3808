"""``python -m paper``: run the paper's experiments and compare its claims with them."""

from paper.cli import main

main()
