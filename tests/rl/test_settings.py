from __future__ import annotations

from typing import Any

import pytest

from graphsnd import InputError
from graphsnd.rl import PRESETS, Settings
from tests.training import control_settings


def test_the_preset_of_100_agents_is_the_papers_table() -> None:
    s = PRESETS["navigation-100"].settings
    assert (s.steps, s.environments, s.samples) == (128, 32, 4096)
    assert (s.gamma, s.gae_lambda, s.clip, s.learning_rate) == (0.99, 0.95, 0.2, 3e-4)
    assert (s.epochs, s.minibatch, s.iterations, s.hidden, s.activation) == (4, 512, 500, (64, 64), "tanh")
    assert (s.value_coefficient, s.entropy_coefficient, s.max_gradient_norm, s.log_std) == (0.5, 0.01, 0.5, -0.5)


@pytest.mark.parametrize(("name", "value"), [
    ("steps", 0), ("minibatch", 2.5), ("learning_rate", 0.0), ("gamma", 1.5), ("hidden", (8, 0)), ("policy", "beta"),
    ("critic", "shared"),
    ("entropy_coefficient", -1.0), ("diversity_every", -1), ("clip", float("nan")),
    ("diversity_probability", 0.0), ("steps", "128"), ("gamma", "0.9"), ("hidden", "64"), ("hidden", 64),
    ("joint", "false"), ("activation", 5), ("log_std", None), ("actor_gain", float("inf")),
])  # fmt: skip
def test_bad_values_are_named(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"`{name}`"):
        Settings(**{name: value})


def test_one_sample_has_no_standard_deviation() -> None:
    with pytest.raises(InputError, match="one advantage"):
        Settings(steps=1, environments=1)
    assert Settings(steps=1, environments=1, normalise_advantages=False).samples == 1


def test_unknown_names_are_listed() -> None:
    with pytest.raises(InputError, match="learning_rate"):
        Settings().replace(lr=1)


def test_the_preset_of_controlled_teams_is_the_papers_study() -> None:
    s = PRESETS["dispersion-10"].settings
    assert (s.steps, s.environments, s.epochs, s.minibatch, s.iterations) == (100, 600, 45, 4096, 167)
    assert (s.gamma, s.gae_lambda, s.clip, s.learning_rate, s.action_learning_rate) == (0.9, 0.9, 0.2, 5e-5, 3e-5)
    assert (s.tau, s.bootstrap, s.hidden, s.observations, s.max_gradient_norm) == (
        0.01,
        "measured",
        (256, 256),
        2048,
        5,
    )
    assert {s.normalise_advantages, s.bootstrap_time_limits, s.restart, s.differentiable} == {False}
    assert PRESETS["dispersion-50"].settings == s.replace(environments=120)


@pytest.mark.parametrize("changes", [
    {"epochs": 0}, {"gamma": 2.0}, {"tau": 0.0}, {"bootstrap": "guess"}, {"bounds": (2.0, 3.0)}, {"nothing": 1},
    {"learning_rate": -1.0}, {"hidden": (0,)}, {"bounds": ("a", 2.0)},
    {"differentiable": 1}, {"epsilon": "1e-5"},
])  # fmt: skip
def test_control_settings_out_of_range(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        control_settings().replace(**changes)
