"""iKAT 2025: JSON Lines, one turn a line; a turn has `references`, and a response cites those that it uses."""

from collections.abc import Iterable
from functools import partial
from itertools import islice, repeat
from math import isfinite
from typing import Any

from judge.runs.document import Document
from judge.runs.fields import MAX_RESPONSES, Fields, ProblemLog, member
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
from judge.runs.records import Provenance, Response, Run, RunTurn
from judge.text.safe import shown

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
_MAX_COPIES = 1_000_000
"""The most references times responses of a turn, since each response holds all of them; a run has some thousands."""
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
    references = fields.object("references", optional=True)
    base = f"{fields.path}.references"
    scores: Iterable[float | None] = references.values()
    if not {float}.issuperset(map(type, scores)):
        numbers = Fields(partial(log.add_entry, base), base, references, references)
        scores = [numbers.number(passage_id) for passage_id in references]
    log.close_lists()
    # Made in C and once for all responses of the turn: a run may have 300,000 references.
    retrieved = list(map(Provenance, references, scores, repeat(False)))
    # The guidelines forbid references in generation-only runs, so their citations are in none. References that cannot
    # be read are no reason to report citations either.
    unreadable = fields.get("references") not in (None, references)
    free = unreadable or (run_type == "generation-only" and not references)
    read = partial(_response, retrieved=retrieved, references=references, free=free)
    most = min(MAX_RESPONSES, _MAX_COPIES // max(1, len(references)))
    return read_turn(log, fields, read, True, most=most)


def _response(
    log: ProblemLog,
    path: str,
    value: Any,
    needs_text: bool,
    *,
    retrieved: list[Provenance],
    references: dict[str, Any],
    free: bool,
) -> tuple[Response, ResponsePlace]:
    fields = Fields(log.add, path, value, ("rank", "text", "citations", "ptkb_provenance"))
    citations = fields.object("citations", optional=True)
    provenance = retrieved.copy()
    cited = citations.keys() & references.keys()
    # The loop stops at the last citation: citations are few and mostly among the first references.
    for k in islice((k for k, passage_id in enumerate(references) if passage_id in cited), len(cited)):
        provenance[k] = Provenance(retrieved[k].passage_id, retrieved[k].score, True)
    base = f"{path}.citations"
    scores = Fields(partial(log.add_entry, base), base, citations, citations)
    for passage_id in citations:
        score = scores.number(passage_id)
        if passage_id in references:
            if score is not None and not isfinite(score):
                message = f"{score} is not a number to rank by"
                log.add_entry(base, "score_not_finite", member(base, passage_id), message)
            continue
        provenance.append(Provenance(passage_id, score, True))
        if not free:
            message = "cited but not among the turn's references"
            log.add_entry(base, "citation_not_in_references", member(base, passage_id), message)
    ptkb = fields.list("ptkb_provenance", optional=True)
    for k, entry in enumerate(ptkb):
        if type(entry) is not str:
            at = f"{path}.ptkb_provenance"
            message = f"expected the text of a statement, found {shown(entry)}"
            log.add_entry(at, "wrong_type", f"{at}[{k}]", message)
    response = Response(
        rank=fields.integer("rank"),
        text=fields.text("text", optional=not needs_text),
        provenance=tuple(provenance),
        ptkb_provenance=tuple(entry if type(entry) is str else "" for entry in ptkb),
    )
    return response, ResponsePlace(path, extra=len(provenance) - len(retrieved))
