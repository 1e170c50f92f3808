from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

import graphsnd as gs
from graphsnd.cli.advise import advise as command
from graphsnd.cli.app import Commands, join_lines
from graphsnd.estimation import advise

SIZES = ("--agents", 300, "--observations", 100_000)


@pytest.fixture
def ask() -> Callable[..., Any]:
    app = typer.Typer(cls=Commands, add_completion=False)
    app.command(help=join_lines(command.__doc__))(command)
    app.command(name="other")(lambda: None)

    def call(*arguments: object, columns: int = 100) -> Any:
        runner = CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"})
        return runner.invoke(app, ["advise", *(str(a) for a in arguments)])

    return call


def test_json_is_what_advise_returns(ask: Any) -> None:
    result = ask(*SIZES, "--goal", "proxy", "--rel-tol", 0.02, "--policy-cost", 11_000, "--json")
    assert result.exit_code == 0, result.output
    expected = advise(300, 100_000, "proxy", rel_tol=0.02, policy_cost=11_000)
    assert json.loads(result.stdout) == json.loads(json.dumps(expected.to_dict()))


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("goal", ["global", "local", "proxy"])
def test_the_table_fits_and_marks_the_recommendation(goal: str, columns: int, ask: Any) -> None:
    result = ask(*SIZES, "--goal", goal, "--policy-cost", 11_000, columns=columns)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in result.stdout
    found = advise(300, 100_000, goal, policy_cost=11_000)
    marked = [line for line in lines if "→" in line]
    assert len(marked) == 1
    assert found.recommended.name in marked[0]
    for one in found.rejected:
        assert f"not {one.name}" in result.stdout


def test_a_file_is_a_pilot(ask: Any, save: Any, tensors: dict[str, torch.Tensor]) -> None:
    path = save(**tensors)
    found = json.loads(ask("--file", path, "--observations", 10**9, "--json").stdout)
    pilot = gs.Gaussian(tensors["loc"], tensors["scale"])
    assert found == json.loads(json.dumps(advise(12, 10**9, pilot=pilot).to_dict()))
    assert json.loads(ask("--file", path, "--json").stdout)["recommended"]["name"] == "complete"
    found = json.loads(ask("--file", path, "--observations", 10**9, "--distance", "Hellinger", "--json").stdout)
    assert found == json.loads(json.dumps(advise(12, 10**9, pilot=pilot, distance=gs.Hellinger()).to_dict()))
    assert "Expected `--distance` only with --file" in ask(*SIZES, "--distance", "hellinger").stderr


@pytest.mark.parametrize("policy_cost", [0, 11_000])
@pytest.mark.parametrize("goal", ["global", "local", "proxy"])
def test_the_printed_code_runs_for_a_behaviour_and_for_policies(goal: str, policy_cost: int, ask: Any) -> None:
    sizes = ("--agents", 300, "--observations", 100_000)
    text = ask(*sizes, "--goal", goal, "--policy-cost", policy_cost, columns=200).stdout
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(("run ", "or, with policies "))]
    names: dict[str, Any] = {"gs": gs, "torch": torch, "step": 3, "positions": torch.randn(300, 2)}
    given = {"behavior": gs.Deterministic(torch.randn(20, 300, 2))}
    assert len(lines) == 2
    assert float(eval(lines[0].partition(" ")[2], names | given)) > 0
    given = {"policies": [torch.nn.Linear(3, 2) for _ in range(300)], "observations": torch.randn(20, 3)}
    assert float(eval(lines[1].partition("policies ")[2], names | given)) > 0


def test_no_bound(ask: Any) -> None:
    assert json.loads(ask(*SIZES, "--d-max-ratio", 0, "--json").stdout)["recommended"]["radius"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "`--agents`"),
        (("--agents", 5), "`--observations`"),
        ((*SIZES, "--goal", "fame"), "`goal` to be one of global, local, proxy"),
        ((*SIZES, "--rel-tol", 0), "`rel_tol`"),
        ((*SIZES, "--confidence", 95), "`confidence`"),
        ((*SIZES, "--device", "tpu"), "`device`"),
        ((*SIZES, "--same-pairs"), "`same_pairs`"),
        ((*SIZES, "--file", "none.npz"), "`path`"),
        (("--agents", 1, "--observations", 5), "`n`"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[object, ...], message: str, ask: Any) -> None:
    result = ask(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
