"""How fast, and how accurate: one question for each module, asked with ``python -m benchmarks NAME``.

A module's docstring is its question, and explains the numbers. ``measure(options)`` returns the content of the JSON
file; every list of rows in it is shown as a table. :mod:`benchmarks.figures` draws the times of one or more machines.
"""
