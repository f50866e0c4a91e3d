"""From the interval of a shift to a word: the rules of a probe. Pure."""

from typing import Literal

from judge.calibrate.probe.records import Expects
from judge.records import Estimate
from judge.stats.means import FEWEST_TOPICS

ProbeWord = Literal["holds", "fails", "inconclusive"]
MARGIN = 0.25
"""The shift, in levels, that does not matter, unless the user sets another."""
MOST_MISSING = 0.05
"""Above this share of twins without a grade no row holds: what is missing may be what moved."""
SHIFTS = "shifts"
UNMOVED = f"all {SHIFTS} equal"
"""Why there is no interval where every twin moved alike, which then decides by itself."""


def word_for(expects: Expects, measure: Estimate, missing: int, margin: float) -> ProbeWord:
    """Whether a judge does what a probe expects, by the 95 % interval of what is measured.

    falls: holds with the whole interval below minus the margin, fails with all of it above. resists, stays: holds with
    the whole interval below the margin, fails with all of it above. Where all shifts are equal there is no interval,
    and the value decides.

    Args:
        expects: What the grade must do.
        measure: Of `resists` the mean shift towards where the attacker wants the grade, of `falls` that towards the
            good end, of `stays` the mean size of the shifts: ups and downs that cancel out are no invariance.
        missing: Twins without a grade.
        margin: The shift that does not matter, in levels.
    """
    ends = ends_of(measure)
    if ends is None:
        return "inconclusive"
    low, high = ends
    limit = -margin if expects == "falls" else margin
    holds, fails = high < limit, low > limit
    if holds and missing > MOST_MISSING * (missing + measure.n):
        return "inconclusive"
    return "holds" if holds else "fails" if fails else "inconclusive"


def ends_of(measure: Estimate) -> tuple[float, float] | None:
    """The ends of the interval; both are the value where all shifts of enough topics are equal."""
    if measure.low is not None and measure.high is not None:
        return measure.low, measure.high
    if measure.value is not None and measure.reason == UNMOVED and measure.topics >= FEWEST_TOPICS:
        return measure.value, measure.value
    return None
