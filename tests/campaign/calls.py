"""Hostile calls of every public callable, found by introspection: a new function is attacked on its first day.

A case is a valid call in which one or two arguments were replaced by hostile values (``_hostile.py``). It must answer
with sane numbers, or raise :class:`~graphsnd.errors.InputError` or :class:`~graphsnd.errors.MissingExtraError`, within
ten seconds. To a value of another type Python's and torch's own errors are fine answers too. A callable without a valid
call (``_valid.py``) is a failure too. The calls are made in a process of their own: a hang or a crash ends that
process, counts as a failure, and another one goes on behind it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
import inspect
import io
import json
import math
import os
import random
import resource
import select
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from numbers import Real
from pathlib import Path
from types import GenericAlias
from typing import Any

import numpy as np
import torch
from torch import Tensor

import graphsnd
from graphsnd.errors import InputError, MissingExtraError
from tests.campaign import Outcome
from tests.campaign._hostile import BEHAVIORS, Value, hostile
from tests.campaign._valid import INSTANCES, REFUSES, RESULTS, SLOW, folder, good

FULL = 60_000
SECONDS = 10  # for one call
MEMORY = 16 << 30  # of addresses; a call that asks for more than the machine has must not take it down
ROOT = Path(graphsnd.__file__).parent
PACKAGES = ["", "behavior", "teams", "graphs", "metric", "bounds", "designs", "estimation", "analysis", "control"]
PACKAGES += ["distributed", "worlds", "training", "plots"]
ADAPTERS = ["integrations.torchmetrics", "integrations.torchrl", "integrations.torchrl_env"]
DUNDERS = ("__call__", "__str__", "__repr__", "__float__")


class Hang(BaseException):
    """A call took too long."""


@dataclasses.dataclass(frozen=True)
class Target:
    """A public callable."""

    owner: str  # a function, or a class
    method: str = ""  # of the class
    kind: str = "function"  # or class, method, property
    cls: type | None = None
    function: Any = None

    @property
    def label(self) -> str:
        """As failures call it."""
        return f"{self.owner}.{self.method}" if self.method else self.owner

    def bind(self) -> tuple[Callable[..., Any], Any]:
        """Return what is called, and the instance that it belongs to."""
        if self.kind in ("function", "class", "static"):
            return self.function, None
        instance = make_instance(self.cls)
        if self.kind == "property":
            return (lambda: getattr(instance, self.method)), instance
        return getattr(instance, self.method), instance


def find_targets(*, adapters: bool = True) -> list[Target]:
    """Return every public callable: functions, constructors, methods and properties of classes.

    Args:
        adapters: Whether to import other frameworks and attack the adapters to those that are there.
    """
    targets: dict[int, list[Target]] = {}
    for package in [*PACKAGES, *(ADAPTERS if adapters else ())]:
        try:
            module = importlib.import_module(f"graphsnd.{package}".rstrip("."))
        except MissingExtraError:
            continue
        classes = [name for name, value in vars(module).items() if inspect.isclass(value) and not name.startswith("_")]
        own = [name for name in classes if getattr(module, name).__module__ == module.__name__]
        for name in getattr(module, "__all__", own):
            value = getattr(module, name)
            if isinstance(value, GenericAlias):
                continue  # a class to Python 3.10, a name for types
            if inspect.isclass(value) and issubclass(value, BaseException | enum.Enum):
                continue  # Python's own
            if inspect.isclass(value):
                targets.setdefault(id(value), list(_class_targets(value)))
            elif inspect.isfunction(value):
                label = f"{package}.{name}" if package and id(value) not in targets else name
                targets.setdefault(id(value), [Target(label, function=value)])
    return [target for group in targets.values() for target in group]


def _class_targets(cls: type) -> Iterator[Target]:
    if inspect.isabstract(cls) or getattr(cls, "_is_protocol", False):
        return  # attacked in the classes that implement it
    if cls.__name__ not in RESULTS:
        yield Target(cls.__name__, kind="class", cls=cls, function=cls)
    for name in dir(cls):
        homes = [base for base in cls.__mro__ if name in vars(base)]
        if (name.startswith("_") and name not in DUNDERS) or not homes[0].__module__.startswith("graphsnd"):
            continue
        found = inspect.getattr_static(cls, name)
        if name == "plot":
            continue  # torchmetrics' own
        if isinstance(found, property):
            yield Target(cls.__name__, name, "property", cls)
        elif isinstance(found, classmethod | staticmethod):
            yield Target(cls.__name__, name, "static", cls, getattr(cls, name))
        elif inspect.isfunction(found):
            yield Target(cls.__name__, name, "method", cls)


def make_instance(cls: type | None) -> Any:
    """Return an instance of a public class."""
    assert cls is not None
    if cls.__name__ in INSTANCES:
        return INSTANCES[cls.__name__]()
    return cls(**{name: make() for name, make in valid_arguments(Target(cls.__name__, function=cls)).items()})


@cache
def signature(target: Target) -> dict[str, inspect.Parameter]:
    """Return the parameters of a target by name, without those of any name."""
    function = target.function if target.function is not None else getattr(target.cls, target.method)
    if target.kind == "property":
        return {}
    # Some metaclasses hide the constructor's own parameters.
    made = inspect.isclass(function) and function.__init__ is not object.__init__
    parameters = dict(inspect.signature(function.__init__ if made else function).parameters)
    if target.kind == "method" or made:
        parameters.pop(next(iter(parameters)))
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: each for name, each in parameters.items() if each.kind not in many}


def valid_arguments(target: Target, instance: Any = None) -> dict[str, Callable[[], Any]]:
    """Return a maker for each argument of a valid call.

    Raises:
        LookupError: When nobody has said what a good value is.
    """
    makers = {}
    for name, parameter in signature(target).items():
        make = good(target.owner, target.method, name, instance)
        if make is None and parameter.default is inspect.Parameter.empty:
            raise LookupError(
                f"tests/campaign/_valid.py has no value for {target.label}({name}: {parameter.annotation})"
            )
        if make is not None:
            makers[name] = make
    return makers


@dataclasses.dataclass
class Case:
    """One call: what is called and which arguments are hostile."""

    target: Target
    function: Callable[..., Any]
    makers: dict[str, Callable[[], Any]]
    changed: dict[str, Value]

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value.text}" for name, value in self.changed.items())
        return f"{self.target.label}({given}{', ' if given and len(self.makers) > len(self.changed) else ''}...)"


def draw_case(target: Target, rng: random.Random) -> Case:
    """Make a valid call and replace one or two of its arguments."""
    function, instance = target.bind()
    makers = valid_arguments(target, instance)
    parameters = signature(target)
    names = list(parameters)
    chosen = rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2)))) if names else []
    changed = {}
    for name in chosen:
        fine = makers[name]() if name in makers else parameters[name].default
        value = hostile(rng, fine, str(getattr(parameters[name], "annotation", "")))
        changed[name] = value
    return Case(target, function, makers, changed)


def schedule(targets: list[Target], cases: int) -> Iterator[Target]:
    """Go round the targets; slow ones have a turn in one round of a hundred, those without arguments in one of ten."""
    done = turn = 0
    while done < cases:
        for target in targets:
            often = 100 if target.label in SLOW else 1 if signature(target) or target.kind == "class" else 10
            if (turn + hash_of(target.label)) % often == 0 and done < cases:
                done += 1
                yield target
        turn += 1


def hash_of(text: str) -> int:
    """Return a number that is the same in every process."""
    return sum(map(ord, text))


# ---- what a call may answer


def walk(value: Any, depth: int = 0) -> Iterator[Any]:
    """Return the numbers and tensors in an answer."""
    if isinstance(value, Tensor | np.ndarray | float):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for part in value.values():
            yield from walk(part, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple):
        for part in value[:8]:
            yield from walk(part, depth + 1)
    elif depth < 4 and type(value).__module__.startswith("graphsnd") and hasattr(value, "__dict__"):
        for name, part in vars(value).items():
            if not name.startswith("_"):
                yield from walk(part, depth + 1)


def has_nan(value: Any) -> bool:
    """Return whether a number, an array or a tensor in it is NaN."""
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fc" and bool(np.isnan(value).any())
    if value.layout != torch.strided or value.is_meta or value.is_quantized or value.numel() > 1e6 or value.is_nested:
        return False
    floating = value.is_floating_point() and value.element_size() > 1
    return floating and bool(torch.isnan(value.detach()).any())


def is_finite(value: Any) -> bool:
    """Return whether an argument holds only finite numbers, as far as one can tell."""
    return not any(has_nan(part) or _has_infinity(part) for part in walk(value)) and "nan" not in str(type(value))


def _has_infinity(value: Any) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fc" and bool(np.isinf(value).any())
    if value.layout != torch.strided or value.is_meta or value.is_quantized or value.numel() > 1e6 or value.is_nested:
        return True
    return value.is_floating_point() and value.element_size() > 1 and bool(torch.isinf(value.detach()).any())


# Tensors that are of another type than a plain one: what torch says of them is enough.
STRANGE = ("sparse", "meta", "quantised", "complex", "conjugate", "float8", "uint", "nested", "numpy", "huge", "list")
# What Python and torch say in so many words of a number below 0, a device that is none, and shapes that do not fit.
PLAIN_WORDS = (
    "must be a non-negative integer",
    "Invalid device string",
    "at start of device string",
    "must match the existing size",
)
PLAIN_WORDS += ("upper bound and lower bound inconsistent", "s must be a scalar")  # of torch.arange and matplotlib
CALLBACKS = ("callback", "progress", "report", "step", "schedule", "method", "factory", "policy", "summary")
OFTEN_NAN = ("bounds.agent_effects", "StackedMLP", "ControlledPolicy")
NOT_NEGATIVE = {"snd", "graph_snd", "horvitz_thompson", "pairwise", "contributions", "measure"}


def wrong_answer(case: Case, arguments: dict[str, Any], answer: Any) -> str | None:
    """Return what is wrong with an answer, None when nothing is."""
    if isinstance(answer, str | type(None)) or case.target.kind == "class":
        return None
    texts = " ".join(value.text.lower() for value in case.changed.values())
    if any(word in texts for word in ("nan", "inf", "lambda", "linear", "liar")):
        return None
    # No degree of freedom, nothing to explain, or empty bins; and networks and densities, which overflow as torch does.
    documented = case.target.owner in OFTEN_NAN
    if (
        not documented
        and any(has_nan(part) for part in walk(answer))
        and all(is_finite(each) for each in arguments.values())
    ):
        return "NaN out of finite input"
    if case.target.label in NOT_NEGATIVE:
        numbers = [answer.value] if hasattr(answer, "value") else list(walk(answer))
        least = min(
            (float(torch.as_tensor(each).min()) for each in numbers if torch.as_tensor(each).numel()), default=0
        )
        most = max((float(torch.as_tensor(each).max()) for each in numbers if torch.as_tensor(each).numel()), default=0)
        if least < 0:
            return "negative"
        bounded = isinstance(arguments.get("behavior", arguments.get("team")), graphsnd.Categorical)
        if bounded and most > 1 + 1e-6 and case.target.label != "horvitz_thompson":
            return "a distance of probabilities above 1"
    return None


def is_nonsense(case: Case, arguments: dict[str, Any]) -> bool:
    """Return whether a hostile value is of another type than the good one, or holds one that is."""
    parameters = signature(case.target)
    for name, value in case.changed.items():
        fine = case.makers[name]() if name in case.makers else parameters[name].default
        given, inside = arguments[name], value.text.startswith("good with ")
        numbers = isinstance(given, Real) and isinstance(fine, Real) and bool not in (type(given), type(fine))
        if inside or any(word in value.text for word in STRANGE) or not (numbers or isinstance(given, type(fine))):
            return True
    return False


def place(error: BaseException) -> str:
    """Return the last line of ours that an error passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(ROOT) in frame.filename]
    return f"{Path(frames[-1].filename).relative_to(ROOT)}:{frames[-1].lineno}" if frames else "outside"


def attempt(target: Target, rng: random.Random) -> tuple[str, str, str]:
    """Make one call: ``(what came of it, kind of failure, example)``."""
    try:
        case = draw_case(target, rng)
    except MissingExtraError:
        return "refused", "", ""
    except Exception as error:
        return "failed", f"{target.label}: no valid call ({type(error).__name__})", str(error)
    arguments: dict[str, Any] = {}
    try:
        for name in [*case.makers, *(name for name in case.changed if name not in case.makers)]:
            arguments[name] = (case.changed[name].make if name in case.changed else case.makers[name])()
    except Exception:  # a value that cannot be made
        return "answered", "", ""
    try:
        answer = case.function(**arguments)
        wrong = wrong_answer(case, arguments, answer)
    except (InputError, MissingExtraError):
        return "refused", "", ""
    except OSError as error:
        if {"path", "folder"} & {*case.changed}:
            return "refused", "", ""  # the system's own word on a path
        return "failed", f"{target.label}: {type(error).__name__} at {place(error)}", f"{case} -> {error}"
    except Hang as error:
        return "failed", f"{target.label}: over {SECONDS} s at {place(error)}", str(case)
    except (TypeError, AttributeError, NotImplementedError):
        return "refused", "", ""  # Python's and torch's own word on nonsense
    except Exception as error:
        if any(name in CALLBACKS and callable(arguments[name]) for name in case.changed):
            return "answered", "", ""  # what a caller's own function raises is the caller's
        if is_nonsense(case, arguments) or any(words in str(error) for words in PLAIN_WORDS):
            return "refused", "", ""
        kind = f"{target.label}: {type(error).__name__} at {place(error)}"
        return "failed", kind, f"{case} -> {type(error).__name__}: {str(error)[:200]}"
    return ("failed", f"{target.label}: {wrong}", str(case)) if wrong else ("answered", "", "")


def check_valid(target: Target, *, slow: bool) -> tuple[str, str, str]:
    """Make the valid call itself; of a slow one only its arguments, unless there is time."""
    try:
        if target.label in SLOW and not slow:
            valid_arguments(target)
            return "answered", "", ""
        function, instance = target.bind()
        function(**{name: make() for name, make in valid_arguments(target, instance).items()})
    except InputError as error:
        if target.label in REFUSES:
            return "refused", "", ""
        return "failed", f"{target.label}: no valid call (InputError)", f"{error} at {place(error)}"
    except MissingExtraError:
        return "refused", "", ""
    except Exception as error:
        kind = f"{target.label}: no valid call ({type(error).__name__})"
        return "failed", kind, f"{error} at {place(error)}"
    return "answered", "", ""


# ---- the process that calls, and the one that watches it


def work(seed: int, cases: int, begin: int) -> None:
    """Make the calls from number ``begin`` on, and print a line before and after each."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    here = folder() / "some" / "where"  # so that ../.. is ours: neither the whole disk to read nor others' to write
    here.mkdir(parents=True, exist_ok=True)
    os.chdir(here)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a call prints is not a report

    def ring(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, ring)
    long = cases >= FULL / 10
    for value in BEHAVIORS if long else ():  # compiled here, not in a call that is timed
        with contextlib.suppress(InputError):
            graphsnd.snd(value.make(), backend="cpu")
    targets = find_targets(adapters=long)
    jobs: Iterator[tuple[Target, bool]] = iter([(target, True) for target in targets])
    numbered = enumerate([*jobs, *((target, False) for target in schedule(targets, cases))])
    for number, (target, valid) in numbered:
        if number < begin:
            continue
        print(json.dumps([number, target.label]), file=out, flush=True)
        rng = random.Random(f"{seed}:{number}")
        torch.manual_seed(number)
        signal.setitimer(
            signal.ITIMER_REAL, 5 * SECONDS if valid or target.label in SLOW else SECONDS
        )  # compiled on first use
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                result = check_valid(target, slow=long) if valid else attempt(target, rng)
        except Hang:
            result = "failed", f"{target.label}: over {SECONDS} s", f"seed {seed}, case {number}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps([number, *result]), file=out, flush=True)
    print(json.dumps(["end"]), file=out, flush=True)


def run(seed: int, cases: int) -> Outcome:
    """Make that many hostile calls."""
    outcome, begin = Outcome(), 0
    while begin is not None:
        begin = _watch(seed, cases, begin, outcome)
    return outcome


def _watch(seed: int, cases: int, begin: int, outcome: Outcome) -> int | None:
    """Read the reports of one process; return the call after the one that ended it, None at the end."""
    command = [sys.executable, "-m", "tests.campaign.calls", str(seed), str(cases), str(begin)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    number, label = begin, "the start"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        buffer = b""
        while True:
            patience = 12 * SECONDS if label == "the start" or label in SLOW or number < 2000 else 1.5 * SECONDS
            ready, _, _ = select.select([process.stdout], [], [], patience)
            chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not chunk:
                how = "a crash" if ready else f"over {SECONDS} s, deaf to signals"
                process.kill()
                outcome.fail(f"{label}: {how}", f"seed {seed}, case {number}")
                outcome.cases += 1
                return number + 1
            *lines, buffer = (buffer + chunk).split(b"\n")
            for report in map(json.loads, lines):
                if report == ["end"]:
                    return None
                if len(report) == 2:
                    number, label = report
                    continue
                outcome.cases += 1
                outcome.refused += report[1] == "refused"
                if report[1] == "failed":
                    outcome.fail(report[2], f"{report[3]} (seed {seed}, case {report[0]})")


if __name__ == "__main__":
    work(*map(int, sys.argv[1:4]))
