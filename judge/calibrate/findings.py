"""What `calibrate` is told, and the findings that it makes and the reports show: frozen records. Pure."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from judge.records import Estimate
from judge.stats.comparison import JudgeDifference
from judge.stats.means import FEWEST_TOPICS, ONE_TOPIC
from judge.stats.noninferiority import CarryWord
from judge.stats.raters import Comparison

Split = Literal["all", "dev", "test"]
"""A part of the gold; `all` where it is not split."""
Word = Literal["TRUSTED", "NOT TRUSTED", "INCONCLUSIVE"]
Equivalence = Literal["EQUIVALENT", "DIFFERENT", "INCONCLUSIVE"]
"""Whether a difference is smaller than a margin, in one word."""


def judge_name(judge: str, prompt: str | None) -> str:
    """Judge and variant, as one name; `prompt` is `criterion/variant`, None of labels that name none."""
    return judge if prompt is None else f"{judge} {prompt.partition('/')[2]}"


class Requirement(msgspec.Struct, frozen=True):
    """A bound that one end of an interval must keep."""

    statistic: str
    end: Literal["lo", "hi"]
    bound: float

    def __str__(self) -> str:
        """The rule as it is written on the command line."""
        return f"{self.statistic}.{self.end}{'>=' if self.end == 'lo' else '<='}{self.bound:.15g}"


class CalibrationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a calibration is done."""

    requirements: tuple[Requirement, ...] = ()
    """What a judge must meet; the default rule if there are none."""
    seed: int = 2023
    replicates: int = 2000
    """Resamples under each interval."""
    permutations: int = 10_000
    """Exchanges for each comparison."""
    epsilon: float = 0.2
    """The handicap in the alternative annotator test for a person's cost: .2 expert, .15 skilled, .1 crowd."""
    margin: float | None = None
    """The difference of the primary statistic that does not matter; None leaves equivalence out."""
    families: Mapping[str, str] = {}
    """The family of models behind each run id or judge."""
    openings: int | None = None
    """For how many different questions the sealed test grades have been opened; None if they are not sealed."""


FindingFact = int | float | str | bool | None
"""A name or a number without an interval."""


class FindingRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding says of one judge under one criterion on one split of the gold."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None for a label file and for the constant."""
    criterion: str
    split: Split
    facts: dict[str, FindingFact] = {}
    """By name; what a row is about, and numbers without an interval."""
    statistics: dict[str, Estimate] = {}
    """By name."""

    @property
    def name(self) -> str:
        """Judge and variant, as one name."""
        return judge_name(self.judge, self.prompt)

    def number(self, name: str) -> float | None:
        """A fact that is a number; None without one."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) else None


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
    """Whose grades: an assessor, `consensus of up to 3 assessors`, or `assessors, one an item`."""
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
    """What decided: the intervals of the rules, but those that were met only where the judge is trusted."""
    estimate: Estimate
    """The primary statistic, with the interval that a rule on it goes by."""
    statistic: str


class Looks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often the sealed grades behind a verdict were looked at, according to their ledger."""

    criterion: str
    number: int
    """Lines of the ledger: different questions to the grades, this calibration's included."""
    candidates: int
    """Different candidates under the criterion in all of these questions."""
    head: str
    """SHA-256 of the ledger's last line."""


WORDS = "words"
OVERLAP = "overlap with passages"
GRADES = "the judge's grades"
"""What responses are set against those labeled before by."""
SupportWord = Literal["WITHIN", "OUTSIDE", "UNKNOWN"]
"""Whether responses are like those that people labeled before, in one word."""


class SupportRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One measure of responses, set against those labeled before."""

    measure: str
    low: float
    high: float
    """The range of the labeled responses, from the 1st to the 99th percentile, or of the judge's grades of these."""
    beyond: Estimate
    """The share of the responses here that lie beyond it, with its 95 % interval over topics."""
    most: float
    """The share beyond that is still like the labeled ones."""

    @property
    def is_outside(self) -> bool:
        """Whether more lie beyond than may, by the lower end; by the share itself where topics do not differ."""
        share = self.beyond
        if share.low is not None:
            return share.low > self.most
        return share.value is not None and share.value > self.most and not self.is_of_few_topics

    @property
    def is_of_few_topics(self) -> bool:
        """Whether too few topics are behind the share for an interval."""
        return self.beyond.topics < FEWEST_TOPICS or self.beyond.reason == ONE_TOPIC


class LabeledSupport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether responses are like those that people labeled before."""

    word: SupportWord
    rows: tuple[SupportRow, ...]
    reason: str | None = None
    """Why it is not known."""


class Carried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a certificate's agreement holds on other topics."""

    criterion: str
    certificate: str
    """Its digest."""
    date: str
    """Its date."""
    verdict: Word
    """What it says of the judge."""
    statistic: str
    margin: float
    """How much less agreement does not matter."""
    word: CarryWord
    reasons: tuple[str, ...]
    """What decided, or why nothing could."""
    certified: Estimate
    found: Estimate
    """The statistic on the new topics."""
    difference: Estimate
    """`found` less `certified`."""
    worst: Estimate | None
    """The same with missing grades at the far end of the scale; None where none is missing."""
    shared: tuple[str, ...]
    """New topics that the certificate has too, and that are left out."""
    topics_needed: int | None
    """New topics that would decide it, those at hand included; None where it is decided, or no number would."""
    labels_needed: int | None
    """Labels on them, as many a topic as now."""
    support: LabeledSupport


class Calibration(msgspec.Struct, frozen=True):
    """All findings of `judge calibrate`."""

    agreement: tuple[AgreementRow, ...]
    comparisons: tuple[ComparisonRow, ...]
    selections: tuple[Choice, ...]
    verdicts: tuple[TrustVerdict, ...]
    findings: dict[str, tuple[FindingRow, ...]]
    """By name, in the order of `FINDINGS`."""
    warnings: tuple[str, ...]
    """What a reader must know before any number; printed in every output."""
    looks: tuple[Looks, ...] = ()
    """By criterion; empty where no sealed grades were opened."""
    cluster: Literal["theme"] | msgspec.UnsetType = msgspec.UNSET
    """What intervals and tests are over if it is not topics."""
    carried: tuple[Carried, ...] | msgspec.UnsetType = msgspec.UNSET
    """By criterion, whether an earlier certificate's agreement holds; left out where none was given."""
