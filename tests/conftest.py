from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# The same examples every time; numba may compile inside the first one, so there is no deadline.
settings.register_profile("graphsnd", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("graphsnd")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Teams of a few agents are all overhead: most of it is waiting for a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20250)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Figures of a test that asked pyplot for them are closed with it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
