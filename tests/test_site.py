"""The built docs site in Chromium: no error, no request to another host, nothing wider than a phone, and its search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

SITE = Path(__file__).parents[1] / "site"
PAGES = sorted(page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html"))

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not PAGES, reason="make docs builds the site"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site, served: as a file, search could not read the pages it quotes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module", params=["light", "dark"])
def phone(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    """A page as wide as a phone, which notes errors and what it asks of others."""
    context = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme=request.param, base_url=address)
    page, noted = context.new_page(), []
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("console", lambda message: noted.append(message.text) if message.type == "error" else None)
    page.on("request", lambda asked: noted.append(asked.url))
    page.trouble = lambda: [line for line in noted if not line.startswith((address, "data:"))]
    yield page
    context.close()


def test_pages_fit_a_phone_and_ask_no_other_host(phone: Any) -> None:
    assert len(PAGES) > 40
    wide = {}
    for name in PAGES:
        phone.goto(name)
        width = phone.evaluate("document.documentElement.scrollWidth")
        wide |= {name: width} if width > 400 else {}
    assert not wide
    assert not phone.trouble()


def test_search_finds_a_name(phone: Any) -> None:
    phone.goto("search.html?q=graph_snd")
    phone.wait_for_selector("#search-results li")
    assert "graphsnd.graph_snd" in phone.locator("#search-results").inner_text()
    assert not phone.trouble()
