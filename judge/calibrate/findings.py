"""The findings of a calibration: frozen records that `calibrate` makes and the reports show. Pure."""

from typing import Literal

import msgspec

from judge.records import Estimate
from judge.stats.comparison import JudgeDifference
from judge.stats.ranking import Halves
from judge.stats.raters import Comparison

Split = Literal["all", "dev", "test"]
"""A part of the gold; `all` where it is not split."""
Word = Literal["TRUSTED", "NOT TRUSTED", "INCONCLUSIVE"]
Equivalence = Literal["EQUIVALENT", "DIFFERENT", "INCONCLUSIVE"]
"""Whether a difference is smaller than a margin, in one word."""


def judge_name(judge: str, prompt: str | None) -> str:
    """Judge and variant, as one name; `prompt` is `criterion/variant`, None of labels that name none."""
    return judge if prompt is None else f"{judge} {prompt.partition('/')[2]}"


class JudgeRow(msgspec.Struct, frozen=True):
    """What the findings about one judge under one criterion on one split of the gold begin with."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None for a label file and for the constant."""
    criterion: str
    split: Split

    @property
    def name(self) -> str:
        """Judge and variant, as one name."""
        return judge_name(self.judge, self.prompt)


class AgreementRow(Comparison, frozen=True, kw_only=True):
    """How far one judge (b) agrees with the assessors (a) on the gold of a split; intervals are over topics.

    `statistics` are in the order of `STATISTICS` and then of `EXPECTED`. Labels of responses without gold are dropped,
    so that `only_b` is 0.
    """

    judge: str
    prompt: str | None
    """`criterion/variant`; None for a label file and for the constant."""
    criterion: str
    split: Split
    reference: str
    """Whose grades: an assessor, `consensus of at most 3`, or `assessors, one an item`."""
    baseline: bool
    without_grade: dict[str, int]
    """How many gold items have no grade by the judge, by reason: `unable`, that of a failure, `not_judged`."""
    worst_case: dict[str, float | None]
    """Statistics with every missing grade taken as the one farthest from the assessor's."""
    ceiling: Estimate | None
    """The primary statistic between the assessors themselves, where two or more graded the same items."""
    test_retest: Estimate | None
    """Krippendorff's ordinal alpha between the judge's own samples, where there are several."""
    primary: str
    """The statistic that verdicts and comparisons go by."""
    binary: bool = False
    """Grades are compared as positive or not, because scales differ."""
    tied: int = 0
    """Gold items on which no one grade is that of most assessors; tied grades share the item equally."""

    @property
    def name(self) -> str:
        """Judge and variant, as one name."""
        return judge_name(self.judge, self.prompt)

    @property
    def gold(self) -> int:
        """Gold items of the split."""
        return self.n + self.only_a

    @property
    def coverage(self) -> float:
        """The share of the gold items that the judge graded too."""
        return self.n / self.gold if self.gold else 0.0


class ComparisonRow(JudgeDifference, frozen=True, kw_only=True):
    """Two judges or prompts on the items that both graded."""

    criterion: str
    split: Split
    statistic: str


class Choice(msgspec.Struct, frozen=True):
    """Which candidate was chosen under a criterion, and how much the choice flatters its value."""

    criterion: str
    statistic: str
    tried: tuple[str, ...]
    """Every candidate, in natural order of its name."""
    chosen: str
    chosen_on: Split
    value: Estimate
    """The chosen candidate's statistic on the grades that it was chosen on: optimistic if several were tried."""
    test: Estimate | None
    """Its statistic on the test grades; None without a test split."""
    nested: float | None
    """The value with the choice repeated inside topic folds."""
    after_choice: Estimate | None
    """The value with an interval that holds for whichever candidate is chosen; None where there was no choice."""
    optimism: float | None
    """`value` minus `test`, or minus `nested` where there is no test split."""
    not_separable: tuple[str, ...]
    """Other candidates that may be the best: elimination leaves them at 5 %."""
    openings: int | None
    """How often sealed test grades have been opened for different questions; None if they are not sealed."""
    after_choice_worst: Estimate | None = None
    """`after_choice` with every missing grade at the one farthest from the assessor's; None if no grade is missing."""


class TrustVerdict(msgspec.Struct, frozen=True):
    """Whether a judge may be believed under a criterion."""

    criterion: str
    judge: str
    """Judge and variant."""
    prompt: str | None
    split: Split
    word: Word
    requirements: tuple[str, ...]
    """The rules, as they are written on the command line."""
    reasons: tuple[str, ...]
    """The interval that each rule met, and what else decided."""
    estimate: Estimate
    """The primary statistic, with the interval that a rule on it goes by."""
    statistic: str


class CalibrationMapRow(JudgeRow, frozen=True):
    """The mean grade of the assessors where the judge gives a certain grade."""

    grade: int
    n: int
    mean: float | None
    """The assessors' mean grade; None where the judge never gave this grade."""
    shrunken: float
    """The assessors' mean drawn to the line through all items, as if `weight` more items lay on it."""
    weight: float


class Slope(msgspec.Struct, frozen=True):
    """How judge minus assessor moves with a property of the response that should not matter."""

    judge: str
    criterion: str
    split: Split
    what: Literal["log2_words", "turn_depth"]
    """The property: length in words (log2), or the place of the turn."""
    slope: Estimate
    """Grades for each unit of the property."""


class FamilyContrast(msgspec.Struct, frozen=True):
    """Judge minus assessor on runs of one generator family, against all other runs."""

    judge: str
    criterion: str
    split: Split
    family: str
    is_self: bool
    runs: int
    mean: float
    """Mean of judge minus assessor over the family's runs, in grades."""
    contrast: Estimate
    """That mean minus the mean of the other runs."""


class SystemAgreement(JudgeRow, frozen=True):
    """The runs ranked by the judge against the runs ranked by the assessors, on the same items."""

    runs: int
    statistics: dict[str, Estimate]
    """By name, in the order of `SYSTEM`."""
    halves: Halves
    """The assessors' and the judge's tau-b from one half of the topics to the other."""


class PreferenceRow(JudgeRow, frozen=True):
    """How a judge of pairs prefers one response, beside the assessors."""

    statistics: dict[str, Estimate]
    """By name, in the order of `PREFERENCE`."""


class AlternativeRow(JudgeRow, frozen=True):
    """An `AlternativeTest` of one judge, or why there is none; its numbers are to be quoted together or not at all."""

    epsilon: float
    omega: float | None
    rho: float | None
    p_values: dict[str, float]
    rejected: dict[str, bool]
    n: dict[str, int]
    reason: str | None = None


class ProbabilityRow(JudgeRow, frozen=True):
    """How far a judge's label probabilities may be taken for probabilities."""

    statistics: dict[str, Estimate]
    """By name, in the order of `PROBABILITY`."""
    brier_of_shares: float
    """Brier's score of one forecast for all: the shares of the assessors' grades."""


class EquivalenceRow(msgspec.Struct, frozen=True):
    """Two judges on the items that both graded, or a judge and the assessors, by two one-sided tests."""

    criterion: str
    split: Split
    statistic: str
    """Key of `STATISTICS`."""
    a: str
    b: str
    """A judge, or `assessors`."""
    difference: Estimate
    """a minus b, with a 90 % interval."""
    margin: float
    word: Equivalence


class Looks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often the sealed grades behind a verdict were looked at, according to their ledger."""

    criterion: str
    number: int
    """Lines of the ledger: different questions to the grades, this calibration's included."""
    candidates: int
    """Different candidates under the criterion in all of these questions."""
    head: str
    """SHA-256 of the ledger's last line."""


class Calibration(msgspec.Struct, frozen=True):
    """All findings of `judge calibrate`."""

    agreement: tuple[AgreementRow, ...]
    comparisons: tuple[ComparisonRow, ...]
    selections: tuple[Choice, ...]
    verdicts: tuple[TrustVerdict, ...]
    calibration_map: tuple[CalibrationMapRow, ...]
    slopes: tuple[Slope, ...]
    families: tuple[FamilyContrast, ...]
    systems: tuple[SystemAgreement, ...]
    alternative: tuple[AlternativeRow, ...]
    warnings: tuple[str, ...]
    """What a reader must know before any number; printed in every output."""
    preferences: tuple[PreferenceRow, ...] = ()
    probabilities: tuple[ProbabilityRow, ...] = ()
    equivalence: tuple[EquivalenceRow, ...] = ()
    looks: tuple[Looks, ...] = ()
    """By criterion; empty where no sealed grades were opened."""
    cluster: Literal["theme"] | msgspec.UnsetType = msgspec.UNSET
    """What intervals and tests are over if it is not topics."""
