"""Valid calls: a good value for every parameter of every public callable, by its name, and instances for methods."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import torch
from torch import distributions as D

import graphsnd as gs
from graphsnd import control, designs, teams, training, worlds

Make = Callable[[], Any]


def _seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=_seeded())


@functools.cache
def folder() -> Path:
    """Return a folder of this process that is removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="graphsnd-campaign-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _categorical() -> gs.Categorical:
    return gs.Categorical(logits=_normal(3, 4, 5))


def _matrix() -> torch.Tensor:
    return gs.pairwise(gs.Deterministic(_normal(3, 4, 2)))


def _network(*batch: int, sizes: tuple[int, ...] = (2, 3, 2)) -> teams.StackedMLP:
    return teams.StackedMLP.create(batch, sizes, generator=_seeded())


def _team() -> teams.StackedTeam:
    return teams.StackedTeam(_network(4), teams.GaussianHead(2, batch=(4,)))


SETTINGS = {"iterations": 1, "environments": 2, "steps": 2, "epochs": 1, "minibatch": 4, "hidden": (3,)}


def _settings() -> training.Settings:
    return training.Settings(**SETTINGS, diversity_observations=4, diversity_every=1)


def _task() -> training.Task:
    return training.Task("dispersion", 2, {}, (0,), _settings())


def _trainer() -> training.Trainer:
    return _task().make_trainer()


@functools.cache
def _trained() -> Path:
    training.train(_task(), folder() / "trained")
    return folder() / "trained"


def _behavior_file() -> Path:
    gs.save_behavior(gs.Deterministic(_normal(3, 4, 2)), folder() / "loaded.npz")
    return folder() / "loaded.npz"


def _saved_team() -> Path:
    _team().save(folder() / "team")
    return folder() / "team"


@functools.cache
def _checkpoints() -> Path:
    path = Path(tempfile.mkdtemp(dir=folder()))
    for agent in range(3):
        torch.save(torch.nn.Linear(2, 2).state_dict(), path / f"agent_{agent}.pt")
    return path


def _accumulator(**options: Any) -> gs.SndAccumulator:
    accumulator = gs.SndAccumulator(4, **options)
    accumulator.update(gs.Deterministic(_normal(3, 4, 2)))
    return accumulator


def _estimate() -> gs.Estimate:
    return gs.measure(gs.Deterministic(_normal(3, 4, 2)))


MATRIX_PLOTS = ("heatmap", "tree", "map", "contributions", "graph")


def _figure() -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(1, 1))


# By the name of the parameter; "callable.parameter" comes first.
GOOD: dict[str, Make] = {
    "behavior": lambda: gs.Deterministic(_normal(3, 4, 2)),
    "pilot": lambda: gs.Deterministic(_normal(8, 4, 2)),
    "distance": gs.Wasserstein,
    "distances": _matrix,
    "graph": lambda: gs.graphs.bernoulli(4, 0.5, seed=1),
    "backend": lambda: "auto",
    "labels": lambda: ["a", "a", "b", "b"],
    "names": lambda: ["a", "b", "c", "d"],
    "n": lambda: 4,
    "agents": lambda: 4,
    "device": lambda: "cpu",
    "seed": lambda: 0,
    "seeds": lambda: (0,),
    "generator": _seeded,
    "generators": lambda: [_seeded()],
    "confidence": lambda: 0.9,
    "delta": lambda: 0.1,
    "d_max": lambda: 1.0,
    "m": lambda: 3,
    "p": lambda: 0.5,
    "k": lambda: 2,
    "r": lambda: 1.0,
    "degree": lambda: 2,
    "pairs": lambda: 6,
    "std": lambda: 0.1,
    "eps": lambda: 0.1,
    "tolerance": lambda: 0.1,
    "method": lambda: "auto",
    "degrees": lambda: [2, 2, 2, 2],
    "features": lambda: _normal(4, 2),
    "accumulator": lambda: _accumulator(),
    "accumulate.clusters": lambda: None,
    "load.agents": lambda: [2, 2],
    "load.edges": lambda: 3,
    "load.features": lambda: 2,
    "load.observations": lambda: 8,
    "edges": lambda: torch.tensor([[0, 1], [2, 3]]),
    "weights": lambda: torch.tensor([1.0, 2.0]),
    "edge_index": lambda: torch.tensor([[0, 2], [1, 3]]),
    "A": lambda: torch.ones(4, 4) - torch.eye(4),
    "G": lambda: networkx.path_graph(4),
    "count": lambda: 2,
    "directions": lambda: 2,
    "text": lambda: "bernoulli:0.5",
    "argument": lambda: "design",
    "design": lambda: "bernoulli:0.5",
    "points": lambda: gs.behavior.points.Points(_normal(3, 4, 2), gs.behavior.points.Norm.EUCLIDEAN),
    "norm": lambda: gs.behavior.points.Norm.EUCLIDEAN,
    "values": lambda: _normal(3, 4, 2),
    "positions": lambda: _normal(3, 4, 2),
    "observations": lambda: _normal(3, 2),
    "team": lambda: [torch.nn.Linear(2, 2) for _ in range(4)],
    "policies": lambda: [torch.nn.Linear(2, 2) for _ in range(4)],
    "policy": lambda: lambda o: o,
    "distribution": lambda: D.Normal(_normal(3, 4, 2), torch.ones(2)),
    "loc": lambda: _normal(3, 4, 2),
    "scale": lambda: torch.ones(3, 4, 2),
    "covariance": lambda: torch.eye(2).expand(3, 4, 2, 2),
    "logits": lambda: _normal(3, 4, 5),
    "probs": lambda: None,
    "mask": lambda: torch.ones(3, 4, 5, dtype=torch.bool),
    "target": lambda: 0.5,
    "audits": lambda: [0.4, 0.5, 0.6],
    "applied": lambda: [0.4, 0.5, 0.6],
    "measured": lambda: torch.tensor(0.3),
    "state": lambda: control.State.start(),
    "selections": lambda: [designs.Selection(None)],
    "start": lambda: 0,
    "shape": lambda: (),
    "run": lambda: 0,
    "shared": lambda: _network(1, sizes=(2, 3, 4)),
    "deviations": lambda: _network(4, sizes=(2, 3, 2)),
    "bounds": lambda: (0.1, 10.0),
    "environments": lambda: 2,
    "iterations": lambda: 1,
    "horizon": lambda: 5,
    "done": lambda: torch.tensor([True, False]),
    "world": lambda: worlds.Dispersion(2, 2),
    "settings": _settings,
    "task": _task,
    "trainer": _trainer,
    "folder": _trained,
    "checkpoint_every": lambda: 1,
    "name": lambda: "x",
    "expected": lambda: "to be y",
    "got": lambda: "z",
    "step": lambda: lambda *_: None,
    "batch": lambda: (4,),
    "sizes": lambda: (2, 3, 2),
    "network": _network,
    "head": lambda: teams.GaussianHead(2, batch=(4,)),
    "path": _saved_team,
    "estimate": _estimate,
    "figure": _figure,
    "command": lambda: "graphsnd measure",
    "about": lambda: {"x": 1},
    "part": lambda: slice(None),
    "runs": lambda: slice(None),
    "hidden": lambda: (3,),
    "tol": lambda: 0.1,
    "rel_tol": lambda: 0.1,
    "clusters": lambda: torch.tensor([0, 0, 1]),
    "Categorical.embed.distance": gs.TotalVariation,
    "Joint.embed.distance": gs.Hellinger,
    "Categorical.accept.distance": gs.TotalVariation,
    "Joint.accept.distance": gs.Hellinger,
    "Joint.with_parts.parts": lambda: [gs.Deterministic(_normal(3, 4, 2)), gs.Deterministic(_normal(3, 4, 1))],
    "graphs.from_networkx.names": lambda: None,
    "Samples.samples": lambda: _normal(3, 4, 6, 2),
    "draw_samples.samples": lambda: 3,
    "draw_samples.encode": lambda: None,
    "CategoricalHead.bound.distance": gs.TotalVariation,
    "measure.d_max": lambda: 9.0,
    "measure.sources": lambda: None,
    "compare.first": lambda: gs.Deterministic(_normal(32, 4, 2)),
    "compare.second": lambda: gs.Deterministic(_normal(32, 4, 2)),
    "compare.observations": lambda: None,
    "compare.clusters": lambda: None,
    "Gaussian.scale": lambda: torch.ones(3, 4, 2),
    "Deterministic.actions": lambda: _normal(3, 4, 2),
    "Joint.parts": lambda: [_categorical(), gs.Categorical(logits=_normal(3, 4, 2))],
    "Joint.weights": lambda: [1.0, 2.0],
    "from_distribution.weights": lambda: None,
    "Joint.distance": lambda: [gs.Hellinger(), None],
    "Quantiles.values": lambda: _normal(3, 4, 2, 5).sort(-1).values,
    "Graph.inclusion": lambda: None,
    "Graph.sampling": lambda: None,
    "Graph.family": lambda: "custom",
    "MovingGraph.starts": lambda: torch.tensor([0, 1, 1, 2]),
    "MovingGraph.family": lambda: "custom",
    "MovingGraph.stack.graphs": lambda: [gs.graphs.complete(4)],
    "MovingGraph.slice.stop": lambda: 2,
    "Points.slice.start": lambda: 0,
    "Points.slice.stop": lambda: 2,
    "Points.dtype": lambda: torch.float32,
    "graphs.circulant.shifts": lambda: None,
    "graphs.cliques.labels": lambda: [0, 0, 1, 1],
    "graphs.uniform.m": lambda: 3,
    "graphs.knn.features": lambda: _normal(4, 2),
    "advise.observations": lambda: 10,
    "advise.goal": lambda: "global",
    "measure.positions": lambda: None,
    "measure.design": lambda: None,
    "measure.tol": lambda: None,
    "measure.rel_tol": lambda: None,
    "evaluate.agents": lambda: None,
    "teams.as_team.agents": lambda: None,
    "bounds.spectral_bound.graph": lambda: gs.graphs.random_regular(4, 2),
    "bounds.agent_effects.graph": lambda: gs.graphs.complete(4),
    "bounds.agent_effects.distances_on_edges": lambda: _normal(6).abs(),
    "bounds.regular_standard_error.graph": lambda: gs.graphs.complete(4),
    "bounds.regular_standard_error.distances_on_edges": lambda: _normal(6).abs(),
    "bounds.distortion.seconds": lambda: 1.0,
    "bounds.forwarding_index.seconds": lambda: 1.0,
    "bounds.forwarding_index.graph": lambda: gs.graphs.circulant(4, 2),
    "bounds.distortion.graph": lambda: gs.graphs.circulant(4, 2),
    "bounds.paper_random_regular_bound.degree": lambda: 3,
    "bounds.serfling.pairs": lambda: 6,
    "Template.size": lambda: 4,
    "Selection.edges": lambda: torch.tensor([[0, 1]]),
    "Selection.agents": lambda: None,
    "Selection.pairs.agents": lambda: 4,
    "Selection.weights": lambda: None,
    "Selection.take.values": lambda: _normal(3, 4, 2),
    "select.observations": lambda: 3,
    "select.device": lambda: torch.device("cpu"),
    "Nearest.draw.positions": lambda: _normal(4, 2),
    "Radius.draw.positions": lambda: _normal(4, 2),
    "parse.argument": lambda: "design",
    "SndAccumulator.clusters": lambda: False,
    "SndAccumulator.graph": lambda: None,
    "SndAccumulator.update.clusters": lambda: None,
    "SndAccumulator.merge.one": _accumulator,
    "SndAccumulator.merge.two": _accumulator,
    "SndAccumulator.from_state.state": lambda: _accumulator().state(),
    "SndAccumulator.from_state.graph": lambda: None,
    "control.audit.team": _team,
    "audit_error.last": lambda: 2,
    "tracking_error.last": lambda: 2,
    "DiCo.design": lambda: "complete",
    "DiCo.bootstrap": lambda: control.dico.Bootstrap.MEASURED,
    "State.estimate": lambda: torch.tensor(0.0, dtype=torch.float64),
    "State.begun": lambda: torch.tensor(False),
    "State.steps": lambda: torch.tensor(0),
    "State.of.tensors": lambda: control.State.start().tensors(),
    "ControlledPolicy.create.features": lambda: 2,
    "ControlledPolicy.create.actions": lambda: 2,
    "ControlledPolicy.create.hidden": lambda: (3,),
    "ControlledPolicy.shared": lambda: _network(1, 1, sizes=(2, 3, 4)),
    "ControlledPolicy.deviations": lambda: _network(1, 4, sizes=(2, 3, 2)),
    "ControlledPolicy.deviation.observations": lambda: _normal(1, 3, 2),
    "ControlledPolicy.deviation_of.observations": lambda: _normal(1, 3, 2),
    "ControlledPolicy.deviation_of.agents": lambda: torch.tensor([[[0, 1], [1, 2], [2, 3]]]),
    "ControlledPolicy.distribution.seen": lambda: _normal(1, 4, 3, 2),
    "ControlledPolicy.parameters_of.seen": lambda: _normal(1, 4, 3, 2),
    "ControlledPolicy.outputs_of.seen": lambda: _normal(1, 4, 3, 2),
    "ControlledPolicy.means_of.seen": lambda: _normal(1, 4, 3, 2),
    "ControlledPolicy.means_of.agents": lambda: torch.tensor([[0, 1, 2]]),
    "ControlledPolicy.means_of.wanted": lambda: torch.tensor([[True, False, True]]),
    "ControlledPolicy.scale": lambda: torch.tensor(1.0),
    "ControlledTeam.scale": lambda: torch.tensor(1.0),
    "partial.agents": lambda: torch.tensor([[0, 1], [1, 2], [2, 3]]),
    "CategoricalHead.behavior.output": lambda: _normal(3, 4, 5),
    "behavior.output": lambda: _normal(3, 4, 4),
    "GaussianHead.behavior.output": lambda: _normal(3, 4, 2),
    "GaussianHead.moments.output": lambda: _normal(3, 4, 2),
    "GaussianHead.bound.low": lambda: -torch.ones(4, 2),
    "GaussianHead.bound.high": lambda: torch.ones(4, 2),
    "DeterministicHead.behavior.output": lambda: _normal(3, 4, 2),
    "moments.output": lambda: _normal(3, 4, 4),
    "behavior.agents": lambda: None,
    "bound.low": lambda: -torch.ones(4, 4),
    "bound.high": lambda: torch.ones(4, 4),
    "actions": lambda: 2,
    "CategoricalHead.actions": lambda: 5,
    "CategoricalHead.bound.low": lambda: -torch.ones(4, 5),
    "CategoricalHead.bound.high": lambda: torch.ones(4, 5),
    "DeterministicHead.bound.low": lambda: -torch.ones(4, 2),
    "DeterministicHead.bound.high": lambda: torch.ones(4, 2),
    "mean": lambda: "tanh",
    "GaussianHead.scale": lambda: "independent",
    "GaussianHead.batch": tuple,
    "outputs_of.seen": lambda: _normal(1, 4, 3, 2),
    "StackedMLP.weights": lambda: [_normal(4, 2, 3), _normal(4, 3, 2)],
    "StackedMLP.biases": lambda: [_normal(4, 1, 3), _normal(4, 1, 2)],
    "StackedMLP.activation": lambda: "tanh",
    "StackedMLP.forward.inputs": lambda: _normal(4, 3, 2),
    "StackedTeam.network": lambda: _network(4),
    "load.path": _checkpoints,
    "load.policy": lambda: lambda: torch.nn.Linear(2, 2),
    "load.entry": lambda: None,
    "StackedTeam.load.path": _saved_team,
    "StackedTeam.load.policy": lambda: None,
    "load_behavior.path": _behavior_file,
    "save_behavior.path": lambda: folder() / "behavior.npz",
    "team.save.path": lambda: folder() / "saved",
    "save.path": lambda: folder() / "saved",
    "worlds.parse_world.text": lambda: "dispersion",
    "worlds.parse_world.agents": lambda: 2,
    "Dispersion.agents": lambda: 2,
    "Navigation.agents": lambda: 2,
    "SimpleSpread.agents": lambda: 2,
    "VmasWorld.agents": lambda: None,
    "PettingZooWorld.agents": lambda: None,
    "VmasWorld.scenario": lambda: "dispersion",
    "PettingZooWorld.factory": lambda: "mpe2:simple_spread_v3",
    "step.actions": lambda: torch.zeros(2, 2, 2),
    "SimpleSpread.step.actions": lambda: torch.zeros(2, 2, dtype=torch.int64),
    "VmasWorld.step.actions": lambda: torch.zeros(2, 4, 2),
    "PettingZooWorld.step.actions": lambda: torch.zeros(2, 3, dtype=torch.int64),
    "truncated.steps": lambda: torch.tensor([1, 2]),
    "ControlSettings.observations": lambda: 4,
    "ControlSettings.audit_observations": lambda: 4,
    "Settings.policy": lambda: "gaussian",
    "with_iterations.iterations": lambda: 2,
    "ControlTask.targets": lambda: (0.5,),
    "ControlTask.designs": lambda: ("complete",),
    "ControlTask.agents": lambda: 2,
    "ControlTask.options": dict,
    "ControlTask.world": lambda: "dispersion",
    "ControlTask.settings": lambda: training.ControlSettings(**SETTINGS, observations=4, audit_observations=4),
    "Task.world": lambda: "dispersion",
    "Task.agents": lambda: 2,
    "Task.options": dict,
    "Task.from_dict.saved": lambda: _task().to_dict(),
    "ControlTask.from_dict.saved": lambda: _control_task().to_dict(),
    "with_config.given": lambda: {"seeds": [0, 1], "settings": {"iterations": 2, "hidden": [3]}},
    "with_config.where": lambda: "run.yaml",
    "from_dict.where": lambda: Path("x"),
    "ControlTask.groups.device": lambda: torch.device("cpu"),
    "gamma": lambda: 0.9,
    "gae_lambda": lambda: 0.9,
    "training.evaluate_team.team": lambda: _trainer().team(0),
    "training.evaluate_team.steps": lambda: 2,
    "training.read_rows.kind": lambda: training.log.Row,
    "training.train.folder": lambda: Path(tempfile.mkdtemp(dir=folder())),
    "training.train.resume": lambda: False,
    "training.train_grid.folder": lambda: Path(tempfile.mkdtemp(dir=folder())),
    "training.train_grid.resume": lambda: False,
    "training.train_grid.ray": lambda: None,
    "Trainer.load.tensors": lambda: _trainer().tensors(),
    "Trainer.load.iteration": lambda: 1,
    "Trainer.update.watch": lambda: training.trainer.Stopwatch(torch.device("cpu")),
    "Trainer.method": lambda: training.trainer.independent,
    "ax": lambda: _figure().subplots(),  # those of pyplot would all stay open
    "groups": lambda: [0, 0, 1, 1],
    "plots.compare.intervals": lambda: {"a": (1.2, 1.8)},
    "plots.example_team.agents": lambda: 20,
    "plots.example_team.observations": lambda: 4,
    "plots.style.save_png.path": lambda: folder() / "figure.png",
    "plots.style.save_png.dpi": lambda: 20,
    **{f"plots.{name}.source": lambda: gs.Deterministic(_normal(3, 4, 2)) for name in MATRIX_PLOTS},
    "plots.graph.graph": lambda: gs.graphs.complete(4),
    "plots.graph.positions": lambda: None,
    "plots.over_time.steps": lambda: [1, 2],
    "plots.over_time.curves": lambda: {"a": _normal(3, 2)},
    "plots.compare.values": lambda: {"a": _normal(3)},
}


def _actor() -> Any:
    from tensordict.nn import TensorDictModule
    from torchrl.modules import MultiAgentMLP

    sizes = {"n_agent_inputs": 2, "n_agent_outputs": 2, "n_agents": 4, "depth": 1, "num_cells": 3}
    network = MultiAgentMLP(**sizes, centralized=False, share_params=False)
    return TensorDictModule(network, in_keys=["observation"], out_keys=["action"])


def _actor_team() -> Any:
    from graphsnd.integrations.torchrl import ActorTeam

    return ActorTeam(_actor())


def _batch() -> Any:
    from tensordict import TensorDict

    return TensorDict({"observation": _normal(3, 4, 2)}, [3])


def _metric(name: str) -> Any:
    from graphsnd.integrations import torchmetrics

    metric = (
        torchmetrics.GraphSnd(gs.graphs.complete(4)) if name == "GraphSnd" else torchmetrics.SystemNeuralDiversity()
    )
    metric.update(gs.Deterministic(_normal(3, 4, 2)))
    return metric


def _control_task() -> training.ControlTask:
    return training.ControlTask(2, (0.5,), settings=GOOD["ControlTask.settings"]())


GOOD |= {
    "ActorTeam.actor": _actor,
    "ActorTeam.agents": lambda: None,
    "ActorTeam.evaluate.observations": lambda: _normal(3, 2),
    "ActorTeam.read_observations.given": lambda: _normal(3, 2),
    "ActorTeam.weights": lambda: None,
    "DiversityHook.team": _actor_team,
    "DiversityHook.observations": lambda: 2,
    "DiversityHook.__call__.batch": _batch,
    "DiversityHook.register.trainer": lambda: SimpleNamespace(register_op=print, register_module=print),
    "DiversityHook.load_state_dict.state_dict": dict,
    "SystemNeuralDiversity.plot.val": lambda: None,
    "GraphSnd.plot.val": lambda: None,
    "WorldEnv.to.device": lambda: "cpu",
}

# Instances whose methods are called, where the constructor is not the way to get one.
INSTANCES: dict[str, Make] = {
    "SystemNeuralDiversity": lambda: _metric("SystemNeuralDiversity"),
    "GraphSnd": lambda: _metric("GraphSnd"),
    "Estimate": _estimate,
    "Advice": lambda: gs.advise(4, 10),
    "Decomposition": lambda: gs.decompose(gs.Deterministic(_normal(3, 4, 2)), ["a", "a", "b", "b"]),
    "Roles": lambda: gs.roles(gs.Deterministic(_normal(3, 4, 2))),
    "TeamsComparison": lambda: gs.compare(*2 * [gs.Deterministic(_normal(32, 4, 2))]),
    "Status": lambda: control.DiCo(0.5).step(torch.tensor(0.3), control.State.start())[2],
    "SndAccumulator": _accumulator,
    "Load": lambda: gs.distributed.load([2, 2], 8, 2),
}
# Made by the library and only read by others: their constructors are not called.
RESULTS = {*INSTANCES} - {"SndAccumulator", "SystemNeuralDiversity", "GraphSnd"}
# A thousand times slower than the others: called once for each hundred calls of another.
SLOW = {
    "training.train_grid",
    "training.train",
    "plots.style.save_png", "Trainer.step", "Trainer", "Task.make_trainer", "ControlTask.make_trainer",
    "VmasWorld", "PettingZooWorld", "training.evaluate_team", "Trainer.load", "Trainer.update",
    "training.load_checkpoint", "plots.example_team",
    *(f"{world}.{method}" for world in ("VmasWorld", "PettingZooWorld")
      for method in ("spawn", "step", "reset_done", "observe", "goals", "positions", "solved", "truncated")),
}  # fmt: skip
# Valid calls that are refused by design.
REFUSES = {
    "Categorical.wasserstein_points",
    "Joint.wasserstein_points",
}
REFUSES |= {f"{team}.save" for team in ("JointTeam", "PoliciesTeam", "ActorTeam")}


def good(owner: str, method: str, name: str, instance: Any = None) -> Make | None:
    """Return the maker of a good value for a parameter, None where there is none."""
    if name == "state" and isinstance(instance, worlds.World):
        return lambda: instance.spawn(0)
    label = f"{owner}.{method}" if method else owner
    tails = [f"{label}.{name}", f"{label.split('.')[-1]}.{name}", f"{owner}.{name}", name]
    return next((GOOD[tail] for tail in tails if tail in GOOD), None)
