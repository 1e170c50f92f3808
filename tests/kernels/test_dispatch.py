"""Which backend runs a call, and what is said when it cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from graphsnd import kernels
from graphsnd.behavior.points import Norm, Points
from graphsnd.errors import InputError
from graphsnd.kernels import dispatch, reference
from tests.kernels import checks
from tests.kernels.checks import each_operation

TOO_MANY = dispatch.MAX_FEATURES["cpu"] + 1


def points_of(features: int = 3, norm: Norm = Norm.EUCLIDEAN, dtype: torch.dtype = torch.float64) -> Points:
    return Points(checks.draw((5, 12, features), norm, dtype), norm)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem counts as large."""
    monkeypatch.setattr(dispatch, "SMALL", 0)


@pytest.fixture
def no_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment in which ``import numba`` fails."""
    monkeypatch.setitem(sys.modules, "numba", None)
    dispatch._missing.cache_clear()
    yield
    monkeypatch.undo()
    dispatch._missing.cache_clear()


def cpu_backend() -> dispatch.Backend:
    from graphsnd.kernels.cpu.launch import backend

    return backend


def test_available_names_every_backend() -> None:
    backends = dispatch.available()
    assert set(backends) == {"gpu", "cpu", "reference"}
    assert backends["reference"] is None
    assert backends["cpu"] is None
    if not torch.cuda.is_available():
        assert "CUDA" in str(backends["gpu"])


@each_operation
@pytest.mark.parametrize("name", ["numba", "", "CPU"])
def test_unknown_backends_are_refused(operation: str, name: str) -> None:
    with pytest.raises(InputError, match=r"cpu, reference, or auto") as raised:
        checks.run(operation, points_of().values, Norm.EUCLIDEAN, name)
    assert raised.value.name == "backend"
    assert f"got {name!r}" in str(raised.value)
    assert "no such backend" in str(raised.value)


@pytest.mark.parametrize(
    ("backend", "points", "able", "why"),
    [
        ("gpu", points_of(), "(cpu, reference, or auto)", "not on a CUDA device"),
        ("cpu", points_of(features=TOO_MANY), "(reference, or auto)", f"{TOO_MANY} features are more than"),
        ("cpu", points_of(norm=Norm.SQRT_JS), "(reference, or auto)", "sqrt-js norm has no compiled kernel"),
        ("cpu", points_of(dtype=torch.bfloat16), "(reference, or auto)", "torch.bfloat16 is not supported"),
        ("cpu", Points(points_of().values.to("meta"), Norm.EUCLIDEAN), "(reference, or auto)", "not on the CPU"),
    ],
    ids=["device", "features", "norm", "dtype", "meta"],
)
def test_unusable_backends_are_refused(backend: str, points: Points, able: str, why: str) -> None:
    with pytest.raises(InputError) as raised:
        kernels.pair_totals(points, backend=backend)
    assert able in str(raised.value)
    assert why in str(raised.value)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "points",
    [points_of(features=TOO_MANY), points_of(norm=Norm.SQRT_JS), points_of(dtype=torch.bfloat16)],
    ids=["features", "norm", "dtype"],
)
def test_auto_falls_back_on_the_reference(points: Points) -> None:
    assert dispatch.choose("auto", points, 66) is reference


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("norm", checks.NORMS, ids=lambda n: n.value)
def test_auto_compiles_what_is_large(norm: Norm, dtype: torch.dtype) -> None:
    points = points_of(norm=norm, dtype=dtype)
    assert dispatch.choose("auto", points, 66) is cpu_backend()
    assert dispatch.choose("reference", points, 66) is reference


@each_operation
@pytest.mark.usefixtures("large")
def test_auto_agrees_with_the_reference(operation: str) -> None:
    checks.check_agreement(operation, points_of().values, Norm.EUCLIDEAN, "auto")


@each_operation
@pytest.mark.usefixtures("large", "no_numba")
def test_without_numba(operation: str) -> None:
    points = points_of()
    assert dispatch.choose("auto", points, 66) is reference
    checks.check_agreement(operation, points.values, Norm.EUCLIDEAN, "auto")
    with pytest.raises(InputError, match=r"\(reference, or auto\).*numba cannot be imported"):
        checks.run(operation, points.values, Norm.EUCLIDEAN, "cpu")


def test_importing_loads_no_compiler() -> None:
    code = "import sys, graphsnd.kernels; assert not {'numba', 'triton.language'} & set(sys.modules), 'loaded'"
    subprocess.run([sys.executable, "-c", code], check=True)
