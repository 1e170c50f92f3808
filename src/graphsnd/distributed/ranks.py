"""What the ranks of a process group tell each other: notes that must agree, and tensors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from graphsnd.errors import InputError

T = TypeVar("T")
Note = dict[str, Any]  # what all ranks must say alike where they say it; and under "own" what may differ
NOTE = 8192  # bytes of a note: one message, whose size all ranks know


@dataclass(frozen=True, eq=False)
class Ranks:
    """The processes that measure one team together."""

    group: Any  # a ProcessGroup, or None for all processes
    rank: int
    size: int
    wire: torch.device | None  # where the group takes its messages from; None without torch.distributed

    @classmethod
    def of(cls, group: Any) -> Ranks:
        """Return the ranks of a group; one rank where torch.distributed was not started.

        Raises:
            InputError: For a group without this process, and where torchrun started several that have no group yet.
        """
        if not dist.is_available() or not dist.is_initialized():
            if int(os.environ.get("WORLD_SIZE", "1")) > 1:
                fix = "Call torch.distributed.init_process_group first."
                raise InputError("group", "of processes that know each other", "none", fix)
            return cls(None, 0, 1, None)
        rank = dist.get_rank(group)
        if rank < 0:
            raise InputError("group", "that this process belongs to", "another", "Call it on the group's ranks only.")
        wire = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend(group) == "nccl" else "cpu"
        return cls(group, rank, dist.get_world_size(group), torch.device(wire))

    def agree(self, prepare: Callable[[], tuple[Note, T]]) -> tuple[list[Note], T]:
        """Prepare something on each rank, and return the notes of all ranks with it.

        Where a rank fails all raise, that rank its own error: otherwise the others would wait for it. The same for
        notes that differ.

        Raises:
            InputError: On all ranks, naming one that failed, or what differs.
        """
        failure, made = None, None
        try:
            note, made = prepare()
            message = json.dumps(note).encode()
            if len(message) > NOTE:
                raise InputError("behavior", "of fewer parts", f"a description of {len(message)} bytes")
        except Exception as error:  # raised below, once all ranks know of it
            failure, message = error, json.dumps({"error": f"{type(error).__name__}: {error}"[:1000]}).encode()
        sent = torch.frombuffer(bytearray(message.ljust(NOTE)), dtype=torch.uint8)
        notes = [json.loads(bytes(got.tolist())) for got in self.exchange([sent] * self.size, [(NOTE,)] * self.size)]
        if failure is not None:
            raise failure
        for rank, each in enumerate(notes):
            if "error" in each:
                raise InputError("group", "without a rank that failed", f"on rank {rank} {each['error']}")
        _check_alike(notes)
        return notes, made  # type: ignore[return-value]

    def exchange(self, parts: Sequence[Tensor], shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Give each rank its part, and return what each rank gave, whose shapes are known; all of one dtype."""
        if self.wire is None:
            return [parts[0]]
        sent = torch.cat([part.reshape(-1) for part in parts]).to(self.wire)
        sizes = [torch.Size(shape).numel() for shape in shapes]
        got = sent.new_empty(sum(sizes))
        dist.all_to_all_single(got, sent, sizes, [part.numel() for part in parts], group=self.group)
        back = got.to(parts[0].device).split(sizes)
        return [part.view(tuple(shape)) for part, shape in zip(back, shapes, strict=True)]

    def gather(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the rows of all ranks in their order; ``counts`` are the numbers of rows of each."""
        return torch.cat(self.exchange([own] * self.size, [(count, *own.shape[1:]) for count in counts]))

    def add(self, sums: Tensor) -> Tensor:
        """Return the sum over ranks, the same bits on all."""
        if self.wire is None:
            return sums
        whole = sums.to(self.wire, copy=True)
        dist.all_reduce(whole, group=self.group)
        return whole.to(sums.device)


def shorten(value: object) -> str | None:
    """Return a short text that differs where values do; None for None."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous()
        sha = hashlib.sha256(plain.flatten().view(torch.uint8).numpy().tobytes()).hexdigest()[:16]
        return f"{plain.dtype} of shape {tuple(plain.shape)} and hash {sha}"
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:60]} ... {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _check_alike(notes: list[Note]) -> None:
    for name in dict.fromkeys(name for note in notes for name in note if name != "own"):
        said = [(rank, note[name]) for rank, note in enumerate(notes) if note.get(name) is not None]
        for rank, value in said:
            if value != said[0][1]:
                got = f"{said[0][1]} on rank {said[0][0]} and {value} on rank {rank}"
                raise InputError(name, "alike on all ranks", got)
