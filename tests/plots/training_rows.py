"""Rows of logs for tests of curves and tables."""

from __future__ import annotations

from graphsnd.rl.log import Row


def training_rows(solved: float | None = 0.5) -> list[Row]:
    rows = []
    for iteration in range(1, 9):
        for seed in (0, 1, 2):
            snd = 0.1 * iteration + 0.01 * seed if iteration % 4 == 0 else None
            rows.append(
                Row(iteration=iteration, seed=seed, reward=0.1 * iteration * (1 + seed), episodes=1, solved=solved,
                    policy_loss=0.0, value_loss=1.0, entropy=1.0, kl=0.0, snd=snd,
                    graph_snd=snd and snd + 0.02, snd_observations=9, snd_seconds=0.1, graph_snd_seconds=0.01,
                    behavior_seconds=0.1, rollout_seconds=1.0, update_seconds=1.0)
            )  # fmt: skip
    return rows


def _row(iteration: int, arm: str, target: float | None, seed: int) -> Row:
    audit = 0.1 + 0.01 * seed + 0.2 / iteration
    return Row(
        iteration=iteration, arm=arm, target=target, seed=seed, reward=0.01 * iteration, estimate=0.2, scale=0.5,
        applied=0.101, audit=audit, tracking_error=None if target is None else 0.01,
        audit_error=None if target is None else abs(audit - target) / target, saturated=0, zero=0, empty=0, invalid=0,
        value_loss=0.1, overflow=0.0, observations=9, rollout_seconds=1.0, policy_seconds=0.25, distance_seconds=0.125,
        update_seconds=2.0, audit_seconds=0.1,
    )  # fmt: skip


def control_rows(*keys: tuple[str, float | None]) -> list[Row]:
    return [_row(i, arm, target, seed) for i in range(1, 13) for arm, target in keys for seed in (0, 2)]
