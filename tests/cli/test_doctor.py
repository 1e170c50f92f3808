from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphsnd.cli.doctor import describe_machine


def test_doctor_knows_the_versions_and_the_kernels(run: Any) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    names = [name for name, _ in describe_machine()]
    for name in ("graphsnd", "python", "torch", "numba", "triton", "CUDA device", "kernels: reference", "kernel cache"):
        assert name in names
        assert name in result.stdout


@pytest.mark.parametrize(("count", "said"), [(1, "1 compiled function, "), (2, "2 compiled functions, ")])
def test_doctor_counts_compiled_functions(
    count: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Stored:
        class stats:
            cache_path = str(tmp_path)

    for number in range(count):
        (tmp_path / f"loops.{number}.nbc").write_bytes(b"0")
    monkeypatch.setattr("numba.core.dispatcher.Dispatcher", Stored)
    monkeypatch.setattr("graphsnd.kernels.cpu.loops.stored", Stored(), raising=False)
    assert dict(describe_machine())["kernel cache"].startswith(said)
