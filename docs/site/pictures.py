"""The screenshots of the pages, taken of the bundled example by a headless browser: `python -m docs.site.pictures`.

Each picture is small and has few colors, so that it may lie in the repository. `--only NAME` takes some of them.
"""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docs.site.pages import DOCS, PROJECT
from judge.cli import main as judge
from judge.cli.demo import write_example

FOLDER = DOCS / "pictures"
WINDOW = {"width": 1120, "height": 760}
COLORS = 128
LARGEST = 150_000
"""Most bytes of a picture."""


def _run(line: str) -> None:
    """Carry out a command in the working folder, silently."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = judge(line.split())
    if code != 0:
        raise SystemExit(f"judge {line}: exit code {code}\n{said.getvalue()}")


def prepare() -> None:
    """Judge the example in the working folder, write its report, and plan what to label."""
    write_example(Path())
    inputs = "--runs examples/runs --topics examples/topics.json --passages examples/passages.jsonl"
    _run(f"run {inputs} --criteria groundedness --model baseline/overlap --out out")
    _run("report out --gold gold/example.gold.jsonl")
    _run("gold plan --pool out --criteria groundedness --n 40 --per-run 5 --seed 1 --out plan.jsonl")


def _opened(page: Any) -> None:
    """Open the report and wait for its list of judgments."""
    page.goto((Path("out") / "report.html").resolve().as_uri())
    page.locator("#browse-list a").first.wait_for()


def report(page: Any) -> None:
    """The leaderboard of the report."""
    _opened(page)
    page.locator("#leaderboard-groundedness").screenshot(path="report.png")


def judgment(page: Any) -> None:
    """One judgment in the report's list, with its response and passages."""
    _opened(page)
    page.locator("#browse-list a").first.click()
    page.locator("#browse-item h3").first.wait_for()
    page.evaluate("document.querySelector('#browse-item').closest('section').scrollIntoView()")
    page.screenshot(path="judgment.png")


def desk(page: Any) -> None:
    """The desk at which an assessor labels."""
    with _served("serve assess --pool out --plan plan.jsonl --topics examples/topics.json --assessor ada") as link:
        page.goto(link)
        page.get_by_text("Which level fits?").wait_for()
        page.screenshot(path="desk.png")


@contextlib.contextmanager
def _served(line: str) -> Iterator[str]:
    """The link of a desk that is served in a process of its own."""
    words = [sys.executable, "-m", "judge", *line.split(), "--store", "labels.sqlite", "--port", "0"]
    surroundings = os.environ | {"PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=surroundings)
    try:
        yield (process.stdout.readline() if process.stdout else "").rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.wait(timeout=10)


PICTURES: dict[str, Callable[[Any], None]] = {"report": report, "judgment": judgment, "desk": desk}
"""Name of the picture to what takes it."""


def small(path: Path) -> bytes:
    """A screenshot with few colors, as PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.open(path).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.pictures", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PICTURES), default=list(PICTURES), metavar="NAME")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), sync_playwright() as playwright:
        prepare()
        browser = playwright.chromium.launch(executable_path=executable)
        for name in args.only:
            page = browser.new_page(viewport=WINDOW, color_scheme="light", reduced_motion="reduce")
            PICTURES[name](page)
            content = small(Path(f"{name}.png"))
            if len(content) > LARGEST:
                print(f"{name}.png: {len(content):,} bytes, more than {LARGEST:,}", file=sys.stderr)
                return 1
            (FOLDER / f"{name}.png").write_bytes(content)
            print(f"docs/pictures/{name}.png: {len(content):,} bytes")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
