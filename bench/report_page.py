"""How large the report's browser of judgments is, how long it takes to write, and how soon a page shows and filters it.

`python -m bench.report_page --judgments 5000 100000` makes output folders of made-up judgments, with passages and a
journal of prompts as they are sent, and prints a line for each. `--browser PATH` also opens the page in that Chromium.
"""

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from judge.ask.criteria import find_criterion
from judge.ask.prompt import render
from judge.ask.records import Judgment, Task
from judge.io.files import jsonl_bytes
from judge.io.page import look, policy
from judge.jobs.judged import read_judged
from judge.judges.journal import Journal
from judge.judges.journal_store import Row, new_row, request_digest
from judge.judges.records import Completion
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.records import Passage
from judge.report.page import Browser, browse
from judge.runs.records import TokenCount

RUNS, PER_TURN, PER_TOPIC = 10, 10, 150
"""Runs; responses of a turn; passages that the runs of a topic choose from."""
CRITERIA = ("groundedness/graded", "naturalness/graded")


def _vocabulary(rng: random.Random) -> list[str]:
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "on", "us")]
    return ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(20_000)]


def _text(rng: random.Random, words: list[str], length: int) -> str:
    # The frequency of a word falls with its rank as in real texts, so that the text compresses like one.
    picked = (words[int(len(words) ** rng.random()) - 1] for _ in range(length))
    return " ".join(picked).capitalize() + "."


def _responses(count: int, rng: random.Random, words: list[str]) -> tuple[list[PooledResponse], dict[str, Passage]]:
    responses: list[PooledResponse] = []
    passages: dict[str, Passage] = {}
    offered: list[str] = []
    for number in range(count):
        turn = number // PER_TURN
        topic_id = f"{turn // 10 + 1}-1"
        if number % (PER_TURN * 10) == 0:
            offered = [f"clueweb22-en{turn:04}-{n:05}:0" for n in range(PER_TOPIC)]
            passages |= {key: Passage(key, _text(rng, words, 170), "collection") for key in offered}
        responses.append(
            PooledResponse(
                response_id=f"R{number:05}",
                turn_id=f"{topic_id}_{turn % 10 + 1}",
                topic_id=topic_id,
                text=_text(rng, words, 140),
                passages=tuple(sorted(rng.sample(offered, 4))),
                tokens=TokenCount(140, 140, 140, None),
                truncated=False,
                runs=(RunEntry(f"run-{number % RUNS}", 1, "used", "0" * 64),),
            )
        )
    return responses, passages


def make_folder(folder: Path, judgments: int) -> None:
    """Fill a folder as `judge run` would.

    Args:
        folder: A folder that exists.
        judgments: How many judgments it holds.
    """
    rng = random.Random(judgments)
    words = _vocabulary(rng)
    responses, passages = _responses(judgments // len(CRITERIA), rng, words)
    pool = Pool(tuple(responses), passages, ())
    (folder / "pool.jsonl").write_bytes(pool_jsonl(pool))
    (folder / "passages.jsonl").write_bytes(passages_jsonl(pool))
    (folder / "excluded.tsv").write_bytes(excluded_tsv(()))
    (folder / "runs.jsonl").write_bytes(jsonl_bytes(pool.runs))
    rows: list[Row] = []

    def judged() -> Iterator[Judgment]:
        for name in CRITERIA:
            criterion = find_criterion(name)
            for response in responses:
                request = render(Task(response, criterion), passages, None, "json")
                digest = request_digest("server/made-up", {}, request)
                grade, rationale = rng.randrange(4), _text(rng, words, 40)
                reply = json.dumps({"rationale": rationale, "grade": grade})
                completion = Completion(text=reply, finish_reason="stop", model="made-up")
                rows.append(new_row(digest, "server/made-up", {}, request, completion))
                yield Judgment(
                    response_id=response.response_id,
                    turn_id=response.turn_id,
                    topic_id=response.topic_id,
                    criterion=criterion.name,
                    variant=criterion.variant,
                    grade=grade,
                    unable=False,
                    expected=None,
                    probabilities=None,
                    rationale=rationale,
                    sentences=(),
                    judge="server/made-up",
                    model="made-up",
                    criterion_digest=criterion.digest,
                    request_digest=digest,
                    form="json",
                    repaired=False,
                    sample=0,
                )

    (folder / "judgments.jsonl").write_bytes(jsonl_bytes(judged()))
    with Journal(folder / "journal.sqlite") as journal:
        journal.record(rows)


def write_page(folder: Path, browser: Browser) -> Path:
    """A page that holds the browser alone."""
    style = look() + browser.style
    rules = policy([browser.script], [style])
    page = folder / "report.html"
    page.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{rules}"><title>Judgments</title><style>{style}</style></head><body><main><h1>Judgments</h1>'
        f"{browser.markup}</main><script>{browser.script}</script></body></html>",
        encoding="utf-8",
    )
    return page


def measure(page: Path, chromium: str) -> str:
    """Times in a real browser: first paint, the list, a filter, a search, and one item."""
    from playwright.sync_api import sync_playwright

    timed = """async ([name, value]) => {
        const control = document.getElementById(name), status = document.getElementById("browse-status");
        const before = status.textContent, start = performance.now();
        control.value = value;
        control.dispatchEvent(new Event(name === "browse-q" ? "input" : "change"));
        while (status.textContent === before || status.textContent.startsWith("Searching"))
            await new Promise(requestAnimationFrame);
        return Math.round(performance.now() - start);
    }"""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium)
        tab = opened.new_page()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.wait_for_selector("#browse-list a")
        listed = tab.evaluate("performance.now()")
        paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        by_run = tab.evaluate(timed, ["browse-run", "run-3"])
        grades = tab.evaluate(timed, ["browse-grade", "2"])
        first_search = tab.evaluate(timed, ["browse-q", "ba"])
        search = tab.evaluate(timed, ["browse-q", "ban"])
        start = time.perf_counter()
        tab.locator("#browse-list a").first.click()
        tab.wait_for_selector("#browse-item-title")
        item = round(1000 * (time.perf_counter() - start))
        heap = tab.evaluate("Math.round(performance.memory.usedJSHeapSize / 1e6)")
        opened.close()
    return (
        f"first paint {paint:.0f} ms, list {listed:.0f} ms, filter {by_run} and {grades} ms, first search "
        f"{first_search} ms, next {search} ms, item {item} ms, {heap} MB of heap"
    )


def main() -> None:
    """Measure each size that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgments", type=int, nargs="+", default=[5000])
    parser.add_argument("--browser", help="the Chromium to open the page in")
    options = parser.parse_args()
    for judgments in options.judgments:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            make_folder(folder, judgments)
            made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            start = time.perf_counter()
            browser = browse({"out": read_judged(folder)})
            page = write_page(folder, browser)
            seconds = time.perf_counter() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{judgments:,} judgments: written in {seconds:.1f} s, page {page.stat().st_size / 1e6:.1f} MB; "
                f"memory {made} MB when made, at most {peak} MB"
            )
            if options.browser:
                print(measure(page, options.browser))


if __name__ == "__main__":
    main()
