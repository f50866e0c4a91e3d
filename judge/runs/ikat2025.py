"""iKAT 2025: JSON Lines, one turn a line; `references` of the turn, of which a response's `citations` are the used."""

from functools import partial
from typing import Any

from judge.records import Provenance, Response, Run, RunTurn
from judge.runs.document import Document
from judge.runs.fields import Fields, Findings, member
from judge.runs.shape import (
    IKAT_PASSAGE_ID,
    ReadRun,
    ResponsePlace,
    Rules,
    TurnPlace,
    read_turn,
    turn_label,
)
from judge.text import shown

FORMAT = "ikat2025"
RULES = Rules(
    run_id="$.metadata.run_id",
    run_type="$.metadata.run_type",
    run_types=("automatic", "manual", "generation-only", "interactive"),
    passages="references",
    keyed=True,
    flags_used=True,
    ptkb="statements",
    passage_id=IKAT_PASSAGE_ID,
)
_METADATA = ("run_id", "run_type", "team_id")


def sniff(document: Document) -> bool:
    """JSON Lines, or a single turn with `metadata` or `references`."""
    value = document.value
    return bool(document.lines) or (type(value) is dict and ("metadata" in value or "references" in value))


def read(document: Document) -> ReadRun:
    """The run in `document`, named by its first line that has a `run_id`."""
    lines = document.lines or (() if document.unreadable else ((1, document.value),))
    findings = Findings(document.file)
    findings.problems.extend(document.problems)
    turns: list[RunTurn] = []
    places: list[TurnPlace] = []
    metadata: dict[str, str] = {}
    for number, value in lines:
        findings.turn_id = turn_label(value)
        fields = Fields(findings.add, f"line {number}: $", value, ("metadata", "turn_id", "responses", "references"))
        found = _metadata(findings, fields)
        if not metadata.get("run_id"):
            metadata = found
        elif fields.readable:
            _compare(findings, f"{fields.path}.metadata", metadata, found)
        turn, place = _turn(findings, fields, metadata["run_type"])
        turns.append(turn)
        places.append(place)
    if not turns:
        return ReadRun(None, tuple(findings.problems))
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
    return ReadRun(run, tuple(findings.problems), tuple(places))


def _metadata(findings: Findings, fields: Fields) -> dict[str, str]:
    value = fields.object("metadata")
    if fields.get("metadata") is not value:
        return dict.fromkeys(_METADATA, "")
    inner = Fields(findings.add, f"{fields.path}.metadata", value, _METADATA)
    return {name: inner.label(name, optional=name == "run_type") for name in _METADATA}


def _compare(findings: Findings, path: str, first: dict[str, str], found: dict[str, str]) -> None:
    if found["run_id"] not in (first["run_id"], ""):
        message = f"this line is of run {shown(found['run_id'])}, the file of {shown(first['run_id'])}"
        findings.add("error", "several_runs", f"{path}.run_id", message)
    for name in ("run_type", "team_id"):
        if found[name] not in (first[name], ""):
            message = f"{shown(found[name])} here, {shown(first[name])} before"
            findings.add("warning", "inconsistent_metadata", f"{path}.{name}", message)


def _turn(findings: Findings, fields: Fields, run_type: str) -> tuple[RunTurn, TurnPlace]:
    references = fields.object("references", optional=True)
    base = f"{fields.path}.references"
    retrieved: dict[str, float | None] = references
    if not {float}.issuperset(map(type, references.values())):
        scores = Fields(partial(findings.add_entry, base), base, references, references)
        retrieved = {passage_id: scores.number(passage_id) for passage_id in references}
    findings.close_lists()
    # Guidelines forbid such runs references of their own, so their citations can be in none.
    free = run_type == "generation-only" and not references
    return read_turn(findings, fields, partial(_response, retrieved=retrieved, references=references, free=free), True)


def _response(
    findings: Findings,
    path: str,
    value: Any,
    needs_text: bool,
    *,
    retrieved: dict[str, float | None],
    references: dict[str, Any],
    free: bool,
) -> tuple[Response, ResponsePlace]:
    fields = Fields(findings.add, path, value, ("rank", "text", "citations", "ptkb_provenance"))
    citations = fields.object("citations", optional=True)
    provenance = [
        Provenance(passage_id, score, passage_id in citations, None) for passage_id, score in retrieved.items()
    ]
    base = f"{path}.citations"
    scores = Fields(partial(findings.add_entry, base), base, citations, citations)
    for passage_id in citations:
        score = scores.number(passage_id)
        if passage_id in references:
            continue
        provenance.append(Provenance(passage_id, score, True, None))
        if not free:
            message = "cited but not among the turn's references"
            findings.add_entry(base, "warning", "citation_not_in_references", member(base, passage_id), message)
    ptkb = fields.list("ptkb_provenance", optional=True)
    for k, entry in enumerate(ptkb):
        if type(entry) is not str:
            at = f"{path}.ptkb_provenance"
            message = f"expected the text of a statement, found {shown(entry)}"
            findings.add_entry(at, "error", "wrong_type", f"{at}[{k}]", message)
    response = Response(
        rank=fields.integer("rank"),
        text=fields.text("text", optional=not needs_text),
        provenance=tuple(provenance),
        ptkb_provenance=tuple(entry if type(entry) is str else "" for entry in ptkb),
    )
    return response, ResponsePlace(path, extra=len(provenance) - len(retrieved))
