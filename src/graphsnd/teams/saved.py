"""Teams in folders: a stacked team as two files, ``team.safetensors`` and ``team.json``; others as state dicts."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from graphsnd.errors import InputError, check_device, describe
from graphsnd.files import parse_json, read_json, write_whole
from graphsnd.teams.files import ENDINGS, check_size, read_state_dict
from graphsnd.teams.heads import HEADS
from graphsnd.teams.policies import as_team
from graphsnd.teams.stacked import StackedMLP, StackedTeam
from graphsnd.teams.team import Team

FORMAT, VERSION = "graphsnd-team", 1
TENSORS, DESCRIPTION = "team.safetensors", "team.json"
OBSERVATIONS = "observations.safetensors"  # what a trained team saw last, where it lies beside the team
# By a key of the description: a function that makes a team of the description and its tensors.
BUILDERS: dict[str, Callable[[dict[str, Any], dict[str, Tensor]], Any]] = {}


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


def load(path: str | os.PathLike[str], *, device: torch.device | str = "cpu") -> Team:
    """Read the team in the folder ``path``, its weights mapped into memory; nothing is unpickled.

    Args:
        path: A folder, or one of the two files in it.
        device: Where to put the weights.

    Raises:
        InputError: When a file is missing, damaged, of another version, or the tensors do not fit.
    """
    folder = Path(path).parent if Path(path).name in (TENSORS, DESCRIPTION) else Path(path)
    for name in (DESCRIPTION, TENSORS):
        if not (folder / name).is_file():
            raise InputError("path", f"to hold {name}", f"no file {folder / name}", "For state dicts: policy=make.")
    description = _read_description(folder / DESCRIPTION)
    check_size(folder / TENSORS, (folder / TENSORS).stat().st_size)
    tensors = _read_tensors(folder / TENSORS, description, check_device(device))
    return _build_team(description, tensors, folder / TENSORS)


def load_policies(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    policy: Callable[[], nn.Module],
    *,
    entry: str | None = None,
    device: torch.device | str = "cpu",
) -> Team:
    """Return the team of several checkpoints, one agent for each file; nothing is unpickled.

    Args:
        path: Files of state dicts, ``.pt``, ``.pth`` or ``.safetensors``, in the order of the agents; or a folder of
            them, in the order of their names, numbers by their size.
        policy: Makes the module that a state dict is loaded into. It answers as :func:`~graphsnd.evaluate` says.
        entry: Where a file holds several dicts of tensors, the key of the policy's: ``"actor"``.
        device: Where the policies go.

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
    check_size(files[0], sum(file.stat().st_size for file in files if file.is_file()))
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


def _build_team(description: dict[str, Any], tensors: dict[str, Tensor], file: Path) -> Team:
    """Return the team of a description and its tensors, which are not copied; ``file`` is named in errors."""
    try:
        kind = "deviations" if "deviations" in description else "head"
        if kind not in BUILDERS:
            importlib.import_module("graphsnd.control.networks")  # by name, as control is above teams; adds itself
        team = BUILDERS[kind](description, tensors)
        if {name: part.shape for name, part in team._modules().state_dict().items()} != {
            name: part.shape for name, part in tensors.items()
        } or team.agents != description["agents"]:
            raise ValueError("tensors of other names or shapes than it describes")
        return team.with_names(description["names"]) if "names" in description else team
    except (LookupError, TypeError, ValueError, RuntimeError) as error:  # InputError too, whose argument is not path
        expected = f"with a complete {file.with_name(DESCRIPTION)}, and {TENSORS} that fits it"
        raise InputError("path", expected, f"trouble with {error}".rstrip(".")) from None


def _build_stacked(entry: dict[str, Any], tensors: dict[str, Tensor]) -> StackedTeam:
    options = dict(entry["head"])
    kind: Any = HEADS[options.pop("name")]
    own = {"log_std": tensors["head.log_std"]} if "head.log_std" in tensors else {}
    if own:
        options["batch"] = (entry["agents"],)
    with torch.device("meta"):  # no memory: a description alone may declare any number of actions
        head = kind(**options)
    head.load_state_dict(own, assign=True)
    return StackedTeam(build_network(entry, tensors, "network"), head, about=dict(entry["about"]))


BUILDERS["head"] = _build_stacked


def build_network(entry: dict[str, Any], tensors: dict[str, Tensor], name: str) -> StackedMLP:
    """Return the network of an entry of a description and of the tensors ``name.weights.0``, ``name.biases.0``, ..."""
    layers = range(len(entry["sizes"]) - 1)
    weights, biases = ([tensors[f"{name}.{part}.{layer}"] for layer in layers] for part in ("weights", "biases"))
    network = StackedMLP(weights, biases, activation=entry["activation"])
    if list(network.sizes) != entry["sizes"]:
        raise ValueError(f"sizes {entry['sizes']} of a network with sizes {network.sizes}")
    return network
