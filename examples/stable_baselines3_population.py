"""Train a population with Stable-Baselines3, three seeds side by side, and log how different its members are."""

import gymnasium
from stable_baselines3 import PPO

import graphsnd as gs
from graphsnd.integrations.pettingzoo import collect
from graphsnd.integrations.sb3 import DiversityCallback, ModelTeam

TASK = "CartPole-v1"
models = {f"seed {seed}": PPO("MlpPolicy", TASK, n_steps=128, seed=seed, device="cpu") for seed in range(3)}
diversity = DiversityCallback(models, every=128)  # one callback for all of them

for _ in range(3):  # in turns, so that they are of one age when they are compared
    for model in models.values():
        model.learn(128, callback=diversity, reset_num_timesteps=False)

for row in diversity.rows:
    print(f"{row['model']}  step {row['step']:5}  SND {row['snd']:.4f}")

seen = collect(lambda: gymnasium.make(TASK), models, steps=200)
print(gs.measure(ModelTeam(models), seen.pooled, clusters=seen.clusters))
