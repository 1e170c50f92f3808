"""Four real gloo processes, started once: what they computed together against one process with the whole team."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import graphsnd as gs
from tests.distributed import cases
from tests.distributed.program import SIZES, mistakes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[Any, Any]]:
    """What each rank found."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "tests.distributed.program"]
    started = [subprocess.Popen([*command, str(rank), str(folder)], cwd=ROOT) for rank in range(4)]
    try:
        assert [process.wait(300) for process in started] == [0] * 4
    finally:
        for process in started:
            process.kill()
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(4)]


@pytest.mark.parametrize("shard", ["agents", "observations"])
@pytest.mark.parametrize(
    ("size", "case"), [(size, case) for size in SIZES for case in (cases.CASES if size == 4 else cases.SMALL)]
)
def test_values_and_gradients_are_those_of_one_process(ranks, size: int, case: str, shard: str) -> None:
    family, distance, dtype = cases.CASES[case]
    x = cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6, dtype=dtype).requires_grad_()
    rounding = 1e-6 if dtype == torch.float32 else 1e-12
    for name, whole in cases.measurements(gs, cases.FAMILIES[family](x), distance).items():
        (slopes,) = torch.autograd.grad(whole, x, retain_graph=True)
        for rank in range(size):
            value, own = ranks[rank][size, case, shard, name]
            assert torch.equal(value, ranks[0][size, case, shard, name][0])  # the same bits on all ranks
            torch.testing.assert_close(value, whole.detach(), rtol=rounding, atol=0)
            expected = cases.cut(slopes, shard, rank, size)
            assert (own is None) == (expected.numel() == 0)
            if own is not None:
                error = (own - expected).norm() / slopes.norm().clamp(min=1e-30)
                assert float(error) <= min(1e-6, 10 * rounding), name


@pytest.mark.parametrize("shard", ["agents", "observations"])
@pytest.mark.parametrize("graph", ["all", "weighted", "drawn"])
def test_accumulators_merge_to_what_one_collects(ranks, graph: str, shard: str) -> None:
    one = gs.SndAccumulator(cases.AGENTS, graph=cases.GRAPHS.get(graph), clusters=True)
    for seed in range(3):
        x = cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6, seed=seed)
        one.update(cases.FAMILIES["gaussian"](x), torch.arange(cases.OBSERVATIONS) // 3 + seed)
    for size in SIZES:
        for rank in range(size):
            state, estimate = ranks[rank][size, "accumulator", shard, graph]
            for name, value in one.compute().to_dict().items():
                exact = not isinstance(value, float | tuple) or name == "names"
                assert estimate[name] == (value if exact else pytest.approx(value, rel=1e-12)), name
            for name, part in one.state().items():
                if isinstance(part, torch.Tensor):
                    torch.testing.assert_close(state[name], part, rtol=1e-12, atol=0)
                else:
                    assert state[name] == part, name


def test_several_rounds_are_one(ranks) -> None:
    for size in SIZES:
        for rank in range(size):
            value, slopes = ranks[rank][size, "rounds"]
            whole, own = ranks[rank][size, "gaussian", "agents", "snd"]
            torch.testing.assert_close(value, whole, rtol=1e-12, atol=0)
            if own is not None:
                torch.testing.assert_close(slopes, own, rtol=1e-10, atol=1e-14)


def test_what_ranks_say_differently_is_an_error_on_all(ranks) -> None:
    for rank in range(4):
        for name in mistakes(rank):
            message = ranks[rank]["refused", name]
            assert isinstance(message, str), name
            assert f"`{name.split()[0]}`" in message, message


def test_ranks_stay_in_step_after_errors(ranks) -> None:
    x = torch.cat([cases.numbers(12, 3, 2, seed=rank) for rank in range(4)], dim=1)
    for rank in range(4):
        torch.testing.assert_close(ranks[rank]["after"], gs.snd(gs.Deterministic(x)), rtol=1e-12, atol=0)


def test_the_example_says_the_same_on_two_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples/sharded_team.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    with torch.random.fork_rng():
        runpy.run_path(str(example))
    alone = capsys.readouterr().out
    assert done.stdout.count("SND") == 4
    assert done.stdout == alone
