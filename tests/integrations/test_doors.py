from __future__ import annotations

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]


def test_every_way_in_gives_the_number_of_a_loop() -> None:
    for package in ("torchrl", "benchmarl", "torch_geometric", "torchmetrics", "mpe2", "stable_baselines3", "flax"):
        pytest.importorskip(package)
    from tests.integrations.doors import doors

    opened = list(doors())
    assert len({door.name for door in opened}) == 56
    for door in opened:
        if door.name.startswith("shared parameters"):
            assert door.measured == 0.0, door
        else:
            assert door.by_hand > 0, door
            assert door.measured == pytest.approx(door.by_hand, rel=1e-5), door
