"""A pytest plugin that collects what needs an optional package only where the package is."""

import os
import sys
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

# Read when OpenMP is loaded, so before torch, and inherited by programs that tests start. Two workers and what they
# start have more threads than there are cores: one that spins while it waits takes the core of the one it waits for.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Compiled kernels are cached beside the sources in any case. Without bytecode there, each of the dozens of programs
# that tests start compiles the whole library, and each worker rewrites the assertions of all tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

NEEDS = {
    "triton": [
        "benchmarks/limit_gpu.py",
        "src/graphsnd/kernels/gpu/*",
        "src/graphsnd/rl/fused/*",
        "src/graphsnd/rl/worlds/pair*",
    ],
    "torchmetrics": ["src/graphsnd/integrations/torchmetrics.py"],
    "torchrl": ["src/graphsnd/integrations/torchrl.py", "src/graphsnd/integrations/world_*", "tests/integrations/*"],
    "stable_baselines3": ["src/graphsnd/integrations/sb3.py"],
    "pettingzoo": ["src/graphsnd/integrations/pettingzoo.py"],
    "jax": ["src/graphsnd/integrations/jax.py"],
    "tree": ["src/graphsnd/integrations/rllib.py"],  # of what ray[rllib] needs, the package that nothing else brings
    "benchmarl": ["src/graphsnd/integrations/benchmarl", "tests/integrations/benchmarl"],
    "yaml": ["tests/paper/judging/test_claims.py", "tests/paper/test_verdicts.py", "tests/paper/test_smoke.py"],
}
ABSENT = [path for package, paths in NEEDS.items() if find_spec(package) is None for path in paths]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    path = collection_path.as_posix()
    return any(fnmatch(path, f"*/{pattern}") for pattern in ABSENT) or None
