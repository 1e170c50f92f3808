from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphsnd.rl import Settings, Trainer
from graphsnd.rl.cuda import Stopwatch, restored
from graphsnd.rl.independent import IndependentLearner
from graphsnd.rl.rollout import collect
from graphsnd.rl.worlds import Navigation, SimpleSpread


def test_what_a_rehearsal_changes_is_restored_in_the_same_memory() -> None:
    tensors = [torch.arange(3.0, requires_grad=True), torch.ones(2, dtype=torch.int64)]
    places = [tensor.data_ptr() for tensor in tensors]
    with restored(tensors), torch.no_grad():
        for tensor in tensors:
            tensor.mul_(7)
    assert [tensor.tolist() for tensor in tensors] == [[0, 1, 2], [1, 1]]
    assert [tensor.data_ptr() for tensor in tensors] == places


WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "unique", "lift_fresh", "bincount")


class Guard(TorchDispatchMode):
    """Raises where a GPU would have to be waited for, which cannot be captured."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_") and any(
            one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1]
        )
        assert name not in WAITING, name
        assert not masks, name
        return func(*args, **(kwargs or {}))


def _dense(tiny: Settings, world: str) -> Trainer:
    """A trainer whose rollout is the work that a GPU would capture."""
    made = SimpleSpread(3, 3) if world == "simple_spread" else Navigation(3, 3, horizon=5, dense=True)
    return Trainer(made, tiny, seeds=(0, 1))


@pytest.mark.parametrize("world", ["navigation", "simple_spread"])
@pytest.mark.parametrize("restart", [True, False])
def test_nothing_waits_for_the_device(world: str, restart: bool, tiny: Settings) -> None:
    trainer = _dense(tiny, world)
    with Guard():
        collect(
            trainer.world, trainer.policy, trainer.critic, trainer.episodes, trainer.buffer, restart=restart, wait=False
        )
        trainer.update(Stopwatch(torch.device("cpu")))
    with pytest.raises(AssertionError, match="_local_scalar_dense"), Guard():
        trainer.learner.sums.sum().item()


@pytest.mark.parametrize("world", ["navigation", "simple_spread"])
def test_results_stay_in_the_same_tensors(world: str, tiny: Settings) -> None:
    """A replay only repeats what was done to memory; what captured work keeps in Python it would lose."""
    trainer = _dense(tiny, world)
    learner = trainer.learner
    assert isinstance(learner, IndependentLearner)

    def places() -> dict[str, int]:
        held = {**trainer.episodes.tensors(), **vars(trainer.buffer), **trainer.learner.tensors()}
        held |= {f"leaf {i}": leaf for i, leaf in enumerate(learner.policy.whole.leaves)}
        held |= {f"critic leaf {i}": leaf for i, leaf in enumerate(learner.critic.whole.leaves)}
        held["sums"] = learner.sums
        return {name: tensor.data_ptr() for name, tensor in held.items()}

    before = places()
    trainer.step()
    trainer.step()
    assert places() == before
    for networks in (learner.policy, learner.critic):
        start, end = networks.flat.data_ptr(), networks.flat.data_ptr() + networks.flat.nbytes
        assert all(start <= leaf.data_ptr() < end for block in networks.blocks for leaf in block.leaves)


@pytest.mark.gpu
def test_captured_training_is_eager_training() -> None:
    world = Navigation(5, 8, world_spawning_x=2.0, world_spawning_y=2.0, horizon=9, device=torch.device("cuda"))
    settings = Settings(steps=16, environments=8, minibatch=32, hidden=(16,), diversity_every=0, tf32=False)
    captured, eager = (Trainer(world, settings, seeds=(0, 1), capture=capture) for capture in (True, False))
    for _ in range(4):
        one, two = captured.step(), eager.step()
        assert captured.eager is None, captured.eager
        assert [row.episodes for row in one] == [row.episodes for row in two]
        torch.testing.assert_close(captured.policy.flat, eager.policy.flat, rtol=1e-3, atol=1e-4)  # type: ignore[attr-defined]
