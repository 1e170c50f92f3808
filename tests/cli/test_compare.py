import json
from pathlib import Path
from typing import Any

import numpy as np


def test_two_teams(run: Any, save: Any, tensors: dict) -> None:
    clusters = np.arange(40) // 4
    first = save("a.npz", loc=tensors["loc"], scale=tensors["scale"], clusters=clusters)
    second = save("b.npz", loc=tensors["loc"] * 1.1, scale=tensors["scale"])
    found = run("compare", second, first)
    assert found.exit_code == 0, found.output
    assert "(40 shared observations; 10 clusters, as given)" in found.stdout
    assert json.loads(run("compare", second, first, "--json").stdout)["p_value"] < 0.01
    assert run("compare", first).exit_code == 2


def test_what_is_not_there_is_refused(run: Any, save: Any, tensors: dict, tmp_path: Path) -> None:
    team = save("a.npz", loc=tensors["loc"], scale=tensors["scale"])
    result = run("compare", team, tmp_path / "none")
    assert result.exit_code == 2
    assert "`SECOND` to be a file or a folder" in " ".join(result.stderr.split())
