"""Policies whose answer has several parts, through every way of asking them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch import distributions as D

import graphsnd as gs
from graphsnd.teams import as_team

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


def test_a_value_beside_the_action_is_not_taken_for_a_scale() -> None:
    nets = [(nn.Linear(FEATURES, 2), nn.Linear(FEATURES, 1)) for _ in range(AGENTS)]
    critics = [lambda o, a=actor, c=critic: (a(o), c(o).abs()) for actor, critic in nets]
    with pytest.raises(gs.InputError, match="without its value"):
        gs.evaluate(critics, ROWS)
    # One scale for all actions, said so, and one for each whatever the observation, are read.
    shared = [lambda o, a=actor, c=critic: (a(o), c(o).abs().expand(-1, 2)) for actor, critic in nets]
    assert gs.evaluate(shared, ROWS).scale.shape == (30, AGENTS, 2)
    constant = [lambda o, a=actor: (a(o), torch.tensor([0.5, 0.2])) for actor, _ in nets]
    assert gs.evaluate(constant, ROWS).scale[0, 0].tolist() == pytest.approx([0.5, 0.2])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("shape", [(10, 8), (8, 8), (10, 1), (8, 10)])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_hidden_state_is_not_taken_for_a_scale(layers: int, shape: tuple[int, int], batch_first: bool) -> None:
    options: dict[str, Any] = {"num_layers": layers, "batch_first": batch_first, "nonlinearity": "relu"}
    rnns = [nn.RNN(FEATURES, 2, **options) for _ in range(AGENTS)]  # whose states are no negative numbers
    sequences = torch.randn(*shape, FEATURES)
    with pytest.raises(gs.InputError, match=r"`team`.*hidden state: lambda o: policy\(o\)\[0\]"):
        gs.evaluate(rnns, sequences, whole=True)
    alone = gs.evaluate([lambda o, rnn=rnn: rnn(o)[0] for rnn in rnns], sequences, whole=True)
    assert torch.equal(alone.actions[..., 0, :], rnns[0](sequences)[0])  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", [(), (2,), (1, 2), (8, 2), (10, 1, 2), (1, 1, 2), (10, 8, 2)])
def test_scales_of_sequences(shape: tuple[int, ...]) -> None:
    scale = torch.rand(shape)
    policies = [lambda o, at=at: (o[..., :2] + at, scale) for at in range(2)]
    behavior = gs.evaluate(policies, torch.randn(10, 8, FEATURES), whole=True)
    assert torch.equal(behavior.scale[..., 0, :], scale.expand(10, 8, 2))  # type: ignore[attr-defined]


def test_actions_of_several_dimensions() -> None:
    nets = make(lambda one, two: D.Independent(D.Normal(two.unflatten(-1, (3, 1)), 0.5), 2))
    flat = make(lambda one, two: (two, torch.tensor(0.5)))
    expected = pytest.approx(gs.snd(gs.evaluate(flat, ROWS)).item(), rel=1e-6)
    assert gs.snd(gs.evaluate(nets, ROWS)).item() == expected
    assert gs.snd(gs.evaluate(nets, ROWS.reshape(5, 6, FEATURES))).item() == expected
    assert gs.measure(nets, ROWS, design="agents:4").value == expected
