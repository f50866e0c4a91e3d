"""The verdict on a judge: by the end of an interval, never by a point estimate."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from judge.calibrate.findings import AgreementRow, Choice, TrustVerdict, Word
from judge.calibrate.panel import GradeCodes, Panel
from judge.errors import UsageError
from judge.records import Estimate
from judge.stats.agreement import STATISTICS

DEFAULT_THRESHOLD = 0.4
"""The default bound: above it, agreement beyond chance is more than fair.

J. R. Landis & G. G. Koch (1977), Biometrics 33(1), 159-174.
"""
_RULE = re.compile(r"\s*([a-z_0-9]+)\s*\.\s*(lo|hi)\s*(>=|<=)\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*")
_TOO_FEW = "chosen on the same grades, and too few topics"
_POINT = re.compile(r"\s*([a-z_0-9]+)\s*(?:>=|<=|>|<|=)")


class Requirement(msgspec.Struct, frozen=True):
    """A bound that one end of an interval must keep."""

    statistic: str
    end: Literal["lo", "hi"]
    bound: float

    def __str__(self) -> str:
        """The rule as it is written on the command line."""
        return f"{self.statistic}.{self.end}{'>=' if self.end == 'lo' else '<='}{self.bound:.15g}"


def parse_requirement(text: str) -> Requirement:
    """Read a rule such as `wkappa.lo>=0.4` or `bias.hi<=0.3`.

    A UsageError if the text is not a rule, names no statistic, or bounds a point estimate.
    """
    match = _RULE.fullmatch(text)
    if not match:
        hint = "; a point estimate is no gate: use its lower end" if _POINT.match(text) else ""
        raise UsageError(f"requirement {text!r}: expected STATISTIC.lo>=NUMBER or STATISTIC.hi<=NUMBER{hint}")
    statistic, end, sign, number = match.groups()
    if statistic not in STATISTICS:
        raise UsageError(f"requirement {text!r}: no statistic {statistic!r}, there are {', '.join(STATISTICS)}")
    if (end, sign) not in (("lo", ">="), ("hi", "<=")):
        raise UsageError(f"requirement {text!r}: expected .lo>= or .hi<=, the end that can fail")
    return Requirement(statistic, "lo" if end == "lo" else "hi", float(number))


def rules_of(requirements: Sequence[Requirement], primary: str) -> tuple[Requirement, ...]:
    """The requirements; if there are none, `DEFAULT_THRESHOLD` for the lower end of the primary statistic."""
    return tuple(requirements) or (Requirement(primary, "lo", DEFAULT_THRESHOLD),)


def verdict(
    row: AgreementRow,
    requirements: Sequence[Requirement],
    made: Sequence[str],
    choice: Choice | None,
    worst: Mapping[Requirement, Estimate],
) -> TrustVerdict:
    """The verdict: TRUSTED if every requirement is met, NOT TRUSTED if one is clearly failed, else INCONCLUSIVE.

    A rule `x.lo>=b` is met where the interval lies above b, failed where it lies below, and open where b is
    inside. Where a judge was chosen among several on these very grades, the primary statistic goes by the interval
    that allows for the choice. Only blind grades by people can make a judge trusted. `worst` has the statistic of each
    requirement with missing grades at their worst; it is empty if no grade is missing.
    """
    reused = choice if choice and choice.chosen_on == row.split and len(choice.tried) > 1 else None
    words: list[Word] = []
    reasons: list[str] = []
    deciding = row.statistics[row.primary]
    for rule in requirements:
        estimate, after = row.statistics[rule.statistic], ""
        if rule.statistic == row.primary and reused:
            estimate = reused.after_choice or replace(estimate, low=None, high=None, reason=_TOO_FEW)
            after, deciding = f" after choosing among {len(reused.tried)} on the same grades", estimate
        word = word_of_rule(rule, estimate)
        if reused and rule.statistic != row.primary and word == "TRUSTED":
            # The choice looked at these very grades, and no interval of this statistic allows for it.
            word, after = "INCONCLUSIVE", ", but the judge was chosen on the same grades"
        words.append(word)
        reasons.append(f"{rule}: {_shown(estimate)}{after}")
        if reused and rule.statistic == row.primary and reused.after_choice_worst is not None:
            words.append(_not_worse(word_of_rule(rule, reused.after_choice_worst)))
            worst_choice = f"{_shown(reused.after_choice_worst)}{after}"
            # Where only other candidates miss grades, the two intervals are the same.
            if f"{rule}: {worst_choice}" != reasons[-1]:
                reasons.append(f"{rule}: {worst_choice}, missing grades at the far end of the scale")
        elif rule in worst:
            words.append(_not_worse(word_of_rule(rule, worst[rule])))
            reasons.append(
                f"{rule}: {_shown(worst[rule])} with the {row.gold - row.n} missing grades at the far end of the scale"
            )
    if not_blind := [way for way in made if way != "blind"]:
        words.append("INCONCLUSIVE")
        reasons.append(f"gold made by {', '.join(not_blind)}: only grades given blind can make a judge trusted")
    result: Word = "NOT TRUSTED" if "NOT TRUSTED" in words else "INCONCLUSIVE" if "INCONCLUSIVE" in words else "TRUSTED"
    about = row.criterion, row.name, row.prompt, row.split, result, tuple(map(str, requirements))
    return TrustVerdict(*about, tuple(reasons), deciding, row.primary)


def worst_codes(panel: Panel, codes: GradeCodes, rule: Requirement) -> GradeCodes:
    """The codes, with every missing grade replaced by the one that is worst for the requirement."""
    if STATISTICS[rule.statistic].signed:
        return np.where(codes < 0, 0 if rule.end == "lo" else len(panel.grades) - 1, codes)
    return panel.farthest(codes)


def word_of_rule(rule: Requirement, estimate: Estimate) -> Word:
    """TRUSTED where the interval keeps the bound, NOT TRUSTED where it lies beyond, else INCONCLUSIVE."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return "INCONCLUSIVE"
    met, failed = (low >= rule.bound, high < rule.bound) if rule.end == "lo" else (high <= rule.bound, low > rule.bound)
    return "TRUSTED" if met else "NOT TRUSTED" if failed else "INCONCLUSIVE"


def _not_worse(word: Word) -> Word:
    """A verdict from missing grades at their worst: they can leave it open, but are no evidence against a judge."""
    return "INCONCLUSIVE" if word == "NOT TRUSTED" else word


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined ({estimate.reason})"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f} without an interval ({estimate.reason})"
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"
