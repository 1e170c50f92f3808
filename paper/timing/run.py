r"""How long SND takes, on all pairs and on a Bernoulli graph, in a Python loop and in one fused call.

The paper times a loop over pairs, where the graph saves what it leaves out: :math:`\binom{n}{2} / |E| \approx 1/p`.
Here that loop takes turns with :func:`graphsnd.snd` and :func:`graphsnd.graph_snd`, the graph drawn inside the timed
part and the result read at its end. Teams are freshly initialised policies on 4096 observations that all of them
answer; on n * 4096, those of all agents, on a CPU at n = 4, 8 and 16. There the paper has trained policies, but a time
depends on shapes, not on weights. On a CPU everybody has one thread: small operations gain nothing from a second one,
and wait for it wherever its core is busy.

A machine with a GPU times both. Others read, at paper scale, the GPU's part from ``timing/gpu.json`` in the folder of
results: the file that this experiment wrote on such a machine, under another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from graphsnd.plots import collect_provenance
from paper.cells import Cells
from paper.expanders.ablation import OBSERVATION_SEED, POLICY_SEED
from paper.experiment import Experiment, Outcome, Scale
from paper.store import read_result
from paper.timing.calls import GRAPH_SEED, Size, measure
from paper.timing.figure import timing_figure
from paper.timing.numbers import numbers

TENTH, OTHERS = (0.1,), (0.25, 0.5, 0.75, 1.0)


def _tiny(n: int) -> Size:
    return Size(n, 1024, 3, (0.1, 1.0), fused_trials=3)


_SMALL = tuple(Size(n, n * 4096) for n in (4, 8, 16))
CPU: dict[Scale, Sequence[Size]] = {
    Scale.SMOKE: (_tiny(4), _tiny(8)),
    Scale.LAPTOP: (*_SMALL, Size(50, trials=10), Size(100, trials=10)),
    # Beyond 16 agents the CPU is our addition; at n = 500 a call of the loop takes 20 s.
    Scale.PAPER: (*_SMALL, Size(50, trials=10), Size(100, trials=10), Size(500, trials=3, chances=TENTH)),
}
# The loop takes a tenth of a millisecond for each of the 124 750 pairs at n = 500. The paper's 20 trials at all sizes
# would take twenty minutes; with fewer trials from n = 64 on they take two, and the times of such long calls differ
# little.
GPU: dict[Scale, Sequence[Size]] = {
    Scale.SMOKE: (_tiny(8),),
    Scale.LAPTOP: (Size(4), Size(16), Size(64, trials=5), Size(100, trials=3)),
    Scale.PAPER: (
        *(Size(n) for n in (4, 8, 16, 32)),
        *(Size(n, trials=5) for n in (64, 100)),
        *(Size(n, trials=3, chances=TENTH, once=OTHERS) for n in (250, 500)),
    ),
}
GPU_FILE = Path("timing") / "gpu.json"


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Time every size on this machine's CPU, and on its GPU or from the file of a machine that has one."""
    machines: dict[str, Any] = {}
    sources: tuple[str, ...] = ()
    committed = cells.results / GPU_FILE
    if torch.cuda.is_available():
        machines["gpu"] = sweep(GPU[scale], torch.device("cuda"), cells)
    elif scale is Scale.PAPER and committed.exists():
        machines["gpu"] = read_result(committed).data["machines"]["gpu"]
        sources = (f"results/{GPU_FILE.as_posix()}",)
    machines["cpu"] = sweep(CPU[scale], torch.device("cpu"), cells)
    return Outcome({"machines": machines}, numbers(machines), (POLICY_SEED, OBSERVATION_SEED, GRAPH_SEED), sources)


def sweep(sizes: Sequence[Size], device: torch.device, cells: Cells) -> dict[str, Any]:
    """Every size on one device, a cell each.

    Returns:
        ``sizes``, what :func:`~paper.timing.calls.measure` gives, and ``origin``, where they were made.
    """
    machine = "gpu" if device.type == "cuda" else "cpu"
    about = collect_provenance("graphsnd reproduce timing", GRAPH_SEED)
    maker = about["hardware"]["gpu" if machine == "gpu" else "cpu"]  # a cell of another machine is made again
    rows = [
        cells.get(f"{machine},n={size.n}", {**size.to_dict(), "maker": maker}, partial(measure, size, device))
        for size in sizes
    ]
    return {"origin": about, "sizes": rows}


EXPERIMENT = Experiment("timing", "Time of a metric call: loop over pairs against fused kernel", run, timing_figure)
