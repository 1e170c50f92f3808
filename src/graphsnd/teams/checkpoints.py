"""Teams of checkpoints: a state dict for each agent, loaded into modules that the caller makes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from graphsnd.arguments import checked
from graphsnd.errors import InputError, describe
from graphsnd.teams.evaluation import as_team
from graphsnd.teams.team import Team
from graphsnd.teams.tensors import Limit, read_state_dict

ENDINGS = (".pt", ".pth", ".safetensors")


@checked
def load_policies(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    policy: Callable[[], nn.Module],
    *,
    entry: str | None = None,
    device: torch.device | str = "cpu",
    max_bytes: int = 2**33,
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
    limit = Limit(files[0], max_bytes)
    return as_team([_read(file, policy, entry, limit).to(device) for file in files]).with_names(names)


def _read(file: Path, policy: Callable[[], nn.Module], entry: str | None, limit: Limit) -> nn.Module:
    limit.path = file
    module = None if isinstance(policy, nn.Module) else policy()
    if not isinstance(module, nn.Module):
        got = describe(module or policy)
        raise InputError("policy", "to make a torch.nn.Module", got, "Pass a function: policy=lambda: Policy().")
    tensors = read_state_dict(file, limit, entry)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:  # of torch, which names all that does not fit, over many lines
        said, fix = " ".join(str(error).split())[:300].rstrip("."), "It must make the module that was saved."
        raise InputError("policy", f"to fit {file.name}", said, fix) from None
    return module
