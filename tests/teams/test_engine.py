"""Engines answer as networks that are run one by one."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from graphsnd.teams.engine import PLAIN, split_requests, tanh_


def _networks(count: int, sizes: tuple[int, ...]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    pairs = list(itertools.pairwise(sizes))
    weights = [torch.randn(count, a, b, generator=generator).requires_grad_() for a, b in pairs]
    return weights, [torch.randn(count, 1, b, generator=generator).requires_grad_() for _, b in pairs]


def _one(row: torch.Tensor, network: int, weights: list[torch.Tensor], biases: list[torch.Tensor]) -> torch.Tensor:
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        row = row @ weight[network] + bias[network, 0]
        row = torch.tanh(row) if layer < len(weights) - 1 else row
    return row


def test_groups_of_networks_read_the_same_inputs() -> None:
    weights, biases = _networks(6, (3, 5, 2))
    inputs = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1))
    found = PLAIN.run_all(inputs, weights, biases, "tanh")
    for network in range(6):
        expected = torch.stack([_one(row, network, weights, biases) for row in inputs[network // 3]])
        torch.testing.assert_close(found[network], expected)


@pytest.mark.parametrize("requests", [5, 200])
def test_requests_are_answered_one_by_one(requests: int) -> None:
    weights, biases = _networks(4, (3, 5, 2))
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(7, 3, generator=generator)
    networks = torch.randint(0, 5, (requests,), generator=generator)  # 4 is left out
    rows = torch.randint(0, 7, (requests,), generator=generator)
    networks[0] = 4
    found = PLAIN.run_requests(inputs, networks, rows, weights, biases, "tanh")
    zero = torch.zeros(2)
    pairs = zip(networks.tolist(), rows.tolist(), strict=True)
    expected = torch.stack([zero if n == 4 else _one(inputs[r], n, weights, biases) for n, r in pairs])
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(each.square().sum(), weights) for each in (found, expected)]
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wanted", [False, True])
def test_the_fast_tangent_is_within_rounding(wanted: bool) -> None:
    inputs = torch.cat([torch.linspace(-20, 20, 200_001), torch.tensor([1e-30, torch.inf, -torch.inf])])
    found = tanh_(inputs.clone().requires_grad_(wanted) * 1)
    torch.testing.assert_close(found.double(), torch.tanh(inputs.double()), rtol=4e-7, atol=0)
    assert float(found.detach().abs().max()) == 1.0  # bounds of outputs rely on it
    assert torch.isnan(tanh_(torch.tensor([torch.nan])))
    assert torch.equal(tanh_(inputs.double()), torch.tanh(inputs.double()))


@pytest.mark.parametrize("size", [1.0, 0.1, 0.01])
def test_agents_that_are_nearly_equal_keep_their_distances(size: float) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, weights, biases = torch.randn(1, 256, 16, generator=generator), [], []
    for a, b in itertools.pairwise((16, 64, 64, 2)):
        spread = 1 + 1e-5 * torch.randn(8, a + 1, b, generator=generator)
        both = spread * (2 * torch.rand(a + 1, b, generator=generator) - 1) * size / a**0.5
        weights.append(both[:, :-1])
        biases.append(both[:, -1:])
    answers = PLAIN.run_all(inputs, weights, biases, "tanh")
    precise = PLAIN.run_all(inputs.double(), [w.double() for w in weights], [b.double() for b in biases], "tanh")
    found, expected = (gs.snd(gs.Deterministic(part.transpose(0, 1))) for part in (answers, precise))
    assert float(found) == pytest.approx(float(expected), rel=5e-4)


def test_the_fast_tangent_has_the_gradients_of_tanh() -> None:
    inputs = torch.linspace(-6, 6, 501).requires_grad_()
    weight, slopes = torch.linspace(0.5, 2, 501), []
    for tangent in (tanh_, torch.tanh):
        (first,) = torch.autograd.grad((tangent(inputs * 1) * weight).square().sum(), inputs, create_graph=True)
        slopes.append((first, *torch.autograd.grad(first.sum(), inputs)))
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=5e-6)


def test_the_fast_tangent_can_be_mapped_and_differentiated() -> None:
    rows = torch.randn(4, 7, generator=torch.Generator().manual_seed(3))
    slope = torch.func.vmap(torch.func.grad(lambda row: tanh_(row * 2).sum()))(rows)
    torch.testing.assert_close(slope, 2 / torch.cosh(2 * rows).square(), rtol=1e-4, atol=1e-6)
    change = torch.func.jvp(lambda each: tanh_(each * 2), (rows,), (torch.ones_like(rows),))[1]
    torch.testing.assert_close(change, slope, rtol=1e-4, atol=1e-6)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=300))
def test_every_request_is_answered_once_by_its_own_network(asked: list[int]) -> None:
    pieces, places = split_requests(torch.tensor(asked))
    networks = torch.cat([owners.repeat_interleave(requests.shape[1]) for owners, requests in pieces])
    requests = torch.cat([requests.flatten() for _, requests in pieces])
    slots = places.tolist()
    assert len(set(slots)) == len(asked)
    assert [int(requests[s]) for s in slots] == list(range(len(asked)))
    assert [int(networks[s]) for s in slots] == asked
    # Padding repeats requests of the same network, and less than doubles the work.
    assert networks.tolist() == [asked[r] for r in requests.tolist()]
    assert len(requests) < 1.5 * len(asked) + 1
