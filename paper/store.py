"""Results on disk: ``results/<experiment>/<scale>.json``, and beside it the figure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from graphsnd.errors import InputError
from graphsnd.files import parse_json, write_whole
from paper.experiment import Number, Scale
from paper.rows import decode

RESULTS = Path(__file__).parent / "results"  # committed, of this checkout


@dataclass(frozen=True)
class Result:
    """One experiment at one scale, as its file has it."""

    experiment: str
    title: str
    scale: Scale
    provenance: dict[str, Any]  # command, date, commit, dirty, hardware, versions, seeds, took_s, and that of sources
    sources: tuple[str, ...]  # committed results that were read in place of a run
    numbers: dict[str, Number]
    data: Any  # what the figure draws, as JSON


def result_path(folder: Path, name: str, scale: Scale) -> Path:
    """Return the path of an experiment's JSON; its figure has the same name and ends in ``.png``."""
    return folder / name / f"{scale.value}.json"


def write_result(result: Result, path: Path) -> None:
    """Write all of it or nothing.

    Raises:
        InputError: For a number that is not finite, or whose interval does not hold together.
    """
    for name, number in result.numbers.items():
        _check(f"{result.experiment}.{name}", number)
    head = {"format": 1, **vars(result)}
    data = json.dumps(head.pop("data"), allow_nan=False)
    # What people read has a line for each value; the data may be long and has one line.
    text = json.dumps(head, indent=1, allow_nan=False, default=as_dict)[:-2] + ',\n "data": ' + data
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text + "\n}\n")


def as_dict(row: Any) -> dict[str, Any]:
    """Return the fields of a row for JSON; those of a number without empty ends, which most numbers have."""
    return {name: value for name, value in vars(row).items() if name != "ends" or value}


def read_result(path: Path) -> Result:
    """Read what :func:`write_result` wrote.

    Raises:
        InputError: For a damaged file, or another one.
    """
    fix = "Remove it and run the experiment again."
    try:
        return cast(Result, decode(Result, parse_json(path.read_bytes())))
    except (OSError, ValueError) as error:
        raise InputError("FILE", "with the result of an experiment", f"{path}: {error!r}", fix) from None


def read_results(folder: Path, name: str) -> dict[Scale, Result]:
    """Return the results of one experiment by the scales at which it was run, the smallest first."""
    paths = {scale: result_path(folder, name, scale) for scale in Scale}
    return {scale: read_result(path) for scale, path in paths.items() if path.is_file()}


def _check(name: str, number: Number) -> None:
    ends = [end for end in (number.low, number.high) if end is not None]
    if not all(math.isfinite(end) for end in (number.value, *ends)):
        raise InputError(name, "to be finite, or left out", repr(number))
    if len(ends) == 2 and ends[0] > ends[1]:
        raise InputError(name, "with low at most high", repr(number))
