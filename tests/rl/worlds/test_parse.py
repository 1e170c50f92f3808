from __future__ import annotations

import pytest

from graphsnd.errors import InputError
from graphsnd.rl.worlds import Dispersion, Navigation, SimpleSpread
from graphsnd.rl.worlds.parse import parse_world


@pytest.mark.parametrize(("text", "kind", "usual"), [
    ("navigation", Navigation, 4), ("dispersion", Dispersion, 4), ("simple_spread", SimpleSpread, 3),
])  # fmt: skip
def test_batched_worlds(text: str, kind: type, usual: int) -> None:
    world = parse_world(text, None, 5, horizon=7)
    assert isinstance(world, kind)
    assert (world.agents, world.environments, world.horizon) == (usual, 5, 7)
    assert parse_world(f" {text} ", 6, 5).agents == 6
    assert parse_world(world.name, 6, 5) is not None


def test_the_real_simulators() -> None:
    pytest.importorskip("vmas")
    assert parse_world("vmas:balance", 4, 2).agents == 4
    assert parse_world("vmas:wheel", None, 2).name == "vmas:wheel"


def test_a_team_of_fixed_size_says_so() -> None:
    pytest.importorskip("mpe2")
    with pytest.raises(InputError, match="agents"):
        parse_world("mpe2:simple_v3", 4, 2)


@pytest.mark.parametrize("text", ["", "navigate", "vmas:", "vmas", "navigation:3", "gym:x"])
def test_other_texts_list_what_there_is(text: str) -> None:
    with pytest.raises(InputError, match="simple_spread"):
        parse_world(text, 4, 2)


def test_unknown_options_list_what_there_is() -> None:
    with pytest.raises(InputError, match=r"share_reward.*'shared_rew'"):
        parse_world("dispersion", 4, 2, shared_rew=True)
    with pytest.raises(InputError, match="option of navigation"):
        parse_world("navigation", 4, 2, dense=True)
