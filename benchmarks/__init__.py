"""How fast is SND on this machine? Measurements behind ``graphsnd bench``, as one JSON object.

Pictures and tables of them are drawn by :mod:`benchmarks.report_bench`, from the JSON alone.
"""

from benchmarks.suite import DEFAULT, FULL, QUICK, Plan, measure, parts

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "measure", "parts"]
