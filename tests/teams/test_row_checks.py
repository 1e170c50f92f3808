"""Policies that are given what they were given in training, compared with hand-written loops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn
from torch import distributions as D

import graphsnd as gs
from graphsnd.teams import as_team
from graphsnd.teams.policies import Unroll

FEATURES, ACTIONS, N = 4, 2, 3


@pytest.fixture(autouse=True)
def seeded():  # type: ignore[no-untyped-def]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def by_hand(actions: list[Tensor]) -> float:
    """Mean distance over pairs and rows of the agents' ``[rows, actions]``, one at a time, in float64."""
    total = [
        sum((a - b).double().norm().item() for a, b in zip(actions[i], actions[j], strict=True)) / len(actions[i])
        for i, j in combinations(range(len(actions)), 2)
    ]
    return sum(total) / len(total)


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, ACTIONS))


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.BatchNorm1d(8), nn.Flatten(1), nn.Linear(8, ACTIONS))


@pytest.mark.parametrize("make", [plain, normalised])
def test_policies_are_given_rows(make) -> None:  # type: ignore[no-untyped-def]
    policies = [make().eval() for _ in range(N)]
    for policy in policies:  # statistics that differ, as after training
        for buffer in policy.buffers():
            if buffer.is_floating_point():
                buffer.uniform_(0.5, 2)
    observations = torch.randn(5, 7, FEATURES)
    rows = observations.reshape(-1, FEATURES)
    expected = by_hand([policy(rows).detach() for policy in policies])
    shapes = []
    for given in (policies, [lambda o, p=p: (shapes.append(tuple(o.shape)), p(o))[1] for p in policies]):
        assert float(gs.snd(gs.evaluate(given, observations)).detach()) == pytest.approx(expected, rel=1e-6)
        assert gs.measure(given, observations).value == pytest.approx(expected, rel=1e-6)
        assert gs.measure(given, observations, design="matching:3", seed=1).value == pytest.approx(expected, rel=1)
    assert {len(shape) for shape in shapes} == {2}
    assert (35, FEATURES) in shapes


def test_batch_normalisation_uses_its_own_statistics_and_leaves_them_alone() -> None:
    policies, observations = [normalised() for _ in range(N)], torch.randn(16, FEATURES)
    before = [buffer.clone() for policy in policies for buffer in policy.buffers()]
    numbers = [gs.snd(gs.evaluate(policies, observations)).detach(), gs.measure(policies, observations).value]
    assert all(part.training for policy in policies for part in policy.modules())
    after = [buffer for policy in policies for buffer in policy.buffers()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    expected = by_hand([policy.eval()(observations).detach() for policy in policies])
    assert [float(number) for number in numbers] == pytest.approx([expected] * 2, rel=1e-6)
    # What cannot be switched is refused.
    trained = [policy.train() for policy in policies]
    for use in (gs.evaluate, gs.measure):
        with pytest.raises(gs.InputError, match=r"by itself.*module\.eval\(\)"):
            use([lambda o, p=p: p(o) for p in trained], observations)


def test_images() -> None:
    policies = [nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(1), nn.Linear(16, ACTIONS)) for _ in range(N)]
    images = torch.randn(2, 5, 3, 4, 4)
    flat = images.flatten(0, 1)
    expected = by_hand([policy(flat).detach() for policy in policies])
    behavior = gs.evaluate(policies, images, feature_dims=3)
    assert behavior.batch_shape == (2, 5)
    assert float(gs.snd(behavior).detach()) == pytest.approx(expected, rel=1e-6)
    team = as_team(policies, feature_dims=3)
    assert gs.measure(team, images).value == pytest.approx(expected, rel=1e-6)
    agents = torch.randint(N, (10, 2))
    torch.testing.assert_close(
        team.partial(flat, agents).actions,  # type: ignore[attr-defined]
        team.evaluate(flat).actions[torch.arange(10)[:, None], agents],  # type: ignore[attr-defined]
    )
    with pytest.raises(gs.InputError, match=r"policy 0 .*\(120, 4\).*RuntimeError.*feature_dims=3"):
        gs.evaluate(policies, images)


class Recurrent(nn.Module):
    def __init__(self, *, batch_first: bool = False) -> None:
        super().__init__()
        self.gru = nn.GRU(FEATURES, 8, batch_first=batch_first)
        self.head = nn.Linear(8, ACTIONS)

    def forward(self, sequences: Tensor) -> Tensor:
        return self.head(self.gru(sequences)[0])

    def one_step_at_a_time(self, sequence: Tensor) -> Tensor:
        """A hand-written loop over ``[time, features]``, without nn.GRU's own."""
        w, u, b, c = (p.detach() for p in self.gru.parameters())
        hidden, outputs = torch.zeros(8), []
        for o in sequence:
            (r, z, n), (hr, hz, hn) = (w @ o + b).chunk(3), (u @ hidden + c).chunk(3)
            update = torch.sigmoid(z + hz)
            hidden = (1 - update) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + update * hidden
            outputs.append(self.head(hidden).detach())
        return torch.stack(outputs)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("batch", [(), (6,)])
def test_recurrent_policies_keep_their_memory(batch: tuple[int, ...], batch_first: bool) -> None:
    policies = [Recurrent(batch_first=batch_first) for _ in range(N)]
    sequences = torch.randn(20, *batch, FEATURES)
    single = sequences.reshape(20, -1, FEATURES).unbind(1)
    expected = by_hand([torch.cat([p.one_step_at_a_time(s) for s in single]) for p in policies])
    given = sequences.transpose(0, 1) if batch and batch_first else sequences
    behavior = gs.evaluate(policies, given, whole=True)
    assert float(gs.snd(behavior).detach()) == pytest.approx(expected, rel=1e-5)
    # Pooled, the sequences would run into each other; drawn one by one, they would be forgotten.
    for use in (gs.evaluate, gs.measure):
        with pytest.raises(gs.InputError, match="whole=True"):
            use(policies, given)
    team = as_team(policies, whole=True)
    for options in ({}, {"design": "agents:2"}, {"design": "uniform:2"}, {"rel_tol": 0.5}):
        estimate, evaluated = gs.measure(team, given, **options), gs.measure(behavior, **options)
        assert (estimate.value, estimate.interval) == (evaluated.value, evaluated.interval)
    assert gs.measure(team, given).value == pytest.approx(expected, rel=1e-5)
    with pytest.raises(gs.InputError, match=r"answer each observation by itself.*Use team.evaluate"):
        team.partial(torch.randn(5, FEATURES), torch.zeros(5, 1, dtype=torch.int64))


def test_steps_with_a_state_are_rolled_along_the_sequences() -> None:
    cells = [nn.GRUCell(FEATURES, ACTIONS) for _ in range(N)]

    def policy(cell: nn.GRUCell):  # type: ignore[no-untyped-def]
        def step(observations: Tensor, state: Tensor | None) -> tuple[D.Normal, Tensor]:
            state = cell(observations, state)
            return D.Normal(state, 0.5), state

        return Unroll(step)

    sequences = torch.randn(20, 6, FEATURES)
    expected = []
    for cell in cells:
        state, rows = torch.zeros(6, ACTIONS), []
        for t in range(20):
            state = cell(sequences[t], state).detach()
            rows.append(state)
        expected.append(torch.cat(rows))
    behavior = gs.evaluate([policy(cell) for cell in cells], sequences, whole=True)
    assert (behavior.batch_shape, type(behavior)) == ((20, 6), gs.Gaussian)
    assert float(gs.snd(behavior).detach()) == pytest.approx(by_hand(expected), rel=1e-5)


class GraphNetwork(nn.Module):
    """Own observation, and a mean of messages from all others."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.message = nn.Linear(FEATURES, ACTIONS), nn.Linear(FEATURES, ACTIONS)

    def forward(self, joint: Tensor) -> Tensor:
        messages = self.message(joint).tanh()
        others = (messages.sum(-2, keepdim=True) - messages) / (joint.shape[-2] - 1)
        return self.own(joint) + others


def seated_by_hand(networks: list[GraphNetwork], joint: Tensor) -> float:
    """Every network in every seat of every joint observation, one at a time."""
    rows: list[list[Tensor]] = [[] for _ in networks]
    for observation in joint:
        for seat in range(len(observation)):
            for i, network in enumerate(networks):
                others = [network.message(observation[k]).tanh() for k in range(len(observation)) if k != seat]
                rows[i].append((network.own(observation[seat]) + sum(others) / len(others)).detach())
    return by_hand([torch.stack(r) for r in rows])


def test_communicating_policies_answer_in_every_seat() -> None:
    networks = [GraphNetwork() for _ in range(N)]
    joint = torch.randn(7, N, FEATURES)
    behavior = gs.evaluate(networks, joint, whole=True)
    assert behavior.batch_shape == (7, N)
    assert float(gs.snd(behavior).detach()) == pytest.approx(seated_by_hand(networks, joint), rel=1e-6)
    assert float(gs.snd(gs.evaluate([networks[0]] * N, joint, whole=True)).detach()) == 0
    team, seats = as_team(networks, whole=True), {f"seat {k}": joint[:, k] for k in range(N)}
    estimate = gs.measure(team, seats)
    assert estimate.value == pytest.approx(seated_by_hand(networks, joint), rel=1e-6)


class Unshared(nn.Module):
    """One graph network per agent in one module, as in training: agent i's own network in seat i."""

    def __init__(self) -> None:
        super().__init__()
        self.networks = nn.ModuleList(GraphNetwork() for _ in range(N))

    def forward(self, joint: Tensor) -> Tensor:
        return torch.stack([network(joint)[..., i, :] for i, network in enumerate(self.networks)], -2)


class Star(nn.Module):
    """Only the first agent listens."""

    def forward(self, joint: Tensor) -> Tensor:
        return torch.cat([joint.sum(-2, keepdim=True), joint[..., 1:, :]], -2)


@pytest.mark.parametrize("module", [Unshared(), Star()])
def test_a_network_that_mixes_agents_is_not_shown_copies(module: nn.Module) -> None:
    with pytest.raises(gs.InputError, match=r"other observations.*communicating.*whole=True"):
        gs.evaluate(module, torch.randn(7, FEATURES), agents=N)
    with pytest.raises(gs.InputError, match="to be a list"):
        gs.evaluate(module, torch.randn(7, N, FEATURES), whole=True)
    # In a list, the rows of all joint observations would be one large graph.
    with pytest.raises(gs.InputError, match="whole=True"):
        gs.evaluate([GraphNetwork() for _ in range(N)], torch.randn(7, N, FEATURES))


@pytest.mark.parametrize("design", [None, "matching:3"])
def test_any_policy_of_a_list_is_caught(design: str | None) -> None:
    observations = torch.randn(200, FEATURES)
    mixing = {
        "mean": lambda o: o - o.mean(0),
        "largest": lambda o: o - o.amax(0),
        "the one before": lambda o: o + o.roll(1, 0),
        "the one after": lambda o: o + o.roll(-1, 0),
        "the first": lambda o: o - o[0],
        "the last": lambda o: o - o[-1],
        "teams of four": lambda o: o.view(-1, 4, FEATURES).softmax(1).view(-1, FEATURES),
        "four by time": lambda o: o.view(4, -1, FEATURES).softmax(0).view(-1, FEATURES),
    }
    for name, policy in mixing.items():
        policies = {"a": torch.sin, "b": torch.cos, name: policy}
        with pytest.raises(gs.InputError, match=f"policy {name}, whose answer changes with the other"):
            gs.measure(policies, observations, design=design, seed=0) if design else gs.evaluate(policies, observations)
    modules = [nn.GRU(FEATURES, ACTIONS) if i == 5 else nn.Linear(FEATURES, ACTIONS) for i in range(8)]
    first = [lambda o, m=m: m(o)[0] if isinstance(m, nn.GRU) else m(o) for m in modules]
    with pytest.raises(gs.InputError, match="policy 5, whose"):
        gs.evaluate(first, observations)


class Zero(nn.Module):
    """Mixes rows by a layer that starts at zero in all but one."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.tensor(strength))

    def forward(self, rows: Tensor) -> Tensor:
        return rows + self.strength * rows.mean(0)


def test_modules_of_the_same_code_are_all_checked_at_once() -> None:
    team = as_team([Zero(float(i == 6)) for i in range(8)])
    with pytest.raises(gs.InputError, match="policy 6, whose"):
        team.evaluate(torch.randn(50, FEATURES))
    assert team.batched  # type: ignore[attr-defined]


def test_mixing_is_seen_beside_actions_of_any_size() -> None:
    policies = {"large": lambda o: 1e9 * o, "small": lambda o: o + 0.01 * o.mean(0)}
    with pytest.raises(gs.InputError, match="policy small, whose answer changes with the other"):
        gs.evaluate(policies, torch.randn(50, FEATURES))


class Counting(nn.Module):
    """Answers by how often it was called since it was loaded."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, rows: Tensor) -> Tensor:
        self.calls += 1
        return self.factor * self.calls * rows


def test_what_a_check_writes_into_buffers_reaches_no_answer() -> None:
    modules, rows = [Counting(1.0), Counting(3.0)], torch.randn(50, FEATURES)
    with torch.no_grad():
        measured = float(gs.snd(gs.evaluate(modules, rows)))
    assert measured == pytest.approx(float(2 * rows.norm(dim=-1).mean()), rel=1e-6)
    assert [float(module.calls) for module in modules] == [0.0, 0.0]


def test_answers_drawn_at_random_are_refused_and_random_state_is_left_alone() -> None:
    drop, observations = nn.Dropout(), torch.randn(50, FEATURES)
    state = torch.get_rng_state()
    numbers = iter(range(1000))
    draws = {
        "dropout": lambda o: drop(o),
        "sample": lambda o: D.Normal(o, 1.0).sample(),
        "noise": lambda o: o + next(numbers),
    }
    for name, draw in draws.items():
        for given in (observations, torch.ones(50, FEATURES)):
            with pytest.raises(gs.InputError, match=rf"policy {name}, .*by chance.*distribution"):
                gs.evaluate({"a": torch.sin, name: draw}, given)
        with pytest.raises(gs.InputError, match=r"a module whose answer changes .*by chance"):
            gs.evaluate(lambda o, f=draw: torch.stack([f(o), o], -2), observations)
    assert torch.equal(torch.get_rng_state(), state)
    assert float(gs.snd(gs.evaluate([drop, drop], observations))) == 0


def test_policies_that_write_into_their_observations_write_into_a_copy() -> None:
    policies = [lambda o, a=a: o.mul_(a).add_(1) for a in (1.0, 2.0, 3.0)]
    observations = torch.randn(50, FEATURES)
    kept = observations.clone()
    expected = torch.stack([kept * a + 1 for a in (1.0, 2.0, 3.0)], -2)
    for given in (policies, lambda o: torch.stack([o.mul_(a).add_(1).clone() for a in (1.0, 2.0, 1.5)], -2)):
        behavior = gs.evaluate(given, observations)
        assert torch.equal(observations, kept)
        if isinstance(given, list):
            torch.testing.assert_close(behavior.actions, expected)  # type: ignore[attr-defined]
    assert gs.measure(policies, observations).value == pytest.approx(by_hand(list(expected.unbind(1))), rel=1e-6)
    assert torch.equal(observations, kept)


def test_equal_observations_settle_nothing() -> None:
    policies = [lambda o: o - o.mean(0), lambda o: o]
    team = as_team(policies)
    team.evaluate(torch.zeros(16, 4))
    with pytest.raises(gs.InputError, match="by itself"):
        team.evaluate(torch.randn(16, 4))


class StackedRecurrent(nn.Module):
    """All agents at once, the agents axis added by the module."""

    def __init__(self) -> None:
        super().__init__()
        self.policies = nn.ModuleList(Recurrent() for _ in range(N))

    def forward(self, sequences: Tensor) -> Tensor:
        return torch.stack([policy(sequences) for policy in self.policies], -2)


def test_a_stacked_recurrent_module_is_evaluated_whole_and_not_in_parts() -> None:
    module, sequences = StackedRecurrent(), torch.randn(20, 6, FEATURES)
    alone = [torch.cat([p.one_step_at_a_time(s) for s in sequences.unbind(1)]) for p in module.policies]  # type: ignore[operator]
    assert float(gs.snd(gs.evaluate(module, sequences)).detach()) == pytest.approx(by_hand(alone), rel=1e-5)
    with pytest.raises(gs.InputError, match="by itself"):
        gs.measure(module, sequences)


def test_threads_that_share_modules_measure_the_same() -> None:
    modules, observations = [nn.Sequential(plain(), nn.Dropout(0.5)) for _ in range(N)], torch.randn(20, FEATURES)
    expected = gs.measure(modules, observations).value
    with ThreadPoolExecutor(8) as threads:
        values = list(threads.map(lambda _: gs.measure(modules, observations).value, range(80)))
    assert values == [expected] * 80
    assert all(part.training for module in modules for part in module.modules())


@pytest.mark.parametrize("wrap", [torch.jit.script, nn.DataParallel])
def test_scripted_and_wrapped_modules(wrap) -> None:  # type: ignore[no-untyped-def]
    modules, observations = [normalised() for _ in range(N)], torch.randn(20, FEATURES)
    for module in modules:
        module(torch.randn(30, FEATURES))  # statistics other than those of the observations
    wrapped = [wrap(module) for module in modules]
    assert gs.measure(wrapped, observations).value == pytest.approx(
        by_hand([module.eval()(observations).detach() for module in modules]), rel=1e-6
    )


class Seated(nn.Module):
    """A network that tells seats apart."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Linear(FEATURES, ACTIONS)

    def forward(self, joint: Tensor) -> Tensor:
        return self.own(joint) * torch.arange(joint.shape[-2]).unsqueeze(-1)


def test_seats_are_in_the_order_of_the_policies() -> None:
    networks = {name: Seated() for name in "abc"}
    joint = {name: torch.randn(7, FEATURES) for name in "cab"}
    rows = [torch.stack([joint[seat] for seat in "abc"], 1) for _ in networks]
    expected = by_hand([f(o).flatten(0, 1).detach() for f, o in zip(networks.values(), rows, strict=True)])
    assert float(gs.snd(gs.evaluate(networks, joint, whole=True)).detach()) == pytest.approx(expected, rel=1e-6)
