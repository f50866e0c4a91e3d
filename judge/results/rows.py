"""The rows of leaderboards: what the judge says of a run, and what gold says of it."""

from typing import Literal

from judge.records import Estimate, Record

RowFlag = Literal["SELF", "UNCORRECTED", "DEGENERATE", "MISSING", "FEWGOLD", "FAMILY"]
"""What to know about a run's row.

SELF: the run's model is of the judge's family. UNCORRECTED: too little gold for a correction. DEGENERATE: its
grades, or gold minus judge, do not vary. MISSING: it has responses without a grade. FEWGOLD: fewer than 8 gold
grades that were drawn, so the variance is shared by the runs. FAMILY: corrected by its family's mean error.
"""


class CorrectedRow(Record, frozen=True):
    """One run under one criterion: what the judge says, and what gold says the judge should have said."""

    run_id: str
    criterion: str
    family: str | None
    n: int
    """Responses with a grade by the judge."""
    missing: int
    """Responses that should have one and have none."""
    raw: Estimate
    gold: int
    """Gold grades of this run's responses."""
    corrected: Estimate
    bound_low: float | None
    bound_high: float | None
    """The interval with every missing response at the scale's ends; equal to it where none is missing."""
    method: str
    """`ppi++`, `ppi++ pooled`, `gold only`, `family`, `census`, `raw`."""
    weight: float | None
    """λ, how much the judge's grades count."""
    effective_n: float | None
    """How many gold grades alone would give an interval this narrow."""
    bias: float | None
    """Mean of judge minus gold on this run."""
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    tie: str
    """Runs that share a letter cannot be told apart."""
    flags: tuple[RowFlag, ...]


class RankingChange(Record, frozen=True):
    """How correction changes the order of the runs that have both means; None where a number is undefined."""

    runs: int
    tau_b: float | None
    tau_ap: float | None
    """Of the raw order, against the corrected one."""
    rbo: float | None
    top: dict[int, float]
    """Share of the k best in common, for those k that are fewer than the runs."""
    flips: int
    pairs: int


class LeaderboardRow(Record, frozen=True):
    """One run under one criterion."""

    run_id: str
    criterion: str
    turns: int
    """Turns that the run had to answer; the five counts below add up to it."""
    n: int
    """Turns with a grade."""
    unable: int
    missing: int
    """Turns that the judge was asked about and has given no verdict on."""
    not_asked: int
    """Turns left out of a trial of part of the pool."""
    unanswered: int
    """Turns without a pooled response that the run ranked first."""
    mean: Estimate
    expected_mean: float | None
    positive: int
    share_positive: float | None

    @property
    def coverage(self) -> float:
        """Share of the turns that have a grade or an 'unable' verdict."""
        return (self.n + self.unable) / self.turns
