"""Errors, and the argument checks that every stage uses.

Every message names the argument, what was expected, what came, and the fix. The command line turns
:class:`InputError` and :class:`MissingExtraError` into one line and exit code 2; anything else is a bug. Arguments are
checked once, by the public function that takes them; what is behind it trusts its input.
"""

from __future__ import annotations

import copyreg
import difflib
import importlib
import math
import operator
import re
import reprlib
import threading
import warnings
from collections.abc import Collection, Sequence
from itertools import accumulate
from numbers import Real
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch  # at run time inside the checks of tensors: the command line's help does without

_LOCK = threading.Lock()
MOST_NUMBERS = 2**37  # in a tensor: a terabyte in double precision
MOST_AGENTS = 2**28
MOST_EDGES = 2**30  # of a graph: 16 GiB


class InputError(ValueError):
    """An argument that graphsnd cannot accept.

    Example:
        >>> import graphsnd as gs
        >>> try:
        ...     gs.graphs.uniform(10, 99)
        ... except gs.InputError as error:
        ...     print(error.name, "|", error)
        m | Expected `m` to be an integer in 1 .. n(n-1)/2 = 45, got 99.
    """

    def __init__(self, name: str, expected: str, got: object, fix: str = "") -> None:
        """Keep the parts of ``Expected `name` <expected>, got <got>. <fix>``; the command line names its options."""
        self.name, self.expected, self.got, self.fix = name, expected, str(got), fix
        self.index: tuple[int, ...] = ()  # of the first wrong entry, where it is not known which agent's it is
        super().__init__(name, expected, self.got, fix)

    def __str__(self) -> str:
        return f"Expected `{self.name}` {self.expected}, got {self.got}.{' ' + self.fix if self.fix else ''}"

    def __reduce__(self) -> Any:  # its arguments are not those of the constructor; workers send it
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class EmptyDrawError(InputError):
    """A random graph, the argument ``name``, came out without edges, so there is no mean over them."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name, "to have at least one edge", "an empty draw", "Draw again with another seed or more edges."
        )


class MissingExtraError(ImportError):
    """An optional dependency that is not installed.

    Example:
        >>> try:
        ...     require("no_such_package", "no-such-project")
        ... except MissingExtraError as error:
        ...     print(error)
        This needs `no_such_package`. Install it with: pip install no-such-project
    """

    def __init__(self, package: str, project: str) -> None:
        """Name the project that has ``package``, because pip finds an extra of ours only where it finds graphsnd."""
        super().__init__(f"This needs `{package}`. Install it with: pip install {project}")

    __reduce__ = InputError.__reduce__


def require(package: str, project: str) -> ModuleType:
    """Import and return an optional ``package``, or raise an error that names the project to install for it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, project) from error


# Control characters, marks that reverse the direction of text, and bytes of file names that are not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return ``text`` as one line without control characters, for terminals, pages and figures.

    Example:
        >>> printable("team\x1b[2J\n.npz")
        'team\ufffd[2J\ufffd.npz'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def shape_of(tensor: torch.Tensor) -> str:
    """Return the shape as it reads in a message: ``shape (4096, 16, 2)``."""
    return f"shape {tuple(tensor.shape)}"


def plural(word: str, count: int) -> str:
    """Return the word for ``count`` things: ``pair`` or ``pairs``."""
    return word if count == 1 else f"{word}s"


def as_tensor(value: Any) -> Any:
    """Return an array of numbers from another library as a tensor that shares its memory; anything else as it is.

    Arrays are what has ``__dlpack__`` (JAX, CuPy) or ``__array__`` (NumPy, pandas). What torch cannot share is copied:
    negative strides and foreign byte orders.

    Example:
        >>> import numpy as np
        >>> as_tensor(np.zeros((2, 3), dtype=np.float32)).shape, as_tensor([0.0])
        (torch.Size([2, 3]), [0.0])
    """
    import numpy as np
    import torch
    from torch.utils.dlpack import from_dlpack

    if isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return from_dlpack(value)
    array = np.asarray(value) if hasattr(value, "__array__") and not isinstance(value, np.ma.MaskedArray) else None
    if array is None or array.dtype.kind not in "biufc" or array.dtype.itemsize > 8 * (1 + (array.dtype.kind == "c")):
        return value
    if any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    with _LOCK, warnings.catch_warnings():  # in turn: filters belong to all threads, and each restores what it found
        warnings.simplefilter("ignore", UserWarning)  # of arrays that are not writable: no argument is written to
        return torch.from_numpy(array)


def plain_tensor(value: Any) -> torch.Tensor | None:
    """Return a tensor or array as a tensor that all of torch can compute with; None for anything else.

    That is one with a dense layout, values (no meta tensor), and a real dtype of at least 16 bits or an integer one.
    """
    import torch

    tensor = value if isinstance(value, torch.Tensor) else as_tensor(value)
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.is_meta or tensor.is_nested:
        return None
    dtype = tensor.dtype
    if tensor.is_quantized or dtype.is_complex or (dtype.is_floating_point and dtype.itemsize < 2):
        return None
    # An axis that was expanded to 2**40 entries takes no memory until something is computed from it.
    if tensor.numel() > MOST_NUMBERS:
        return None
    return tensor.long() if dtype in (torch.uint16, torch.uint32, torch.uint64) else tensor


def describe(value: Any) -> str:
    """Return a value in one short line for a message."""
    import torch

    if isinstance(value, torch.Tensor):
        sort = "sparse " * (value.layout != torch.strided) + "quantised " * value.is_quantized + "meta " * value.is_meta
        return f"a {sort}tensor of {value.dtype}" + (f" with {shape_of(value)}" if not value.is_nested else ", nested")
    kind = "" if isinstance(value, int | float) else f" of type {type(value).__name__}"
    return f"{' '.join(reprlib.repr(value).split())}{kind}"


def check_device(value: Any) -> torch.device:
    """Return the device, or raise unless it is one of this machine that holds values."""
    import torch

    try:
        device = torch.device(value) if isinstance(value, str | torch.device | int) else torch.device("meta")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, ValueError):  # no such name, not compiled in, no such card
        device = torch.device("meta")
    if device.type == "meta" or isinstance(value, bool):
        raise InputError("device", "to be a device of this machine, such as cpu or cuda", describe(value))
    return device


def check_tensor(name: str, tensor: Any, rank: int, symbolic: str, *, fix: str = "") -> torch.Tensor:
    """Return a tensor or array as a tensor, or raise when it has fewer dimensions than ``rank``.

    Args:
        name: Argument name for the message.
        tensor: Value of the argument.
        rank: The least number of dimensions.
        symbolic: The expected shape, for the message.
        fix: For the message, when there are fewer.
    """
    import torch

    given = plain_tensor(tensor)
    if given is None:
        expected = f"to be a torch.Tensor or an array with shape {symbolic}"
        if isinstance(tensor, torch.Tensor):
            raise InputError(name, f"{expected}, dense and of real numbers", describe(tensor), "Convert it first.")
        if hasattr(tensor, "__array__"):  # of strings, objects or complex numbers, which torch does not take either
            raise InputError(name, f"{expected}, of real numbers", describe(tensor), f"Use {name}.astype('float32').")
        raise InputError(name, expected, type(tensor).__name__, f"Convert with torch.as_tensor({name}).")
    if given.dim() < rank:
        raise InputError(name, f"with shape {symbolic}", shape_of(given), fix)
    return given


def check_shape(name: str, tensor: torch.Tensor, shape: Sequence[Any], dtype: str = "") -> None:
    """Raise unless a tensor has a shape, given by numbers, words for any number, and ``...`` first for any dimensions.

    Args:
        name: Argument name for the message.
        tensor: Value of the argument.
        shape: For example ``(..., 4, "features")``.
        dtype: Required dtype: ``floating``, ``bool`` or ``int64``.
    """
    own, wanted = tuple(tensor.shape), tuple(shape)
    if own == wanted and not dtype:
        return
    wanted = wanted[1:] if wanted[:1] == (...,) else wanted
    tail = own[len(own) - len(wanted) :] if len(wanted) < len(shape) and len(own) >= len(wanted) else own
    if len(tail) != len(wanted) or any(isinstance(w, int) and w != size for w, size in zip(wanted, tail, strict=True)):
        symbolic = ", ".join("..." if part is ... else str(part) for part in shape) + "," * (len(shape) == 1)
        raise InputError(name, f"with shape ({symbolic})", shape_of(tensor))
    if not (tensor.is_floating_point() if dtype == "floating" else str(tensor.dtype).endswith(dtype)):
        raise InputError(name, f"to have the dtype {dtype}", tensor.dtype, "Convert it first.")


def check_index(name: str, tensor: torch.Tensor, count: int) -> None:
    """Raise unless a tensor holds int64 in ``0 .. count - 1``; the values on a GPU, which would be waited for, pass."""
    if "int64" not in str(tensor.dtype):
        raise InputError(name, "to have the dtype int64", tensor.dtype, "Convert it first.")
    if tensor.device.type == "cpu" and tensor.numel():
        low, high = map(int, tensor.aminmax())
        if low < 0 or high >= count:
            raise InputError(name, f"in 0 .. {count - 1}", f"values from {low} to {high}")


def check_finite(name: str, tensor: torch.Tensor, agents: Sequence[str] | None = None, axis: int = -2) -> None:
    """Raise when ``tensor`` holds NaN or infinite values; the message has their number and the first index.

    Args:
        name: Argument name for the message.
        tensor: The values.
        agents: The agents' names, for the message, where the tensor has an axis of them.
        axis: The axis of the agents.
    """
    import torch

    # One reduction and one host read on the happy path; the search for the culprit only runs when there is one.
    if bool(torch.isfinite(tensor.detach().sum())) or bool(torch.isfinite(tensor.detach()).all()):
        return
    bad = ~torch.isfinite(tensor.detach())
    first = tuple(bad.nonzero()[0].tolist())
    count = int(bad.sum())
    got = f"{count} NaN or infinite {plural('value', count)}, the first at index {first}"
    known = agents and len(first) >= -axis and tensor.shape[axis] == len(agents)
    got += f" of agent {agents[first[axis]]}" if agents and known else ""
    fix = "Look for a diverged policy, or an unmasked padding step."
    error = InputError(name, "to be finite everywhere", got, fix)
    error.index = () if known else first
    raise error


def number(value: Any) -> float:
    """Return ``value`` as a float, or NaN when it is not a real number: NaN fails every comparison with a range."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        tensor = plain_tensor(value)  # an array or a tensor without axes
        value = None if tensor is None else tensor.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # of an integer or a fraction
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def as_integer(value: Any) -> int | None:
    """Return ``value`` as an int; None when it is not an integer of 64 bits, and for a bool."""
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")) or getattr(value, "ndim", None):
        return None
    try:
        integer = operator.index(value)
    except (TypeError, ValueError):
        return None
    return integer if -(2**63) <= integer < 2**63 else None


def check_integer(name: str, value: Any, expected: str, *, low: int, high: int | None = None, fix: str = "") -> int:
    """Return ``value`` as an int, or raise unless it is an integer in ``low .. high`` and no bool."""
    integer = as_integer(value)
    if integer is None or integer < low or (high is not None and integer > high):
        raise InputError(name, expected, repr(value) if isinstance(value, int) else describe(value), fix)
    return integer


def check_type(name: str, value: Any, kinds: type | tuple[type, ...], expected: str, fix: str = "") -> None:
    """Raise unless ``value`` is an instance of one of ``kinds``."""
    if not isinstance(value, kinds):
        raise InputError(name, expected, describe(value), fix)


def check_number(
    name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, above: float = -math.inf,
    below: float = math.inf, fix: str = "",
) -> float:  # fmt: skip
    """Return ``value`` as a float, or raise unless it is finite and between the ends that are given."""
    plain = number(value)
    if not (low <= plain <= high and above < plain < below):
        given = (("above", above), ("at least", low), ("below", below), ("at most", high))
        ends = [f"{words} {end:g}" for words, end in given if not math.isinf(end)]
        raise InputError(name, f"to be a finite number {' and '.join(ends)}".rstrip(), describe(value), fix)
    return plain


def check_agents(n: Any) -> int:
    """Return the number of agents, or raise when there is no pair."""
    expected = f"to be an integer, at least 2 agents and at most {MOST_AGENTS}"
    return check_integer("n", n, expected, low=2, high=MOST_AGENTS)


def check_layout(name: str, shape: Sequence[int], batch_shape: Sequence[int]) -> None:
    """Raise for an array whose leading ``shape`` has the observations' axes in another order.

    Axes may be merged in either of the two, as in files, or have length 1: neither changes the order of what is pooled.

    Args:
        name: Argument name for the message.
        shape: Shape of the array, without the axes of one observation.
        batch_shape: Shape of the observations; another number of them is for the caller to refuse.

    Example:
        >>> check_layout("clusters", (400,), (50, 8))
        >>> check_layout("clusters", (2, 3), (3, 2))
        Traceback (most recent call last):
        graphsnd.errors.InputError: Expected `clusters` laid out as the observations, (3, 2), got (2, 3). Transpose it.
    """
    # Where an axis begins in memory: merging axes leaves some of these strides out, and adds none.
    own, known = ({*accumulate(reversed(tuple(each)), operator.mul)} - {1} for each in (shape, batch_shape))
    if math.prod(shape) == math.prod(batch_shape) and not (own <= known or known <= own):
        raise InputError(name, f"laid out as the observations, {tuple(batch_shape)}", tuple(shape), "Transpose it.")


def check_clusters(clusters: Any, batch_shape: Sequence[int]) -> torch.Tensor | None:
    """Return the cluster of each observation as int64 ``[observations]`` on the CPU; None for None.

    Args:
        clusters: Integers in a tensor or array of the observations' shape, or in a list.
        batch_shape: Shape of the observations.
    """
    import torch

    if clusters is None:
        return None
    integers = [as_integer(one) for one in clusters] if isinstance(clusters, list | tuple) else [None]
    given = plain_tensor(clusters) if None in integers else torch.tensor(integers)
    if given is None or given.is_floating_point():
        fix = "Number the labels: numpy.unique(clusters, return_inverse=True)[1]."
        raise InputError("clusters", "to be integers, one for each observation", describe(clusters), fix)
    if given.numel() != (observations := math.prod(batch_shape)):
        fix = f"One for each step: clusters[..., None].expand{tuple(batch_shape)}." * (given.shape == batch_shape[:-1])
        raise InputError("clusters", f"to be {observations} integers, one for each observation", shape_of(given), fix)
    check_layout("clusters", given.shape, batch_shape)
    return given.detach().flatten().cpu().long()


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(name, f"to be one of {', '.join(choices)}", reprlib.repr(value), suggest(value, choices))


def suggest(value: Any, choices: Collection[str]) -> str:
    """Return the question for those of ``choices`` that are spelt like ``value``; nothing where none are.

    Example:
        >>> suggest("navigatoin", ["navigation", "dispersion"])
        'Did you mean navigation?'
    """
    alike = difflib.get_close_matches(value, choices) if isinstance(value, str) else []
    return f"Did you mean {' or '.join(alike)}?" if alike else ""
