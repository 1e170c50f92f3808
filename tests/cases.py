"""Small teams of every family, each with an oracle: the table that most tests run over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import distributions as D

import graphsnd as gs
from tests import oracles

OBSERVATIONS, AGENTS = 3, 4
Parameters = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    name: str
    draw: Callable[[np.random.Generator, int, int], tuple[np.ndarray, ...]]  # unconstrained parameters
    build: Callable[..., gs.Behavior]
    pair: Callable[..., float]  # two agents' parameters for one observation, in float64
    distance: gs.Distance | None = None
    homogeneous: bool = False  # whether scaling what `build` takes scales the distance

    def parameters(
        self, dtype: torch.dtype = torch.float64, observations: int = OBSERVATIONS, agents: int = AGENTS, seed: int = 0
    ) -> Parameters:
        drawn = self.draw(np.random.default_rng(seed), observations, agents)
        return tuple(torch.from_numpy(p).to(dtype) for p in drawn)

    def behavior(self, dtype: torch.dtype = torch.float64, **sizes: int) -> gs.Behavior:
        return self.build(*self.parameters(dtype, **sizes))

    def oracle(self, *parameters: torch.Tensor) -> np.ndarray:
        """The matrix of equation (1) from the parameters, whatever their precision."""
        p = [t.detach().double().numpy() for t in parameters]
        pair = lambda o, i, j: self.pair(*((t[o, i], t[o, j]) for t in p))  # noqa: E731
        return oracles.distances(p[0].shape[1], p[0].shape[0], pair)


def _covariance(factor: torch.Tensor) -> torch.Tensor:
    return factor @ factor.mT + 0.1 * torch.eye(factor.shape[-1], dtype=factor.dtype)


def _full_gaussian(actions: int) -> Case:
    def pair(loc: tuple[np.ndarray, np.ndarray], factor: tuple[np.ndarray, np.ndarray]) -> float:
        one, two = (f @ f.T + 0.1 * np.eye(actions) for f in factor)
        return oracles.bures_wasserstein(loc[0], one, loc[1], two)

    return Case(
        f"full-gaussian-{actions}d",
        lambda r, o, n: (r.normal(size=(o, n, actions)), r.normal(size=(o, n, actions, actions))),
        lambda loc, factor: gs.MultivariateGaussian(loc, _covariance(factor)),
        pair,
    )


MASK = np.array([True, True, False, True, True])  # allowed actions of the masked cases


def _discrete(distance: gs.Distance, pair: Callable[[np.ndarray, np.ndarray], float], masked: bool) -> Case:
    mask = torch.from_numpy(MASK) if masked else None
    kept = MASK if masked else np.ones(5, dtype=bool)
    return Case(
        f"{distance.name}{'-masked' if masked else ''}",
        lambda r, o, n: (2 * r.normal(size=(o, n, 5)),),
        lambda logits: gs.Categorical(logits=logits, mask=mask),
        lambda logits: pair(*(oracles.softmax(x[kept]) for x in logits)),
        distance,
    )


def _squash(loc: torch.Tensor, log_scale: torch.Tensor) -> gs.Behavior:
    normal = D.Normal(loc, log_scale.exp(), validate_args=False)
    return gs.from_distribution(D.TransformedDistribution(normal, [D.TanhTransform()]))


GAUSSIAN = Case(
    "gaussian",
    lambda r, o, n: (r.normal(size=(o, n, 2)), r.uniform(0.1, 2, size=(o, n, 2))),
    gs.Gaussian,
    lambda loc, scale: oracles.euclidean(np.r_[loc[0], scale[0]], np.r_[loc[1], scale[1]]),
    homogeneous=True,
)
DETERMINISTIC = Case(
    "deterministic",
    lambda r, o, n: (r.normal(size=(o, n, 3)),),
    gs.Deterministic,
    lambda a: oracles.euclidean(*a),
    homogeneous=True,
)
BETA = Case(
    "beta",
    lambda r, o, n: (r.uniform(0.5, 5, size=(o, n, 2)), r.uniform(0.5, 5, size=(o, n, 2))),
    lambda a, b: gs.from_distribution(D.Beta(a, b, validate_args=False)),
    lambda a, b: oracles.wasserstein_product(oracles.beta_quantiles(a[0], b[0]), oracles.beta_quantiles(a[1], b[1])),
)
TANH_NORMAL = Case(
    "tanh-normal",
    lambda r, o, n: (r.normal(size=(o, n, 2)), r.uniform(-2, 0.5, size=(o, n, 2))),
    _squash,
    lambda loc, log_scale: oracles.wasserstein_product(
        *(np.tanh(m[:, None] + np.exp(s)[:, None] * oracles.GRID) for m, s in zip(loc, log_scale, strict=True))
    ),
)
LOG_NORMAL = Case(
    "log-normal",
    lambda r, o, n: (r.normal(size=(o, n, 2)), r.uniform(-2, 0, size=(o, n, 2))),
    lambda loc, log_scale: gs.from_distribution(D.LogNormal(loc, log_scale.exp(), validate_args=False)),
    lambda loc, log_scale: oracles.wasserstein_product(
        *(np.exp(m[:, None] + np.exp(s)[:, None] * oracles.GRID) for m, s in zip(loc, log_scale, strict=True))
    ),
)
DISCRETE = [
    _discrete(distance, pair, masked)
    for distance, pair in [
        (gs.TotalVariation(), oracles.total_variation),
        (gs.Hellinger(), oracles.hellinger),
        (gs.JensenShannon(), oracles.jensen_shannon),
    ]
    for masked in (False, True)
]
MULTI_DISCRETE = Case(
    "multi-discrete",
    lambda r, o, n: (2 * r.normal(size=(o, n, 5)), 2 * r.normal(size=(o, n, 3))),
    lambda *logits: gs.Joint([gs.Categorical(logits=each) for each in logits]),
    lambda *logits: sum(oracles.total_variation(*map(oracles.softmax, pair)) for pair in logits) / 2,
)
MIXED = Case(  # every norm at once, and a part within a part
    "mixed",
    lambda r, o, n: (r.normal(size=(o, n, 2)), r.uniform(0.1, 2, size=(o, n, 2)), *r.normal(size=(4, o, n, 3))),
    lambda loc, scale, *logits: gs.Joint(
        {
            "move": gs.Gaussian(loc, scale),
            "arm": gs.MultivariateGaussian(loc, torch.diag_embed(scale.double() ** 2)),
            "grip": gs.Joint([gs.Categorical(logits=each) for each in logits[:2]], weights=[1, 3]),
            **{name: gs.Categorical(logits=each) for name, each in zip("ab", logits[2:], strict=True)},
        },
        weights={"move": 1, "arm": 0.5, "grip": 2, "a": 1, "b": 1.5},
        distance={"a": gs.Hellinger(), "b": gs.JensenShannon()},
    ),
    lambda loc, scale, *logits: (
        (
            1.5 * oracles.euclidean(np.r_[loc[0], scale[0]], np.r_[loc[1], scale[1]])
            + sum(
                weight * distance(*map(oracles.softmax, pair))
                for weight, distance, pair in zip(
                    (0.5, 1.5, 1, 1.5),
                    (oracles.total_variation, oracles.total_variation, oracles.hellinger, oracles.jensen_shannon),
                    logits,
                    strict=True,
                )
            )
        )
        / 6
    ),
)
CLOSED_FORM = [GAUSSIAN, DETERMINISTIC, *(_full_gaussian(a) for a in (1, 2, 3)), *DISCRETE]
QUADRATURE = [BETA, TANH_NORMAL, LOG_NORMAL]
CASES = [*CLOSED_FORM, *QUADRATURE, MULTI_DISCRETE, MIXED]

each = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
