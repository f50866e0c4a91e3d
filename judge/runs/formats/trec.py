"""Lists of passages by turn, as TREC writes them: a run of six columns, and qrels of four.

Either is read as a run without responses, whose turns list passages. A turn of a run has its first 1,000 by score.
"""

import re
from pathlib import PurePath

from judge.errors import InputError
from judge.io.ids import own_turn_id, parse_qrels, parse_run, trec_order
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.document import HEAD, Document
from judge.runs.formats.shape import Format, ReadRun, ResponsePlace, Rules, TurnPlace
from judge.runs.records import Provenance, Response, Run, RunTurn

MAX_PASSAGES = 1000
"""The most passages of a turn that are assessed (TREC iKAT guidelines)."""
_RUN_LINE = re.compile(
    rb"\s*\S+[ \t]+(Q0[ \t]|\S+[ \t]+\S+[ \t]+\S+[ \t]+[-+]?[0-9.]+(e[-+]?[0-9]+)?[ \t]+\S+[ \t\r]*(\n|$))",
    re.IGNORECASE,
)
_QRELS_LINE = re.compile(rb"\s*[^\s{\[]\S*[ \t]+\S+[ \t]+\S+[ \t]+[-+]?[0-9]+[ \t\r]*(\n|$)")


def looks_like_trec_run(head: bytes) -> bool:
    """Whether the first line of a file has `Q0` as its second column, or six columns of which the fifth is a number."""
    return _RUN_LINE.match(head) is not None


def looks_like_qrels(head: bytes) -> bool:
    """Whether the first line of a file has four columns, of which the fourth is an integer."""
    return _QRELS_LINE.match(head) is not None


def _read_trec_run(document: Document) -> ReadRun:
    text, problems = _text_of(document)
    if text is None:
        return ReadRun(None, problems)
    try:
        run = parse_run(text, document.file, again="best")
    except InputError as error:
        return _refused(document, error)
    lists: dict[str, list[str]] = {}
    for turn_id, scores in run.scores.items():
        lists.setdefault(own_turn_id(turn_id), []).extend(trec_order(scores)[:MAX_PASSAGES])
    return _read_lists(document, "trec_run", run.run_id, lists)


def _read_qrels(document: Document) -> ReadRun:
    text, problems = _text_of(document)
    if text is None:
        return ReadRun(None, problems)
    try:
        rows = parse_qrels(text, document.file)
    except InputError as error:
        return _refused(document, error)
    lists: dict[str, list[str]] = {}
    for row in rows:
        lists.setdefault(own_turn_id(row.turn_id), []).append(row.item_id)
    return _read_lists(document, "qrels", PurePath(document.file).name, lists)


def _text_of(document: Document) -> tuple[str | None, tuple[Problem, ...]]:
    """The text of a file; None with the reason where it has none."""
    if not document.content:
        return None, document.problems
    try:
        return document.content.decode(), ()
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} is not UTF-8: {error.reason}"
        return None, (problem("wrong_encoding", document.file, "", message),)


def _refused(document: Document, error: InputError) -> ReadRun:
    rows = [
        problem("malformed_line", document.file, row.path, row.message, turn_id=row.turn_id) for row in error.problems
    ]
    return ReadRun(None, tuple(rows) or (problem("malformed_line", document.file, "", str(error)),))


def _read_lists(document: Document, format: str, run_id: str, lists: dict[str, list[str]]) -> ReadRun:
    turns: list[RunTurn] = []
    for turn_id, passage_ids in lists.items():
        listed = tuple(Provenance(passage_id) for passage_id in passage_ids)
        turns.append(RunTurn(turn_id, (Response(1, "", listed),)))
    run = Run(
        run_id=run_id,
        run_type=None,
        team=None,
        format=format,
        file=document.file,
        digest=document.digest,
        # Nothing is said to a user.
        eval_response=False,
        turns=tuple(turns),
    )
    marks = tuple(row for row in document.problems if row.severity == "warning")
    return ReadRun(run, marks, tuple(TurnPlace("$", (ResponsePlace("$"),)) for _ in turns))


TREC_RUN = Format(
    "A TREC run of passages: lines `turn_id Q0 passage_id rank score run_id`. It has no responses, so its passages "
    "alone are judged (`--criteria passage_relevance`).",
    Rules(run_id="line 1", form="list", all_turns=False),
    lambda document: looks_like_trec_run(document.content[:HEAD]),
    _read_trec_run,
)
QRELS = Format(
    "Qrels of passages, lines `turn_id 0 passage_id grade`, whose grades are to be made again. They have no responses, "
    "so the passages alone are judged (`--criteria passage_relevance`).",
    Rules(run_id="", form="list", all_turns=False, whole_lists=True),
    lambda document: looks_like_qrels(document.content[:HEAD]),
    _read_qrels,
)
