from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarl.algorithms import IppoConfig, QmixConfig
from benchmarl.environments import VmasTask
from benchmarl.experiment import Callback
from benchmarl.models import CnnConfig, MlpConfig

import graphsnd as gs
from graphsnd.integrations.benchmarl import DiCoModelConfig, DiversityCallback, load_teams

from .test_evaluation import CNN, pictures

PLAIN = MlpConfig(num_cells=[8], layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh)


class Keep(Callback):
    def on_batch_collected(self, batch) -> None:
        self.batch = batch.clone()


@pytest.mark.parametrize(
    ("algorithm", "model", "options"),
    [
        (IppoConfig, PLAIN, {"share_policy_params": False}),
        (QmixConfig, PLAIN, {"share_policy_params": False, "prefer_continuous_actions": False}),
        (IppoConfig, DiCoModelConfig(target=0.3, num_cells=(8,)), {}),
        (IppoConfig, CnnConfig(**CNN), {"share_policy_params": False, "task": pictures()}),
    ],
    ids=["ippo", "qmix", "dico", "cnn"],
)
def test_a_checkpoint_is_a_team(algorithm, model, options, experiment, tmp_path: Path) -> None:
    diversity, keep = DiversityCallback(), Keep()
    run = experiment(algorithm, model, callbacks=[diversity, keep], checkpoint_at_end=True, **options)
    run.run()
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    (team,) = load_teams(path).values()
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    seen = keep.batch["agents", "observation"]
    # The policies as they are now, through the adapter of the callback.
    expected = diversity.measure(keep.batch, "agents", run.group_map["agents"])["snd"]
    assert gs.measure(team, seen).value == pytest.approx(expected, rel=1e-5)
    assert gs.measure(team, seen, design="agents:2", rel_tol=0.5).agents == 4


def test_a_rollout_of_several_groups_is_measured_in_one_call(experiment, tmp_path: Path) -> None:
    diversity, keep = DiversityCallback(), Keep()
    options = {**VmasTask.SIMPLE_TAG.get_from_yaml().config, "num_good_agents": 2, "num_adversaries": 3}
    task = VmasTask.SIMPLE_TAG.get_task(options)
    run = experiment(
        IppoConfig, PLAIN, callbacks=[diversity, keep], task=task, share_policy_params=False, checkpoint_at_end=True
    )
    run.run()
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    teams = load_teams(path)
    result = gs.measure(teams, keep.batch)
    for group, names in run.group_map.items():
        expected = diversity.measure(keep.batch, group, names)["snd"]
        assert result[group].value == pytest.approx(expected, rel=1e-5)
        assert result[group].names == tuple(names)
    assert result.value == pytest.approx((3 * result["adversary"].value + result["agent"].value) / 4)
    apart = {group: keep.batch[group, "observation"] for group in teams}
    assert gs.measure(teams, apart).value == pytest.approx(result.value, rel=1e-6)
