"""The fused engine against plain torch, on a GPU; its tiling and its choice everywhere."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from graphsnd.rl import fused as choosing
from graphsnd.rl.fused import choose_engine
from graphsnd.teams.engine import PLAIN, Engine

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
    assert choose_engine([good], cuda, bfloat16=False, tf32=False) is PLAIN
    monkeypatch.setattr(choosing, "available", lambda: {"gpu": "Triton is not installed"})
    assert choose_engine([good], cuda, bfloat16=True) is PLAIN
    monkeypatch.setattr(choosing, "available", lambda: {"gpu": None})
    card.shared_memory_per_block_optin = 101_376
    assert choose_engine([good], cuda, bfloat16=True) is PLAIN
    card.shared_memory_per_block_optin = 166_912  # an A100: enough for bfloat16 alone
    assert choose_engine([good], cuda, bfloat16=False, tf32=True) is PLAIN
    card.shared_memory_per_block_optin, card.major = 232_448, 7
    assert choose_engine([good], cuda, bfloat16=True) is PLAIN


def _fused(sizes: tuple[int, ...], bfloat16: bool = True) -> Engine:
    engine = choose_engine([sizes], torch.device("cuda"), bfloat16=bfloat16, tf32=not bfloat16)
    assert engine is not PLAIN
    return engine


def _exact(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    return [part.detach().double().requires_grad_() for part in parts]


CLOSE = {True: 1e-2, False: 1e-3}  # bfloat16 has 8 bits, TF32 has 11


@pytest.mark.gpu
@pytest.mark.parametrize("bfloat16", [True, False])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("case", CASES)
def test_every_network_forwards_and_backwards(case: tuple[int, ...], activation: str, bfloat16: bool) -> None:
    count, groups, rows, features, hidden, outputs = case
    sizes = (features, hidden, hidden, outputs)
    weights, biases = _weights(count, sizes)
    exact = _exact([*weights, *biases])
    inputs = torch.randn(groups, rows, features, generator=torch.Generator().manual_seed(1)).cuda()
    engine, close = _fused(sizes, bfloat16), CLOSE[bfloat16] * (3 if activation == "relu" else 1)
    steep = 6e-2 if activation == "relu" else 2 * close  # rounding moves features across the kink, where slopes jump
    plain = PLAIN.run_all(inputs.double(), exact[:3], exact[3:], activation)
    fused = engine.run_all(inputs, weights, biases, activation)
    assert _apart(fused, plain) < close
    for one, two in zip(_slopes(fused, [*weights, *biases]), _slopes(plain, exact), strict=True):
        assert _apart(one, two) < steep
    with torch.no_grad():
        again = engine.run_all(engine.prepare(inputs), weights, biases, activation)
        spaced = torch.stack([engine.prepare(inputs)] * 2, 1)[:, 0]  # rows that do not follow each other in memory
        apart = engine.run_all(spaced, weights, biases, activation)
    torch.testing.assert_close(again, fused, rtol=1e-5, atol=1e-5)  # sums in another order
    assert torch.equal(apart, again)


@pytest.mark.gpu
@pytest.mark.parametrize("bfloat16", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_requests_forwards_and_backwards(case: tuple[int, ...], bfloat16: bool) -> None:
    count, _, rows, features, hidden, outputs = case
    sizes = (features, hidden, hidden, outputs)
    weights, biases = _weights(count, sizes)
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(rows, features, generator=generator).cuda()
    networks = torch.randint(0, count + 1, (500,), generator=generator).cuda()
    chosen = torch.randint(0, rows, (500,), generator=generator).cuda()
    parts, close, engine = [*weights, *biases], CLOSE[bfloat16], _fused(sizes, bfloat16)
    exact = _exact(parts)
    plain = PLAIN.run_requests(inputs.double(), networks, chosen, exact[:3], exact[3:], "tanh")
    fused = engine.run_requests(inputs, networks, chosen, weights, biases, "tanh")
    assert bool((fused[networks == count] == 0).all())
    assert _apart(fused, plain) < close
    for one, two in zip(_slopes(fused, parts), _slopes(plain, exact), strict=True):
        assert _apart(one, two) < 2 * close
    nothing = engine.run_requests(inputs, torch.full_like(networks, count), chosen, weights, biases, "tanh")
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
