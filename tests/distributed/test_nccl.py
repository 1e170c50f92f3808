"""One rank of nccl: the same calls, on a GPU, through the collectives of a group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import graphsnd as gs
from tests.distributed import cases

pytestmark = pytest.mark.gpu


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("shard", ["agents", "observations"])
@pytest.mark.parametrize("case", ["single", "gaussian", "categorical"])
def test_one_rank_of_nccl_is_one_process(case: str, shard: str) -> None:
    family, distance, dtype = cases.CASES[case]
    x = cases.numbers(300, cases.AGENTS, 6, dtype=dtype).cuda().requires_grad_()
    rounding = 1e-6 if dtype == torch.float32 else 1e-12
    found = cases.measurements(gs.distributed, cases.FAMILIES[family](x), distance, shard=shard)
    for name, whole in cases.measurements(gs, cases.FAMILIES[family](x), distance).items():
        assert found[name].is_cuda
        torch.testing.assert_close(found[name], whole, rtol=rounding, atol=0)
        slopes = [torch.autograd.grad(value, x, retain_graph=True)[0] for value in (found[name], whole)]
        assert float((slopes[0] - slopes[1]).norm()) <= 1e-6 * float(slopes[1].norm()), name


@pytest.mark.usefixtures("group")
def test_one_rank_of_nccl_accumulates() -> None:
    team = cases.FAMILIES["gaussian"](cases.numbers(300, cases.AGENTS, 6).cuda())
    one, accumulator = gs.SndAccumulator(cases.AGENTS), gs.SndAccumulator(cases.AGENTS)
    one.update(team)
    gs.distributed.accumulate(accumulator, team)
    merged = gs.distributed.merge(accumulator).compute()
    assert float(merged) == pytest.approx(float(one.compute()), rel=1e-12)
