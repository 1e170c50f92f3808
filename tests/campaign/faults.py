"""A full or failing disk: the k-th call of the system that writes fails, for all k; then the run goes on.

Every file of a run is written by :mod:`graphsnd.files` through the functions of ``os``, so failing them is failing
the system calls. After each fault there must be one error that names a file, every checkpoint that was finished must
still be there, and the resumed run must end with the bits of an undisturbed one.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from graphsnd.rl import train
from graphsnd.rl.checkpoint import CHECKPOINT, has_checkpoint, load_checkpoint
from paper.experiment import Experiment, Number, Scale
from paper.experiment import Outcome as Result
from paper.runner import Cells, train_cell
from paper.runner import run as run_experiment
from tests.campaign import Outcome
from tests.campaign._runs import CONTROL, TRAIN, differences
from tests.paper.fakes import Data, Square, draw

FULL = 1500
# The faults are ours, so the files need no real disk, which would take most of the time.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CODES = (errno.ENOSPC, errno.EIO)
# Once; from then on, as on a disk that stays full; and after half of the bytes.
MANNERS = ("once", "always", "half")


@dataclass
class Disk:
    """Counts the calls that write below a folder, and lets one of them fail."""

    folder: Path
    at: int = -1  # the call that fails; none below 0
    code: int = 0
    manner: str = "once"  # of MANNERS, or "kill": the process ends there
    calls: list[str] = field(default_factory=list)
    saved: int = 0  # checkpoints that were finished
    descriptors: set[int] = field(default_factory=set)

    def meet(self, call: str) -> bool:
        """Count a call and return whether it fails."""
        self.calls.append(call)
        now = len(self.calls) - 1
        return now == self.at or (self.manner == "always" and 0 <= self.at < now)

    def fail(self, first: Any) -> None:
        """Fail as the system does: an error of a descriptor does not name its file."""
        name = () if isinstance(first, int) else (str(first),)
        raise OSError(self.code, os.strerror(self.code), *name)

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of ``os`` that may fail."""

        def call(first: Any, *rest: Any, **options: Any) -> Any:
            if not self._is_ours(first):
                return real(first, *rest, **options)
            fails = self.meet(name)
            if fails and name == "write" and self.manner in ("half", "kill"):
                real(first, bytes(rest[0])[: len(rest[0]) // 2])
            if fails and self.manner == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "close":
                self.descriptors.discard(first)
                real(first)
            if fails:
                self.fail(first)
            answer = None if name == "close" else real(first, *rest, **options)
            if name == "open":
                self.descriptors.add(answer)
            self.saved += name == "replace" and Path(rest[0]).name == CHECKPOINT
            return answer

        return call

    def _is_ours(self, first: Any) -> bool:
        if isinstance(first, int):
            return first in self.descriptors
        return Path(os.fsdecode(first)).is_relative_to(self.folder)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Be the disk."""
        names = ("open", "write", "fsync", "close", "replace", "link", "mkdir")
        with mock.patch.multiple(os, **{name: self.wrap(name, getattr(os, name)) for name in names}):
            yield


Job = Callable[[Path], object]  # begins or goes on in a folder


def train_here(folder: Path, task: Any) -> None:
    """Train, or go on where there is a checkpoint."""
    train(task, folder, resume=has_checkpoint(folder), checkpoint_every=1)


def reproduce(folder: Path) -> None:
    """Run an experiment of two cells and a training."""

    def cells_of(scale: Scale, cells: Cells) -> Result:
        trainer = train_cell(TRAIN.with_iterations(1), cells.beside("teams"), "team")
        rows = [cells.get(f"n={n}", {"n": n}, partial(Square, n, n * n), Square) for n in (2, 3)]
        return Result(Data(tuple(rows)), {"largest": Number(float(trainer.iteration))}, (0,))

    experiment = Experiment("recovery", "Squares", cells_of, draw, Data)
    run_experiment(experiment, Scale.SMOKE, out=folder / "results", work=folder / "work")


def prepare_resumption(folder: Path) -> None:
    """Leave a run as a kill does: rows after the checkpoint, the last one cut, and half a file."""
    train_here(folder, TRAIN.with_iterations(2))
    with (folder / "metrics.csv").open("a") as log:
        log.write((folder / "metrics.csv").read_text().splitlines()[-1].replace("2,", "3,", 1) + "\n3,7,0.")


@dataclass(frozen=True)
class Target:
    """Something that writes, and the folder of the run in it that is compared."""

    job: Job
    run: str = "."
    prepare: Job = lambda folder: None


TARGETS = {
    "train": Target(partial(train_here, task=TRAIN.with_iterations(3))),
    "resume": Target(partial(train_here, task=TRAIN), prepare=prepare_resumption),
    "control": Target(partial(train_here, task=CONTROL.with_iterations(3))),
    "reproduce": Target(reproduce, run="work/smoke/teams/team"),
}


def run(seed: int, cases: int) -> Outcome:
    """Fail calls in a random order, those of every target in turn."""
    outcome, draw_order = Outcome(), random.Random(seed)
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        plans = []
        for name, target in TARGETS.items():
            calls = _undisturbed(Path(root) / name, target)
            faults = [
                (at, code, manner)
                for at, call in enumerate(calls)
                for code in CODES
                for manner in MANNERS
                if manner != "half" or call == "write"
            ]
            plans.append([(name, *fault) for fault in draw_order.sample(faults, len(faults))])
        turns = (case for turn in range(max(map(len, plans))) for case in (plan[turn : turn + 1] for plan in plans))
        for number, (name, at, code, manner) in enumerate([one for turn in turns for one in turn][:cases]):
            outcome.cases += 1
            _attack(outcome, Path(root), name, f"case {number}", at, code, manner)
    return outcome


def _undisturbed(folder: Path, target: Target) -> list[str]:
    """Run a target without faults and return the calls that wrote."""
    folder.mkdir()
    target.prepare(folder)
    disk = Disk(folder)
    with disk.attached():
        target.job(folder)
    return disk.calls


def _attack(outcome: Outcome, root: Path, name: str, case: str, at: int, code: int, manner: str) -> None:
    target, folder = TARGETS[name], root / case
    folder.mkdir()
    target.prepare(folder)
    before = _reached(folder / target.run)
    disk = Disk(folder, at, code, manner)
    try:
        with disk.attached():
            target.job(folder)
    except OSError as error:
        outcome.refused += 1
        if error.errno != code or not str(error.filename).startswith(str(folder)):
            outcome.fail(f"{name}: an error that does not name its file", f"call {at} ({disk.calls[at]}): {error!r}")
    example = f"{name}, call {at} ({disk.calls[at]}), {errno.errorcode[code]}, {manner}"
    if _reached(folder / target.run) < max(before, disk.saved - 1 if name != "resume" else before):
        outcome.fail(f"{name}: a finished checkpoint was lost", example)
    try:
        target.job(folder)
    except (OSError, ValueError) as error:
        outcome.fail(f"{name}: it cannot be resumed after {disk.calls[at]}", f"{example}: {error!r}")
    else:
        for difference in differences(folder / target.run, root / name / target.run)[:1]:
            outcome.fail(f"{name}: other bits after {disk.calls[at]}", f"{example}: {difference}")
        left = {path.relative_to(folder) for path in folder.rglob("*")}
        if name == "reproduce" and left != {path.relative_to(root / name) for path in (root / name).rglob("*")}:
            outcome.fail("reproduce: other files", example)
    shutil.rmtree(folder)


def _reached(folder: Path) -> int:
    return load_checkpoint(folder, logged=True).iteration if has_checkpoint(folder) else -1
