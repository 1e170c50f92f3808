"""Run an experiment, continue one that was stopped, or leave one that is finished."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from graphsnd.errors import InputError
from graphsnd.locks import hold_lock, remove_parts
from graphsnd.plots import collect_provenance
from graphsnd.plots.provenance import find_commit, verify_commit
from graphsnd.plots.style import png_bytes
from graphsnd.storage import read_json, write_whole
from paper.cells import Cells
from paper.experiment import Experiment, Outcome, Scale
from paper.rows import decode
from paper.store import RESULTS, Result, read_result, result_path, write_result

FINISHED = "finished"  # an empty folder among the cells of an experiment that ran to its end
WORK = Path("runs/paper")


def run(
    experiment: Experiment[Any, Any],
    scale: Scale,
    *,
    out: Path = RESULTS,
    work: Path = WORK,
    again: bool = False,
    break_lock: bool = False,
    step: Callable[[str], None] = lambda name: None,
) -> Result:
    """Run one experiment and write ``<out>/<name>/<scale>.json`` and its figure.

    A finished experiment is read, and only its figure is drawn where that is missing. One that was stopped continues
    from its cells.

    Args:
        experiment: See :func:`~paper.registry.find`.
        scale: How much of it.
        out: Folder of results.
        work: Folder of unfinished work; cells are in ``<work>/<scale>/<name>``.
        again: Repeat a finished experiment from its beginning. A repetition that was stopped continues.
        break_lock: Take over the lock of another process, ``<work>/<scale>/<name>.lock``.
        step: Called with the name of each cell as it begins.

    Raises:
        InputError: When another process runs it in the same folder, at paper scale when the sources are not those of a
            commit, and what its cells raise.
    """
    path, folder = result_path(out, experiment.name, scale), work / scale.value / experiment.name
    if path.is_file() and not again:
        result = read_result(path)
        if not path.with_suffix(".png").is_file():
            draw(experiment, result, path)
        return result
    clean = scale is Scale.PAPER
    if clean:
        verify_commit("result", RESULTS.parents[1])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder.with_name(f"{folder.name}.lock"), break_lock=break_lock):
        if again and (folder / FINISHED).exists():
            # Out of the way at once: cells that a kill left over would pass for those of the repetition.
            old = folder.with_name(f"{folder.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
            shutil.rmtree(old)
        remove_parts(folder)
        cells, begin = Cells(folder, results=RESULTS, step=step, clean=clean), perf_counter()
        about = collect_provenance(f"python -m paper run {experiment.name} --scale {scale.value}")
        outcome = experiment.run(scale, cells)
        if clean and find_commit()["tree"] != about["tree"]:
            # What was imported late may be of other sources than what was imported first.
            raise InputError("result", "to be made by the same sources from start to end", "sources that changed")
        about["took_s"] = round(perf_counter() - begin + cells.spared, 1)
        result = _result(experiment, scale, outcome, RESULTS, _date(about, cells))
        cells.folder(FINISHED)  # before the result, which is not looked behind once it is there
        path.with_suffix(".png").unlink(missing_ok=True)  # a figure of other numbers is worse than none
        write_result(result, path)
        draw(experiment, result, path)
    return result


def draw(experiment: Experiment[Any, Any], result: Result, path: Path) -> None:
    """Draw the figure of a result beside its JSON."""
    figure = experiment.figure(decode(experiment.data, result.data))
    write_whole(path.with_suffix(".png"), _shrink(png_bytes(figure)))


def _shrink(png: bytes) -> bytes:
    """Keep 256 colours, enough for a diagram, and a third of the bytes: figures are committed, and are on pages."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    small.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _result(
    experiment: Experiment[Any, Any], scale: Scale, outcome: Outcome[Any, Any], committed: Path, about: dict[str, Any]
) -> Result:
    del about["seed"]
    about["seeds"] = [int(seed) for seed in outcome.seeds]
    about["sources"] = {source: _origin_of(committed.parent / source) for source in outcome.sources}
    data = json.loads(json.dumps(outcome.data, default=asdict))  # the figure sees what a later reader sees
    numbers = {name: number for name, number in vars(outcome.numbers).items() if number is not None}
    return Result(experiment.name, experiment.title, scale, about, tuple(outcome.sources), numbers, data)


def _date(about: dict[str, Any], cells: Cells) -> dict[str, Any]:
    """Say when the cells were measured, on how busy a machine, and by which commits: a resumed run may have several."""
    dates, loads = [cell.date for cell in cells.made if cell.date], [cell.load for cell in cells.made if cell.load]
    about["date"] = min([about["date"], *dates])
    about["hardware"]["load"] = max(loads, default=about["hardware"]["load"])
    return about | {"cells": sorted({cell.commit for cell in cells.made})}


def _origin_of(source: Path) -> dict[str, Any] | None:
    """Return what a committed result says about its own making; None where it says nothing."""
    path = source / "about.json" if source.is_dir() else source
    if path.suffix != ".json" or not path.is_file():
        return None
    about = decode(dict[str, Any], read_json(path, path.name))
    about = about.get("provenance", about)
    keys = ("command", "date", "commit", "dirty", "tree", "hardware", "versions", "seeds", "device", "took_s")
    return {key: about[key] for key in keys if key in about}
