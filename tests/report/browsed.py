"""Small output folders for the tests of the browser: the files of `judge run`, from records given in words."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from judge.ask.records import Failure, Judgment
from judge.ask.results import read_results
from judge.calibrate.disagreements import AssessorGrade, Disagreement, JudgeGrade, ShownPassage
from judge.io.files import jsonl_bytes, sha256
from judge.io.page import look, policy
from judge.jobs.judged import JudgedFolder
from judge.judges.journal import Journal
from judge.judges.journal_store import new_row
from judge.judges.records import Completion, Message
from judge.pool.bank import read_pool_folder
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.records import Passage, Scale
from judge.report.folders import folder_names
from judge.report.page import Browser
from judge.runs.records import Exchange
from tests import calibration_world as world
from tests.conftest import ask, put

FERRY = Passage("ferry-1", "The ferry leaves the pier at noon. Tickets cost 4 crowns.", "collection")
BUS = Passage("bus-7", "Bus 7 stops at the harbor every ten minutes.", "collection")
TOPICS = [
    {
        "number": "1-1",
        "ptkb": {"1": "I live near the harbor.", "2": "I am afraid of water."},
        "turns": [
            {"turn_id": 1, "utterance": "How do I get to the island?", "ptkb_provenance": [1], "response": "By ferry."},
            {"turn_id": 2, "utterance": "When does it leave?", "resolved_utterance": "When does the ferry leave?"},
        ],
    }
]


def response(number: int, text: str, turn: str = "1-1_1", **changed: Any) -> PooledResponse:
    """A pooled response of run-a that used the passage about the ferry; `changed` replaces fields."""
    return replace(world.pooled(f"R{number:05}", text, "run-a", turn_id=turn, passages=("ferry-1",)), **changed)


def runs(*names: str) -> tuple[RunEntry, ...]:
    """The entries of runs that gave a response at rank 1."""
    return tuple(RunEntry(name, 1, "used", "0" * 64) for name in names)


def judgment(number: int, grade: int, turn: str = "1-1_1", **changed: Any) -> Judgment:
    """A judgment of groundedness; `changed` replaces fields."""
    made = world.judgment(turn, f"R{number:05}", grade, "server/made-up", "groundedness/mine", digest="c" * 64)
    return replace(made, **{"model": None, "request_digest": f"{number:064x}", **changed})


def failed(number: int, reason: str = "unreadable", turn: str = "1-1_1", **changed: Any) -> Failure:
    """A failure of groundedness; `changed` replaces fields."""
    said = {"detail": "no line of the form `Grade: LABEL`", "raw": "I had rather not say."}
    about = {"variant": "mine", "criterion_digest": "c" * 64}
    return replace(world.failure(turn, f"R{number:05}", reason, "server/made-up"), **{**about, **said, **changed})


def write_folder(
    folder: Path,
    responses: Sequence[PooledResponse],
    results: Sequence[Judgment | Failure],
    passages: Sequence[Passage] = (FERRY, BUS),
    members: Sequence[Judgment | Failure] = (),
    sent: dict[str, tuple[str, str]] | None = None,
    topics: bool = False,
) -> Path:
    """Write an output folder.

    `members`: what the members of a jury said. `sent`: for the journal, digest to the user message and the reply; None
    for no journal. `topics`: whether there is a topics file, beside the folder.
    """
    world.write_pool(folder, Pool(tuple(responses), {passage.passage_id: passage for passage in passages}, ()))
    _results(folder, "judgments.jsonl", "failures.jsonl", results)
    if members:
        _results(folder, "members.jsonl", "member_failures.jsonl", members)
    if sent is not None:
        _journal(folder / "journal.sqlite", sent)
    if topics:
        path = put(folder.parent / "topics.json", json.dumps(TOPICS))
        configured = {"topics": sha256(path.read_bytes())}
        manifest = {"schema": 3, "configuration": configured, "options": {"topics": str(path)}, "status": "complete"}
        put(folder / "manifest.json", json.dumps(manifest))
    return folder


def gold_file(folder: Path, *grades: tuple[str, str, int], turn: str = "1-1_1") -> Path:
    """Gold of groundedness beside a folder: response, assessor and grade of each row."""
    rows = [world.row(turn, response_id, grade, assessor) for response_id, assessor, grade in grades]
    return world.write_gold(folder.parent / "gold.jsonl", rows)


PASSAGES = (ShownPassage("ferry-1", FERRY.text), ShownPassage("bus-9", None))


def calibrated(folder: Path, *lines: Disagreement) -> Path:
    """The output folder of a calibration, as far as a page shows it."""
    put(folder / "disagreements.jsonl", jsonl_bytes(lines))
    return folder


def disagreement(
    response_id: str, *judges: JudgeGrade, text: str = "By ferry.", passages: tuple[ShownPassage, ...] = PASSAGES
) -> Disagreement:
    """Judges beside a gold grade of 3."""
    distance = max((abs(one.difference) for one in judges if one.difference is not None), default=0)
    gold, context = (AssessorGrade("ann", 3, "blind"),), (Exchange("Where to?", "The island."),)
    return Disagreement(
        *("1-1_1", "1-1", response_id, "groundedness", "dev", 3, gold, judges, "grades", distance, text),
        *(passages, "How?", context),
    )


def opened(folders: Sequence[Path]) -> dict[str, JudgedFolder | Path]:
    """Folders as a report reads them, by name, without what only its tables need."""
    return {
        name: _judged(folder) if (folder / "pool.jsonl").is_file() else folder
        for name, folder in zip(folder_names(folders), folders, strict=True)
    }


def _judged(folder: Path) -> JudgedFolder:
    pool = read_pool_folder(folder / "pool.jsonl", "passages.jsonl")
    results = read_results(folder / "judgments.jsonl", folder / "failures.jsonl")
    return JudgedFolder(folder, pool, results, (), {}, (), {})


def _results(folder: Path, graded: str, missing: str, results: Sequence[Judgment | Failure]) -> None:
    (folder / graded).write_bytes(jsonl_bytes(result for result in results if isinstance(result, Judgment)))
    (folder / missing).write_bytes(jsonl_bytes(result for result in results if isinstance(result, Failure)))


def _journal(path: Path, sent: dict[str, tuple[str, str]]) -> None:
    rows = []
    for digest, (asked, reply) in sent.items():
        messages = (Message("system", "You assess groundedness."), Message("user", asked))
        request = ask("json", messages=messages, scale=Scale((), "higher", (), None), labels=())
        completion = Completion(text=reply, finish_reason="stop", model="made-up-1")
        rows.append(new_row(digest, "server/made-up", {}, request, completion))
    with Journal(path) as journal:
        journal.record(rows)


def write_page(folder: Path, browser: Browser) -> str:
    """A page with nothing but the browser, under the policy of a report; returns its address."""
    style = look() + browser.style
    rules = policy([browser.script], [style])
    page = put(
        folder / "page.html",
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Judgments</title>'
        f'<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
        f"<style>{style}</style></head><body><main><h1>Report</h1><section><h2>Judgments</h2>{browser.markup}"
        f"</section></main><script>{browser.script}</script></body></html>",
    )
    return page.as_uri()
