from __future__ import annotations

import pytest
import torch

from benchmarks import learning
from benchmarks.timing import Options


def test_both_algorithms_learn_by_both_rules() -> None:
    result = learning.measure(Options(torch.device("cpu"), quick=True, full=True))
    rewards = {(curve["rule"], curve["algorithm"], curve["seed"]): curve["rewards"] for curve in result["curves"]}
    assert list(rewards) == [
        (rule, name, seed)
        for rule, seeds in (("VMAS", 5), ("graphsnd", 3))
        for name in ("IPPO", "MAPPO")
        for seed in range(seeds)
    ]
    for rule in ("VMAS", "graphsnd"):
        # The same actors act first, whoever judges them.
        assert rewards[rule, "IPPO", 0][0] == rewards[rule, "MAPPO", 0][0]
        assert rewards[rule, "IPPO", 0][1] != rewards[rule, "MAPPO", 0][1]
    # Alone or stacked, a seed starts alike; VMAS's rule only ever forgives.
    assert all(rewards["VMAS", "IPPO", seed][0] >= rewards["graphsnd", "IPPO", seed][0] for seed in range(3))
    assert [(row["rule"], row["algorithm"]) for row in result["comparison"]] == [
        (rule, name) for rule in ("VMAS", "graphsnd") for name in ("IPPO", "MAPPO")
    ]
    assert [rows for rows, _ in learning.tables(result).values()] == [
        result["comparison"][:2],
        result["comparison"][2:],
    ]


def test_means_are_compared_by_their_deviation() -> None:
    def curves(*rewards: list[float]) -> list[dict[str, object]]:
        return [{"algorithm": "IPPO", "seed": seed, "rewards": own} for seed, own in enumerate(rewards)]

    row = learning.compare("IPPO", curves([0.0, 1.0], [0.0, 3.0]), curves([1.0, 4.0], [1.0, 6.0]))
    assert (row["whole_benchmarl"], row["whole_graphsnd"]) == (1.0, 3.0)
    # Means of runs are 0.5, 1.5 and 2.5, 3.5: a variance of 0.5 each, of a difference of two means of two 0.5.
    assert row["whole_apart"] == pytest.approx(2 / 0.5**0.5)
    assert row["overlap"] == 0.0
    assert learning.compare("IPPO", curves([0.0], [2.0]), curves([1.0], [5.0]))["overlap"] == 1.0
