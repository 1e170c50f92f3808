from __future__ import annotations

import pytest

from graphsnd import InputError
from graphsnd.cli.options import parse_device, repeat_command


def test_devices() -> None:
    assert parse_device("cpu") == "cpu"
    with pytest.raises(InputError, match="auto, cpu, cuda"):
        parse_device("abacus")


def test_a_repeated_command_leaves_out_nothing_but_what_is_usual() -> None:
    options = {"reward": "normalised", "seed": 0, "force": True}
    assert repeat_command("measure", ["a"], options) == "graphsnd measure a --reward normalised --seed 0"
