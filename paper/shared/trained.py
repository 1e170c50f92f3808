"""Training as a cell: done once, continued where it was killed."""

from __future__ import annotations

from graphsnd.training import Task, Trainer, train
from graphsnd.training.checkpoint import CHECKPOINT
from paper.cells import Cells


def trained(task: Task, cells: Cells, name: str) -> Trainer:
    """The trainer at the end of a task, from its checkpoint where there is one.

    Args:
        task: What to train.
        cells: Where its folder is.
        name: Of the folder.

    Raises:
        InputError: When the folder holds another training.
        KeyboardInterrupt: After Ctrl-C, once the training has saved where it was.

    Example:
        >>> import pathlib, tempfile
        >>> from graphsnd.training import Settings
        >>> task = Task("navigation", 2, {}, (0,), Settings(steps=4, environments=2, iterations=2))
        >>> cells = Cells(pathlib.Path(tempfile.mkdtemp()))
        >>> trained(task, cells, "team").iteration, trained(task, cells, "team").iteration
        (2, 2)
    """
    cells.step(name)
    folder = cells.folder(name)
    found = train(task, folder, resume=(folder / CHECKPOINT).exists())
    if not found.finished:
        raise KeyboardInterrupt
    return found.trainer
