"""Drift: how far a judge's grades of the same responses moved between two dates. Pure."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from judge.ask.labels import Label, Labels
from judge.calibrate.equivalence import word_of
from judge.calibrate.findings import Equivalence
from judge.io.ids import natural_key, topic_of
from judge.records import Estimate
from judge.stats.means import FEWEST_TOPICS, mean_interval

AnchorKeys = Mapping[tuple[str, str], tuple[str, ...]]
"""By turn and response id, what the response is called in both files."""
Stability = Literal["STEADY", "MOVED", "INCONCLUSIVE"]
"""The verdict on drift in one word."""


class Drift(msgspec.Struct, frozen=True):
    """One judge under one prompt at two dates, on the responses that it graded at both."""

    before: str
    """The judge, as its first file names it."""
    after: str
    prompt: str | None
    n: int
    topics: int
    change: Estimate
    """Mean of the later grade minus the earlier one, with a 95 % interval over topics."""
    within: Estimate
    """The same with a 90 % interval: two one-sided tests at 5 % go by it."""
    unchanged: Estimate
    """Share of responses with the same grade at both dates."""
    higher: int
    lower: int
    """Responses with a higher and with a lower grade at the later date."""
    lost: int
    gained: int
    """Responses in both files with a grade at the first date only, and at the second only."""
    only_before: int
    only_after: int
    """Responses in one file only."""
    margin: float
    word: Stability


def drift(before: Labels, after: Labels, keys_before: AnchorKeys, keys_after: AnchorKeys, margin: float) -> Drift:
    """Compare a judge's first answers about the same responses at two dates.

    Args:
        before: Its labels at the first date.
        after: Its labels at the second.
        keys_before: The names of the first file's responses in both files.
        keys_after: Those of the second file's.
        margin: The change of the mean grade that does not matter.
    """
    first, second = _by_key(before, keys_before), _by_key(after, keys_after)
    common = sorted(first.keys() & second.keys(), key=lambda key: [natural_key(part) for part in key])
    graded = [(key, a, b) for key in common if (a := first[key]) is not None and (b := second[key]) is not None]
    changes = [later - earlier for _, earlier, later in graded]
    topics = [topic_of(key[0]) for key, _, _ in graded]
    within = mean_interval(changes, topics, level=0.9, what="changes")
    return Drift(
        before=before.judge,
        after=after.judge,
        prompt=after.prompt,
        n=len(graded),
        topics=len(set(topics)),
        change=mean_interval(changes, topics, what="changes"),
        within=within,
        unchanged=mean_interval([float(not change) for change in changes], topics, bounds=(0, 1), what="shares"),
        higher=sum(change > 0 for change in changes),
        lower=sum(change < 0 for change in changes),
        lost=sum(first[key] is not None and second[key] is None for key in common),
        gained=sum(first[key] is None and second[key] is not None for key in common),
        only_before=len(first.keys() - second.keys()),
        only_after=len(second.keys() - first.keys()),
        margin=margin,
        word=_word(within, margin, moved=any(changes)),
    )


def _by_key(labels: Labels, keys: AnchorKeys) -> dict[tuple[str, ...], int | None]:
    """The grade of every response, or None where it has none."""

    def key_of(label: Label) -> tuple[str, ...]:
        return keys.get((label.turn_id, label.response_id), (label.turn_id, label.response_id))

    return {key_of(label): label.grade for label in labels.labels if label.sample == 0}


def _word(within: Estimate, margin: float, *, moved: bool) -> Stability:
    """STEADY where the interval lies within the margin or nothing moved, MOVED where it lies beyond, else open."""
    if not moved:
        return "STEADY" if within.topics >= FEWEST_TOPICS else "INCONCLUSIVE"
    words: dict[Equivalence, Stability] = {"EQUIVALENT": "STEADY", "DIFFERENT": "MOVED", "INCONCLUSIVE": "INCONCLUSIVE"}
    return words[word_of(within, margin)]
