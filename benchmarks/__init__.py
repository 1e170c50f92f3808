"""How fast, and how accurate: one question for each module, asked with ``python -m benchmarks NAME``.

A module's docstring is its question, and says what the numbers mean. ``measure(options)`` returns what is written as
JSON, ``tables(result)`` shows it. :mod:`benchmarks.figures` draws the times of one or more machines.
"""

import warnings

# Large teams on few observations are meant here.
warnings.filterwarnings("ignore", r"Read \d+ agents", UserWarning, rf"{__name__}\.")
