"""Studies that the paper names as next steps: what is asked, by which rule it is answered, and what that costs.

``RULES.md`` was written before the first run. ``python -m paper.beyond plan`` prints the stacks of runs and their GPU
minutes, ``train`` trains those that are missing, and ``answers`` applies the rules.
"""
