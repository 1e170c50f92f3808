"""What teams, heads, networks and files of teams refuse, by the name of the argument."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributions as D
from torch import nn

import graphsnd as gs
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam, as_team

from .conftest import FEATURES, TEAMS
from .test_arrays import DIMS, looking, scenes

GENERATOR = torch.Generator().manual_seed(0)
LINEAR, ROWS = nn.Linear(FEATURES, 2), torch.randn(30, FEATURES, generator=GENERATOR)
NETWORK = StackedMLP.create((4,), (6, 3), generator=GENERATOR)
BEHAVIOR = gs.Deterministic(torch.zeros(2, 4, 3, 2))  # 8 observations
PART = gs.Deterministic(torch.zeros(2, 3, 1))


def weighted(weight: float) -> Any:
    return lambda o: gs.Joint([gs.Categorical(logits=o), gs.Deterministic(o)], [1.0, weight])


def create(**options: Any) -> StackedMLP:
    return StackedMLP.create(**{"batch": (2,), "sizes": (5, 2), "generator": GENERATOR, **options})


def partial(agents: Any) -> Any:
    return as_team([LINEAR] * 7).partial(ROWS[:3], agents)


def draw(policies: Any) -> Any:
    return gs.draw_samples(policies, torch.zeros(4, 2))


# One argument, the callable that is given it, and values that it refuses.
VALUES: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("team", lambda team: gs.evaluate(team, ROWS.view(6, 5, FEATURES)), [
        [], [LINEAR, nn.Linear(FEATURES, 3)], [LINEAR, lambda o: {"loc": LINEAR(o), "scale": 1.0}],
        [lambda o: (LINEAR(o), 1.0)] * 2,
        [lambda o: LINEAR(o).unsqueeze(1)] * 2, [lambda o: {"loc": o}] * 2, [lambda o: [o, o]] * 2, ["policy"],
        {"a": "policy"}, 7, None, LINEAR, [lambda o: LINEAR(o).mean(0)] * 2, [lambda o: o[:-1]] * 2,
        [lambda o: o[:, 0]] * 2, [lambda o: o.argmax(-1)] * 2, [lambda o: "left"] * 2,
        [weighted(2.0), weighted(3.0)], [weighted(2.0), lambda o: gs.Categorical(logits=o)],
        [nn.Linear(FEATURES, 2, device="meta")] * 2, nn.Linear(FEATURES, 2, device="meta"),
        [nn.LSTM(FEATURES, 2)] * 2, [lambda o: (o, None)] * 2, [lambda o: o + torch.randn_like(o)] * 2,
    ]),
    ("team", lambda agents: gs.evaluate(lambda o: torch.zeros(30, 3, 2), ROWS, agents=agents), [5]),
    ("team", lambda policy: gs.evaluate(policy, torch.randn(4, 3)), [lambda o: torch.ones(4, len(o), 2)]),
    ("team", lambda answer: as_team([torch.sin, answer]).partial(torch.ones(5, 4), torch.tensor([[0, 1]] * 5)), [
        lambda o: o[:-1], lambda o: o.unsqueeze(1), lambda o: {"loc": o, "scale": 1.0},
    ]),
    ("actions", lambda policy: gs.evaluate([LINEAR, policy], ROWS), [lambda o: LINEAR(o) * torch.nan]),
    ("actions", lambda policy: as_team([policy]).partial(ROWS, torch.zeros(30, 1).long()), [lambda o: o * torch.nan]),
    ("observations", lambda given: gs.evaluate([LINEAR, LINEAR], given), [
        [[0.0, 1.0]], None, torch.tensor(1.0), np.array(["a"]), torch.zeros(0, FEATURES), torch.zeros(3, FEATURES + 1),
        np.zeros((30, FEATURES)),
    ]),
    ("observations", lambda given: StackedTeam(NETWORK, CategoricalHead(3)).evaluate(given), [torch.zeros(3, 5)]),
    ("agents", partial, [
        torch.zeros(3).long(), torch.zeros(3, 0).long(), torch.zeros(3, 2), [[0]] * 3, torch.zeros(2, 2).long(),
        torch.full((3, 1), 7), torch.full((3, 1), -1),
    ]),
    ("observations", lambda given: as_team([LINEAR] * 2).partial(given, torch.zeros(len(given), 1).long()), [
        torch.zeros(3, 2, FEATURES), torch.zeros(0, FEATURES),
    ]),
    ("observations", lambda given: gs.measure(as_team(looking(), feature_dims=DIMS), given), [
        scenes(30)["speed"], {"speed": scenes(30)["speed"]}, scenes(30) | {"kind": torch.zeros(2).long()},
    ]),
    ("observations['kind']", lambda kind: gs.evaluate(looking(), scenes(30) | {"kind": kind}, feature_dims=DIMS), [
        torch.full((30,), 2**24 + 1), "here",
    ]),
    ("observations", lambda given: gs.measure(looking(), given), [scenes(30)]),  # parts are not taken for agents
    ("sizes", lambda sizes: create(sizes=sizes), [(5,), (5, 0, 2)]),
    ("sizes", lambda batch: create(batch=batch), [(0,)]),
    ("activation", lambda activation: create(activation=activation), ["gelu"]),
    ("init", lambda init: create(init=init), ["zeros"]),
    ("weights", lambda last: StackedMLP([torch.zeros(2, 3, 4), last], [torch.zeros(2, 1, 4), torch.zeros(2, 1, 1)]), [
        torch.zeros(2, 3, 1),
    ]),
    ("biases", lambda biases: StackedMLP([torch.zeros(2, 3, 4)], biases), [[torch.zeros(2, 4)]]),
    ("network", lambda network: StackedTeam(network, CategoricalHead(4)), [NETWORK, create(batch=(2, 4))]),
    ("head", lambda head: StackedTeam(NETWORK, head), [GaussianHead(3)]),
    ("mean", lambda mean: GaussianHead(2, mean=mean), ["relu"]),
    ("scale", lambda scale: GaussianHead(2, scale=scale), ["shared"]),
    ("actions", CategoricalHead, [0]),
    ("distance", lambda distance: StackedTeam(NETWORK, CategoricalHead(3)).bound(distance), [gs.Wasserstein()]),
    ("distance", lambda distance: StackedTeam(NETWORK, GaussianHead(3, batch=(4,))).bound(distance), [
        gs.TotalVariation(),
    ]),
    ("policies", draw, [
        [lambda o: ["text"]], [lambda o: o.argmax(-1)], [lambda o: D.Normal(o, 1.0)], [lambda o: o, lambda o: o[:, :1]],
        [],
    ]),
    ("observations", draw, [[nn.Linear(7, 2)]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "value"), [(name, call, v) for name, call, vs in VALUES for v in vs])
def test_bad_inputs_are_named(name: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(gs.InputError) as error:
        call(value)
    assert error.value.name == name


NAMES = ("scout", "guard", "medic")


def network(features: int = FEATURES, *, broken: bool = False) -> nn.Module:
    module = nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, 2))
    if broken:
        module[0].weight.data[0, 0] = torch.nan
    return module


def wrapped(answer: Callable[..., Any]) -> dict[str, Any]:
    """Functions around modules, the second of which puts out NaN."""
    modules = [network(broken=name == "guard") for name in NAMES]
    return {name: lambda o, m=m: answer(m(o)) for name, m in zip(NAMES, modules, strict=True)}


def diverged(kind: str) -> Any:
    """A team whose second agent puts out NaN."""
    plain = [network(broken=name == "guard") for name in NAMES]
    stack = StackedMLP.create((3,), (FEATURES, 4), generator=GENERATOR)
    stack.weights[0].data[1, 0, 0] = torch.nan
    identity = torch.eye(3).index_fill(0, torch.tensor([1]), torch.nan)
    return {
        "modules": dict(zip(NAMES, plain, strict=True)),
        "functions": wrapped(lambda out: out),
        "normals": wrapped(lambda out: D.Normal(out, 1.0)),
        "categoricals": wrapped(lambda out: D.Categorical(logits=out)),
        "behaviours": wrapped(lambda out: gs.Categorical(logits=out)),
        "stacked": StackedTeam(stack, CategoricalHead(4)).with_names(NAMES),
        "shared": gs.Team.shared(network(), NAMES, columns=[0, 1, 2], identity=identity),
    }[kind]


@pytest.mark.parametrize("design", [None, "agents:2"])
@pytest.mark.parametrize("rows", [ROWS, ROWS.view(6, 5, FEATURES)])
@pytest.mark.parametrize("kind", ["modules", "functions", "normals", "categoricals", "behaviours", "stacked", "shared"])
def test_the_agent_whose_output_is_nan_is_named(kind: str, rows: torch.Tensor, design: str | None) -> None:
    with pytest.raises(gs.InputError, match=r"of agent guard|of policy guard|from policy guard") as error:
        gs.measure(diverged(kind), rows, design=design)
    assert not any(name in str(error.value) for name in ("scout", "medic"))
    joint = as_team(lambda o: torch.stack([o, o.where(torch.tensor(0) == 1, torch.nan), o], -2))
    with pytest.raises(gs.InputError, match=r"of agent 1\."):
        joint.evaluate(rows)


def test_nan_in_observations_is_found_before_a_policy_is_asked() -> None:
    asked: list[int] = []
    policies = [lambda o: asked.append(1) or o] * 2
    rows = ROWS.clone()
    rows[7, 2] = torch.nan
    team = as_team(policies)
    for call in (
        lambda: gs.measure(policies, rows), lambda: gs.evaluate(policies, rows),
        lambda: gs.measure(policies, rows, design="agents:2"), lambda: team.partial(rows, torch.zeros(30, 1).long()),
        lambda: gs.measure(policies, {"a": rows, "b": rows}),
    ):  # fmt: skip
        with pytest.raises(gs.InputError) as error:
            call()
        assert error.value.name == "observations"
    with pytest.raises(gs.InputError, match=r"the first at index \(7, 2\)"):
        gs.evaluate(policies, rows)
    assert not asked
    rows[7, 2] = torch.inf  # a policy may know what to do with it
    assert gs.measure([lambda o: o.clamp(-1, 1), lambda o: o.clamp(-2, 2)], rows).value > 0


@pytest.mark.parametrize("design", [None, "agents:2"])
def test_another_width_is_named_with_its_policy(design: str | None) -> None:
    rows, net = torch.randn(30, FEATURES + 1), network()
    teams: list[tuple[str, Any]] = [
        ("policy guard", {"scout": network(FEATURES + 1), "guard": network(), "medic": network(FEATURES + 1)}),
        ("policy 0", [network() for _ in range(3)]),
        ("policy 0", [lambda o: D.Normal(net(o), 1.0) for _ in range(3)]),
        ("the stacked module", lambda o: net(o).unsqueeze(-2).expand(*o.shape[:-1], 3, 2)),
        ("the shared network", gs.Team.shared(network(), 3, columns=slice(3))),
    ]
    for who, team in teams:
        said = rf"`observations` with {FEATURES} features, as {who} takes them, got {FEATURES + 1}\."
        with pytest.raises(gs.InputError, match=said):
            gs.measure(team, rows, design=design)


class Recurrent(nn.Module):
    """Takes a hidden state too, as EPyMARL's agents do."""

    def forward(self, rows: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """The answer."""
        return rows + memory


@pytest.mark.parametrize(
    ("team", "said"),
    [
        ([Recurrent()] * 2, "lambda o: agent(o, state)[0]"),
        (gs.Team.shared(Recurrent(), 2, columns=[0, 1]), "lambda o: agent(o, state)[0]"),
        ([nn.Module()] * 2, "such as agent.actor"),
        (LINEAR, "One network for all: Team.shared"),
        (gs.Team.shared(lambda o, id: o + id, 2, argument="id"), "with a row for each observation and agent"),
        (gs.Team.shared(LINEAR, 2, columns=3), "such as torch.arange(agents) for one column"),
    ],
)
def test_the_fix_is_one_that_helps(team: Any, said: str) -> None:
    with pytest.raises(gs.InputError) as error:
        gs.measure(team, ROWS)
    assert said in str(error.value)
    assert "Images" not in str(error.value)


FILES: list[tuple[str, Callable[[Path, Any], Any], list[Any]]] = [
    ("clusters", lambda folder, given: gs.save_behavior(BEHAVIOR, folder / "a.npz", clusters=given), [
        torch.zeros(0).long(), torch.zeros(7).long(), torch.zeros(9).long(), torch.zeros(4, 2).long(),
    ]),
    ("path", lambda folder, name: gs.save_behavior(PART, folder / name), ["team.pt", "team.txt"]),
    ("behavior", lambda folder, behavior: gs.save_behavior(behavior, folder / "a.npz"), [gs.Joint([PART, PART])]),
    ("team", lambda folder, team: team.save(folder), [
        make(GENERATOR) for kind, make in TEAMS.items() if "stacked" not in kind
    ]),
    ("path", lambda folder, path: gs.Team.load(folder / path, policy=lambda: nn.Linear(2, 2)), ["none", "a\0b"]),
    ("path", lambda folder, path: gs.Team.load(folder / path), ["none"]),
    ("path", lambda folder, files: gs.Team.load(files, policy=lambda: nn.Linear(2, 2)), [[]]),
    ("policy", lambda folder, policy: gs.Team.load([folder / "a.pt"], policy=policy), [
        3, dict, nn.Linear(2, 2), lambda: nn.Linear(3, 2),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "value"), [(name, call, v) for name, call, vs in FILES for v in vs])
def test_bad_files_are_named(name: str, call: Callable[[Path, Any], Any], value: Any, tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "a.pt")
    with pytest.raises(gs.InputError) as error:
        call(tmp_path, value)
    assert error.value.name == name
    assert [file.name for file in tmp_path.iterdir()] == ["a.pt"]
