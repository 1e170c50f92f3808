"""Run a function with configurations that Hydra composes from a command line. Needs ``hydra-core``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from graphsnd.errors import InputError, require


def run_jobs(
    job: Callable[[Any], None], argv: Sequence[str], *, program: str, config_name: str, config_path: str | None = None
) -> None:
    """Call ``job`` with each configuration of ``argv``: overrides, and Hydra's own options, such as ``-m``.

    Args:
        job: Takes a composed configuration.
        argv: Without the program's name.
        program: Name of the program, for Hydra's help.
        config_name: Name of the primary configuration, in the folder or in Hydra's store.
        config_path: Its folder.

    Raises:
        InputError: For a configuration that graphsnd cannot accept; the other jobs of a multirun are run all the same.
        MissingExtraError: Without Hydra.
    """
    hydra = require("hydra", "hydra-core")
    refused: list[InputError] = []

    @hydra.main(version_base=None, config_path=config_path, config_name=config_name)  # type: ignore[untyped-decorator]
    def run(config: Any) -> None:
        try:
            job(config)
        except InputError as error:  # Hydra would print a traceback and exit
            refused.append(error)

    # Hydra reads its arguments from sys.argv alone.
    before = sys.argv
    sys.argv = [program, *argv]
    try:
        run()
    finally:
        sys.argv = before
    if refused:
        raise refused[0]
