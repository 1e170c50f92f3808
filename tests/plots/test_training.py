from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from graphsnd import InputError
from graphsnd.plots import save_png
from graphsnd.plots.film import film, play
from graphsnd.plots.training import curves_figure, training_table
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam
from graphsnd.training import Row
from graphsnd.worlds import Navigation, SimpleSpread, World


def _rows(solved: float | None = 0.5) -> list[Row]:
    rows = []
    for iteration in range(1, 9):
        for seed in (0, 1, 2):
            snd = 0.1 * iteration + 0.01 * seed if iteration % 4 == 0 else None
            rows.append(
                Row(iteration=iteration, seed=seed, reward=0.1 * iteration * (1 + seed), episodes=1, solved=solved,
                    policy_loss=0.0, value_loss=1.0, entropy=1.0, kl=0.0, snd=snd,
                    graph_snd=snd and snd + 0.02, snd_observations=9, snd_seconds=0.1, graph_snd_seconds=0.01,
                    behavior_seconds=0.1, rollout_seconds=1.0, update_seconds=1.0)
            )  # fmt: skip
    return rows


def _team(agents: int, features: int, head: GaussianHead | CategoricalHead) -> StackedTeam:
    generator = torch.Generator().manual_seed(0)
    return StackedTeam(StackedMLP.create((agents,), (features, 8, head.outputs), generator=generator), head)


def test_curves_show_mean_and_range_over_seeds(tmp_path: Path) -> None:
    figure = curves_figure(_rows())
    reward, solved, diversity = figure.axes
    np.testing.assert_allclose(reward.lines[0].get_ydata(), 0.1 * np.arange(1, 9) * 2)
    band = reward.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(2.4)
    np.testing.assert_array_equal(diversity.lines[0].get_xdata(), [4, 8])
    np.testing.assert_allclose(diversity.lines[1].get_ydata(), [0.43, 0.83])
    for ax in (reward, solved, diversity):
        assert ax.get_xlabel() == "iteration"
        assert ax.get_ylabel()
    assert save_png(figure, tmp_path / "curves.png").stat().st_size > 10_000


def test_curves_leave_out_what_was_not_measured() -> None:
    rows = [row for row in _rows(solved=None) if row.snd is None]
    assert len(curves_figure(rows).axes) == 1


def test_table_has_a_line_for_each_seed() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(training_table(_rows()))
    text = console.export_text()
    assert "+0.3000" in text
    assert "+2.4000" in text
    assert "0.8200" in text
    assert len([line for line in text.splitlines() if line.strip()[:1] in tuple("012")]) == 3


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
    scene = play(team, world, steps=4, seed=3)
    assert scene.paths.shape == (5, 5, 2)
    assert scene.goals is not None
    assert scene.goals.shape == (5, 2)
    assert len(set(scene.groups.tolist())) == 4
    with Image.open(film(team, world, tmp_path / "films" / "a.gif", steps=4)) as picture:
        assert picture.size == (620, 680)
        assert picture.n_frames > 4


def test_films_end_with_the_episode() -> None:
    world = Navigation(5, 2, horizon=6)
    assert len(play(_team(5, 18, GaussianHead(2, batch=(5,))), world, steps=40, seed=0).paths) == 7


def test_other_endings_and_a_missing_ffmpeg_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, team = Navigation(5, 2), _team(5, 18, GaussianHead(2, batch=(5,)))
    with pytest.raises(InputError, match=r"\.gif"):
        film(team, world, tmp_path / "a.avi")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InputError, match="ffmpeg"):
        film(team, world, tmp_path / "a.mp4")
