"""Files: behaviours as named tensors, a stacked team as a folder, other teams as state dicts; nothing is unpickled."""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, as_tensor, check_clusters, check_device, describe, plain_tensor
from graphsnd.files import parse_json, write_whole
from graphsnd.teams.answers import FAMILIES, FIELDS
from graphsnd.teams.heads import HEADS
from graphsnd.teams.policies import as_team
from graphsnd.teams.stacked import StackedMLP, StackedTeam
from graphsnd.teams.team import Team

MAX_BYTES = 2**33  # memory limit for the tensors of a file; far above teams that a machine measures in minutes
NAMES = "names"  # the key of the agents' names
FORMS = "loc + scale, loc + covariance, probs, logits (+ mask), actions, values, or samples"
BEHAVIOR_KEYS = frozenset(key for keys in FAMILIES for key in keys) | {"mask", NAMES}
ENDINGS = (".pt", ".pth", ".safetensors")
FORMAT, VERSION = "graphsnd-team", 1
TENSORS, DESCRIPTION = "team.safetensors", "team.json"
OBSERVATIONS = "observations.safetensors"  # what a trained team saw last, where it lies beside the team
# By a key of the description: a function that makes a team of the description and its tensors.
BUILDERS: dict[str, Callable[[dict[str, Any], dict[str, Tensor]], Any]] = {}


def save_behavior(
    behavior: Behavior, path: str | os.PathLike[str], *, clusters: Tensor | Sequence[int] | None = None
) -> None:
    """Write a behaviour to a file for :func:`load_behavior` and ``graphsnd measure``.

    float64 stays float64, all else becomes float32. Observations keep their leading shape, clusters are written flat.

    Args:
        behavior: A behaviour of one part.
        path: Ends in ``.npz``.
        clusters: Episode or environment of each observation, integers, in their shape or flat.

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


def load_behavior(path: str | os.PathLike[str]) -> Behavior:
    """Read a behaviour that :func:`save_behavior` or another program wrote; nothing is unpickled.

    Args:
        path: A ``.npz``, ``.safetensors`` or ``.pt`` file of named tensors (``docs/checkpoints.md``).

    Raises:
        InputError: For a file that is missing, unreadable, too large, pickled, or does not hold exactly one behaviour.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_behavior(gs.Deterministic(torch.zeros(8, 3, 2)), f"{folder}/team.npz")
        ...     load_behavior(f"{folder}/team.npz")
        Deterministic(agents=3, observations=8)
    """
    return build_behavior(read_tensors(Path(path), BEHAVIOR_KEYS))


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


def read_tensors(path: Path, keys: Collection[str]) -> dict[str, Any]:
    """Return the tensors of a file that have one of the keys, and the agents' names as a list of strings.

    Args:
        path: Ends in ``.npz``, ``.safetensors``, ``.pt`` or ``.pth``.
        keys: The keys to read.

    Raises:
        InputError: For a file that is missing, damaged, too large, pickled, or whose tensors are not real and dense.
    """
    if path.suffix.lower() not in (".npz", *ENDINGS):
        fix = "Save with numpy.savez or torch.save."
        raise InputError("path", "to end in .npz, .safetensors or .pt", repr(path.name), fix)
    with explain_read_errors(path):
        tensors = _read_npz(path, keys) if path.suffix.lower() == ".npz" else _open_mapped(path)
        held = {key: part for key, part in tensors.items() if isinstance(key, str) and key in keys}
    for key, tensor in held.items():
        if key != NAMES and (not isinstance(tensor, Tensor) or plain_tensor(tensor) is None):
            raise InputError(key, "to be a dense tensor of real numbers", describe(tensor), "Convert it to float32.")
    check_size(path, sum(part.nbytes for part in held.values() if isinstance(part, Tensor)))
    # Copied, so that the numbers stay when another program writes into the file.
    return {key: part.clone() if isinstance(part, Tensor) else part for key, part in held.items()}


def read_state_dict(path: Path, entry: str | None = None) -> dict[str, Tensor]:
    """Return all tensors of a state dict, mapped into memory.

    Args:
        path: Ends in ``.safetensors``, ``.pt`` or ``.pth``.
        entry: The key of a ``.pt`` file under which the state dict lies; where None and there is only one, that.

    Raises:
        InputError: For a file that is missing, damaged, pickled, or holds none or several state dicts.
    """
    with explain_read_errors(path):
        held = _open_mapped(path)
    dicts = {"": held} | {key: one for key, one in held.items() if isinstance(key, str) and isinstance(one, Mapping)}
    states = {key: {name: part for name, part in one.items() if isinstance(part, Tensor)} for key, one in dicts.items()}
    states = {key: state for key, state in states.items() if state}
    if entry is None and states:
        entry = next(iter(states)) if len(states) == 1 or "" in states else None
    if entry not in states:
        fix = f"Name one of {', '.join(states)}: entry=, or --entry." if states else ""
        raise InputError("entry", f"to be a dict of tensors in {path.name!r}", repr(entry), fix)
    return states[entry]


def check_size(path: Path, size: int) -> None:
    """Raise for tensors above their memory limit."""
    if size > MAX_BYTES:
        got = f"{path.name!r}, {size - MAX_BYTES:,} bytes too many"
        fix = "If you trust the file, set graphsnd.teams.files.MAX_BYTES."
        raise InputError("path", f"to fit in {MAX_BYTES:,} bytes", got, fix)


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Let errors say that the file is missing or damaged."""
    if not path.is_file():
        raise InputError("path", "to exist", f"{'something else' if path.exists() else 'no file'} {str(path)!r}")
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # NumPy, torch and safetensors raise anything on files that are cut or something else
        # Readers explain at length and over several lines; the first sentence of the first one says what is wrong.
        why = str(error).strip().splitlines()[0][:160].rstrip(". ") if str(error).strip() else type(error).__name__
        got, fix = f"{path.name!r} ({why})", ""
        if isinstance(error, pickle.UnpicklingError) or "allow_pickle" in why:
            fix = "Pickled objects are never loaded: save plain tensors, such as a state dict, alone."
        raise InputError("path", f"to be a readable {path.suffix} file of tensors", got, fix) from None


def _read_npz(path: Path, keys: Collection[str]) -> dict[str, Any]:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError("path", "to be an .npz archive of named arrays", "a single array", "Use numpy.savez.")
    with archive:
        sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.zip.infolist()}
        check_size(path, sum(size for key, size in sizes.items() if key in keys))
        arrays = {key: archive[key] for key in sizes if key in keys}  # others are never opened
    return {key: array.reshape(-1).tolist() if key == NAMES else as_tensor(array) for key, array in arrays.items()}


def _open_mapped(path: Path) -> dict[Any, Any]:
    """Return what a ``.pt`` or ``.safetensors`` file holds, mapped into memory; nothing is unpickled but tensors."""
    if path.suffix.lower() == ".safetensors":
        with safe_open(path, framework="pt") as opened:
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 (not a mapping)
            names = (opened.metadata() or {}).get(NAMES)  # the format has no strings but those of its metadata
        return tensors if names is None else {**tensors, NAMES: parse_json(names)}
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:  # torch does not compare checksums
            raise ValueError("bad checksum")
    held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    if not isinstance(held, Mapping):
        raise InputError("path", "to hold a dict of tensors by name", f"a {type(held).__name__}")
    return dict(held)


def save(team: Team, path: str | os.PathLike[str]) -> None:
    """Write ``team`` into the folder ``path``, which is created if it is missing.

    Each file is complete or absent: written under another name, flushed to the disk, then renamed. What ``team.json``
    says also stands in ``team.safetensors``, which alone is read.

    Args:
        team: A stacked or a controlled team.
        path: A folder.

    Raises:
        InputError: For other teams.

    Example:
        >>> import tempfile
        >>> from graphsnd.teams import CategoricalHead
        >>> network = StackedMLP.create((5,), (18, 64, 4), generator=torch.Generator().manual_seed(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(StackedTeam(network, CategoricalHead(4), about={"seed": 0}), folder)
        ...     Team.load(folder)
        StackedTeam(agents=5, observation_features=18)
    """
    description, folder = team._describe(), Path(path)
    if description is None:
        raise InputError("team", "to be a StackedTeam to be saved", type(team).__name__, "Save its modules yourself.")
    folder.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "version": VERSION, "agents": team.agents, **description}
    about |= {} if team._names is None else {"names": list(team._names)}
    text = json.dumps(about, indent=2, allow_nan=False)
    tensors = {name: value.contiguous() for name, value in team._modules().state_dict().items()}
    write_whole(folder / TENSORS, serialise(tensors, metadata={"team": text}))
    write_whole(folder / DESCRIPTION, text + "\n")


def load(path: str | os.PathLike[str], *, device: torch.device | str = "cpu") -> Team:
    """Read the team in the folder ``path``, its weights mapped into memory; nothing is unpickled.

    Args:
        path: A folder, or one of the two files in it.
        device: Device of the weights.

    Raises:
        InputError: When a file is missing, damaged, of another version, or the tensors do not fit.
    """
    folder = Path(path).parent if Path(path).name in (TENSORS, DESCRIPTION) else Path(path)
    file, place = folder / TENSORS, str(check_device(device))
    if not file.is_file():
        raise InputError("path", f"to hold {TENSORS}", f"no file {file}", "For state dicts: policy=make.")
    check_size(file, file.stat().st_size)
    with explain_read_errors(file):
        with safe_open(file, framework="pt", device=place) as opened:
            description = parse_json((opened.metadata() or {}).get("team", "null"))
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
        known = {key: description[key] for key in ("format", "version")}
    if known != {"format": FORMAT, "version": VERSION}:
        fix = "Read it with the version of graphsnd that wrote it."
        raise InputError("path", f"of {FORMAT}, version {VERSION}", f"{known} in {file}", fix)
    return _build_team(description, tensors, file)


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
        entry: Key of the policy's tensors, ``"actor"``, for files that hold several dicts.
        device: Device of the policies.

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
        expected = f"with a complete description in {file}, and tensors that fit it"
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
