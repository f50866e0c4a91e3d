"""iKAT 2024: one JSON object with `eval_response`; PTKB provenance as integers; `only_response` runs have no scores."""

from typing import Any

from judge.io.safe import shown
from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    ReadRun,
    ResponsePlace,
    Rules,
    looks_like_run,
    read_json_run,
    read_passages,
)
from judge.runs.records import Response

FORMAT = "ikat2024"
RULES = Rules(
    run_id="$.run_name",
    turns="$.turns",
    run_type="$.run_type",
    run_types=("automatic", "manual", "only_response"),
    scoreless=("only_response",),
    passages="passage_provenance",
    flags_used=True,
    ptkb="numbers",
    passage_id=IKAT_PASSAGE_ID,
    year=2024,
)


def sniff(document: Document) -> bool:
    """Whether the document is a run in one JSON object; tried after the formats with a mark of their own."""
    return looks_like_run(document.value)


def read(document: Document) -> ReadRun:
    """The run in `document`; an absent `eval_response` means true."""
    return read_json_run(document, FORMAT, ("run_name", "run_type", "eval_response", "turns"), _response)


def _response(log: ProblemLog, path: str, value: Any, needs_text: bool) -> tuple[Response, ResponsePlace]:
    known = ("rank", "text", "passage_provenance", "ptkb_provenance")
    fields = Fields(log.add, path, value, known)
    base = f"{path}.ptkb_provenance"
    response = Response(
        rank=fields.integer("rank"),
        text=fields.text("text", optional=not needs_text),
        provenance=read_passages(
            log, fields.list("passage_provenance", optional=True), f"{path}.passage_provenance", flagged=True
        ),
        ptkb_provenance=tuple(
            _ptkb_id(log, base, f"{base}[{k}]", entry)
            for k, entry in enumerate(fields.list("ptkb_provenance", optional=True))
        ),
    )
    return response, ResponsePlace(path)


def _ptkb_id(log: ProblemLog, base: str, path: str, entry: Any) -> str:
    if type(entry) is int and abs(entry) < 10**9:
        return str(entry)
    if (type(entry) is str and entry.isascii() and entry.isdigit() and len(entry) < 10) or (
        type(entry) is float and entry.is_integer() and abs(entry) < 10**9
    ):
        number = int(entry)
        message = f"{shown(entry)} is read as the number {number}"
        log.add_entry(base, "coerced_value", path, message)
        return str(number)
    message = f"expected the number of a PTKB statement, found {shown(entry)}"
    log.add_entry(base, "wrong_type", path, message)
    return ""
