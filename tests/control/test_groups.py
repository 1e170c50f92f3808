from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import InputError
from graphsnd.control import Bootstrap, ControlledPolicy, DiCo, PerGroup, measure_points
from graphsnd.control.groups import solve_scale
from graphsnd.control.networks import scale_deviation
from graphsnd.designs import Complete
from tests.control import plain


def test_groups_are_controlled_by_themselves(generator: torch.Generator) -> None:
    values = torch.randn(40, 5, 2, generator=generator)
    groups, targets = [[0, 3], [4, 1, 2]], [0.1, 0.6]
    control = PerGroup(groups, DiCo(torch.tensor(targets, dtype=torch.float64)))
    scale, state, status = control.step(values, control.initial())
    scaled = values * scale.float().view(1, 5, 1)
    for group, target in zip(groups, targets, strict=True):
        assert float(measure_points(Complete(), scaled[:, group]).value) == pytest.approx(target, rel=1e-5)
    assert control.scale(state).tolist() == scale.tolist()
    assert status.describe().count("\n") == 1
    stacked, _, _ = control.step(torch.stack([values, 2 * values]), control.initial((2,)))
    assert stacked.shape == (2, 5)
    assert torch.allclose(stacked[0], 2 * stacked[1])


@pytest.mark.parametrize(("groups", "targets"), [
    ([[0, 1], [1, 2]], [0.1, 0.1]), ([[0, 1], [2]], [0.1, 0.1]), ([[0, 1]], [0.1, 0.1]), ([[0, 1]], [0.0]),
])  # fmt: skip
def test_groups_that_are_no_partition(groups: list[list[int]], targets: list[float]) -> None:
    with pytest.raises(InputError):
        PerGroup(groups, DiCo(torch.tensor(targets)))


def test_groups_of_another_team_are_refused() -> None:
    control = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.1])))
    with pytest.raises(InputError, match="agents"):
        control.step(torch.zeros(3, 5, 2), control.initial())
    with pytest.raises(InputError, match="measured"):
        control.step(torch.tensor(0.2), control.initial())


def test_the_options_are_those_of_its_dico(generator: torch.Generator) -> None:
    dico = DiCo(
        torch.tensor([0.1, 0.6], dtype=torch.float64), tau=0.5, bounds=(0.5, 2.0), design="matching", through=True
    )
    control = PerGroup([[0, 1, 2], [3, 4]], dico)
    assert (control.design, control.through, control.applied) == (dico.design, True, False)
    state = control.initial()
    for measured in ([0.2, 0.6], [0.4, 0.6], [0.1, 3.0]):
        expected, after, _ = dico.step(torch.tensor(measured), state)
        scale, state, _ = control.step(torch.tensor(measured), state)
        assert torch.equal(state.estimate, after.estimate)
        assert torch.equal(scale, expected[[0, 0, 0, 1, 1]])
    values = torch.randn(8, 5, 2, generator=generator).requires_grad_()
    control.step(values, state, generator=generator)[0].sum().backward()
    assert values.grad is not None


def levels(values: np.ndarray, groups: list[list[int]]) -> list[float]:
    """Mean distances within each group and between groups, pair by pair."""
    across = [pair for g, h in combinations(groups, 2) for pair in product(g, h)]
    return [plain.raw(values, combinations(group, 2)) for group in groups] + [plain.raw(values, across)]


def scale_by_hand(values: np.ndarray, groups: list[list[int]], scales: list[float], t: float) -> np.ndarray:
    """The definition: t times a group's mean, plus its scale times the rest."""
    scaled = np.zeros_like(values)
    for group, scale in zip(groups, scales, strict=True):
        mean = values[:, group].mean(1, keepdims=True)
        scaled[:, group] = t * mean + scale * (values[:, group] - mean)
    return scaled


@pytest.mark.parametrize(("groups", "targets", "between"), [
    ([[0, 3], [4, 1, 2]], [0.1, 0.6], 0.5),
    ([[0, 3], [4, 1, 2]], [0.1, 0.6], 20.0),
    ([[5, 1], [0, 2, 6], [3, 4]], [0.3, 0.2, 0.5], 0.7),
])  # fmt: skip
def test_both_levels_are_held_at_once(
    groups: list[list[int]], targets: list[float], between: float, generator: torch.Generator
) -> None:
    agents = sum(map(len, groups))
    values = torch.randn(40, agents, 2, dtype=torch.float64, generator=generator)
    values[:, groups[0]] += 0.7  # group means that differ at most observations
    control = PerGroup(groups, DiCo(torch.tensor(targets, dtype=torch.float64)), between=between)
    scale, state, status = control.step(values, control.initial())
    scaled = scale_deviation(scale, values)
    assert levels(scaled.numpy(), groups) == pytest.approx([*targets, between], rel=1e-8)
    *own, t = status.scale.tolist()
    np.testing.assert_allclose(scaled, scale_by_hand(values.numpy(), groups, own, t), atol=1e-12)
    alone = PerGroup(groups, control.dico)
    assert own == alone.step(values, alone.initial())[2].scale.tolist()  # those within do not feel it
    torch.testing.assert_close(control.scale(state), scale)
    assert not status.saturated.any()
    status.check_reached()
    assert status.measured[-1].item() == pytest.approx(between, rel=1e-8)
    assert status.describe().splitlines()[-1].startswith("between groups: scale ")
    stacked, _, _ = control.step(torch.stack([values, 2 * values]), control.initial((2,)))
    torch.testing.assert_close(stacked[0], 2 * stacked[1])
    torch.testing.assert_close(stacked[0], scale)


def test_where_geometry_forbids_it_the_level_between_gives_way(generator: torch.Generator) -> None:
    groups, targets = [[0, 1, 2], [3, 4, 5]], [1.0, 1.0]
    values = torch.randn(30, 6, 2, dtype=torch.float64, generator=generator)
    control = PerGroup(groups, DiCo(torch.tensor(targets, dtype=torch.float64), bounds=(0.0, 1e3)), between=0.6)
    scale, _, status = control.step(values, control.initial())
    assert status.saturated.tolist() == [False, False, True]
    within = levels(scale_deviation(scale, values).numpy(), groups)
    assert within[:2] == pytest.approx(targets, rel=1e-10)
    *own, t = status.scale.tolist()
    others = [levels(scale_by_hand(values.numpy(), groups, own, s), groups)[2] for s in np.linspace(0, 1, 101)]
    assert 0.6 < within[2] <= min(others) + 1e-12  # as low as these levels within allow
    assert status.measured[-1].item() == pytest.approx(within[2])
    assert t < 0.5
    with pytest.raises(InputError, match=r"between groups: .* out of reach"):
        status.check_reached()


def test_levels_that_no_team_can_have_are_refused_before_training() -> None:
    dico = DiCo(torch.tensor([0.2, 1.0]))
    with pytest.raises(InputError, match=r"`between` to be at least 0.5 beside .* triangle inequality"):
        PerGroup([[0, 1], [2, 3]], dico, between=0.49)
    # The limit itself: a group of two, with the other group in the middle between them.
    values = torch.tensor([[[1.0], [1.0], [0.0], [2.0]]], dtype=torch.float64)
    limit = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([1e-9, 2.0], dtype=torch.float64)), between=1.0)
    assert levels(values.numpy(), [[0, 1], [2, 3]])[1:] == [2.0, limit.between]
    for between, groups in ((0.0, [[0, 1], [2, 3]]), (1.0, [[0, 1, 2, 3]])):
        with pytest.raises(InputError, match="`between`"):
            PerGroup(groups, DiCo(torch.ones(len(groups))), between=between)
    with pytest.raises(InputError, match=r"`measured` to be points .* got others"):
        limit.step(torch.ones(2), limit.initial())
    with pytest.raises(InputError, match=r"`state` with shape \(..., 3\)"):
        limit.step(values, PerGroup(limit.groups, limit.dico).initial())


def test_groups_with_the_same_mean_cannot_be_moved_apart() -> None:
    values = torch.tensor([[[-1.0], [1.0], [-2.0], [2.0]]])
    control = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.1]), bounds=(1e-3, 50.0)), between=1.0)
    _, state, status = control.step(values, control.initial())
    assert status.saturated.tolist() == [False, False, True]
    assert status.scale[-1].item() == 50.0
    nan = control.step(torch.full_like(values, torch.nan), state)
    assert nan[2].invalid.all()
    assert torch.equal(nan[1].estimate, state.estimate)


def test_the_rising_branch_is_taken() -> None:
    """a = 1 and b in (-1, -1, 2): the mean of |t + b| falls before it rises, and meets 1.2 twice."""
    b = torch.tensor([-1.0, -1.0, 2.0], dtype=torch.float64)
    t, reached = solve_scale(torch.ones(3, dtype=torch.float64), b, b * b, 1.2)
    assert bool(reached)
    assert (t + b).abs().mean().item() == pytest.approx(1.2)
    assert t.item() == pytest.approx(1.2)
    t, reached = solve_scale(torch.ones(3, dtype=torch.float64), b, b * b, 0.9)
    assert not bool(reached)
    assert t.item() == pytest.approx(1.0, abs=1e-6)  # the lowest


def test_the_estimate_between_groups_is_smoothed_and_flows(generator: torch.Generator) -> None:
    def build(**options: object) -> PerGroup:
        return PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.5, 0.7]).double(), **options), between=1.5)

    values = torch.randn(2, 5, 4, 2, dtype=torch.float64, generator=generator) + torch.tensor([0.0, 0, 2, 2])[:, None]
    control, once = build(tau=0.25), build(tau=1.0)
    state, wanted = control.initial(), []
    for each in values:
        _, state, status = control.step(each, state)
        own = scale_by_hand(each.numpy(), [[0, 1], [2, 3]], status.scale[:2].tolist(), 0.0)
        mean = each.numpy() - scale_by_hand(each.numpy(), [[0, 1], [2, 3]], [1.0, 1.0], 0.0)
        a, b = (np.stack([x[:, i] - x[:, j] for i in (0, 1) for j in (2, 3)]) for x in (mean, own))
        grid = [s for s in np.linspace(0, 3, 30_001) if np.linalg.norm(s * a + b, axis=-1).mean() >= 1.5]
        wanted.append(grid[0])
    assert status.scale[-1].item() == pytest.approx(0.75 * wanted[0] + 0.25 * wanted[1], abs=2e-4)
    assert build(bootstrap=Bootstrap.TARGET).step(values[0], once.initial())[2].scale.tolist() == [1.0, 1.0, 1.0]
    through = build(tau=1.0, through=True)
    points = values[0].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: through.step(x, through.initial())[0], (points,))
    assert not once.step(points, once.initial())[0].requires_grad


def test_a_level_between_groups_needs_points() -> None:
    control = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.1])), between=0.3)
    with pytest.raises(InputError, match="points"):
        control.step(torch.tensor([0.1, 0.2]), control.initial())


def test_both_levels_hold_while_a_team_learns_and_as_a_saved_team(tmp_path: Path) -> None:
    """Six agents are pulled to goals far apart; an audit on observations that control never saw is at both levels."""
    groups, generator = [[0, 1, 2], [3, 4, 5]], torch.Generator().manual_seed(0)
    policy = ControlledPolicy.create(6, 3, 2, generators=[generator], hidden=(16,), kind="gaussian")
    control = PerGroup(groups, DiCo(torch.tensor([0.2, 0.4]).double(), tau=0.2), between=0.8)
    goals = 5 * torch.randn(1, 6, 1, 2, generator=generator)
    adam, state, losses = torch.optim.Adam(policy.parameters(), lr=0.01), control.initial((1,)), []
    for _ in range(150):
        seen = torch.randn(1, 6, 16, 3, generator=generator)
        scale, state, _ = control.step(policy.deviation(seen.flatten(1, 2)).detach(), state)
        loss = (policy.parameters_of(seen, scale)[0] - goals).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    shown = torch.randn(200, 3, generator=generator)
    team = policy.team(0, control.scale(state)[0])
    parts = gs.decompose(team.evaluate(shown), [0, 0, 0, 1, 1, 1])
    assert parts.means.diagonal().tolist() == pytest.approx([0.2, 0.4], rel=0.1)
    assert parts.means[0, 1].item() == pytest.approx(0.8, rel=0.1)
    free = gs.decompose(policy.team(0, 1.0).evaluate(shown), [0, 0, 0, 1, 1, 1])
    assert free.means[0, 1].item() > 2 * 0.8  # what it would be otherwise
    own = policy.parameters_of(shown.expand(1, 6, -1, -1), control.scale(state))[0][0].transpose(0, 1)
    torch.testing.assert_close(team.evaluate(shown).loc, own)
    chosen = torch.tensor([[1, 4]]).expand(200, 2)
    torch.testing.assert_close(team.partial(shown, chosen).loc, own[:, [1, 4]])
    team.save(tmp_path / "team")
    torch.testing.assert_close(gs.Team.load(tmp_path / "team").evaluate(shown).loc, own)
