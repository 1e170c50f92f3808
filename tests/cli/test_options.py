from __future__ import annotations

import pytest

from graphsnd import InputError
from graphsnd.cli.options import parse_device


def test_devices() -> None:
    assert parse_device("cpu") == "cpu"
    with pytest.raises(InputError, match="auto, cpu, cuda"):
        parse_device("abacus")
