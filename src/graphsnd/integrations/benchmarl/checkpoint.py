"""Teams from the checkpoints of BenchMARL experiments."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from benchmarl.experiment import Experiment
from benchmarl.models.common import Model

from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.evaluation import GroupTeam, has_memory
from graphsnd.integrations.torchrl import ActorTeam
from graphsnd.teams import Team


def load_teams(
    checkpoint: str | os.PathLike[str], *, device: torch.device | str = "cpu", squashed: bool = True
) -> dict[str, Team]:
    """Return the policies of a BenchMARL checkpoint, one team for each group of agents.

    BenchMARL rebuilds the experiment from the ``config.pkl`` beside it, which is a pickle: load what you trust. Nothing
    is written to the experiment's folder.

    Args:
        checkpoint: ``<experiment>/checkpoints/checkpoint_<frames>.pt``.
        device: Where the policies go.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Returns:
        Teams by the name of their group. Those of recurrent and of graph networks answer to joint observations, see
        :class:`~graphsnd.integrations.benchmarl.evaluation.GroupTeam`.

    Raises:
        InputError: For policies that read a state of all agents, and a file that is not where BenchMARL saved it.

    Example:
        >>> teams = load_teams("ippo_navigation/checkpoints/checkpoint_60000.pt")  # doctest: +SKIP
        >>> print(graphsnd.measure(teams["agents"], observations))  # doctest: +SKIP
    """
    device, path = str(device), Path(checkpoint)
    if not path.is_file() or not (path.parent.parent / "config.pkl").is_file():
        expected = "to be a file in the folder of its experiment: <experiment>/checkpoints/checkpoint_<frames>.pt"
        raise InputError("checkpoint", expected, str(checkpoint), "config.pkl has to be in <experiment>.")
    with TemporaryDirectory() as folder:  # BenchMARL writes config.pkl again wherever it reloads
        patch = {"save_folder": folder, "loggers": [], "create_json": False, "restore_map_location": device}
        patch |= dict.fromkeys(("sampling_device", "train_device", "buffer_device"), device)
        experiment = Experiment.reload_from_file(os.fspath(checkpoint), experiment_patch=patch)
        experiment.close()
    teams = {}
    for group, names in experiment.group_map.items():
        # Without gradients a controlled model takes no evaluation for a training step.
        policy = experiment.algorithm.get_policy_for_loss(group).requires_grad_(False)
        model = next(module for module in policy.modules() if isinstance(module, Model))
        dims = {key: len(spec.shape) - 1 for key, spec in model.input_spec.items(True, True)}  # 3 for images
        team: Team = (
            GroupTeam(policy, group, len(names), squashed=squashed, feature_dims=dims)
            if has_memory(policy) or type(model).__name__ == "Gnn"
            else ActorTeam(policy, agents=len(names), squashed=squashed, feature_dims=dims)
        )
        teams[group] = team.with_names(names)
    return teams
