from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch

import graphsnd as gs
from tests import oracles

LABELS = ["red", "blue", "red", "green", "blue", "red", "red"]
N = len(LABELS)


def by_hand(x: torch.Tensor) -> dict[tuple[str, str], list[float]]:
    values = x.detach().double().numpy()
    matrix = oracles.distances(N, len(x), lambda o, i, j: oracles.euclidean(values[o, i], values[o, j]))
    found: dict[tuple[str, str], list[float]] = {}
    for i, j in combinations(range(N), 2):
        found.setdefault(tuple(sorted((LABELS[i], LABELS[j]))), []).append(matrix[i, j])  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_parts_are_those_of_a_loop(generator: torch.Generator, dtype: torch.dtype, rel: float) -> None:
    x = torch.randn(11, N, 3, generator=generator, dtype=torch.float64).to(dtype)
    result, expected, pairs = gs.decompose(gs.Deterministic(x), LABELS), by_hand(x), math.comb(N, 2)
    assert result.groups == ("red", "blue", "green")
    within = math.fsum(d for (g, h), values in expected.items() if g == h for d in values) / pairs
    between = math.fsum(d for (g, h), values in expected.items() if g != h for d in values) / pairs
    assert float(result.within) == pytest.approx(within, rel=rel)
    assert float(result.between) == pytest.approx(between, rel=rel)
    assert float(result.within + result.between) == pytest.approx(float(gs.snd(gs.Deterministic(x))), rel=rel)
    assert float(result.snd) == pytest.approx(float(gs.snd(gs.Deterministic(x))), rel=rel)
    for a, g in enumerate(result.groups):
        for b, h in enumerate(result.groups):
            values = expected.get(tuple(sorted((str(g), str(h)))), [])  # type: ignore[call-overload]
            assert int(result.pairs[a, b]) == len(values)
            assert float(result.means[a, b]) == pytest.approx(np.mean(values) if values else 0.0, rel=rel)
            share = math.fsum(values) / pairs if a <= b else 0.0
            assert float(result.shares[a, b]) == pytest.approx(share, rel=rel)


def test_means_within_are_the_groups_own_snd(generator: torch.Generator) -> None:
    probs = torch.rand(9, N, 4, generator=generator, dtype=torch.float64).softmax(-1)
    for distance in (None, gs.Hellinger(), gs.JensenShannon()):
        result = gs.decompose(gs.Categorical(probs), LABELS, distance)
        red = probs[:, [i for i, name in enumerate(LABELS) if name == "red"]]
        assert float(result.means[0, 0]) == pytest.approx(float(gs.snd(gs.Categorical(red), distance)), rel=1e-12)


def test_one_group_and_groups_of_one(generator: torch.Generator) -> None:
    team = gs.Deterministic(torch.randn(4, N, 2, generator=generator, dtype=torch.float64))
    one, alone = gs.decompose(team, torch.zeros(N)), gs.decompose(team, torch.arange(N))
    assert (float(one.between), float(alone.within)) == (0.0, 0.0)
    assert str(one).endswith("between 1 group")
    assert str(alone).endswith(f"between {N} groups")
    torch.testing.assert_close(one.within, gs.snd(team), rtol=1e-12, atol=0)
    torch.testing.assert_close(alone.between, gs.snd(team), rtol=1e-12, atol=0)
    torch.testing.assert_close(alone.means, gs.pairwise(team), rtol=1e-12, atol=0)


def test_gradient(generator: torch.Generator) -> None:
    x = torch.randn(2, N, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: gs.decompose(gs.Deterministic(x), LABELS).within, (x,))


def test_labels_for_other_agents() -> None:
    with pytest.raises(gs.InputError, match=r"`labels`.*4, one for each agent.*3"):
        gs.decompose(gs.Deterministic(torch.zeros(1, 4, 1)), [0, 1, 1])
    with pytest.raises(gs.InputError, match=r"`labels`.*flat"):
        gs.decompose(gs.Deterministic(torch.zeros(1, 4, 1)), torch.zeros(4, 2))
    with pytest.raises(gs.InputError, match=r"`labels`.*flat"):  # before they are listed
        gs.decompose(gs.Deterministic(torch.zeros(1, 4, 1)), torch.zeros(1).expand(4, 2**34))
