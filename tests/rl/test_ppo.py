"""Against a float64 loop over single trajectories that follows the definition of the lambda return."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from graphsnd.rl.ppo import Adam, clip_gradient, compute_gae, normalise


def by_definition(r, v, final, terminated, done, gamma: float, lam: float) -> list[float]:  # type: ignore[no-untyped-def]
    """A_t = sum over k of (1 - lambda) lambda^(k-1) (n-step return k) - V_t, within the episode of step t."""
    found = []
    for t in range(len(r)):
        end = next((i for i in range(t, len(r)) if done[i]), len(r) - 1)
        returns, total = [], 0.0
        for k in range(t, end + 1):
            total += gamma ** (k - t) * r[k]
            after = 0.0 if terminated[k] else final[k] if done[k] else v[k + 1]
            returns.append(total + gamma ** (k - t + 1) * after)
        weights = [(1 - lam) * lam**i for i in range(len(returns))]
        weights[-1] = lam ** (len(returns) - 1)
        found.append(sum(w * one for w, one in zip(weights, returns, strict=True)) - v[t])
    return found


@pytest.mark.parametrize(("gamma", "lam"), [(0.99, 0.95), (0.9, 0.0), (0.7, 1.0), (1.0, 0.5)])
def test_lambda_returns(gamma: float, lam: float, generator: torch.Generator) -> None:
    shape = (2, 9, 3, 2)
    rewards, final = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    values = torch.randn(2, 10, 3, 2, generator=generator, dtype=torch.float64)
    done = torch.rand(2, 9, 3, generator=generator) < 0.3
    terminated = done & (torch.rand(2, 9, 3, generator=generator) < 0.5)
    assert bool((done & ~terminated).any())
    found = compute_gae(rewards, values, final, terminated, done, gamma=gamma, gae_lambda=lam)
    for run in range(2):
        for e in range(3):
            for agent in range(2):
                at = (run, slice(None), e, agent)
                expected = by_definition(
                    rewards[at].tolist(), values[at].tolist(), final[at].tolist(),
                    terminated[run, :, e].tolist(), done[run, :, e].tolist(), gamma, lam,
                )  # fmt: skip
                torch.testing.assert_close(found[at], torch.tensor(expected, dtype=torch.float64))


def test_a_time_limit_is_not_an_end() -> None:
    """A reward of 1 for ever is worth 1 / (1 - gamma) whether or not the clock runs out; termination is worth less."""
    worth = 1 / (1 - 0.9)
    rewards, done = torch.ones(1, 5, 1, 1), torch.zeros(1, 5, 1, dtype=torch.bool)
    done[0, 2] = True
    values = torch.full((1, 6, 1, 1), worth)
    cut = compute_gae(rewards, values, values[:, 1:], torch.zeros_like(done), done, gamma=0.9, gae_lambda=0.95)
    assert cut.abs().max() < 1e-5
    ended = compute_gae(rewards, values, values[:, 1:], done, done, gamma=0.9, gae_lambda=0.95)
    assert ended[0, 2, 0, 0] == pytest.approx(-0.9 * worth)


def test_normalised_for_each_agent(generator: torch.Generator) -> None:
    found = torch.randn(2, 5, 4, 3, generator=generator) * torch.tensor([1.0, 10.0, 0.1]) + 3
    one = normalise(found)
    assert one.mean((1, 2)).abs().max() < 1e-5
    torch.testing.assert_close(one.std((1, 2)), torch.ones(2, 3))
    assert bool((normalise(torch.ones(1, 4, 1, 1)) == 0).all())


SHAPES = [(2, 3, 5, 7), (2, 3, 1, 9), (2, 1, 40, 70)]
RATE, EPSILON, MAX_NORM = 1e-2, 1e-5, 200.0  # some gradients are longer, others not


def _slopes(step: int, device: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator).to(device) * 10.0 ** (step % 3) for shape in SHAPES]


def _steps(device: str) -> tuple[list[nn.Parameter], Adam]:
    generator = torch.Generator().manual_seed(9)
    parameters = [nn.Parameter(torch.randn(shape, generator=generator).to(device)) for shape in SHAPES]
    adam = Adam(parameters, learning_rate=RATE, epsilon=EPSILON, max_norm=MAX_NORM)
    for step in range(6):
        adam.step(_slopes(step, device))
    return parameters, adam


def _check(device: str) -> None:
    found, stacked = _steps(device)
    generator = torch.Generator().manual_seed(9)
    begin = [torch.randn(shape, generator=generator) for shape in SHAPES]
    for run in range(2):
        alone = [nn.Parameter(each[run].double()) for each in begin]
        adam = torch.optim.Adam(alone, lr=RATE, eps=EPSILON)
        for step in range(6):
            for parameter, slope in zip(alone, _slopes(step, "cpu"), strict=True):
                parameter.grad = slope[run].double()
            nn.utils.clip_grad_norm_(alone, MAX_NORM)
            adam.step()
        for one, two in zip(found, alone, strict=True):
            torch.testing.assert_close(one[run].detach().cpu().double(), two.detach(), rtol=1e-4, atol=2e-6)
    assert float(stacked.steps) == 6


def test_runs_learn_as_they_would_alone() -> None:
    _check("cpu")


@pytest.mark.gpu
def test_fused_steps_are_the_same() -> None:
    assert _steps("cuda")[1].fused
    _check("cuda")


def test_the_learning_rate_falls_as_torchs_schedule() -> None:
    ours, theirs = torch.ones(1, 4), nn.Parameter(torch.ones(1, 4, dtype=torch.float64))
    adam, torchs = Adam([ours], learning_rate=RATE, max_norm=1e9, anneal=5), torch.optim.Adam([theirs], lr=RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(torchs, 1.0, 0.0, total_iters=5)
    for step in range(7):  # two more than it falls over: they change nothing
        theirs.grad = torch.randn(1, 4, generator=torch.Generator().manual_seed(step)).double()
        adam.step([theirs.grad.float()])
        torchs.step()
        schedule.step()
        torch.testing.assert_close(ours.double(), theirs.detach(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("joint", [False, True])
def test_clipping_is_torchs_for_each_agent_or_run(joint: bool, generator: torch.Generator) -> None:
    gradient = torch.randn(2, 3, 40, generator=generator) * torch.tensor([0.01, 1.0, 5.0]).view(3, 1)
    expected = gradient.clone()
    for run in range(2):
        for group in [expected[run]] if joint else list(expected[run]):
            leaf = torch.zeros_like(group).requires_grad_()
            leaf.grad = group
            torch.nn.utils.clip_grad_norm_([leaf], 0.5)
    (found,) = clip_gradient([gradient], 0.5, per_agent=not joint)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_step_without_gradient_only_counts_while_at_rest() -> None:
    stepped, skipped = (torch.ones(1, 4) for _ in range(2))
    one, two = (Adam([each], learning_rate=0.1, max_norm=1.0) for each in (stepped, skipped))
    one.step([torch.zeros(1, 4)])
    two.step_without_gradient()
    assert torch.equal(stepped, torch.ones(1, 4))
    for weights, adam in ((stepped, one), (skipped, two)):
        adam.step([torch.ones(1, 4)])
        before = weights.clone()
        adam.step_without_gradient()
        assert float(adam.steps) == 3
        assert bool((weights < before).all())  # the moments carry them on
    assert torch.equal(stepped, skipped)
