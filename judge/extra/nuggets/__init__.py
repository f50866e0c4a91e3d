"""Nuggets: what a good response says, which responses say it, and the recall of runs.

A bank lists nuggets of turns or of topics. A match says whether a response supports one. `create` makes a bank by a
judge. `forms` has a row for each form of bank.

Here are nuggets, what responses do with them, what is missing, and problems of files.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal, TypeVar, get_args

import msgspec

from judge.io.files import Problems, decode_lines
from judge.io.ids import groups_of, topic_of
from judge.io.text import MAX_ID, has_content, shown, storable
from judge.records import FailureReason, Record
from judge.records import Problem as Problem
from judge.records import file_problem as file_problem
from judge.runs.fields import usable_turn_id

Importance = Literal["vital", "okay"]
"""vital: a good response must say it. okay: a good response may say it."""
MatchLabel = Literal["supports", "partly", "does_not", "contradicts"]
"""What a response does with a nugget.

supports: it says all of it. partly: it says a part. does_not: it says nothing of it. contradicts: it says the opposite.
"""
CreationStep = Literal["creation", "merging", "importance"]
"""A step in making a bank: nuggets of one source, the removal of repeats, and how important nuggets are."""
MATCH_LABELS: tuple[MatchLabel, ...] = get_args(MatchLabel)
AnswerRule = Literal["AND", "OR"]
"""Whether a question needs all of its answers or one of them."""


class Nugget(Record, frozen=True):
    """A fact that a good response says, or a question that it answers (fields: docs/reference/files.toml)."""

    nugget_id: str
    topic_id: str
    text: str
    turn_id: str | None = None
    """The turn that it is about; None for a nugget of the whole topic."""
    importance: Importance | None = None
    """None where the bank does not say."""
    weight: float | None = None
    """What it counts for, where the bank says it; below zero it is a fault, which a good response does not have."""
    question: str | None = None
    """The question to which the text is an answer; None for a nugget that stands for itself."""
    aggregator: AnswerRule | None = None
    """Of a question: whether it needs all answers of the turn or topic, which are a nugget each."""
    aspect: str | None = None
    """The sub-narrative or the axis that it belongs to, where the bank says it."""
    relevance: int | None = None
    """The grade of the passage that it was taken from, where the bank says it."""
    passages: tuple[str, ...] = ()
    """Ids of the passages that it was taken from, or that bear an answer out."""
    responses: tuple[str, ...] = ()
    """Ids of the pooled responses that it was taken from."""
    made_by: str | None = None

    @property
    def scope(self) -> str:
        """The turn that it is about, or else the topic."""
        return self.turn_id or self.topic_id

    @property
    def fault(self) -> bool:
        """Whether a good response does not have it."""
        return self.weight is not None and self.weight < 0


class NuggetBank(Record, frozen=True):
    """The nuggets of a file, in its order."""

    form: str
    """The form of the file, a key of FORMS."""
    nuggets: tuple[Nugget, ...]
    unreferenced: int = 0
    """Answers that no document bears out, and that are left out for it."""

    def by_scope(self) -> dict[str, list[Nugget]]:
        """Turn or topic to its nuggets, in the order of the bank."""
        return groups_of((nugget.scope, nugget) for nugget in self.nuggets)


class MatchedNugget(Record, frozen=True, omit_defaults=True):
    """What one judge or one assessor says of a response and a nugget."""

    turn_id: str
    """The turn of the response."""
    nugget_id: str
    label: MatchLabel
    response_id: str | None = None
    text_sha256: str | None = None
    """SHA-256 of the response's text in NFC without outer white space, as in gold."""
    nugget_sha256: str | None = None
    """SHA-256 of the nugget's text as it was matched."""
    run_id: str | None = None
    """A run that ranked the response first in the turn, where there is no `response_id`."""
    assessor: str | None = None
    """Who matched; None where a judge did."""
    judge: str | None = None
    """`backend/model`; None where a person matched."""
    inclusion_probability: float | None = None
    """The probability with which a person was to match the nuggets of this response."""
    expected: float | None = None
    """Mean of the grades under the label probabilities."""
    probabilities: dict[str, float] | None = None
    rationale: str | None = None
    model: str | None = None
    """The model, as the provider names it."""
    prompt: str | None = None
    """`criterion/variant`."""
    prompt_digest: str | None = None
    """SHA-256 of the prompt file."""
    request_digest: str | None = None
    repaired: bool = False
    """Whether the first reply was unreadable and the judge was asked again."""


class NuggetFailure(Record, frozen=True, omit_defaults=True):
    """A step in making a bank that failed, and why; what it would have added is missing from the bank."""

    turn_id: str
    step: CreationStep
    reason: FailureReason
    detail: str
    judge: str
    passage: str | None = None
    """Of the step `creation`: the id of the passage that was shown."""
    response_id: str | None = None
    """Of the step `creation`: the response that was shown."""
    raw: str | None = None
    """The full reply, if there was one."""
    request_digest: str | None = None


class LabelFailure(Record, frozen=True, omit_defaults=True):
    """A match that is missing, and why; never a label."""

    turn_id: str
    nugget_id: str
    response_id: str
    reason: FailureReason | Literal["unable", "failed", "not_listed"]
    """unable: the judge said it cannot tell. failed: a file of assignments says so. not_listed: it lists others."""
    detail: str
    judge: str
    raw: str | None = None
    """The full reply, if there was one."""
    request_digest: str | None = None


_Line = TypeVar("_Line")


class BankProblems(Problems):
    """The problems of one bank, and what its readers ask of each field."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.unreferenced = 0
        """Answers that are left out, because no document bears them out."""
        self._places: dict[object, tuple[str, str]] = {}

    def lines(self, content: bytes, row: type[_Line], code: str) -> Iterator[tuple[int, _Line]]:
        """The lines that can be decoded, with their numbers, until the list is full; the others are problems."""
        for number, line in decode_lines(content, row, self.file, code, self):
            if self.full:
                return
            yield number, line

    def nugget_id(self, path: str, nugget_id: str) -> bool:
        """Whether an id is new and can be a column; a problem if not."""
        if not (0 < len(nugget_id) <= MAX_ID and nugget_id.isprintable() and not any(map(str.isspace, nugget_id))):
            self.add("bad_id", path, f"{shown(nugget_id)}: expected an id of 1 to {MAX_ID} characters without spaces")
            return False
        if first := self.earlier(nugget_id, path):
            self.add("duplicate_nugget", path, f"{shown(nugget_id)} is already at {first}")
        return first is None

    def earlier(self, key: object, place: str) -> str | None:
        """Where the same key stood before, in this file or another one of the bank; None for a new key."""
        file, first = self._places.setdefault(key, (self.file, place))
        if (file, first) == (self.file, place):
            return None
        return first if file == self.file else f"{file}: {first}"

    def decoded(self, path: str, raw: msgspec.Raw, row: type[_Line]) -> _Line | None:
        """A part of a line; None, and a problem at its own path, if it cannot be decoded."""
        try:
            return msgspec.json.decode(raw, type=row)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, _, below = str(error).partition(" - at `$")
            self.add("bad_nugget", f"{path}{below.rstrip('`')}", message)
        return None

    def text(self, path: str, value: Any) -> str | None:
        """The text of a nugget without outer white space; None, and a problem, if it cannot be shown."""
        if not isinstance(value, str):
            self.add("wrong_type", path, f"expected the text of a nugget, found {shown(value)}")
        elif not has_content(value):
            self.add("empty_text", path, f"expected the text of a nugget, found {shown(value)}")
        elif not storable(value):
            self.add("unusable_text", path, f"NUL or a lone surrogate in {shown(value)}")
        else:
            return value.strip()
        return None

    def check_scope(self, path: str, turn_id: str | None, topic_id: str | None) -> None:
        """Add a problem if these cannot be the turn or the topic of a nugget."""
        if turn_id is not None and not usable_turn_id(turn_id):
            self.add("bad_id", f"{path}.turn_id", f"expected a turn id such as 9-1_3, found {shown(turn_id)}")
        elif topic_id is not None and not usable_topic_id(topic_id):
            self.add("bad_id", f"{path}.topic_id", f"expected a topic id such as 9-1, found {shown(topic_id)}")
        elif turn_id is not None and topic_id is not None and topic_of(turn_id) != topic_id:
            self.add("bad_id", f"{path}.topic_id", f"{shown(topic_id)} is not the topic of {shown(turn_id)}")
        elif not (turn_id or topic_id):
            self.add("missing_field", path, "needs `turn_id`, or `topic_id` for a nugget of the whole topic")

    def scope(self, path: str, value: Any) -> tuple[str, str | None] | None:
        """The topic, and the turn if the id is that of a turn; None, and a problem, if it is neither."""
        if isinstance(value, str) and usable_turn_id(value):
            return topic_of(value), value
        if isinstance(value, str) and usable_topic_id(value):
            return value, None
        self.add("bad_id", path, f"expected the id of a turn such as 9-1_3, or of a topic, found {shown(value)}")
        return None


def usable_topic_id(text: str) -> bool:
    """Whether an id can be that of a topic: a column without `_`, which begins the number of a turn.

    >>> [usable_topic_id(text) for text in ("9-1", "132", "9-1_3", "9 1", "")]
    [True, True, False, False, False]
    """
    return usable_turn_id(f"{text}_1") and "_" not in text


def first_object(content: bytes) -> dict[str, Any]:
    """The JSON object on the first line; empty if there is none."""
    try:
        value = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
