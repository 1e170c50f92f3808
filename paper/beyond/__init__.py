"""Studies that the paper names as next steps: the questions, the rules that answer them, and the cost.

``RULES.md`` was written before the first run. ``python -m paper.beyond plan`` prints the stacks of runs and their GPU
minutes, ``train`` trains the missing stacks, and ``answers`` applies the rules.
"""
