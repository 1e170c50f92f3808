from __future__ import annotations

import pytest

from graphsnd.control import DiCo, Homogeneous, Unconstrained
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl import DiCoModelConfig


def test_targets_choose_the_controller() -> None:
    assert isinstance(DiCoModelConfig(target=0.2).make_controller(), DiCo)
    assert isinstance(DiCoModelConfig(target=0.0).make_controller(), Homogeneous)
    assert isinstance(DiCoModelConfig(target=None).make_controller(), Unconstrained)


def test_every_option_of_the_controller_can_be_set() -> None:
    options = {"tau": 0.2, "differentiable": True, "bootstrap": "target", "lowest": 0.1, "highest": 9.0}
    dico = DiCoModelConfig(target=0.2, design="ring:2", **options).make_controller()
    assert (dico.tau, dico.differentiable, dico.bounds) == (0.2, True, (0.1, 9.0))
    assert (dico.bootstrap, str(dico.design)) == ("target", "ring:2")


@pytest.mark.parametrize("options", [{"bootstrap": "guess"}, {"design": "bernoulli"}, {"tau": 0.0}, {"target": -1.0}])
def test_bad_values_are_named(options) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        DiCoModelConfig(**{"target": 0.2, **options}).make_controller()
