from __future__ import annotations

import pytest

from paper.control.faulty_controllers import BLIND, DOUBLED, SOUND, run_faulty_study
from tests.training import control_settings


def test_tracking_does_not_see_a_wrong_estimator_and_the_audit_does() -> None:
    settings = control_settings(
        environments=4, steps=25, epochs=4, minibatch=25, hidden=(16,), observations=100, audit_observations=30,
        iterations=5,
    )  # fmt: skip
    study = run_faulty_study(4, 0.1, settings, window=3)
    sound, doubled, blind = (study.run(arm) for arm in (SOUND, DOUBLED, BLIND))
    assert all(run.tracking_error < 0.02 for run in study.arms)
    assert blind.tracking_error < 1e-12
    assert sound.audit_error < 0.2
    audits = [sum(run.series["audit"][-3:]) for run in (sound, doubled)]
    assert audits[1] == pytest.approx(audits[0] / 2, rel=0.1)
    assert blind.audit_error > 0.3
