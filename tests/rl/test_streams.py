from __future__ import annotations

import torch

from graphsnd.rl.streams import NAMES, Streams

CPU = torch.device("cpu")


def _draw(streams: Streams) -> dict[str, float]:
    return {name: float(torch.rand(1, generator=getattr(streams, name))) for name in NAMES}


def test_streams_of_seeds_and_purposes_are_unrelated() -> None:
    drawn = [_draw(Streams.make(seed, CPU)) for seed in range(3)]
    assert len({value for each in drawn for value in each.values()}) == 3 * len(NAMES)
    assert _draw(Streams.make(1, CPU)) == drawn[1]


def test_more_of_one_draw_does_not_shift_the_others() -> None:
    one, two = (Streams.make(4, CPU) for _ in range(2))
    torch.rand(100, generator=one.actions)
    first, second = _draw(one), _draw(two)
    assert [name for name in NAMES if first[name] != second[name]] == ["actions"]
