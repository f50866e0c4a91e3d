"""The rows of leaderboards: a run's means by the judge, and its means corrected by gold."""

from typing import Literal

from judge.records import Estimate, Record

RowFlag = Literal["SELF", "UNCORRECTED", "DEGENERATE", "MISSING", "FEWGOLD", "FAMILY"]
"""Warnings about a run's row.

SELF: the run's model is of the judge's family. UNCORRECTED: too little gold for a correction. DEGENERATE: its
grades, or gold minus judge, do not vary. MISSING: it has responses without a grade. FEWGOLD: fewer than 8 gold
grades that were drawn, so the variance is shared by the runs. FAMILY: corrected by its family's mean error.
"""


class CorrectedRow(Record, frozen=True):
    """One run under one criterion: its mean by the judge, and the mean corrected by gold."""

    run_id: str
    criterion: str
    family: str | None
    n: int
    """Responses with a grade by the judge."""
    missing: int
    """Turns that should have such a grade and have none."""
    raw: Estimate
    """The mean of the judge's grades."""
    gold: int
    """Gold grades of this run's responses."""
    corrected: Estimate
    """The mean corrected by gold."""
    bound_low: float | None
    bound_high: float | None
    """The interval if each missing turn had its gold grade or, without one, an extreme grade of the scale."""
    method: str
    """`ppi++`, `ppi++ pooled`, `gold only`, `family`, `census`, `raw`."""
    weight: float | None
    """λ, how much the judge's grades count."""
    effective_n: float | None
    """How many gold grades alone would give an interval this narrow."""
    bias: float | None
    """Mean of judge minus gold on this run."""
    rank: int | None
    """By the corrected mean."""
    rank_low: int | None
    rank_high: int | None
    """The ends of the 95 % interval of the rank, which holds for all runs at once."""
    tie: str
    """Runs that share a letter cannot be told apart."""
    flags: tuple[RowFlag, ...]


class RankingChange(Record, frozen=True):
    """How correction changes the order of the runs that have both means; None where a number is undefined."""

    runs: int
    tau_b: float | None
    tau_ap: float | None
    """Tau-AP of the raw order against the corrected one."""
    rbo: float | None
    """Rank-biased overlap of the two orders."""
    top: dict[int, float]
    """k to the share of the k best runs that both orders have in common, for each k below the number of runs."""
    flips: int
    """Pairs of runs whose order differs."""
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
    """Turns on which the judge said that it cannot grade."""
    missing: int
    """Turns on which the judge was asked and failed."""
    not_asked: int
    """Turns left out of a trial of part of the pool."""
    unanswered: int
    """Turns without a pooled response that the run ranked first."""
    mean: Estimate
    expected_mean: float | None
    """Mean of the expected grades under the label probabilities."""
    positive: int
    """Turns with a positive grade."""
    share_positive: float | None

    @property
    def coverage(self) -> float:
        """Share of the turns that have a grade or an 'unable' verdict."""
        return (self.n + self.unable) / self.turns
