"""One network for all agents, against a float64 loop that writes the identity of each agent by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch import distributions as D

import graphsnd as gs
from graphsnd.integrations.probe import Probe
from graphsnd.teams.answers import tensors_of

ANSWERS: dict[str, tuple[Callable[[Tensor], Any], Callable[[Tensor], list[Tensor]]]] = {
    "action": (lambda out: out, lambda out: [out]),
    "normal": (lambda out: D.Normal(out, out.exp()), lambda out: [out, out.exp()]),
    "logits": (lambda out: D.Categorical(logits=out), lambda out: [out.softmax(-1)]),
    "behaviour": (lambda out: gs.Categorical(logits=out), lambda out: [out.softmax(-1)]),
    "parts": (
        lambda out: {"go": D.Categorical(logits=out), "say": D.Categorical(logits=-out)},
        lambda out: [out.softmax(-1), (-out).softmax(-1)],
    ),
}


class Network(nn.Module):
    """Two layers; told by a parameter, it adds an embedding of an integer, or reads the vector as further columns."""

    def __init__(self, features: int, told: int, answer: str, generator: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, 3)).double()
        self.embedding = nn.Embedding(max(told, 1), features).double()
        self.answer, self.told = ANSWERS[answer][0], told
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)

    def compute(self, rows: Tensor, told: Tensor | None = None) -> Tensor:
        """What the answer is made of."""
        if told is not None:
            rows = rows + self.embedding(told) if told.dtype == torch.int64 else torch.cat([rows, told], -1)
        return self.layers(rows)

    def forward(self, rows: Tensor, id: Tensor | None = None) -> Any:
        """The answer."""
        return self.answer(self.compute(rows, id))


class KeywordOnly(Network):
    """Told by a keyword."""

    def forward(self, rows: Tensor, *, id: Tensor) -> Any:  # type: ignore[override]
        """The answer."""
        return self.answer(self.compute(rows, id))


def random_case(seed: int) -> tuple[gs.Team, Callable[[Tensor, int], list[Tensor]], int]:
    """A team, what an agent answers to one observation by hand, and the features of an observation."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    agents, features = draw.randint(2, 6), draw.randint(7, 10)
    width, answer = draw.randint(1, 4), draw.choice(list(ANSWERS))
    identity = draw.choice([None, torch.randn(agents, width, generator=generator, dtype=torch.float64)])
    one_hot = torch.eye(agents, dtype=torch.float64)
    told = one_hot if identity is None else identity
    how = draw.choice(["slice", "list", "column", "keyword", "positional", "integers"])
    if how == "integers":
        told = identity = torch.arange(agents)
    if how == "column":
        told = identity = torch.randn(agents, generator=generator, dtype=torch.float64)
    if how in ("keyword", "positional", "integers"):
        kind = KeywordOnly if how == "keyword" else Network
        network = kind(features + (told.shape[1] if told.dim() > 1 else 0), agents, answer, generator)
        team = gs.Team.shared(network, agents, argument="id", identity=identity)
    else:
        network, long = Network(features, 0, answer, generator), told.shape[1] if told.dim() > 1 else 1
        columns = draw.choice([slice(-long, None), slice(1, 1 + long)])
        chosen = list(range(features))[columns]
        if how == "list":
            columns = chosen = draw.sample(range(features), long)
        team = gs.Team.shared(network, agents, columns=chosen[0] if how == "column" else columns, identity=identity)

    def by_hand(observation: Tensor, agent: int) -> list[Tensor]:
        row, own = observation.clone(), told[agent]
        if team.argument is not None:  # type: ignore[attr-defined]
            return ANSWERS[answer][1](network.compute(row[None], own[None])[0])
        for place, value in zip(chosen, own.reshape(-1), strict=True):
            row[place] = value
        return ANSWERS[answer][1](network.compute(row[None])[0])

    return team, by_hand, features


@pytest.mark.parametrize("seed", range(200))
def test_every_answer_is_that_of_a_loop(seed: int) -> None:
    team, by_hand, features = random_case(seed)
    generator = torch.Generator().manual_seed(seed)
    observations = torch.randn(3, 5, features, generator=generator, dtype=torch.float64)
    behavior = team.evaluate(observations)
    assert (behavior.batch_shape, behavior.agents) == ((3, 5), team.agents)
    asked = torch.randint(team.agents, (15, 2), generator=generator)
    flat, some = observations.flatten(0, 1), tensors_of(team.partial(observations.flatten(0, 1), asked))
    expected = [torch.stack(parts) for parts in zip(*(
        [torch.stack(part) for part in zip(*(by_hand(row, agent) for agent in range(team.agents)), strict=True)]
        for row in flat
    ), strict=True)]  # fmt: skip
    for whole, chosen, loop in zip(tensors_of(behavior), some, expected, strict=True):
        torch.testing.assert_close(whole.flatten(0, 1), loop, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(chosen, loop[torch.arange(15)[:, None], asked], rtol=1e-12, atol=1e-12)
    if isinstance(behavior, gs.Deterministic | gs.Gaussian):  # SND too
        each = torch.cat(expected, dim=-1).detach()
        pairs = [(each[:, i] - each[:, j]).norm(dim=-1).mean() for i in range(team.agents) for j in range(i)]
        assert gs.measure(team, observations).value == pytest.approx(float(torch.stack(pairs).mean()), rel=1e-10)


def network(features: int = 9) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("observations", [1, 3, 100])
def test_agents_told_the_same_are_the_same_to_the_last_bit(dtype: torch.dtype, observations: int) -> None:
    identity = torch.randn(5, 4, dtype=dtype)
    identity[3], identity[4] = identity[0], identity[1]
    shown = torch.randn(observations, 9, dtype=dtype)
    for argument in ({"columns": slice(4)}, {"argument": "id"}):
        read = network(9).to(dtype)
        policy = read if "columns" in argument else (lambda o, id, read=read: read(torch.cat([id, o[:, 4:]], -1)))
        team = gs.Team.shared(policy, 5, identity=identity, **argument)  # type: ignore[arg-type]
        matrix = gs.measure(team, shown).matrix()
        assert matrix is not None
        assert {(i, j) for i, j in (matrix == 0).nonzero().tolist() if i < j} == {(0, 3), (1, 4)}
        alike = gs.Team.shared(policy, 5, identity=identity[:1].expand(5, -1), **argument)  # type: ignore[arg-type]
        assert gs.measure(alike, shown).value == 0


def test_gradients_reach_the_network_the_identities_and_the_observations() -> None:
    policy = network(6).double()
    identity = torch.randn(4, 3, dtype=torch.float64)
    identity[3] = identity[0]  # told the same; each has a gradient of its own
    inputs = (identity.requires_grad_(), torch.randn(5, 6, dtype=torch.float64, requires_grad=True))
    weights = torch.randn(5, 4, 2, dtype=torch.float64)

    def total(identity: Tensor, observations: Tensor, *_: Tensor) -> Tensor:
        behavior = gs.Team.shared(policy, 4, columns=slice(3), identity=identity).evaluate(observations)
        return (behavior.actions * weights).sum()  # type: ignore[attr-defined]

    assert torch.autograd.gradcheck(total, (*inputs, *policy.parameters()))
    gs.snd(gs.Team.shared(policy, 4, columns=slice(3), identity=inputs[0]).evaluate(inputs[1])).backward()
    assert all(bool(part.grad.any()) for part in (*inputs, *policy.parameters()))  # type: ignore[union-attr]
    assert bool(inputs[1].grad[:, :3].eq(0).all())  # type: ignore[index]  # replaced


def test_measure_names_roles_designs_and_the_report() -> None:
    observations = torch.randn(40, 9)
    team = gs.Team.shared(network(), ["scout", "guard", "medic", "cook", "pilot"], columns=slice(-5, None))
    assert team.names == team.evaluate(observations).names == ("scout", "guard", "medic", "cook", "pilot")
    estimate = gs.measure(team, observations)
    by_hand = [
        lambda o, k=k: team.policies[0](torch.cat([o[:, :4], torch.eye(5)[k].expand(len(o), -1)], -1))  # type: ignore[attr-defined]
        for k in range(5)
    ]
    assert estimate.value == pytest.approx(gs.measure(by_hand, observations).value, rel=1e-6)
    assert set(gs.roles(estimate).names) == set(team.names)
    assert "scout" in gs.plots.report(estimate)
    assert Probe().measure(0, team, observations)["snd"] == estimate.value
    sampled = gs.measure(team, observations, design="agents:2")
    assert sampled.policy_evaluations == 80
    path = gs.Graph(5, torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]]))
    expected = float(gs.graph_snd(team.evaluate(observations), path).detach())
    assert gs.measure(team, observations, design=path).value == pytest.approx(expected, rel=1e-6)


class Counts(nn.Module):
    """Writes into its input, has statistics, and counts its calls and rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.calls = nn.Linear(7, 2), nn.BatchNorm1d(7), [0, 0]

    def forward(self, rows: Tensor) -> Tensor:
        """An action."""
        self.calls[0] += 1
        self.calls[1] += len(rows)
        rows.mul_(2)
        return self.layer(self.norm(rows))


def test_only_what_is_asked_is_computed_in_one_call_and_leaves_no_trace() -> None:
    policy, observations = Counts(), torch.randn(50, 7)
    team, before = gs.Team.shared(policy, 3, columns=[0, 2, 5]), observations.clone()
    team.evaluate(observations)
    policy.calls[:] = 0, 0
    team.evaluate(observations)
    assert policy.calls == [1, 150]
    team.partial(observations, torch.randint(3, (50, 2)))
    assert policy.calls == [2, 250]
    assert policy.training
    assert policy.norm.num_batches_tracked == 0
    torch.testing.assert_close(observations, before)


@pytest.mark.parametrize("wrap", [torch.jit.script, nn.DataParallel])
def test_scripted_and_wrapped_networks(wrap: Callable[[nn.Module], nn.Module]) -> None:
    observations = torch.randn(6, 9)
    plain, wrapped = (gs.Team.shared(made, 2, columns=[7, 8]) for made in (network(), wrap(network())))
    assert gs.measure(wrapped, observations).value == pytest.approx(gs.measure(plain, observations).value, rel=1e-6)


def test_policies_that_mix_rows_or_draw_are_refused() -> None:
    mixing: list[Callable[[Tensor], Tensor]] = [lambda o: o - o.mean(0), lambda o: o + torch.rand_like(o)]
    for policy in mixing:
        with pytest.raises(gs.InputError, match="answer changes with the other observations"):
            gs.measure(gs.Team.shared(policy, 3, columns=slice(3)), torch.randn(1, 4))
    with pytest.raises(gs.InputError, match="answer changes with the other observations"):
        gs.measure(gs.Team.shared(nn.LSTM(4, 2), 3, columns=slice(3), outputs="action, state"), torch.randn(6, 4))


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "neither": (lambda: gs.Team.shared(network(), 3), "`columns` or `argument`"),
    "both": (lambda: gs.Team.shared(network(), 3, columns=0, argument="id"), "got both"),
    "a list": (
        lambda: gs.Team.shared([network()], 2, columns=[0, 1]),  # type: ignore[arg-type]
        "`policy` to be a module or a function, got a list. Models of a framework",
    ),
    "names": (lambda: gs.Team.shared(network(), ["a", "a"], columns=0), "2 different strings"),
    "no agents": (lambda: gs.Team.shared(network(), 0, columns=0), "`agents`"),
    "a name": (lambda: gs.Team.shared(network(), "abc", columns=0), "`agents`"),
    "identity": (lambda: gs.Team.shared(network(), 3, columns=0, identity=torch.eye(2)), r"\(3, k\)"),
    "columns": (
        lambda: gs.measure(gs.Team.shared(network(), 3, columns=slice(-5, None)), torch.randn(4, 9)),
        "`columns` to be 3, the length of an identity, got 5",
    ),
    "outside": (
        lambda: gs.measure(gs.Team.shared(network(), 2, columns=[7, 9]), torch.randn(4, 9)),
        "index 9 is out of bounds",
    ),
    "words": (
        lambda: gs.measure(gs.Team.shared(network(), 2, columns="id"), torch.randn(4, 9)),
        "the shared network can take",
    ),
    "another argument": (
        lambda: gs.measure(gs.Team.shared(network(), 2, argument="id"), torch.randn(4, 9)),
        "unexpected keyword argument 'id'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(BAD))
def test_bad_inputs(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(gs.InputError, match=message):
        call()
