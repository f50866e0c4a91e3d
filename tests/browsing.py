"""Pages in a real browser: a headless Chromium that is installed already, and what every page must hold there."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OWN = ("file:", "data:", "blob:", "about:", "http://127.0.0.1", "http://localhost", "ws://127.0.0.1")
NARROW, WIDE = {"width": 360, "height": 740}, {"width": 1440, "height": 900}


def chromium() -> str | None:
    """The browser to test with: that of the environment variable CHROMIUM, else one on the path."""
    return os.environ.get("CHROMIUM") or next((path for name in _NAMES if (path := shutil.which(name))), None)


# Of a module, because other tests start event loops of their own, which a running Playwright does not allow.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, for the tests of one module; skipped where none is installed."""
    executable = chromium()
    if executable is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is on the path, and CHROMIUM names none")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A wide page; the test fails if the page says an error on its console or asks anybody but this machine."""
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    opened = context.new_page()
    watched = watch(opened)
    yield opened
    context.close()
    assert watched == []


def watch(page: Page) -> list[str]:
    """A list that grows with each error on the console, each uncaught exception, and each request to elsewhere."""
    found: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            found.append(f"console {message.type}: {message.text}")

    def asked(request: Request) -> None:
        if not request.url.startswith(_OWN):
            found.append(f"request: {request.url}")

    page.on("console", heard)
    page.on("pageerror", lambda error: found.append(f"exception: {error}"))
    page.on("request", asked)
    return found


def faults(page: Page) -> list[str]:
    """The faults that axe-core finds on a page, from minor to critical, with the elements that have them."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {fault['help']} ({node['target']}: {node['html'][:120]})"
        for fault in found
        for node in fault["nodes"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window; 0 where nothing sticks out."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return max(width, 0)
