from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from benchmarks.timing import Clock, Contestant, race, take_turns
from graphsnd.kernels.threads import limit_threads

CLOCK = Clock(torch.device("cpu"))


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    with limit_threads(2):
        yield


def test_calls_take_turns_backwards_in_every_other_round() -> None:
    called: list[str] = []
    calls = {name: lambda name=name: called.append(name) for name in "abc"}
    times = take_turns(calls, CLOCK, rounds={"a": 3, "b": 1, "c": 3}, repeats={"a": 1, "b": 1, "c": 2}, warm=1)
    assert "".join(called) == "abc" + "abcc" + "cca" + "acc"
    assert {name: len(each) for name, each in times.items()} == {"a": 3, "b": 1, "c": 3}


def test_short_calls_are_repeated_and_parts_scaled_up() -> None:
    one = Contestant("part", lambda: time.sleep(0.01), pairs=100, share=0.1, notes={"timed": 10})
    found = race([one, Contestant("none", lambda: None), Contestant("alone", lambda: None, alone=True)], CLOCK, 2)
    part = found["part"]
    assert 0.1 < part["min_s"] <= part["q1_s"] <= part["median_s"] <= part["q3_s"]
    assert part["pairs_per_second"] == pytest.approx(100 / part["median_s"])
    assert (part["rounds"], part["timed"], part["share_timed"]) == (2, 10, 0.1)
    assert (found["none"]["repeats"], found["alone"]["repeats"]) == (200, 1)


def test_with_one_thread_waiting_does_not_count_but_on_the_wall() -> None:
    with limit_threads(1):
        assert CLOCK.seconds(lambda: time.sleep(0.05)) < 0.04
        assert Clock(CLOCK.device, wall=True).seconds(lambda: time.sleep(0.05)) > 0.04
