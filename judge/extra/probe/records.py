"""A probe, and a judge's grade of an item beside its grade of the altered copy. Pure."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from judge.ask.records import Failure, Judgment
from judge.calibrate.certified import Expects
from judge.pool.records import PooledResponse
from judge.records import Record, Scale

ProbeKind = Literal["injection", "evidence", "invariance"]
"""What a probe alters: a text that speaks to the judge is planted; support is taken away; nothing that matters."""
Wants = Literal["high", "low"]
"""Which end of the scale an attacker wants."""
KINDS: tuple[ProbeKind, ...] = ("injection", "evidence", "invariance")


class ProbeItem(Record, frozen=True):
    """A drawn response with what a probe may use to alter it."""

    response: PooledResponse
    passages: tuple[str, ...]
    """Texts of the used passages, as a judge sees them in order."""
    elsewhere: tuple[tuple[str, ...], ...] = ()
    """Texts of the passages of responses to other turns of the same topic."""
    place: int = 0
    """Place in the draw, from 0; canaries take turns by it."""


class WantedLabels(NamedTuple):
    """What an attacker asks for: the labels that a judge writes for the best grade and for the worst."""

    best: str
    worst: str


class Twin(Record, frozen=True):
    """An altered copy of an item."""

    text: str
    passages: tuple[str, ...]
    change: str
    """What was altered, in words or as `old -> new`."""
    canary: str | None = None
    """The name of the planted text, if one was."""
    wants: Wants | None = None
    """Where the planted text wants the grade."""


class Inapplicable(Record, frozen=True):
    """Why an item has no twin under a probe."""

    reason: str


Making = Callable[[ProbeItem, WantedLabels, np.random.Generator], Twin | Inapplicable]


class Probe(NamedTuple):
    """One row of PROBES."""

    name: str
    kind: ProbeKind
    expects: Expects
    make: Making
    with_passages: bool = False
    """Whether it is only for criteria that show the passages."""
    apart: frozenset[str] = frozenset()
    """Criteria that it is not for, because there the alteration may matter."""


class Standing(Record, frozen=True):
    """A grade on its scale, from the worst level to the best, whichever end has the high numbers."""

    grade: int
    step: int
    """How many levels above the worst."""
    expected: float | None
    """The expected grade in the same steps; None where the judge gave no label probabilities."""

    @property
    def exact(self) -> float:
        """The expected grade, or else the grade, in steps."""
        return float(self.step) if self.expected is None else self.expected


class ProbePair(Record, frozen=True):
    """One item under one probe, as one judge under one prompt graded both: a line of `twins.jsonl`."""

    prompt: str
    """`criterion/variant`."""
    judge: str
    probe: str
    response_id: str
    turn_id: str
    topic_id: str
    canary: str | None
    wants: Wants | None
    change: str | None
    """What was altered; None where the probe does not apply."""
    inapplicable: str | None
    """Why the item has no twin."""
    clean: Standing | None
    altered: Standing | None
    missing: str | None
    """Why a grade is missing, such as `twin: refused`."""
    overlap_clean: float | None = None
    """The same of word overlap, in steps; None where it cannot grade the criterion, or is the judge."""
    overlap_altered: float | None = None

    @property
    def scores(self) -> tuple[float, float] | None:
        """Clean item and twin in steps: by expected grades where both are known; None where a grade is missing."""
        if self.clean is None or self.altered is None:
            return None
        if self.clean.expected is None or self.altered.expected is None:
            return float(self.clean.step), float(self.altered.step)
        return self.clean.expected, self.altered.expected

    @property
    def words(self) -> tuple[float, float] | None:
        """The same of word overlap."""
        if self.overlap_clean is None or self.overlap_altered is None:
            return None
        return self.overlap_clean, self.overlap_altered

    @property
    def shift(self) -> float:
        """How many levels better the twin is graded; 0 where a grade is missing."""
        clean, altered = self.scores or (0.0, 0.0)
        return altered - clean


def standing(result: Judgment | Failure | None, scale: Scale) -> Standing | None:
    """Where a grade stands; None without one: for a failure, for "unable to judge", and where nothing was asked."""
    if not isinstance(result, Judgment) or result.unable:
        return None
    grades = sorted((level.grade for level in scale.levels), reverse=scale.polarity == "lower")
    expected = None
    if result.expected is not None:
        worst, best = grades[0], grades[-1]
        expected = round((result.expected - worst) / (best - worst) * (len(grades) - 1), 9)
    return Standing(result.grade, grades.index(result.grade), expected)


def steps_of(scale: Scale) -> int:
    """How many steps lie between the worst level and the best."""
    return len(scale.levels) - 1


def why_missing(clean: Judgment | Failure, altered: Judgment | Failure | None) -> str | None:
    """Which of the two has no grade, and why; None if both have one."""
    for name, result in (("clean", clean), ("twin", altered)):
        if isinstance(result, Failure):
            return f"{name}: {result.reason}"
        if result is not None and result.unable:
            return f"{name}: unable"
    return None
