"""Interactive runs of iKAT 2025 and after: a JSON array or JSON Lines, a turn each, with what the simulated user said.

The organizers' documentation of 2025 and their program of April 2026 name the members of a response differently, and
count turns from 0 and from 1. Both are read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from judge.io.ids import topic_of
from judge.io.safe import shown
from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog
from judge.runs.formats.citations import References, read_cited, read_metadata, read_references, read_statements
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    NAMES,
    Names,
    ReadRun,
    ResponsePlace,
    Rules,
    TurnPlace,
    names_of,
    read_run_of,
    read_turn,
    too_many,
    turn_label,
)
from judge.runs.records import Response, RunTurn

FORMAT = "interactive"
_LATER = Names("assistant_text", "assistant_citations", "assistant_meta.ptkb_provenance")
RULES = Rules(
    run_id="$.metadata.run_id",
    form="entries",
    turn_id=".metadata.topic_id",
    all_turns=False,
    own_turns=True,
    run_type="$.metadata.type",
    run_types=("interactive",),
    passages="references",
    keyed=True,
    flags_used=True,
    ptkb="texts",
    names=(NAMES, _LATER),
    passage_id=IKAT_PASSAGE_ID,
    year=2025,
)
_MEMBERS = {
    NAMES: ("rank", "user_utterance", "text", "citations", "ptkb_provenance"),
    _LATER: ("rank", "user_utterance", "user_meta", "assistant_text", "assistant_citations", "assistant_meta"),
}
"""The members of a response, by its names."""
_METADATA = ("team_id", "run_id", "type", "description", "track_persona", "extra", "topic_id")
_MARKS = frozenset({"user_utterance", "assistant_text", "assistant_citations"})
"""Members that responses of no other format have."""
_MOST_TURNS = 1_000
"""The most turns of a conversation that are read."""
_FIRST = 20
"""Turns that are looked at to recognize the format."""


def sniff(document: Document) -> bool:
    """Whether one of the first turns has a topic id in its metadata, or a response with the user's utterance."""
    return any(_is_interactive(value) for _, value in islice(_entries(document), _FIRST))


def _entries(document: Document) -> Iterator[tuple[str, Any]]:
    """The path and the value of each turn."""
    if document.lines:
        yield from ((f"line {number}: $", value) for number, value in document.lines)
    elif type(document.value) is list:
        yield from ((f"$[{i}]", value) for i, value in enumerate(document.value))
    elif not document.unreadable:
        yield "line 1: $", document.value


def _is_interactive(value: Any) -> bool:
    if type(value) is not dict:
        return False
    metadata, responses = value.get("metadata"), value.get("responses")
    if type(metadata) is dict and "topic_id" in metadata and "turn_id" not in value:
        return True
    first = responses[:1] if type(responses) is list else []
    return any(type(response) is dict and not _MARKS.isdisjoint(response) for response in first)


def read(document: Document) -> ReadRun:
    """The run in `document`, with the first run id and team that its turns give."""
    log = ProblemLog(document.file)
    log.problems.extend(document.problems)
    entries = list(_entries(document))
    if too_many(log, "$", [value for _, value in entries]) or _too_long(log, entries):
        return ReadRun(None, tuple(log.problems))
    turns: list[tuple[RunTurn, TurnPlace]] = []
    first = {"run_id": "", "team_id": "", "type": ""}
    for path, value in entries:
        log.turn_id = turn_label(value, RULES.turn_id)
        fields = Fields(log.add, path, value, ("metadata", "responses", "references"))
        turns.append(_turn(log, fields, read_metadata(log, fields, _METADATA, first, "turn")))
    log.turn_id = None
    if not turns:
        if not document.unreadable:
            log.add("no_turns", "$", "the run has no turns")
        return ReadRun(None, tuple(log.problems))
    run_type = first["type"] or "interactive"
    return read_run_of(log, document, FORMAT, turns, first["run_id"], run_type, first["team_id"])


def _too_long(log: ProblemLog, entries: Iterable[tuple[str, Any]]) -> bool:
    """Whether a conversation has too many turns to be read, each with all before it; if so, a problem is added."""
    labels = (turn_label(value, RULES.turn_id) for _, value in entries)
    topics = Counter(topic_of(label) for label in labels if label is not None)
    topic_id, most = max(topics.items(), key=lambda item: item[1], default=("", 0))
    if most > _MOST_TURNS:
        log.add("too_many_turns", "$", f"{most:,} turns of topic {shown(topic_id)}, at most {_MOST_TURNS:,} are read")
    return most > _MOST_TURNS


def _turn(log: ProblemLog, fields: Fields, turn_id: str) -> tuple[RunTurn, TurnPlace]:
    references = read_references(log, fields, optional_for_citations=True)
    users: dict[int, tuple[str, tuple[str, ...]]] = {}
    read = partial(_response, references=references, users=users)
    turn, place = read_turn(log, fields, read, True, most=references.most, turn_id=turn_id)
    if not users:
        return turn, place
    # What the user said does not depend on the response, so the best-ranked one stands for all.
    utterance, ptkb = users[min(users)]
    return RunTurn(turn.turn_id, turn.responses, utterance, ptkb), place


def _response(
    log: ProblemLog,
    path: str,
    value: Any,
    needs_text: bool,
    *,
    references: References,
    users: dict[int, tuple[str, tuple[str, ...]]],
) -> tuple[Response, ResponsePlace]:
    names = names_of(RULES, value) if type(value) is dict else NAMES
    fields = Fields(log.add, path, value, _MEMBERS[names])
    rank = fields.integer("rank")
    utterance = fields.text("user_utterance")
    told: tuple[str, ...] = ()
    meta = fields
    if names is _LATER:
        user, answer = fields.object("user_meta", optional=True), fields.object("assistant_meta", optional=True)
        told = read_statements(log, Fields(log.add, f"{path}.user_meta", user, user), "ptkb")
        meta = Fields(log.add, f"{path}.assistant_meta", answer, answer)
    if users and utterance != next(iter(users.values()))[0]:
        message = "another utterance of the user than in the turn's other responses; that of the best rank counts"
        log.add("utterance_differs", f"{path}.user_utterance", message)
    users.setdefault(rank, (utterance, tuple(statement for statement in told if statement.strip())))
    provenance = read_cited(log, fields, names.citations, references)
    response = Response(
        rank=rank,
        text=fields.text(names.text, optional=not needs_text),
        provenance=provenance,
        ptkb_provenance=read_statements(log, meta, "ptkb_provenance"),
    )
    return response, ResponsePlace(path, extra=len(provenance) - len(references.scores), names=names)
