"""Agents that share one network, through every entry: lines of user code, the number, and the number by hand.

``pytest -rP tests/integrations/test_entries.py`` prints the table. Entries of absent packages are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
AGENTS, FEATURES, ACTIONS = 3, 4, 5  # features beside the identity, which are the last columns
ROWS = np.random.default_rng(0).uniform(-1, 1, (40, FEATURES + AGENTS)).astype(np.float32)
Layers = list[tuple[Any, Any]]


def by_hand(layers: Layers, rows: Any = ROWS) -> float:
    """Total variation of the softmax behind tanh layers, one agent, one pair and one observation at a time, float64."""
    distances = []
    for row in np.asarray(rows, np.float64).reshape(-1, rows.shape[-1]):
        probs = []
        for agent in range(AGENTS):
            hidden = np.append(row[:FEATURES], np.eye(AGENTS)[agent])
            for index, (weight, bias) in enumerate(layers):
                hidden = np.asarray(weight, np.float64) @ hidden + np.asarray(bias, np.float64)
                hidden = np.tanh(hidden) if index < len(layers) - 1 else hidden
            raised = np.exp(hidden - hidden.max())
            probs.append(raised / raised.sum())
        distances += [np.abs(one - other).sum() / 2 for one, other in combinations(probs, 2)]
    return float(np.mean(distances))


def linear_layers(*modules: nn.Module) -> Layers:
    parts = (part for module in modules for part in module.modules() if isinstance(part, nn.Linear))
    return [(part.weight.detach().numpy(), part.bias.detach().numpy()) for part in parts]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES + AGENTS, 8), nn.Tanh(), nn.Linear(8, ACTIONS))


def of_torch() -> tuple[dict[str, Any], float]:
    import graphsnd as gs

    net = network()
    given = {"policy": lambda rows: gs.Categorical(logits=net(rows)), "rows": torch.tensor(ROWS)}
    return given, by_hand(linear_layers(net))


def of_sb3() -> tuple[dict[str, Any], float]:
    sb3, gymnasium = pytest.importorskip("stable_baselines3"), pytest.importorskip("gymnasium")

    class Seat(gymnasium.Env):  # type: ignore[misc, name-defined]
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (FEATURES + AGENTS,))
        action_space = gymnasium.spaces.Discrete(ACTIONS)

    model = sb3.PPO("MlpPolicy", Seat(), policy_kwargs={"net_arch": [8]}, seed=0, device="cpu")
    with torch.no_grad():
        model.policy.action_net.weight.mul_(100)  # it begins near 0
    return {"model": model}, by_hand(linear_layers(model.policy.mlp_extractor.policy_net, model.policy.action_net))


def of_rllib() -> tuple[dict[str, Any], float]:
    pytest.importorskip("tree")
    pytest.importorskip("ray.rllib")
    import gymnasium
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    torch.manual_seed(0)
    module = DefaultPPOTorchRLModule(
        observation_space=gymnasium.spaces.Box(-1.0, 1.0, (FEATURES + AGENTS,)),
        action_space=gymnasium.spaces.Discrete(ACTIONS),
        model_config=DefaultModelConfig(fcnet_hiddens=[8], vf_share_layers=False),
    )
    return {"module": module}, by_hand(linear_layers(module.encoder.actor_encoder, module.pi))


def of_torchrl() -> tuple[dict[str, Any], float]:
    pytest.importorskip("torchrl")
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.modules import MultiAgentMLP, OneHotCategorical, ProbabilisticActor

    torch.manual_seed(0)
    sizes = {"n_agent_inputs": FEATURES + AGENTS, "n_agent_outputs": ACTIONS, "n_agents": AGENTS}
    net = MultiAgentMLP(**sizes, centralized=False, share_params=True, depth=1, num_cells=8)
    key, logits = ("agents", "observation"), ("agents", "logits")
    body = TensorDictModule(net, in_keys=[key], out_keys=[logits])
    keys = {"in_keys": {"logits": logits}, "out_keys": [("agents", "action")]}
    b0, w0, b1, w1 = (each.detach().numpy() for _, each in sorted(net.params.flatten_keys(".").items()))
    actor = ProbabilisticActor(body, **keys, distribution_class=OneHotCategorical)
    rows = torch.tensor(ROWS[:36]).reshape(12, AGENTS, -1)
    return {"actor": actor, "rollout": TensorDict({key: rows}, [12])}, by_hand([(w0, b0), (w1, b1)], ROWS[:36])


def of_benchmarl() -> tuple[dict[str, Any], float]:
    pytest.importorskip("benchmarl")
    from benchmarl.models import MlpConfig
    from tensordict import TensorDict
    from torchrl.modules import OneHotCategorical, ProbabilisticActor

    from tests.integrations.benchmarl.conftest import specs

    torch.manual_seed(0)
    config = MlpConfig(num_cells=[8], layer_class=nn.Linear, activation_class=nn.Tanh)
    model = config.get_model(**specs(AGENTS, FEATURES + AGENTS, ACTIONS, discrete=True))
    keys = {"in_keys": {"logits": ("agents", "logits")}, "out_keys": [("agents", "action")]}
    policy = ProbabilisticActor(model, **keys, distribution_class=OneHotCategorical)
    b0, w0, b1, w1 = (each.detach().numpy() for _, each in sorted(model.mlp.params.flatten_keys(".").items()))
    seen = torch.tensor(ROWS[:36]).reshape(12, AGENTS, -1).clone()
    seen[..., FEATURES:] = torch.eye(AGENTS)  # what each agent is told, in the batch
    batch = TensorDict({"agents": TensorDict({"observation": seen}, [12, AGENTS])}, [12])
    return {"policy": policy, "batch": batch}, by_hand([(w0, b0), (w1, b1)], ROWS[:36])


def of_pettingzoo() -> tuple[dict[str, Any], float]:
    pytest.importorskip("pettingzoo")
    pytest.importorskip("mpe2")
    import graphsnd as gs
    from graphsnd.integrations.pettingzoo import collect
    from tests.integrations.test_pettingzoo import Indicated, spread

    torch.manual_seed(0)
    net = nn.Linear(18 + AGENTS, ACTIONS)
    policy = lambda rows: gs.Categorical(logits=net(rows))  # noqa: E731
    seen, total = collect(Indicated(spread()), policy, 20), []
    for row in seen.pooled.double():
        each = [torch.cat([row[:18], told]) for told in torch.eye(AGENTS, dtype=torch.float64)]
        probs = [(net.weight.double() @ one + net.bias.double()).softmax(-1).detach() for one in each]
        total += [float((one - other).abs().sum()) / 2 for one, other in combinations(probs, 2)]
    return {"policy": policy, "env": Indicated(spread())}, float(np.mean(total))


def of_jax() -> tuple[dict[str, Any], float]:
    jax, linen = pytest.importorskip("jax"), pytest.importorskip("flax.linen")

    class Policy(linen.Module):  # type: ignore[misc, name-defined]
        @linen.compact
        def __call__(self, rows: Any) -> Any:
            hidden = linen.tanh(linen.Dense(8)(rows))
            return {"logits": linen.Dense(ACTIONS)(hidden)}

    params = Policy().init(jax.random.key(0), ROWS)
    layers = [(np.asarray(params["params"][name]["kernel"]).T, params["params"][name]["bias"]) for name in
              ("Dense_0", "Dense_1")]  # fmt: skip
    return {"policy": Policy(), "params": params}, by_hand(layers)


def of_torchmetrics() -> tuple[dict[str, Any], float]:
    pytest.importorskip("torchmetrics")
    import graphsnd as gs

    given, number = of_torch()
    return {"team": gs.Team.shared(given["policy"], AGENTS, columns=slice(-AGENTS, None)), **given}, number


def of_epymarl() -> tuple[dict[str, Any], float]:
    """A GRU cell between two layers, along two episodes of twenty steps."""
    torch.manual_seed(0)
    first, cell, last = nn.Linear(FEATURES + AGENTS, 8), nn.GRUCell(8, 8), nn.Linear(8, ACTIONS)

    def agent(rows: Any, memory: Any) -> Any:
        memory = cell(first(rows).relu(), memory)
        return last(memory), memory

    def linear(name: str, seen: Any) -> Any:
        return seen @ weights[f"weight_{name}"].T + weights[f"bias_{name}"]

    weights = {name: each.detach().double().numpy() for name, each in cell.named_parameters()}
    (w0, b0), (w1, b1) = ([np.asarray(each, np.float64) for each in pair] for pair in linear_layers(first, last))
    probs = []
    for told in np.eye(AGENTS):
        memory = np.zeros((2, 8))
        for rows in ROWS.reshape(20, 2, -1).astype(np.float64):
            seen = np.concatenate([rows[:, :FEATURES], np.tile(told, (2, 1))], 1)
            given, kept = linear("ih", np.maximum(seen @ w0.T + b0, 0)), linear("hh", memory)
            reset, update = (1 / (1 + np.exp(-given[:, i : i + 8] - kept[:, i : i + 8])) for i in (0, 8))
            memory = (1 - update) * np.tanh(given[:, 16:] + reset * kept[:, 16:]) + update * memory
            raised = np.exp(memory @ w1.T + b1)
            probs.append(raised / raised.sum(-1, keepdims=True))
    each = np.stack(probs).reshape(AGENTS, 40, ACTIONS)
    number = np.mean([np.abs(one - other).sum(-1).mean() / 2 for one, other in combinations(each, 2)])
    return {"agent": agent, "episodes": torch.tensor(ROWS).reshape(20, 2, -1)}, float(number)


# By entry: what a user has, the number by hand, and the user's code behind it, which ends with the number.
ENTRIES: dict[str, tuple[Callable[[], tuple[dict[str, Any], float]], str]] = {
    "PyTorch": (
        of_torch,
        """
        team = gs.Team.shared(policy, agents=3, columns=slice(-3, None))
        snd = gs.measure(team, rows).value
        """,
    ),
    "EPyMARL, GRU": (
        of_epymarl,
        """
        from graphsnd.teams.policies import Unroll
        def play_as(me):
            def step(rows, memory):
                logits, memory = agent(torch.cat([rows[:, :-3], me.expand(len(rows), 3)], 1), memory)
                return gs.Categorical(logits=logits), memory
            return Unroll(step)
        snd = gs.measure([play_as(me) for me in torch.eye(3)], episodes, whole=True).value
        """,
    ),
    "SB3 PPO": (
        of_sb3,
        """
        from graphsnd.integrations.sb3 import ModelTeam
        team = ModelTeam.shared(model, agents=3, columns=slice(-3, None))
        snd = gs.measure(team, rows).value
        """,
    ),
    "RLlib PPO": (
        of_rllib,
        """
        from graphsnd.integrations.rllib import ModuleTeam
        team = ModuleTeam.shared(module, agents=3, columns=slice(-3, None))
        snd = gs.measure(team, rows).value
        """,
    ),
    "TorchRL": (
        of_torchrl,
        """
        from graphsnd.integrations.torchrl import ActorTeam
        team = ActorTeam.shared(actor, agents=3, columns=slice(-3, None))
        snd = gs.measure(team, rollout).value
        """,
    ),
    "BenchMARL": (
        of_benchmarl,
        """
        from graphsnd.integrations.benchmarl.evaluation import evaluate_group
        behavior = evaluate_group(policy, batch, "agents", columns=slice(-3, None))
        snd = gs.measure(behavior).value
        """,
    ),
    "PettingZoo": (
        of_pettingzoo,
        """
        from graphsnd.integrations.pettingzoo import collect
        seen = collect(env, policy, steps=20)
        team = gs.Team.shared(policy, list(seen.by_agent), columns=slice(-3, None))
        snd = gs.measure(team, seen.pooled, clusters=seen.clusters).value
        """,
    ),
    "JAX": (
        of_jax,
        """
        from graphsnd.integrations.jax import JaxTeam
        team = JaxTeam.shared(policy, params, agents=3, columns=slice(-3, None))
        snd = gs.measure(team, rows).value
        """,
    ),
    "torchmetrics": (
        of_torchmetrics,
        """
        from graphsnd.integrations.torchmetrics import SystemNeuralDiversity
        metric = SystemNeuralDiversity()
        metric.update(team.evaluate(rows))
        snd = float(metric.compute())
        """,
    ),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_shared_networks_have_the_number_of_a_loop(entry: str) -> None:
    import graphsnd as gs

    make, code = ENTRIES[entry]
    given, expected = make()
    lines = code.split("\n        ")[1:-1]
    space = {"gs": gs, "torch": torch, "rows": torch.tensor(ROWS), **given}
    exec("\n".join(lines), space)
    print(f"| {entry} | {len(lines)} | {space['snd']:.6f} | {expected:.6f} | {abs(space['snd'] - expected):.0e} |")
    assert expected > 0.01
    assert space["snd"] == pytest.approx(expected, abs=1e-6)
