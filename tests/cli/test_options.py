from __future__ import annotations

from types import SimpleNamespace

import pytest

from graphsnd import InputError
from graphsnd.cli.options import check_resumed, parse_changes, parse_device, parse_seeds, repeat_command


def test_settings_and_options_of_the_world_are_told_apart() -> None:
    settings, options = parse_changes(["learning_rate=1e-3", "world.collisions=false", "name=text"], {})
    assert settings == {"learning_rate": 1e-3, "name": "text"}
    assert options == {"collisions": False}
    with pytest.raises(InputError, match="KEY=VALUE"):
        parse_changes(["learning_rate"], {})


def test_a_setting_is_given_once() -> None:
    with pytest.raises(InputError, match="another option sets"):
        parse_changes(["iterations=6"], {"iterations": 5})


def test_seeds_and_devices() -> None:
    with pytest.raises(InputError, match="separated by commas"):
        parse_seeds("one")
    assert parse_device("cpu") == "cpu"
    with pytest.raises(InputError, match="auto, cpu or cuda"):
        parse_device("abacus")


def test_nothing_may_contradict_the_checkpoint() -> None:
    task = SimpleNamespace(world="navigation", agents=4)
    check_resumed(task, {"seeds": None, "change": [], "world": "navigation", "agents": None})
    with pytest.raises(InputError, match="without --resume"):
        check_resumed(task, {"seeds": "1,2"})
    with pytest.raises(InputError, match="which the checkpoint holds"):
        check_resumed(task, {"world": "dispersion"})


def test_a_repeated_command_leaves_out_nothing_but_what_is_usual() -> None:
    options = {"reward": "normalised", "seed": 0, "force": True}
    assert repeat_command("measure", ["a"], options) == "graphsnd measure a --reward normalised --seed 0"
