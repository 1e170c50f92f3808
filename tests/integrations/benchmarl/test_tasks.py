from __future__ import annotations

import pytest

pytest.importorskip("benchmarl")
from benchmarl.algorithms import IppoConfig, QmixConfig
from benchmarl.environments import VmasTask
from benchmarl.models import MlpConfig

from graphsnd.integrations.benchmarl import DiversityCallback, GraphsndTask

pytestmark = pytest.mark.filterwarnings("ignore")


def trained(experiment, algorithm, task, **options) -> list[dict]:
    log = DiversityCallback()
    made = experiment(algorithm, MlpConfig.get_from_yaml(), task=task, callbacks=[log], **options)
    made.run()
    assert made.n_iters_performed == 2
    return log.rows


@pytest.mark.parametrize("task", list(GraphsndTask), ids=lambda task: task.name)
def test_ippo_trains_and_is_measured(experiment, task) -> None:
    rows = trained(experiment, IppoConfig, task.get_from_yaml(), share_policy_params=False, evaluation=True)
    assert len(rows) == 2
    assert all(row["snd_of_actions"] > 0 for row in rows)


def test_a_learner_of_action_values_trains_on_a_continuous_world(experiment) -> None:
    trained(experiment, QmixConfig, GraphsndTask.NAVIGATION.get_from_yaml())


@pytest.mark.parametrize("name", ["NAVIGATION", "DISPERSION"])
def test_options_and_specs_are_those_of_the_vmas_task(name: str) -> None:
    ours, theirs = GraphsndTask[name].get_from_yaml(), VmasTask[name].get_from_yaml()
    assert ours.config.items() <= theirs.config.items()  # navigation has no shared goals
    made = [task.get_env_fun(2, True, 0, "cpu")() for task in (ours, theirs)]
    for spec in ("observation_spec", "action_spec"):
        mine, its = (getattr(task, spec)(env)["agents"] for task, env in zip((ours, theirs), made, strict=True))
        assert set(mine.keys()) == set(its.keys())
        assert all(mine[key].shape == its[key].shape for key in set(mine.keys()))
    assert ours.group_map(made[0]) == theirs.group_map(made[1])
    assert ours.max_steps(made[0]) == made[0].world.horizon == 100
