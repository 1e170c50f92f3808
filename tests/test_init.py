"""The names of the package, which are loaded when they are first used."""

from __future__ import annotations

import sys

import pytest

import graphsnd as gs


@pytest.mark.parametrize("name", gs.__all__)
def test_every_name_exists_and_is_listed(name: str) -> None:
    assert getattr(gs, name) is not None
    assert name in dir(gs)


def test_names_come_from_their_stages() -> None:
    assert gs.snd is gs.metric.snd
    assert gs.control is sys.modules["graphsnd.control"]
    assert {"behavior", "control", "plots", "__version__"} <= set(dir(gs))
    with pytest.raises(AttributeError, match="no attribute 'sdn'"):
        gs.sdn  # noqa: B018
    with pytest.raises(ImportError):
        from graphsnd import sdn  # noqa: F401
