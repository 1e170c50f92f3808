"""The command line: ``graphsnd measure | advise | train | demo | doctor``.

Each command has a module of its name. Text becomes objects here and nowhere else.
"""

from graphsnd.cli.app import main

__all__ = ["main"]
