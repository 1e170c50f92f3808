"""Numbers of the author's public logs, a committed table, so that the rules of our claims can judge them too.

``results/published.json`` has the commit of the public repository and the file of each number. Times have intervals
like ours, as far as the logs record their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from graphsnd.files import read_json
from paper.experiment import Number
from paper.rows import decode
from paper.runner import RESULTS


@dataclass(frozen=True)
class PublishedNumber:
    """One number of the author's logs."""

    experiment: str
    name: str  # name of the number in that experiment
    number: Number
    file: str  # path in the public repository


@dataclass(frozen=True)
class Published:
    """All numbers of the author's logs."""

    repository: str
    commit: str
    numbers: tuple[PublishedNumber, ...]

    def find(self, experiment: str, name: str) -> PublishedNumber | None:
        """Return a number; None if the logs lack it."""
        return next((one for one in self.numbers if (one.experiment, one.name) == (experiment, name)), None)


def read_published() -> Published:
    """Return the table."""
    path = RESULTS / "published.json"
    return cast(Published, decode(Published, read_json(path, path.name)))
