from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.errors import InputError

jax = pytest.importorskip("jax")
pytest.importorskip("flax")
import jax.numpy as jnp  # noqa: E402
from flax import linen, nnx  # noqa: E402

from graphsnd.integrations.jax import JaxTeam, nnx_team, stack  # noqa: E402

pytestmark = pytest.mark.integration
ROWS = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


class Network(linen.Module):
    outputs: int = 2

    @linen.compact
    def __call__(self, observations: Any) -> Any:
        return linen.Dense(self.outputs, name="last")(linen.tanh(linen.Dense(8, name="first")(observations)))


def parameters(network: Any, agents: int = 3) -> Any:
    keys = jax.random.split(jax.random.key(0), agents)
    return jax.vmap(network.init, in_axes=(0, None))(keys, jnp.zeros((1, 4)))


def outputs(params: Any, rows: Any = ROWS) -> list[Any]:
    """Every agent's outputs by NumPy in float64."""
    layers = params["params"]
    answers = []
    for agent in range(len(layers["first"]["kernel"])):
        x = np.asarray(rows, np.float64)
        for name in ("first", "last"):
            kernel, bias = (np.asarray(layers[name][part][agent], np.float64) for part in ("kernel", "bias"))
            x = x @ kernel + bias
            x = np.tanh(x) if name == "first" else x
        answers.append(x)
    return answers


def mean_apart(answers: list[Any], apart: Any) -> float:
    return float(np.mean([apart(a, b).mean() for a, b in combinations(answers, 2)]))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def euclidean(a: Any, b: Any) -> Any:
    return np.linalg.norm(a - b, axis=-1)


def with_scale(loc: Any) -> Any:
    return np.append(loc, np.exp(loc), -1)


def variation(a: Any, b: Any) -> Any:
    return np.abs(softmax(a) - softmax(b)).sum(-1) / 2


# By name: from the network's outputs to an answer, and how far two rows of outputs are apart.
ANSWERS: dict[str, tuple[Any, Any]] = {
    "action": (lambda x: x, euclidean),
    "loc and log_std, with a value": (
        lambda x: {"mean": x, "log_std": x, "value": x[:, 0]},
        lambda a, b: euclidean(with_scale(a), with_scale(b)),
    ),
    "loc and one scale": (lambda x: {"loc": x, "scale": jnp.float32(0.5)}, euclidean),
    "logits": (lambda x: {"logits": x}, variation),
    "probs": (lambda x: {"probs": jax.nn.softmax(x)}, variation),
    "actions": (lambda x: {"actions": x}, euclidean),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_stacked_parameters_have_the_number_of_a_loop(name: str) -> None:
    answer, apart = ANSWERS[name]
    network = Network()
    params = parameters(network)
    team = JaxTeam(lambda p, o: answer(network.apply(p, o)), params, names=["a", "b", "c"])
    assert (team.agents, team.names) == (3, ("a", "b", "c"))
    for rows in (jnp.asarray(ROWS), torch.tensor(ROWS), ROWS, torch.tensor(ROWS).reshape(5, 6, 4)):
        assert gs.measure(team, rows).value == pytest.approx(mean_apart(outputs(params), apart), rel=1e-5)
    assert team.evaluate(torch.tensor(ROWS).reshape(5, 6, 4)).batch_shape == (5, 6)
    assert gs.measure(team, ROWS, design="agents:2", seed=0).value > 0


def test_new_parameters_show_and_nothing_is_compiled_again() -> None:
    network, calls = Network(), []

    def apply(params: Any, observations: Any) -> Any:
        calls.append(1)  # runs when it is traced
        return network.apply(params, observations)

    team = JaxTeam(apply, parameters(network))
    first = gs.measure(team, ROWS).value
    traced = len(calls)
    renamed = team.with_names(["a", "b", "c"])
    for one, scale in ((team, 2), (renamed, 3)):
        one.params = jax.tree.map(lambda leaf, scale=scale: scale * leaf, one.params)
        assert gs.measure(one, ROWS).value == pytest.approx(mean_apart(outputs(one.params), euclidean), rel=1e-5)
    assert gs.measure(team, ROWS).value != first
    assert len(calls) == traced


def test_a_linen_module_and_single_parameters() -> None:
    network = Network()
    singles = [network.init(jax.random.key(seed), jnp.zeros((1, 4))) for seed in range(3)]
    team = JaxTeam(network, stack(singles))
    assert gs.measure(team, ROWS).value == pytest.approx(mean_apart(outputs(stack(singles)), euclidean), rel=1e-5)
    same = JaxTeam(network, stack(singles[:1] * 3))
    assert gs.measure(same, ROWS).value == 0.0


def told_outputs(params: Any, agent: int, columns: Any, identity: Any) -> Any:
    """One agent's outputs by NumPy in float64, with its identity written by hand."""
    rows = np.array(ROWS, np.float64)
    rows[:, columns] = identity[agent]
    return outputs(jax.tree.map(lambda leaf: leaf[None], params), rows)[0]


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("vectors", [False, True])
def test_agents_that_share_a_network_have_the_number_of_a_loop(name: str, vectors: bool) -> None:
    answer, apart = ANSWERS[name]
    network, calls = Network(), []
    identity = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32) if vectors else np.eye(3)

    def apply(params: Any, observations: Any) -> Any:
        calls.append(1)  # runs when it is traced
        return answer(network.apply(params, observations))

    params = network.init(jax.random.key(0), jnp.zeros((1, 4)))
    told = {"columns": [3, 0, 1], "identity": torch.tensor(identity) if vectors else None}
    team = JaxTeam.shared(apply, params, ["a", "b", "c"], **told)
    for scale in (1, 2):  # new parameters show, and nothing is compiled again
        team.params = jax.tree.map(lambda leaf, scale=scale: scale * leaf, params)
        expected = mean_apart([told_outputs(team.params, agent, [3, 0, 1], identity) for agent in range(3)], apart)
        for rows in (ROWS, jnp.asarray(ROWS), torch.tensor(ROWS).reshape(5, 6, 4)):
            estimate = gs.measure(team, rows)
            assert estimate.value == pytest.approx(expected, rel=1e-5)
            assert estimate.names == ("a", "b", "c")
        if scale == 1:
            traced = len(calls)
    assert len(calls) == traced
    renamed = team.with_names(["x", "y", "z"])
    renamed.params = params
    first = mean_apart([told_outputs(params, agent, [3, 0, 1], identity) for agent in range(3)], apart)
    assert gs.measure(renamed, ROWS).value == pytest.approx(first, rel=1e-5)
    assert gs.measure(team, ROWS).value == pytest.approx(expected, rel=1e-5)
    assert gs.measure(team, ROWS, design="agents:2", seed=0).policy_evaluations == 60


class Embedding(linen.Module):
    """Told by an argument: an integer that is looked up."""

    @linen.compact
    def __call__(self, observations: Any, id: Any) -> Any:
        return {"logits": linen.Dense(2, name="last")(observations + linen.Embed(3, 4, name="table")(id)), "value": 0}


def test_a_network_that_is_told_by_an_argument() -> None:
    network = Embedding()
    params = network.init(jax.random.key(0), jnp.zeros((1, 4)), jnp.zeros(1, int))
    team = JaxTeam.shared(network, params, 3, argument="id", identity=torch.tensor([2, 0, 1]))
    layers = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params["params"])
    answers = [
        (ROWS + layers["table"]["embedding"][agent]) @ layers["last"]["kernel"] + layers["last"]["bias"]
        for agent in (2, 0, 1)
    ]
    assert gs.measure(team, ROWS).value == pytest.approx(mean_apart(answers, variation), rel=1e-5)
    alike = JaxTeam.shared(network, params, 3, argument="id", identity=torch.tensor([1, 1, 1]))
    assert gs.measure(alike, ROWS).value == 0


class Layers(nnx.Module):
    def __init__(self, rngs: Any) -> None:
        self.first, self.last = nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, observations: Any) -> Any:
        return self.last(self.drop(self.norm(nnx.tanh(self.first(observations)))))

    def by_hand(self) -> Any:
        take = lambda value: np.asarray(value[...], np.float64)  # noqa: E731
        x = np.tanh(ROWS @ take(self.first.kernel) + take(self.first.bias))
        x = (x - take(self.norm.mean)) / np.sqrt(take(self.norm.var) + 1e-5) * take(self.norm.scale) + take(
            self.norm.bias
        )
        return x @ take(self.last.kernel) + take(self.last.bias)


def test_nnx_modules_are_asked_in_evaluation_mode() -> None:
    modules = {name: Layers(nnx.Rngs(seed)) for seed, name in enumerate(("scout", "guard", "carrier"))}
    for module in modules.values():
        module.train()
        module(jnp.asarray(ROWS * 2))  # statistics of its own
    team = nnx_team(modules)
    assert team.names == ("scout", "guard", "carrier")
    answers = [module.by_hand() for module in modules.values()]
    assert gs.measure(team, ROWS).value == pytest.approx(mean_apart(answers, euclidean), rel=1e-4)
    assert modules["scout"].drop.deterministic is False
    listed = nnx_team([nnx.Linear(4, 2, rngs=nnx.Rngs(seed)) for seed in range(2)], answer=lambda x: {"logits": x})
    assert type(listed.evaluate(torch.tensor(ROWS))).__name__ == "Categorical"


def test_what_it_refuses() -> None:
    for params in ({"a": jnp.zeros((2, 3)), "b": jnp.zeros((3, 3))}, {"a": jnp.zeros(3), "b": 1.0}, jnp.float32(1), {}):
        with pytest.raises(InputError, match="agents first"):
            JaxTeam(lambda p, o: o, params)
    for answer, said in (("left", "several with names"), ({"mean": jnp.zeros(3)}, r"1 output: mean \(3,\)")):
        with pytest.raises(InputError, match=said):
            JaxTeam(lambda p, o, a=answer: a, jnp.zeros((2, 3))).evaluate(torch.tensor(ROWS))
    with pytest.raises(InputError, match="`team` to answer with shape"):
        JaxTeam(lambda p, o: o[:, 0], jnp.zeros((2, 3))).evaluate(torch.tensor(ROWS))
    critics = lambda p, o: (o @ p.T, o[:, :1] ** 2)  # noqa: E731
    with pytest.raises(InputError, match=r"2 outputs: \(30, 3\), \(30, 1\)"):
        JaxTeam(critics, jnp.ones((2, 3, 4))).evaluate(torch.tensor(ROWS))
    assert gs.measure(JaxTeam(critics, jnp.ones((2, 3, 4)), outputs="logits, value"), ROWS).value == 0
    with pytest.raises(InputError, match="differ in their parameters only"):
        nnx_team([nnx.Linear(4, 2, rngs=nnx.Rngs(0)), nnx.Linear(4, 2, use_bias=False, rngs=nnx.Rngs(0))])
