from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("hydra")
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.run import main

SMALL = [
    "experiment.max_n_iters=1", "experiment.max_n_frames=null", "experiment.evaluation=False",
    "experiment.on_policy_collected_frames_per_batch=20", "experiment.on_policy_n_envs_per_worker=4",
    "experiment.on_policy_n_minibatch_iters=1", "experiment.on_policy_minibatch_size=20", "model.num_cells=[8]",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_multirun_writes_one_folder_each(tmp_path: Path) -> None:
    argv = sys.argv
    # A colon followed by a number must come through Hydra's grammar as text.
    main(["-m", "task=vmas/dispersion", "model.target=0.1,null", "model.design=bernoulli:0.1", *SMALL])
    assert sys.argv is argv
    audits = sorted(tmp_path.glob("multirun/*/*/*/**/diversity_agents_audit.csv"))
    assert len(audits) == 2
    losses = list(tmp_path.rglob("train_agents_loss_action_space.csv"))
    assert not losses


def test_the_action_space_loss_is_an_option(tmp_path: Path) -> None:
    main(["model.target=0.1", "action_space_loss=3e-5", *SMALL])
    assert len(list(tmp_path.rglob("train_agents_loss_action_space.csv"))) == 1


def test_configurations_are_composed_without_running(capsys) -> None:
    main(["task=vmas/balance", "algorithm=maddpg", "model.target=0.5", "--cfg", "job"])
    shown = capsys.readouterr().out
    assert "loss_function: l2" in shown
    assert "package_mass" in shown
    assert "render: false" in shown


@pytest.mark.parametrize(
    ("argv", "match"),
    [
        ([], "model.target"),
        (["model.target=0.1", "model.design=bernouli:0.1"], "bernoulli:0.1"),
        (["model=layers/mlp"], "DiCoModelConfig"),
    ],
)
def test_bad_configurations_are_input_errors(argv: list[str], match: str) -> None:
    with pytest.raises(InputError, match=match):
        main([*argv, *(each for each in SMALL if argv != ["model=layers/mlp"] or "model" not in each)])
