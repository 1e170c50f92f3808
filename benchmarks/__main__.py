"""``python -m benchmarks NAME``: answer one question about this machine, as tables, JSON and a figure."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from rich.console import Console

from benchmarks.figures import FIGURES, machine
from benchmarks.provenance import collect_provenance, verify_commit
from benchmarks.timing import Options
from graphsnd.errors import InputError
from graphsnd.files import parse_json, write_whole
from graphsnd.plots.style import save_png
from graphsnd.plots.tables import format_duration, table

RESULTS = Path(__file__).resolve().parent / "results"  # committed results
NAMES = ("speed", "calls", "share", "modules", "designs", "coverage", "worlds", "training", "dico")
# Columns that identify the rows of a list.
KEYS = ("suite", "case", "design", "task", "team", "world", "n", "agents", "observations", "features")
ALL = ("calls", "share", "modules", "training", "worlds", "dico")  # what `make bench` measures


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        if given.plot:
            results = [_read("--plot", file) for file in given.plot]
            print(f"wrote {save_png(_figure(results), given.png or Path('bench.png'))}")
        else:
            _measure(given)
    except InputError as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    questions = ((name, str(import_module(f"benchmarks.{name}").__doc__).splitlines()[0]) for name in NAMES)
    parser.epilog = "questions:\n" + "\n".join(f"  {name:12} {question}" for name, question in questions)
    which = "a question, or all for those that guard against regressions; default: speed"
    parser.add_argument("name", metavar="NAME", nargs="?", choices=(*NAMES, "all"), default="speed", help=which)
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=("cpu", "cuda"), default=usual, help="default: cuda where there is one")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small teams, seconds: does it run?")
    sizes.add_argument("--full", action="store_true", help="larger teams and more rounds")
    parser.add_argument("--seed", type=int, default=0, help="of teams, observations and draws")
    parser.add_argument("--team", type=Path, action="append", default=[], help="designs: folder of a trained team")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the measurements")
    text = "measure nothing: draw these results of speed or share into --png"
    parser.add_argument("--plot", type=Path, nargs="+", metavar="FILE", help=text)
    parser.add_argument("--png", type=Path, metavar="PATH", help="the figure of --plot; default: bench.png")
    return parser


def _measure(given: argparse.Namespace) -> None:
    if given.json is not None and not given.json.parent.is_dir():
        raise InputError("--json", "in a folder that exists", repr(str(given.json)))
    if given.json is not None and given.json.resolve().is_relative_to(RESULTS):
        verify_commit("--json", RESULTS.parents[1])
    begin, names = perf_counter(), ALL if given.name == "all" else (given.name,)
    # Torch compares devices literally.
    device = torch.device("cuda", torch.cuda.current_device()) if given.device == "cuda" else torch.device("cpu")
    mode = " --quick" * given.quick + " --full" * given.full + "".join(f" --team {one.name}" for one in given.team)
    command = f"python -m benchmarks {given.name} --device {device.type}{mode} --seed {given.seed}"
    result = collect_provenance(command, given.seed)  # before the run, because it notes how busy the machine is
    result |= {"format": 1, "suite": given.name, "device": device.type}
    for name in names:
        question = import_module(f"benchmarks.{name}")
        notes = {"notes": str(question.__doc__).strip().split("\n\n")}
        part = notes | question.measure(Options(device, given.quick, given.full, given.seed, tuple(given.team)))
        result |= part if len(names) == 1 else {name: part}
        if given.json is not None:  # after each part, because the whole takes long
            result["took_s"] = round(perf_counter() - begin, 1)
            write_whole(given.json, json.dumps(result, indent=1, allow_nan=False) + "\n")
        _show(name, part, result)
    Console().print(f"took {perf_counter() - begin:.0f} s", style="dim")


def _read(option: str, file: Path) -> dict[str, Any]:
    try:
        result = parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(option, "to be the JSON of a benchmark", f"{str(file)!r} ({error})") from None
    if not isinstance(result, dict) or result.get("format") != 1:
        raise InputError(option, "to be the JSON of a benchmark", repr(str(file)))
    return result


def _figure(results: list[dict[str, Any]]) -> Any:
    suites = {result.get("suite", "speed") for result in results}
    if len(suites) > 1 or not suites <= FIGURES.keys():
        raise InputError("--plot", f"to be of {' or '.join(FIGURES)}", ", ".join(sorted(suites)))
    return FIGURES[suites.pop()](results)


def _show(name: str, part: dict[str, Any], result: dict[str, Any]) -> None:
    # In a file there is room for all columns, where a line of 80 characters would leave none to the first one.
    console, hardware = Console(highlight=False, width=None if sys.stdout.isatty() else 160), result["hardware"]
    console.print(f"{machine(result)} ({hardware['cpu']})", markup=False)
    for title, rows in _tables(name, [part]):
        columns = list(dict.fromkeys(column for row in rows for column in row))
        cells = [[row.get(column, "-") for column in columns] for row in rows]
        heads = [re.sub("[_ ]", "\n", column).replace("observations", "obs.") for column in columns]
        scaled = "* scaled up from a part of the work" if "*" in str(cells) else None
        console.print(f"\n{title}", markup=False, style="bold")
        console.print(table(heads, cells, align="<>"[: len(heads)], caption=scaled))
    if (hardware["load"] or 0) > 0.25 * (hardware["cores"] or 1):
        # Torch's threads wait for each other at every operation, so a busy neighbour costs it most.
        busy = "This machine was busy before the run began. That slows what torch does more than compiled kernels:"
        console.print(f"[yellow]{busy} run again when it is idle before quoting ratios.[/yellow]")


def _tables(title: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield a table of every list of rows in a result, with its title."""
    flat = [dict(_cells(row | row.get("contestants", {}))) for row in rows]
    if any(flat):
        yield title, flat
    for row in rows:
        about = {key: row[key] for key in KEYS if isinstance(row.get(key), str | int)}
        where = ", ".join([title, *map(str, about.values())]) if len(rows) > 1 else title
        for name, value in row.items():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                yield from _tables(f"{where}, {name}", value)
    for name, value in rows[0].items():
        if isinstance(value, dict) and name != "contestants" and "median_s" not in value:
            yield from _tables(f"{title}, {name}", [{"n": row.get("n")} | row[name] for row in rows])


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of a row as text by column, times as their median."""
    for name, value in row.items():
        if isinstance(value, dict) and "median_s" in value:
            yield name, format_duration(value["median_s"]) + "*" * (value.get("share_timed", 1) < 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        elif isinstance(value, str):
            yield name, value


if __name__ == "__main__":
    main()
