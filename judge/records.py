"""Records: what crosses a stage; frozen, in file-column order. Pure.

Ids are always strings. `turn_id` is `<topic_id>_<turn number>` in every track (`9-1_3`, `132_1-1`).
"""

from collections.abc import Collection
from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
"""error: cannot be judged. warning: judged, but the guideline is broken."""

FailureReason = Literal[
    "unreadable", "refused", "truncated", "content_filter", "context_length",
    "provider_error", "budget", "no_passages",
]  # fmt: skip


_SHOWN = 40
"""Characters of a text that a record shows of it."""


class Record(msgspec.Struct, frozen=True):
    """Base of the records: as text, a record is a line, with texts shortened and what holds others counted."""

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
    """A text without quotation marks, shortened, with what would break a line escaped."""
    return repr(text[:_SHOWN])[1:-1]


class Problem(Record, frozen=True, omit_defaults=True):
    """One defect of an input file."""

    code: str
    severity: Severity
    file: str
    turn_id: str | None
    path: str
    """JSON path from the root (`$.turns[3].responses[0].rank`), after `line N: ` in a JSONL file."""
    message: str
    count: int = 1
    """How many like it this one stands for."""


class Passage(Record, frozen=True):
    """A passage's text, and whose it is."""

    passage_id: str
    text: str
    source: Literal["run", "verified", "collection"]
    """A run's; a run's with the MD5 that the collection has; the collection's."""


class Level(Record, frozen=True):
    """One level of a scale; `label` is the word or number that a judge writes for it."""

    grade: int
    label: str
    description: str


class Scale(Record, frozen=True):
    """The allowed grades, which end is good, and which grades count as positive."""

    levels: tuple[Level, ...]
    polarity: Literal["higher", "lower"]
    positive: tuple[int, ...]
    unable: Level | None
    """The value for "unable to judge": never in a mean, not in qrels."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels a judge may write, the unable one last."""
        return tuple(level.label for level in (*self.levels, *((self.unable,) if self.unable else ())))


class Rollup(Record, frozen=True):
    """From sentence labels to a grade: the highest grade whose minimum share of `label` is reached."""

    label: str
    cuts: tuple[tuple[float, int], ...]
    """(minimum share, grade), from the highest share to 0."""
    ignored: str | None = None
    """Sentences with this label do not count; if none is left, the grade is the unable one."""


class Criterion(Record, frozen=True):
    """One prompt file: what is asked, on which scale, in which words."""

    name: str
    variant: str
    version: int
    inputs: tuple[str, ...]
    answer: Literal["grade", "sentences"]
    scale: Scale
    sentence_levels: tuple[Level, ...]
    rollup: Rollup | None
    system: str
    user: str
    file: str
    digest: str

    @property
    def prompt_id(self) -> str:
        """`criterion/variant`, as on the command line."""
        return f"{self.name}/{self.variant}"


class Estimate(Record, frozen=True):
    """A reported number with its interval; None with a `reason` where it is undefined."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    topics: int
    reason: str | None = None
