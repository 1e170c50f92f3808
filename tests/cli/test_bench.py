from __future__ import annotations

import json
from typing import Any

import pytest

from graphsnd.cli import bench


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsnd.cli.bench.AGENTS", (3, 20))
    monkeypatch.setattr("graphsnd.cli.bench.OBSERVATIONS", 8)


def test_the_table_has_a_row_for_each_team_and_says_what_it_means(run: Any) -> None:
    result = run("bench", "--device", "cpu")
    assert result.exit_code == 0, result.output
    for word in ("exact SND", "torch.cdist", "190", "sampling pairs cannot save more"):
        assert word in " ".join(result.stdout.split())


def test_json_has_the_times_and_the_machine(run: Any) -> None:
    result = json.loads(run("bench", "--device", "cpu", "--json").stdout)
    assert [team["agents"] for team in result["teams"]] == [3, 20]
    assert all(team["snd_s"] > 0 and team["cdist_s"] > 0 for team in result["teams"])
    assert result["hardware"]["threads"] >= 1


def test_contestants_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    import graphsnd

    calls: list[str] = []
    snd, cdist = graphsnd.snd, torch.cdist
    monkeypatch.setattr(graphsnd, "snd", lambda team: (calls.append("snd"), snd(team))[1])
    monkeypatch.setattr(torch, "cdist", lambda a, b: (calls.append("cdist"), cdist(a, b))[1])
    bench.time_team(5, torch.device("cpu"))
    assert calls == ["snd", "cdist"] * (1 + bench.ROUNDS)


def test_an_unknown_device_is_one_line(run: Any) -> None:
    result = run("bench", "--device", "abacus")
    assert result.exit_code == 2
    assert "`--device` auto, cpu or cuda" in result.stderr


@pytest.mark.gpu
def test_a_gpu_is_timed(run: Any) -> None:
    assert json.loads(run("bench", "--device", "cuda", "--json").stdout)["hardware"]["gpu"]
