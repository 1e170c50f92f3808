"""The paper's experiments, one module each, on the library's own parts, and a verdict on each of the paper's claims.

An :class:`~paper.experiment.Experiment` runs at a :class:`~paper.experiment.Scale` and leaves numbers. A
:class:`~paper.judging.claims.Claim` says which number decides it and by which rule.
:func:`~paper.judging.verdicts.judge_all` compares the claims with a folder of results. ``python -m paper`` does all of
that; ``paper/recovery.py`` is the experiment to read first.
"""

import warnings

# Large teams on few observations are meant here.
warnings.filterwarnings("ignore", r"Read \d+ agents", UserWarning, rf"{__name__}\.")
