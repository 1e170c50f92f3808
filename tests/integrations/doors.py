"""Every way into the library on the real packages, beside a hand-written loop in float64.

``python -m tests.integrations.doors`` prints the table. What a user writes is text that is run as it stands, and its
lines are counted (in BenchMARL it is the callback); the loops are those of the tests.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from itertools import chain, combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from benchmarl import algorithms
from benchmarl.models import CnnConfig, GruConfig, LstmConfig
from torch import Tensor, nn

import graphsnd as gs
from graphsnd.teams.policies import Unroll
from tests.integrations import test_jax as jax
from tests.integrations import test_pettingzoo as pettingzoo
from tests.integrations import test_sb3 as sb3
from tests.integrations import test_torchrl as torchrl
from tests.integrations.benchmarl import test_evaluation as benchmarl
from tests.integrations.benchmarl.conftest import make_experiment
from tests.teams import test_probing as lists
from tests.teams import test_saved as checkpoints

MEASURE = "import graphsnd as gs\nvalue = gs.measure(policies, observations)"
WHOLE = "import graphsnd as gs\nvalue = gs.snd(gs.evaluate(policies, observations, whole=True))"
ACTOR = "import graphsnd as gs\nfrom graphsnd.integrations.torchrl import ActorTeam\n"
ACTOR += "value = gs.measure(ActorTeam(actor), rollout)"
CALLBACK = "from graphsnd.integrations.benchmarl import DiversityCallback\n"
CALLBACK += "experiment = Experiment(..., callbacks=[DiversityCallback()])"
LOAD = "import graphsnd as gs\nfrom graphsnd.integrations.benchmarl import load_teams\n"
LOAD += 'value = gs.measure(load_teams(checkpoint)["agents"], observations)'
METRIC = """import graphsnd as gs
from graphsnd.integrations.torchmetrics import GraphSnd, SystemNeuralDiversity
from torchmetrics import MetricCollection
metrics = MetricCollection({"snd": SystemNeuralDiversity(), "graph": GraphSnd(graph)})
for observations in batches:
    metrics.update(gs.evaluate(policies, observations))
value = metrics.compute()[name]"""

COLLECT = """import graphsnd as gs
from graphsnd.integrations.pettingzoo import collect
seen = collect(env, policies, steps=30)
value = gs.measure(policies, seen.pooled, clusters=seen.clusters)"""
MODELS = "import graphsnd as gs\nfrom graphsnd.integrations.sb3 import ModelTeam\n"
MODELS += "value = gs.measure(ModelTeam(models), observations)"

RLLIB = "from graphsnd.integrations.rllib import DiversityCallback\nconfig.callbacks(DiversityCallback)"
RESTORE = "import graphsnd as gs\nfrom graphsnd.integrations.rllib import load_team\n"
RESTORE += "value = gs.measure(load_team(checkpoint), observations)"
MODULES = "import graphsnd as gs\nfrom graphsnd.integrations.rllib import ModuleTeam\n"
MODULES += "value = gs.measure(ModuleTeam(modules), observations)"

JAX = "import graphsnd as gs\nfrom graphsnd.integrations.jax import JaxTeam\n"
JAX += "value = gs.measure(JaxTeam(apply, params), observations)"
NNX = "import graphsnd as gs\nfrom graphsnd.integrations.jax import nnx_team\n"
NNX += "value = gs.measure(nnx_team(modules), observations)"
STATES = "import graphsnd as gs\nvalue = gs.measure(gs.Team.load(folder, policy=make), observations)"


@dataclass(frozen=True)
class Door:
    """One way in."""

    name: str
    lines: int  # that a user writes
    measured: float
    by_hand: float

    @property
    def difference(self) -> float:
        return abs(self.measured - self.by_hand)


def try_code(title: str, code: str, by_hand: float, /, **given: Any) -> Door:
    """Run what a user writes, which leaves ``value``."""
    with redirect_stdout(StringIO()):  # BenchMARL tells what it reloads
        exec(code, given)
    value = given["value"]
    return Door(title, len(code.splitlines()), float(value.detach() if isinstance(value, Tensor) else value), by_hand)


class Lstm(nn.Module):
    """A policy of sequences ``[time, batch, features]``."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(lists.FEATURES, 8), nn.Linear(8, lists.ACTIONS)

    def forward(self, sequences: Tensor) -> Tensor:
        return self.head(self.lstm(sequences)[0])

    def one_step_at_a_time(self, sequence: Tensor) -> Tensor:
        w, u, b, c = (p.detach() for p in self.lstm.parameters())
        memory = state = torch.zeros(8)
        outputs = []
        for o in sequence:
            write, forget, new, read = (w @ o + b + u @ state + c).chunk(4)
            memory = forget.sigmoid() * memory + write.sigmoid() * new.tanh()
            state = read.sigmoid() * memory.tanh()
            outputs.append(self.head(state).detach())
        return torch.stack(outputs)


def of_lists() -> Iterator[Door]:
    """Yield policies in lists and dicts."""
    rows = torch.randn(40, lists.FEATURES)
    team: list[Any] = [lists.plain() for _ in range(3)]
    named = dict(zip(("scout", "carrier", "guard"), team, strict=True))
    by_hand = lists.by_hand([policy(rows).detach() for policy in team])
    yield try_code("dict of MLPs", MEASURE, by_hand, policies=named, observations=rows)
    yield try_code("dict of MLPs, NumPy observations", MEASURE, by_hand, policies=named, observations=rows.numpy())
    team = [lists.normalised() for _ in range(3)]
    for policy in team:
        policy(torch.randn(30, lists.FEATURES))  # statistics of its own
    by_hand = lists.by_hand([policy.eval()(rows).detach() for policy in team])
    yield try_code("BatchNorm", MEASURE, by_hand, policies=[policy.train() for policy in team], observations=rows)
    team = [nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(1), nn.Linear(16, 2)) for _ in range(3)]
    images = torch.randn(20, 3, 4, 4)
    by_hand = lists.by_hand([torch.cat([policy(image[None]) for image in images]).detach() for policy in team])
    code = WHOLE.replace("whole=True", "feature_dims=3")
    yield try_code("CNN", code, by_hand, policies=team, observations=images)
    sequences = torch.randn(20, 6, lists.FEATURES)
    for name, kind in (("GRU", lists.Recurrent), ("LSTM", Lstm)):
        team = [kind() for _ in range(3)]
        alone = [torch.cat([policy.one_step_at_a_time(s) for s in sequences.unbind(1)]) for policy in team]
        by_hand = lists.by_hand(alone)
        yield try_code(f"{name} on sequences", WHOLE, by_hand, policies=team, observations=sequences)
    cells = [nn.GRUCell(lists.FEATURES, 2) for _ in range(3)]
    steps = [Unroll(lambda o, h, c=cell: (c(o, h),) * 2) for cell in cells]
    states: list[list[Tensor]] = [[torch.zeros(6, 2)] for _ in cells]
    for state, cell in zip(states, cells, strict=True):
        for seen in sequences:
            state.append(cell(seen, state[-1]).detach())
    by_hand = lists.by_hand([torch.cat(state[1:]) for state in states])
    yield try_code("step and state (Unroll)", WHOLE, by_hand, policies=steps, observations=sequences)
    networks = [lists.GraphNetwork() for _ in range(3)]
    joint = torch.randn(15, 3, lists.FEATURES)
    yield try_code("small GNN", WHOLE, lists.seated_by_hand(networks, joint), policies=networks, observations=joint)
    same = [lists.plain()] * 3
    yield try_code("shared parameters: list", MEASURE, 0.0, policies=same, observations=rows)
    same = [lists.GraphNetwork()] * 3
    yield try_code("shared parameters: GNN", WHOLE, 0.0, policies=same, observations=joint)


def of_torchrl() -> Iterator[Door]:
    """Yield TorchRL's actors."""
    plain = ACTOR.replace("(actor)", "(actor, squashed=False)")
    normal, euclidean = torchrl.normal, lambda a, b: float((a - b).norm())
    rollout = torchrl.rollout()
    for name, code, actor, apart in (
        ("TorchRL ProbabilisticActor, before the tanh", plain, torchrl.gaussian(), normal),
        ("TorchRL ProbabilisticActor, TanhNormal", ACTOR, torchrl.gaussian(), squashed),
        ("TorchRL QValueActor", ACTOR, torchrl.greedy(), lambda a, b: float(a.argmax() != b.argmax())),
        ("TorchRL TensorDictModule", ACTOR, torchrl.module(2), euclidean),
    ):
        yield try_code(name, code, torchrl.by_hand(actor, apart), actor=actor, rollout=rollout)
    network, seen = torchrl.network(2), rollout[torchrl.OBSERVATION]
    yield try_code("TorchRL MultiAgentMLP", ACTOR, torchrl.by_hand(network, euclidean), actor=network, rollout=seen)
    shared = torchrl.gaussian(share_params=True)
    yield try_code("shared parameters: TorchRL", ACTOR, 0.0, actor=shared, rollout=rollout)


def squashed(a: Tensor, b: Tensor) -> float:
    """2-Wasserstein distance after a tanh, by the quantiles of each action."""
    quantiles = torch.special.ndtri((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)
    extract = torchrl.NormalParamExtractor()
    one, other = (torch.tanh(loc[:, None] + scale[:, None] * quantiles) for loc, scale in map(extract, (a, b)))
    return float((one - other).square().mean(1).sum().sqrt())


def of_benchmarl() -> Iterator[Door]:
    """Yield the last number of experiments: every algorithm with MLPs, then every other model with IPPO."""
    from graphsnd.integrations.benchmarl import DiversityCallback

    mlp = (benchmarl.MLP, benchmarl.head)
    apart = dict.fromkeys(("Ippo", "Mappo", "Isac", "Masac"), squashed)
    apart |= dict.fromkeys(("Iddpg", "Maddpg"), benchmarl.squashed_action)
    apart |= dict.fromkeys(("Iql", "Vdn", "Qmix"), benchmarl.other_choice)
    runs: list[tuple[str, str, Any, Any, dict[str, Any]]] = [(f"{name.upper()}, MLP", name, *mlp, {}) for name in apart]
    recurrent, graph = benchmarl.RNN, {"critic_model": benchmarl.MLP}
    runs += [
        ("IPPO, GNN", "Ippo", benchmarl.gnn(), benchmarl.graph_conv, graph),
        ("IPPO, GRU", "Ippo", GruConfig(**recurrent), benchmarl.gru, {}),
        ("IPPO, LSTM", "Ippo", LstmConfig(**recurrent), benchmarl.lstm, {}),
        ("IPPO, CNN", "Ippo", CnnConfig(**benchmarl.CNN), benchmarl.cnn, {"task": benchmarl.pictures()}),
    ]
    lines = len(CALLBACK.splitlines())
    for shown, name, model, answer, options in runs:
        callbacks = [diversity := DiversityCallback(), loop := benchmarl.Loop(answer, apart[name])]
        run_quietly(name, model, callbacks, share_policy_params=False, **options)
        yield Door(f"BenchMARL {shown}", lines, diversity.rows[-1]["snd_of_actions"], loop.values[-1])
    run_quietly("Ippo", benchmarl.MLP, [diversity := DiversityCallback()])
    yield Door("shared parameters: BenchMARL", lines, diversity.rows[-1]["snd_of_actions"], 0.0)
    for title, shared in (("BenchMARL checkpoint", False), ("shared parameters: BenchMARL checkpoint", True)):
        callbacks = [loop := benchmarl.Loop(benchmarl.head, squashed), keep := benchmarl.Keep()]
        with TemporaryDirectory() as folder:
            options = {"share_policy_params": shared, "checkpoint_at_end": True, "folder": folder}
            run_quietly("Ippo", benchmarl.MLP, callbacks[shared:], **options)
            (path,) = Path(folder).rglob("checkpoint_*.pt")
            seen = keep.batch["agents", "observation"]
            if not shared:
                loop.on_batch_collected(keep.batch)  # with the policies as they are at the end
            by_hand = 0.0 if shared else loop.values[-1]
            yield try_code(title, LOAD, by_hand, checkpoint=path, observations=seen)


def run_quietly(algorithm: str, model: Any, callbacks: list[Any], folder: str | None = None, **options: Any) -> None:
    """Run two iterations without the progress bar."""
    options |= {"prefer_continuous_actions": algorithm not in ("Iql", "Vdn", "Qmix")}
    config = getattr(algorithms, f"{algorithm}Config")
    with TemporaryDirectory() as other, redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_experiment(Path(folder or other), config, model, callbacks=callbacks, **options).run()


def of_torchmetrics() -> Iterator[Door]:
    """Yield metrics of one collection, which see two batches."""
    team, graph = [lists.plain() for _ in range(4)], gs.graphs.uniform(4, 3, seed=0)
    batches = [torch.randn(7, lists.FEATURES), torch.randn(30, lists.FEATURES)]
    actions = [policy(torch.cat(batches)).detach().double() for policy in team]
    for name, pairs in (("snd", list(combinations(range(4), 2))), ("graph", graph.edges.tolist())):
        apart = [float((a - b).norm()) for i, j in pairs for a, b in zip(actions[i], actions[j], strict=True)]
        given = {"policies": team, "graph": graph, "batches": batches, "name": name}
        yield try_code(f"torchmetrics collection: {name}", METRIC, sum(apart) / len(apart), **given)
    given = {"policies": team[:1] * 4, "graph": graph, "batches": batches, "name": "snd"}
    yield try_code("shared parameters: torchmetrics", METRIC, 0.0, **given)


def of_pettingzoo() -> Iterator[Door]:
    """Yield teams that act in an environment; the loop sees what they see by the loop of PettingZoo's documentation."""
    networks = [pettingzoo.linear(seed) for seed in range(3)]
    greedy = dict(zip(pettingzoo.AGENTS, [lambda o, n=n: one_hot(n(o)) for n in networks], strict=True))
    choose = lambda name, o: int(networks[pettingzoo.AGENTS.index(name)](torch.tensor(o)).argmax())  # noqa: E731
    rows = pettingzoo.played(pettingzoo.spread(), choose, 30, seed=0)
    seen = torch.tensor([row for name in pettingzoo.AGENTS for row in rows[name]])
    choices = [network(seen).argmax(-1) for network in networks]
    by_hand = sum(float((a != b).double().mean()) for a, b in combinations(choices, 2)) / 3
    for title, env in (("parallel environment", pettingzoo.spread()), ("factory", pettingzoo.spread)):
        yield try_code(f"PettingZoo {title}", COLLECT, by_hand, policies=greedy, env=env)
    same = dict.fromkeys(pettingzoo.AGENTS, pettingzoo.discrete(0))
    yield try_code("shared parameters: PettingZoo AEC", COLLECT, 0.0, policies=same, env=pettingzoo.spread("env"))


def one_hot(logits: Tensor) -> gs.Categorical:
    """The greedy choice, as a distribution that draws nothing else."""
    return gs.Categorical(probs=nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).float())


def of_sb3() -> Iterator[Door]:
    """Yield populations of Stable-Baselines3 that have learnt for two rollouts."""
    for algorithm in sb3.ALGORITHMS:
        models = sb3.population(algorithm)
        for model in models.values():
            model.learn(64)
        seen = sb3.observations(algorithm, models)
        by_hand = sb3.by_hand(algorithm, models, seen)
        yield try_code(f"Stable-Baselines3 {algorithm}", MODELS, by_hand, models=models, observations=seen)
    same = [model] * 3
    yield try_code("shared parameters: Stable-Baselines3", MODELS, 0.0, models=same, observations=seen)


def of_jax() -> Iterator[Door]:
    """Yield stacked parameters with every kind of answer, and Flax modules."""
    network = jax.Network()
    params = jax.parameters(network)
    for name, (answer, apart) in jax.ANSWERS.items():
        apply = lambda p, o, a=answer: a(network.apply(p, o))  # noqa: E731
        by_hand = jax.mean_apart(jax.outputs(params), apart)
        yield try_code(f"JAX function, {name}", JAX, by_hand, apply=apply, params=params, observations=jax.ROWS)
    by_hand = jax.mean_apart(jax.outputs(params), jax.euclidean)
    yield try_code("Flax linen module", JAX, by_hand, apply=network, params=params, observations=jax.ROWS)
    modules = [jax.Layers(jax.nnx.Rngs(seed)) for seed in range(3)]
    by_hand = jax.mean_apart([module.by_hand() for module in modules], jax.euclidean)
    yield try_code("Flax nnx modules", NNX, by_hand, modules=modules, observations=jax.ROWS)
    same = jax.jax.tree.map(lambda leaf: leaf[:1].repeat(3, axis=0), params)
    yield try_code("shared parameters: JAX", JAX, 0.0, apply=network, params=same, observations=jax.ROWS)


def of_checkpoints() -> Iterator[Door]:
    """Yield folders of state dicts."""
    team = checkpoints.networks()
    for kind, ending in (("pt", "pt"), ("nested", "pt"), ("safetensors", "safetensors")):
        with TemporaryDirectory() as folder:
            for name, network in zip("abc", team, strict=True):
                checkpoints.write(network, Path(folder) / f"{name}.{ending}", kind)
            given = {"folder": folder, "make": checkpoints.make, "observations": checkpoints.ROWS}
            yield try_code(f"state dicts, {kind}", STATES, checkpoints.by_hand(team), **given)


def of_rllib() -> Iterator[Door]:
    """Yield what the callback logs with RLlib's algorithms, and a checkpoint; in the environment of its tests."""
    from functools import partial

    from tests.integrations import test_rllib as rllib

    rows, lines = torch.randn(40, 18), len(RLLIB.splitlines())
    for name in rllib.ALGORITHMS:
        rllib.Watched.values.clear()
        algorithm = rllib.build(name, partial(rllib.Watched, name, every=20))
        logged = algorithm.train()["env_runners"]["diversity"]["snd"]
        values = rllib.Watched.values
        yield Door(f"RLlib {name}", lines, float(logged), sum(values) / len(values))
        modules = algorithm.env_runner.module
        with TemporaryDirectory() as folder:
            given = {"checkpoint": algorithm.save_to_path(folder), "observations": rows}
            yield try_code(f"RLlib checkpoint, {name}", RESTORE, rllib.by_hand(name, modules, rows), **given)
        algorithm.stop()
    same = dict.fromkeys(rllib.AGENTS, modules["agent_0"])
    yield try_code("shared parameters: RLlib", MODULES, 0.0, modules=same, observations=rows)


def doors() -> Iterator[Door]:
    """Yield all of them."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for some in (
            of_lists,
            of_torchrl,
            of_benchmarl,
            of_torchmetrics,
            of_pettingzoo,
            of_sb3,
            of_jax,
            of_checkpoints,
        ):
            yield from some()


def main() -> None:
    """Print the table."""
    logging.getLogger("torchrl").setLevel(logging.WARNING)  # it tells of its buffers in the middle of the table
    print("| entry | lines | measured | by hand | difference |\n| --- | --- | --- | --- | --- |")
    rllib = () if find_spec("tree") is None else of_rllib()  # with PYTHONPATH=.rllib
    for door in chain(doors(), rllib):
        row = (door.name, door.lines, f"{door.measured:.7g}", f"{door.by_hand:.7g}", f"{door.difference:.1g}")
        print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
