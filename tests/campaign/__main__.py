"""``python -m tests.campaign [themes] --seed 0 --share 1.0 --json out.json``: run themes, print a table."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path
from time import perf_counter

import tests.campaign

THEMES = [module.name for module in pkgutil.iter_modules(tests.campaign.__path__)]
THEMES = [name for name in THEMES if not name.startswith(("test_", "_"))]


def main() -> int:
    """Run the themes that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign")
    parser.add_argument("themes", nargs="*", metavar="theme", help=f"of {', '.join(THEMES)}; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of a full run")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    asked = parser.parse_args()
    rows = []
    print(f"{'theme':14}{'cases':>9}{'refused':>9}{'failed':>8}{'distinct':>10}{'seconds':>9}")
    for name in asked.themes or THEMES:
        theme = importlib.import_module(f"tests.campaign.{name}")
        start = perf_counter()
        outcome = theme.run(asked.seed, max(1, round(asked.share * theme.FULL)))
        seconds, failed, distinct = perf_counter() - start, outcome.failures.total(), len(outcome.failures)
        print(f"{name:14}{outcome.cases:9}{outcome.refused:9}{failed:8}{distinct:10}{seconds:9.1f}", flush=True)
        rows.append({"theme": name, "seed": asked.seed, "cases": outcome.cases, "refused": outcome.refused})
        rows[-1] |= {"failures": dict(outcome.failures), "examples": outcome.examples, "seconds": round(seconds, 1)}
    for row in rows:
        for kind, example in row["examples"].items():
            print(f"\n{row['theme']}: {kind}, {row['failures'][kind]} times\n    {example}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(row["failures"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
