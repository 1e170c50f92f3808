"""The test that two agents act alike: its size under the null hypothesis, its power, and what is refused."""

from __future__ import annotations

import pytest
import torch

import graphsnd as gs


def draw(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("distance", [None, gs.Sliced(debias=True)])
def test_size(distance: gs.Distance | None) -> None:
    """Of 500 pairs that act alike, 5% are called different; benchmarks/samples.py has 2,000."""
    behaviors = [gs.Samples(draw(3, 2, 6, 1, seed=seed)) for seed in range(500)]
    p = [gs.act_alike(each, 0, 1, permutations=39, distance=distance, seed=k) for k, each in enumerate(behaviors)]
    rejected = sum(value <= 0.05 for value in p)
    assert 10 <= rejected <= 43  # 25 on average; outside of this with probability 0.0006
    assert sum(p) / 500 == pytest.approx(0.5, abs=0.06)


def test_power_against_equal_moments() -> None:
    """A coin with the same mean and variance as a Gaussian."""
    x = draw(1, 2, 200, 1, seed=0)
    x[:, 1] = x[:, 1].sign()
    assert gs.act_alike(gs.Samples(x), 0, 1) == 1 / 200


def test_discrete_samples_and_names() -> None:
    same = draw(20, 1, 8, 2, seed=1).sign().expand(20, 3, 8, 2).clone()
    same[:, 2] = 3
    behavior = gs.Samples(same).with_names(["a", "b", "c"])
    assert gs.act_alike(behavior, "a", "b") == 1  # no deal is nearer than 0
    assert gs.act_alike(behavior, "a", "c") == gs.act_alike(behavior, 0, 2) == 1 / 200


def test_permutations_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    behavior = gs.Samples(draw(1, 2, 6, 2, seed=2))
    whole = gs.act_alike(behavior, 0, 1)
    monkeypatch.setattr("graphsnd.analysis.permuting.CHUNK", 1)
    assert gs.act_alike(behavior, 0, 1) == whole


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        ((0, 0), {}, "another agent"),
        ((0, 5), {}, "`second`.*2 agents"),
        (("x", 1), {}, "`first`"),
        ((0, 1), {"permutations": 0}, "`permutations`"),
    ],
)
def test_refusals(arguments: tuple[int | str, int | str], options: dict[str, int], match: str) -> None:
    with pytest.raises(gs.InputError, match=match):
        gs.act_alike(gs.Samples(torch.zeros(1, 2, 4, 1)), *arguments, **options)
