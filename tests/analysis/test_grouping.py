"""Roles: known ones are found, teams without any have one, and every number against a loop."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

import graphsnd as gs
from graphsnd import InputError
from graphsnd.analysis.grouping import CLEAR, COVERED, _group, _silhouettes

OBSERVATIONS = 48


def _act(weights: np.ndarray, actions: int, seed: int) -> gs.Deterministic:
    """Linear policies ``[n, features * actions]`` on shared observations."""
    parts = weights.reshape(len(weights), -1, actions)
    seen = np.random.default_rng(seed).standard_normal((OBSERVATIONS, parts.shape[1]))
    return gs.Deterministic(torch.from_numpy(np.einsum("of,nfa->ona", seen, parts)))


def _team(rng: np.random.Generator, count: int, apart: float = 3.0) -> tuple[gs.Deterministic, np.ndarray]:
    """A team of 12 to 100 agents in roles of unequal sizes and noise, whose nearest centres are ``apart`` apart.

    In units of the root mean square distance within a role, the largest of all roles.
    """
    actions, seed = int(rng.integers(1, 5)), int(rng.integers(2**30))
    features = int(rng.integers(1 + (actions == 1), 9))
    agents = int(rng.integers(max(12, 3 * count), 101))
    labels = np.repeat(np.arange(count), 3 + rng.multinomial(agents - 3 * count, rng.dirichlet(np.ones(count))))
    noise = rng.uniform(0.5, 2.0, count) if rng.random() < 0.5 else np.ones(count)
    own = rng.standard_normal((agents, features * actions)) * noise[labels, None]
    centres = rng.standard_normal((count, features * actions))
    if count > 1:
        spread = gs.pairwise(_act(own, actions, seed)).square().numpy()
        within = [spread[np.ix_(labels == k, labels == k)] for k in range(count)]
        rms = max(np.sqrt(part.sum() / (len(part) * (len(part) - 1))) for part in within)
        nearest = gs.pairwise(_act(centres, actions, seed)).numpy()[np.triu_indices(count, 1)].min()
        centres *= apart * rms / nearest
    return _act(own + centres[labels], actions, seed), labels


SHAPES = {
    **{f"gaussian-{d}": lambda rng, n, d=d: rng.standard_normal((n, d)) for d in (2, 4, 8, 16, 32)},
    **{f"uniform-{d}": lambda rng, n, d=d: rng.uniform(size=(n, d)) for d in (2, 8)},
    "line": lambda rng, n: np.outer(rng.uniform(size=n), rng.standard_normal(6)),
    "stretched": lambda rng, n: rng.standard_normal((n, 8)) * np.array([4, 2, 1, 1, 0.5, 0.5, 0.2, 0.1]),
    "outlier": lambda rng, n: rng.standard_normal((n, 4)) + 20.0 * (np.arange(n) == 0)[:, None],
    "student-3": lambda rng, n: rng.standard_normal((n, 4)) / np.sqrt(rng.chisquare(3, (n, 1)) / 3),
    "skewed": lambda rng, n: rng.exponential(size=(n, 3)),
    "identical": lambda rng, n: np.zeros((n, 3)),
}


def _right(teams: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return np.mean([gs.roles(_team(rng, 1 + at % 6)[0], seed=at).count == 1 + at % 6 for at in range(teams)])


def _one(shape: str, teams: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    drawn = (_act(SHAPES[shape](rng, int(rng.integers(12, 101))), 1, at) for at in range(teams))
    return sum(gs.roles(team).count == 1 for team in drawn)


def test_known_roles_are_found() -> None:
    assert _right(12, 1) >= 0.9


@pytest.mark.parametrize("shape", SHAPES)
def test_a_team_without_roles_has_one(shape: str) -> None:
    assert _one(shape, 1, 3) == 1


@pytest.mark.slow
def test_the_right_number_in_most_of_200_teams() -> None:
    assert _right(200, 0) >= 0.9


@pytest.mark.slow
def test_one_role_in_nearly_all_teams_without() -> None:
    assert sum(_one(shape, 20, 0) for shape in SHAPES) >= 0.95 * 20 * len(SHAPES)


def test_labels_are_those_that_made_the_team() -> None:
    team, labels = _team(np.random.default_rng(4), 4, apart=6.0)
    found = gs.roles(team)
    for role in range(4):
        assert len({labels[agent] for agent in (found.labels == role).nonzero().flatten().tolist()}) == 1
    sizes = found.labels.bincount().tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert found.silhouette > 0.6


def test_two_roles_near_each_other_and_far_from_a_third() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [4.0, 0.0], [400.0, 0.0]], 6, axis=0)
    assert gs.roles(_act(centres + 0.3 * rng.standard_normal(centres.shape), 2, 0)).count == 3


def test_small_teams() -> None:
    pairs = gs.Deterministic(torch.tensor([[[0.0], [0.01], [9.0], [9.01]]]))
    assert gs.roles(pairs).labels.tolist() == [0, 0, 1, 1]
    two = gs.roles(gs.Deterministic(torch.tensor([[[0.0], [3.0]]])))
    assert (two.count, two.loss.tolist()) == (1, [3.0, 3.0])


def test_loss_representatives_and_linkage_against_loops() -> None:
    team, _ = _team(np.random.default_rng(2), 3)
    found, matrix = gs.roles(team), gs.pairwise(team).numpy()
    n = team.agents
    for agent in range(0, n, 7):
        others = [i for i in range(n) if i != agent]
        rest = gs.snd(gs.Deterministic(team.actions[:, others]))
        assert float(found.loss[agent]) == pytest.approx(float(gs.snd(team) - rest), abs=1e-12)
    assert float(found.loss.min()) < 0 < float(found.loss.max())
    for role, agent in enumerate(found.representatives):
        mine = [i for i in range(n) if found.labels[i] == role]
        assert min(mine, key=lambda i: sum(matrix[i, j] for j in mine)) == agent
    np.testing.assert_array_equal(found.linkage, linkage(squareform(matrix, checks=False), "average"))
    assert len(set(found.cut(5).tolist())) == 5
    with pytest.raises(InputError, match="count"):
        found.cut(0)


def test_silhouettes_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((15, 2)), np.array([0] * 6 + [1] * 5 + [2] * 3 + [3])
    matrix = np.linalg.norm(points[:, None] - points[None], axis=-1)
    expected = []
    for i in range(15):
        means = {k: np.mean([matrix[i, j] for j in range(15) if labels[j] == k and j != i] or [0.0]) for k in range(4)}
        a, b = means.pop(labels[i]), min(means.values())
        expected.append(0.0 if (labels == labels[i]).sum() == 1 else (b - a) / max(a, b))
    np.testing.assert_allclose(
        _silhouettes(matrix @ np.eye(4)[labels], labels, np.bincount(labels)), expected, rtol=1e-12
    )


@pytest.mark.parametrize("step", [0.0, 0.5, 1.0])  # points on a grid have merges of one height
def test_the_best_cut_is_that_of_all_cuts(step: float) -> None:
    rng, found = np.random.default_rng(0), 0
    for _ in range(40):
        n, count, smallest = (int(rng.integers(low, high)) for low, high in ((2, 50), (1, 6), (2, 5)))
        points = 3 * rng.standard_normal((count, 2))[rng.integers(count, size=n)] + 0.3 * rng.standard_normal((n, 2))
        points = np.round(points / step) * step if step else points
        matrix = np.linalg.norm(points[:, None] - points[None], axis=-1)
        best, chosen = 0.0, None
        for parts in range(2, n):
            labels = fcluster(linkage(squareform(matrix, checks=False), "average"), parts, "maxclust")
            large = [part for part in np.unique(labels) if (labels == part).sum() >= smallest]
            own = np.array([large.index(label) if label in large else -1 for label in labels])
            within = own >= 0
            if len(large) < 2 or within.sum() < COVERED * n:
                continue
            hot = np.eye(len(large))[own[within]]
            silhouettes = _silhouettes(matrix[np.ix_(within, within)] @ hot, own[within], hot.sum(0))
            if (silhouettes @ hot / hot.sum(0)).min() > CLEAR and silhouettes.sum() / n > best + 1e-12:
                best, chosen = silhouettes.sum() / n, own
        value, labels = _group(matrix, smallest)
        assert value == pytest.approx(best, abs=1e-12)
        assert np.array_equal(labels, chosen) if chosen is not None else labels is None
        found += chosen is not None
    assert found > 10


def test_bad_input_is_refused() -> None:
    team = gs.Deterministic(torch.tensor([[[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]]))
    for given, options in ((team, {"smallest": 1}), (team, {"seed": -1}), ([torch.nn.Linear(2, 2)] * 3, {})):
        with pytest.raises(InputError):
            gs.roles(given, **options)  # type: ignore[arg-type]
