"""``python -m graphsnd``."""

from graphsnd.cli import main

main()
