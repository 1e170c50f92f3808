"""Samples of policies that can only be called."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import graphsnd as gs


def noisy(scale: float):  # type: ignore[no-untyped-def]
    return lambda o: o + scale * torch.randn_like(o)


def test_draws_are_repeated_independent_and_leave_no_trace() -> None:
    seen = torch.zeros(3, 5, 2)
    state = torch.get_rng_state()
    one = gs.draw_samples({"a": noisy(1), "b": noisy(1)}, seen, samples=400)
    assert torch.equal(state, torch.get_rng_state())
    assert one.samples.shape == (3, 5, 2, 400, 2)
    assert one.names == ("a", "b")
    assert torch.equal(one.samples, gs.draw_samples([noisy(1), noisy(1)], seen, samples=400).samples)
    assert not torch.equal(one.samples, gs.draw_samples([noisy(1), noisy(1)], seen, samples=400, seed=1).samples)
    a, b = one.samples[:, :, 0], one.samples[:, :, 1]
    assert abs(float((a * b).mean())) < 0.03  # not of the same noise


def test_modules_act_in_evaluation_mode() -> None:
    policy = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    drawn = gs.draw_samples([policy, policy], torch.ones(4, 2), samples=8)
    assert policy.training
    assert float(gs.snd(drawn)) == 0


def test_encoded_answers() -> None:
    prompts = ["left", "right", "up"]
    policies = [lambda given: [text.upper() for text in given], lambda given: given]

    def encode(answers: list[str]) -> list[list[float]]:
        return [[float(answer.isupper())] for answer in answers]

    drawn = gs.draw_samples(policies, prompts, samples=2, encode=lambda answers: torch.tensor(encode(answers)))
    assert drawn.samples.shape == (3, 2, 2, 1)
    assert float(gs.snd(drawn)) == 1


@pytest.mark.parametrize(
    ("policies", "options", "match"),
    [
        ([lambda o: ["text"]], {}, "encode="),
        ([lambda o: o.argmax(-1)], {}, "encode="),
        ([lambda o: torch.distributions.Normal(o, 1.0)], {}, r"sample\(\)"),
        ([lambda o: o, lambda o: o[:, :1]], {}, "one shape"),
        ([], {}, "`policies`"),
        ([lambda o: o], {"samples": 0}, "`samples`"),
        ([lambda o: o], {"encode": 5}, "`encode`"),
        (lambda o: o, {}, "list or dict of policies"),
        ([nn.Linear(7, 2)], {}, "policy 0 can take"),
    ],
)
def test_refusals(policies, options: dict[str, int], match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(gs.InputError, match=match):
        gs.draw_samples(policies, torch.zeros(4, 2), **options)


def test_modules_in_containers_of_torch() -> None:
    modules = {"a": nn.Linear(2, 1), "b": nn.Linear(2, 1)}
    drawn = gs.draw_samples(nn.ModuleDict(modules), torch.ones(4, 2), samples=2)  # type: ignore[arg-type]
    assert drawn.names == ("a", "b")
    listed = gs.draw_samples(nn.ModuleList(modules.values()), torch.ones(4, 2), samples=2)  # type: ignore[arg-type]
    assert torch.equal(drawn.samples, listed.samples)


def test_policies_that_draw_are_sent_here() -> None:
    with pytest.raises(gs.InputError, match="draw_samples"):
        gs.evaluate([noisy(1), noisy(1)], torch.zeros(8, 2))


def test_policies_may_answer_with_samples_of_their_own() -> None:
    noise = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    policies = [lambda o, k=k: gs.Samples(o.unsqueeze(-2) + k * noise) for k in range(3)]
    seen = torch.randn(20, 2)
    expected = torch.stack([seen.unsqueeze(-2) + k * noise for k in range(3)], dim=1)
    assert torch.equal(gs.evaluate(policies, seen).samples, expected)  # type: ignore[attr-defined]
    assert gs.measure(policies, seen).value == pytest.approx(float(gs.snd(gs.Samples(expected))), rel=1e-6)
