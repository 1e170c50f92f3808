"""Train three agents with RLlib's PPO, log their diversity with its results, and measure the checkpoint."""

import tempfile

from mpe2 import simple_spread_v3
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

import graphsnd as gs
from graphsnd.integrations.pettingzoo import collect
from graphsnd.integrations.rllib import DiversityCallback, load_team

register_env("spread", lambda _: ParallelPettingZooEnv(simple_spread_v3.parallel_env(N=3)))
algorithm = (
    PPOConfig()
    .environment("spread")
    .multi_agent(policies={"agent_0", "agent_1", "agent_2"}, policy_mapping_fn=lambda agent, *_, **__: agent)
    .env_runners(num_env_runners=0)
    .training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=5)
    .callbacks(DiversityCallback)
    .build_algo()
)
for iteration in range(3):
    results = algorithm.train()["env_runners"]
    reward, diversity = results.get("episode_return_mean", float("nan")), results["diversity"]["snd"]
    print(f"iteration {iteration}  return {reward:7.1f}  SND {diversity:.4f}")

with tempfile.TemporaryDirectory() as folder:
    team = load_team(algorithm.save_to_path(folder))
algorithm.stop()
seen = collect(simple_spread_v3.parallel_env(N=3), None, steps=100)
print(gs.measure(team, seen.pooled, clusters=seen.clusters))
