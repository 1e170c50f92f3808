"""Teams in folders: a stacked team as two files, ``team.safetensors`` and ``team.json``; others as state dicts."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from graphsnd.errors import InputError, check_device, check_integer, describe, shape_of
from graphsnd.files import parse_json, read_json, write_whole
from graphsnd.teams.files import MAX_BYTES, check_size, read_state_dict
from graphsnd.teams.heads import HEADS, Head
from graphsnd.teams.policies import as_team
from graphsnd.teams.stacked import StackedMLP, StackedTeam
from graphsnd.teams.team import Team

FORMAT, VERSION = "graphsnd-team", 1
TENSORS, DESCRIPTION = "team.safetensors", "team.json"
OBSERVATIONS = "observations.safetensors"  # what a trained team saw last, where it lies beside the team
ENDINGS = (".pt", ".pth", ".safetensors")
# By a key of the description: a function that makes a team without memory for its weights.
BLANKS: dict[str, Callable[..., Any]] = {}


def save(team: Team, path: str | os.PathLike[str]) -> None:
    """Write ``team`` into the folder ``path``, made if need be.

    Each file is complete or absent: written under another name, flushed to the disk, then renamed. The description
    stands in both files, so that two saves which a crash has mixed are noticed.

    Args:
        team: A stacked or a controlled team.
        path: A folder.

    Raises:
        InputError: For other teams, when ``team.about`` is more than JSON can say, or ``path`` is a file.

    Example:
        >>> import tempfile
        >>> from graphsnd.teams import CategoricalHead
        >>> network = StackedMLP.create((5,), (18, 64, 4), generator=torch.Generator().manual_seed(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(StackedTeam(network, CategoricalHead(4), about={"seed": 0}), folder)
        ...     Team.load(folder)
        StackedTeam(agents=5, observation_features=18)
    """
    policies, folder = team._describe(), Path(path)
    if policies is None:
        raise InputError("team", "to be a StackedTeam to be saved", type(team).__name__, "Save its modules yourself.")
    if folder.exists() and not folder.is_dir():
        raise InputError("path", "to be a folder", f"the file {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "version": VERSION, "agents": team.agents, **policies}
    about |= {} if team._names is None else {"names": list(team._names)}
    try:
        text = json.dumps(about, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError("about", "to hold only what JSON can say", str(error)) from None
    tensors = {name: value.contiguous() for name, value in team._modules().state_dict().items()}
    write_whole(folder / TENSORS, serialise(tensors, metadata={"team": text}))
    write_whole(folder / DESCRIPTION, text + "\n")


def load(path: str | os.PathLike[str], *, device: torch.device | str = "cpu", max_bytes: int = MAX_BYTES) -> Team:
    """Read the team in the folder ``path``, its weights mapped into memory; nothing is unpickled.

    Args:
        path: A folder, or one of the two files in it.
        device: Where to put the weights.
        max_bytes: Memory limit for the weights.

    Raises:
        InputError: When a file is missing, damaged, of another version, or the tensors do not fit.
    """
    folder = Path(path).parent if Path(path).name in (TENSORS, DESCRIPTION) else Path(path)
    for name in (DESCRIPTION, TENSORS):
        if not (folder / name).is_file():
            raise InputError("path", f"to hold {name}", f"no file {folder / name}", "For state dicts: policy=make.")
    description = _read_description(folder / DESCRIPTION)
    check_size(folder / TENSORS, (folder / TENSORS).stat().st_size, max_bytes)
    tensors = _read_tensors(folder / TENSORS, description, check_device(device))
    team = _build_team(description, tensors, folder / TENSORS, max_bytes)
    return team.with_names(description["names"]) if "names" in description else team


def load_policies(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    policy: Callable[[], nn.Module],
    *,
    entry: str | None = None,
    device: torch.device | str = "cpu",
    max_bytes: int = MAX_BYTES,
) -> Team:
    """Return the team of several checkpoints, one agent for each file; nothing is unpickled.

    Args:
        path: Files of state dicts, ``.pt``, ``.pth`` or ``.safetensors``, in the order of the agents; or a folder of
            them, in the order of their names, numbers by their size.
        policy: Makes the module that a state dict is loaded into. It answers as :func:`~graphsnd.evaluate` says.
        entry: Where a file holds several dicts of tensors, the key of the policy's: ``"actor"``.
        device: Where the policies go.
        max_bytes: Memory limit for the tensors of all files.

    Returns:
        The team, with agents named after the files.

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
    check_size(files[0], sum(file.stat().st_size for file in files if file.is_file()), max_bytes)
    place = check_device(device)
    return as_team([_load_policy(file, policy, entry).to(place) for file in files]).with_names(names)


def _load_policy(file: Path, policy: Callable[[], nn.Module], entry: str | None) -> nn.Module:
    module = None if isinstance(policy, nn.Module) or not callable(policy) else policy()
    if not isinstance(module, nn.Module):
        got = describe(module or policy)
        raise InputError("policy", "to make a torch.nn.Module", got, "Pass a function: policy=lambda: Policy().")
    tensors = read_state_dict(file, entry)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:  # of torch, which names all that does not fit, over many lines
        said, fix = " ".join(str(error).split())[:300].rstrip("."), "It must make the module that was saved."
        raise InputError("policy", f"to fit {file.name}", said, fix) from None
    return module


def _read_description(file: Path) -> dict[str, Any]:
    description = read_json(file, "path")
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise InputError("path", f"with the format {FORMAT!r} in {file}", "something else")
    if description.get("version") != VERSION:
        fix = "Read it with the version of graphsnd that wrote it."
        raise InputError("path", f"of version {VERSION}", f"version {description.get('version')!r} in {file}", fix)
    return description


def _read_tensors(file: Path, description: dict[str, Any], device: torch.device) -> dict[str, Tensor]:
    try:
        with safe_open(file, framework="pt", device=str(device)) as opened:
            inside = parse_json((opened.metadata() or {}).get("team", "null"))
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, ValueError) as error:
        raise InputError("path", f"with a whole {file}", str(error)) from None
    if inside != description:
        expected = f"with {TENSORS} and {DESCRIPTION} of one save"
        raise InputError("path", expected, f"two that say different things in {file.parent}")
    return tensors


def _build_team(description: dict[str, Any], tensors: dict[str, Tensor], file: Path, most: int) -> Team:
    """Return the team of a description and its tensors, which are not copied; ``file`` is named in errors."""
    try:
        kind = "deviations" if "deviations" in description else "head"
        if kind not in BLANKS:
            importlib.import_module("graphsnd.control.networks")  # by name, as control is above teams; adds itself
        team = BLANKS[kind](description, count_up_to(most, description["agents"]), most, tensors)
        modules = team._modules()
        _check_shapes(file, tensors, modules.state_dict())
        modules.load_state_dict(tensors, assign=True)
        if "scale" in tensors:  # a controlled team's, which is no parameter
            team.scale = tensors["scale"]
        return team
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # RuntimeError: sizes whose product overflows
        raise InputError("path", f"with a complete {file.with_name(DESCRIPTION)}", f"trouble with {error}") from None


def _blank_stacked(entry: dict[str, Any], agents: int, most: int, _: object) -> StackedTeam:
    options = dict(entry["head"])
    name, actions = options.pop("name"), options.pop("actions")
    if name not in HEADS:
        raise InputError("path", f"with a head among {', '.join(HEADS)}", repr(name))
    with torch.device("meta"):
        head: Head = HEADS[name](actions, **options)
        if head.batch is not None:
            head = HEADS[name](actions, batch=(agents,), **options)  # type: ignore[call-arg]
    return StackedTeam(blank_network(entry, agents, most), head, about=dict(entry["about"]))


BLANKS["head"] = _blank_stacked


def blank_network(entry: dict[str, Any], agents: int, most: int) -> StackedMLP:
    """Return a network without memory for its weights: a description alone may declare any number of them."""
    sizes = [count_up_to(most, size) for size in entry["sizes"]]
    weights = [torch.empty(()).expand(agents, *fans) for fans in pairwise(sizes)]
    return StackedMLP(weights, [weight[:, :1] for weight in weights], activation=entry["activation"])


def count_up_to(most: int, value: Any) -> int:
    """Return a size that a description says, or raise."""
    return check_integer("path", value, f"with sizes from 1 to {most:,} in {DESCRIPTION}", low=1, high=most)


def _check_shapes(file: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name in sorted(expected.keys() | tensors.keys()):
        wanted = f"with {shape_of(expected[name])}" if name in expected else "absent"
        got = shape_of(tensors[name]) if name in tensors else "no such tensor"
        if wanted != f"with {got}":
            raise InputError("path", f"with {name} {wanted} in {file}", got)
