"""Are responses like those that people labeled before: long, near their passages and graded as these were? Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from judge.ask.records import Failure, Judgment
from judge.calibrate.certificate import Certificate
from judge.calibrate.certified import LabeledRange
from judge.calibrate.findings import GRADES, OVERLAP, WORDS, LabeledSupport, SupportRow
from judge.io.words import containment
from judge.pool.build import lacking_texts
from judge.pool.records import Pool, PooledResponse
from judge.stats.means import share_interval
from judge.units import UNITS

RARE = 0.01
"""Share of the labeled responses below which a grade of the judge is one that they hardly had."""
FEWEST_LABELED = 100
"""Fewest labeled responses whose percentiles say anything: of fewer, the 1st is hardly more than the least."""
ENDS = (0.01, 0.99)
MOST_BEYOND = 0.05
"""Share of responses beyond a range that is still like the labeled ones, of which 2 % lie beyond their own."""


class Met(NamedTuple):
    """A response that is set against the labeled ones."""

    topic: str
    measures: Mapping[str, float]
    grade: int | None


def measures_of(response: PooledResponse, pool: Pool) -> dict[str, float]:
    """The measures of a response, or of a passage, as far as its texts are known; none of two responses."""
    unit = UNITS[response.unit]
    if unit.orders > 1:
        return {}
    texts = [] if lacking_texts(response, pool) else [pool.passages[key].text for key in response.passages]
    if unit.listed:
        return {WORDS: float(len(texts[0].split()))} if texts else {}
    measures = {WORDS: float(response.tokens.whitespace)}
    if texts:
        measures[OVERLAP] = containment(response.text, texts)
    return measures


def labeled_range(met: Sequence[Met]) -> LabeledRange | None:
    """What labeled responses were like; None of fewer than FEWEST_LABELED."""
    if len(met) < FEWEST_LABELED:
        return None
    ranges: dict[str, tuple[float, float]] = {}
    for measure in (WORDS, OVERLAP):
        values = [one.measures[measure] for one in met if measure in one.measures]
        if len(values) >= FEWEST_LABELED:
            low, high = np.quantile(values, ENDS).tolist()
            ranges[measure] = (low, high)
    grades = Counter(one.grade for one in met if one.grade is not None)
    by_grade = {str(grade): times for grade, times in sorted(grades.items())}
    return LabeledRange(responses=len(met), ranges=ranges, grades=by_grade)


def support(before: LabeledRange | None, met: Sequence[Met]) -> LabeledSupport:
    """OUTSIDE where more of the responses lie beyond a range than may, by the lower end of the interval.

    A grade of the judge lies beyond where fewer than RARE of the labeled responses had it.
    """
    if before is None:
        return LabeledSupport("UNKNOWN", (), "the certificate does not say what the labeled items were like")
    if before.responses < FEWEST_LABELED:
        return LabeledSupport("UNKNOWN", (), f"fewer than {FEWEST_LABELED} items were labeled")
    most = most_beyond(before.responses)
    rows: list[SupportRow] = []
    for measure in (WORDS, OVERLAP):
        if measure not in before.ranges:
            continue
        low, high = before.ranges[measure]
        known = [one for one in met if measure in one.measures]
        astray = [not low <= one.measures[measure] <= high for one in known]
        rows += _row(measure, low, high, known, astray, most)
    total = sum(before.grades.values())
    usual = {int(grade) for grade, times in before.grades.items() if times >= RARE * total}
    if usual:
        graded = [one for one in met if one.grade is not None]
        unusual = [one.grade not in usual for one in graded]
        rows += _row(GRADES, min(usual), max(usual), graded, unusual, MOST_BEYOND)
    if not rows:
        return LabeledSupport("UNKNOWN", (), "nothing is known of the items here")
    if any(row.is_outside for row in rows):
        return LabeledSupport("OUTSIDE", tuple(rows))
    if few := [row.beyond.reason for row in rows if row.is_of_few_topics]:
        return LabeledSupport("UNKNOWN", tuple(rows), f"{few[0]} here")
    return LabeledSupport("WITHIN", tuple(rows))


def most_beyond(labeled: int) -> float:
    """The share beyond the range of so many labeled responses that is still like them.

    It is MOST_BEYOND, or what other responses of the same kind exceed in 2.5 % of cases, if that is more. Of n
    responses, r = 1 + (n - 1) / 100 lie at or beyond either percentile, so the share of all that do is distributed as
    Beta(2r, n + 1 - 2r). S. S. Wilks (1941), Determination of sample sizes for setting tolerance limits, Annals of
    Mathematical Statistics 12(1), 91-96.

    >>> [round(most_beyond(n), 3) for n in (100, 200, 400)]
    [0.085, 0.057, 0.05]
    """
    from scipy.special import betaincinv

    beyond = 2 * (1 + ENDS[0] * (labeled - 1))
    return max(MOST_BEYOND, float(betaincinv(beyond, labeled + 1 - beyond, 0.975)))


def _row(
    measure: str, low: float, high: float, met: Sequence[Met], astray: Sequence[bool], most: float
) -> list[SupportRow]:
    """The share of responses that lie beyond a range; no row without responses."""
    if not met:
        return []
    hits: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for one, beyond in zip(met, astray, strict=True):
        hits[one.topic] += beyond
        sizes[one.topic] += 1
    topics = sorted(sizes)
    share = share_interval([hits[topic] for topic in topics], [sizes[topic] for topic in topics])
    # A whole number would be another one once it is read back.
    return [SupportRow(measure=measure, low=float(low), high=float(high), beyond=share, most=most)]


def met_in_pool(pool: Pool, grades: Mapping[str, int | None]) -> list[Met]:
    """The responses of a pool that a judge was asked about, with its grades by response id."""
    return [
        Met(topic=response.topic_id, measures=measures_of(response, pool), grade=grades[response.response_id])
        for response in pool.responses
        if response.response_id in grades
    ]


def supports_of(
    certificate: Certificate, pool: Pool, results: Iterable[Judgment | Failure]
) -> dict[str, LabeledSupport]:
    """By criterion, whether the responses of a judged pool are like those that a certificate rests on."""
    grades: dict[str, dict[str, int | None]] = {}
    for result in results:
        grade = None if isinstance(result, Failure) or result.unable else result.grade
        grades.setdefault(result.criterion, {}).setdefault(result.response_id, grade)
    return {
        entry.criterion: support(entry.labeled, met_in_pool(pool, grades[entry.criterion]))
        for entry in certificate.certified
        if entry.criterion in grades
    }
