"""What ``graphsnd bench`` can measure: for each suite its plans, its tables and its figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

Step = Callable[[str], None]


class Suite(Protocol):
    """One question about this machine."""

    def parts(self, mode: str, teams: Sequence[Path]) -> int:
        """How often ``measure`` calls its step."""

    def measure(self, mode: str, device: str, seed: int, teams: Sequence[Path], step: Step) -> dict[str, Any]:
        """Everything, ready for JSON; mode is quick, default or full."""

    def show(self, console: Console, result: dict[str, Any]) -> None:
        """The tables."""

    def figure(self, results: Sequence[dict[str, Any]]) -> Figure:
        """The picture of one or more results."""


def rule(console: Console, title: str) -> None:
    """A heading."""
    console.print()
    console.rule(f"[bold]{title}[/bold]", align="left", style="dim")


class Speed:
    """Exact and sparse SND against loops, cdist and the limit of the hardware."""

    def _plan(self, mode: str) -> Any:
        import benchmarks as bench

        return {"quick": bench.QUICK, "default": bench.DEFAULT, "full": bench.FULL}[mode]

    def parts(self, mode: str, teams: Sequence[Path]) -> int:  # noqa: D102
        import benchmarks as bench

        return bench.parts(self._plan(mode))

    def measure(self, mode: str, device: str, seed: int, teams: Sequence[Path], step: Step) -> dict[str, Any]:  # noqa: D102
        import benchmarks as bench

        return bench.measure(self._plan(mode), device, seed=seed, step=step)

    def show(self, console: Console, result: dict[str, Any]) -> None:  # noqa: D102
        from benchmarks import report_bench_tables as tables

        console.print("Time of one call, median. Euclidean, 4 features, float32.")
        console.print(tables.times_table(result))
        console.print("* scaled up from a part of the pairs or observations", style="dim")
        console.print("\nHow many times as long as exact SND the others take, and how near it is to the limit.")
        console.print(tables.ratios_table(result))
        rate = result["limit_pairs_per_second"]
        if rate is not None:
            text = f"Limit, the arithmetic of a pair and nothing else: {tables.power(rate)} pairs/s."
            console.print(text, style="dim")
        if result.get("equation_1"):
            row = result["equation_1"]
            time = tables.duration(row["contestants"]["fused"]["median_s"])
            console.print(f"Eq. (1) in full, n = {row['n']:,} with {row['observations']:,} observations: {time}.")
        console.print()
        console.print(result["verdict"], style="bold", markup=False)
        rule(console, "Exact total-variation SND by sorting, 5 categories")
        console.print(tables.sorting_table(result))
        rule(console, "Graphs")
        console.print(tables.graphs_table(result))

    def figure(self, results: Sequence[dict[str, Any]]) -> Figure:  # noqa: D102
        from benchmarks.report_bench import bench_figure

        return bench_figure(results)


class Designs:
    """Errors and costs of sampling designs."""

    def _plan(self, mode: str) -> Any:
        from benchmarks import budget

        return budget.QUICK if mode == "quick" else budget.DEFAULT

    def parts(self, mode: str, teams: Sequence[Path]) -> int:  # noqa: D102
        from benchmarks import budget

        return budget.parts(self._plan(mode), teams)

    def measure(self, mode: str, device: str, seed: int, teams: Sequence[Path], step: Step) -> dict[str, Any]:  # noqa: D102
        from benchmarks import budget
        from benchmarks.suite import device_of

        return budget.measure(self._plan(mode), device_of(device), seed=seed, teams=teams, step=step)

    def show(self, console: Console, result: dict[str, Any]) -> None:  # noqa: D102
        from benchmarks import report_budget_tables as tables

        for row in result["designs"]:
            rule(console, f"{row['n']:,} agents, {row['team']} team, {row['observations']:,} observations")
            console.print(tables.designs_table(row))
        note = "* random agents that reach the error of the first line with few evaluations and distances"
        console.print(note, style="dim")
        rule(console, "A guaranteed interval within a tolerance, from policies to the number")
        console.print(tables.tolerance_table(result["tolerance"]))
        rule(console, "All pairs by sorted projections, normal teams")
        console.print(tables.projections_table(result["projections"]))
        rule(console, "Coverage of 95% intervals")
        console.print(tables.coverage_table(result["coverage"]))

    def figure(self, results: Sequence[dict[str, Any]]) -> Figure:  # noqa: D102
        from benchmarks.report_designs import designs_figure

        return designs_figure(results)


class Worlds:
    """Steps of batched worlds beside the simulators they follow."""

    def parts(self, mode: str, teams: Sequence[Path]) -> int:  # noqa: D102
        from benchmarks import worlds

        return len(worlds.QUICK if mode == "quick" else worlds.DEFAULT)

    def measure(self, mode: str, device: str, seed: int, teams: Sequence[Path], step: Step) -> dict[str, Any]:  # noqa: D102
        from benchmarks import worlds

        cases, rounds = (worlds.QUICK, 2) if mode == "quick" else (worlds.DEFAULT, 5)
        found = worlds.world_suite(cases, device, seed=seed, rounds=rounds, seconds=5.0 * (rounds > 2), step=step)
        return {**found, "format": 1, "suite": "worlds"}

    def show(self, console: Console, result: dict[str, Any]) -> None:  # noqa: D102
        from benchmarks.report_worlds import worlds_table

        console.print("Time of one step of all environments, median.")
        console.print(worlds_table(result))

    def figure(self, results: Sequence[dict[str, Any]]) -> Figure:  # noqa: D102
        from benchmarks.report_worlds import worlds_figure

        return worlds_figure(results)


class Training:
    """One iteration of stacked PPO, the paper's run."""

    def parts(self, mode: str, teams: Sequence[Path]) -> int:  # noqa: D102
        return 1

    def measure(self, mode: str, device: str, seed: int, teams: Sequence[Path], step: Step) -> dict[str, Any]:  # noqa: D102
        from benchmarks.training import PAPER, QUICK, training_times

        step("an iteration of PPO")
        found = training_times(device, preset=QUICK if mode == "quick" else PAPER, seeds=(seed,), rounds=5)
        return {**found, "format": 1, "suite": "training"}

    def show(self, console: Console, result: dict[str, Any]) -> None:  # noqa: D102
        from benchmarks.report_worlds import training_table

        console.print(training_table(result))

    def figure(self, results: Sequence[dict[str, Any]]) -> Figure:  # noqa: D102
        from benchmarks.report_worlds import training_figure

        return training_figure(results)


SUITES: dict[str, Suite] = {"speed": Speed(), "designs": Designs(), "worlds": Worlds(), "training": Training()}
