"""The fused engine against plain torch, on a GPU; its tiling and its choice everywhere."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from graphsnd.teams.engine import PLAIN, Engine
from graphsnd.training import fused as choosing
from graphsnd.training.fused import choose_engine

CASES = [(3, 3, 70, 34, 64, 3), (4, 2, 130, 18, 128, 6), (1, 1, 9000, 154, 256, 1), (50, 1, 300, 154, 256, 2)]


def _weights(count: int, sizes: tuple[int, ...]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    pairs = list(itertools.pairwise(sizes))
    weights = [torch.randn(count, a, b, generator=generator).div(a**0.5).cuda().requires_grad_() for a, b in pairs]
    return weights, [torch.randn(count, 1, b, generator=generator).cuda().requires_grad_() for _, b in pairs]


def _apart(one: torch.Tensor, two: torch.Tensor) -> float:
    return float((one.detach().double() - two.detach().double()).norm() / two.detach().double().norm())


def _slopes(found: torch.Tensor, parts: list[torch.Tensor]) -> list[torch.Tensor]:
    cotangent = torch.linspace(-1, 2, found.numel(), device=found.device).view_as(found)
    return list(torch.autograd.grad((found * cotangent).sum(), parts))


def test_engine_is_plain_where_the_fused_one_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_engine([(18, 256, 256, 2)], torch.device("cpu"), bfloat16=True) is PLAIN
    card = SimpleNamespace(major=9, shared_memory_per_block_optin=232_448)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    monkeypatch.setattr(choosing, "available", lambda: {"gpu": None})
    cuda, good = torch.device("cuda"), (18, 64, 64, 2)
    for sizes in ((18, 256, 2), (18, 256, 64, 2), (18, 48, 48, 2), (18, 64, 64, 9)):
        assert choose_engine([sizes], cuda, bfloat16=True) is PLAIN
        assert choose_engine([good, sizes], cuda, bfloat16=True) is PLAIN  # one engine for all or none
    assert choose_engine([good], cuda, bfloat16=False) is PLAIN
    monkeypatch.setattr(choosing, "available", lambda: {"gpu": "Triton is not installed"})
    assert choose_engine([good], cuda, bfloat16=True) is PLAIN
    monkeypatch.setattr(choosing, "available", lambda: {"gpu": None})
    card.shared_memory_per_block_optin = 101_376
    assert choose_engine([good], cuda, bfloat16=True) is PLAIN
    card.shared_memory_per_block_optin, card.major = 232_448, 7
    assert choose_engine([good], cuda, bfloat16=True) is PLAIN


def _fused(sizes: tuple[int, ...]) -> Engine:
    engine = choose_engine([sizes], torch.device("cuda"), bfloat16=True)
    assert engine is not PLAIN
    return engine


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("case", CASES)
def test_every_network_forwards_and_backwards(case: tuple[int, ...], activation: str) -> None:
    count, groups, rows, features, hidden, outputs = case
    sizes = (features, hidden, hidden, outputs)
    weights, biases = _weights(count, sizes)
    inputs = torch.randn(groups, rows, features, generator=torch.Generator().manual_seed(1)).cuda()
    plain = PLAIN.run_all(inputs, weights, biases, activation)
    fused = _fused(sizes).run_all(inputs, weights, biases, activation)
    loose = 3 if activation == "relu" else 1  # rounding moves features across the kink
    assert _apart(fused, plain) < 1e-2 * loose  # bfloat16 has 8 bits
    for one, two in zip(_slopes(fused, [*weights, *biases]), _slopes(plain, [*weights, *biases]), strict=True):
        assert _apart(one, two) < 2e-2 * loose
    with torch.no_grad():
        again = _fused(sizes).run_all(_fused(sizes).prepare(inputs), weights, biases, activation)
    assert torch.equal(again, fused)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_requests_forwards_and_backwards(case: tuple[int, ...]) -> None:
    count, _, rows, features, hidden, outputs = case
    sizes = (features, hidden, hidden, outputs)
    weights, biases = _weights(count, sizes)
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(rows, features, generator=generator).cuda()
    networks = torch.randint(0, count + 1, (500,), generator=generator).cuda()
    chosen = torch.randint(0, rows, (500,), generator=generator).cuda()
    plain = PLAIN.run_requests(inputs, networks, chosen, weights, biases, "tanh")
    fused = _fused(sizes).run_requests(inputs, networks, chosen, weights, biases, "tanh")
    assert bool((fused[networks == count] == 0).all())
    assert _apart(fused, plain) < 1e-2
    parts = [*weights, *biases]
    for one, two in zip(_slopes(fused, parts), _slopes(plain, parts), strict=True):
        assert _apart(one, two) < 2e-2
    nothing = _fused(sizes).run_requests(inputs, torch.full_like(networks, count), chosen, weights, biases, "tanh")
    assert all(bool((slope == 0).all()) for slope in _slopes(nothing, parts))


@pytest.mark.gpu
def test_same_bits_again() -> None:
    weights, biases = _weights(5, (34, 256, 256, 2))
    inputs = torch.randn(5, 1000, 34, generator=torch.Generator().manual_seed(3)).cuda()
    first, second = (_slopes(_fused((34, 256, 256, 2)).run_all(inputs, weights, biases, "tanh"), weights) for _ in "ab")
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("features", [34, 154])
def test_rows_are_taken_exactly(features: int) -> None:
    fused = _fused((features, 64, 64, 2))
    generator = torch.Generator().manual_seed(4)
    inputs = fused.prepare(torch.randn(2, 3, 100, features, generator=generator).cuda())
    index = torch.randint(0, 100, (2, 90), generator=generator).cuda()[:, 7:70]  # as a split leaves it
    assert torch.equal(fused.take_rows(inputs, index), PLAIN.take_rows(inputs, index))
