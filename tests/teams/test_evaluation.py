from __future__ import annotations

import pytest
import torch
from torch import distributions as D
from torch import nn

import graphsnd as gs
from graphsnd.teams import as_team

FEATURES, ACTIONS, N = 4, 2, 3


@pytest.fixture
def observations(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(6, 5, FEATURES, generator=generator)


@pytest.fixture
def weights(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(N, FEATURES, ACTIONS, generator=generator)


def linear(weight: torch.Tensor) -> nn.Module:
    module = nn.Linear(FEATURES, ACTIONS, bias=False)
    module.weight = nn.Parameter(weight.T.clone())
    return module


def answers(weight: torch.Tensor) -> dict[str, object]:
    """One policy for each kind of answer."""
    spread = lambda o: (o @ weight).exp() + 0.1  # noqa: E731
    return {
        "tensor": lambda o: o @ weight,
        "moments": lambda o: {"loc": o @ weight, "scale": spread(o)},
        "moments with a number": lambda o: {"mean": o @ weight, "std": 0.5},
        "normal": lambda o: D.Normal(o @ weight, spread(o)),
        "independent normal": lambda o: D.Independent(D.Normal(o @ weight, spread(o)), 1),
        "multivariate normal": lambda o: D.MultivariateNormal(o @ weight, torch.diag_embed(spread(o))),
        "categorical": lambda o: D.Categorical(logits=o @ weight),
        "beta": lambda o: D.Beta(spread(o), spread(o)),
        "behaviour": lambda o: gs.Categorical(logits=o @ weight),
    }


@pytest.mark.parametrize("kind", list(answers(torch.zeros(FEATURES, ACTIONS))))
def test_every_answer_for_every_agent_on_every_observation(
    kind: str, observations: torch.Tensor, weights: torch.Tensor
) -> None:
    team = [answers(w)[kind] for w in weights]
    behavior = gs.evaluate(team, observations)  # type: ignore[arg-type]
    assert (behavior.agents, behavior.batch_shape) == (N, (6, 5))
    matrix = gs.pairwise(behavior)
    # One observation at a time, two agents at a time.
    flat = observations.reshape(-1, FEATURES)
    for i in range(N):
        for j in range(i):
            single = [gs.snd(gs.evaluate([team[i], team[j]], o)) for o in flat]  # type: ignore[list-item]
            assert float(matrix[i, j]) == pytest.approx(float(torch.stack(single).mean()), rel=1e-5)


def test_modules_stacked_modules_and_module_lists_agree(observations: torch.Tensor, weights: torch.Tensor) -> None:
    modules = [linear(w) for w in weights]
    expected = torch.stack([observations @ w for w in weights], dim=-2)
    stacked = lambda seen: torch.einsum("...f,nfa->...na", seen, weights)  # noqa: E731
    for team in (modules, tuple(modules), nn.ModuleList(modules), stacked):
        behavior = gs.evaluate(team, observations)  # type: ignore[arg-type]
        assert isinstance(behavior, gs.Deterministic)
        torch.testing.assert_close(behavior.actions, expected)


@pytest.mark.parametrize("inner", [0, 1, 2])
def test_one_distribution_of_the_whole_team(inner: int, observations: torch.Tensor, weights: torch.Tensor) -> None:
    """With two event dimensions the agents are in the event, as where log-probabilities are summed over a team."""

    def stacked(seen: torch.Tensor) -> D.Distribution:
        return D.Independent(D.Normal(torch.einsum("...f,afk->...ak", seen, weights), 1.0), inner)

    def by_seat(seen: torch.Tensor) -> D.Distribution:
        return D.Independent(D.Normal(torch.einsum("...af,afk->...ak", seen, weights), 1.0), inner)

    expected = gs.snd(gs.evaluate([linear(w) for w in weights], observations))
    in_parts = gs.evaluate(lambda seen: {"move": stacked(seen)}, observations)
    for behavior in (gs.evaluate(stacked, observations), gs.evaluate(by_seat, observations, agents=N), in_parts):
        assert (behavior.agents, behavior.batch_shape) == (N, (6, 5))
        torch.testing.assert_close(gs.snd(behavior), expected)
    squashed = [
        gs.evaluate(lambda seen, make=make: D.TransformedDistribution(make(seen), [D.TanhTransform()]), observations)
        for make in (stacked, lambda seen: stacked(seen).base_dist)
    ]
    assert squashed[0].agents == N
    torch.testing.assert_close(*map(gs.snd, squashed))


def test_a_dict_of_policies_keeps_its_names(observations: torch.Tensor, weights: torch.Tensor) -> None:
    policies = {name: linear(w) for name, w in zip(("scout", "carrier", "guard"), weights, strict=True)}
    plain = gs.evaluate(list(policies.values()), observations)
    assert plain.names == ("0", "1", "2")
    for team in (policies, nn.ModuleDict(policies), as_team(policies)):
        behavior = gs.evaluate(team, observations)  # type: ignore[arg-type]
        assert behavior.names == as_team(team).names == tuple(policies)  # type: ignore[arg-type]
        torch.testing.assert_close(behavior.actions, plain.actions)  # type: ignore[attr-defined]
    assert gs.measure(policies, observations).value == pytest.approx(float(gs.snd(plain).detach()), rel=1e-6)
    # What each agent observed, by its name, is pooled and shown to all.
    own = {name: torch.randn(7, FEATURES) for name in policies}
    pooled = gs.evaluate(policies, torch.stack(list(own.values()), -2))
    assert pooled.batch_shape == (7, 3)
    torch.testing.assert_close(gs.pairwise(gs.evaluate(policies, own)), gs.pairwise(pooled))  # type: ignore[arg-type]
    assert gs.measure(policies, own).value == pytest.approx(float(gs.snd(pooled).detach()), rel=1e-6)  # type: ignore[arg-type]
    with pytest.raises(gs.InputError, match=r"`observations` beside"):
        gs.measure(policies)


def test_as_many_observations_as_agents_do_not_hide_another_order_of_axes() -> None:
    generator = torch.Generator().manual_seed(0)
    weights, seen = (torch.randn(*shape, generator=generator) for shape in ((4, 3, 2), (4, 3)))
    by_agent = [lambda rows, own=own: rows @ own for own in weights]
    expected = gs.snd(gs.evaluate(by_agent, seen))
    torch.testing.assert_close(
        gs.snd(gs.evaluate(lambda rows: torch.einsum("of,nfa->ona", rows, weights), seen)), expected
    )
    team = gs.teams.as_team(lambda rows: torch.einsum("of,nfa->noa", rows, weights))
    for _ in range(2):  # a team that was refused once stays so
        with pytest.raises(gs.InputError, match=r"answer with shape \(2, 'agents', '...'\), got \(4, 2, '...'\)"):
            team.evaluate(seen)


def noisy(scale: float):  # type: ignore[no-untyped-def]
    return lambda o: o + scale * torch.randn_like(o)


def test_draws_are_repeated_independent_and_leave_no_trace() -> None:
    seen = torch.zeros(3, 5, 2)
    state = torch.get_rng_state()
    one = gs.draw_samples({"a": noisy(1), "b": noisy(1)}, seen, samples=400)
    assert torch.equal(state, torch.get_rng_state())
    assert one.samples.shape == (3, 5, 2, 400, 2)
    assert one.names == ("a", "b")
    assert torch.equal(one.samples, gs.draw_samples([noisy(1), noisy(1)], seen, samples=400).samples)
    assert not torch.equal(one.samples, gs.draw_samples([noisy(1), noisy(1)], seen, samples=400, seed=1).samples)
    a, b = one.samples[:, :, 0], one.samples[:, :, 1]
    assert abs(float((a * b).mean())) < 0.03  # not of the same noise


def test_modules_act_in_evaluation_mode() -> None:
    policy = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    drawn = gs.draw_samples([policy, policy], torch.ones(4, 2), samples=8)
    assert policy.training
    assert float(gs.snd(drawn)) == 0


def test_encoded_answers() -> None:
    prompts = ["left", "right", "up"]
    policies = [lambda given: [text.upper() for text in given], lambda given: given]

    def encode(answers: list[str]) -> list[list[float]]:
        return [[float(answer.isupper())] for answer in answers]

    drawn = gs.draw_samples(policies, prompts, samples=2, encode=lambda answers: torch.tensor(encode(answers)))
    assert drawn.samples.shape == (3, 2, 2, 1)
    assert float(gs.snd(drawn)) == pytest.approx(1, rel=1e-6)


def test_policies_may_answer_with_samples_of_their_own() -> None:
    noise = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    policies = [lambda o, k=k: gs.Samples(o.unsqueeze(-2) + k * noise) for k in range(3)]
    seen = torch.randn(20, 2)
    expected = torch.stack([seen.unsqueeze(-2) + k * noise for k in range(3)], dim=1)
    assert torch.equal(gs.evaluate(policies, seen).samples, expected)  # type: ignore[attr-defined]
    assert gs.measure(policies, seen).value == pytest.approx(float(gs.snd(gs.Samples(expected))), rel=1e-6)
