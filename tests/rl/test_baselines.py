"""One update of each trainer on a stored rollout, as the code before both became one made it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from graphsnd.rl import Settings, Trainer
from graphsnd.rl.controlled import ControlledLearner
from graphsnd.rl.cuda import Stopwatch
from graphsnd.rl.dico import DiversityControl
from graphsnd.rl.independent import Block, IndependentLearner
from graphsnd.rl.streams import hashed
from graphsnd.rl.worlds import Navigation, SimpleSpread
from tests.training import control_settings, control_task

BASELINES = Path(__file__).parents[1] / "baselines"


def _load(name: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    path = BASELINES / f"{name}.safetensors"
    with safe_open(path, framework="pt") as opened:
        return load_file(path), opened.metadata()


def _fill(trainer: Trainer, data: dict[str, Tensor]) -> None:
    """Put the stored rollout and permutations into a trainer."""
    for name, part in vars(trainer.buffer).items():
        if f"rollout.{name}" in data and part is not None:
            part.copy_(data[f"rollout.{name}"])
    orders = iter(data["shuffles"].unbind(1))
    trainer.draw_permutations = lambda: next(orders)  # type: ignore[method-assign]


def _close(one: Tensor, two: Tensor, name: str) -> None:
    torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-6, check_dtype=False, msg=lambda m: f"{name}: {m}")


def _named(block: Block, who: str) -> dict[str, Tensor]:
    """The layers as they were stored, for columns."""
    parts = {"weight": block.network.flat()[0], "bias": block.network.flat()[1]}
    return {f"{who}.{i}.{kind}": part.mT for kind, each in parts.items() for i, part in enumerate(each)}


def _by_rows(flat: Tensor, block: Block) -> Tensor:
    """Parameters that were stored with weights [out, in], with weights [in, out]."""
    flat, at = flat.clone(), 0
    for a, b in pairwise(block.network.sizes):
        flat[..., at : at + a * b] = flat[..., at : at + a * b].unflatten(-1, (b, a)).mT.flatten(-2)
        at += a * b + -(a * b) % 4 + b + -b % 4
    return flat


@pytest.mark.parametrize(
    ("name", "make"),
    [("independent", lambda: Navigation(3, 4)), ("independent_discrete_joint", lambda: SimpleSpread(3, 4))],
)
@torch.no_grad()
def test_independent_update(name: str, make: Callable[[], Navigation | SimpleSpread]) -> None:
    data, about = _load(name)
    trainer = Trainer(make(), Settings().replace(**json.loads(about["settings"])), seeds=(0, 1))
    learner = trainer.learner
    assert isinstance(learner, IndependentLearner)
    actors, critics = learner.policy.flat.shape[-1], learner.critic.flat.shape[-1]
    own = data["state.parameters"].shape[-1] - critics - sum(part[0].numel() for part in _layers_of(learner))

    def split(flat: Tensor) -> tuple[Tensor, Tensor]:
        """Actor, critic and the head's own parameters lay in one tensor, in this order."""
        end = actors - own
        parts = torch.cat([flat[..., :end], flat[..., end + critics :]], -1), flat[..., end : end + critics]
        return _by_rows(parts[0], learner.policy.whole), _by_rows(parts[1], learner.critic.whole)

    for place, (mine, part) in enumerate(
        zip((learner.policy.flat, learner.critic.flat), split(data["state.parameters"]), strict=True)
    ):
        mine.copy_(part)
        mean, square = learner.adams["adam"].moments[place]
        mean.copy_(split(data["state.adam.mean"])[place])
        square.copy_(split(data["state.adam.square"])[place])
    learner.adams["adam"].steps.copy_(data["state.adam.steps"])
    _fill(trainer, data)
    trainer.update(Stopwatch(torch.device("cpu")))
    layers = {**_named(learner.policy.whole, "actor"), **_named(learner.critic.whole, "critic")}
    layers |= {f"head.{key}": part.flatten(0, 1) for key, part in learner.policy.head.named_parameters()}
    assert {f"after.{key}" for key in layers} == {key for key in data if key.startswith("after.")}
    for key, part in layers.items():
        _close(part, data[f"after.{key}"], key)
        assert not torch.equal(part, data[f"before.{key}"]), key
    _close(learner.sums.T / trainer.settings.optimiser_steps, data["stats"], "statistics")


def _layers_of(learner: IndependentLearner) -> list[Tensor]:
    """The actors' weights and biases, with the zeros after each."""
    flat, leaves = learner.policy.flat.flatten(0, 1), learner.policy.whole.leaves
    count = 2 * len(learner.policy.whole.network.weights)
    return [torch.zeros(len(flat), -(-leaf.numel() // len(flat) // 4) * 4) for leaf in leaves[:count]]


RENAMED = {"critics.": "critic.", "inside.": "box_adam.", "actor.": "actor_adam.", "critic.": "critic_adam."}


def _renamed(key: str) -> str:
    """The name of a tensor of the old learner in the new one."""
    for old, new in RENAMED.items():
        if key.startswith(old):
            key = new + key.removeprefix(old)
            break
    return key.replace("exp_avg_sq", "square").replace("exp_avg", "mean").replace(".begun", ".initialized")


@pytest.mark.parametrize("name", ["controlled", "controlled_through"])
def test_controlled_update(name: str) -> None:
    data, about = _load(name)
    saved = json.loads(about["task"])
    saved["settings"]["epochs"] = saved["settings"].pop("passes")  # as they were called before
    saved["settings"]["differentiable"] = saved["settings"].pop("through", False)
    names = ("agents", "targets", "estimators", "seeds", "world", "options")
    task = control_task(*(saved[name] for name in names), control_settings(**{"bfloat16": False} | saved["settings"]))
    trainer = task.make_trainer()
    learner, control = trainer.learner, trainer.companion
    assert isinstance(learner, ControlledLearner)
    assert isinstance(control, DiversityControl)
    # Of controllers and states that are gone.
    data = {key: part for key, part in data.items() if not re.fullmatch(r".*\.control\.\d\.(integral|steps)", key)}
    mine = learner.tensors() | control.tensors()
    with torch.no_grad():
        for key, part in data.items():
            if not key.startswith("before."):
                continue
            new = _renamed(key.removeprefix("before."))
            if new.endswith(".step"):  # there was one for each tensor, all equal
                mine[f"{new.split('.')[0]}.steps"].copy_(part)
            else:
                mine[new].copy_(part)
        _fill(trainer, data)
    control.generators = [hashed(*words) for words in json.loads(about["generators"])]
    trainer.update(Stopwatch(torch.device("cpu")))
    after = learner.tensors() | control.tensors()
    for key, part in data.items():
        if key.startswith("after."):
            _close(after[_renamed(key.removeprefix("after."))], part, key)
    _close(torch.cat([control.sums, learner.sums]), data["sums"], "sums")
