"""Every example runs and prints something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The frameworks of `make test-integrations`, and what is imported where one is there.
FRAMEWORKS = {"stable_baselines3_population": "stable_baselines3", "jax_team": "flax", "rllib_team": "tree"}
OTHERS = {"pettingzoo_team": "mpe2", "ray_rollouts": "ray"}  # of every development environment
EXAMPLES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.integration] if path.stem in FRAMEWORKS else [])
    for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
    if path.stem != "sharded_team"  # tests/distributed/test_diversity.py runs it, alone and on two ranks
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example: Path) -> None:
    if package := (FRAMEWORKS | OTHERS).get(example.stem):
        pytest.importorskip(package)
    assert len(example.read_text().splitlines()) <= 60
    command, one_thread = [sys.executable, str(example)], os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=one_thread, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr
    assert "SND" in run.stdout
