"""Find policies that mix rows, or answer by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.teams.answers import LOCK

ROWS = 16  # on which a policy is tried
Ask = Callable[[Tensor], Sequence[Tensor]]  # what all policies answer to rows, each tensor [policies, rows, ...]


@torch.no_grad()
def check_rows(ask: Ask, rows: Tensor, names: Sequence[str | None], *, most: int = ROWS) -> bool:
    """Raise when a policy's answer to one row depends on the other rows, or on chance.

    Policies are asked about a few rows, and twice more with one half of these rows replaced by the other half. An
    answer that changes where its row did not depends on the other rows or on chance, and is refused. Only for the
    message the same rows are asked once more: an answer that changes even then was drawn.

    A policy that mixes rows (recurrent, communicating, normalising over the batch) answers to the batch, and the batch
    that graphsnd makes is not one that it was trained on. A policy that draws its answer makes identical agents seem
    different.

    Args:
        ask: Returns the answers of all policies that are to be checked.
        rows: Shape ``[rows, ...]``, at least 2.
        names: The policies' names, for the message.
        most: Largest number of rows to use, evenly spaced.

    Returns:
        Whether this is settled; False where all rows are equal, which shows nothing of mixing.

    Raises:
        InputError: When an answer depends on other rows or on chance.
    """
    count = min(len(rows), most)
    few = rows[torch.arange(count, device=rows.device) * (len(rows) - 1) // (count - 1)]
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(0)
        few, first = _ask_few(ask, few, rows)
        # By the parity of the index' bits, so that rows at any distance are parted: neighbours, blocks, first and last.
        odd = torch.tensor(list(map(int.bit_count, range(len(few)))), device=few.device) % 2 == 1
        settled = False
        for kept in (odd, ~odd):
            changed = few.clone()
            changed[~kept] = few[kept].repeat(2, *[1] * (few.dim() - 1))[: len(few) - int(kept.sum())]
            policy = _find_difference(first, ask(changed), kept)
            if policy is not None:
                before, again = ([field[policy, None] for field in answers] for answers in (first, ask(few)))
                raise _refusal(names[policy], drawn=_find_difference(before, again) is not None)
            settled |= not torch.equal(changed, few)
    return settled


@torch.no_grad()
def check_repeatable(ask: Ask, rows: Tensor) -> None:
    """Raise when the answer of a stacked module to some rows changes from one call to the next."""
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(0)
        few, first = _ask_few(ask, rows[:ROWS], rows)
        if _find_difference(first, ask(few)) is not None:
            raise _refusal(None, drawn=True)


def _ask_few(ask: Ask, few: Tensor, rows: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    try:
        return few, ask(few)
    except InputError:  # perhaps of a policy with a batch size of its own
        return rows, ask(rows)


def _find_difference(one: Sequence[Tensor], two: Sequence[Tensor], kept: Any = ...) -> int | None:
    """Return the first policy whose answers differ by more than rounding at the ``kept`` rows; None without one."""
    same = torch.ones(len(one[0]), dtype=torch.bool, device=one[0].device)
    for a, b in zip(one, two, strict=True):
        # Of each policy by itself: beside one of large actions, another may change by a little and still be wrong.
        close = 64 * torch.finfo(a.dtype).eps * a.abs().nan_to_num(0, 0).flatten(1).amax(1, keepdim=True)
        x, y = a[:, kept].flatten(1), b[:, kept].flatten(1)
        same &= ((x == y) | ((x - y).abs() <= close) | (x.isnan() & y.isnan())).all(1)
    return None if bool(same.all()) else int(same.int().argmin())


def _refusal(name: str | None, *, drawn: bool) -> InputError:
    expected, changes = "to answer each observation by itself", "with the other observations of the batch"
    fix = (
        "Recurrent and communicating policies: graphsnd.evaluate([policy, ...], observations, whole=True), one policy "
        "per agent, each given the observations as they are. A function around a module: call module.eval() first."
    )
    if drawn:
        expected = "to give the same answer to the same observations"
        changes = "from call to call: identical agents would seem different"
        fix = (
            "Return the distribution in place of a sample, or the action without noise (deterministic=True). Where "
            "there are only samples: graphsnd.draw_samples(policies, observations). A function around a module with "
            "dropout: call module.eval() first. Policies with a memory: whole=True."
        )
    which = "a module" if name is None else f"policy {name},"
    return InputError("team", expected, f"{which} whose answer changes {changes}", fix)
