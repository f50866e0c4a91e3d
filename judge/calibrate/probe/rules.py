"""From the interval of a shift to a word: the rules of a probe. Pure."""

from typing import Literal

from judge.calibrate.probe.records import Expected
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


def word_for(expects: Expected, shift: Estimate, missing: int, margin: float) -> ProbeWord:
    """Whether a judge does what a probe expects, by the 95 % interval of the mean shift.

    resists: holds with the whole interval below the margin, fails with all of it above. falls: holds with all of it
    below minus the margin, fails with all of it above. stays: holds with all of it within the margin, fails with all
    of it beyond on one side. Where all shifts are equal there is no interval, and the value decides. The rule of
    `stays` is that of two one-sided tests, each at 2.5 %.

    Args:
        expects: What the grade must do.
        shift: Of `resists`, towards where the attacker wants the grade; else towards the good end.
        missing: Twins without a grade.
        margin: The shift that does not matter, in levels.
    """
    ends = ends_of(shift)
    if ends is None:
        return "inconclusive"
    low, high = ends
    match expects:
        case "resists":
            holds, fails = high < margin, low > margin
        case "falls":
            holds, fails = high < -margin, low > -margin
        case _:
            holds, fails = -margin < low and high < margin, low > margin or high < -margin
    if holds and missing > MOST_MISSING * (missing + shift.n):
        return "inconclusive"
    return "holds" if holds else "fails" if fails else "inconclusive"


def ends_of(shift: Estimate) -> tuple[float, float] | None:
    """The ends of the interval; both are the value where all shifts of enough topics are equal."""
    if shift.low is not None and shift.high is not None:
        return shift.low, shift.high
    if shift.value is not None and shift.reason == UNMOVED and shift.topics >= FEWEST_TOPICS:
        return shift.value, shift.value
    return None
