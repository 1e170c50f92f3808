from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
import torch
from benchmarl.models import Mlp

from graphsnd.control import DiCo, Homogeneous, Unconstrained
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl import DiCoModelConfig
from tests.integrations.benchmarl.conftest import specs


def test_targets_choose_the_controller() -> None:
    assert isinstance(DiCoModelConfig(target=0.2).make_controller(), DiCo)
    assert isinstance(DiCoModelConfig(target=0.0).make_controller(), Homogeneous)
    assert isinstance(DiCoModelConfig(target=None).make_controller(), Unconstrained)


def test_every_option_of_the_controller_can_be_set() -> None:
    options = {"tau": 0.2, "through": True, "bootstrap": "target", "lowest": 0.1, "highest": 9.0, "design": "ring:2"}
    dico = DiCoModelConfig(target=0.2, **options).make_controller()
    assert (dico.tau, dico.through, dico.bounds) == (0.2, True, (0.1, 9.0))
    assert (dico.bootstrap.value, str(dico.design)) == ("target", "ring:2")


def test_it_is_pickled() -> None:
    config = DiCoModelConfig(target=0.2, design="regular:2")
    assert pickle.loads(pickle.dumps(config)) == config


def test_critics_are_plain() -> None:
    config = DiCoModelConfig(target=0.2, num_cells=(8, 8), activation="relu")
    config.is_critic = True
    critic = config.get_model(**specs(3, 5, 1))
    assert isinstance(critic, Mlp)
    assert any(isinstance(part, torch.nn.ReLU) for part in critic.modules())


@pytest.mark.parametrize("options", [{"bootstrap": "guess"}, {"design": "bernoulli"}, {"tau": 0.0}, {"target": -1.0}])
def test_bad_values_are_named(options) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        DiCoModelConfig(**{"target": 0.2, **options}).make_controller()


def test_benchmarl_is_imported_late_and_its_absence_explained() -> None:
    code = """
import sys
import graphsnd
assert not {"benchmarl", "torchrl", "hydra"} & set(sys.modules)
sys.modules["benchmarl"] = None
try:
    import graphsnd.integrations.benchmarl
except graphsnd.errors.MissingExtraError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install benchmarl" in result.stdout
