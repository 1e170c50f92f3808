"""SND of rollouts that Ray workers make: each keeps its observations and sends sums of a few hundred bytes.

The result depends on the number of workers, and on the order in which they come home, by rounding only. Needs ray.
"""

from typing import Any

import ray
import torch

import graphsnd as gs
from graphsnd.estimation import SndAccumulator
from graphsnd.rl import Trainer
from graphsnd.rl.worlds import Navigation

AGENTS, EPISODES = 4, 12


@torch.no_grad()
def measure_episode(seed: int, snd: SndAccumulator) -> None:
    """Observe the team along one episode's beginning, and add all of it to what was collected so far."""
    world = Navigation(AGENTS, 8)
    team = Trainer(world).team(0)  # in practice the policies that are trained now
    state = world.spawn(torch.Generator().manual_seed(seed))
    observations = world.observe(state).flatten(0, 1)
    snd.update(gs.evaluate(team, observations), clusters=torch.full((len(observations),), seed))


@ray.remote(num_cpus=1)
def roll_out(seeds: list[int]) -> dict[str, Any]:
    """Return what one worker has collected."""
    torch.set_num_threads(1)
    snd = SndAccumulator(AGENTS, clusters=True)
    for seed in seeds:
        measure_episode(seed, snd)
    return snd.state()


def main() -> None:
    ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR")
    pending = [roll_out.remote(list(range(worker, EPISODES, 5))) for worker in range(5)]
    merged = SndAccumulator(AGENTS, clusters=True)
    while pending:  # in the order in which they come home
        (done,), pending = ray.wait(pending)
        merged = SndAccumulator.merge(merged, SndAccumulator.from_state(ray.get(done)))
    alone = SndAccumulator(AGENTS, clusters=True)
    for seed in range(EPISODES):
        measure_episode(seed, alone)
    print(merged.compute())
    print("relative difference from one process:", abs(merged.compute().value / alone.compute().value - 1))


if __name__ == "__main__":
    main()
