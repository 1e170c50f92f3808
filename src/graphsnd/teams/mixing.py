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

from graphsnd.errors import InputError

ROWS = 16  # on which a policy is tried: half of them are replaced, and the answers to the others must stay
# Batches of entries; for each the tensors of what all policies answer, [policies, entries, ...].
Ask = Callable[[Sequence[Tensor]], Sequence[Sequence[Tensor]]]
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


def ask_quietly(policy: Callable[[Tensor], Any], shown: Tensor, name: str | None = None) -> Any:
    """Return the policy's answer, with no trace left in its buffers."""
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
    few = rows[torch.arange(count, device=rows.device) * (len(rows) - 1) // (count - 1)]
    (given, *changed), (first, *answers) = _try_few(ask_all, _replace_halves, few, rows)
    odd = _odd_parity(given)
    for kept, answer in zip((odd, ~odd), answers, strict=True):
        index = _find_difference(first, answer, kept)
        if index is not None:
            one, two = _ask_all(ask_all, [given, given])
            again = _find_difference([field[index, None] for field in one], [field[index, None] for field in two])
            raise _refusal(names[index], random=again is not None)
    return any(not torch.equal(entries, given) for entries in changed)


def check_repeatable(ask_all: Ask, rows: Tensor) -> None:
    """Raise when the answer of a stacked module to some rows changes from one call to the next."""
    _, (one, two) = _try_few(ask_all, lambda given: [given, given], rows[:ROWS], rows)
    if _find_difference(one, two) is not None:
        raise _refusal(None, random=True)


def _try_few(
    ask_all: Ask, vary: Callable[[Tensor], list[Tensor]], few: Tensor, rows: Tensor
) -> tuple[list[Tensor], Sequence[Sequence[Tensor]]]:
    try:
        return vary(few), _ask_all(ask_all, vary(few))
    except InputError:  # perhaps of a policy with a batch size of its own
        return vary(rows), _ask_all(ask_all, vary(rows))


@torch.no_grad()
def _ask_all(ask_all: Ask, batches: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
    """Return the answers to each batch, with no trace left in the state of random number generators."""
    # Of all devices, because manual_seed seeds them all; and in turn, or a thread would keep what another has set. Once
    # for all policies and batches: it takes longer than to call a small policy, and what is drawn goes on changing.
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(0)
        return ask_all(batches)


def _odd_parity(rows: Tensor) -> Tensor:
    # By the parity of the index' bits, so that rows at any distance are parted: neighbours, blocks, first and last.
    return torch.tensor([bin(index).count("1") % 2 == 1 for index in range(len(rows))], device=rows.device)


def _replace_halves(given: Tensor) -> list[Tensor]:
    """Return the entries, then with those of even parity replaced by others, then with those of odd parity."""
    batches, odd = [given], _odd_parity(given)
    for kept in (odd, ~odd):
        entries, others = given.clone(), given[kept]
        entries[~kept] = others[torch.arange(int((~kept).sum()), device=given.device) % len(others)]
        batches.append(entries)
    return batches


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


def _find_difference(one: Sequence[Tensor], two: Sequence[Tensor], kept: Any = ...) -> int | None:
    """Return the first policy whose answers differ by more than rounding at the ``kept`` entries; None without one."""
    same = torch.ones(len(one[0]), dtype=torch.bool, device=one[0].device)
    for a, b in zip(one, two, strict=True):
        # Of each policy by itself: beside one of large actions, another may change by a little and still be wrong.
        close = 64 * torch.finfo(a.dtype).eps * a.abs().nan_to_num(0, 0).flatten(1).amax(1, keepdim=True)
        x, y = a[:, kept].flatten(1), b[:, kept].flatten(1)
        same &= ((x == y) | ((x - y).abs() <= close) | (x.isnan() & y.isnan())).all(1)
    return None if bool(same.all()) else int(same.int().argmin())
