"""``python -m benchmarks NAME``: answer one question about this machine, as tables, JSON and a figure."""

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from rich.console import Console

from benchmarks.comparison import compare, count_common
from benchmarks.figures import FIGURES, machine
from benchmarks.provenance import verify_commit
from benchmarks.timing import Options, Tables
from graphsnd.cli.options import check_output, parse_device
from graphsnd.errors import InputError
from graphsnd.files import parse_json, write_whole
from graphsnd.plots.formatting import format_duration
from graphsnd.plots.provenance import collect_provenance
from graphsnd.plots.style import save_png
from graphsnd.plots.tables import table

RESULTS = Path(__file__).resolve().parent / "results"  # committed
NAMES = (
    "speed", "calls", "share", "modules", "moving", "sorting", "designs", "coverage", "samples",
    "worlds", "training", "benchmarl", "callback", "dico", "curves", "learning", "tracking",
)  # fmt: skip
WHICH = "a question, or all for those that guard against regressions; default: speed"
ALL = ("calls", "share", "modules", "training", "worlds", "dico")  # what `make bench` measures


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        _check(given)
        if given.plot:
            _draw([_read("--plot", file, set(FIGURES)) for file in given.plot], given.png)
        else:
            before = [_read("--compare", file) for file in given.compare or ()]
            after = before.pop() if len(before) > 1 else _measure(given)
            if before and _show_moves(before[0], after):
                sys.exit(1)
    except InputError as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    questions = ((name, str(import_module(f"benchmarks.{name}").__doc__).splitlines()[0]) for name in NAMES)
    parser.epilog = "questions:\n" + "\n".join(f"  {name:12} {question}" for name, question in questions)
    parser.add_argument("name", metavar="NAME", nargs="?", choices=(*NAMES, "all"), default="speed", help=WHICH)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda; default: cuda where there is one")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small teams, seconds: does it run?")
    sizes.add_argument("--full", action="store_true", help="larger teams and more rounds")
    parser.add_argument("--seed", type=int, default=0, help="of teams, observations and draws")
    parser.add_argument("--team", type=Path, action="append", default=[], help="designs: folder of a trained team")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the measurements")
    parser.add_argument("--png", type=Path, metavar="PATH", help="write the figure of speed or share")
    parser.add_argument("--force", action="store_true", help="write over files of another kind")
    parser.add_argument("--plot", type=Path, nargs="+", metavar="FILE", help="measure nothing: draw these into --png")
    text = "print what moved since FILE beyond noise; exit with 1 if anything is slower; two files: measure nothing"
    parser.add_argument("--compare", type=Path, nargs="+", metavar="FILE", help=text)
    return parser


def _check(given: argparse.Namespace) -> None:
    if given.plot and given.png is None:
        raise InputError("--plot", "with --png", "no --png")
    if given.png is not None and given.name not in FIGURES:
        raise InputError("--png", f"for {' or '.join(FIGURES)}", repr(given.name))
    if len(given.compare or ()) > 2:
        raise InputError("--compare", "to be one or two files", len(given.compare))
    inputs = [*(given.plot or ()), *(given.compare or ()), *(file for team in given.team for file in team.glob("*"))]
    for option, path, kind in (("--json", given.json, "JSON"), ("--png", given.png, "PNG")):
        check_output(option, path, kind, inputs=inputs, force=given.force)
        if path is not None and path.resolve().is_relative_to(RESULTS):
            verify_commit(option, RESULTS.parents[1])


def _measure(given: argparse.Namespace) -> dict[str, Any]:
    begin, names = perf_counter(), ALL if given.name == "all" else (given.name,)
    device = torch.device(parse_device(given.device))
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())  # torch compares devices literally
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
        _show(question.tables(part), result)
    if given.png is not None:
        _draw([result], given.png)
    Console().print(f"took {perf_counter() - begin:.0f} s", style="dim")
    return result


def _read(option: str, file: Path, suites: set[str] | None = None) -> dict[str, Any]:
    fix = f"Write one with python -m benchmarks {' or '.join(sorted(suites or {'speed'}))} --json."
    try:
        result = parse_json(file.read_bytes())
    except (OSError, ValueError):
        raise InputError(option, "to be the JSON of a benchmark", f"{file.name!r}, unreadable", fix) from None
    if not isinstance(result, dict) or result.get("format") != 1:
        raise InputError(option, "to be the JSON of a benchmark", f"{file.name!r}", fix)
    if suites and result.setdefault("suite", "speed") not in suites:
        raise InputError(option, f"to be the JSON of {' or '.join(sorted(suites))}", f"{file.name!r}", fix)
    return result


def _draw(results: list[dict[str, Any]], png: Path) -> None:
    if len({result["suite"] for result in results}) > 1:
        raise InputError("--plot", "to be of one benchmark", ", ".join(sorted({r["suite"] for r in results})))
    print(f"wrote {save_png(FIGURES[results[0]['suite']](results), png)}")


def _show_moves(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Print what moved beyond noise; return whether anything is slower."""
    moves, common, console = compare(before, after), count_common(before, after), Console(highlight=False)
    loads = " and ".join(f"{result['hardware']['load'] or 0:.1f}" for result in (before, after))
    console.print(f"\n{common - len(moves)} of {common} times are the same within noise. Load: {loads}.", markup=False)
    if moves:
        columns = ("what", "before", "after", "times_as_long")
        console.print(table(columns, [[_cell(vars(move), column) for column in columns] for move in moves], align="<>"))
    return any(move.slower for move in moves)


def _show(tables: Tables, result: dict[str, Any]) -> None:
    # In a file there is room for all columns, where a line of 80 characters would leave none to the first one.
    console, hardware = Console(highlight=False, width=None if sys.stdout.isatty() else 120), result["hardware"]
    console.print(f"{machine(result)} ({hardware['cpu']})", markup=False)
    for title, (rows, columns) in tables.items():
        heads = [re.sub("[_ ]", "\n", column.split(".")[-1]).replace("observations", "obs.") for column in columns]
        cells = [[_cell(row, column) for column in columns] for row in rows]
        align = "<>" if isinstance(rows[0][columns[0]], str) else ">"
        scaled = "* scaled up from a part of the work" if "*" in str(cells) else None
        console.print(f"\n[bold]{title}[/bold]")
        console.print(table(heads, cells, align=align, caption=scaled))
    if (hardware["load"] or 0) > 0.25 * (hardware["cores"] or 1):
        # Torch's threads wait for each other at every operation, so a busy neighbour costs it most.
        busy = "This machine was busy before the run began. That slows what torch does more than compiled kernels:"
        console.print(f"[yellow]{busy} run again when it is idle before quoting ratios.[/yellow]")


def _cell(row: dict[str, Any], path: str) -> str:
    """Return a value as text; times as their median, and lists of three trials as the one in the middle."""
    value: Any = row
    for part in path.split("."):
        value = value.get(part)
        if value is None:
            return "-"
    if isinstance(value, list):
        value = all(value) if isinstance(value[0], bool) else sorted(value)[len(value) // 2]
    if isinstance(value, dict):
        return format_duration(value["median_s"]) + "*" * (value.get("share_timed", 1) < 1)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    main()
