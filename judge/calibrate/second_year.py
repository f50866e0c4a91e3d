"""A certificate's second year: does its agreement hold on topics that nobody labeled for it? Pure."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.calibrate.calibration import FEWEST_ITEMS, FEWEST_TOPICS, least_to_accept, too_few, why_not_trusted
from judge.calibrate.certificate import Certificate
from judge.calibrate.certified import Certified, topic_digest
from judge.calibrate.findings import CalibrationOptions, Carried, LabeledSupport, Split
from judge.calibrate.panel import JudgeColumn, Panel
from judge.io.text import count
from judge.records import Estimate, Record
from judge.stats.agreement import primary_statistic
from judge.stats.noninferiority import (
    CarryWord,
    carry_word,
    independent_difference,
    spread_of,
    topics_to_carry,
    topics_to_decide,
)
from judge.stats.resampling import Resampled, resampled
from judge.stats.tables import Undefined

DEFAULT_MARGIN = 0.1
"""How much less agreement does not matter, unless the user says otherwise: half a band of Landis and Koch's."""
LABELS = (4, 8, 16)
"""Labels of a topic that are planned, as far as there were more."""


def carry(
    panel: Panel,
    column: JudgeColumn,
    split: Split,
    entry: Certified,
    certificate: Certificate,
    support: LabeledSupport,
    margin: float,
    options: CalibrationOptions,
) -> Carried:
    """Compare a judge's agreement on the topics of a panel with the certified one; topics of both are left out.

    Missing grades at their worst, gold that is not blind, and too few labels keep a judge from carrying; they are no
    evidence against it.
    """
    shared = [topic for topic in panel.topics if topic_digest(topic) in set(entry.topic_digests)]
    mask = panel.within(split) & ~np.isin(panel.topic, [panel.topics.index(topic) for topic in shared])
    there = _agreement(panel, column.codes, mask, entry, options)
    found = there.estimate
    difference = independent_difference(found, entry.estimate)
    missing = int((mask & (column.codes < 0)).sum())
    worst: Estimate | None = None
    if missing:
        codes = panel.farthest(column.codes)
        worst = independent_difference(_agreement(panel, codes, mask, entry, options).estimate, entry.estimate)
    by_interval = carry_word(difference, margin)
    # No number of labels that are not blind makes a judge carry.
    not_blind = tuple(filter(None, [why_not_trusted(panel.made)]))
    against = (*_against(panel, found, worst, missing, margin), *not_blind) if by_interval == "CARRIES" else ()
    word: CarryWord = "INCONCLUSIVE" if against else by_interval
    # An interval above the margin is no reason for INCONCLUSIVE.
    reasons = against or (_where(difference, margin),)
    topics_needed: int | None = None
    if by_interval == "INCONCLUSIVE" and not_blind:
        reasons = (*reasons, *not_blind)
    elif by_interval == "INCONCLUSIVE" and difference.low is not None:
        needed = _to_decide(there, entry, margin)
        if isinstance(needed, Undefined):
            reasons = (*reasons, needed.reason)
        else:
            topics_needed = needed
    elif len(against) == 1 and too_few(found.n, found.topics):
        topics_needed = _at_least(found.n / found.topics)
    return Carried(
        criterion=panel.criterion,
        certificate=certificate.digest,
        date=certificate.date,
        verdict=entry.verdict,
        statistic=entry.statistic,
        margin=margin,
        word=word,
        reasons=reasons,
        certified=entry.estimate,
        found=found,
        difference=difference,
        worst=worst,
        shared=tuple(shared),
        topics_needed=topics_needed,
        labels_needed=None if topics_needed is None else math.ceil(topics_needed * found.n / found.topics),
        support=support,
    )


def _agreement(
    panel: Panel, codes: NDArray[np.int64], mask: NDArray[np.bool_], entry: Certified, options: CalibrationOptions
) -> Resampled:
    """The certified statistic on the items of a mask; undefined where grades are compared in another way."""
    if panel.binary != entry.binary or primary_statistic(len(panel.grades)) != entry.statistic:
        ways = [_WAYS[binary] for binary in (entry.binary, panel.binary)]
        reason = f"certified by {entry.statistic} of grades {ways[0]}, compared {ways[1]} here"
        undefined = Estimate(value=None, low=None, high=None, n=0, topics=0, reason=reason)
        return Resampled(estimate=undefined, item=undefined, design_effect=None)
    rng = np.random.default_rng(options.seed)
    return resampled(entry.statistic, panel.tables(codes, mask), panel.grades, rng, replicates=options.replicates)


_WAYS = {True: "as positive or not", False: "as they are"}


def _against(panel: Panel, found: Estimate, worst: Estimate | None, missing: int, margin: float) -> tuple[str, ...]:
    """What keeps agreement from carrying whose interval lies above the margin."""
    reasons: list[str] = []
    if worst is not None and carry_word(worst, margin) != "CARRIES":
        grades = count(missing, "missing grade")
        reasons.append(f"with the {grades} at the far end of the scale {_where(worst, margin)}")
    if too_few(found.n, found.topics):
        reasons.append(least_to_accept(found.n, found.topics, panel.cluster))
    return tuple(reasons)


def _where(difference: Estimate, margin: float) -> str:
    """Where the interval of the difference lies, seen from the margin."""
    if difference.low is None or difference.high is None:
        return f"the difference has no interval ({difference.reason})"
    word = carry_word(difference, margin)
    text = f"the difference [{difference.low:.3f}, {difference.high:.3f}]"
    if word == "INCONCLUSIVE":
        return f"{text} has {-margin:g} inside"
    return f"{text} lies {'above' if word == 'CARRIES' else 'below'} {-margin:g}"


def _at_least(labels: float) -> int:
    """The fewest topics, with so many labels each, that a judge is accepted by."""
    return max(FEWEST_TOPICS, math.ceil(FEWEST_ITEMS / labels))


def _to_decide(there: Resampled, entry: Certified, margin: float) -> int | Undefined:
    """How many topics would decide it, or in words why none would or nobody can tell."""
    spread = spread_of(there.estimate, there.design_effect)
    if isinstance(spread, Undefined):
        return Undefined(f"how many labels would decide it is not known: {spread.reason}")
    needed = topics_to_decide(there.estimate, entry.estimate, spread, margin, _at_least(spread.labels))
    if isinstance(needed, Undefined):
        return Undefined(f"no number of labels here would decide it: {needed.reason}")
    return needed


def chosen_on_same_grades(entry: Certified) -> str | None:
    """That a choice flatters a certified value, in words; None where none does."""
    if entry.tried < 2 or entry.split == "test":
        return None
    return f"the certified judge was chosen among {entry.tried} on the same grades, so its value is too good"


class SecondYearDesign(NamedTuple):
    """New labels that show with probability .8 that unchanged agreement carries."""

    labels: float
    """Labels a topic."""
    topics: int | None
    """None where no number is enough."""
    reason: str | None


class SecondYearPlan(Record, frozen=True):
    """What a certificate's second year takes under one criterion."""

    criterion: str
    judge: str
    statistic: str
    margin: float
    certified: Estimate
    designs: tuple[SecondYearDesign, ...]
    reason: str | None = None
    """Why nothing is planned, or for one number of labels a topic alone."""
    caution: str | None = None
    """Why more labels may be needed than planned."""


def plan_second_year(entries: Sequence[Certified], margin: float) -> tuple[SecondYearPlan, ...]:
    """How many labels on how many topics each certified agreement takes."""
    return tuple(_planned(entry, margin) for entry in entries)


def _planned(entry: Certified, margin: float) -> SecondYearPlan:
    spread = spread_of(entry.estimate, entry.design_effect)
    designs: list[SecondYearDesign] = []
    reason: str | None = None
    if isinstance(spread, Undefined):
        reason = spread.reason
    else:
        sizes = {spread.labels}
        if entry.design_effect is None:
            reason = "the certificate is without a design effect, so the labels of a topic stay as many as there were"
        else:
            # Nothing shows how much alike more labels of a topic would be.
            sizes |= {float(labels) for labels in LABELS if labels < spread.labels}
        for labels in sorted(sizes):
            topics = topics_to_carry(entry.estimate, spread, margin, labels, _at_least(labels))
            if isinstance(topics, Undefined):
                designs.append(SecondYearDesign(labels, None, topics.reason))
            else:
                designs.append(SecondYearDesign(labels, topics, None))
    caution = chosen_on_same_grades(entry)
    if caution is not None:
        caution += ": less agreement is to be expected even where nothing changed, and more labels are needed"
    return SecondYearPlan(
        criterion=entry.criterion,
        judge=entry.judge,
        statistic=entry.statistic,
        margin=margin,
        certified=entry.estimate,
        designs=tuple(designs),
        reason=reason,
        caution=caution,
    )
