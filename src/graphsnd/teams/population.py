"""Policies on disk, of which only those are read that a design asks for: a population, or a state dict per agent."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance, Wasserstein
from graphsnd.errors import InputError, as_tensor, check_index, check_integer, describe, shape_of
from graphsnd.storage import read_json, write_whole
from graphsnd.teams.answers import combine
from graphsnd.teams.controlled import ControlledTeam
from graphsnd.teams.evaluation import as_team
from graphsnd.teams.files import MAX_BYTES, build_team, describe_team, load, save, state_dict_of
from graphsnd.teams.heads import CategoricalHead, GaussianHead, Head, diagonal
from graphsnd.teams.network import StackedMLP
from graphsnd.teams.stacked import StackedTeam
from graphsnd.teams.team import Team
from graphsnd.teams.tensors import Limit, read_state_dict

FORMAT, VERSION, INDEX = "graphsnd-population", 1, "population.json"
AT_ONCE = 2**25  # bytes of weights that are read together
OPEN = 1024  # shards that stay mapped
MANY = 1000  # files that are read when they are needed
ENDINGS = (".pt", ".pth", ".safetensors")


class LazyTeam(Team):
    """Policies that are read when they are asked for, and not kept.

    Attributes:
        weight_bytes: That one policy takes.
    """

    weight_bytes: int
    device = torch.device("cpu")

    @abstractmethod
    def take(self, agents: Tensor) -> Team:
        """Read some policies, int64 ``[k]`` in ascending order."""

    def _evaluate(self, observations: Tensor) -> Behavior:
        if self.agents * self.weight_bytes > MAX_BYTES:
            got = f"{self.agents:,} policies of {self.weight_bytes:,} bytes"
            fix = "Measure some of them: rel_tol=0.01."
            raise InputError("team", f"of at most {MAX_BYTES:,} bytes where all are evaluated", got, fix)
        return self.take(torch.arange(self.agents))._evaluate(observations)

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        rows = max(1, AT_ONCE // (self.weight_bytes * agents.shape[1]))
        parts = []
        for shown, asked in zip(observations.split(rows), agents.cpu().split(rows), strict=True):
            chosen, places = asked.unique(return_inverse=True)
            parts.append(self.take(chosen)._partial(shown, places))
        return combine(parts, lambda tensors, _: torch.cat(tensors), skip=1)


@checked
class Population(LazyTeam):
    """Policies of one architecture in a folder that :func:`save_population` wrote; ``Team.load`` opens it.

    Weights are mapped into memory, and the system reads the pages of those policies that are asked for. So the cost of
    ``measure(population, observations, rel_tol=0.01)`` does not grow with the population. Its interval holds for every
    population, because the index has the range of every shard's actions, from the weights when they were written.

    Args:
        path: The folder.

    Raises:
        InputError: For a folder without an index, or with a damaged one. A shard is checked when it is first read.

    Example:
        >>> import tempfile
        >>> network = StackedMLP.create((100,), (18, 64, 4), generator=torch.Generator().manual_seed(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_population([StackedTeam(network, CategoricalHead(4))] * 3, folder)
        ...     Team.load(folder)
        Population(agents=300, observation_features=18)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder = Path(path)
        file = self.folder / INDEX
        index = read_json(file, "path")
        if not isinstance(index, dict) or (index.get("format"), index.get("version")) != (FORMAT, VERSION):
            raise InputError("path", f"with format {FORMAT!r} of version {VERSION} in {file}", "something else")
        try:
            sizes = [check_integer("path", size, f"with sizes of shards in {file}", low=1) for size in index["shards"]]
            boxes = None if index["boxes"] is None else torch.tensor(index["boxes"], dtype=torch.float64)
            if not sizes or (boxes is not None and (boxes.dim() != 3 or boxes.shape[:2] != (len(sizes), 2))):
                raise ValueError(f"{len(sizes)} shards")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError("path", f"with a complete {file}", f"trouble with {error}") from None
        self._sizes, self._boxes, self._ends = sizes, boxes, torch.tensor(list(accumulate(sizes)))
        self._shard = lru_cache(OPEN)(self._read_shard)
        first = self._shard(0)
        self._description = {key: value for key, value in describe_team(first).items() if key != "names"}
        self.agents, self.weight_bytes = sum(sizes), sum(t.nbytes for t in state_dict_of(first).values()) // sizes[0]
        self.observation_features, self.cost = first.observation_features, first.cost

    def take(self, agents: Tensor) -> StackedTeam:
        """Read the weights of some policies, int64 ``[k]`` in ascending order."""
        check_index("agents", agents, self.agents)
        if agents.dim() != 1 or not len(agents):
            raise InputError("agents", "with shape (k,), at least 1", shape_of(agents))
        shards, counts = torch.bucketize(agents, self._ends, right=True).unique_consecutive(return_counts=True)
        parts = []
        for shard, asked in zip(shards.tolist(), agents.split(counts.tolist()), strict=True):
            rows = asked - (self._ends[shard] - self._sizes[shard])
            parts.append({name: _take_rows(one, rows) for name, one in state_dict_of(self._shard(shard)).items()})
        joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        team = build_team(self._description | {"agents": len(agents)}, joined, self.folder / INDEX)
        assert isinstance(team, StackedTeam)  # as every shard
        return team

    def bound(self, distance: Distance) -> float | None:
        """Return an upper bound on all distances, from the index: no weights are read."""
        known = self.take(torch.zeros(1, dtype=torch.int64)).bound(distance)  # raises where the distance does not fit
        if isinstance(distance, Wasserstein):
            return None if self._boxes is None else diagonal(self._boxes[:, 0], self._boxes[:, 1])
        return known

    def _read_shard(self, shard: int) -> StackedTeam:
        folder = self.folder / _name(shard)
        team = load(folder, max_bytes=sys.maxsize)  # mapped, not read
        alike = shard == 0 or _architecture(team) == _architecture(self._shard(0))
        if not isinstance(team, StackedTeam) or team.agents != self._sizes[shard] or not alike:
            expected = f"with {self._sizes[shard]:,} stacked policies of one architecture in {folder}"
            raise InputError("path", expected, f"{team.agents:,} in a {type(team).__name__}")
        for tensor in state_dict_of(team).values():
            _read_alone(tensor)
        return team


@lru_cache
def _madvise() -> Callable[[int, int, int], int] | None:
    """Return the system's call that is told how mapped memory will be read; None where there is none."""
    if not hasattr(mmap, "MADV_WILLNEED"):
        return None
    call = ctypes.CDLL(None).madvise
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return call


def _read_alone(tensor: Tensor) -> None:
    """Have pages of a mapped tensor read one by one: else the system reads 128 kB around each."""
    if call := _madvise():
        begin = tensor.data_ptr() // mmap.PAGESIZE * mmap.PAGESIZE
        call(begin, tensor.data_ptr() + tensor.nbytes - begin, mmap.MADV_RANDOM)


def _take_rows(tensor: Tensor, rows: Tensor) -> Tensor:
    """Return rows of a mapped tensor, all of which the disk is asked for before the first is waited for."""
    if call := _madvise():
        step, page, start = tensor[0].nbytes, mmap.PAGESIZE, tensor.data_ptr()
        for row in rows.tolist():
            begin = (start + row * step) // page * page
            call(begin, start + (row + 1) * step - begin, mmap.MADV_WILLNEED)
    return tensor.index_select(0, rows)


def _name(shard: int) -> str:
    return f"shard-{shard:05}"


def _architecture(team: StackedTeam | ControlledTeam) -> dict[str, Any]:
    return {key: value for key, value in describe_team(team).items() if key not in ("agents", "about", "names")}


@checked(own="teams")
def save_population(teams: Iterable[StackedTeam], path: str | os.PathLike[str]) -> None:
    """Write a population to a folder, a shard for each team, and then the index that makes it one.

    One shard is in memory at a time where ``teams`` is a generator. Shards of a few thousand policies are good; names
    of agents are not kept.

    Args:
        teams: Stacked teams of one architecture.
        path: A folder that is empty or does not exist.

    Raises:
        InputError: For no teams, those that differ in architecture, and a folder with something in it.

    Example:
        >>> import tempfile
        >>> seeded = torch.Generator().manual_seed(0)
        >>> networks = (StackedMLP.create((100,), (18, 4), generator=seeded) for _ in range(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_population((StackedTeam(network, CategoricalHead(4)) for network in networks), folder)
        ...     Team.load(folder).agents
        300
    """
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("path", "to be a new or an empty folder", str(folder))
    if not isinstance(teams, Iterable):
        raise InputError("teams", "to be several StackedTeams", type(teams).__name__, "One team: [team].")
    sizes: list[int] = []
    boxes: list[Any] | None = []
    first: dict[str, Any] = {}
    for shard, team in enumerate(teams):
        if not isinstance(team, StackedTeam):
            raise InputError("teams", "to be StackedTeams", type(team).__name__)
        first = first or _architecture(team)
        if _architecture(team) != first:
            raise InputError("teams", f"of one architecture, {first}", f"{_architecture(team)} in team {shard}")
        save(team, folder / _name(shard))
        sizes.append(team.agents)
        if boxes is not None:
            low, high = (torch.empty(0),) * 2 if isinstance(team.head, CategoricalHead) else team.box()
            finite = len(low) and bool(low.isfinite().all() and high.isfinite().all())
            boxes = [*boxes, [low.amin(0).tolist(), high.amax(0).tolist()]] if finite else None
    if not sizes:
        raise InputError("teams", "to be at least one", "none")
    index = {"format": FORMAT, "version": VERSION, "shards": sizes, "boxes": boxes}
    write_whole(folder / INDEX, json.dumps(index) + "\n")


@checked(own="vectors")
def from_vectors(vectors: Any, sizes: Sequence[int], head: Head, *, activation: str = "tanh") -> StackedTeam:
    """Return the team of flat parameter vectors, as evolutionary searches keep them.

    Args:
        vectors: ``[agents, parameters]``, or an archive of pyribs (``ribs.archives``), whose solutions are taken and
            whose agents are named after its cells. The order within a vector is that of
            ``torch.nn.utils.parameters_to_vector`` of linear layers: weight ``[out, in]``, bias, next layer; then the
            log standard deviations of a :class:`GaussianHead` with independent scales.
        sizes: Features of the input, of every hidden layer, and of the output.
        head: How outputs are read; one without weights of its own, or made with ``batch=(agents,)``.
        activation: ``"tanh"`` or ``"relu"``.

    Raises:
        InputError: When the vectors have another length.

    Example:
        >>> from graphsnd.teams import DeterministicHead
        >>> from_vectors(torch.zeros(5, 4 * 8 + 8 + 8 * 2 + 2), (4, 8, 2), DeterministicHead(2))
        StackedTeam(agents=5, observation_features=4)
    """
    names = None
    if hasattr(vectors, "data") and callable(vectors.data):
        names, vectors = [str(cell) for cell in vectors.data("index")], vectors.data("solution")
    flat = as_tensor(vectors)
    wide = sum(a * b + b for a, b in pairwise(sizes)) + (0 if head.batch is None else head.actions)
    if not isinstance(flat, Tensor) or flat.dim() != 2 or flat.shape[1] != wide or not len(flat):
        got = shape_of(flat) if isinstance(flat, Tensor) else type(vectors).__name__
        raise InputError("vectors", f"to be (agents, {wide}), the parameters of {tuple(sizes)}", got)
    flat, weights, biases, at = flat.to(torch.float32), [], [], 0
    for a, b in pairwise(sizes):
        weights.append(flat[:, at : at + a * b].unflatten(1, (b, a)).transpose(1, 2).contiguous())
        biases.append(flat[:, at + a * b : at + a * b + b].unsqueeze(1).contiguous())
        at += a * b + b
    team = StackedTeam(StackedMLP(weights, biases, activation=activation), head)
    if isinstance(head, GaussianHead) and head.batch is not None:
        head.log_std.data.copy_(flat[:, at:].unsqueeze(1))
    return team if names is None else team.with_names(names)


@checked
def load_policies(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    policy: Callable[[], nn.Module],
    *,
    entry: str | None = None,
    device: torch.device | str = "cpu",
    max_bytes: int = 2**33,
    lazy: bool | None = None,
) -> Team:
    """Return the team of several checkpoints, one agent for each file; nothing is unpickled.

    Args:
        path: Files of state dicts, ``.pt``, ``.pth`` or ``.safetensors``, in the order of the agents; or a folder of
            them, in the order of their names, numbers by their size.
        policy: Makes the module that a state dict is loaded into. It answers as :func:`~graphsnd.evaluate` says.
        entry: Where a file holds several dicts of tensors, the key of the policy's: ``"actor"``.
        device: Where the policies go.
        max_bytes: That the tensors of all files may take, or of those that are read at once.
        lazy: Read a file whenever its agent is asked for, and keep none. When None, for more than 1,000 files.

    Returns:
        Agents are named after the files.

    Raises:
        InputError: For files that cannot be read, or do not fit the module.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for agent in ("scout", "guard"):
        ...         torch.save(nn.Linear(4, 2).state_dict(), f"{folder}/{agent}.pt")
        ...     load_policies(folder, lambda: nn.Linear(4, 2)).names
        ('guard', 'scout')
    """
    files = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    if len(files) == 1 and files[0].is_dir():
        inside = (file for file in files[0].iterdir() if file.suffix.lower() in ENDINGS)
        files = sorted(inside, key=lambda file: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", file.name)])
    if not files:
        raise InputError("path", f"to hold files that end in {', '.join(ENDINGS)}", f"none in {path}")
    same = len({file.stem for file in files}) < len(files)  # a/policy.pt and b/policy.pt
    names = [f"{file.parent.name}/{file.stem}" if same else file.stem for file in files]
    team = _Files(files, policy, entry, device, max_bytes)
    lazy = len(files) > MANY if lazy is None else lazy
    return (team if lazy else team.take(torch.arange(len(files)))).with_names(names)


class _Files(LazyTeam):
    """Files of state dicts, and what makes their module."""

    def __init__(
        self, files: list[Path], policy: Callable[[], nn.Module], entry: str | None, device: Any, max_bytes: int
    ) -> None:
        self.files, self.policy, self.entry, self.max_bytes = files, policy, entry, max_bytes
        self.device = torch.device(device)
        self.agents, self.weight_bytes = len(files), max(1, files[0].stat().st_size if files[0].is_file() else 1)

    def take(self, agents: Tensor) -> Team:
        """Read the policies of some files."""
        limit = Limit(self.files[0], self.max_bytes)
        return as_team([self._read(self.files[agent], limit) for agent in agents.tolist()])

    def _read(self, file: Path, limit: Limit) -> nn.Module:
        limit.path = file
        module = None if isinstance(self.policy, nn.Module) else self.policy()
        if not isinstance(module, nn.Module):
            got = describe(module or self.policy)
            raise InputError("policy", "to make a torch.nn.Module", got, "Pass a function: policy=lambda: Policy().")
        tensors = read_state_dict(file, limit, self.entry)
        try:
            module.load_state_dict(tensors)
        except RuntimeError as error:  # of torch, which names all that does not fit, over many lines
            said, fix = " ".join(str(error).split())[:300].rstrip("."), "It must make the module that was saved."
            raise InputError("policy", f"to fit {file.name}", said, fix) from None
        return module.to(self.device)
