from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import graphsnd as gs
from graphsnd import InputError
from graphsnd.control import ControlledPolicy, audit
from graphsnd.control.measurement import measure_points
from graphsnd.designs.design import Complete

AGENTS, FEATURES, ACTIONS = 5, 7, 2


def _policy(kind: str = "tanh-normal", runs: int = 2) -> ControlledPolicy:
    sources = [torch.Generator().manual_seed(seed) for seed in range(runs)]
    return ControlledPolicy.create(AGENTS, FEATURES, ACTIONS, generators=sources, hidden=(16, 16), kind=kind)


def _modules(policy: ControlledPolicy, run: int) -> tuple[nn.Sequential, list[nn.Sequential]]:
    """The same networks as ordinary modules, in float64."""

    def one(weights: list[Tensor], biases: list[Tensor]) -> nn.Sequential:
        parts: list[nn.Module] = []
        for weight, bias in zip(weights, biases, strict=True):
            layer = nn.Linear(*weight.shape).double()
            layer.weight.data, layer.bias.data = weight.detach().T.double(), bias.detach().flatten().double()
            parts += [layer, nn.Tanh()]
        return nn.Sequential(*parts[:-1])

    networks = policy.shared, policy.deviations
    every = [[one([w[run, i] for w in net.weights], [b[run, i] for b in net.biases]) for i in range(net.batch[1])]
             for net in networks]  # fmt: skip
    return every[0][0], every[1]


def test_means_and_scales_are_those_of_the_equation(generator: torch.Generator) -> None:
    policy, scale = _policy(), torch.tensor([0.3, 2.0])
    seen = torch.randn(2, AGENTS, 11, FEATURES, generator=generator)
    loc, sigma = policy.parameters_of(seen, scale)
    for run in range(2):
        shared, own = _modules(policy, run)
        for agent in range(AGENTS):
            rows = seen[run, agent].double()
            mean, raw = shared(rows).chunk(2, -1)
            expected = torch.tanh(mean) + float(scale[run]) * own[agent](rows)
            spread = torch.log1p(torch.exp(raw + math.log(math.expm1(0.99)))) + 0.01
            torch.testing.assert_close(loc[run, agent].double(), expected, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(sigma[run, agent].double(), spread, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [9, 40])
def test_deviations_on_shared_observations_and_on_request(count: int, generator: torch.Generator) -> None:
    policy = _policy()
    rows = torch.randn(2, count, FEATURES, generator=generator)
    every = policy.deviation(rows)
    assert every.shape == (2, count, AGENTS, ACTIONS)
    for run in range(2):
        own = _modules(policy, run)[1]
        expected = torch.stack([net(rows[run].double()) for net in own], 1)
        torch.testing.assert_close(every[run].double(), expected, rtol=1e-5, atol=1e-6)
    agents = torch.randint(AGENTS, (2, count, 3), generator=generator)
    some = policy.deviation(rows, agents)
    expected = every.gather(2, agents.unsqueeze(-1).expand(-1, -1, -1, ACTIONS))
    torch.testing.assert_close(some, expected, rtol=1e-5, atol=1e-6)
    second = policy.deviation(rows[1:], agents[1:], slice(1, 2))
    torch.testing.assert_close(second, some[1:], rtol=1e-5, atol=1e-6)


def test_categorical_logits_are_shared_plus_scaled() -> None:
    policy = _policy("categorical", runs=1)
    seen = torch.ones(1, AGENTS, 3, FEATURES)
    none = policy.parameters_of(seen, torch.tensor(0.0))[0]
    one, two = (policy.parameters_of(seen, torch.tensor(s))[0] for s in (1.0, 2.0))
    torch.testing.assert_close(none[:, :1].expand_as(none), none)
    torch.testing.assert_close(two - none, 2 * (one - none), rtol=1e-4, atol=1e-5)
    actions = torch.zeros(1, AGENTS, 3, dtype=torch.int64)
    assert policy.distribution(seen, torch.tensor(1.0)).log_prob(actions).shape == (1, AGENTS, 3)
    rows = torch.randn(50, FEATURES, generator=torch.Generator().manual_seed(0))
    once, twice, acting = (policy.team(0, s, squashed=s == 3) for s in (1, 2, 3))
    assert float(audit(twice, rows)) == pytest.approx(2 * float(audit(once, rows)), rel=1e-5)
    assert isinstance(acting.evaluate(rows), gs.Categorical)


@pytest.mark.parametrize("kind", ["tanh-normal", "gaussian", "categorical"])
def test_a_team_answers_as_the_policy_does(kind: str, generator: torch.Generator) -> None:
    policy, scale = _policy(kind), torch.tensor(0.7)
    rows = torch.randn(13, FEATURES, generator=generator)
    team = policy.team(1, scale, squashed=kind == "categorical")
    shown = rows.expand(2, AGENTS, -1, -1)
    parts = [part[1].detach().transpose(0, 1) for part in policy.parameters_of(shown, scale)]
    with torch.no_grad():
        behavior = team.evaluate(rows)
    expected = gs.Categorical(logits=parts[0]) if kind == "categorical" else gs.Gaussian(*parts)
    assert float(gs.snd(behavior)) == pytest.approx(float(gs.snd(expected)), rel=1e-5)
    agents = torch.tensor([[4, 0, 2]]).expand(13, -1)
    with torch.no_grad():
        some = team.partial(rows, agents)
    assert float(gs.snd(some)) == pytest.approx(float(gs.snd(_choose(expected, [4, 0, 2]))), rel=1e-5)
    assert gs.measure(team, rows, design="agents:2").value > 0


def _choose(behavior: gs.Behavior, agents: list[int]) -> gs.Behavior:
    if isinstance(behavior, gs.Categorical):
        return gs.Categorical(behavior.probs[:, agents])
    assert isinstance(behavior, gs.Gaussian)
    return gs.Gaussian(behavior.loc[:, agents], behavior.scale[:, agents])


def test_diversity_is_linear_in_the_scale_and_bounded(generator: torch.Generator) -> None:
    policy = _policy(runs=1)
    rows = torch.randn(200, FEATURES, generator=generator)
    bare = float(measure_points(Complete(), policy.deviation(rows.unsqueeze(0))[0].detach()).value)
    for scale in (0.1, 1.0, 3.0):
        team = policy.team(0, scale)
        assert float(audit(team, rows)) == pytest.approx(scale * bare, rel=1e-4)
        distances = gs.pairwise(team.evaluate(rows)).detach()
        bound = team.bound(gs.Wasserstein())
        assert bound is not None
        assert float(distances.max()) < bound
    squashed = policy.team(0, 3.0, squashed=True)
    assert float(audit(squashed, rows)) < 3.0 * bare
    assert float(audit(policy.team(0, 0.0), rows)) == 0.0


def test_networks_that_do_not_fit() -> None:
    policy = _policy()
    with pytest.raises(InputError, match="shared"):
        ControlledPolicy(policy.deviations, policy.deviations)
    with pytest.raises(InputError, match="shared"):
        ControlledPolicy(policy.shared, policy.deviations, kind="categorical")
    with pytest.raises(InputError, match="kind"):
        ControlledPolicy(policy.shared, policy.deviations, kind="beta")
    with pytest.raises(InputError, match="scale"):
        policy.parameters_of(torch.zeros(2, AGENTS, 3, FEATURES), torch.ones(AGENTS))
