from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from benchmarks.timing import Clock, Contestant, take_turns

CLOCK = Clock(torch.device("cpu"))


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_contestants_take_turns_and_repeat_when_short() -> None:
    calls: list[str] = []
    slow = Contestant("slow", lambda: (calls.append("slow"), time.sleep(0.02)))
    slower = Contestant("slower", lambda: (calls.append("slower"), time.sleep(0.03)))
    found = take_turns([slow, slower], CLOCK, rounds=3, seconds=0.0)
    assert calls[-6:] == ["slow", "slower"] * 3
    assert found["slow"]["rounds"] == 3
    assert 0.015 < found["slow"]["min_s"] <= found["slow"]["q1_s"] <= found["slow"]["median_s"] <= found["slow"]["q3_s"]
    assert take_turns([Contestant("none", lambda: None)], CLOCK, rounds=2, seconds=0.0)["none"]["repeats"] == 200


def test_a_part_is_scaled_up() -> None:
    one = Contestant("part", lambda: time.sleep(0.01), pairs=100, share=0.1, notes={"timed": 10})
    found = take_turns([one], CLOCK, rounds=2, seconds=0.0)["part"]
    assert found["median_s"] > 0.1
    assert found["pairs_per_second"] == pytest.approx(100 / found["median_s"])
    assert found["timed"] == 10


def test_more_rounds_while_there_is_time() -> None:
    found = take_turns([Contestant("none", lambda: None)], CLOCK, rounds=2, seconds=60.0)
    assert found["none"]["rounds"] == 6


def test_with_one_thread_waiting_does_not_count() -> None:
    torch.set_num_threads(1)
    assert CLOCK.seconds(lambda: time.sleep(0.05)) < 0.04
