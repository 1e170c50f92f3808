from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import settings

# The same examples every time; numba may compile inside the first one, so there is no deadline.
settings.register_profile("graphsnd", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("graphsnd")

# A program started in the background or by nohup ignores these, as do its children: tests that send them would wait.
for name, handler in {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}.items():
    if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """An installed Chromium, started once."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=quiet)
        yield started
        started.close()


@pytest.fixture
def browser_page(browser: Any) -> Iterator[Any]:
    """A new page of it; the test fails if it logs anything or asks for more than files on disk."""
    complaints: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url))
    yield page
    page.close()
    assert [line for line in complaints if not line.startswith(("file:", "data:", "blob:", "about:"))] == []
