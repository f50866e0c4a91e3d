"""Small output folders for the tests of the browser: the files of `judge run`, from records given in words."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import read_results
from judge.io.line_stream import jsonl_bytes
from judge.io.page import look, policy
from judge.io.stored import sha256
from judge.jobs.judged import JudgedFolder
from judge.judges.journal import Journal
from judge.judges.journal_rows import new_row
from judge.judges.records import Completion, Message
from judge.pool.bank import passages_jsonl, pool_jsonl, read_pool_folder
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.records import Passage, Scale
from judge.report.folders import folder_names
from judge.report.page import Browser
from judge.runs.records import TokenCount
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
    fields: dict[str, Any] = {
        "response_id": f"R{number:05}", "turn_id": turn, "topic_id": turn.rpartition("_")[0], "text": text,
        "passages": ("ferry-1",), "tokens": TokenCount(9, 9, 9, None), "truncated": False, "runs": runs("run-a"),
    }  # fmt: skip
    return PooledResponse(**{**fields, **changed})


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

    Args:
        folder: Where; it is made.
        responses: The pool's responses.
        results: What the judge said.
        passages: The pool's passages.
        members: What the members of a jury said.
        sent: For the journal: digest to the user message and the reply; None for no journal.
        topics: Whether there is a topics file, beside the folder.
    """
    folder.mkdir(parents=True)
    pool = Pool(tuple(responses), {passage.passage_id: passage for passage in passages}, ())
    (folder / "pool.jsonl").write_bytes(pool_jsonl(pool))
    (folder / "passages.jsonl").write_bytes(passages_jsonl(pool))
    _results(folder, "judgments.jsonl", "failures.jsonl", results)
    if members:
        _results(folder, "members.jsonl", "member_failures.jsonl", members)
    if sent is not None:
        _journal(folder / "journal.sqlite", sent)
    if topics:
        path = put(folder.parent / "topics.json", json.dumps(TOPICS))
        configured = {"topics": sha256(path.read_bytes())}
        manifest = {"schema": 2, "configuration": configured, "options": {"topics": str(path)}, "status": "complete"}
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def opened(folders: Sequence[Path]) -> dict[str, JudgedFolder | Path]:
    """Folders as a report reads them, by name, without what only its tables need."""
    return {
        name: _judged(folder) if (folder / "pool.jsonl").is_file() else folder
        for name, folder in zip(folder_names(folders), folders, strict=True)
    }


def _judged(folder: Path) -> JudgedFolder:
    pool = read_pool_folder(folder / "pool.jsonl", "passages.jsonl")
    return JudgedFolder(
        folder, pool, read_results(folder / "judgments.jsonl", folder / "failures.jsonl"), (), {}, (), {}
    )


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
    folder.mkdir(parents=True, exist_ok=True)
    style = look() + browser.style
    rules = policy([browser.script], [style], further=bool(browser.files))
    (folder / "page.html").write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Judgments</title>'
        f'<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
        f"<style>{style}</style></head><body><main><h1>Report</h1><section><h2>Judgments</h2>{browser.markup}"
        f"</section></main><script>{browser.script}</script></body></html>",
        encoding="utf-8",
    )
    for name, content in browser.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return (folder / "page.html").as_uri()
