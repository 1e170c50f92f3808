"""Against a float64 loop over single trajectories that follows the definition of the lambda return."""

from __future__ import annotations

import pytest
import torch

from graphsnd.rl.ppo import compute_gae, normalise


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
