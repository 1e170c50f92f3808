from __future__ import annotations

import torch

from graphsnd.control.team import add_deviation, centre_logits, combine


def test_only_the_shared_part_is_squashed(generator: torch.Generator) -> None:
    shared, deviation = (torch.randn(5, 2, generator=generator) for _ in range(2))
    middle, half = torch.tensor([0.5, -1.0]), torch.tensor([2.0, 0.25])
    assert torch.equal(add_deviation(shared, deviation, squash=False), shared + deviation)
    assert torch.equal(add_deviation(shared, deviation, squash=True), shared.tanh() + deviation)
    boxed = add_deviation(shared, deviation, squash=True, box=torch.stack([middle, half]))
    torch.testing.assert_close(boxed, shared.tanh() * half + middle + deviation)


def test_centred_logits_are_the_same_policy(generator: torch.Generator) -> None:
    logits = torch.randn(6, 4, generator=generator)
    torch.testing.assert_close(centre_logits(logits).sum(-1), torch.zeros(6))
    torch.testing.assert_close(centre_logits(logits).softmax(-1), logits.softmax(-1))


def test_means_and_logits_are_those_of_the_formula(generator: torch.Generator) -> None:
    common, deviation = torch.randn(3, 4, generator=generator), torch.randn(3, 2, generator=generator)
    loc, scale = combine("tanh-normal", common, deviation)
    assert torch.equal(loc, common[:, :2].tanh() + deviation)
    assert bool((scale > 0).all())
    (logits,) = combine("categorical", common[:, :2], deviation)
    assert torch.equal(logits, common[:, :2] + deviation)
