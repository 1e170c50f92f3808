from __future__ import annotations

import copy

import pytest
import torch
from tensordict import TensorDict

from graphsnd import Deterministic, snd
from graphsnd.control import DiCo
from graphsnd.control.measurement import measure_points
from graphsnd.designs.design import Complete
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.model import COUNTED, Deviating, DiCoModel
from tests.integrations.benchmarl.conftest import build


def batch(generator: torch.Generator, frames: int = 6, agents: int = 4) -> TensorDict:
    observation = torch.randn(frames, agents, 5, generator=generator)
    return TensorDict({"agents": TensorDict({"observation": observation}, [frames, agents])}, [frames])


def by_hand(model: DiCoModel, observations: torch.Tensor, pairs) -> float:
    """Unscaled diversity in float64, one network, one observation and one pair at a time."""
    net = copy.deepcopy(model.network).requires_grad_(False).double().deviations
    total, count = 0.0, 0
    for row in observations.reshape(-1, 5).double():
        answers = []
        for agent in range(model.n_agents):
            hidden = torch.tanh(row @ net.weights[0][agent] + net.biases[0][agent, 0])
            answers.append(hidden @ net.weights[1][agent] + net.biases[1][agent, 0])
        for i, j in pairs:
            total += float((answers[i] - answers[j]).norm())
            count += 1
    return total / count


def test_numbers_are_those_of_the_free_controller(generator) -> None:
    model, controller = build(target=0.1, tau=0.2), DiCo(0.1, tau=0.2, design=Complete())
    state = controller.initial()
    for _ in range(5):
        data = batch(generator)
        observations = data["agents", "observation"]
        values = model.network.deviations_at(observations.flatten(0, 1)).detach()
        scale, state, _ = controller.step(measure_points(controller.design, values, generator), state)
        logits = model(data)["agents", "logits"]
        assert float(model.scale) == pytest.approx(float(scale), rel=1e-6)
        assert float(model.estimate) == pytest.approx(float(state.estimate), rel=1e-6)
        expected = model.network(observations, torch.tensor(float(scale)))
        torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-6)
        with torch.no_grad():  # an optimiser would move them
            for each in model.parameters():
                each += 0.05 * torch.randn(each.shape, generator=generator)


def test_estimate_follows_the_specification(generator) -> None:
    model, tau, target = build(target=0.1, tau=0.2), 0.2, 0.1
    pairs = [(i, j) for i in range(4) for j in range(i)]
    first, second = batch(generator), batch(generator)
    raw = [by_hand(model, data["agents", "observation"], pairs) for data in (first, second)]
    model(first)
    assert float(model.estimate) == pytest.approx(raw[0], rel=1e-6)
    model(second)
    expected = (1 - tau) * raw[0] + tau * raw[1]
    assert float(model.estimate) == pytest.approx(expected, rel=1e-6)
    assert float(model.scale) == pytest.approx(target / expected, rel=1e-6)


def test_a_sparse_graph_is_drawn_afresh_and_again_the_same(generator) -> None:
    data = [batch(generator) for _ in range(4)]
    runs = []
    for seed in (3, 3, 4):
        model = build(design="bernoulli:0.5", tau=1.0)
        model.draws[0] = seed
        runs.append([])
        for each in data:
            model(each)
            runs[-1].append(float(model.estimate))
    assert runs[0] == runs[1] != runs[2]
    # With tau 1 the estimate is the last draw: on the same batch another graph gives another number.
    before = float(model.estimate)
    assert any(model(data[-1]) is not None and model.estimate != before for _ in range(8))


def test_only_training_forwards_move_the_estimate(generator) -> None:
    model, data = build(), batch(generator)
    with torch.no_grad():
        model(data)
    assert model.estimate.isnan()
    assert float(model.scale) == 1.0
    model(data)
    before = model.controller_state.clone()
    with torch.no_grad():
        model(batch(generator))
    target = copy.deepcopy(model).requires_grad_(False)
    target(batch(generator))  # as a loss runs its target networks
    assert torch.equal(model.controller_state, before)
    assert torch.equal(target.controller_state, before)
    assert model.tally.tolist()[0] == 1


@pytest.mark.parametrize("design", ["complete", "agents:2"])
def test_a_measurement_that_is_not_finite_is_counted_and_left_out(design: str, generator) -> None:
    model, data = build(design=design), batch(generator)
    model(data)
    before = float(model.estimate)
    data["agents", "observation"][0, 0] = torch.nan
    model(data)
    assert float(model.estimate) == before
    assert dict(zip(COUNTED, model.tally.tolist(), strict=True))["invalid"] == 1


def test_gradients_reach_both_networks_and_not_the_measurement(generator) -> None:
    model, data = build(), batch(generator)
    logits = model(data)["agents", "logits"]
    scale = float(model.scale)
    logits.sum().backward()
    weight = model.network.deviations.biases[-1]
    # d sum / d bias = scale for each of 6 frames, if the scale is a constant.
    torch.testing.assert_close(weight.grad, torch.full_like(weight, 6 * scale))
    assert model.network.shared.weights[0].grad.abs().sum() > 0


def test_functional_parameters_write_to_the_same_buffers(generator) -> None:
    model = build()
    parameters = TensorDict.from_module(model, as_module=True)
    with parameters.to_module(model):  # what every loss of TorchRL does
        model(batch(generator))
    assert model.estimate.isfinite()
    assert model.draws.tolist()[1] == 1


@pytest.mark.parametrize("target", [0.1, [0.05, 0.8]])
def test_state_dict_goes_round(target, generator) -> None:
    options = {"target": target, "design": "bernoulli:0.3", "tau": 0.5}
    model, data = build(**options), [batch(generator) for _ in range(5)]
    for each in data[:3]:
        model(each)
        for _ in range(4):
            model.observe(torch.randn((), generator=generator))
    other = build(**options)
    other.draws[0] = 99
    other.load_state_dict(model.state_dict())
    for each in data[3:]:  # the next graphs too
        assert torch.equal(model(each)["agents", "logits"], other(each)["agents", "logits"])
    assert torch.equal(model.controller_state, other.controller_state)
    assert torch.equal(copy.deepcopy(model).controller_state, model.controller_state)


def test_neighbours_need_positions(generator) -> None:
    data = batch(generator)
    with pytest.raises(InputError, match="positions"):
        build(design="knn:1")(data)
    model = build(design="knn:1", positions=2, tau=1.0)
    total = 0.0
    for frame in data["agents", "observation"]:  # pairs of this frame, on the observations of this frame
        apart = torch.cdist(frame[:, :2], frame[:, :2]).fill_diagonal_(torch.inf)
        pairs = {tuple(sorted((i, int(apart[i].argmin())))) for i in range(4)}
        total += by_hand(model, frame, pairs) / 6
    model(data)
    assert float(model.estimate) == pytest.approx(total, rel=1e-6)


def test_gradients_through_the_measurement(generator) -> None:
    data = batch(generator)
    model = build(target=0.1, tau=1.0, differentiable=True)
    pairs = torch.combinations(torch.arange(4))
    rows = data["agents", "observation"].flatten(0, 1)
    model(data)["agents", "logits"].square().sum().backward()
    gradients = [each.grad.clone() for each in model.network.deviations.parameters()]
    model.zero_grad()
    values = model.network.deviations_at(rows)
    scale = 0.1 / (values[:, pairs[:, 0]] - values[:, pairs[:, 1]]).norm(dim=-1).mean()
    model.network(data["agents", "observation"], scale).square().sum().backward()
    for one, other in zip(gradients, model.network.deviations.parameters(), strict=True):
        torch.testing.assert_close(one, other.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("target", "scale"), [(None, 1.0), (0.0, 0.0)])
def test_without_control_and_without_deviations(target, scale, generator) -> None:
    model, data = build(target=target), batch(generator)
    logits = model(data)["agents", "logits"]
    assert float(model.scale) == scale
    expected = model.network(data["agents", "observation"], torch.tensor(scale))
    torch.testing.assert_close(logits, expected)
    assert model.estimate.isnan()  # nothing to control, so nothing was measured


@pytest.mark.parametrize(
    "options",
    [{"observations": 20}, *({"design": text} for text in ("bernoulli:0.5", "matching", "agents:2"))],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_cheaper_measurements_agree_on_average(options, generator) -> None:
    model, data = build(**options, tau=1.0), batch(generator, frames=20)
    exact = by_hand(model, data["agents", "observation"], [(i, j) for i in range(4) for j in range(i)])
    estimates = []
    for _ in range(40):
        model(data)
        estimates.append(float(model.estimate))
    values = torch.tensor(estimates)
    assert values.std() > 0
    assert abs(float(values.mean()) - exact) < 5 * float(values.std()) / 40**0.5


def test_audit_is_snd_of_what_agents_do(generator) -> None:
    model, data = build(target=0.3, tau=1.0), batch(generator, frames=30)
    observations = data["agents", "observation"]
    model(data)
    # Every agent on the observations of agent k: tile them and read the model's own output.
    with torch.no_grad():
        shown = [observations[:, k : k + 1].expand(-1, 4, -1) for k in range(4)]
        locs = [model.network(rows, model.scale)[..., :2] for rows in shown]
    torch.testing.assert_close(model.audit(observations), snd(Deterministic(torch.stack(locs))))
    assert float(model.audit(observations)) == pytest.approx(0.3, rel=1e-4)
    few = model.audit(observations, most=3)
    torch.testing.assert_close(few, model.audit(observations[[0, 14, 29]]), rtol=0.2, atol=0)


def test_discrete_actions_are_controlled_in_logits(generator) -> None:
    model = build(outputs=6, spec={"discrete": True}, target=0.7, tau=1.0)
    data = batch(generator)
    logits = model(data)["agents", "logits"]
    assert logits.shape == (6, 4, 6)
    assert float(model.audit(data["agents", "observation"])) == pytest.approx(0.7, rel=1e-4)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="one range of actions"):
        build(spec={"high": torch.tensor([[1.0], [1.0], [1.0], [2.0]])})
    with pytest.raises(InputError, match="features"):
        build(outputs=3)
    with pytest.raises(InputError, match="design"):
        build(design="bernouli:0.1")


def make(**options) -> Deviating:
    options = {"agents": 3, "inputs": 5, "outputs": 4, "controlled": 2, "hidden": (8, 6), **options}
    return Deviating(**options, generator=torch.Generator().manual_seed(1)).double()


def mlp(network, agent: int, row: torch.Tensor) -> torch.Tensor:
    layers = list(zip(network.weights, network.biases, strict=True))
    for place, (weight, bias) in enumerate(layers):
        row = torch.einsum("i,io->o", row, weight[agent]) + bias[agent, 0]
        row = row.tanh() if place < len(layers) - 1 else row
    return row


@pytest.mark.parametrize("boxed", [True, False])
def test_forward_is_shared_plus_scaled_deviation(boxed: bool, generator) -> None:
    middle, reach = torch.tensor([0.5, -1.0]).double(), torch.tensor([2.0, 0.25]).double()
    network = make(box=torch.stack([middle, reach]) if boxed else None)
    observations = torch.randn(2, 7, 3, 5, generator=generator, dtype=torch.float64)
    outputs = network(observations, torch.tensor(0.3))
    for batch in range(2):
        for frame in range(7):
            for agent in range(3):
                row = observations[batch, frame, agent]
                shared = mlp(network.shared, 0, row)
                loc = torch.tanh(shared[:2]) * reach + middle if boxed else shared[:2]
                expected = torch.cat([loc + 0.3 * mlp(network.deviations, agent, row), shared[2:]])
                torch.testing.assert_close(outputs[batch, frame, agent], expected)


def test_all_agents_on_every_observation(generator) -> None:
    network = make()
    rows = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    deviations, actions = network.deviations_at(rows), network.actions_at(rows, torch.tensor(0.3))
    for o in range(6):
        for agent in range(3):
            own = mlp(network.deviations, agent, rows[o])
            torch.testing.assert_close(deviations[o, agent], own)
            torch.testing.assert_close(actions[o, agent], mlp(network.shared, 0, rows[o])[:2] + 0.3 * own)


def test_logits_deviate_without_their_mean(generator) -> None:
    network = make(controlled=4, discrete=True)
    rows = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    deviations = network.deviations_at(rows)
    torch.testing.assert_close(deviations.sum(-1), torch.zeros(6, 3).double())
    plain = make(controlled=4).deviations_at(rows)
    # The policies are those of uncentred logits.
    torch.testing.assert_close(deviations.softmax(-1), plain.softmax(-1))
