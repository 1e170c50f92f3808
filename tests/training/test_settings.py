from __future__ import annotations

from typing import Any

import pytest

from graphsnd import InputError
from graphsnd.training import PRESETS, Settings, preset
from graphsnd.worlds import parse_world


def test_defaults_are_the_papers_table() -> None:
    s = Settings()
    assert (s.steps, s.environments, s.samples) == (128, 32, 4096)
    assert (s.gamma, s.gae_lambda, s.clip, s.learning_rate) == (0.99, 0.95, 0.2, 3e-4)
    assert (s.epochs, s.minibatch, s.iterations, s.hidden, s.activation) == (4, 512, 500, (64, 64), "tanh")
    assert (s.value_coefficient, s.entropy_coefficient, s.max_gradient_norm, s.log_std) == (0.5, 0.01, 0.5, -0.5)


def test_json_round_trip() -> None:
    settings = Settings(hidden=(8, 4, 2), joint=True, learning_rate=1e-5, policy="tanh-normal")
    assert Settings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(("name", "value"), [
    ("steps", 0), ("minibatch", 2.5), ("learning_rate", 0.0), ("gamma", 1.5), ("hidden", (8, 0)), ("policy", "beta"),
    ("entropy_coefficient", -1.0), ("diversity_every", -1), ("clip", float("nan")),
    ("diversity_probability", 0.0),
])  # fmt: skip
def test_bad_values_are_named(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"`{name}`"):
        Settings(**{name: value})


def test_unknown_names_are_listed() -> None:
    with pytest.raises(InputError, match="learning_rate"):
        Settings().replace(lr=1)
    with pytest.raises(InputError, match="JSON"):
        Settings.from_json("{")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_make_worlds(name: str) -> None:
    found = preset(name)
    world = parse_world(found.world, found.agents, found.settings.environments, **found.options)
    assert world.agents == found.agents


def test_unknown_preset_lists_them() -> None:
    with pytest.raises(InputError, match="navigation-small"):
        preset("chess")
