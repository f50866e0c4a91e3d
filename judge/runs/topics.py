"""Topics files to topics and turns: iKAT 2023, 2024 and 2025, the CAsT 2022 tree, requests and plain texts.

Texts are kept as they are. A request (JSON Lines) and a text (TSV: its id and the text) are topics of one turn.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import InputError
from judge.io.files import MAX_PROBLEMS, StrPath, read_stored
from judge.io.table import Table
from judge.io.text import printable_id, shown
from judge.plugins import collection
from judge.runs.document import Document, decode, open_document
from judge.runs.fields import MAX_TURNS, Fields, ProblemLog, member, usable_turn_id
from judge.runs.records import Exchange, PtkbStatement, Topic, Turn

_IKAT = {
    "turns": ("utterance", "ptkb_provenance", "response_provenance"),
    "responses": ("user_utterance", "relevant_ptkbs", "citations"),
}
"""Name of the list of turns to the names of its fields: 2023 and 2024, then 2025."""
_CAST = "turn"
_LARGEST = 10**9
_MOST_TURNS = 1_000


def read_topics(path: StrPath) -> Table[Topic]:
    """The topics of a file in its order.

    A turn's context is all earlier turns of its topic; in a CAsT tree, the turns on its path from the root. A CAsT turn
    with several system nodes below it takes the first one in the file as its response. An InputError if the file is
    missing, is not JSON, or has a problem of form; `problems` lists all of them.
    """
    document = open_document(Path(path), read=stored_topics)
    first, _, _ = document.content.lstrip().partition(b"\n")
    if first.startswith(b"{") and decode(first, document.file)[1] is None:
        document = open_document(Path(path), as_lines=True, read=stored_topics)
    plain = document.unreadable and first != b"" and first[:1] not in (b"[", b"{")
    texts = plain and b"\t" in first
    errors = [problem for problem in document.problems if problem.severity == "error" and not texts]
    if plain and all(problem.code in _NO_JSON for problem in errors):
        errors = []
    log = ProblemLog(document.file, errors, most=MAX_PROBLEMS)
    if texts:
        topics = _texts(log, document)
    elif plain and not errors:
        number = 1 + document.content.partition(first)[0].count(b"\n")
        found = shown(first.decode("utf-8", "replace").rstrip())
        log.add(
            "wrong_type", f"line {number}", f"expected JSON, or an id, a tab and a text in each line, found {found}"
        )
        topics = []
    elif document.lines:
        topics = _requests(log, document)
    else:
        topics = [] if document.unreadable else _topics(log, document.value)
    if log.problems:
        # A node of a tree is read for each of its descendants; its problems are reported once.
        raise InputError(f"{document.file}: not a usable topics file", tuple(dict.fromkeys(log.problems)))
    return Table(topics)


_NO_JSON = ("not_json", "truncated_json", "python_literal")
"""What is said of a text that is no JSON."""


def stored_topics(path: StrPath) -> bytes:
    """The bytes of a topics file, of which a digest is recorded; those of `ir:NAME` are made of its dataset."""
    dataset = collection(path, "topics")
    return read_stored(path) if dataset is None else bytes(dataset())


def turns_by_id(topics: Iterable[Topic]) -> dict[str, Turn]:
    """The turns of all topics by turn id."""
    return {turn.turn_id: turn for topic in topics for turn in topic.turns}


def topic_turns(path: StrPath | None) -> dict[str, Turn] | None:
    """The turns of all topics of a file by turn id; None without a file."""
    return None if path is None else turns_by_id(read_topics(path))


def _topics(log: ProblemLog, value: Any) -> list[Topic]:
    if type(value) is not list or not value:
        log.add("wrong_type", "$", f"expected a list of topics, found {shown(value)}")
        return []
    topics: list[Topic] = []
    seen: set[str] = set()
    if len(value) > MAX_TURNS:
        log.add("too_many_turns", "$", f"{len(value):,} topics: at most {MAX_TURNS:,} are read")
        return []
    for i, entry in enumerate(value):
        path = f"$[{i}]"
        fields = Fields(log.add, path, entry, entry if type(entry) is dict else ())
        topic_id = _number(log, fields, "number")
        if topic_id and topic_id in seen:
            log.add("duplicate_topic", f"{path}.number", f"topic {topic_id} was already given")
        seen.add(topic_id)
        topics.append(_cast(log, fields, topic_id) if fields.get(_CAST) is not None else _ikat(log, fields, topic_id))
    return topics


_REQUEST = ("title", "problem_statement", "background")
"""The texts of a request, in the order in which they make its utterance."""


def _requests(log: ProblemLog, document: Document) -> list[Topic]:
    """A topic a line: `request_id`, the texts of `_REQUEST` and, where it has one, its `limit` in characters."""
    topics: list[Topic] = []
    seen: dict[str, int] = {}
    if not any(type(value) is dict and "request_id" in value for _, value in document.lines):
        found = shown(document.lines[0][1])
        log.add("wrong_type", "$", f"expected a list of topics, or lines of requests, found {found}")
        return []
    for number, value in document.lines:
        path = f"line {number}: $"
        fields = Fields(log.add, path, value, value if type(value) is dict else ())
        topic_id = _number(log, fields, "request_id")
        texts = [fields.text(name, optional=name != "problem_statement") for name in _REQUEST]
        if fields.get("problem_statement") == texts[1] and not texts[1].strip():
            log.add("missing_field", f"{path}.problem_statement", "empty, expected what the user asks for")
        limit = fields.get("limit")
        if limit is not None and (type(limit) is not int or limit < 1):
            log.add("wrong_type", f"{path}.limit", f"expected characters, 1 or more, found {shown(limit)}")
            limit = None
        topics += _of_one_turn(log, seen, number, path, topic_id, "\n\n".join(filter(str.strip, texts)), limit)
    return topics


_ID_HEADERS = frozenset({"id", "qid", "query_id", "question_id", "topic", "topic_id", "turn_id", "number"})
_TEXT_HEADERS = frozenset({"text", "query", "question", "title", "topic", "utterance"})
"""Names of the two columns of a TSV, in small letters."""


def _texts(log: ProblemLog, document: Document) -> list[Topic]:
    """A topic a line of TSV: its id and its text; the names of the two columns may stand first."""
    topics: list[Topic] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(document.content.decode("utf-8", "replace").split("\n"), start=1):
        topic_id, tab, text = line.partition("\t")
        if not (tab and topic_id.strip() and text.strip()) or "\ufffd" in line:
            if line.strip():
                message = f"expected an id, a tab and a text in UTF-8, found {shown(line)}"
                log.add("wrong_type", f"line {number}", message)
            continue
        if not seen and topic_id.strip().lower() in _ID_HEADERS and text.strip().lower() in _TEXT_HEADERS:
            continue
        topics += _of_one_turn(log, seen, number, f"line {number}", topic_id, text.removesuffix("\r"))
    if not topics and not log.problems:
        log.add("empty_file", "$", "the names of columns, and no topic below them")
    return topics


def _of_one_turn(
    log: ProblemLog, seen: dict[str, int], line: int, path: str, topic_id: str, text: str, limit: int | None = None
) -> list[Topic]:
    """The topic of one utterance; none, and a problem, if its id cannot be used or was already given."""
    turn_id = f"{topic_id}_1"
    if topic_id in seen:
        log.add("duplicate_topic", path, f"topic {shown(topic_id)} was already given in line {seen[topic_id]}")
        return []
    if not usable_turn_id(turn_id):
        if topic_id:
            log.add("malformed_turn_id", path, f"{shown(topic_id)} is no topic id: expected one printable word")
        return []
    seen[topic_id] = line
    return [
        Topic(
            topic_id,
            None,
            (),
            (
                Turn(
                    turn_id=turn_id,
                    topic_id=topic_id,
                    utterance=text,
                    resolved_utterance=None,
                    context=(),
                    ptkb=(),
                    limit=limit,
                ),
            ),
        )
    ]


def _ikat(log: ProblemLog, fields: Fields, topic_id: str) -> Topic:
    ptkb = _ptkb(log, fields)
    by_text = {statement.text: statement.ptkb_id for statement in reversed(ptkb)}
    known = {statement.ptkb_id for statement in ptkb}
    kind = "responses" if fields.get("turns") is None and fields.get("responses") is not None else "turns"
    utterance_name, ptkb_name, passages_name = _IKAT[kind]
    turns: list[Turn] = []
    context: list[Exchange] = []
    seen: set[str] = set()
    for i, entry in enumerate(_entries(log, fields, kind)):
        path = f"{fields.path}.{kind}[{i}]"
        own = Fields(log.add, path, entry, entry if type(entry) is dict else ())
        turn_id = _turn_id(log, seen, topic_id, _number(log, own, "turn_id"), f"{path}.turn_id")
        linked: list[str] = []
        for k, link in enumerate(own.list(ptkb_name, optional=True)):
            ptkb_id = _statement_id(link, by_text if kind == "responses" else None)
            if ptkb_id not in known:
                message = f"{shown(link)} is not a statement of this topic's ptkb"
                log.add("unknown_statement", f"{path}.{ptkb_name}[{k}]", message)
            else:
                linked.append(ptkb_id)
        utterance = own.text(utterance_name)
        response = _optional(own, "response")
        turns.append(
            Turn(
                turn_id=turn_id,
                topic_id=topic_id,
                utterance=utterance,
                resolved_utterance=_optional(own, "resolved_utterance"),
                context=tuple(context),
                ptkb=ptkb,
                ptkb_provenance=tuple(linked),
                references=() if response is None else (response,),
                passage_ids=_passage_ids(log, own, passages_name),
            )
        )
        context.append(Exchange(utterance, response or ""))
    return Topic(topic_id, _optional(fields, "title"), ptkb, tuple(turns))


def _entries(log: ProblemLog, fields: Fields, name: str) -> list[Any]:
    """The turns of a topic; none and a problem if they are too many, since each holds those before it."""
    entries = fields.list(name)
    if len(entries) <= _MOST_TURNS:
        return entries
    log.add("too_many_turns", f"{fields.path}.{name}", f"{len(entries):,} turns: at most {_MOST_TURNS:,} are read")
    return []


def _statement_id(link: Any, by_text: Mapping[str, str] | None) -> str:
    """The statement id behind a turn's link, which is a text in 2025 and a number before; "" if there is none."""
    if by_text is not None:
        return by_text.get(link, "") if type(link) is str else ""
    return str(link) if type(link) is str or (type(link) is int and abs(link) < _LARGEST) else ""


def _ptkb(log: ProblemLog, fields: Fields) -> tuple[PtkbStatement, ...]:
    value = fields.get("ptkb")
    base = f"{fields.path}.ptkb"
    if type(value) is list:
        entries = [(str(k), f"{base}[{k - 1}]", text) for k, text in enumerate(value, start=1)]
    else:
        entries = [(key, member(base, key), text) for key, text in fields.object("ptkb").items()]
    statements = []
    for ptkb_id, path, text in entries:
        if type(text) is str:
            statements.append(PtkbStatement(ptkb_id, text))
        else:
            log.add("wrong_type", path, f"expected a statement, found {shown(text)}")
    return tuple(statements)


def _cast(log: ProblemLog, fields: Fields, topic_id: str) -> Topic:
    nodes: dict[str, Fields] = {}
    seen: set[str] = set()
    parents: dict[str, str | None] = {}
    for i, entry in enumerate(_entries(log, fields, _CAST)):
        path = f"{fields.path}.{_CAST}[{i}]"
        node = Fields(log.add, path, entry, entry if type(entry) is dict else ())
        number = _number(log, node, "number")
        _turn_id(log, seen, topic_id, number, f"{path}.number")
        nodes[number] = node
        parents[number] = _optional(node, "parent")
    first_response: dict[str, Fields] = {}
    for number, node in nodes.items():
        parent = parents[number]
        if parent is not None and _above(number, parents) is None:
            message = f"{shown(parent)} is not a node of topic {topic_id} above {shown(number)}"
            log.add("broken_parent", f"{node.path}.parent", message)
            parents[number] = None
        elif parent is not None and node.get("participant") == "System":
            first_response.setdefault(parent, node)
    turns = tuple(
        _cast_turn(log, topic_id, number, node, [nodes[name] for name in above], first_response.get(number))
        for number, node in nodes.items()
        if node.get("participant") != "System" and (above := _above(number, parents)) is not None
    )
    return Topic(topic_id, _optional(fields, "title"), (), turns)


def _cast_turn(
    log: ProblemLog, topic_id: str, number: str, node: Fields, above: list[Fields], system_node: Fields | None
) -> Turn:
    if node.readable and node.get("participant") != "User":
        message = f"expected 'User' or 'System', found {shown(node.get('participant'))}"
        log.add("wrong_type", f"{node.path}.participant", message)
    resolved = _optional(node, "manual_rewritten_utterance")
    response = _optional(system_node, "response") if system_node is not None else None
    return Turn(
        turn_id=f"{topic_id}_{number}",
        topic_id=topic_id,
        utterance=node.text("utterance"),
        resolved_utterance=resolved if resolved is not None else _optional(node, "automatic_rewritten_utterance"),
        context=tuple(_exchanges(above)),
        ptkb=(),
        references=() if response is None else (response,),
        passage_ids=_passage_ids(log, system_node, "provenance") if system_node is not None else (),
    )


def _exchanges(path: list[Fields]) -> Iterator[Exchange]:
    """The exchanges on a path from the root: each user node with the system node that follows it."""
    utterance: str | None = None
    for node in path:
        if node.get("participant") == "System":
            yield Exchange(utterance or "", node.text("response"))
            utterance = None
        else:
            if utterance is not None:
                yield Exchange(utterance, "")
            utterance = node.text("utterance")
    if utterance is not None:
        yield Exchange(utterance, "")


def _above(number: str, parents: Mapping[str, str | None]) -> list[str] | None:
    """The nodes above a node, from the root down; None where they lead to no root."""
    above: dict[str, None] = {}
    at = parents[number]
    while at is not None:
        if at in above or at not in parents:
            return None
        above[at] = None
        at = parents[at]
    return [*above][::-1]


def _turn_id(log: ProblemLog, seen: set[str], topic_id: str, number: str, path: str) -> str:
    turn_id = f"{topic_id}_{number}"
    if not topic_id or not number:
        return turn_id
    if turn_id in seen:
        message = f"turn {printable_id(turn_id)} was already given in this topic"
        log.add("duplicate_turn", path, message)
    elif not usable_turn_id(turn_id):
        message = f"this makes the turn id {shown(turn_id)}, expected one such as 9-1_3, 0_3 or 132_1-3"
        log.add("malformed_turn_id", path, message)
    seen.add(turn_id)
    return turn_id


def _number(log: ProblemLog, fields: Fields, name: str) -> str:
    """An id that some years write as an integer; "" and a problem if it cannot be read."""
    value = fields.get(name)
    if type(value) is int and abs(value) < _LARGEST:
        return str(value)
    if value == "":
        log.add("missing_field", f"{fields.path}.{name}", "empty, expected a number")
    return fields.label(name)


def _optional(fields: Fields, name: str) -> str | None:
    """A text; None where it is missing or empty."""
    return fields.text(name, optional=True) or None


def _passage_ids(log: ProblemLog, fields: Fields, name: str) -> tuple[str, ...]:
    ids = fields.list(name, optional=True)
    for k, passage_id in enumerate(ids):
        if type(passage_id) is not str:
            path = f"{fields.path}.{name}[{k}]"
            log.add("wrong_type", path, f"expected a passage id, found {shown(passage_id)}")
    return tuple(passage_id for passage_id in ids if type(passage_id) is str)
