from __future__ import annotations

from typing import Any

from graphsnd.cli.doctor import describe_machine


def test_doctor_knows_the_versions_and_the_kernels(run: Any) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    names = [name for name, _ in describe_machine()]
    for name in ("graphsnd", "python", "torch", "numba", "triton", "CUDA device", "kernels: reference", "kernel cache"):
        assert name in names
        assert name in result.stdout
