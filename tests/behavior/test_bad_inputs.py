"""What behaviours and distances refuse, by the name of the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import distributions as D

import graphsnd as gs
from graphsnd.behavior.behavior import embed

NAN, INF = float("nan"), float("inf")
LOC = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SCALE = LOC.exp()
PROBS, LOGITS = torch.full((1, 2, 4), 0.25), torch.zeros(1, 2, 4)
CAT, DET = gs.Categorical(torch.full((5, 3, 2), 0.5)), gs.Deterministic(torch.zeros(5, 3, 2))
TWO = gs.Joint([CAT, DET], [1, 1])
SQUASH = [D.TanhTransform()]


def squashed(base: D.Distribution, *transforms: Any) -> D.Distribution:
    return D.TransformedDistribution(base, list(transforms or SQUASH))


def named(**arrays: Any) -> dict[str, Any]:
    return arrays


# One argument, the callable that is given it, and values that it refuses.
VALUES: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("actions", gs.Deterministic, [
        [[0.0, 1.0]], torch.zeros(3), torch.tensor(1.0), torch.zeros(2, 3, 2).long(), torch.zeros(2, 3, 2).byte(),
        torch.zeros(2, 3, 2).bool(), torch.zeros(0, 3, 2), torch.zeros(5, 0, 3, 2), torch.zeros(4, 0, 2),
        torch.zeros(4, 3, 0), torch.full((2, 3, 2), NAN), torch.tensor([[0.0], [INF]]), torch.tensor([[INF], [-INF]]),
        {}, named(a=torch.ones(5, 2), b=torch.ones(5, 3)),
    ]),
    ("actions['b']", gs.Deterministic, [named(a=torch.ones(5, 2), b=[1.0])]),
    ("names", gs.Deterministic, [{1: torch.ones(5, 2), "1": torch.ones(5, 2)}]),
    ("names", gs.Deterministic(torch.ones(5, 2, 1)).with_names, ["abab", ["a", "a"]]),
    ("scale", lambda scale: gs.Gaussian(named(a=torch.ones(5, 2)), scale), [named(b=torch.ones(5, 2))]),
    ("scale", lambda scale: gs.Gaussian(LOC, scale), [
        torch.tensor([1.0, -0.25]), -1.0, torch.tensor([1.0, NAN]), INF, torch.ones(5), torch.ones(2, 4, 3, 2), "wide",
        None,
    ]),
    ("loc", lambda bad: gs.Gaussian(LOC.clone().index_fill_(0, torch.tensor([1]), bad), 1.0), [NAN, INF, -INF]),
    ("covariance", lambda covariance: gs.MultivariateGaussian(LOC, covariance), [
        torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.tensor([[1.0, 0.5], [0.0, 1.0]]),
        torch.tensor([[1.0, NAN], [NAN, 1.0]]), torch.ones(3, 3), torch.ones(2), torch.eye(2).long(), 1.0,
    ]),
    ("probs", lambda given: gs.Categorical(**given), [{}, {"probs": PROBS, "logits": LOGITS}]),
    ("probs", gs.Categorical, [PROBS * 1.01, PROBS - 0.5, PROBS * NAN, PROBS[0, 0]]),
    ("logits", lambda logits: gs.Categorical(logits=logits), [LOGITS * NAN, LOGITS + INF, torch.zeros(0, 2, 3)]),
    ("mask", lambda mask: gs.Categorical(logits=LOGITS, mask=mask), [
        torch.zeros(4).bool(), torch.ones(3).bool(), [True, True, False],
    ]),
    ("mask", lambda mask: gs.Categorical(probs=PROBS, mask=mask), [PROBS > 0]),
    ("values", gs.Quantiles, [
        [0.0], torch.zeros(3, 2), torch.zeros(3, 2, 4).long(), torch.zeros(0, 3, 2, 4), torch.full((1, 3, 2, 4), INF),
    ]),
    ("samples", gs.Samples, [
        torch.zeros(3, 2), torch.zeros(3, 2, 0, 1), torch.zeros(0, 2, 3, 1), torch.full((3, 2, 4, 1), NAN),
        torch.zeros(3, 2, 4, 1).int(),
    ]),
    ("samples", lambda samples: gs.snd(gs.Samples(samples), "sliced-debiased"), [torch.zeros(3, 2, 1, 1)]),
    ("directions", lambda directions: gs.Sliced(directions=directions), [0]),
    ("seed", lambda seed: gs.Sliced(seed=seed), [-1]),
    ("parts", gs.Joint, [
        [], CAT, [CAT, gs.Deterministic(torch.zeros(5, 4, 2))],
        [CAT, gs.Deterministic(torch.zeros(1, 5, 3, 2))],
    ]),
    ("parts['1']", gs.Joint, [[CAT, torch.zeros(5, 3, 2)]]),
    ("weights", gs.Joint, [{"a": CAT, "b": DET}]),
    ("weights", lambda distance: gs.Joint([CAT, CAT], distance=distance), [[gs.Hellinger(), None]]),
    ("weights", lambda weights: gs.Joint({"a": CAT, "b": CAT}, weights=weights), [
        [1], [1, 0], [1, INF], [1, NAN], [1e308, 1e308], ["1", 2], {"a": 1}, {"a": 1, "b": 1, "c": 1},
    ]),
    ("distance", lambda distance: gs.Joint({"a": CAT}, distance=distance), [{"c": gs.Hellinger()}, {"a": "energy"}]),
    ("distance", lambda distance: gs.snd(TWO, distance), [gs.Hellinger(), gs.Wasserstein(), {"0": gs.Hellinger()}]),
    ("distance", lambda distance: gs.snd(CAT, distance), [gs.Wasserstein(), "wassertein", gs.Hellinger, 2]),
    ("distance", lambda distance: gs.snd(DET, distance), [
        gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon(), gs.Sliced(), gs.Joint([CAT]).distance,
    ]),
    ("distance", lambda distance: gs.snd(gs.Samples(torch.zeros(3, 2, 4, 1)), distance), [gs.Hellinger()]),
    *(("behavior", measure, [torch.zeros(1, 3, 1), None, gs.Deterministic(torch.zeros(5, 1, 2))])
      for measure in (gs.snd, gs.pairwise, gs.contributions, gs.bounds.diameter, embed)),
    ("loc", gs.from_distribution, [D.Normal(torch.zeros(3), 1.0)]),
    ("distribution", gs.from_distribution, [
        LOC, None, "normal", D.Normal, D.Independent(D.Normal(LOC, SCALE), 2),
        D.Gamma(SCALE, SCALE), D.Dirichlet(SCALE), D.VonMises(LOC, SCALE), D.LogisticNormal(LOC, SCALE),
        D.RelaxedOneHotCategorical(torch.tensor(1.0), logits=LOGITS),
        D.MixtureSameFamily(D.Categorical(logits=LOGITS), D.Normal(LOGITS, 1.0)),
        squashed(D.MultivariateNormal(LOC, torch.eye(2).double())),
        squashed(D.Normal(LOC, SCALE), D.StackTransform([D.TanhTransform()] * 2, -1)),
        D.Wishart(3.0, torch.eye(2).expand(5, 3, 2, 2)),
        # infinite variance, also after scaling
        *(d for heavy in (D.Cauchy(LOC, SCALE), D.HalfCauchy(SCALE))
          for d in (heavy, D.Independent(heavy, 1), squashed(heavy, D.AffineTransform(1.0, 2.0)))),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "value"), [(name, call, v) for name, call, vs in VALUES for v in vs])
def test_bad_inputs_are_named(name: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(gs.InputError) as error:
        call(value)
    assert error.value.name == name
