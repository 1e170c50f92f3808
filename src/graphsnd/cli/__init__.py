"""The command line: ``graphsnd measure | demo | bench | doctor``.

Strings become objects here and nowhere else: :mod:`~graphsnd.cli.specs` reads graphs and distances,
:mod:`~graphsnd.cli.files` reads teams.
"""

from graphsnd.cli.app import app, main

__all__ = ["app", "main"]
