"""``graphsnd train``: train a team and watch its diversity."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsnd.cli.options import check_resumed, merged, parse_changes, parse_device, parse_seeds, say_finished
from graphsnd.cli.repeat import write_origin
from graphsnd.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from graphsnd.training import Preset, Row, Task, Trained, Trainer

PATIENCE = 10.0  # seconds between two lines where there is no terminal
FILMS = (".gif", ".mp4")


def train(
    world: Annotated[
        str | None, typer.Argument(help="navigation, dispersion, simple_spread, vmas:<scenario> ..., or a preset.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where log, checkpoints and teams go.")] = Path("runs"),
    preset: Annotated[str | None, typer.Option(help="navigation, navigation-small, simple_spread, or none.")] = None,
    agents: Annotated[int | None, typer.Option(help="Team size.")] = None,
    iterations: Annotated[int | None, typer.Option(help="Rollouts, each followed by an update.")] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", help="Runs, stacked and trained together.")] = None,
    envs: Annotated[int | None, typer.Option(help="Environments of each run.")] = None,
    diversity_every: Annotated[int | None, typer.Option(help="Iterations between two measurements of SND.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, or world.KEY=VALUE for an option of the world."),
    ] = None,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to train.")] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in FOLDER.")] = False,
    checkpoint_every: Annotated[int, typer.Option(help="Iterations between two checkpoints.")] = 25,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard event files.")] = False,
    render: Annotated[Path | None, typer.Option(metavar="PATH", help="Film the trained team: .gif or .mp4.")] = None,
) -> None:
    """Train a team with independent PPO and log its diversity.

    Every agent has a policy and a critic of its own. FOLDER receives metrics.csv, curves.png, a checkpoint, and a
    team for each seed. Ctrl-C stops after the iteration that is running and saves; --resume goes on from there.
    """
    _check_render(render)
    on = parse_device(device)
    if resume:
        said = {"--preset": preset, "--envs": envs, "--seeds": seeds, "--set": change or None}
        task = _resumed(out, said | {"--diversity-every": diversity_every}, world, agents, iterations)
    else:
        task = _task(world, preset, agents, envs, seeds, iterations, diversity_every, change)
    from graphsnd.training import train as run

    with _watch(task) as report:
        result = run(
            task, out, device=on, resume=resume, checkpoint_every=checkpoint_every, tensorboard=tensorboard,
            report=report,
        )  # fmt: skip
    if not result.finished:
        done = f"stopped after iteration {result.trainer.iteration} of {task.settings.iterations}"
        typer.echo(f"{done}; go on with: graphsnd train --resume --out {shlex.quote(str(out))}", err=True)
        raise typer.Exit(130)
    write_origin(task, out, device=on, seconds=result.seconds)
    _show(result, out, _pictures(result, out, render))


def _task(
    world: str | None,
    preset: str | None,
    agents: int | None,
    envs: int | None,
    seeds: str | None,
    iterations: int | None,
    diversity_every: int | None,
    change: Sequence[str] | None,
) -> Task:
    from graphsnd.training import Task

    base = _base(world, preset)
    named = {"environments": envs, "iterations": iterations, "diversity_every": diversity_every}
    settings, options = parse_changes(change or ())
    settings = merged(named, settings)
    text = base.world if world is None or world == preset or preset is None else world
    count = base.agents if agents is None else agents
    return Task(text, count, base.options | options, parse_seeds(seeds), base.settings.replace(**settings))


def _base(world: str | None, preset: str | None) -> Preset:
    """A preset where one is named, the paper's settings elsewhere."""
    from graphsnd.training import PRESETS, Preset
    from graphsnd.training import preset as find
    from graphsnd.training.presets import NO_PRESET

    if preset not in (None, NO_PRESET):
        return find(preset)
    if world is None:
        raise InputError("WORLD", "or --preset, or --resume", "none of them", "For example: graphsnd train navigation")
    return (PRESETS.get(world) if preset is None else None) or Preset(world, None)


def _resumed(out: Path, said: dict[str, Any], world: str | None, agents: int | None, iterations: int | None) -> Task:
    """The task of the checkpoint, perhaps with more iterations."""
    import dataclasses

    from graphsnd.training import load_checkpoint

    kept = load_checkpoint(out)
    check_resumed(kept.task, said, world, agents)
    more = kept.task.settings.iterations if iterations is None else iterations
    say_finished(more, kept.iteration)
    return dataclasses.replace(kept.task, settings=kept.task.settings.replace(iterations=more))


def _check_render(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix not in FILMS:
        raise InputError("--render", f"to end in {' or '.join(FILMS)}", repr(path.name))
    if path.suffix == ".mp4":
        from graphsnd.plots.film import check_ffmpeg

        check_ffmpeg()


@contextmanager
def _watch(task: Task) -> Iterator[Callable[[Sequence[Row], Trainer], None]]:
    """A bar on a terminal, a line now and then elsewhere; both on stderr."""
    from rich.console import Console

    settings = task.settings
    frames = settings.samples * len(task.seeds)
    if not Console(stderr=True).is_terminal:
        yield _lines(frames, settings.iterations)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=12), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=settings.iterations)
        memory: dict[str, float] = {}

        def report(rows: Sequence[Row], trainer: Trainer) -> None:
            progress.update(bar, completed=rows[0].iteration, description=_says(rows, frames, memory))

        yield report


def _lines(frames: int, total: int) -> Callable[[Sequence[Row], Trainer], None]:
    begin = last = perf_counter()
    memory: dict[str, float] = {}

    def report(rows: Sequence[Row], trainer: Trainer) -> None:
        nonlocal last
        now, first = perf_counter(), rows[0]
        text = _says(rows, frames, memory)
        if first.snd is not None or first.iteration == total or now - last > PATIENCE:
            last = now
            typer.echo(f"{now - begin:7.1f} s  {first.iteration:>{len(str(total))}}/{total}  {text}", err=True)

    return report


def _says(rows: Sequence[Row], frames: int, memory: dict[str, float]) -> str:
    """Means over the runs; diversity as it was last measured, which ``memory`` keeps."""
    for name in ("snd", "graph_snd", "solved"):
        found = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        if found:
            memory[name] = sum(found) / len(found)
    parts = [f"reward {sum(row.reward for row in rows) / len(rows):+.4f}"]
    if "solved" in memory:
        parts.append(f"solved {memory['solved']:.0%}")
    if "snd" in memory:
        parts.append(f"SND {memory['snd']:.4f}  Graph-SND {memory['graph_snd']:.4f}")
    rate = frames / (rows[0].rollout_seconds + rows[0].update_seconds)
    return "  ".join([*parts, f"{rate:,.0f} frames/s"])


def _pictures(result: Trained, out: Path, render: Path | None) -> list[Path]:
    from graphsnd.plots import save_png
    from graphsnd.plots.training import curves_figure
    from graphsnd.training import read_rows

    written = [save_png(curves_figure(read_rows(out)), out / "curves.png")]
    if render is not None:
        from graphsnd.plots.film import write_film

        trainer = result.trainer
        written.append(write_film(trainer.team(trainer.seeds[0]), trainer.world, render, steps=trainer.settings.steps))
    return written


def _show(result: Trained, out: Path, pictures: Sequence[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from graphsnd.plots.training import training_table
    from graphsnd.training import read_rows

    console = Console(highlight=False)
    console.print(training_table(read_rows(out)))
    device, eager = result.trainer.world.device.type, result.trainer.eager
    console.print(f"took {result.seconds:,.0f} s on {device}", style="dim")
    if device == "cuda" and eager is not None:
        console.print(f"without CUDA graphs: {escape(eager)}", style="dim", soft_wrap=True)
    _list(console, [*(out / f"seed-{seed}" for seed in result.trainer.seeds), out / "metrics.csv", *pictures], escape)


def _list(console: Console, paths: Sequence[Path], escape: Callable[[str], str]) -> None:
    for path in paths:
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)
