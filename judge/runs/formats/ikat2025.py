"""iKAT 2025: JSON Lines, one turn a line; a turn has `references`, and a response cites those that it uses."""

from functools import partial
from typing import Any

from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog
from judge.runs.formats.citations import References, read_cited, read_metadata, read_references, read_statements
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    ReadRun,
    ResponsePlace,
    Rules,
    TurnPlace,
    read_run_of,
    read_turn,
    too_many,
    turn_label,
)
from judge.runs.records import Response, RunTurn

FORMAT = "ikat2025"
RULES = Rules(
    run_id="$.metadata.run_id",
    form="lines",
    run_type="$.metadata.run_type",
    run_types=("automatic", "manual", "generation-only", "interactive"),
    passages="references",
    keyed=True,
    flags_used=True,
    ptkb="texts",
    passage_id=IKAT_PASSAGE_ID,
    year=2025,
)
_METADATA = ("run_id", "run_type", "team_id")


def sniff(document: Document) -> bool:
    """Whether the document is JSON Lines, or a single turn with `metadata` or `references`."""
    value = document.value
    return bool(document.lines) or (type(value) is dict and ("metadata" in value or "references" in value))


def read(document: Document) -> ReadRun:
    """The run in `document`, with the first run id, type and team that its lines give."""
    lines = document.lines or (() if document.unreadable else ((1, document.value),))
    log = ProblemLog(document.file)
    log.problems.extend(document.problems)
    turns: list[tuple[RunTurn, TurnPlace]] = []
    first = dict.fromkeys(_METADATA, "")
    if too_many(log, "$", [value for _, value in lines]):
        return ReadRun(None, tuple(log.problems))
    for number, value in lines:
        log.turn_id = turn_label(value)
        fields = Fields(log.add, f"line {number}: $", value, ("metadata", "turn_id", "responses", "references"))
        read_metadata(log, fields, _METADATA, first, "line")
        # The guidelines forbid references in generation-only runs, so their citations are in none.
        references = read_references(log, fields, optional_for_citations=first["run_type"] == "generation-only")
        read = partial(_response, references=references)
        turns.append(read_turn(log, fields, read, True, most=references.most))
    if not turns:
        return ReadRun(None, tuple(log.problems))
    return read_run_of(log, document, FORMAT, turns, first["run_id"], first["run_type"], first["team_id"])


def _response(
    log: ProblemLog, path: str, value: Any, needs_text: bool, *, references: References
) -> tuple[Response, ResponsePlace]:
    fields = Fields(log.add, path, value, ("rank", "text", "citations", "ptkb_provenance"))
    provenance = read_cited(log, fields, "citations", references)
    ptkb = read_statements(log, fields, "ptkb_provenance")
    response = Response(
        rank=fields.integer("rank"),
        text=fields.text("text", optional=not needs_text),
        provenance=provenance,
        ptkb_provenance=ptkb,
    )
    return response, ResponsePlace(path, extra=len(provenance) - len(references.scores))
