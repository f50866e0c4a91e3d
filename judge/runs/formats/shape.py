"""The parts that run formats share: the result of reading, the rules of a format, lists of turns and passages.

A reader keeps the readable parts of a turn and a response; validation is silent at a path for which a reader has
reported a problem.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from judge.io.text import printable_id, shown
from judge.records import Problem
from judge.runs.document import Document
from judge.runs.fields import MAX_ALL_RESPONSES, MAX_RESPONSES, MAX_TURNS, Fields, ProblemLog, Report
from judge.runs.records import Provenance, Response, Run, RunTurn

_LARGEST_NUMBER = 10**9
_MAX_COPIES = 1_000_000
"""The most references times responses of a turn, since each response uses some of them; a run has some thousands."""

PtkbEntry = tuple[str | None, float | None]
"""Text and score that a run gives with a PTKB statement."""


class Names(msgspec.Struct, frozen=True):
    """What the members of a response are called; a name with a dot is that of a member's member."""

    text: str = "text"
    citations: str = "citations"
    ptkb: str = "ptkb_provenance"


NAMES = Names()
"""The usual names."""


class ResponsePlace(msgspec.Struct, frozen=True, gc=False):
    """Where a response stands in its file, and values that its record does not hold."""

    path: str
    statements: tuple[PtkbEntry, ...] = ()
    """One for each of the record's `ptkb_provenance`, where the format has such texts and scores."""
    names: Names = NAMES


class TurnPlace(msgspec.Struct, frozen=True, gc=False):
    """Where a turn and its responses stand in their file."""

    path: str
    responses: tuple[ResponsePlace, ...]
    value: Any = None
    """The turn as its file has it, where a track has rules on it."""


class ReadRun(msgspec.Struct, frozen=True):
    """A run as far as it could be read, and every problem with the form of its file."""

    run: Run | None
    problems: tuple[Problem, ...]
    places: tuple[TurnPlace, ...] = ()
    """One for each of the run's turns."""


class Rules(msgspec.Struct, frozen=True):
    """How a run format differs from others; a field is None where the format has no such member."""

    run_id: str
    """JSON path of the run's name."""
    form: Literal["document", "lines", "entries", "pool", "table", "list"] = "document"
    """The form of a file: one JSON object, JSON Lines with a turn each, a JSON array or JSON Lines with a turn each, a
    pool beside its bank, a table with a row for each response, or a list with a line for each passage of a turn.

    A pool, a table and a list are neither fixed nor converted.
    """
    turns: str = ""
    """JSON path of the list of turns, "" where a file has no such list."""
    turn_id: str = ".turn_id"
    """JSON path of the turn id below a turn."""
    all_turns: bool = True
    """Whether a run must have every turn of the topics."""
    own_turns: bool = False
    """Whether a run has its own conversations, so that a turn id stands for another utterance in every run."""
    run_type: str | None = None
    """JSON path of the run's type."""
    run_types: tuple[str, ...] = ()
    """The allowed run types."""
    scoreless: tuple[str, ...] = ()
    """Run types whose passages need no score."""
    passages: str | None = None
    """Name of the passages' field."""
    keyed: bool = False
    """Whether the passages are an object by passage id that belongs to the turn, instead of a list in a response.

    Responses then cite the passages that they use, and a score holds for the whole turn, whatever the response's rank.
    """
    of_years: bool = True
    """Whether turn ids tell the year of a track."""
    ranked: bool = True
    """Whether the passages have scores."""
    flags_used: bool = False
    """Whether a run says which passages a response uses, by flags or by citations."""
    ptkb: Literal["numbers", "objects", "texts"] | None = None
    """How a response names PTKB statements: by number, by number with text and score, or by text."""
    names: tuple[Names, ...] = (NAMES,)
    """What the members of a response are called; several where the format changed."""
    passage_id: re.Pattern[str] | None = None
    """The form of the collection's passage ids."""
    whole_lists: bool = False
    """Whether all passages of a turn are judged, whatever the depth, where passages are judged."""
    cited: Callable[[Any], Iterable[tuple[str, Sequence[str]]]] | None = None
    """From a turn as its file has it to each sentence with the passage ids that it cites, in their order."""
    fix: Callable[..., None] | None = None
    """Fixes a turn at a path in place of `judge.runs.fix.fixes.Fixer`, which is given first."""
    max_rank: int | None = None
    """How many responses a turn are looked at where passage grades decide, if that is more than the pool depth."""
    year: int | None = None
    """The year of the track that made the format; runs of other years may come in it."""


class Format(msgspec.Struct, frozen=True):
    """A run format; a module with the last three members is one, too."""

    about: str
    RULES: Rules
    sniff: Callable[[Document], bool]
    """Whether a document is of this format."""
    read: Callable[[Document], ReadRun]


# Possessive, because a digit fewer never helps: a run has 300,000 of these ids.
IKAT_PASSAGE_ID = re.compile(r"clueweb22-en[0-9]{4}+-[0-9]{2}+-[0-9]{5}+:[0-9]++")


def _passages(log: ProblemLog, entries: list[Any], path: str, flagged: bool) -> tuple[Provenance, ...]:
    """The passages of a response in their order; `flagged`: the format has `used`.

    An entry without a readable id is kept with the id "", so that positions stay those of the file.
    """
    # In C, for a list whose entries are all well-formed: a run may have 300,000.
    try:
        passages = msgspec.convert(entries, tuple[Provenance, ...])
        if flagged or not any("used" in entry for entry in entries):
            return passages
    except ValueError:
        pass
    provenance: list[Provenance] = []
    known = ("id", "score", "used", "text") if flagged else ("id", "score", "text")
    for k, entry in enumerate(entries):
        fields = Fields(partial(log.add_entry, path), f"{path}[{k}]", entry, known)
        provenance.append(
            Provenance(
                fields.text("id"),
                fields.number("score"),
                fields.flag("used") if flagged else None,
                fields.text("text") if fields.get("text") is not None else None,
            )
        )
    return tuple(provenance)


ReadResponse = Callable[[ProblemLog, str, Any, bool], tuple[Response, ResponsePlace]]
"""Reads one response at a path; the flag says whether it must have a text."""


def read_json_run(document: Document, format: str, rules: Rules, known: Sequence[str] = ()) -> ReadRun:
    """A run that is one JSON object with `run_name`, `run_type`, `turns` and the members that are `known` beside them.

    Its responses have the passages and PTKB statements of the rules.
    """
    log = ProblemLog(document.file, document.problems)
    if document.unreadable:
        return ReadRun(None, document.problems)
    top = Fields(log.add, "$", document.value, ("run_name", "run_type", "turns", *known))
    eval_response = top.flag("eval_response") is not False
    values = top.list("turns")
    if not top.readable or too_many(log, "$.turns", values):
        return ReadRun(None, tuple(log.problems))
    turns: list[tuple[RunTurn, TurnPlace]] = []
    for i, value in enumerate(values):
        log.turn_id = turn_label(value)
        fields = Fields(log.add, f"$.turns[{i}]", value, ("turn_id", "responses"))
        turns.append(read_turn(log, fields, partial(_response, rules), eval_response))
    log.turn_id = None
    run_id = top.label("run_name")
    run_type = top.label("run_type", optional=True)
    return read_run_of(log, document, format, turns, run_id, run_type, eval_response=eval_response)


def read_run_of(
    log: ProblemLog,
    document: Document,
    format: str,
    turns: Sequence[tuple[RunTurn, TurnPlace]],
    run_id: str,
    run_type: str,
    team: str = "",
    *,
    eval_response: bool = True,
) -> ReadRun:
    """A run of its turns; an empty type or team is none."""
    run = Run(
        run_id=run_id,
        run_type=run_type or None,
        team=team or None,
        format=format,
        file=document.file,
        digest=document.digest,
        eval_response=eval_response,
        turns=tuple(turn for turn, _ in turns),
    )
    return ReadRun(run, tuple(log.problems), tuple(place for _, place in turns))


def _response(rules: Rules, log: ProblemLog, path: str, value: Any, needs_text: bool) -> tuple[Response, ResponsePlace]:
    """A response with a list of passages and, where the format has them, of PTKB statements."""
    name = rules.passages or ""
    fields = Fields(log.add, path, value, ("rank", "text", name, *(("ptkb_provenance",) if rules.ptkb else ())))
    # The first error of a response is the reason why it is left out, so objects come before the rest, numbers after.
    first = _read_ptkb(log, fields, rules) if rules.ptkb == "objects" else []
    rank = fields.integer("rank")
    text = fields.text("text", optional=not needs_text)
    passages = _passages(log, fields.list(name, optional=True), f"{path}.{name}", rules.flags_used)
    statements = _read_ptkb(log, fields, rules) if rules.ptkb == "numbers" else first
    response = Response(rank, text, passages, tuple(ptkb_id for ptkb_id, _, _ in statements))
    return response, ResponsePlace(path, tuple((text, score) for _, text, score in first))


def _read_ptkb(log: ProblemLog, fields: Fields, rules: Rules) -> list[tuple[str, str | None, float | None]]:
    """The id of each PTKB statement, and its text and score where the format has them."""
    base = f"{fields.path}.ptkb_provenance"
    report = partial(log.add_entry, base)
    statements: list[tuple[str, str | None, float | None]] = []
    for k, entry in enumerate(fields.list("ptkb_provenance", optional=True)):
        if rules.ptkb == "numbers":
            statements.append((_ptkb_number(report, f"{base}[{k}]", entry), None, None))
        else:
            statement = Fields(report, f"{base}[{k}]", entry, ("id", "text", "score"))
            statements.append((statement.label("id"), statement.text("text"), statement.number("score")))
    return statements


def _ptkb_number(report: Report, path: str, entry: Any) -> str:
    if type(entry) is int and abs(entry) < _LARGEST_NUMBER:
        return str(entry)
    if (type(entry) is str and entry.isascii() and entry.isdigit() and len(entry) < 10) or (
        type(entry) is float and entry.is_integer() and abs(entry) < _LARGEST_NUMBER
    ):
        number = int(entry)
        report("coerced_value", path, f"{shown(entry)} is read as the number {number}")
        return str(number)
    report("wrong_type", path, f"expected the number of a PTKB statement, found {shown(entry)}")
    return ""


def too_many(log: ProblemLog, path: str, turns: Sequence[Any]) -> bool:
    """Whether the turns at `path`, or their responses, are too many to be read; if so, a problem is added."""
    if len(turns) > MAX_TURNS:
        message = f"{len(turns):,} turns, at most {MAX_TURNS:,} are read"
        log.add("too_many_turns", path, message)
        return True
    lists = (turn.get("responses") for turn in turns if type(turn) is dict)
    total = sum(len(values) for values in lists if type(values) is list and len(values) <= MAX_RESPONSES)
    if total > MAX_ALL_RESPONSES:
        message = f"{total:,} responses in all, at most {MAX_ALL_RESPONSES:,} are read"
        log.add("too_many_responses", path, message)
    return total > MAX_ALL_RESPONSES


def read_turn(
    log: ProblemLog,
    fields: Fields,
    read: ReadResponse,
    needs_text: bool,
    references: int = 0,
    *,
    turn_id: str | None = None,
) -> tuple[RunTurn, TurnPlace]:
    """One turn with `turn_id`, `responses` and so many `references`; of too many responses none is read: a problem.

    `turn_id` is given where it stands elsewhere in the turn.
    """
    turn_id = fields.label("turn_id") if turn_id is None else turn_id
    responses: list[Response] = []
    places: list[ResponsePlace] = []
    values = fields.list("responses")
    most = min(MAX_RESPONSES, _MAX_COPIES // max(1, references))
    if len(values) > most:
        message = f"{len(values):,} responses, at most {most:,} are read of such a turn"
        log.add("too_many_responses", f"{fields.path}.responses", message)
        values = []
    for j, value in enumerate(values):
        response, place = read(log, f"{fields.path}.responses[{j}]", value, needs_text)
        responses.append(response)
        places.append(place)
        log.close_lists()
    return RunTurn(turn_id, tuple(responses)), TurnPlace(fields.path, tuple(places))


def turn_label(value: Any, path: str = ".turn_id") -> str | None:
    """The turn id at a path inside a turn's JSON value, as a problem may show it."""
    for name in path.split(".")[1:]:
        value = value.get(name) if type(value) is dict else None
    return printable_id(value) if type(value) is str else None


def names_of(rules: Rules, response: dict[str, Any]) -> Names:
    """What the members of a response are called: the names of which it has most, the first ones if none has more."""
    return max(
        rules.names,
        key=lambda names: sum(name.partition(".")[0] in response for name in msgspec.structs.astuple(names)),
    )
