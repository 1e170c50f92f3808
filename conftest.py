"""Doctests are collected from every module; those of the Triton backend only where Triton is."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/graphsnd/kernels/gpu/*"]
