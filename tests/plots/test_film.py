from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphsnd import InputError
from graphsnd.plots.film import play_episode, write_film
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam
from graphsnd.worlds import Navigation, SimpleSpread, World


def _team(agents: int, features: int, head: GaussianHead | CategoricalHead) -> StackedTeam:
    generator = torch.Generator().manual_seed(0)
    return StackedTeam(StackedMLP.create((agents,), (features, 8, head.outputs), generator=generator), head)


@pytest.mark.parametrize(("world", "head"), [
    (Navigation(5, 2, horizon=6), GaussianHead(2, batch=(5,))),
    (SimpleSpread(5, 2), CategoricalHead(5)),
], ids=["navigation", "simple_spread"])  # fmt: skip
def test_film(
    world: World, head: GaussianHead | CategoricalHead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    monkeypatch.setattr("graphsnd.plots.film.FPS", 2)  # the last picture stands for a second

    team = _team(5, world.observation_features, head)
    scene = play_episode(team, world, steps=4, seed=3)
    assert scene.paths.shape == (5, 5, 2)
    assert scene.goals is not None
    assert scene.goals.shape == (5, 2)
    assert len(set(scene.groups.tolist())) == 4
    with Image.open(write_film(team, world, tmp_path / "films" / "a.gif", steps=4)) as picture:
        assert picture.size == (620, 680)
        assert picture.n_frames > 4


def test_films_end_with_the_episode() -> None:
    world = Navigation(5, 2, horizon=6)
    assert len(play_episode(_team(5, 18, GaussianHead(2, batch=(5,))), world, steps=40).paths) == 7


def test_other_endings_and_a_missing_ffmpeg_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, team = Navigation(5, 2), _team(5, 18, GaussianHead(2, batch=(5,)))
    with pytest.raises(InputError, match=r"\.gif"):
        write_film(team, world, tmp_path / "a.avi")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InputError, match="ffmpeg"):
        write_film(team, world, tmp_path / "a.mp4")
