from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs


@pytest.fixture
def drawn() -> tuple[gs.Deterministic, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    places = torch.rand(2000, 2, generator=generator)
    team = torch.randn(2000, 4, 2, generator=generator) * (1 + 3 * places[:, :1, None])
    return gs.Deterministic(team), places


def test_squares_have_the_means_and_the_counts(drawn: tuple[gs.Deterministic, torch.Tensor]) -> None:
    team, places = drawn
    field = gs.bin_field(team, places, bins=5)
    ax = gs.plots.field(team, places, bins=5, names=("distance to goal", "speed"))
    [squares] = ax.collections
    np.testing.assert_allclose(squares.get_array(), field.means.flatten())
    wide = np.array([np.ptp(path.vertices[:, 0]) for path in squares.get_paths()])
    whole = np.diff(field.edges[0].numpy()).mean()
    np.testing.assert_allclose(wide / whole, (field.counts / field.counts.max()).sqrt().flatten(), rtol=1e-6)
    assert ((np.array(squares.get_linewidths()) > 0) == (field.apart() != 0).flatten().numpy()).all()
    assert (field.apart() == 1).any()
    assert (field.apart() == -1).any()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance to goal", "speed")
    assert f"SND {field.snd:.3g} on 2,000" in ax.get_title(loc="left")


def test_values_and_fields_are_drawn_alike(drawn: tuple[gs.Deterministic, torch.Tensor]) -> None:
    team, places = drawn
    for source, options in (
        (gs.by_observation(team).numpy(), {"features": places.numpy()}),
        (gs.bin_field(team, places), {}),
    ):
        ax = gs.plots.field(source, **options)
        np.testing.assert_allclose(ax.collections[0].get_array(), gs.bin_field(team, places).means.flatten(), rtol=1e-6)


def test_on_axes_of_the_user_and_in_the_dark(drawn: tuple[gs.Deterministic, torch.Tensor]) -> None:
    from matplotlib import pyplot
    from matplotlib.colors import to_rgb

    with gs.plots.theme("dark"):
        ax = pyplot.figure().add_subplot()
        assert gs.plots.field(*drawn, ax=ax) is ax
        assert tuple(ax.collections[0].get_edgecolor()[0][:3]) > (0.8, 0.8, 0.8)
        alone = gs.plots.field(*drawn).figure
    alone.canvas.draw()  # ticks are made now, with the light settings
    [bar] = alone.axes[0].child_axes
    assert all(min(to_rgb(tick.label2.get_color())) > 0.8 for tick in bar.yaxis.get_major_ticks())


def test_missing_features_are_named(drawn: tuple[gs.Deterministic, torch.Tensor]) -> None:
    with pytest.raises(gs.InputError, match="`features`"):
        gs.plots.field(drawn[0])
    with pytest.raises(gs.InputError, match="`names`"):
        gs.plots.field(*drawn, names=("x",))
