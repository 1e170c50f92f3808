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
def test_accumulators_merge_to_the_bits_of_one(ranks, graph: str, shard: str) -> None:
    one = gs.SndAccumulator(cases.AGENTS, graph=cases.GRAPHS.get(graph), clusters=True)
    for seed in range(3):
        x = cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6, seed=seed)
        one.update(cases.FAMILIES["gaussian"](x), torch.arange(cases.OBSERVATIONS) // 3 + seed)
    for size in SIZES:
        for rank in range(size):
            state, estimate = ranks[rank][size, "accumulator", shard, graph]
            assert estimate == one.compute().to_dict()
            for name, part in one.state().items():
                same = torch.equal(part, state[name]) if isinstance(part, torch.Tensor) else part == state[name]
                assert same, name


@pytest.mark.parametrize("kind", ["measure", "behavior"])
@pytest.mark.parametrize("name", cases.MEASURED)
def test_measure_gives_the_estimate_of_one_process(ranks, name: str, kind: str) -> None:
    options = dict(cases.MEASURED[name])
    if "seed" in options and kind == "measure":
        options["seed"] = torch.Generator().manual_seed(options["seed"])
    with torch.no_grad():
        whole = (cases.policies(), cases.SEEN) if kind == "measure" else (gs.evaluate(cases.policies(), cases.SEEN),)
    alone = gs.measure(*whole, **options).to_dict()
    for size in SIZES:
        for rank in range(size):
            found = dict(ranks[rank][size, kind, name])
            assert {**found, "seconds": 0} == {**ranks[0][size, kind, name], "seconds": 0}
            for key in ("value", "standard_error", "observation_error", "pair_error"):
                assert found[key] == pytest.approx(alone[key], rel=1e-5), key
            for key in (
                "design",
                "target",
                "agents",
                "observations",
                "policy_evaluations",
                "distances",
                "met",
                "method",
            ):
                assert found[key] == alone[key], key
            # A random graph's bound on the distances is made block by block, and may come out wider.
            low, high = found["interval"]
            assert low <= alone["interval"][0] * (1 + 1e-5)
            assert high >= alone["interval"][1] * (1 - 1e-5)
            if name not in ("uniform", "bernoulli", "regular"):
                assert (low, high) == pytest.approx(alone["interval"], rel=1e-5)


def test_ranks_evaluate_only_their_own_policies(ranks) -> None:
    for size in SIZES:
        ends = torch.tensor(cases.SHARDS[size]).cumsum(0).tolist()
        for rank, end in enumerate(ends):
            assert ranks[rank][size, "asked"] == set(range(end - cases.SHARDS[size][rank], end))


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
    "backend": ("auto' on rank 0 and 'reference' on rank 1", "`backend`"),
    "kind": ("`behavior`", "got str"),
    "call": ("snd on rank 0 and pairwise on rank 1", "`call`"),
    "nobody": ("on at least one rank", "None on all"),
    "one agent": ("at least 2 agents over all ranks", "got 1"),
    "graph": ("`graph` alike on all ranks", "on rank 1"),
    "no graph": ("`graph` to be a graphsnd.Graph", "NoneType"),
    "small graph": ("on the behaviour's 12 agents", "a graph on 5"),
    "merge": ("3 on rank 0 and 4 on rank 1", "`team`"),
    "accumulate": ("of 13 agents over all ranks", "got 12"),
    "clusters": ("`clusters` to be None", "tensor"),
    "layout": ("`clusters` laid out as the observations, (4, 3)", "got (3, 4)"),
    "layout of a batch": ("`clusters` laid out as the observations", "got (3, 4)"),
    "policies see": ("`observations (values)` alike on all ranks", "on rank 1"),
    "seed": ("0 on rank 0 and 1 on rank 1", "`seed`"),
    "design": ("`options` alike on all ranks", "design"),
    "own graph": ("`design` alike on all ranks", "on rank 1"),
    "option": ("tolerance", "unexpected keyword"),
    "policy": ("a policy of rank 1", "rror"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_mistakes_of_one_rank_are_errors_on_all(ranks, name: str) -> None:
    for rank in range(4):
        message = ranks[rank]["refused", name]
        assert isinstance(message, str), message
        for words in EXPECTED[name]:
            assert words in message
        own = {"option": "TypeError", "policy": "ZeroDivisionError"}  # that rank's own error
        assert message.startswith(own.get(name, "InputError") if rank == 1 else "InputError"), message


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
    assert found.count("SND") == alone.count("SND") == 4
    # Other agents come first, so others are drawn; all pairs are the same.
    assert found.splitlines()[1:] == alone.splitlines()[1:]


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
