"""Adam with a gradient norm for each run, against torch's own on every run alone."""

import pytest
import torch
from torch import Tensor, nn

from graphsnd.training.dico.optimiser import Optimiser

SHAPES = [(2, 3, 5, 7), (2, 3, 1, 9), (2, 1, 40, 70)]
RATE, EPSILON, LONGEST = 1e-2, 1e-5, 200.0  # some gradients are longer, others not


def _slopes(step: int, device: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator).to(device) * 10.0 ** (step % 3) for shape in SHAPES]


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


@pytest.mark.gpu
def test_fused_steps_are_the_same() -> None:
    assert _steps("cuda")[1].fused
    _check("cuda")


def test_a_number_for_each_run() -> None:
    weight = nn.Parameter(torch.zeros(3))
    Optimiser([weight], learning_rate=0.1, epsilon=1.0, longest=1.0).step((weight * torch.tensor([0.5, 10, 100])).sum())
    torch.testing.assert_close(weight.detach(), -0.1 * torch.tensor([0.5 / 1.5, 0.5, 0.5]))


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["dense", "cut", "turned", "one network", "one run"])
def test_fused_step_reads_gradients_as_networks_leave_them(form: str) -> None:
    from graphsnd.kernels.gpu.learning import adam

    generator = torch.Generator().manual_seed(1)
    runs, networks = (1 if form == "one run" else 2), (1 if form == "one network" else 3)
    slope = torch.randn(runs, networks, 12, 7, generator=generator).cuda()
    slope = {"cut": slope[:, :, :10], "turned": slope.mT}.get(form, slope)
    assert slope.is_contiguous() == (form not in ("cut", "turned"))
    begin, mean, square = (torch.rand(slope.shape, generator=generator).cuda() for _ in range(3))
    factors = torch.linspace(0.2, 0.9, runs).cuda()
    cut = (slope * factors.view(-1, 1, 1, 1)).double()
    first, second = 0.9 * mean.double() + 0.1 * cut, 0.999 * square.double() + 0.001 * cut.square()
    root = (second / (1 - 0.999**7)).sqrt()
    expected = begin.double() - RATE * first / (1 - 0.9**7) / (root + EPSILON)
    steps = torch.tensor(7.0).cuda()
    adam([begin], [slope], [(mean, square)], factors, steps, learning_rate=RATE, betas=(0.9, 0.999), epsilon=EPSILON)
    for one, two in ((begin, expected), (mean, first), (square, second)):
        torch.testing.assert_close(one.double(), two, rtol=1e-5, atol=1e-6)
