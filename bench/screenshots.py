"""The screenshots of the pages: the report, its browser of judgments and the desk, on the bundled example.

    python bench/screenshots.py

Writes `docs/pictures/*.png`; needs Chromium and playwright. Pictures differ a little from machine to machine, so no test
compares them.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from judge.cli import main
from judge.cli.demo import write_example

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT = 1200, 860
JUDGED = (
    "run --runs examples/runs --topics examples/topics.json --passages examples/passages.jsonl"
    " --criteria groundedness --model baseline/overlap --out out"
)
PLANNED = "gold plan --pool out --criteria groundedness --n 40 --per-run 5 --seed 1 --out plan.jsonl"
REPORTED = "report out --gold gold/example.gold.jsonl"
DESK = (
    "serve assess --pool out --plan plan.jsonl --topics examples/topics.json --assessor ada --store labels.db --port 0"
)


@contextlib.contextmanager
def desk() -> Iterator[str]:
    """The address of a desk that is being served."""
    command = [sys.executable, "-m", "judge", *DESK.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            if address := re.search(r"http://\S+", line):
                yield address[0]
                break
        process.terminate()


def shoot(page: Page) -> None:
    """Take every picture."""
    page.goto(Path("out/report.html").resolve().as_uri())
    box = page.locator("#leaderboard-groundedness").bounding_box()
    assert box is not None
    clip = {"x": box["x"] - 20, "y": box["y"] - 4, "width": box["width"] + 40, "height": box["height"] + 8}
    page.screenshot(path=PICTURES / "report.png", clip=clip, full_page=True)
    page.get_by_role("link", name="R00020").click()
    page.locator("#judgments").evaluate("section => section.scrollIntoView()")
    page.screenshot(path=PICTURES / "judgments.png")
    with desk() as address:
        page.goto(address)
        page.screenshot(path=PICTURES / "desk.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_example(Path())
        for command in (JUDGED, PLANNED, REPORTED):
            main(command.split())
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM)
            shoot(browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"))
            browser.close()
