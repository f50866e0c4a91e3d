"""What a judge's endpoint takes of the protocol: learned from its first answers, and kept in the journal. Pure.

An endpoint may refuse a parameter, a system message, or an answer form. Which it does is settled once for each kind of
answer, by the first question that it answers, so that the grades of a run do not depend on how many calls are in
flight. What the user says (`--omit`, `--form`) is no part of it.
"""

from collections.abc import Iterable, Sequence

import msgspec

from judge.errors import AuthenticationError, JudgeError, ParameterRefused, RejectedError, StructureUnsupported
from judge.judges.journal_store import Recorded
from judge.judges.records import LIMITS, AnswerForm, Request
from judge.records import AnswerKind, Record

_MAY_BE_THE_FORM = (400, 404, 422)
"""Statuses with which an endpoint refuses what a request asks for, in whatever words."""


class Dialect(Record, frozen=True):
    """What an endpoint takes."""

    omitted: tuple[str, ...] = ()
    """Parameters that it refuses; `system` is its refusal of system messages."""
    refused: tuple[str, ...] = ()
    """Answer forms that it refuses, each with the kind of answer, such as `json/sentences`."""
    settled: tuple[AnswerKind, ...] = ()
    """The kinds of answer that it has given, so that their form changes no more."""
    rooms: tuple[int, ...] = ()
    """The token limits under which it was asked."""

    def without(self, parameter: str) -> "Dialect":
        """The same without a parameter."""
        return msgspec.structs.replace(self, omitted=tuple(sorted({*self.omitted, parameter})))

    def refusing(self, form: AnswerForm, answer: AnswerKind) -> "Dialect":
        """The same without an answer form."""
        return msgspec.structs.replace(self, refused=tuple(sorted({*self.refused, f"{form}/{answer}"})))

    def takes(self, form: AnswerForm, answer: AnswerKind) -> bool:
        """Whether the endpoint is asked in a form for a kind of answer."""
        return f"{form}/{answer}" not in self.refused


def adapted(dialect: Dialect, error: JudgeError, request: Request, answer: AnswerKind) -> Dialect | None:
    """The dialect after a refused request; None if the refusal says nothing of it.

    Before the first answer of a kind, the form may be what the endpoint refuses, whatever it says.
    """
    if isinstance(error, ParameterRefused):
        known = dialect.settled or error.parameter in request.omitted
        return None if known else dialect.without(error.parameter)
    if answer in dialect.settled:
        return None
    if isinstance(error, StructureUnsupported):
        return dialect.refusing(request.form, answer) if error.lasting else None
    if isinstance(error, RejectedError | AuthenticationError) and error.status in _MAY_BE_THE_FORM:
        return dialect.refusing(request.form, answer)
    return None


def recorded_dialect(rows: Sequence[Recorded], answers: Iterable[AnswerKind]) -> Dialect:
    """The dialect of recorded calls, of which an exported journal says nothing else."""
    if not rows:
        return Dialect()
    sent = {name for row in rows for name in row.parameters}
    omitted = set()
    if not any(message.role == "system" for row in rows for message in row.messages):
        omitted.add("system")
    if "temperature" not in sent:
        omitted.add("temperature")
    if LIMITS[0] not in sent:
        omitted.add(LIMITS[0])
    forms = {row.form for row in rows}
    refused = [f"json/{answer}" for answer in answers] if forms == {"text"} else []
    limits = {row.parameters.get(name) for row in rows for name in LIMITS}
    return Dialect(
        omitted=tuple(sorted(omitted)),
        refused=tuple(sorted(refused)),
        rooms=tuple(sorted(limit for limit in limits if isinstance(limit, int))),
    )


_ANSWERS = {"grade": "grades", "sentences": "labels of sentences", "nuggets": "lists of nuggets"}


def dialect_notes(judge: str, dialect: Dialect) -> list[str]:
    """What the endpoint of a judge refuses of what is usually sent, a sentence each."""
    notes = []
    if dialect.omitted:
        notes.append(f"{judge}: asked without {', '.join(dialect.omitted)}, which its endpoint refused.")
    for named in dialect.refused:
        form, _, answer = named.partition("/")
        notes.append(f"{judge}: not asked for {_ANSWERS[answer]} in the form {form}, in which its endpoint gave none.")
    return notes
