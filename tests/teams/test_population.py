"""Policies on disk: the same numbers as in memory, read where they are asked for."""

from __future__ import annotations

import json
import os
import pickle
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

import graphsnd as gs
from graphsnd.cli.app import app
from graphsnd.errors import InputError
from graphsnd.teams import (
    CategoricalHead,
    DeterministicHead,
    GaussianHead,
    StackedMLP,
    StackedTeam,
    TanhNormalHead,
    Team,
    from_vectors,
    population,
    save_population,
)

HEADS = {
    "independent": lambda n: GaussianHead(2, batch=(n,)),
    "network": lambda n: GaussianHead(2, scale="network"),
    "categorical": lambda n: CategoricalHead(5),
    "tanh-normal": lambda n: TanhNormalHead(2),
    "deterministic": lambda n: DeterministicHead(2, mean="tanh"),
}
SIZES = (30, 1, 50)


def make_team(n: int, kind: str = "independent", seed: int = 0, activation: str = "tanh") -> StackedTeam:
    generator = torch.Generator().manual_seed(seed + n)
    head = HEADS[kind](n)
    network = StackedMLP.create((n,), (6, 16, head.outputs), generator=generator, init="linear", activation=activation)
    if kind == "independent":
        head.log_std.data.uniform_(-1, 1, generator=generator)
    return StackedTeam(network, head)


def whole(teams: list[StackedTeam]) -> StackedTeam:
    """All policies in memory, put together by hand."""
    layers = [[torch.cat(parts) for parts in zip(*(getattr(t.network, kind) for t in teams), strict=True)]
              for kind in ("weights", "biases")]  # fmt: skip
    head = teams[0].head
    if head.batch is not None:
        head = GaussianHead(2, batch=(sum(t.agents for t in teams),))
        head.log_std.data = torch.cat([t.head.log_std for t in teams])
    return StackedTeam(StackedMLP(*layers, activation=teams[0].network.activation), head)


@pytest.mark.parametrize("kind", HEADS)
def test_a_population_answers_as_the_team_in_memory(kind, tmp_path, monkeypatch) -> None:
    teams = [make_team(n, kind) for n in SIZES]
    save_population(teams, tmp_path / "p")
    held, memory = Team.load(tmp_path / "p"), whole(teams)
    monkeypatch.setattr(population, "AT_ONCE", 4000)  # a few policies at a time
    generator = torch.Generator().manual_seed(1)
    observations = torch.randn(40, 6, generator=generator)
    agents = torch.randint(81, (40, 3), generator=generator)
    agents[0] = torch.tensor([0, 30, 80])  # first, the only one of its shard, last
    mine, theirs = held.partial(observations, agents), memory.partial(observations, agents)
    for name in vars(theirs):
        if isinstance(getattr(theirs, name), torch.Tensor):
            torch.testing.assert_close(getattr(mine, name), getattr(theirs, name), rtol=1e-5, atol=1e-6)
    assert float(gs.measure(held, observations)) == pytest.approx(float(gs.measure(memory, observations)), rel=1e-6)


@pytest.mark.parametrize("kind", HEADS)
def test_the_index_bounds_all_distances_as_the_weights_do(kind, tmp_path) -> None:
    teams = [make_team(n, kind) for n in SIZES]
    save_population(teams, tmp_path / "p")
    distance = gs.TotalVariation() if kind == "categorical" else gs.Wasserstein()
    assert Team.load(tmp_path / "p").bound(distance) == pytest.approx(whole(teams).bound(distance), rel=1e-9)


def test_an_estimate_is_that_of_memory_and_guaranteed(tmp_path) -> None:
    teams = [make_team(n) for n in (400, 200)]
    save_population(iter(teams), tmp_path / "p")
    observations = torch.randn(500, 6, generator=torch.Generator().manual_seed(2))
    held = gs.measure(Team.load(tmp_path / "p"), observations, rel_tol=0.05)
    memory = gs.measure(whole(teams), observations, rel_tol=0.05)
    assert held.guaranteed
    assert held.design == memory.design
    assert held.value == pytest.approx(memory.value, rel=1e-6)
    low, high = held.interval
    assert low <= float(gs.measure(whole(teams), observations)) <= high


def test_without_a_finite_range_the_interval_is_asymptotic(tmp_path) -> None:
    generator = torch.Generator().manual_seed(0)
    network = StackedMLP.create((600,), (6, 16, 2), generator=generator, activation="relu")
    save_population([StackedTeam(network, DeterministicHead(2))], tmp_path / "p")
    held = Team.load(tmp_path / "p")
    assert held.bound(gs.Wasserstein()) is None
    observations = torch.randn(300, 6, generator=generator)
    assert not gs.measure(held, observations, design="agents:4").guaranteed
    assert gs.measure(held, observations, design="agents:4", d_max=100.0).guaranteed


def test_only_shards_that_are_asked_for_are_read(tmp_path) -> None:
    save_population([make_team(n) for n in SIZES], tmp_path / "p")
    (tmp_path / "p" / "shard-00002" / "team.safetensors").unlink()
    held = Team.load(tmp_path / "p")
    asked = torch.tensor([[0, 30]])
    assert held.partial(torch.zeros(1, 6), asked).agents == 2
    with pytest.raises(InputError, match=r"team\.safetensors"):
        held.partial(torch.zeros(1, 6), asked + 50)


def test_too_many_to_evaluate_all(tmp_path, monkeypatch) -> None:
    save_population([make_team(n) for n in SIZES], tmp_path / "p")
    monkeypatch.setattr(population, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match="rel_tol"):
        gs.evaluate(Team.load(tmp_path / "p"), torch.zeros(4, 6))


def damage(index: dict, what: str) -> dict:
    changes = {
        "format": {"format": "something"}, "version": {"version": 2}, "no shards": {"shards": []},
        "sizes": {"shards": [0, 1, 2]}, "more": {"shards": [31, 1, 50]}, "boxes": {"boxes": [[1.0]]},
        "text": {"shards": "many"},
    }  # fmt: skip
    return index | changes[what]


@pytest.mark.parametrize("what", ["format", "version", "no shards", "sizes", "more", "boxes", "text"])
def test_a_damaged_index_is_refused(what, tmp_path) -> None:
    save_population([make_team(n) for n in SIZES], tmp_path / "p")
    file = tmp_path / "p" / population.INDEX
    file.write_text(json.dumps(damage(json.loads(file.read_text()), what)))
    with pytest.raises(InputError):
        Team.load(tmp_path / "p")


def test_populations_are_of_one_architecture_in_a_folder_of_their_own(tmp_path) -> None:
    with pytest.raises(InputError, match="one architecture"):
        save_population([make_team(3), make_team(3, "categorical")], tmp_path / "p")
    assert not (tmp_path / "p" / population.INDEX).exists()
    with pytest.raises(InputError, match="empty folder"):
        save_population([make_team(3)], tmp_path / "p")
    with pytest.raises(InputError, match="at least one"):
        save_population([], tmp_path / "q")
    with pytest.raises(InputError, match="StackedTeams"):
        save_population([torch.tanh], tmp_path / "r")
    with pytest.raises(InputError, match=r"several StackedTeams.*\[team\]"):
        save_population(make_team(3), tmp_path / "s")


def modules(count: int) -> list[nn.Sequential]:
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(count)]


def test_vectors_are_the_parameters_of_linear_layers() -> None:
    policies = modules(5)
    vectors = torch.stack([nn.utils.parameters_to_vector(one.parameters()) for one in policies]).detach()
    observations = torch.randn(16, 6)
    team = from_vectors(vectors, (6, 8, 2), DeterministicHead(2))
    with torch.no_grad():
        expected = torch.stack([one(observations) for one in policies], dim=1)
    torch.testing.assert_close(team.evaluate(observations).actions, expected)
    scales = torch.linspace(-1, 1, 10).view(5, 2)
    team = from_vectors(torch.cat([vectors, scales], dim=1), (6, 8, 2), GaussianHead(2, batch=(5,), mean="identity"))
    torch.testing.assert_close(team.evaluate(observations).scale, scales.exp().expand(16, -1, -1))
    with pytest.raises(InputError, match="74"):
        from_vectors(vectors[:, 1:], (6, 8, 2), DeterministicHead(2))


def test_an_archive_of_pyribs_is_a_team() -> None:
    archives = pytest.importorskip("ribs.archives")
    policies = modules(40)
    vectors = torch.stack([nn.utils.parameters_to_vector(one.parameters()) for one in policies]).detach().numpy()
    archive = archives.GridArchive(solution_dim=vectors.shape[1], dims=[5, 5], ranges=[(0, 1), (0, 1)])
    measures = torch.rand(40, 2, generator=torch.Generator().manual_seed(0)).numpy()
    archive.add(vectors, list(range(40)), measures)
    team = from_vectors(archive, (6, 8, 2), DeterministicHead(2))
    assert team.agents == len(archive)
    assert team.names == tuple(map(str, archive.data("index")))
    observations = torch.randn(16, 6)
    kept = from_vectors(archive.data("solution"), (6, 8, 2), DeterministicHead(2))
    assert float(gs.measure(team, observations)) == float(gs.measure(kept, observations)) > 0


def test_files_are_read_when_their_agents_are_asked_for(tmp_path) -> None:
    policies = modules(60)
    for at, one in enumerate(policies):
        save_file(one.state_dict(), tmp_path / f"{at}.safetensors")
    (tmp_path / "60.safetensors").write_bytes(b"damaged")
    team = Team.load(tmp_path, policy=lambda: modules(1)[0], lazy=True)
    assert team.agents == 61
    assert team.names[-1] == "60"
    observations = torch.randn(16, 6, generator=torch.Generator().manual_seed(1))
    agents = torch.randint(60, (16, 3), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        answers = torch.stack([one(observations) for one in policies], dim=1)
    expected = answers.gather(1, agents.unsqueeze(2).expand(-1, -1, 2))
    torch.testing.assert_close(team.partial(observations, agents).actions, expected)
    with pytest.raises(InputError, match=r"60\.safetensors"):
        team.partial(observations[:1], torch.tensor([[0, 60]]))


ROWS = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))


def make() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def networks(count: int = 3) -> list[nn.Module]:
    torch.manual_seed(1)
    made = [make() for _ in range(count)]
    for network in made:
        network(torch.randn(50, 4))  # statistics of its own
    return [network.eval() for network in made]


def by_hand(team: list[nn.Module]) -> float:
    with torch.no_grad():
        answers = [network(ROWS).double() for network in team]
    return float(np.mean([float((a - b).norm(dim=-1).mean()) for a, b in combinations(answers, 2)]))


def write(network: nn.Module, path: Path, kind: str) -> None:
    state = network.state_dict()
    if kind == "safetensors":
        save_file(state, path)
    else:
        optimiser = torch.optim.Adam(network.parameters())
        contents: dict[str, Any] = {
            "pt": state,
            "nested": {"epoch": 3, "model": state, "optimizer": optimiser.state_dict(), "lr": torch.tensor(0.1)},
            "several": {"actor": state, "critic": nn.Linear(4, 1).state_dict()},
        }
        contents["nested"].pop("lr")
        torch.save(contents[kind], path)


@pytest.mark.parametrize("kind", ["pt", "safetensors", "nested", "several"])
def test_a_folder_is_a_team(kind: str, tmp_path: Path) -> None:
    team = networks(11)
    for index, network in enumerate(team):
        write(network, tmp_path / f"agent_{index}.{'safetensors' if kind == 'safetensors' else 'pt'}", kind)
    (tmp_path / "notes.txt").write_text("not a checkpoint")
    loaded = Team.load(tmp_path, policy=make, entry="actor" if kind == "several" else None)
    assert loaded.names == tuple(f"agent_{index}" for index in range(11))  # 2 before 10
    assert gs.measure(loaded, ROWS).value == pytest.approx(by_hand(team), rel=1e-5)
    if kind == "several":
        with pytest.raises(gs.InputError, match="actor, critic"):
            Team.load(tmp_path, policy=make)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodule_for_a_test.py").write_text(
        "from torch import nn\n\n\ndef make():\n"
        "    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))\n"
    )
    team = networks()
    for folder, network in zip("abc", team, strict=True):
        (tmp_path / folder).mkdir()
        write(network, tmp_path / folder / "policy.pt", "pt")
    np.savez("obs.npz", observations=ROWS.numpy(), clusters=np.arange(30) // 5)
    files = [f"{folder}/policy.pt" for folder in "abc"]
    for policy in ("mymodule_for_a_test:make", "mymodule_for_a_test.py:make"):
        words = ["measure", *files, "--policy", policy, "--observations", "obs.npz", "--json"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["value"] == pytest.approx(by_hand(team), rel=1e-5)
    result = CliRunner().invoke(app, [*words[:-1], "--html", "page.html"])
    assert result.exit_code == 0, result.output
    assert "b/policy" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.pt", "b.pt"], "--policy"),
        (["a.pt", "--policy", "json:dumps"], "--observations"),
        (["a.pt", "--policy", "nowhere", "--observations", "obs.npz"], "module:function"),
        (["a.pt", "--policy", "no_such_module:make", "--observations", "obs.npz"], "no_such_module"),
        (["a.pt", "--policy", "json:nothing", "--observations", "obs.npz"], "json"),
        (["a.pt", "--policy", "torch.nn:Identity", "--observations", "obs.npz"], "0.bias"),
        (["gone.pt", "--policy", "torch.nn:Identity", "--observations", "obs.npz"], "gone.pt"),
        (["bad.pt", "--policy", "torch.nn:Identity", "--observations", "obs.npz"], "bad.pt"),
        (["a.pt", "--policy", "builtins:dict", "--observations", "obs.npz"], "torch.nn.Module"),
    ],
)
def test_what_the_command_refuses(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(networks(1)[0], tmp_path / "a.pt", "pt")
    write(networks(1)[0], tmp_path / "b.pt", "pt")
    (tmp_path / "bad.pt").write_bytes(b"no archive")
    np.savez("obs.npz", observations=ROWS.numpy())
    result = CliRunner().invoke(app, ["measure", *words])
    assert result.exit_code == 2
    assert message in result.output


def test_digits_that_are_no_numbers_do_not_sort(tmp_path: Path) -> None:
    for name in ("²10", "²9"):
        torch.save(nn.Linear(2, 2).state_dict(), tmp_path / f"{name}.pt")
    assert Team.load(tmp_path, policy=lambda: nn.Linear(2, 2)).names == ("²9", "²10")


def test_a_state_dict_that_torch_completes_is_read(tmp_path: Path) -> None:
    network = networks(1)[0]
    state = network.state_dict()
    del state["1.num_batches_tracked"]  # which torch did not have before 0.4.1
    torch.save(dict(state), tmp_path / "a.pt")
    team = Team.load(tmp_path, policy=make)
    assert torch.equal(team.evaluate(ROWS).actions[:, 0], network(ROWS))  # type: ignore[attr-defined]


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("touched",)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = networks(1)[0]
    torch.save({"model": network.state_dict(), "evil": Evil()}, "a.pt", pickle_module=pickle)
    team = Team.load(["a.pt"], policy=make)
    assert not Path("touched").exists()
    assert torch.equal(team.evaluate(ROWS).actions[:, 0], network(ROWS))  # type: ignore[attr-defined]
    with pytest.raises(gs.InputError, match="bytes too many"):
        Team.load(["a.pt"], policy=make, max_bytes=100)


@pytest.mark.parametrize(
    "given",
    [
        {"path": 3.0},
        {"path": [3]},
        {"path": []},
        {"path": "a\0b"},
        {"policy": 3},
        {"policy": dict},
        {"policy": nn.Linear(2, 2)},
    ],
)
def test_paths_and_policies_of_another_kind_are_refused(given: dict[str, Any], tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "a.pt")
    with pytest.raises(gs.InputError, match=next(iter(given))):
        Team.load(**{"path": tmp_path, "policy": lambda: nn.Linear(2, 2), **given})
