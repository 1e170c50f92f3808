"""Run an experiment, continue one that was stopped, or leave one that is finished."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.provenance import verify_commit
from graphsnd.errors import InputError
from graphsnd.files import hold_lock, read_json, remove_parts, write_whole
from graphsnd.plots.provenance import collect_provenance, find_commit
from graphsnd.plots.style import png_bytes
from paper.cells import Cells, date_provenance
from paper.experiment import Experiment, Outcome, Scale
from paper.rows import decode
from paper.stacks import files_to_measure, stacks_to_train, train_stacks
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
    ray: str | None = None,
    step: Callable[[str], None] = lambda name: None,
) -> Result:
    """Run one experiment and write ``<out>/<name>/<scale>.json`` and its figure.

    A finished experiment is read, and only its figure is drawn where that is missing. One that was stopped continues
    from its cells, and one that lacks trainings or measurements of a GPU goes on where there is one.

    Args:
        experiment: See :func:`~paper.registry.find`.
        scale: How much of it.
        out: Folder of results.
        work: Folder of unfinished work; cells are in ``<work>/<scale>/<name>``.
        again: Repeat a finished experiment from its beginning. A repetition that was stopped continues.
        ray: Address of a Ray cluster that trains the stacks that are missing at paper scale.
        step: Called with the name of each cell as it begins.

    Raises:
        InputError: When another process runs it in the same folder, at paper scale when the sources are not those of a
            commit, and what its cells raise.
    """
    path, folder = result_path(out, experiment.name, scale), work / scale.value / experiment.name
    clean = scale is Scale.PAPER
    cells = Cells(folder, results=RESULTS, step=step, clean=clean, out=out, again=again, ray=ray)
    lacking = clean and (stacks_to_train(experiment.stacks, cells) or files_to_measure(experiment.files, cells))
    if path.is_file() and not again and not lacking:
        result = read_result(path)
        if not path.with_suffix(".png").is_file():
            draw(experiment, result, path)
        return result
    if clean:
        verify_commit("result", RESULTS.parents[1])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder.with_name(f"{folder.name}.lock")):
        if again and (folder / FINISHED).exists():
            # Out of the way at once: cells that a kill left over would pass for those of the repetition.
            old = folder.with_name(f"{folder.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
            shutil.rmtree(old)
        remove_parts(folder)
        begin = perf_counter()
        about = collect_provenance(f"python -m paper run {experiment.name} --scale {scale.value}")
        outcome = experiment.run(scale, cells)
        if clean and find_commit()["tree"] != about["tree"]:
            # What was imported late may be of other sources than what was imported first.
            raise InputError("result", "to be made by the same sources from start to end", "sources that changed")
        about["took_s"] = round(perf_counter() - begin + cells.spared, 1)
        result = _result(experiment, scale, outcome, (out, RESULTS), date_provenance(about, cells.made))
        cells.folder(FINISHED)  # before the result, which is not looked behind once it is there
        path.with_suffix(".png").unlink(missing_ok=True)  # a figure of other numbers is worse than none
        write_result(result, path)
        draw(experiment, result, path)
    return result


def train(
    experiment: Experiment[Any, Any],
    names: Sequence[str] = (),
    *,
    out: Path = RESULTS,
    work: Path = WORK,
    device: str = "cuda",
    ray: str | None = None,
    step: Callable[[str], None] = lambda name: None,
) -> None:
    """Train stacks of an experiment's study at paper scale, and leave their logs in ``out``.

    Args:
        experiment: See :func:`~paper.registry.find`.
        names: Of its stacks; all of them when there are none.
        out: Folder of results.
        work: Folder of unfinished work, where a training that was stopped goes on.
        device: Where to train.
        ray: Address of a Ray cluster on which each stack is a task.
        step: Called with news.

    Raises:
        InputError: For unknown stacks, an experiment without any, and sources that are not those of a commit.
    """
    if not experiment.stacks:
        raise InputError("NAME", "of an experiment with trainings", repr(experiment.name))
    verify_commit("log", RESULTS.parents[1])
    folder = work / Scale.PAPER.value / experiment.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder.with_name(f"{folder.name}.lock")):
        cells = Cells(folder, results=RESULTS, step=step, clean=True, out=out, ray=ray)
        train_stacks(experiment.stacks, names or list(experiment.stacks), cells, device=device)


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
    experiment: Experiment[Any, Any],
    scale: Scale,
    outcome: Outcome[Any, Any],
    roots: Sequence[Path],
    about: dict[str, Any],
) -> Result:
    del about["seed"]
    about["seeds"] = [int(seed) for seed in outcome.seeds]
    about["sources"] = {source: _origin_of(source, roots) for source in outcome.sources}
    origins = [origin for origin in about["sources"].values() if origin and "date" in origin]
    if origins and not about["cells"]:  # nothing was measured now: when, and on how busy a machine, files say
        hardware = about["hardware"] | {"load": max(origin["hardware"].get("load") or 0.0 for origin in origins)}
        about |= {"date": min(origin["date"] for origin in origins), "hardware": hardware}
        about["cells"] = sorted({origin["commit"] for origin in origins})
        about["took_s"] = round(sum(origin.get("took_s", 0.0) for origin in origins), 1)
    data = json.loads(json.dumps(outcome.data, default=asdict))  # the figure sees what a later reader sees
    numbers = {name: number for name, number in vars(outcome.numbers).items() if number is not None}
    return Result(experiment.name, experiment.title, scale, about, tuple(outcome.sources), numbers, data)


def _origin_of(source: str, roots: Sequence[Path]) -> dict[str, Any] | None:
    """Return what a result that was read says about its own making; None where it says nothing."""
    places = [root / source.removeprefix("results/") for root in roots]
    path = next((place for place in places if place.exists()), places[-1])
    path = path / "about.json" if path.is_dir() else path
    if path.suffix != ".json" or not path.is_file():
        return None
    about = decode(dict[str, Any], read_json(path, path.name))
    about = about.get("provenance", about)
    keys = ("command", "date", "commit", "dirty", "tree", "hardware", "versions", "seeds", "device", "took_s")
    return {key: about[key] for key in keys if key in about}
