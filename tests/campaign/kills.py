"""Commands that are killed at random moments, told to stop, doubled, or given too little room; then they go on.

A server imports everything and computes nothing, so that a process forked from it begins at once. What it runs is the
command line: ``graphsnd train`` with its files and tables.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graphsnd.rl.checkpoint import has_checkpoint
from tests.campaign import Outcome
from tests.campaign._runs import differences
from tests.campaign.faults import Disk

FULL = 160
ITERATIONS = 6
SMALL = (
    "--set", "steps=4", "--set", "hidden=[4]", "--set", "minibatch=4", "--set", "epochs=1", "--set", "environments=2",
    "--iterations", str(ITERATIONS), "--device", "cpu", "--checkpoint-every", "1",
)  # fmt: skip
BEGIN = {
    "train": ("navigation", "--agents", "2", "--seeds", "0,7", *SMALL),
    "control": ("dispersion", "--agents", "3", "--target", "0.1,unconstrained", *SMALL),
}
# Most cases are kills, at a moment or at a call that writes; of the others each is a promise of its own.
KINDS = ("kill",) * 4 + ("call",) * 4 + ("stop", "two", "room")
CALLS = 250  # at which it may be killed; a command has somewhat fewer
REFUSED = 2


@dataclass
class Server:
    """A process that forks commands."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls) -> Server:
        """Start it, and wait until it has imported everything."""
        root = Path(__file__).parents[2]
        code = "from tests.campaign.kills import serve; serve()"
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=root, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        server = cls(process)
        server.ask("ready")
        return server

    def ask(self, line: str) -> str:
        """Send a line and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def command(self, name: str, folder: Path, said: Path, *, limit: int = 0, at: int = -1) -> int:
        """Begin a command, or go on with it, and return its process; what it says goes to a file.

        Args:
            name: Of the command.
            folder: Of the run.
            said: Of the output.
            limit: On the bytes of a file; none at 0.
            at: The call at which it is killed; none below 0.
        """
        words = ("--resume",) if has_checkpoint(folder) else BEGIN[name]
        said_how = [str(said), str(limit), str(at), str(folder)]
        return int(self.ask("\t".join([*said_how, "train", *words, "--out", str(folder)])))

    def wait(self, pid: int) -> int:
        """Return how a command ended, as ``subprocess`` does: negative for a signal."""
        return int(self.ask(f"wait\t{pid}"))

    def close(self) -> None:
        """End the server."""
        self.process.communicate()


def serve() -> None:
    """Fork a command for every line, or wait for one."""
    import graphsnd.kernels.cpu.loops
    import graphsnd.rl  # noqa: F401
    from graphsnd.cli.app import app
    from graphsnd.plots import training as curves
    from graphsnd.plots.style import new_figure, png_bytes

    # Empty figures: drawing curves takes longer than the training. The first one loads what all of them need.
    for name in ("curves_figure", "control_figure"):
        setattr(curves, name, lambda rows: new_figure(1, 1, layout=None))
    png_bytes(new_figure(1, 1, layout=None))
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        app(["train", "--help"], prog_name="graphsnd")
    for line in sys.stdin:
        first, *rest = line.rstrip("\n").split("\t")
        if first == "ready":
            print("ready", flush=True)
        elif first == "wait":
            status = os.waitpid(int(rest[0]), 0)[1]
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            pid = os.fork()
            if pid == 0:
                _become(Path(first), int(rest[0]))
                with Disk(Path(rest[2]), int(rest[1]), manner="kill").attached():
                    _end(partial(app, rest[3:], prog_name="graphsnd"))
            print(pid, flush=True)


def _end(run: Callable[[], object]) -> None:
    """Run a command and end without taking the interpreter apart, which would take most of the time."""
    try:
        run()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)


def _become(said: Path, limit: int) -> None:
    """Be a process of its own: with its own output, and perhaps a limit on the size of its files."""
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream, to in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(to, stream)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def run(seed: int, cases: int) -> Outcome:
    """Disturb runs until there were that many disturbances, and compare each run that came to its end."""
    outcome, chance = Outcome(), random.Random(seed)
    server = Server.start()
    with tempfile.TemporaryDirectory() as root:
        seconds = {name: _undisturbed(server, Path(root), name) for name in BEGIN}
        while outcome.cases < cases:
            name = chance.choice(list(BEGIN))
            folder = Path(root) / "run"
            while outcome.cases < cases and not _disturb(outcome, server, name, folder, seconds[name], chance):
                pass
            _finish(outcome, server, name, folder, f"seed {seed}, case {outcome.cases}, {name}")
            shutil.rmtree(folder)
    server.close()
    return outcome


def _undisturbed(server: Server, root: Path, name: str) -> float:
    """Run a command to its end, for its bits and its seconds."""
    code = server.wait(server.command(name, root / f"first-{name}", root / "said"))  # loads what is loaded late
    assert code == 0, (root / "said").read_text()
    begin = time.monotonic()
    server.wait(server.command(name, root / name, root / "said"))
    return time.monotonic() - begin


def _disturb(outcome: Outcome, server: Server, name: str, folder: Path, seconds: float, chance: random.Random) -> bool:
    """Run a command and disturb it once; return whether it came to its end."""
    kind, delay, said = chance.choice(KINDS), chance.uniform(0, seconds), folder.with_name("said")
    outcome.cases += 1
    if kind == "two":
        return _double(outcome, server, name, folder)
    # Room for what the command says, but perhaps not for its settings, checkpoints or figure.
    limit, at = int(10 ** chance.uniform(2.6, 5)), chance.randrange(CALLS)
    example = f"{name}, {kind} after {delay:.3f} s of {seconds:.3f}, call {at}, {limit} bytes"
    pid = server.command(name, folder, said, limit=limit if kind == "room" else 0, at=at if kind == "call" else -1)
    if kind in ("kill", "stop"):
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL if kind == "kill" else signal.SIGTERM)
    code, text = server.wait(pid), said.read_text()
    # A signal that comes before training, or after it, meets a program that has nothing to save.
    killed = (0, -signal.SIGKILL)
    allowed = {"kill": killed, "call": killed, "stop": (0, 143, -signal.SIGTERM), "room": (0, REFUSED)}[kind]
    if code not in allowed or "Traceback" in text:
        outcome.fail(f"{name}: {kind} ended with {code}", f"{example}: {text[-500:]}")
    if code == 143 and f"graphsnd {name} --resume --out" not in text:
        outcome.fail(f"{name}: it does not say how to resume", f"{example}: {text[-500:]}")
    if code == REFUSED:
        outcome.refused += 1
        if os.strerror(errno.EFBIG) not in text:
            outcome.fail(f"{name}: another error than that of a full disk", f"{example}: {text[-500:]}")
    return code == 0


def _double(outcome: Outcome, server: Server, name: str, folder: Path) -> bool:
    """Begin three processes at once in one folder: one trains, the others are refused."""
    said = [folder.with_name(f"said-{place}") for place in range(3)]
    codes = [server.wait(pid) for pid in [server.command(name, folder, path) for path in said]]
    # One that comes when the first is done finds a training that is finished, or one that it must not overwrite.
    texts = [path.read_text() for path in said]
    for code, text in zip(codes, texts, strict=True):
        told = "no other process writes to" in text or "without a checkpoint of another training" in text
        if code not in (0, REFUSED) or (code == REFUSED and not told):
            outcome.fail(f"{name}: one of two processes ended with {code}", text[-500:])
    outcome.refused += REFUSED in codes
    if 0 not in codes:
        outcome.fail(f"{name}: none of two processes trained", str(texts))
    return 0 in codes


def _finish(outcome: Outcome, server: Server, name: str, folder: Path, example: str) -> None:
    """Let a run come to its end, and compare it."""
    said = folder.with_name("said")
    code = server.wait(server.command(name, folder, said))
    if code != 0:
        outcome.fail(f"{name}: it cannot be resumed", f"{example}: {said.read_text()[-500:]}")
        return
    for difference in differences(folder, folder.with_name(name))[:1]:
        outcome.fail(f"{name}: other bits", f"{example}: {difference}")
