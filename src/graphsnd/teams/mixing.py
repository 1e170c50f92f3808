"""Ask policies without leaving a trace, and find those whose answers are not to one observation alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.answers import tensors_of

ROWS = 16  # on which a policy is tried: half of them are replaced, and the answers to the others must stay
Ask = Callable[[Tensor, int], Sequence[Sequence[Tensor]]]  # entries and a seed; by policy its tensors, entries first
LOCK = threading.RLock()  # while modules run: their modes change, and batching puts parameters into the first of them
FAULTS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)  # what a policy raises on a wrong shape


@contextmanager
def evaluation_mode(policy: object) -> Iterator[None]:
    """Turn dropout off and let batch normalisation use its own statistics, as where policies act; then restore modes.

    Recurrent layers without dropout keep their mode, which changes no number; cuDNN has no gradients in the other.
    Threads take turns: one would restore modes that another still needs.
    """
    parts = list(policy.modules()) if isinstance(policy, nn.Module) else []
    with LOCK if parts else nullcontext():
        training = [part for part in parts if part.training and (not isinstance(part, nn.RNNBase) or part.dropout)]
        for part in training:
            part.training = False
        try:
            yield
        finally:
            for part in training:
                part.training = True


def unwrap(policy: Any) -> Any:
    """Return the module in a parallel wrapper unless gradients are wanted: DDP's may wait for all other ranks."""
    wrapped = isinstance(policy, DistributedDataParallel | nn.DataParallel)
    return policy.module if wrapped and not torch.is_grad_enabled() else policy


def ask(policy: Callable[[Any], Any], shown: Any, name: str | None = None) -> Any:
    """Return the answer of a policy in evaluation mode to a copy of ``shown``, which it may write into.

    Raises:
        InputError: Where the policy raises an error of its own: what it was given, and what it said.
    """
    try:
        with evaluation_mode(policy):
            return unwrap(policy)(shown.clone() if hasattr(shown, "clone") else shown)
    except (InputError, torch.OutOfMemoryError):
        raise
    except FAULTS as error:
        what, fix = f"policy {name}", "Images: feature_dims=3. Sequences: whole=True."
        if name is None:
            what, fix = "the stacked module", "A module that takes one observation per agent: agents=."
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".rstrip(".")
        if re.search("dtype|Input type|scalar type", said):  # arrays of NumPy are float64, weights float32
            fix = "Convert them to the dtype of its weights, as with observations.float()."
        kind = getattr(shown, "dtype", None) or type(shown).__name__  # a TensorDict has a shape but no dtype
        shape = f" of shape {tuple(shown.shape)}" if hasattr(shown, "shape") else ""
        got = f"{kind}{shape}, on which it raised {said}"
        raise InputError("observations", f"that {what} can take", got, fix) from error


@torch.no_grad()
def ask_quietly(policy: Callable[[Tensor], Any], shown: Tensor, seed: int, name: str | None = None) -> Any:
    """Return the policy's answer, with no trace left in its buffers or in the state of random number generators."""
    # Of all devices, because manual_seed seeds them all; and in turn, or a thread would keep what another has set.
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(seed)
        if not isinstance(policy, nn.Module) or isinstance(policy, torch.jit.ScriptModule):
            return ask(policy, shown, name)
        module: nn.Module = unwrap(policy)
        buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}
        with evaluation_mode(module):
            return ask(lambda given: functional_call(module, buffers, (given,)), shown, name)


def check_unmixed(ask_all: Ask, rows: Tensor, names: Sequence[str | None], *, most: int = ROWS) -> bool:
    """Raise when a policy's answer to some rows changes with the other rows, or from one call to the next.

    A policy that mixes rows (recurrent, communicating) answers to the batch, and the batch that graphsnd makes is not
    one that it was trained on. A policy that draws its answer makes identical agents seem different.

    Args:
        ask_all: Returns the answers of all policies that are to be checked.
        rows: Shape ``[entries, ...]``, at least 2 entries.
        names: Of the policies, for the message.
        most: Number of entries to use, evenly spaced.

    Returns:
        Whether this is settled; False where all entries are equal, which shows nothing of mixing.

    Raises:
        InputError: When it does.
    """
    count = min(len(rows), most)
    given = rows[torch.arange(count, device=rows.device) * (len(rows) - 1) // (count - 1)]
    given, first = _try_few(ask_all, given, rows)
    # By the parity of the index' bits, so that rows at any distance are parted: neighbours, blocks, first and last.
    odd = torch.tensor([bin(index).count("1") % 2 == 1 for index in range(len(given))], device=rows.device)
    settled = False
    for seed, kept in enumerate((odd, ~odd), start=1):
        entries, others = given.clone(), given[kept]
        entries[~kept] = others[torch.arange(int((~kept).sum()), device=rows.device) % len(others)]
        settled |= not torch.equal(entries, given)
        for index, answer in enumerate(ask_all(entries, seed)):
            if _differ(first[index], answer, kept):
                again = ask_all(given, 3)[index]
                raise _refusal(names[index], random=_differ(first[index], again))
    return settled


def check_repeatable(ask_all: Ask, rows: Tensor) -> None:
    """Raise when the answer of a stacked module to some rows changes from one call to the next."""
    given, first = _try_few(ask_all, rows[:ROWS], rows)
    if _differ(first[0], ask_all(given, 1)[0]):
        raise _refusal(None, random=True)


def _try_few(ask_all: Ask, few: Tensor, rows: Tensor) -> tuple[Tensor, Sequence[Sequence[Tensor]]]:
    try:
        return few, ask_all(few, 0)
    except InputError:  # perhaps of a policy with a batch size of its own
        return rows, ask_all(rows, 0)


def agents_first(behavior: Behavior) -> list[Tensor]:
    """Return the behaviour's tensors, the axis of its agents first."""
    return [tensor.movedim(-1 - trailing, 0) for tensor, trailing in tensors_of(behavior)]


def _refusal(name: str | None, *, random: bool) -> InputError:
    expected, changes = "to answer each observation by itself", "with the other observations of the batch"
    fix = (
        "Recurrent and communicating policies: graphsnd.evaluate([policy, ...], observations, whole=True), one policy "
        "per agent, each given the observations as they are. A function around a module: call module.eval() first."
    )
    if random:
        expected = "to give the same answer to the same observations"
        changes = "from call to call: identical agents would seem different"
        fix = (
            "Return the distribution in place of a sample, or the action without noise (deterministic=True). Where "
            "there are only samples: graphsnd.draw_samples(policies, observations). A function around a module with "
            "dropout: call module.eval() first. Policies with a memory: whole=True."
        )
    which = "a module" if name is None else f"policy {name},"
    return InputError("team", expected, f"{which} whose answer changes {changes}", fix)


def _differ(one: Sequence[Tensor], two: Sequence[Tensor], kept: Any = ...) -> bool:
    """Whether two answers differ by more than rounding at the ``kept`` entries."""
    for a, b in zip(one, two, strict=True):
        close = 64 * torch.finfo(a.dtype).eps * float(a.abs().nan_to_num(0, 0).max())
        if not torch.allclose(a[kept], b[kept], rtol=0, atol=close, equal_nan=True):
            return True
    return False
