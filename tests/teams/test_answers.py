"""Policies whose answer has several parts, through every way of asking them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch import distributions as D

import graphsnd as gs
from graphsnd.teams import as_team
from graphsnd.teams.answers import tensors_of

FEATURES, AGENTS = 3, 4
ROWS = torch.randn(30, FEATURES, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    """Two discrete actions of 2 and 3 choices, in whatever form is asked for."""

    def __init__(self, answer: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.answer = nn.Linear(FEATURES, 5), answer

    def forward(self, observations: Tensor) -> Any:
        return self.answer(*self.layer(observations).split([2, 3], dim=-1))


def as_behaviors(one: Tensor, two: Tensor) -> Any:
    return {
        "grip": gs.Categorical(logits=one, validate=False),
        "say": gs.Categorical(logits=two, validate=False),
    }


FORMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "dict": lambda a, b: {"grip": D.Categorical(logits=a), "say": D.Categorical(logits=b)},
    "list": lambda a, b: [D.Categorical(logits=a), D.OneHotCategorical(logits=b)],
    "tuple": lambda a, b: (D.Categorical(logits=a), gs.Categorical(logits=b)),
    "joint": lambda a, b: gs.Joint(as_behaviors(a, b)),
    "behaviours": as_behaviors,
}


def make(form: Callable[[Tensor, Tensor], Any]) -> list[nn.Module]:
    torch.manual_seed(0)
    return [Net(form) for _ in range(AGENTS)]


def by_hand(policies: list[nn.Module], rows: Tensor) -> float:
    """The mean over pairs, rows and both actions, of total variation."""
    with torch.no_grad():
        outputs = [policy.layer(rows).double() for policy in policies]  # type: ignore[operator, union-attr]
    total = 0.0
    for i in range(AGENTS):
        for j in range(i):
            for part in (slice(0, 2), slice(2, 5)):
                p, q = (torch.softmax(outputs[k][:, part], -1) for k in (i, j))
                total += float((p - q).abs().sum(-1).mean()) / 2 / 2
    return total / (AGENTS * (AGENTS - 1) / 2)


@pytest.mark.parametrize("form", FORMS)
def test_policies_that_answer_in_parts(form: str) -> None:
    policies = make(FORMS[form])
    expected = pytest.approx(by_hand(policies, ROWS), rel=1e-5)
    behavior = gs.evaluate(policies, ROWS)
    assert isinstance(behavior, gs.Joint)
    assert (behavior.agents, tuple(behavior.batch_shape)) == (AGENTS, (30,))
    assert gs.snd(behavior).item() == expected
    assert gs.measure(policies, ROWS).value == expected
    named = gs.evaluate(dict(zip("abcd", policies, strict=True)), ROWS.reshape(5, 6, FEATURES))
    assert (named.names, tuple(named.batch_shape)) == (("a", "b", "c", "d"), (5, 6))
    assert gs.snd(named).item() == expected
    # Only some agents at each observation, through the batched modules or one by one.
    asked = torch.tensor([[0, 2], [3, 3], [1, 0]])
    team = as_team(policies)
    partial = team.partial(ROWS[:3], asked)
    assert isinstance(partial, gs.Joint)
    for name, part in behavior.parts.items():
        rows = part.probs[torch.arange(3).unsqueeze(1), asked]  # type: ignore[attr-defined]
        torch.testing.assert_close(partial.parts[name].probs, rows)  # type: ignore[attr-defined]
    sampled = gs.measure(policies, ROWS, design="agents:4")
    assert sampled.value == expected
    assert sampled.guaranteed  # total variation is at most 1, and so is a mean of it


class Critic(NamedTuple):
    """An answer with names."""

    logits: Tensor
    value: Tensor


# From two outputs, the second positive, and a value: an answer with names of the outputs, and what it stands for.
OUTPUTS: dict[str, tuple[Callable[..., Any], str | None, Callable[..., gs.Behavior]]] = {
    "distribution, value": (lambda a, b, v: (D.Normal(a, b), v), None, lambda a, b, v: gs.Gaussian(a, b)),
    "value, distribution": (lambda a, b, v: [v, D.Categorical(logits=a)], None, lambda a, b, v: logits(a)),
    "behaviour, state": (lambda a, b, v: (gs.Gaussian(a, b), None), None, lambda a, b, v: gs.Gaussian(a, b)),
    "parts, value": (
        lambda a, b, v: ((D.Normal(a, b), D.Normal(b, b)), v), None,
        lambda a, b, v: gs.Joint([gs.Gaussian(a, b), gs.Gaussian(b, b)]),
    ),
    "two distributions, value": (
        lambda a, b, v: {"move": D.Normal(a, b), "value": v, "grip": D.Normal(b, b)}, None,
        lambda a, b, v: gs.Joint({"move": gs.Gaussian(a, b), "grip": gs.Gaussian(b, b)}),
    ),
    "logits, value": (lambda a, b, v: (a, v), "logits, value", lambda a, b, v: logits(a)),
    "value, probs": (lambda a, b, v: (v, a.softmax(-1)), "_ probs", lambda a, b, v: logits(a)),
    "mean, log_std, value": (lambda a, b, v: (a, b.log(), v), "mean, log_std, _", lambda a, b, v: gs.Gaussian(a, b)),
    "loc, scale": (lambda a, b, v: (a, b), "loc,scale", lambda a, b, v: gs.Gaussian(a, b)),
    "one scale": (lambda a, b, v: (a, 0.5), "loc,scale", lambda a, b, v: gs.Gaussian(a, 0.5)),
    "action, value": (lambda a, b, v: [a, v], "action, value", lambda a, b, v: gs.Deterministic(a)),
    "dict of logits": (lambda a, b, v: {"value": v, "logits": a}, None, lambda a, b, v: logits(a)),
    "dict of moments": (lambda a, b, v: {"mean": a, "std": b, "action": b}, None, lambda a, b, v: gs.Gaussian(a, b)),
    "dict of arrays": (
        lambda a, b, v: {"loc": a.detach().numpy(), "log_scale": b.log().detach().numpy(), "value": None}, None,
        lambda a, b, v: gs.Gaussian(a, b),
    ),
    "named tuple": (lambda a, b, v: Critic(a, v), None, lambda a, b, v: logits(a)),
    "deterministic dict": (lambda a, b, v: {"action": a, "value": v}, None, lambda a, b, v: gs.Deterministic(a)),
}  # fmt: skip


def logits(given: Tensor) -> gs.Categorical:
    """Probabilities."""
    return gs.Categorical(logits=given)


class ActorCritic(nn.Module):
    """Two heads of an actor, and a critic that is positive with one number."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(FEATURES, 2), nn.Linear(FEATURES, 2), nn.Linear(FEATURES, 1)])
        self.answer = answer

    def put_out(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the answer is made of."""
        one, two, three = (head(rows) for head in self.heads)
        return one, two.exp(), three.square()

    def forward(self, rows: Tensor) -> Any:
        """The answer."""
        return self.answer(*self.put_out(rows))


@pytest.mark.parametrize("form", OUTPUTS)
def test_actor_critics_as_they_are(form: str) -> None:
    answer, outputs, behave = OUTPUTS[form]
    policies = [ActorCritic(answer) for _ in range(AGENTS)]
    with torch.no_grad():
        parts = zip(*(policy.put_out(ROWS) for policy in policies), strict=True)
        by_hand = behave(*(torch.stack(part, -2) for part in parts))
        joint = gs.evaluate(lambda o: answer(*(torch.stack(part, -2) for part in zip(
            *(policy.put_out(o) for policy in policies), strict=True))), ROWS, outputs=outputs)  # fmt: skip
    for behavior in (
        gs.evaluate(policies, ROWS, outputs=outputs),
        gs.evaluate(dict(zip("abcd", policies, strict=True)), ROWS, outputs=outputs),
        gs.evaluate([lambda o, p=policy: p(o) for policy in policies], ROWS, outputs=outputs),
        as_team(policies, outputs=outputs).partial(ROWS, torch.arange(AGENTS).expand(30, -1)),
        joint,
    ):
        for one, two in zip(tensors_of(behavior), tensors_of(by_hand), strict=True):
            torch.testing.assert_close(one, two)
    shared = gs.Team.shared(policies[0], AGENTS, columns=slice(3), identity=ROWS[:AGENTS, :3], outputs=outputs)
    assert gs.measure(shared, ROWS).family == type(by_hand).__name__


@pytest.mark.parametrize(("answer", "outputs", "said"), [
    (lambda o: (o[:, :1], o[:, 1:2].square()), None, r"\(30, 1\), \(30, 1\)\. Name them, .*='logits, value'"),
    (lambda o: (o, o.exp()), None, r"2 outputs: \(30, 5\), \(30, 5\)"),
    (lambda o: (o[:, :2], o[:, 2:4], o[:, :1]), None, r"3 outputs: \(30, 2\), \(30, 2\), \(30, 1\)"),
    (lambda o: [o, None], None, r"2 outputs: \(30, 5\), NoneType"),
    (lambda o: (o, o), "logit, value", r"2 outputs: logit \(30, 5\), value \(30, 5\)"),
    (lambda o: {"loc": o, "value": o[:, 0]}, None, r"2 outputs: loc \(30, 5\), value \(30,\)"),
    (lambda o: {"move": o, "grip": o}, None, r"2 outputs: move \(30, 5\), grip \(30, 5\)"),
])  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda policy: [policy] * 2, lambda policy: policy])
def test_tensors_without_names_are_refused(answer: Any, outputs: Any, said: str, wrap: Any) -> None:
    with pytest.raises(gs.InputError, match=said) as error:
        gs.evaluate(wrap(answer), torch.randn(30, 5), outputs=outputs)
    assert error.value.name == "team"
    said = r"`outputs` to name 2 outputs of shapes \(30, 5\), \(30, 5\), got 3: logits, value, state"
    with pytest.raises(gs.InputError, match=said):
        gs.evaluate(wrap(lambda o: (o, o)), torch.randn(30, 5), outputs="logits, value, state")


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_hidden_state_is_not_taken_for_a_scale(batch_first: bool) -> None:
    rnns = [nn.RNN(FEATURES, 2, batch_first=batch_first) for _ in range(AGENTS)]
    sequences = torch.randn(10, 8, FEATURES)
    with pytest.raises(gs.InputError, match=r"2 outputs: \(10, 8, 2\), \(1, "):
        gs.evaluate(rnns, sequences, whole=True)
    expected = torch.stack([rnn(sequences)[0] for rnn in rnns], -2)
    for policies, outputs in ((rnns, "action, state"), ([lambda o, rnn=rnn: rnn(o)[0] for rnn in rnns], None)):
        answered = gs.evaluate(policies, sequences, whole=True, outputs=outputs)
        assert torch.equal(answered.actions, expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", [(), (2,), (1, 2), (8, 2), (10, 1, 2), (1, 1, 2), (10, 8, 2)])
def test_scales_of_sequences(shape: tuple[int, ...]) -> None:
    scale = torch.rand(shape)
    policies = [lambda o, at=at: {"loc": o[..., :2] + at, "scale": scale} for at in range(2)]
    behavior = gs.evaluate(policies, torch.randn(10, 8, FEATURES), whole=True)
    assert torch.equal(behavior.scale[..., 0, :], scale.expand(10, 8, 2))  # type: ignore[attr-defined]


def test_actions_of_several_dimensions() -> None:
    nets = make(lambda one, two: D.Independent(D.Normal(two.unflatten(-1, (3, 1)), 0.5), 2))
    flat = make(lambda one, two: {"loc": two, "scale": torch.tensor(0.5)})
    expected = pytest.approx(gs.snd(gs.evaluate(flat, ROWS)).item(), rel=1e-6)
    assert gs.snd(gs.evaluate(nets, ROWS)).item() == expected
    assert gs.snd(gs.evaluate(nets, ROWS.reshape(5, 6, FEATURES))).item() == expected
    assert gs.measure(nets, ROWS, design="agents:4").value == expected
