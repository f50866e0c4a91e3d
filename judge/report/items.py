"""What the browser shows: items, each a response under a criterion, with what judges and assessors say of it.

A side is where a grade comes from: an output folder, or a judge of a calibration. Several sides stand side by side.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.ask.records import Failure, Judgment, SentenceSupport
from judge.calibrate.disagreements import AssessorGrade
from judge.calibrate.intake import same_grades
from judge.pool.records import passage_id_of
from judge.records import Passage, Record, Scale
from judge.runs.records import Turn

LACKS = 0.5
"""The gap between a grade and its lack: less than any difference of grades, more than none."""


class Opinion(Record, frozen=True):
    """A judge's grade of one response, or why there is none."""

    response_id: str
    judge: str
    prompt: str
    """`criterion/variant`."""
    grade: int | None = None
    reason: str | None = None
    """Why there is no grade: `unable`, or the reason of a failure."""
    detail: str | None = None
    """The reason in words."""
    raw: str | None = None
    """The reply of a failure."""
    expected: float | None = None
    probabilities: dict[str, float] | None = None
    rationale: str | None = None
    sentences: tuple[str, ...] = ()
    support: tuple[SentenceSupport, ...] = ()
    model: str | None = None
    request_digest: str | None = None
    repaired: bool = False
    sample: int = 0
    off: float | None = None
    """How far it is from gold, where its file says so."""
    votes: tuple["Opinion", ...] = ()
    """Of the members, where the judge is a jury."""


UsedPassage = tuple[str, str | None, str | None, str]
"""The id of a used passage, its text, None where the pool has none, its source, and in words whether it is relevant;
empty where nobody was asked."""


class Gaps(NamedTuple):
    """How far those who graded an item are apart; None where no two of that kind did."""

    gold: float | None
    """The largest distance of a judge from the assessors."""
    judges: float | None
    """The largest distance between two sides."""
    jury: float | None
    """The largest distance between two members of a jury."""


class BrowsedItem(Record, frozen=True):
    """One response under one criterion, and all that is said of it."""

    turn_id: str
    topic_id: str
    criterion: str
    text: str | None
    truncated: bool
    passages: tuple[UsedPassage, ...]
    runs: tuple[tuple[str, str], ...]
    """Runs with this response, each with the place that it has there, in words."""
    opinions: Mapping[int, Opinion]
    """By the number of the side; a side that does not have the response is left out."""
    gold: tuple[AssessorGrade, ...] = ()
    gold_grade: int | None = None
    """What the assessors' grades come to."""
    apart: Gaps | None = None
    """How far those who graded it are apart, where its file says so."""


class BrowsedItems(NamedTuple):
    """What one folder holds for the browser, or all folders together."""

    sides: tuple[tuple[str, Path | None], ...]
    """Where grades come from: a name, and the journal of the requests, if there is one."""
    items: Iterable[BrowsedItem]
    turns: Mapping[str, Turn]
    """The conversations, by turn; of the turns that a topics file told."""
    scales: Mapping[tuple[int, str], Scale]
    """By side and criterion; of the prompts that are at hand."""
    notes: tuple[str, ...]
    """What cannot be shown, and why."""


def opinion(result: Judgment | Failure, votes: tuple[Opinion, ...] = ()) -> Opinion:
    """A judgment or its failure, as the browser shows it: the fields of the same names."""
    shown = {name: getattr(result, name) for name in Opinion.__struct_fields__ if hasattr(result, name)}
    if isinstance(result, Judgment) and result.unable:
        shown |= {"grade": None, "reason": "unable"}
    return Opinion(**shown, prompt=f"{result.criterion}/{result.variant}", votes=votes)


def used_passages(
    keys: tuple[str, ...], passages: Mapping[str, Passage], relevance: Mapping[str, str] | None = None
) -> tuple[UsedPassage, ...]:
    """The passages behind the keys of a pooled response; `relevance` has in words, by id, whether each is relevant."""
    used: list[UsedPassage] = []
    for key in keys:
        passage = passages.get(key)
        passage_id = passage_id_of(key) if passage is None else passage.passage_id
        text, source = (None, None) if passage is None else (passage.text, passage.source)
        used.append((passage_id, text, source, (relevance or {}).get(passage_id, "")))
    return tuple(used)


def gaps(item: BrowsedItem, scales: Mapping[int, Scale]) -> Gaps:
    """How far those who graded an item are apart.

    A grade and a lack of a grade are LACKS apart. Where two sides have different scales, only positive and not
    positive are compared, and they are 1 apart.

    `scales`: the scales of its criterion, by side.
    """
    if item.apart is not None:
        return item.apart
    given = [(side, said.grade) for side, said in sorted(item.opinions.items())]
    known = {side: scales[side] for side, _ in given if side in scales}
    first, *others = known.values() or (None,)
    if first is None or all(same_grades(first, scale) for scale in others):
        between = [grade for _, grade in given]
    else:
        between = [
            None if grade is None else int(grade in known[side].positive) for side, grade in given if side in known
        ]
    off = [distance for side in item.opinions if (distance := off_gold(item, side, scales.get(side))) is not None]
    juries = [said.votes for said in item.opinions.values() if len(said.votes) > 1]
    return Gaps(
        gold=max(off, default=None),
        judges=spread(between) if len(given) > 1 else None,
        jury=max((spread([vote.grade for vote in votes]) for votes in juries), default=None),
    )


def off_gold(item: BrowsedItem, side: int, scale: Scale | None) -> float | None:
    """How far the grade of a side is from gold; None without gold, or where gold is no grade of the side's scale."""
    said = item.opinions[side]
    if said.off is not None:
        return said.off
    graded = scale is None or any(level.grade == item.gold_grade for level in scale.levels)
    if item.gold_grade is None or not graded:
        return None
    return spread((said.grade, item.gold_grade))


def spread(grades: Sequence[int | None]) -> float:
    """The largest difference of two grades; LACKS where the present ones are the same and others are lacking."""
    present = [grade for grade in grades if grade is not None]
    if not present:
        return 0.0
    return float(max(present) - min(present)) or (LACKS if len(present) < len(grades) else 0.0)
