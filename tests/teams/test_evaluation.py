from __future__ import annotations

import numpy as np
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


class Stacked(nn.Module):
    """All agents at once, the agents axis added by the module."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights.clone())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...f,nfa->...na", observations, self.weights)


def answers(weight: torch.Tensor) -> dict[str, object]:
    """One policy for each kind of answer."""
    spread = lambda o: (o @ weight).exp() + 0.1  # noqa: E731
    return {
        "tensor": lambda o: o @ weight,
        "tuple": lambda o: (o @ weight, spread(o)),
        "tuple with a number": lambda o: (o @ weight, 0.5),
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
    for team in (modules, tuple(modules), nn.ModuleList(modules), Stacked(weights)):
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


def test_layout_of_the_observations_does_not_matter(observations: torch.Tensor, weights: torch.Tensor) -> None:
    for team in ([linear(w) for w in weights], Stacked(weights)):
        grid = gs.evaluate(team, observations)
        flat = gs.evaluate(team, observations.reshape(-1, FEATURES))
        assert (grid.batch_shape, flat.batch_shape) == ((6, 5), (30,))
        torch.testing.assert_close(gs.pairwise(grid), gs.pairwise(flat))


def test_one_observation(weights: torch.Tensor) -> None:
    behavior = gs.evaluate([linear(w) for w in weights], torch.ones(FEATURES))
    assert (behavior.agents, behavior.observations) == (N, 1)


def test_gradient_reaches_the_policies(observations: torch.Tensor, weights: torch.Tensor) -> None:
    team = [linear(w) for w in weights]
    gs.snd(gs.evaluate(team, observations)).backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for module in team for p in module.parameters())


def test_identical_policies(observations: torch.Tensor, weights: torch.Tensor) -> None:
    policy = linear(weights[0])
    assert gs.snd(gs.evaluate([policy] * 4, observations)) == 0


@pytest.mark.parametrize("share_params", [False, True])
def test_torchrl_multi_agent_mlp(share_params: bool, observations: torch.Tensor) -> None:
    modules = pytest.importorskip("torchrl.modules")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mlp = modules.MultiAgentMLP(
            n_agent_inputs=FEATURES,
            n_agent_outputs=ACTIONS,
            n_agents=N,
            centralized=False,
            share_params=share_params,
            depth=1,
        )
    behavior = gs.evaluate(mlp, observations, agents=N)
    assert (behavior.agents, behavior.batch_shape) == (N, (6, 5))
    # As a rollout would: the network sees one observation for each agent, and agent i's answer is row i.
    for o, answer in zip(observations.reshape(-1, FEATURES), behavior.actions.reshape(-1, N, ACTIONS), strict=True):
        torch.testing.assert_close(mlp(o.expand(N, FEATURES)), answer)
    assert bool(gs.snd(behavior) == 0) == share_params


def test_squashed_is_passed_on(observations: torch.Tensor, weights: torch.Tensor) -> None:
    def policy(weight: torch.Tensor):  # type: ignore[no-untyped-def]
        return lambda o: D.TransformedDistribution(D.Normal(o @ weight, 0.3), [D.TanhTransform()])

    team = [policy(w) for w in weights]
    assert isinstance(gs.evaluate(team, observations), gs.Quantiles)
    before = gs.evaluate(team, observations, squashed=False)
    expected = gs.evaluate([lambda o, w=w: (o @ w, 0.3) for w in weights], observations)
    torch.testing.assert_close(gs.pairwise(before), gs.pairwise(expected))


LINEAR = nn.Linear(FEATURES, ACTIONS)


@pytest.mark.parametrize(
    ("team", "words"),
    [
        ([], ["holds no policy"]),
        ([LINEAR, nn.Linear(FEATURES, 3)], ["shape of actions", "(2,)", "(3,)"]),
        ([LINEAR, lambda o: (LINEAR(o), 1.0)], ["one family", "Deterministic and Gaussian"]),
        ([lambda o: LINEAR(o).unsqueeze(1)] * 2, ["one agent", "1, '...')"]),
        ([lambda o: {"loc": o}] * 2, ["distribution", "dict", "graphsnd.Categorical(logits"]),
        ([lambda o: [o, o]] * 2, ["(loc, scale)", "list"]),
        (["policy"], ["modules or callables", "list that holds str", "graphsnd.integrations"]),
        ({"a": "policy"}, ["modules or callables"]),
        (7, ["modules or callables", "int"]),
        (None, ["modules or callables", "NoneType"]),
        # One policy instead of a list of one: its last batch axis must not be taken for the team.
        (LINEAR, ["(6, 5, 'agents', '...')", "(6, 5, '...')", "as a list"]),
        ([lambda o: LINEAR(o).mean(0)] * 2, ["one agent", "(2,)"]),
    ],
)
def test_bad_teams(team: object, words: list[str], observations: torch.Tensor) -> None:
    with pytest.raises(gs.InputError) as error:
        gs.evaluate(team, observations)  # type: ignore[arg-type]
    assert error.value.name == "team"
    assert all(word in str(error.value) for word in words), str(error.value)


def test_wrong_number_of_agents(observations: torch.Tensor, weights: torch.Tensor) -> None:
    with pytest.raises(gs.InputError, match=r"`team`.*\(6, 5, 5, '...'\).*\(6, 5, 3, '...'\)"):
        gs.evaluate(lambda o: torch.zeros(6, 5, 3, 2), observations, agents=5)


@pytest.mark.parametrize("bad", [[[0.0, 1.0]], None, torch.tensor(1.0), np.array(["a"])])
def test_bad_observations(bad: object) -> None:
    with pytest.raises(gs.InputError, match=r"`observations`.*\(..., features\)"):
        gs.evaluate([LINEAR, LINEAR], bad)  # type: ignore[arg-type]


def test_no_observations() -> None:
    with pytest.raises(gs.InputError, match="at least one observation"):
        gs.evaluate([LINEAR, LINEAR], torch.zeros(0, FEATURES))


def test_diverged_policy_is_named() -> None:
    with pytest.raises(gs.InputError, match=r"finite.*diverged"):
        gs.evaluate([LINEAR, lambda o: LINEAR(o) * torch.nan], torch.ones(3, FEATURES))
    team = {name: nn.Linear(FEATURES, 2) for name in ("scout", "carrier", "guard")}
    team["guard"].weight.data.fill_(torch.nan)
    for each in (team, {name: (lambda o, policy=policy: policy(o)) for name, policy in team.items()}):
        for measure in (gs.evaluate, gs.measure):
            with pytest.raises(gs.InputError, match=r"finite.*the answer of policy guard\.$"):
                measure(each, torch.ones(3, FEATURES))


@pytest.mark.parametrize("first", ["cpu", "meta"])
def test_policies_without_weights_are_named(first: str) -> None:
    team = {"scout": nn.Linear(FEATURES, 2, device=first), "guard": nn.Linear(FEATURES, 2, device="meta")}
    name = "scout" if first == "meta" else "guard"
    for measure in (gs.evaluate, gs.measure):
        with pytest.raises(
            gs.InputError, match=rf"^Expected `team`.*policy {name} on the meta device\. Load its weights"
        ):
            measure(team, torch.ones(3, FEATURES))
    with pytest.raises(gs.InputError, match="the stacked module on the meta device"):
        gs.evaluate(nn.Linear(FEATURES, 2, device="meta"), torch.ones(3, FEATURES))


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


@pytest.mark.parametrize("layer", [LINEAR, nn.GRU(FEATURES, 2), nn.Conv1d(FEATURES, 2, 1)])
def test_observations_of_another_dtype_say_how_to_convert(layer: nn.Module) -> None:
    shown = np.zeros((30, FEATURES) if layer is LINEAR else (30, FEATURES, FEATURES))  # float64, as NumPy's are
    with pytest.raises(gs.InputError, match=r"torch.float64.*Convert them to the dtype of its weights.*\.float\(\)"):
        gs.evaluate([layer] * 2, shown, feature_dims=shown.ndim - 1)


@pytest.mark.parametrize(
    ("team", "words"),
    [
        ("team.npz", r"graphsnd behaviour, got 'team.npz' of type str"),
        ([np.zeros((5, 2))] * 2, r"`observations` beside.*graphsnd.Deterministic\(actions\)"),
    ],
)
def test_what_is_not_policies_says_what_to_pass(team: object, words: str) -> None:
    with pytest.raises(gs.InputError, match=words):
        gs.measure(team)


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


@pytest.mark.parametrize("agents", [2, 3, 4])
def test_agents_first_that_take_no_single_row_are_refused(agents: int) -> None:
    weights = torch.randn(agents, 3, 2, generator=torch.Generator().manual_seed(0))

    def policy(rows: torch.Tensor) -> torch.Tensor:
        if len(rows) < 2:
            raise ValueError("takes a batch")
        return torch.einsum("of,nfa->noa", rows, weights)

    with pytest.raises(gs.InputError, match="Put the agents axis second"):
        gs.evaluate(policy, torch.randn(agents, 3))
    behavior = gs.evaluate(lambda rows: policy(rows).transpose(0, 1), torch.randn(agents, 3))
    assert behavior.agents == agents


@pytest.mark.parametrize("kind", ["own batch size", "squeezed", "statistics of the batch"])
def test_a_stacked_module_that_takes_no_single_row_is_evaluated(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    weights, seen = (torch.randn(*shape, generator=generator) for shape in ((5, 4, 2), (5, 4)))
    norm = nn.BatchNorm1d(4, affine=False, track_running_stats=False)

    def policy(rows: torch.Tensor) -> torch.Tensor:
        if kind == "own batch size" and len(rows) != 5:
            raise ValueError("takes five rows")
        rows = norm(rows) if kind == "statistics of the batch" else rows
        answer = torch.einsum("of,nfa->ona", rows, weights)
        return answer.squeeze() if kind == "squeezed" else answer

    behavior = gs.evaluate(policy, seen)
    assert (behavior.observations, behavior.agents) == (5, 5)
    torch.testing.assert_close(gs.snd(behavior), gs.snd(gs.Deterministic(policy(seen))))


def test_agents_first_are_refused_by_the_shapes_that_were_given() -> None:
    weights = torch.randn(5, 4, 2, generator=torch.Generator().manual_seed(0))
    with pytest.raises(gs.InputError, match=r"'agents', '...'\), got \(5, \d+, '...'\)|agents axis"):
        gs.evaluate(lambda rows: torch.einsum("of,nfa->noa", rows, weights), torch.ones(10, 4))


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
    assert float(gs.snd(drawn)) == 1


@pytest.mark.parametrize(
    ("policies", "options", "match"),
    [
        ([lambda o: ["text"]], {}, "encode="),
        ([lambda o: o.argmax(-1)], {}, "encode="),
        ([lambda o: torch.distributions.Normal(o, 1.0)], {}, r"sample\(\)"),
        ([lambda o: o, lambda o: o[:, :1]], {}, "one shape"),
        ([], {}, "`policies`"),
        ([lambda o: o], {"samples": 0}, "`samples`"),
        (lambda o: o, {}, "list or dict of policies"),
        ([nn.Linear(7, 2)], {}, "policy 0 can take"),
    ],
)
def test_refusals(policies, options: dict[str, int], match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(gs.InputError, match=match):
        gs.draw_samples(policies, torch.zeros(4, 2), **options)


def test_modules_in_containers_of_torch() -> None:
    modules = {"a": nn.Linear(2, 1), "b": nn.Linear(2, 1)}
    drawn = gs.draw_samples(nn.ModuleDict(modules), torch.ones(4, 2), samples=2)  # type: ignore[arg-type]
    assert drawn.names == ("a", "b")
    listed = gs.draw_samples(nn.ModuleList(modules.values()), torch.ones(4, 2), samples=2)  # type: ignore[arg-type]
    assert torch.equal(drawn.samples, listed.samples)


def test_policies_that_draw_are_sent_here() -> None:
    with pytest.raises(gs.InputError, match="draw_samples"):
        gs.evaluate([noisy(1), noisy(1)], torch.zeros(8, 2))


def test_policies_may_answer_with_samples_of_their_own() -> None:
    noise = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    policies = [lambda o, k=k: gs.Samples(o.unsqueeze(-2) + k * noise) for k in range(3)]
    seen = torch.randn(20, 2)
    expected = torch.stack([seen.unsqueeze(-2) + k * noise for k in range(3)], dim=1)
    assert torch.equal(gs.evaluate(policies, seen).samples, expected)  # type: ignore[attr-defined]
    assert gs.measure(policies, seen).value == pytest.approx(float(gs.snd(gs.Samples(expected))), rel=1e-6)
