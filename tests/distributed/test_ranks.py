"""Four real gloo processes, started once: what they computed together against one process with the whole team."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import torch

import graphsnd as gs
from graphsnd.distributed import shards
from tests.distributed import cases
from tests.distributed.program import SIZES, TIMEOUT

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[Any, Any]]:
    """What each rank found; rank 2 was killed and rank 3 stopped at the end."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "tests.distributed.program"]
    started = [
        subprocess.Popen([*command, str(rank), str(folder)], cwd=ROOT, stderr=(folder / f"{rank}.txt").open("w"))
        for rank in range(4)
    ]
    end = monotonic() + 300
    try:
        while not all((folder / f"{rank}.done").exists() for rank in (0, 1)):
            failed = [rank for rank in (0, 1) if started[rank].poll()]
            said = "".join((folder / f"{rank}.txt").read_text()[-3000:] for rank in range(4))
            assert not failed, said
            assert monotonic() < end, said
            sleep(0.1)
    finally:
        for process in started:
            process.kill()  # the stopped one too
            process.wait()
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


@pytest.mark.parametrize("shard", ["agents", "observations"])
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("graph", [False, True])
def test_the_model_counts_bytes_and_pairs(ranks, shard: str, gradient: bool, graph: bool) -> None:
    for size in SIZES:
        counts = cases.SHARDS[size] if shard == "agents" else [cases.AGENTS] * size
        edges = cases.GRAPHS["drawn"].m if graph else None
        model = gs.distributed.load(
            counts, cases.OBSERVATIONS, 4, shard=shard, gradient=gradient, edges=edges, itemsize=8,
        )  # fmt: skip
        for block in (shards.BLOCK, 80):
            found = [ranks[rank][size, "count", shard, gradient, graph, block] for rank in range(size)]
            assert max(sent for sent, _, _ in found) == model.sent
            most = max(pairs for _, pairs, _ in found)
            # Shares of observations that users chose are not even.
            even = max(cases.SHARES[size]) if shard == "observations" else -(-cases.OBSERVATIONS // size)
            assert most == model.pairs // -(-cases.OBSERVATIONS // size) * even
            assert sum(pairs for _, pairs, _ in found) == cases.OBSERVATIONS * (edges or 36)
            torch.testing.assert_close(found[0][2], ranks[0][size, "count", shard, gradient, graph, shards.BLOCK][2])


EXPECTED = {
    "observations": ("12 on rank 0 and 13 on rank 1", "`observations`"),
    "agents": ("3 on rank 0 and 4 on rank 1", "`agents`"),
    "features": ("2 on rank 0 and 3 on rank 1", "`features`"),
    "dtype": ("float64", "float32"),
    "family": ("Deterministic", "Categorical"),
    "kindred": ("Deterministic", "Gaussian"),
    "distance": ("TotalVariation", "Hellinger"),
    "shard": ("agents on rank 0 and observations on rank 1", "`shard`"),
    "no shard": ("`shard` to be one of agents, observations", "rows"),
    "kind": ("`behavior`", "of type str"),
    "call": ("snd on rank 0 and pairwise on rank 1", "`call`"),
    "nobody": ("on at least one rank", "None on all"),
    "one agent": ("at least 2 agents over all ranks", "got 1"),
    "graph": ("`graph` alike on all ranks", "on rank 1"),
    "no graph": ("`graph` to be a graphsnd.Graph", "NoneType"),
    "small graph": ("on the behaviour's 12 agents", "a graph on 5"),
    "merge": ("3 on rank 0 and 4 on rank 1", "`team`"),
    "accumulate": ("of 13 agents over all ranks", "got 12"),
    "clusters": ("`clusters` to be None", "tensor"),
    "layout of a batch": ("`clusters` laid out as the observations", "got (3, 4)"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_mistakes_of_one_rank_are_errors_on_all(ranks, name: str) -> None:
    for rank in range(4):
        message = ranks[rank]["refused", name]
        assert isinstance(message, str), message
        for words in EXPECTED[name]:
            assert words in message
        assert message.startswith("InputError"), message


def test_ranks_stay_in_step_after_errors(ranks) -> None:
    x = torch.cat([cases.numbers(12, 3, 2, seed=rank) for rank in range(4)], dim=1)
    for rank in range(4):
        torch.testing.assert_close(ranks[rank]["after"], gs.snd(gs.Deterministic(x)), rtol=1e-12, atol=0)


def test_the_example_says_the_same_on_two_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples/sharded_team.py"
    assert len(example.read_text().splitlines()) <= 60
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(example)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    with torch.random.fork_rng():
        runpy.run_path(str(example))
    alone = capsys.readouterr().out
    assert found.count("SND") == 4
    assert found == alone


@pytest.mark.parametrize("what", ["SIGKILL", "SIGSTOP"])
def test_a_lost_rank_is_an_error_within_the_timeout(ranks, what: str) -> None:
    for rank in (0, 1):
        message, seconds = ranks[rank]["lost", what]
        assert message.startswith(("RuntimeError", "DistBackendError"))
        assert seconds < 2 * TIMEOUT
    messages = [ranks[rank]["lost", what][0] for rank in (0, 1)]
    assert any(
        ("reset" if what == "SIGKILL" else "Timed out") in message or "closed" in message for message in messages
    )
    assert ("lost", what) not in ranks[2 if what == "SIGKILL" else 3]
