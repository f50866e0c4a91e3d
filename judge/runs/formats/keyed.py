"""Formats of one JSON value a turn, whose responses cite the turn's references: iKAT 2025, and interactive runs.

Of interactive runs, the organizers' documentation of 2025 and their program of April 2026 name the members of a
response differently, and count turns from 0 and from 1. Both are read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import isfinite
from typing import Any

import msgspec

import judge.runs.formats.shape as shape
from judge.io.ids import topic_of
from judge.io.text import shown
from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog, member
from judge.runs.records import Provenance, Response, RunTurn

_MOST_TURNS = 1_000
"""The most turns of a conversation that are read, each with all before it."""
_FIRST = 20
"""Turns that are looked at to recognize an interactive run."""
_LATER = shape.Names("assistant_text", "assistant_citations", "assistant_meta.ptkb_provenance")
_IKAT2025 = shape.Rules(
    run_id="$.metadata.run_id",
    form="lines",
    run_type="$.metadata.run_type",
    run_types=("automatic", "manual", "generation-only", "interactive"),
    passages="references",
    keyed=True,
    flags_used=True,
    ptkb="texts",
    passage_id=shape.IKAT_PASSAGE_ID,
    year=2025,
)
_INTERACTIVE = msgspec.structs.replace(
    _IKAT2025,
    form="entries",
    turn_id=".metadata.topic_id",
    all_turns=False,
    own_turns=True,
    run_type="$.metadata.type",
    run_types=("interactive",),
    names=(shape.NAMES, _LATER),
)
_MEMBERS = {
    shape.NAMES: ("rank", "user_utterance", "text", "citations", "ptkb_provenance"),
    _LATER: ("rank", "user_utterance", "user_meta", "assistant_text", "assistant_citations", "assistant_meta"),
}
"""The members of an interactive run's response, by its names."""
_MARKS = frozenset({"user_utterance", "assistant_text", "assistant_citations"})
"""Members that responses of no other format have."""

Users = dict[int, tuple[str, tuple[str, ...]]]
"""Rank of a response to what the user said, and to the PTKB statements that the user told."""


class References(msgspec.Struct, frozen=True):
    """The references of a turn, which all of its responses share."""

    scores: dict[str, float | None]
    free: bool
    """Whether a response may cite what is not among them."""


def _has_user(value: Any) -> bool:
    if type(value) is not dict:
        return False
    metadata = value.get("metadata")
    responses = value.get("responses")
    if type(metadata) is dict and "topic_id" in metadata and "turn_id" not in value:
        return True
    first = responses[:1] if type(responses) is list else []
    return any(type(response) is dict and not _MARKS.isdisjoint(response) for response in first)


def entries_of(document: Document) -> Iterator[tuple[str, Any]]:
    """The path and the value of each turn."""
    if document.lines:
        yield from ((f"line {number}: $", value) for number, value in document.lines)
    elif type(document.value) is list:
        yield from ((f"$[{i}]", value) for i, value in enumerate(document.value))
    elif not document.unreadable:
        yield "line 1: $", document.value


def _read(document: Document, *, rules: shape.Rules) -> shape.ReadRun:
    """The run in `document`, with the first run id, type and team that its turns give."""
    log = ProblemLog(document.file, document.problems)
    entries = list(entries_of(document))
    if shape.too_many(log, "$", [value for _, value in entries]) or (rules.own_turns and _too_long(log, entries)):
        return shape.ReadRun(None, tuple(log.problems))
    turns: list[tuple[RunTurn, shape.TurnPlace]] = []
    first = dict.fromkeys(("run_id", "team_id", "type") if rules.own_turns else ("run_id", "run_type", "team_id"), "")
    read = _interactive_turn if rules.own_turns else _turn
    for path, value in entries:
        log.turn_id = shape.turn_label(value, rules.turn_id)
        turns.append(read(log, path, value, first))
    log.turn_id = None
    if not turns:
        if not document.unreadable:
            log.add("no_turns", "$", "the run has no turns")
        return shape.ReadRun(None, tuple(log.problems))
    format = "interactive" if rules.own_turns else "ikat2025"
    run_type = (first["type"] or format) if rules.own_turns else first["run_type"]
    return shape.read_run_of(log, document, format, turns, first["run_id"], run_type, first["team_id"])


def _too_long(log: ProblemLog, entries: Iterable[tuple[str, Any]]) -> bool:
    """Whether a conversation has too many turns to be read; if so, a problem is added."""
    labels = (shape.turn_label(value, _INTERACTIVE.turn_id) for _, value in entries)
    topics = Counter(topic_of(label) for label in labels if label is not None)
    topic_id, most = max(topics.items(), key=lambda item: item[1], default=("", 0))
    if most > _MOST_TURNS:
        log.add("too_many_turns", "$", f"{most:,} turns of topic {shown(topic_id)}, at most {_MOST_TURNS:,} are read")
    return most > _MOST_TURNS


def _turn(log: ProblemLog, path: str, value: Any, first: dict[str, str]) -> tuple[RunTurn, shape.TurnPlace]:
    fields = Fields(log.add, path, value, ("metadata", "turn_id", "responses", "references"))
    _read_metadata(log, fields, (), first, "line")
    # The guidelines forbid references in generation-only runs, so their citations are in none.
    references = _read_references(log, fields, free_without=first["run_type"] == "generation-only")
    return shape.read_turn(log, fields, partial(_response, references=references), True, len(references.scores))


def _response(
    log: ProblemLog, path: str, value: Any, needs_text: bool, *, references: References
) -> tuple[Response, shape.ResponsePlace]:
    fields = Fields(log.add, path, value, ("rank", "text", "citations", "ptkb_provenance"))
    cited = _read_cited(log, fields, "citations", references)
    ptkb = _read_statements(log, fields, "ptkb_provenance")
    rank = fields.integer("rank")
    text = fields.text("text", optional=not needs_text)
    return Response(
        rank=rank, text=text, listed=cited, ptkb_provenance=ptkb, references=references.scores
    ), shape.ResponsePlace(path)


def _interactive_turn(log: ProblemLog, path: str, value: Any, first: dict[str, str]) -> tuple[RunTurn, shape.TurnPlace]:
    fields = Fields(log.add, path, value, ("metadata", "responses", "references"))
    turn_id = _read_metadata(log, fields, ("description", "track_persona", "extra", "topic_id"), first, "turn")
    references = _read_references(log, fields, free_without=True)
    users: Users = {}
    read = partial(_interactive_response, references=references, users=users)
    turn, place = shape.read_turn(log, fields, read, True, len(references.scores), turn_id=turn_id)
    # What the user said does not depend on the response, so the best-ranked one stands for all.
    utterance, ptkb = users[min(users)] if users else (None, ())
    return RunTurn(turn.turn_id, turn.responses, utterance, ptkb), place


def _interactive_response(
    log: ProblemLog, path: str, value: Any, needs_text: bool, *, references: References, users: Users
) -> tuple[Response, shape.ResponsePlace]:
    names = shape.names_of(_INTERACTIVE, value) if type(value) is dict else shape.NAMES
    fields = Fields(log.add, path, value, _MEMBERS[names])
    rank = fields.integer("rank")
    utterance = fields.text("user_utterance")
    told: tuple[str, ...] = ()
    meta = fields
    if names is _LATER:
        user = fields.object("user_meta", optional=True)
        answer = fields.object("assistant_meta", optional=True)
        told = _read_statements(log, Fields(log.add, f"{path}.user_meta", user, user), "ptkb")
        meta = Fields(log.add, f"{path}.assistant_meta", answer, answer)
    if users and utterance != next(iter(users.values()))[0]:
        message = "another utterance of the user than in the turn's other responses; that of the best rank counts"
        log.add("utterance_differs", f"{path}.user_utterance", message)
    users.setdefault(rank, (utterance, tuple(statement for statement in told if statement.strip())))
    cited = _read_cited(log, fields, names.citations, references)
    text = fields.text(names.text, optional=not needs_text)
    ptkb = _read_statements(log, meta, "ptkb_provenance")
    return Response(
        rank=rank, text=text, listed=cited, ptkb_provenance=ptkb, references=references.scores
    ), shape.ResponsePlace(path, names=names)


def _read_metadata(log: ProblemLog, fields: Fields, others: Sequence[str], first: dict[str, str], turn: str) -> str:
    """The turn id in a turn's metadata, "" where it is not there; the members in `first` are those that turns share.

    `others` are the members that may differ.
    """
    given = fields.object("metadata")
    if fields.get("metadata") is not given:
        return ""
    metadata = Fields(log.add, f"{fields.path}.metadata", given, (*first, *others))
    turn_id = metadata.label("topic_id") if "topic_id" in others else ""
    read_shared(log, metadata, tuple(first), first, turn)
    if "description" in others:
        metadata.text("description", optional=True)
    return turn_id


def read_shared(log: ProblemLog, metadata: Fields, names: Sequence[str], first: dict[str, str], turn: str) -> None:
    """Read the members of metadata that all turns of a run share; messages call a turn `turn`.

    `first` keeps what the first turn gives that has a member; another value is reported.
    """
    for name in names:
        kept = first.get(name, "")
        label = metadata.label(name, optional=name in ("type", "run_type"))
        here = label if label.strip() else ""
        if name == "team_id" and type(metadata.get(name)) is str and not here:
            log.add_once("empty_team", f"{metadata.path}.team_id", "the team has no name")
        if kept and here not in (kept, "") and name == "run_id":
            message = f"this {turn} is of run {shown(here)}, the file of {shown(kept)}"
            log.add("several_runs", f"{metadata.path}.run_id", message)
        elif kept and here not in (kept, ""):
            log.add("inconsistent_metadata", f"{metadata.path}.{name}", f"{shown(here)} here, {shown(kept)} before")
        first[name] = kept or here


def _read_references(log: ProblemLog, fields: Fields, *, free_without: bool) -> References:
    """The references of a turn; `free_without`: without any, a response may cite any passage."""
    references = fields.object("references", optional=True)
    base = f"{fields.path}.references"
    scores: dict[str, float | None] = references
    if not {float}.issuperset(map(type, scores.values())):
        numbers = Fields(partial(log.add_entry, base), base, references, references)
        scores = {passage_id: numbers.number(passage_id) for passage_id in references}
    log.close_lists()
    # References that cannot be read are no reason to report citations too.
    unreadable = fields.get("references") not in (None, references)
    return References(scores, unreadable or (free_without and not references))


def _read_cited(log: ProblemLog, fields: Fields, name: str, references: References) -> tuple[Provenance, ...]:
    """The passages that a response cites in `name`: references in their order, and then what it cites beside."""
    citations = fields.object(name, optional=True)
    cited = citations.keys() & references.scores.keys()
    # The loop stops at the last citation: citations are few and mostly among the first references.
    among = islice(filter(cited.__contains__, references.scores), len(cited))
    passages = [Provenance(passage_id, references.scores[passage_id], True) for passage_id in among]
    base = f"{fields.path}.{name}"
    scores = Fields(partial(log.add_entry, base), base, citations, citations)
    for passage_id in citations:
        score = scores.number(passage_id)
        if passage_id in references.scores:
            if score is not None and not isfinite(score):
                message = f"{score} is not a number to rank by"
                log.add_entry(base, "score_not_finite", member(base, passage_id), message)
            continue
        passages.append(Provenance(passage_id, score, True))
        if not references.free:
            message = "cited but not among the turn's references"
            log.add_entry(base, "citation_not_in_references", member(base, passage_id), message)
    return tuple(passages)


def _read_statements(log: ProblemLog, fields: Fields, name: str) -> tuple[str, ...]:
    """A list of PTKB statements given by their text; "" for an entry that is no text."""
    entries = fields.list(name, optional=True)
    base = f"{fields.path}.{name}"
    for k, entry in enumerate(entries):
        if type(entry) is not str:
            message = f"expected the text of a statement, found {shown(entry)}"
            log.add_entry(base, "wrong_type", f"{base}[{k}]", message)
    return tuple(entry if type(entry) is str else "" for entry in entries)


IKAT2025 = shape.Format(
    "iKAT 2025: JSON Lines, one turn a line; a turn has `references`, and a response cites those that it uses.",
    _IKAT2025,
    lambda of: bool(of.lines) or (type(of.value) is dict and ("metadata" in of.value or "references" in of.value)),
    partial(_read, rules=_IKAT2025),
)
INTERACTIVE = shape.Format(
    "Interactive runs of iKAT 2025 and after: a JSON array or JSON Lines, a turn each, with what the simulated user "
    "said.",
    _INTERACTIVE,
    # A topic id in the metadata, or a response with the user's utterance.
    lambda document: any(_has_user(value) for _, value in islice(entries_of(document), _FIRST)),
    partial(_read, rules=_INTERACTIVE),
)
