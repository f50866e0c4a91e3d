"""Records: what several stages share; frozen, with fields in the order of the files' columns. Pure.

Ids are always strings. `turn_id` is `<topic_id>_<turn number>` in every track (`9-1_3`, `132_1-1`).
"""

from collections.abc import Collection
from functools import cached_property
from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
"""error: the place concerned cannot be judged. warning: it is judged, but it breaks the track's guidelines."""

FailureReason = Literal[
    "unreadable", "refused", "truncated", "content_filter", "context_length", "prompt_cut",
    "provider_error", "budget", "no_passages", "flipped",
]  # fmt: skip
"""Why a judgment is missing.

unreadable, refused, truncated: what the reply was. content_filter: the provider blocked the request or the reply.
context_length: the request is too long for the model. prompt_cut: the server read only a part of it. provider_error:
every attempt failed. budget: `--max-cost` is spent. no_passages: the criterion needs the used passages, and there are
none or some have no text. flipped: the verdict about two responses changed with their order.
"""

AnswerKind = Literal["grade", "sentences", "nuggets"]
"""grade: one grade for the response. sentences: a label for each sentence, rolled up to a grade. nuggets: a list of
nuggets, and a grade that says whether there are any."""

JudgedUnit = Literal["response", "dialogue", "citation", "pair", "passage"]
"""What one judgment is about: a response in its turn, all that a run and its user said in a topic, a sentence with one
passage that it cites, two responses to one turn, one shown first, or a passage that runs list for a turn."""

_SHOWN = 40
"""Characters of a text that the `repr` of a record shows."""


class Record(msgspec.Struct, frozen=True):
    """Base of the records; its `repr` is one line with long texts shortened and collections given by their size."""

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        shown = (f"{name}={_brief(value)}" for name, value in values if value is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


def _brief(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_SHOWN]) + ("…" if len(value) > _SHOWN else "")
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(len(value)) if isinstance(value, Collection) else repr(value)


def bare(text: str) -> str:
    """A text as a `repr` shows it: without quotation marks, shortened, with line breaks and the like escaped."""
    return repr(text[:_SHOWN])[1:-1]


class Problem(Record, frozen=True, omit_defaults=True):
    """One problem of an input file."""

    code: str
    """The kind of problem, such as `empty_text`."""
    severity: Severity
    file: str
    turn_id: str | None
    """None where the problem is of no single turn."""
    path: str
    """JSON path from the root (`$.turns[3].responses[0].rank`), after `line N: ` in a JSONL file."""
    message: str
    count: int = 1
    """How many problems of this kind the entry stands for."""

    @property
    def where(self) -> str:
        """The turn and the place in the file, as far as there are any."""
        return " ".join(filter(None, (self.turn_id, self.path)))


def file_problem(
    code: str,
    file: object,
    message: str,
    path: str = "",
    *,
    turn_id: str | None = None,
    severity: Severity = "error",
) -> Problem:
    """A problem in a file, by default an error that is of no single turn; without a path it is of the whole file."""
    return Problem(code=code, severity=severity, file=str(file), turn_id=turn_id, path=path, message=message)


class Passage(Record, frozen=True, gc=False):
    """A passage's text, and where the text comes from."""

    passage_id: str
    text: str
    source: Literal["run", "table", "verified", "collection"]
    """run: from a run. table: from a table of answers, whose passages are the evidence. verified: from a run, with the
    MD5 that the collection has. collection: from the collection."""


class Level(Record, frozen=True):
    """One level of a scale; `label` is the word or number that a judge writes for it."""

    grade: int
    label: str = ""
    description: str = ""


class Scale(Record, frozen=True, dict=True):
    """The allowed grades, which end is good, and which grades count as positive."""

    levels: tuple[Level, ...]
    """In the order of the prompt file, without `unable`."""
    polarity: Literal["higher", "lower"]
    positive: tuple[int, ...]
    unable: Level | None = None
    """The level for "unable to judge", which is in no mean and in no qrels; None if the scale has none."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All labels that a judge may write; the label of `unable` comes last."""
        return tuple(level.label for level in (*self.levels, *((self.unable,) if self.unable else ())))

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest grade."""
        grades = [level.grade for level in self.levels]
        return min(grades), max(grades)

    @cached_property
    def words(self) -> dict[int, str]:
        """Grade to label where there are two, such as yes and no; empty for a longer scale."""
        return {level.grade: level.label for level in self.levels} if len(self.levels) == 2 else {}


class Rollup(Record, frozen=True):
    """How labels of sentences become a grade: the first cut that the share of `label` reaches gives it."""

    label: str
    cuts: tuple[tuple[float, int], ...]
    """Pairs of a minimum share and a grade, from the highest share to 0."""
    ignored: str | None = None
    """Sentences with this label do not count; if no other sentence is left, the grade is that of `unable`."""

    def grade(self, share: float) -> int:
        """The grade of the first cut that a share from 0 to 1 reaches."""
        return next(grade for least, grade in self.cuts if share >= least)


class Example(Record, frozen=True):
    """A graded response that a prompt shows beside the one to judge; it leaves every comparison with gold."""

    turn_id: str
    response_sha256: str
    """The digest that names the response in gold."""
    grade: int
    shown: tuple[tuple[str, tuple[str, ...]], ...]
    """Each input of the prompt, with its texts."""
    comment: str | None = None
    """What an assessor wrote about the response."""

    @property
    def length(self) -> int:
        """The characters of all its texts."""
        shown = sum(len(text) for _, texts in self.shown for text in texts)
        return shown + len(self.comment or "")


class Criterion(Record, frozen=True):
    """One prompt file: what is asked, on which scale, in which words."""

    name: str
    variant: str
    """The name of the file, without its ending."""
    version: int
    inputs: tuple[str, ...]
    """What a judge may see, as names of placeholders."""
    answer: AnswerKind
    """What a judge answers."""
    scale: Scale
    sentence_levels: tuple[Level, ...]
    """The labels of a sentence; empty if one grade is asked."""
    rollup: Rollup | None
    system: str
    """Text of the system message, with placeholders."""
    user: str
    """Text of the user message, with placeholders."""
    file: str
    """The prompt file, as messages name it."""
    digest: str
    """SHA-256 of the file's bytes, in hexadecimal."""
    unit: JudgedUnit = "response"
    """What one judgment under this prompt is about."""
    examples: tuple[Example, ...] = ()
    """What `{{examples}}` shows."""
    cuts: tuple[float, ...] = ()
    """The expected grade from which on each level but the lowest is given; empty where the judge's own grade counts."""

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def prompt_id(self) -> str:
        """`criterion/variant`, as on the command line."""
        return f"{self.name}/{self.variant}"


class Estimate(Record, frozen=True):
    """A reported number with its interval; an undefined number is None and has a `reason`."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    """Items that the number rests on."""
    topics: int
    """Topics of these items."""
    reason: str | None = None

    def rounded(self, decimals: int) -> "Estimate":
        """The same with rounded numbers, none of which is -0."""
        numbers = {name: getattr(self, name) for name in ("value", "low", "high")}
        known = {name: round(number, decimals) + 0.0 for name, number in numbers.items() if number is not None}
        return msgspec.structs.replace(self, **known)
