"""Baselines of the code before it was rearranged: one update of each trainer on a stored rollout."""
import sys, json
from pathlib import Path
import torch
from safetensors.torch import save_file
from graphsnd.training import Settings, Trainer
from graphsnd.training.dico import ControlSettings, ControlTask, ControlTrainer
from graphsnd.training.dico.frames import Frames
from graphsnd.training.dico.stopwatch import Stopwatch
from graphsnd.training.streams import hashed
from graphsnd.worlds import Navigation, SimpleSpread

torch.set_num_threads(1)
out = Path(sys.argv[1]); out.mkdir(parents=True, exist_ok=True)
clone = lambda d: {k: v.detach().clone().contiguous() for k, v in d.items()}

def independent(name, world, settings):
    trainer = Trainer(world, settings, seeds=(0, 1))
    for _ in range(2):
        trainer.step(measure=False)
    trainer._draw(); trainer.rollout()
    def layers():
        block = trainer.policies.whole
        found = {}
        for who, net in (("actor", block.actor), ("critic", block.critic)):
            for i, (w, b) in enumerate(net):
                found[f"{who}.{i}.weight"], found[f"{who}.{i}.bias"] = w, b
        found |= {f"head.{k}": v for k, v in block.head.named_parameters()}
        return clone(found)
    data = {f"before.{k}": v for k, v in layers().items()}
    data |= {f"state.{k}": v for k, v in clone({k: v for k, v in trainer.tensors().items() if v.dtype.is_floating_point and not k.startswith("episodes")}).items()}
    data |= {f"rollout.{k}": v for k, v in clone(vars(trainer.memory)).items()}
    data["shuffles"] = trainer.shuffles.clone()
    trainer.learn()
    data |= {f"after.{k}": v for k, v in layers().items()}
    data["stats"] = trainer.stats.clone()
    save_file(data, out / f"{name}.safetensors", metadata={"settings": settings.to_json()})

def controlled(name, task):
    trainer = ControlTrainer(task)
    for _ in range(2):
        trainer.step()
    from graphsnd.training.dico.rollout import head_of
    from graphsnd.training.sampling import fill_noise
    for run, streams in enumerate(trainer.streams):
        fill_noise(trainer.memory.noise[run], head_of(trainer.learner.policy), streams.actions)
    trainer.memory.scale.copy_(trainer.learner.scale())
    trainer.rollout()
    data = {f"before.{k}": v for k, v in clone(trainer.learner.tensors()).items()}
    data |= {f"rollout.{k}": v for k, v in clone(vars(trainer.memory)).items()}
    shuffles = [trainer._shuffle() for _ in range(task.settings.passes)]
    data["shuffles"] = torch.stack(shuffles, 1)
    trainer.iteration += 1
    generators = [hashed(run.seed, 200, trainer.iteration) for run in trainer.runs]
    frames = Frames.of(trainer.memory, trainer.settings, trainer.learner.policy.deviations.engine)
    stream = iter(shuffles)
    trainer.learner.update(frames, lambda: next(stream), generators, Stopwatch(trainer.device))
    data |= {f"after.{k}": v for k, v in clone(trainer.learner.tensors()).items() if k.split(".")[0] in ("policy", "critics", "control")}
    data["sums"] = trainer.learner.sums.clone()
    about = {"task": json.dumps(task.to_dict()), "generators": json.dumps([[r.seed, 200, trainer.iteration] for r in trainer.runs])}
    save_file(data, out / f"{name}.safetensors", metadata=about)

small = Settings(steps=16, environments=4, minibatch=32, epochs=2, hidden=(16, 16))
independent("independent", Navigation(3, 4), small)
independent("independent_discrete_joint", SimpleSpread(3, 4), small.replace(joint=True, activation="relu", init="linear", steps=25))
cs = ControlSettings(environments=4, steps=10, passes=2, minibatch=16, hidden=(16, 16), observations=24, audit_observations=64, learning_rate=1e-3)
controlled("controlled", ControlTask(4, (0.3, "unconstrained"), ("full", "bernoulli:0.5", "agents:2", "knn:2"), seeds=(0,), settings=cs))
controlled("controlled_through", ControlTask(3, (0.3,), ("full",), seeds=(0,), settings=cs.replace(through=True, bootstrap="target")))
