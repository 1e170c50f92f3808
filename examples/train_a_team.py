"""Train four agents to reach their goals and watch how their diversity grows; a few seconds."""

import tempfile
from pathlib import Path

from graphsnd.rl import Settings, Trainer, evaluate_team
from graphsnd.rl.checkpoint import save_teams
from graphsnd.rl.worlds import Navigation
from graphsnd.teams.team import Team

world = Navigation(4, 16, collisions=False, shared_rew=False, horizon=100)
settings = Settings(steps=64, environments=16, minibatch=256, learning_rate=2e-3, hidden=(32, 32), iterations=10)
settings = settings.replace(diversity_every=3)
trainer = Trainer(world, settings, seeds=(0, 1))  # two runs in one stack

for _ in range(settings.iterations):
    for row in trainer.step():
        if row.snd is not None:
            print(f"iteration {row.iteration:2d}  seed {row.seed}  reward {row.reward:+.4f}  SND {row.snd:.3f}")

with tempfile.TemporaryDirectory() as folder:
    save_teams(Path(folder), trainer)
    team = Team.load(Path(folder) / "seed-0")

found = evaluate_team(team, world, steps=100, seed=7)
print(f"{found.solved_at_end:.0%} of the agents of seed 0 end a test episode at their goal")
