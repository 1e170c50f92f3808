"""Doctests are collected from every module; those that need an optional package only where it is."""

from importlib.util import find_spec

NEEDS = {
    "triton": "src/graphsnd/kernels/gpu/*",
    "torchmetrics": "src/graphsnd/integrations/torchmetrics.py",
    "benchmarl": "src/graphsnd/integrations/benchmarl/*",
}
collect_ignore_glob = [path for package, path in NEEDS.items() if find_spec(package) is None]
