"""Numbers of the author's public logs, a committed table, so that the rules of our claims can be asked about them too.

``results/published.json`` has the commit of the public repository and the file of each number. Times have intervals as
ours do, as far as the logs tell their noise.
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
    name: str  # as the numbers of that experiment are named
    number: Number
    file: str  # in the public repository


@dataclass(frozen=True)
class Published:
    """All of them."""

    repository: str
    commit: str
    numbers: tuple[PublishedNumber, ...]

    def find(self, experiment: str, name: str) -> PublishedNumber | None:
        """Return a number, None where the logs do not hold it."""
        return next((one for one in self.numbers if (one.experiment, one.name) == (experiment, name)), None)


def read_published() -> Published:
    """Return the table."""
    path = RESULTS / "published.json"
    return cast(Published, decode(Published, read_json(path, path.name)))
