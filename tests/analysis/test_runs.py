"""Runs of other programs: each format as its program writes it."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from graphsnd import InputError
from graphsnd.analysis import compare_folders, read_runs


def _ours(folder: Path, values: dict[int, list[float]]) -> Path:
    folder.mkdir()
    rows = [
        f"{at + 1},{seed},{v},{'' if at % 2 else v / 10}" for seed, run in values.items() for at, v in enumerate(run)
    ]
    (folder / "metrics.csv").write_text("\n".join(["iteration,seed,reward,snd", *rows]) + "\n")
    return folder


def _benchmarl(folder: Path, seed: int, rewards: list[float]) -> None:
    """As BenchMARL 1.5.2 writes it: a folder in a folder of the same name, CSV files without a head."""
    inner = folder / f"ippo_{seed}" / f"ippo_{seed}"
    (inner / "scalars").mkdir(parents=True)
    (inner / "texts").mkdir()
    lines = ["environment_name: vmas", "experiment_config: {'lr': 5e-05}", f"seed: {seed}", "task_name: balance"]
    (inner / "texts" / "hparams0.txt").write_text("\n".join(lines))
    for name in ("eval_reward_episode_reward_mean", "diversity_agents_snd"):
        (inner / "scalars" / f"{name}.csv").write_text("".join(f"{at},{value}\n" for at, value in enumerate(rewards)))
    (inner / "scalars" / "collection_reward_episode_reward_mean.csv").write_text("0,nan\n1,nan\n")
    steps = {f"step_{at + 1}": {"step_count": 40 * (at + 1), "return": [v - 1, v + 1]} for at, v in enumerate(rewards)}
    log = {"vmas": {"balance": {"ippo": {f"seed_{seed}": {"absolute_metrics": {"return": [1.0]}, **steps}}}}}
    (folder / f"ippo_{seed}" / f"ippo_{seed}.json").write_text(json.dumps(log))


def test_our_own_log(tmp_path: Path) -> None:
    runs = read_runs(_ours(tmp_path / "a", {0: [1.0, 2.0, 3.0], 7: [4.0, 5.0, 6.0]}))
    assert [run.seed for run in runs] == ["0", "7"]
    assert runs[1].curves == {"reward": {1: 4.0, 2: 5.0, 3: 6.0}, "snd": {1: 0.4, 3: 0.6}}


def test_arms_of_one_log_are_algorithms(tmp_path: Path) -> None:
    lines = ["iteration,arm,target,seed,reward,audit"]
    lines += [f"{i},{arm},{target},{s},{s + i},0.1" for arm, target in (("complete", 0.1), ("unconstrained", ""))
              for s in (0, 1) for i in (1, 2)]  # fmt: skip
    (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n")
    found = compare_folders({"dico": tmp_path})
    assert list(found["reward"].final.scores) == ["complete at 0.1", "unconstrained"]
    assert (found["diversity"].metric, found["reward"].final.differences["unconstrained"].paired) == ("audit", True)


def test_benchmarl(tmp_path: Path) -> None:
    for seed in (0, 3):
        _benchmarl(tmp_path, seed, [1.0 + seed, 2.0 + seed])
    runs = read_runs(tmp_path)
    assert [(run.seed, run.task) for run in runs] == [("0", "vmas/balance"), ("3", "vmas/balance")]
    assert runs[1].curves["eval_reward_episode_reward_mean"] == {0: 4.0, 1: 5.0}
    assert runs[1].curves["return"] == {40: 4.0, 80: 5.0}  # from the JSON, means over episodes
    assert "collection_reward_episode_reward_mean" not in runs[0].curves
    found = compare_folders({"ippo": tmp_path})
    assert (found["reward"].metric, found["diversity"].metric) == (
        "eval_reward_episode_reward_mean",
        "diversity_agents_snd",
    )


def test_benchmarls_json_alone(tmp_path: Path) -> None:
    _benchmarl(tmp_path, 1, [1.0, 2.0])
    runs = read_runs(tmp_path / "ippo_1" / "ippo_1.json")
    assert (runs[0].seed, runs[0].curves) == ("1", {"return": {40: 1.0, 80: 2.0}})


def test_algorithms_of_one_merged_json_are_kept_apart(tmp_path: Path) -> None:
    seeds = {name: {f"seed_{s}": {"step_1": {"step_count": 1, "return": [s + shift]}} for s in range(3)}
             for name, shift in (("mappo", 1.0), ("ippo", 7.0))}  # fmt: skip
    (tmp_path / "merged.json").write_text(json.dumps({"vmas": {"balance": seeds}}))
    scores = compare_folders({"merged": tmp_path / "merged.json"})["reward"].final.scores
    assert {name: score.value for name, score in scores.items()} == {"mappo": 2.0, "ippo": 8.0}


def test_weights_and_biases(tmp_path: Path) -> None:
    text = (
        '"Step","ippo seed=0 - reward","ippo seed=0 - reward__MIN","ippo seed=0 - reward__MAX","ippo seed=1 - reward"\n'
    )
    (tmp_path / "wandb_export.csv").write_text(text + '"0","1","1","1","3"\n"10","2","2","2",""\n')
    runs = read_runs(tmp_path / "wandb_export.csv")
    assert [(run.seed, run.curves) for run in runs] == [("0", {"reward": {0: 1, 10: 2}}), ("1", {"reward": {0: 3}})]


def test_weights_and_biases_over_another_axis(tmp_path: Path) -> None:
    (tmp_path / "chart.csv").write_text("global_step,seed 0 - reward,seed 1 - reward\n64,1,3\n128,2,4\n")
    runs = {run.seed: run.curves for run in read_runs(tmp_path)}
    assert runs == {"0": {"reward": {64: 1, 128: 2}}, "1": {"reward": {64: 3, 128: 4}}}


def test_tensorboard(tmp_path: Path) -> None:
    for tag, value in (("reward", 5), ("snd", 0.5)):
        text = f"Wall time,Step,Value\n1731000000.5,1,{value}\n1731000001.5,2,{value}\n"
        (tmp_path / f"run-seed-4-tag-{tag}.csv").write_text(text)
    (run,) = read_runs(tmp_path)
    assert (run.seed, run.curves) == ("4", {"reward": {1: 5, 2: 5}, "snd": {1: 0.5, 2: 0.5}})


@pytest.mark.parametrize("first", ["step", "Step", "Epoch", "global_step", "timestep"])
def test_a_csv_of_ones_own_for_each_run(first: str, tmp_path: Path) -> None:
    for seed in (3, 12):
        (tmp_path / f"seed-{seed}").mkdir()
        rows = [f"{10 * at},{seed + at},{'' if at else 0.5}" for at in range(2)]
        (tmp_path / f"seed-{seed}" / "log.csv").write_text("\n".join([f"{first},snd,reward", *rows]) + "\n")
    (tmp_path / "notes.csv").write_text("name,age\na,3\n")
    runs = {run.seed: run.curves for run in read_runs(tmp_path)}
    assert runs == {seed: {"snd": {0: int(seed), 10: int(seed) + 1}, "reward": {0: 0.5}} for seed in ("3", "12")}


def test_a_column_with_a_dash_is_no_chart_of_wandb(tmp_path: Path) -> None:
    for seed in (3, 12):
        (tmp_path / f"seed_{seed}.csv").write_text(f"step,train - reward,snd\n0,{seed},0.5\n")
    runs = {run.seed: run.curves for run in read_runs(tmp_path)}
    assert runs == {seed: {"train - reward": {0: int(seed)}, "snd": {0: 0.5}} for seed in ("3", "12")}


def test_one_csv_of_all_seeds(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,seed,snd\n0,1,0.1\n0,2,0.2\n5,1,0.3\n")
    runs = {run.seed: run.curves for run in read_runs(tmp_path)}
    assert runs == {"1": {"snd": {0: 0.1, 5: 0.3}}, "2": {"snd": {0: 0.2}}}


def test_event_files_of_tensorboard_are_named(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.host.2.0").write_bytes(b"\x18")
    with pytest.raises(InputError, match="event files are not read"):
        read_runs(tmp_path)


def test_what_runs_came_to_is_the_mean_of_their_last_part(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    runs = {name: {seed: rng.standard_normal(41).tolist() for seed in range(5)} for name in ("a", "b")}
    found = compare_folders({name: _ours(tmp_path / name, values) for name, values in runs.items()}, last=0.1)
    ends = {name: [np.mean(run[-5:]) for run in values.values()] for name, values in runs.items()}
    final = found["reward"].final
    assert final.scores["b"].value == pytest.approx(stats.trim_mean(ends["b"], 0.25), abs=1e-9)
    gaps = np.subtract(ends["b"], ends["a"])
    assert final.differences["b"].value == pytest.approx(stats.trim_mean(gaps, 0.25), abs=1e-9)
    np.testing.assert_array_equal(found["reward"].curves["a"], list(runs["a"].values()))
    assert np.isfinite(found["diversity"].curves["a"]).all()


def test_runs_that_stopped_early_are_named(tmp_path: Path) -> None:
    # 90% of 99 steps are 89.1. A metric may end before its run does: what is NaN was not measured.
    for name, steps in (("a", [99, 99]), ("b", [99, 90, 89])):
        (tmp_path / name).mkdir()
        for seed, last in enumerate(steps):
            rows = [f"{at},{at},{at if at < 5 else 'nan'}" for at in range(last + 1)]
            head = "step,reward,snd" if name == "b" else "step,reward,snd\n99,1,1"
            (tmp_path / name / f"seed-{seed}.csv").write_text("\n".join([head, *rows]) + "\n")
    found = compare_folders({name: tmp_path / name for name in "ab"})
    assert found["reward"].stopped == ["b seed 2 ends at step 89 of 99"]
    assert found["diversity"].stopped == ["b ends by step 4 of 99, unless it counts other steps"]


@pytest.mark.parametrize("died", [None, "frames", "iterations"])
def test_algorithms_may_count_other_steps(died: str | None, tmp_path: Path) -> None:
    for name, unit in (("frames", 60_000), ("iterations", 1)):
        (tmp_path / name).mkdir()
        for seed in range(3):
            steps = range(1, 5 if (name, seed) == (died, 1) else 11)
            rows = [f"{unit * at},{at}" for at in steps]
            (tmp_path / name / f"seed-{seed}.csv").write_text("\n".join(["step,reward", *rows]) + "\n")
    found = compare_folders({name: tmp_path / name for name in ("frames", "iterations")})["reward"].stopped
    units = {"frames": (240_000, 600_000), "iterations": (4, 10)}
    dead = ["{} seed 1 ends at step {:,} of {:,}".format(died, *units[died])] if died else []
    assert found == [*dead, "iterations ends by step 10 of 600,000, unless it counts other steps"]


def test_tasks_may_be_of_different_lengths(tmp_path: Path) -> None:
    steps = {"short": (10, 10), "long": (2_000_000, 20)}
    for task, lasts in steps.items():
        log = {f"seed_{s}": {"step_1": {"step_count": at, "return": [1.0]}} for s, at in enumerate(lasts)}
        (tmp_path / f"{task}.json").write_text(json.dumps({"vmas": {task: {"a": log}}}))
    assert compare_folders({"a": tmp_path})["reward"].stopped == ["a vmas/long seed 1 ends at step 20 of 2,000,000"]


def test_a_target_may_be_a_label(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("step,seed,target,reward\n0,1,north,3\n0,1,0.50,4\n")
    assert {run.arm: run.curves["reward"][0] for run in read_runs(tmp_path)} == {"at north": 3, "at 0.5": 4}


def test_runs_at_other_steps_are_interpolated(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("Step,seed 0 - reward,seed 1 - reward\n0,0,0\n1,,1\n2,2,\n3,3,3\n4,,4\n")
    found = compare_folders({"x": tmp_path})["reward"]
    np.testing.assert_array_equal(found.steps["x"], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(found.curves["x"], [[0, 1, 2, 3, np.nan], [0, 1, 2, 3, 4]])


def test_what_a_run_never_logged_is_no_metric_of_it(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("Step,seed 0 - reward,seed 1 - reward,seed 2 - reward\n0,1,2,\n1,3,4,\n")
    assert [run.seed for run in read_runs(tmp_path)] == ["0", "1"]
    assert compare_folders({"x": tmp_path})["reward"].final.scores["x"].runs == ((3.0, 4.0),)
    (tmp_path / "y.csv").write_text("Step,seed 0 - snd,seed 1 - snd,seed 2 - snd\n0,1,2,3\n")
    assert list(compare_folders({"x": tmp_path})) == ["diversity"]
    with pytest.raises(InputError, match="`paths` of at least one algorithm, got none"):
        compare_folders({})
    with pytest.raises(InputError, match="All runs have: snd"):
        compare_folders({"x": tmp_path}, reward="reward")


def test_tasks_are_strata(tmp_path: Path) -> None:
    for name, shift in (("a", 0.0), ("b", 1.0)):
        for task in ("balance", "flocking"):
            log = {f"seed_{s}": {"step_1": {"step_count": 1, "return": [s + shift]}} for s in range(4)}
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{task}.json").write_text(json.dumps({"vmas": {task: {name: log}}}))
    # All seeds of a task in one file are still runs of their own.
    found = compare_folders({name: tmp_path / name for name in "ab"})["reward"]
    assert found.tasks == ["vmas/balance", "vmas/flocking"]
    assert found.final.scores["a"].runs == ((0.0, 1.0, 2.0, 3.0),) * 2
    assert found.final.differences["b"].value == pytest.approx(1.0)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="to hold runs"):
        read_runs(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    for steps in (3, {"step_0": {"reward": [1.0]}}, {"step_0": {"step_count": 0, "reward": "high"}}):
        by_seed = {"seed_0": steps, "seed_1": {"step_0": {"step_count": 0, "reward": [1.0]}}}
        (tmp_path / "other.json").write_text(json.dumps({"vmas": {"balance": {"ippo": by_seed}}}))
        with pytest.raises(InputError, match=r"step_count and numbers.*other\.json', seed_0"):
            read_runs(tmp_path)  # not: the other seed alone
    (tmp_path / "other.json").write_text("[1, 2]")
    with pytest.raises(InputError, match="to hold runs"):
        read_runs(tmp_path)
    ours = _ours(tmp_path / "a", {0: [1.0], 1: [2.0]})
    with pytest.raises(InputError, match="All runs have: reward, snd"):
        compare_folders({"a": ours}, reward="nothing")
    with pytest.raises(InputError, match="last"):
        compare_folders({"a": ours}, last=2.0)
    (tmp_path / "b").mkdir()
    _ours(tmp_path / "b" / "c", {0: [1.0]})
    _ours(tmp_path / "b" / "d", {0: [1.0]})
    with pytest.raises(InputError, match="seed 0 twice"):
        compare_folders({"b": tmp_path / "b"})
