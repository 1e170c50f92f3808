from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs

PROBS = torch.tensor([[[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]])
LOGITS = torch.tensor([[[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]])


def test_mask_broadcasts_and_masked_actions_are_impossible() -> None:
    masked = gs.Categorical(logits=LOGITS, mask=torch.tensor([True, True, False])).probs
    assert not masked[..., 2].any()
    torch.testing.assert_close(masked[..., :2], torch.softmax(LOGITS[..., :2], -1))


def test_minus_infinity_is_a_mask() -> None:
    holes = LOGITS.clone()
    holes[..., 2] = -torch.inf
    masked = gs.Categorical(logits=LOGITS, mask=torch.tensor([True, True, False]))
    assert torch.equal(gs.Categorical(logits=holes).probs, masked.probs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_softmax_in_any_precision_is_accepted_as_probabilities(dtype: torch.dtype) -> None:
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 5, 40)))
    gs.Categorical(probs=torch.softmax(logits, -1).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("distance", [gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()])
def test_rounded_probabilities_have_no_distance_above_the_largest(dtype: torch.dtype, distance: gs.Distance) -> None:
    # Two agents without a common action, in rows that rounding leaves off by as much as is accepted.
    off = {torch.float16: 9e-3, torch.bfloat16: 4e-2, torch.float32: 9e-5, torch.float64: 9e-7}[dtype]
    row = torch.tensor([0.6, 0.4, 0.0, 0.0], dtype=torch.float64) * (1 + off)
    probs = torch.stack([row, row.flip(0)]).to(dtype).expand(3, 2, 4)
    for validate in (True, dtype.itemsize > 2):
        behavior = gs.Categorical(probs=probs, validate=validate)
        assert distance.maximum is not None
        assert float(gs.snd(behavior, distance)) <= distance.maximum * (1 + 4 * torch.finfo(torch.float32).eps)
    torch.testing.assert_close(behavior.probs.double().sum(-1), torch.ones(3, 2).double(), rtol=0, atol=3e-7)
