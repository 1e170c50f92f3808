"""``python -m paper.beyond``: the plan of the study, its trainings on a GPU, and its answers."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.provenance import collect_provenance, verify_commit
from graphsnd.errors import check_choice
from graphsnd.files import write_whole
from graphsnd.plots.tables import table
from graphsnd.rl.log import read_rows
from paper.beyond.online import run_online
from paper.beyond.page import write_page
from paper.beyond.tasks import LARGE, STACKS, estimate_minutes
from paper.runner import RESULTS, WORK, Cells, stacks_to_train, train_stacks

EVERY = {**STACKS, **LARGE}
app = typer.Typer(help="What the paper names as next steps.", no_args_is_help=True, add_completion=False)


def make_cells() -> Cells:
    """Return the cells that hold unfinished trainings."""
    return Cells(WORK / "beyond", clean=True, command="python -m paper.beyond train", step=typer.echo)


@app.command()
def plan() -> None:
    """Print each stack: its runs, the estimated minutes on an H200, and whether its log exists."""
    lines, there = [], {name for name in EVERY if (RESULTS / name / "metrics.csv").is_file()}
    for name, task in EVERY.items():
        runs, minutes = len(task.runs()), estimate_minutes(task)
        lines.append((name, str(runs), f"{minutes:.1f}", "there" if name in there else "missing"))
    total = sum(map(estimate_minutes, EVERY.values()))
    caption = f"{sum(len(task.runs()) for task in EVERY.values())} runs, {total:.0f} minutes"
    Console().print(table(("stack", "runs", "minutes", "log"), lines, caption=caption))


@app.command()
def train(names: Annotated[list[str] | None, typer.Argument(help="Stacks (default: all missing).")] = None) -> None:
    """Train stacks on this machine's GPU; a stopped stack resumes."""
    for name in names or ():
        check_choice("names", name, EVERY)
    verify_commit("log", RESULTS.parents[1])
    cells = make_cells()
    train_stacks(EVERY, [name for name in stacks_to_train(EVERY, cells) if not names or name in names], cells)


@app.command()
def online() -> None:
    """Measure a thousand agents while they learn, on this machine's GPU."""
    verify_commit("result", RESULTS.parents[1])
    about = collect_provenance("python -m paper.beyond online")
    result = {**about, "moments": [asdict(moment) for moment in run_online()]}
    write_whole(RESULTS / "beyond" / "online.json", json.dumps(result, indent=1) + "\n")


@app.command()
def answers() -> None:
    """Apply the rules to the existing logs, and write the answers and their figure beside them."""
    logs = {name: read_rows(RESULTS / name) for name in EVERY if (RESULTS / name / "metrics.csv").is_file()}
    write_page(logs, RESULTS / "beyond")
    typer.echo((RESULTS / "beyond" / "answers.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    app(prog_name="python -m paper.beyond")
