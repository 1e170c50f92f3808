"""Pack the sources of a commit in one file, with a hash that proves the commit on a machine without the repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.provenance import MANIFEST, SOURCES, find_commit, verify_commit
from graphsnd.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("tests", "pyproject.toml", "Makefile")


def pack(file: Path) -> str:
    """Write the sources of this commit to a ``.tgz``, without results, and return the commit.

    Its ``commit.json`` has the commit and the hash of the sources. The sources are checked against it when they run.

    Raises:
        InputError: When sources were changed since the commit, or git cannot pack them.
    """
    verify_commit("FILE", ROOT)
    about = find_commit()
    manifest = json.dumps({"commit": about["commit"], "tree": about["tree"]})
    command = ["git", "-C", str(ROOT), "archive", "--format=tgz", f"--output={file.resolve()}"]
    command += [f"--add-virtual-file={MANIFEST}:{manifest}", "HEAD", "--", *SOURCES, *BESIDE]
    command += [f":(exclude){name}/results" for name in SOURCES]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError("FILE", "to be packed from a repository", done.stderr.strip())
    return str(about["commit"])
