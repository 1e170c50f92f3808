from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarl.algorithms import IppoConfig, QmixConfig
from benchmarl.environments import VmasTask
from benchmarl.experiment import Callback
from benchmarl.models import CnnConfig, GruConfig, LstmConfig, MlpConfig

import graphsnd as gs
from graphsnd.integrations.benchmarl import DiCoModelConfig, DiversityCallback, load_teams

from .test_evaluation import CNN, RNN, CaptionsClass, Loop, gaussian, gnn, graph_conv, gru, lstm, pictures

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
        (IppoConfig, CnnConfig(**CNN), {"share_policy_params": False, "task": pictures(CaptionsClass)}),
    ],
    ids=["ippo", "qmix", "dico", "cnn", "several keys"],
)
def test_a_checkpoint_is_a_team(algorithm, model, options, experiment, tmp_path: Path) -> None:
    diversity, keep = DiversityCallback(), Keep()
    run = experiment(algorithm, model, callbacks=[diversity, keep], checkpoint_at_end=True, **options)
    run.run()
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    (team,) = load_teams(path).values()
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    several = "picture" in keep.batch["agents"].keys()  # noqa: SIM118
    assert len(team.observation_keys) == 1 + several
    seen = keep.batch if several else keep.batch["agents", "observation"]
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


@pytest.mark.parametrize(
    ("model", "answer"),
    [(lambda: GruConfig(**RNN), gru), (lambda: LstmConfig(**RNN), lstm), (gnn, graph_conv)],
    ids=["gru", "lstm", "gnn"],
)
def test_a_checkpoint_of_agents_that_remember_or_communicate(model, answer, experiment, tmp_path: Path) -> None:
    loop, keep = Loop(answer, gaussian), Keep()
    options = {"share_policy_params": False, "critic_model": None if answer is not graph_conv else PLAIN}
    experiment(IppoConfig, model(), callbacks=[loop, keep], checkpoint_at_end=True, **options).run()
    loop.on_batch_collected(keep.batch)  # with the policies as they are now
    (path,) = tmp_path.rglob("checkpoint_*.pt")
    (team,) = load_teams(path, squashed=False).values()
    seen = keep.batch["agents", "observation"]  # [environments, time, agents, features]
    for given in (seen, keep.batch):
        behavior = team.evaluate(given)
        assert behavior.batch_shape == seen.shape[:-1]
        for estimate in (gs.measure(behavior), gs.measure(team, given)):
            assert estimate.value == pytest.approx(loop.values[-1], rel=1e-5)
    assert behavior.names == tuple(f"agent_{agent}" for agent in range(4))
    torch.testing.assert_close(gs.pairwise(team.evaluate(seen[None])), gs.pairwise(behavior))
    refused = [
        lambda: gs.measure(team, seen[..., 0, :]),
        lambda: team.evaluate(seen[..., 0, :]),
        lambda: team.evaluate(seen[0, 0]),
    ]
    refused.append(lambda: team.partial(seen[0, :, 0], torch.zeros(10, 1, dtype=torch.int64)))
    for use in refused:
        with pytest.raises(gs.InputError, match=r"4 agents, features.*measure\(team, rollout\)"):
            use()


@pytest.mark.parametrize("there", [False, True])
def test_a_file_away_from_its_experiment_is_refused(there: bool, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "checkpoint_60.pt"
    path.parent.mkdir()
    (path if there else tmp_path / "config.pkl").touch()  # one of the two that it takes
    with pytest.raises(gs.InputError, match=r"`checkpoint` .*<experiment>/checkpoints/.*config.pkl"):
        load_teams(path)
