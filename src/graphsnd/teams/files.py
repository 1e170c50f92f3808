"""A stacked team as two files, ``team.safetensors`` and ``team.json``; and what any team does, as one ``.npz``."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, check_clusters, check_integer, shape_of
from graphsnd.files import parse_json, read_json, write_whole
from graphsnd.teams.answers import FAMILIES, FIELDS
from graphsnd.teams.controlled import ControlledTeam
from graphsnd.teams.heads import HEADS, Head
from graphsnd.teams.network import StackedMLP
from graphsnd.teams.stacked import StackedTeam
from graphsnd.teams.team import Team
from graphsnd.teams.tensors import NAMES, read_tensors

FORMAT, VERSION = "graphsnd-team", 1
TENSORS, DESCRIPTION = "team.safetensors", "team.json"
MAX_BYTES = 2**33  # that a file may take in memory, unless told; far above teams that a machine measures in minutes
FORMS = "loc + scale, loc + covariance, probs, logits (+ mask), actions, values, or samples"
BEHAVIOR_KEYS = frozenset(key for keys in FAMILIES for key in keys) | {"mask", NAMES}
OBSERVATIONS = "observations.safetensors"  # what a trained team saw last, where it lies beside the team


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
    if not isinstance(team, StackedTeam | ControlledTeam):
        raise InputError("team", "to be a StackedTeam to be saved", type(team).__name__, "Save its modules yourself.")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError("path", "to be a folder", f"the file {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        text = json.dumps(_describe_team(team), indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError("about", "to hold only what JSON can say", str(error)) from None
    tensors = {name: value.contiguous() for name, value in _state_dict_of(team).items()}
    write_whole(folder / TENSORS, serialise(tensors, metadata={"team": text}))
    write_whole(folder / DESCRIPTION, text + "\n")


def load(
    path: str | os.PathLike[str], *, device: torch.device | str = "cpu", max_bytes: int = MAX_BYTES
) -> StackedTeam | ControlledTeam:
    """Read the team in the folder ``path``; nothing is unpickled.

    Args:
        path: A folder, or one of the two files in it.
        device: Where to put the weights.
        max_bytes: That the weights may take.

    Raises:
        InputError: When a file is missing, damaged, of another version, or the tensors do not fit.
    """
    folder = Path(path).parent if Path(path).name in (TENSORS, DESCRIPTION) else Path(path)
    for name in (DESCRIPTION, TENSORS):
        if not (folder / name).is_file():
            raise InputError("path", f"to hold {name}", f"no file {folder / name}", "For state dicts: policy=make.")
    description = _read_description(folder / DESCRIPTION)
    tensors = _read_tensors(folder / TENSORS, description, device, max_bytes)
    team = _build_team(description, tensors, folder / TENSORS, max_bytes)
    return team.with_names(description["names"]) if "names" in description else team


def _build_team(
    description: dict[str, Any], tensors: dict[str, Tensor], file: Path, most: int = MAX_BYTES
) -> StackedTeam | ControlledTeam:
    """Return the team of a description and its tensors, which are not copied; ``file`` is named in errors."""
    try:
        agents = _count(description["agents"], most)
        team: StackedTeam | ControlledTeam
        if "deviations" in description:
            team = _blank_controlled(description, agents, most, tensors.get("scale", torch.ones(())))
        else:
            team = _blank_stacked(description, agents, most)
        modules = _modules(team)
        _check_shapes(file, tensors, modules.state_dict())
        modules.load_state_dict(tensors, assign=True)
        if isinstance(team, ControlledTeam):
            team.scale = tensors["scale"]
        return team
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # RuntimeError: sizes whose product overflows
        raise InputError("path", f"with a complete {file.with_name(DESCRIPTION)}", f"trouble with {error}") from None


@checked(own="clusters")
def save_behavior(
    behavior: Behavior, path: str | os.PathLike[str], *, clusters: Tensor | Sequence[int] | None = None
) -> None:
    """Write what agents would do on shared observations to a file for :func:`load_behavior` and ``graphsnd measure``.

    float64 stays float64, all else becomes float32. Observations keep their leading shape, clusters are written flat.

    Args:
        behavior: Of one part.
        path: Ends in ``.npz``.
        clusters: The episode or environment of each observation, integers, in their shape or flat.

    Raises:
        InputError: For actions of several parts, another ending, and clusters that are not an integer per observation.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_behavior(gs.Deterministic(torch.zeros(8, 3, 2)), f"{folder}/team.npz")
    """
    if type(behavior) not in FIELDS:
        raise InputError("behavior", "of one part", type(behavior).__name__, "Save the parts of a Joint one by one.")
    if Path(path).suffix != ".npz":
        fix = "The other formats are only read, so write them with their own libraries."
        raise InputError("path", "to end in .npz", repr(Path(path).name), fix)
    tensors = {name: getattr(behavior, name) for name, _ in FIELDS[type(behavior)]}
    tensors = {name: part if part.dtype == torch.float64 else part.float() for name, part in tensors.items()}
    arrays = {name: part.detach().cpu().numpy() for name, part in tensors.items()}
    groups = check_clusters(clusters, behavior.batch_shape)
    if groups is not None:
        arrays["clusters"] = groups.numpy()
    content = io.BytesIO()
    np.savez(content, names=np.array(behavior.names), **arrays)
    write_whole(path, content.getvalue())


@checked
def load_behavior(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Behavior:
    """Read a behaviour that :func:`save_behavior` or another program wrote; nothing is unpickled.

    Args:
        path: A ``.npz``, ``.safetensors`` or ``.pt`` file of named tensors (``docs/files.md``); others are ignored.
        max_bytes: That the tensors may take.

    Raises:
        InputError: For a file that is missing, unreadable, too large, pickled, or does not hold exactly one behaviour.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_behavior(gs.Deterministic(torch.zeros(8, 3, 2)), f"{folder}/team.npz")
        ...     load_behavior(f"{folder}/team.npz")
        Deterministic(agents=3, observations=8)
    """
    return build_behavior(read_tensors(Path(path), BEHAVIOR_KEYS, max_bytes))


def build_behavior(tensors: dict[str, Any]) -> Behavior:
    """Return the one behaviour among the tensors of a file."""
    # A lone `loc` fits no family, and loc with scale and covariance fits two; both are named for what they are.
    held = [keys for keys in FAMILIES if set(keys) <= set(tensors)]
    named = ", ".join(sorted(tensors)) or "none of these keys"
    if not held:
        fix = "For weights of policies: --policy mymodule:make, or Team.load(path, policy=make)."
        raise InputError("path", f"to hold {FORMS}", named, fix)
    if len(held) > 1:
        raise InputError("path", f"to hold only one of {FORMS}", named, "Save the one that should be compared.")
    keys = held[0]
    arguments = {key: tensors[key] for key in keys}
    if "mask" in tensors:
        if keys != ("logits",):
            raise InputError("mask", "only together with `logits`", f"{' + '.join(keys)} and mask")
        arguments["mask"] = tensors["mask"]
    behavior = FAMILIES[keys](**arguments)
    return behavior.with_names(tensors[NAMES]) if NAMES in tensors else behavior


def _count(value: Any, most: int) -> int:
    return check_integer("path", value, f"with sizes from 1 to {most:,} in {DESCRIPTION}", low=1, high=most)


def _describe_team(team: StackedTeam | ControlledTeam) -> dict[str, Any]:
    """Return what the description of a saved team says."""
    if isinstance(team, ControlledTeam):
        networks = {"shared": _describe_network(team.shared), "deviations": _describe_network(team.deviations)}
        policies = {**networks, "kind": team.kind, "squashed": team.squashed}
    else:
        head = {"name": team.head.name, "actions": team.head.actions, **team.head.options()}
        policies = {**_describe_network(team.network), "head": head}
    return {
        "format": FORMAT,
        "version": VERSION,
        "agents": team.agents,
        **policies,
        "about": team.about,
        **({} if team._names is None else {"names": list(team._names)}),
    }


def _describe_network(network: StackedMLP) -> dict[str, Any]:
    return {"sizes": list(network.sizes), "activation": network.activation}


def _read_description(file: Path) -> dict[str, Any]:
    description = read_json(file, "path")
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise InputError("path", f"with the format {FORMAT!r} in {file}", "something else")
    if description.get("version") != VERSION:
        fix = "Read it with the version of graphsnd that wrote it."
        raise InputError("path", f"of version {VERSION}", f"version {description.get('version')!r} in {file}", fix)
    return description


def _read_tensors(
    file: Path, description: dict[str, Any], device: torch.device | str, max_bytes: int
) -> dict[str, Tensor]:
    if file.stat().st_size > max_bytes:
        raise InputError("path", f"within max_bytes = {max_bytes:,}", f"a larger {file}", "Raise max_bytes.")
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


def _build_head(entry: dict[str, Any], agents: int) -> Head:
    options = dict(entry)
    name, actions = options.pop("name"), options.pop("actions")
    if name not in HEADS:
        raise InputError("path", f"with a head among {', '.join(HEADS)}", repr(name))
    head = HEADS[name](actions, **options)
    return head if head.batch is None else HEADS[name](actions, batch=(agents,), **options)  # type: ignore[call-arg]


def _blank_stacked(entry: dict[str, Any], agents: int, most: int) -> StackedTeam:
    with torch.device("meta"):
        head = _build_head(entry["head"], agents)
    return StackedTeam(_blank_network(entry, agents, most), head, about=dict(entry["about"]))


def _blank_controlled(entry: dict[str, Any], agents: int, most: int, scale: Tensor) -> ControlledTeam:
    shared, deviations = _blank_network(entry["shared"], 1, most), _blank_network(entry["deviations"], agents, most)
    if not isinstance(entry["squashed"], bool):
        raise InputError("path", f"with squashed true or false in {DESCRIPTION}", repr(entry["squashed"]))
    about = dict(entry["about"])
    return ControlledTeam(shared, deviations, scale, kind=entry["kind"], squashed=entry["squashed"], about=about)


def _blank_network(entry: dict[str, Any], agents: int, most: int) -> StackedMLP:
    """Return a network without memory for its weights: a description alone may declare any number of them."""
    sizes = [_count(size, most) for size in entry["sizes"]]
    weights = [torch.empty(()).expand(agents, *fans) for fans in pairwise(sizes)]
    return StackedMLP(weights, [weight[:, :1] for weight in weights], activation=entry["activation"])


def _state_dict_of(team: StackedTeam | ControlledTeam) -> dict[str, Tensor]:
    """Return the tensors of a team by their names in a file."""
    return _modules(team).state_dict()


def _modules(team: StackedTeam | ControlledTeam) -> nn.ModuleDict:
    """Join the parts of a team, so that the names of their tensors are those in the file."""
    if isinstance(team, StackedTeam):
        return nn.ModuleDict({"network": team.network, "head": team.head})
    modules = nn.ModuleDict({"shared": team.shared, "deviations": team.deviations})
    modules.register_buffer("scale", team.scale)
    return modules


def _check_shapes(file: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name in sorted(expected.keys() | tensors.keys()):
        wanted = f"with {shape_of(expected[name])}" if name in expected else "absent"
        got = shape_of(tensors[name]) if name in tensors else "no such tensor"
        if wanted != f"with {got}":
            raise InputError("path", f"with {name} {wanted} in {file}", got)
