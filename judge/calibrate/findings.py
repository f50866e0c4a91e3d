"""What a calibration finds: the records between `calibrate`, `corrected` and the reports; frozen. Pure."""

from typing import Literal

import msgspec

from judge.records import Estimate
from judge.stats.comparison import Comparison
from judge.stats.marginals import MarginalTest

Split = Literal["all", "dev", "test"]
Word = Literal["TRUSTED", "NOT TRUSTED", "INCONCLUSIVE"]


class AgreementRow(msgspec.Struct, frozen=True):
    """One judge under one criterion on one split of the gold; intervals are over topics."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None for a label file and for the constant predictor."""
    criterion: str
    split: Split
    reference: str
    """Whose grades: an assessor, `consensus of at most 3`, or `assessors, one an item`."""
    baseline: bool
    """A baseline, which nobody would deploy."""
    gold: int
    """Gold grades there are."""
    n: int
    """How many of them the judge graded too; the statistics are about these."""
    topics: int
    coverage: float
    without_grade: dict[str, int]
    """Why gold items have no grade by the judge: `unable`, a failure's reason, `not_judged`; with counts."""
    statistics: dict[str, Estimate]
    """By name: those of `STATISTICS`, then those of `EXPECTED`."""
    item: dict[str, Estimate]
    """The same with intervals that ignore topics."""
    design_effect: dict[str, float | None]
    worst_case: dict[str, float | None]
    """Statistics with every grade that is not there taken as the one farthest from the assessor's."""
    confusion: tuple[tuple[int, ...], ...]
    """Assessors' grades in rows, the judge's in columns, both over `grades`."""
    grades: tuple[int, ...]
    marginals: tuple[MarginalTest, ...]
    ceiling: Estimate | None
    """The primary statistic between the assessors themselves, where two or more graded the same items."""
    test_retest: Estimate | None
    """Krippendorff's ordinal alpha between the judge's own samples, where there are several."""
    primary: str
    """The statistic that verdicts and comparisons go by."""
    binary: bool = False
    """Grades are compared as positive or not, because scales differ."""

    @property
    def name(self) -> str:
        """Judge and variant, as one name."""
        return self.judge if self.prompt is None else f"{self.judge} {self.prompt.partition('/')[2]}"


class ComparisonRow(Comparison, frozen=True, kw_only=True):
    """Two judges or prompts on the items that both graded."""

    criterion: str
    split: Split
    statistic: str


class Choice(msgspec.Struct, frozen=True):
    """Which candidate was chosen under a criterion, and what that choice costs in honesty."""

    criterion: str
    statistic: str
    tried: tuple[str, ...]
    """Every candidate, in natural order of its name."""
    chosen: str
    chosen_on: Split
    value: Estimate
    """On the grades that it was chosen on: optimistic if several were tried."""
    test: Estimate | None
    """On the test grades; None without a test split."""
    nested: float | None
    """With the choice repeated inside topic folds."""
    out_of_bag: Estimate | None
    """The interval of choosing on resampled topics and scoring on the others; conservative."""
    optimism: float | None
    """`value` minus `test`, or minus `nested` where there is no test split."""
    not_separable: tuple[str, ...]
    """Candidates that max-T cannot tell from the chosen one at 5 %."""
    openings: int | None
    """How often sealed test grades have been opened for different questions; None if they are not sealed."""
    out_of_bag_worst: Estimate | None = None
    """The same with every grade that is not there at the one farthest from the assessor's; None if none is missing."""


class TrustVerdict(msgspec.Struct, frozen=True):
    """May this judge be believed under this criterion?"""

    criterion: str
    judge: str
    """Judge and variant."""
    prompt: str | None
    split: Split
    word: Word
    requirements: tuple[str, ...]
    reasons: tuple[str, ...]
    estimate: Estimate
    """The primary statistic, with the interval that a rule on it goes by."""
    statistic: str


class CalibrationMapRow(msgspec.Struct, frozen=True):
    """What assessors give, on average, where the judge gives one grade."""

    judge: str
    prompt: str | None
    criterion: str
    split: Split
    grade: int
    n: int
    mean: float | None
    """The assessors' mean grade; None where the judge never gave this grade."""
    shrunken: float
    """The mean drawn to the line through all items, as if `weight` more items lay on it."""
    weight: float


class ExpectedLine(msgspec.Struct, frozen=True):
    """How assessors' grades follow the judge's expected grade, where it gives label probabilities."""

    judge: str
    prompt: str | None
    criterion: str
    split: Split
    intercept: float
    slope: Estimate
    """Of assessor on expected grade; 1 with intercept 0 needs no correction."""
    error_grade: float
    """Mean distance of the judge's grade from the assessor's."""
    error_expected: float
    """That of the expected grade."""
    error_line: float | None
    """That of the line, each topic predicted from the others."""


class Slope(msgspec.Struct, frozen=True):
    """How judge minus assessor moves with something that should not matter."""

    judge: str
    criterion: str
    split: Split
    what: Literal["log2_words", "turn_depth"]
    slope: Estimate


class FamilyContrast(msgspec.Struct, frozen=True):
    """Judge minus assessor on runs of one generator family, against all other runs."""

    judge: str
    criterion: str
    split: Split
    family: str
    is_self: bool
    runs: int
    mean: float
    """Mean over the family's runs of judge minus assessor."""
    contrast: Estimate
    """That mean minus the one of the other runs."""


class SystemAgreement(msgspec.Struct, frozen=True):
    """The runs ranked by the judge against the runs ranked by the assessors, on the same items."""

    judge: str
    prompt: str | None
    criterion: str
    split: Split
    runs: int
    statistics: dict[str, Estimate]
    """By name, those of `SYSTEM`."""


class AlternativeRow(msgspec.Struct, frozen=True):
    """The alternative annotator test of one judge; never to be quoted without all of its numbers."""

    judge: str
    prompt: str | None
    criterion: str
    split: Split
    epsilon: float
    omega: float | None
    rho: float | None
    p_values: dict[str, float]
    rejected: dict[str, bool]
    n: dict[str, int]
    reason: str | None = None


class Calibration(msgspec.Struct, frozen=True):
    """Everything `judge calibrate` found."""

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
    expected: tuple[ExpectedLine, ...] = ()
