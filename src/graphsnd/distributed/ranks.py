"""What the ranks of a process group tell each other, by torch's own collectives."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from graphsnd.errors import InputError

T = TypeVar("T")


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

    def share(self, own: T) -> list[T]:
        """Return a small object of each rank, in their order."""
        if self.wire is None:
            return [own]
        every: list[Any] = [None] * self.size
        dist.all_gather_object(every, own, group=self.group)
        return every

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

    def add(self, sums: Tensor) -> Tensor:
        """Return the sum over ranks, the same bits on all."""
        if self.wire is None:
            return sums
        whole = sums.to(self.wire, copy=True)
        dist.all_reduce(whole, group=self.group)
        return whole.to(sums.device)


def find_common(notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what ranks say alike, by name; None counts as nothing said.

    Raises:
        InputError: Where two ranks say different things, on all ranks that have the notes.
    """
    common: dict[str, Any] = {}
    for rank, note in enumerate(notes):
        for name, value in note.items():
            if value is not None and common.setdefault(name, value) != value:
                raise InputError(name, "alike on all ranks", f"{common[name]} and, on rank {rank}, {value}")
    return common
