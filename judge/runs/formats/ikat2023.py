"""iKAT 2023: one JSON object; PTKB provenance as objects with id, text and score."""

import re
from functools import partial
from typing import Any

from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    PtkbEntry,
    ReadRun,
    ResponsePlace,
    Rules,
    looks_like_run,
    read_json_run,
    read_passages,
    responses_of,
    turn_id_like,
)
from judge.runs.records import Response

FORMAT = "ikat2023"
RULES = Rules(
    run_id="$.run_name",
    turns="$.turns",
    run_type="$.run_type",
    run_types=("automatic", "manual"),
    passages="passage_provenance",
    flags_used=True,
    ptkb="objects",
    passage_id=IKAT_PASSAGE_ID,
    year=2023,
)
_TURN_ID = re.compile(r"[0-9]+-[0-9]+_[0-9]+")


def sniff(document: Document) -> bool:
    """The first PTKB entry decides; without any, turn ids such as `9-1_1` in a run without a mark of 2024.

    A run that both years accept is taken as 2024.
    """
    value = document.value
    if not looks_like_run(value):
        return False
    for response in responses_of(value):
        ptkb = response.get("ptkb_provenance")
        if type(ptkb) is list and ptkb:
            return type(ptkb[0]) is dict
    later = "eval_response" in value or value.get("run_type") == "only_response"
    return not later and turn_id_like(value, _TURN_ID)


def read(document: Document) -> ReadRun:
    """The run in `document`."""
    return read_json_run(document, FORMAT, ("run_name", "run_type", "turns"), _response)


def _response(log: ProblemLog, path: str, value: Any, needs_text: bool) -> tuple[Response, ResponsePlace]:
    known = ("rank", "text", "passage_provenance", "ptkb_provenance")
    fields = Fields(log.add, path, value, known)
    ids: list[str] = []
    statements: list[PtkbEntry] = []
    base = f"{path}.ptkb_provenance"
    for k, entry in enumerate(fields.list("ptkb_provenance", optional=True)):
        report = partial(log.add_entry, base)
        statement = Fields(report, f"{base}[{k}]", entry, ("id", "text", "score"))
        ids.append(statement.label("id"))
        statements.append((statement.text("text"), statement.number("score")))
    response = Response(
        rank=fields.integer("rank"),
        text=fields.text("text", optional=not needs_text),
        provenance=read_passages(
            log, fields.list("passage_provenance", optional=True), f"{path}.passage_provenance", flagged=True
        ),
        ptkb_provenance=tuple(ids),
    )
    return response, ResponsePlace(path, tuple(statements))
