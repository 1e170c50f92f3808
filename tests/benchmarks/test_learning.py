from __future__ import annotations

import pytest
import torch

from benchmarks import learning
from benchmarks.timing import Options


def test_both_algorithms_learn_with_three_seeds() -> None:
    curves = [
        curve for name in ("IPPO", "MAPPO") for curve in learning.learn(name, Options(torch.device("cpu"), quick=True))
    ]
    assert [(curve["algorithm"], curve["seed"]) for curve in curves] == [
        (name, seed) for name in ("IPPO", "MAPPO") for seed in range(3)
    ]
    # The same actors act first, whoever judges them.
    assert curves[0]["rewards"][0] == curves[3]["rewards"][0]
    assert curves[0]["rewards"][1] != curves[3]["rewards"][1]


def test_means_are_compared_by_their_deviation() -> None:
    def curves(*rewards: list[float]) -> list[dict[str, object]]:
        return [{"algorithm": "IPPO", "seed": seed, "rewards": own} for seed, own in enumerate(rewards)]

    row = learning.compare("IPPO", curves([0.0, 1.0], [0.0, 3.0]), curves([1.0, 4.0], [1.0, 6.0]))
    assert (row["whole_benchmarl"], row["whole_graphsnd"]) == (1.0, 3.0)
    # Means of runs are 0.5, 1.5 and 2.5, 3.5: a variance of 0.5 each, of a difference of two means of two 0.5.
    assert row["whole_apart"] == pytest.approx(2 / 0.5**0.5)
    assert row["overlap"] == 0.0
    assert learning.compare("IPPO", curves([0.0], [2.0]), curves([1.0], [5.0]))["overlap"] == 1.0
