"""iKAT 2025: JSON Lines, one turn a line; a turn has `references`, and a response cites those that it uses."""

from functools import partial
from typing import Any

from judge.io.safe import shown
from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog
from judge.runs.formats.citations import References, read_cited, read_references, read_statements
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    ReadRun,
    ResponsePlace,
    Rules,
    TurnPlace,
    read_turn,
    too_many,
    turn_label,
)
from judge.runs.records import Response, Run, RunTurn

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
    turns: list[RunTurn] = []
    places: list[TurnPlace] = []
    metadata = dict.fromkeys(_METADATA, "")
    if too_many(log, "$", [value for _, value in lines]):
        return ReadRun(None, tuple(log.problems))
    nameless = False
    for number, value in lines:
        log.turn_id = turn_label(value)
        fields = Fields(log.add, f"line {number}: $", value, ("metadata", "turn_id", "responses", "references"))
        here = _metadata(log, fields)
        nameless = nameless or _nameless(log, fields)
        _compare(log, f"{fields.path}.metadata", metadata, here)
        metadata = {name: metadata[name] or here[name] for name in _METADATA}
        turn, place = _turn(log, fields, metadata["run_type"])
        turns.append(turn)
        places.append(place)
    if not turns:
        return ReadRun(None, tuple(log.problems))
    run = Run(
        run_id=metadata["run_id"],
        run_type=metadata["run_type"] or None,
        team=metadata["team_id"] or None,
        format=FORMAT,
        file=document.file,
        digest=document.digest,
        eval_response=True,
        turns=tuple(turns),
    )
    return ReadRun(run, tuple(log.problems), tuple(places))


def _metadata(log: ProblemLog, fields: Fields) -> dict[str, str]:
    value = fields.object("metadata")
    if fields.get("metadata") is not value:
        return dict.fromkeys(_METADATA, "")
    inner = Fields(log.add, f"{fields.path}.metadata", value, _METADATA)
    given = {name: inner.label(name, optional=name == "run_type") for name in _METADATA}
    return {name: value if value.strip() else "" for name, value in given.items()}


def _nameless(log: ProblemLog, fields: Fields) -> bool:
    """Whether a line's team has no name; a problem is added."""
    metadata = fields.get("metadata")
    team = metadata.get("team_id") if type(metadata) is dict else None
    if type(team) is not str or team.strip():
        return False
    log.add("empty_team", f"{fields.path}.metadata.team_id", "the team has no name")
    return True


def _compare(log: ProblemLog, path: str, first: dict[str, str], here: dict[str, str]) -> None:
    if first["run_id"] and here["run_id"] not in (first["run_id"], ""):
        message = f"this line is of run {shown(here['run_id'])}, the file of {shown(first['run_id'])}"
        log.add("several_runs", f"{path}.run_id", message)
    for name in ("run_type", "team_id"):
        if first[name] and here[name] not in (first[name], ""):
            message = f"{shown(here[name])} here, {shown(first[name])} before"
            log.add("inconsistent_metadata", f"{path}.{name}", message)


def _turn(log: ProblemLog, fields: Fields, run_type: str) -> tuple[RunTurn, TurnPlace]:
    # The guidelines forbid references in generation-only runs, so their citations are in none.
    references = read_references(log, fields, optional_for_citations=run_type == "generation-only")
    return read_turn(log, fields, partial(_response, references=references), True, most=references.most)


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
