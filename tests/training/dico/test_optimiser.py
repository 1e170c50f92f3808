"""Adam with a gradient norm for each run, against torch's own on every run alone."""

import pytest
import torch
from torch import Tensor, nn

from graphsnd.training.dico.optimiser import Optimiser

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SHAPES = [(2, 3, 5, 7), (2, 3, 1, 9), (2, 1, 40, 70)]
RATE, EPSILON, LONGEST = 1e-2, 1e-5, 5.0


def _slopes(step: int, device: str) -> list[Tensor]:
    """As the networks' backward pass leaves them: cut out of wider ones, or transposed."""
    generator = torch.Generator().manual_seed(step)
    wide = torch.randn(2, 3, 7, 7, generator=generator)[:, :, :5]
    turned = torch.randn(2, 3, 9, 1, generator=generator).mT
    tall = torch.randn(2, 1, 40, 70, generator=generator)
    return [part.to(device) * 10.0 ** (step % 3) for part in (wide, turned, tall)]


def _steps(device: str) -> tuple[list[nn.Parameter], Optimiser]:
    generator = torch.Generator().manual_seed(9)
    parameters = [nn.Parameter(torch.randn(shape, generator=generator).to(device)) for shape in SHAPES]
    optimiser = Optimiser(parameters, learning_rate=RATE, epsilon=EPSILON, longest=LONGEST)
    for step in range(6):
        found = _slopes(step, device)
        optimiser.step(sum(((p * slope).sum() for p, slope in zip(parameters, found, strict=True)), torch.zeros(())))
    return parameters, optimiser


def _check(device: str) -> None:
    found, optimiser = _steps(device)
    generator = torch.Generator().manual_seed(9)
    begin = [torch.randn(shape, generator=generator) for shape in SHAPES]
    for run in range(2):
        alone = [nn.Parameter(each[run].double()) for each in begin]
        adam = torch.optim.Adam(alone, lr=RATE, eps=EPSILON)
        for step in range(6):
            for parameter, slope in zip(alone, _slopes(step, "cpu"), strict=True):
                parameter.grad = slope[run].double()
            nn.utils.clip_grad_norm_(alone, LONGEST)
            adam.step()
        for one, two in zip(found, alone, strict=True):
            torch.testing.assert_close(one[run].detach().cpu().double(), two.detach(), rtol=1e-4, atol=2e-6)
    assert {float(part) for name, part in optimiser.tensors().items() if name.endswith("step")} == {6.0}


def test_runs_learn_as_they_would_alone() -> None:
    _check("cpu")


@gpu
def test_fused_steps_are_the_same() -> None:
    assert _steps("cuda")[1].fused
    _check("cuda")
