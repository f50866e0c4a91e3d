"""What a judge's endpoint takes of the protocol: learned from its first answers, and kept in the journal. Pure.

An endpoint may refuse a parameter, a system message, or an answer form. Which it does is settled once for each kind of
answer, by the first question that it answers, so that the grades of a run do not depend on how many calls are in
flight. What the user says (`--omit`, `--form`) is no part of it.
"""

from judge.errors import AuthenticationError, JudgeError, ParameterRefused, RejectedError, StructureUnsupported
from judge.judges.records import AnswerForm, Request
from judge.records import AnswerKind, Record

_MAY_BE_THE_FORM = (400, 404, 422)
"""Statuses with which an endpoint refuses what a request asks for, in whatever words."""


class Dialect(Record, frozen=True):
    """What an endpoint refuses of what is usually sent."""

    omitted: frozenset[str] = frozenset()
    """Parameters; `system` is its refusal of system messages."""
    refused: frozenset[str] = frozenset()
    """Answer forms, each with the kind of answer, such as `json/sentences`."""

    def without(self, parameter: str) -> "Dialect":
        """The same without a parameter."""
        return Dialect(omitted=self.omitted | {parameter}, refused=self.refused)

    def refusing(self, form: AnswerForm, answer: AnswerKind) -> "Dialect":
        """The same without an answer form."""
        return Dialect(omitted=self.omitted, refused=self.refused | {f"{form}/{answer}"})

    def takes(self, form: AnswerForm, answer: AnswerKind) -> bool:
        """Whether the endpoint is asked in a form for a kind of answer."""
        return f"{form}/{answer}" not in self.refused


def adapted(dialect: Dialect, error: JudgeError, request: Request, answer: AnswerKind) -> Dialect | None:
    """The dialect after the refusal of a request whose way of asking is not settled; None if it says nothing of it.

    Before the first answer of a kind, the form may be what the endpoint refuses, whatever it says.
    """
    if isinstance(error, ParameterRefused):
        return None if error.parameter in request.omitted else dialect.without(error.parameter)
    if isinstance(error, StructureUnsupported):
        return dialect.refusing(request.form, answer) if error.lasting else None
    if isinstance(error, RejectedError | AuthenticationError) and error.status in _MAY_BE_THE_FORM:
        return dialect.refusing(request.form, answer)
    return None


_ANSWERS = {"grade": "grades", "sentences": "labels of sentences", "nuggets": "lists of nuggets"}


def dialect_notes(judge: str, dialect: Dialect) -> list[str]:
    """What the endpoint of a judge refuses of what is usually sent, a sentence each."""
    notes = []
    if dialect.omitted:
        notes.append(f"{judge}: asked without {', '.join(sorted(dialect.omitted))}, which its endpoint refused.")
    for named in sorted(dialect.refused):
        form, _, answer = named.partition("/")
        notes.append(f"{judge}: not asked for {_ANSWERS[answer]} in the form {form}, in which its endpoint gave none.")
    return notes
