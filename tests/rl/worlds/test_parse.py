from __future__ import annotations

from typing import Any

import pytest

from graphsnd.errors import InputError
from graphsnd.rl.worlds import Dispersion, Navigation, SimpleSpread, parse_world


@pytest.mark.parametrize(("text", "kind", "usual"), [
    ("navigation", Navigation, 4), ("dispersion", Dispersion, 4), ("simple_spread", SimpleSpread, 3),
])  # fmt: skip
def test_worlds_by_name(text: str, kind: type, usual: int) -> None:
    world = parse_world(text, None, 5, horizon=7)
    assert isinstance(world, kind)
    assert (world.agents, world.environments, world.horizon) == (usual, 5, 7)
    assert parse_world(f" {world.name} ", 6, 5).agents == 6


@pytest.mark.parametrize(("text", "options", "message"), [
    ("", {}, "simple_spread"),
    ("navigate", {}, "simple_spread"),
    ("vmas:balance", {}, "simple_spread"),
    (7, {}, "simple_spread"),
    ("dispersion", {"shared_rew": True}, "share_reward.*'shared_rew'"),
    ("navigation", {"dense": True}, "option of navigation"),
])  # fmt: skip
def test_other_texts_and_options_list_what_there_is(text: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_world(text, 4, 2, **options)
