"""The rows of boards: a run under a measure, by the judge and corrected by gold; and the words beside them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from judge.io.ids import Cluster, cluster_of, natural_key
from judge.io.words import COPIED_RUN
from judge.records import Criterion, Estimate, Record
from judge.stats.correction import Corrected
from judge.stats.means import mean_interval
from judge.stats.separation import FEWEST_TOPICS_APART, Place, shared_ranks
from judge.units import UNITS
from judge.units.unit import Nouns, Unit

RowFlag = Literal[
    "SELF", "UNCORRECTED", "DEGENERATE", "MISSING", "UNREACHED", "HARNESS", "TRIAL", "SHORT", "OWNTEXT", "RECITES",
    "FEWGOLD", "FAMILY",
]  # fmt: skip


def flag_meanings(nouns: Nouns) -> dict[RowFlag, str]:
    """What each warning about a run's row means, in the order in which they are given."""
    turns = nouns.turns
    return {
        "SELF": "the run's model is of the judge's family",
        "UNCORRECTED": "too little gold for a correction",
        "DEGENERATE": "its gold, or gold minus judge, shows no variation, or the correction leaves the scale; the "
        "interval is Clopper and Pearson's",
        "MISSING": f"{turns} without a grade count against the run in its bound and its rank",
        "UNREACHED": "topics that a run never reached have the worst grade in its bound and its rank",
        "HARNESS": "the provider failed, the server cut a prompt or the budget was spent; the same command asks again, "
        "and ranks may change",
        "TRIAL": f"only a part of its {nouns.responses} was asked about",
        "SHORT": f"less than two thirds of the {turns} that others have in the same topics; where two or more others "
        f"reached a topic, the {turns} that it lacks of the shortest conversation without such a lack count as "
        "unanswered",
        "OWNTEXT": "grades rest on passage texts that the run brought itself and nobody compared with the collection; "
        "--passages shows the collection's own",
        "RECITES": f"{nouns.responses} share {COPIED_RUN} words in a row with the judge's prompt that no passage of "
        "theirs has",
        "FEWGOLD": "fewer than 8 gold grades that were drawn, not certain: too few for a variance of its own",
        "FAMILY": "corrected by the mean error in its family of runs",
    }


def corrected_flag_meanings(nouns: Nouns) -> dict[RowFlag, str]:
    """The same of a row corrected by gold."""
    turns = nouns.turns
    return flag_meanings(nouns) | {
        "MISSING": f"{turns} without a grade by the judge, which the means are not over and which count against the "
        f"run in its bound and its rank; runs are told apart only where they differ without such {turns} too, unless "
        "the lack is the run's own doing"
    }


class UnitKey(Record, frozen=True, gc=False):
    """What a run gave in a turn, as boards name it: a response, a dialogue, or all that it cited or compared there."""

    response_id: str
    turn_id: str
    topic_id: str
    passages: tuple[str, ...] = ()
    """Keys of the passages that it used."""


class Score(Record, frozen=True, omit_defaults=True):
    """A run under a criterion or another measure, or under a part of one."""

    run_id: str
    criterion: str
    """The criterion or measure."""
    mean: Estimate
    """Over the units, turns or topics, in which the run has a value."""
    part: str = ""
    """A label of sentences, a measure of passages, a topic; empty for the whole."""
    bound: float | None = None
    """Over all units, where one counts as the worst if the lack of its value counts against the run."""
    place: Place | None = None
    """By the bound; None where nothing was asked about the run."""
    counts: Mapping[str, int] = {}
    """How many units, and what became of them."""
    reasons: Mapping[str, int] = {}
    """Why values are missing, with counts."""
    flags: tuple[RowFlag, ...] = ()
    more: Mapping[str, Any] = {}
    """What is said beside the mean, by name; what has nothing to say is left out."""
    values: Mapping[str, float] = {}
    """Of measures by grades of strangers: turn to its value, in natural order."""
    raw: "Score | None" = None
    """Of a run corrected by gold: the score before."""
    cluster: Cluster = "topic"
    """What the interval is over, and what is counted as topics."""

    @property
    def rank(self) -> int | None:
        """By the bound; equal bounds share a rank."""
        return self.place.rank if self.place else None

    @property
    def ranks(self) -> str:
        """The ranks that the run may have; empty with too few topics."""
        return "" if self.place is None or self.place.low is None else f"{self.place.low}-{self.place.high}"

    @property
    def few_topics(self) -> str | None:
        """Why it has a rank, but no letters and no interval of the rank; None where it has them, or no rank.

        `more` has the number of topics of equal size that its place rests on.
        """
        return too_few_topics(self.more["topics"], self.cluster) if self.place and not self.ranks else None


def estimate_of(corrected: Corrected, topics: int, n: int | None = None) -> Estimate:
    """A corrected mean as an estimate of `n` items, by default of its gold, on so many topics."""
    return Estimate(
        value=corrected.value,
        low=corrected.low,
        high=corrected.high,
        n=corrected.n if n is None else n,
        topics=topics,
        reason=corrected.reason,
    )


def over_all(total: float, asked: int, left_out: int, unanswered: int, worst: float) -> float | None:
    """The mean over all units of a run; None if none of those that it answered was asked about.

    Those left out count as the asked ones do on average, unanswered ones as the worst. `total`: of the asked ones.

    >>> over_all(3.0, asked=2, left_out=1, unanswered=1, worst=0)
    1.125
    """
    answered = asked + left_out
    if answered and not asked:
        return None
    return math.fsum([total * answered / asked if asked else 0.0, unanswered * worst]) / (answered + unanswered)


def ranked(scores: Sequence[Score], *, higher_is_better: bool = True) -> list[Score]:
    """The runs under one measure by bound, each with its rank; those without a bound have none and come last."""
    ranks = shared_ranks([score.bound for score in scores], higher_is_better=higher_is_better)
    placed = []
    for score, rank in zip(scores, ranks, strict=True):
        place = None if rank is None else Place(rank=rank, low=None, high=None, letters="")
        placed.append(replace(score, place=place))
    return sorted(placed, key=lambda score: (score.rank is None, score.rank or 0, natural_key(score.run_id)))


def mean_over(
    values: Iterable[tuple[str, float]], cluster: Cluster, bounds: tuple[float, float] | None, what: str = "grades"
) -> Estimate:
    """The mean of values, each of a topic id, with its interval over topics or themes."""
    pairs = list(values)
    clusters = [cluster_of(topic_id, cluster) for topic_id, _ in pairs]
    return mean_interval([value for _, value in pairs], clusters, bounds=bounds, what=what)


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


class RunDifference(Record, frozen=True, omit_defaults=True):
    """Two runs under one criterion, on the turns that are graded for both.

    A turn whose grade is missing through the run's own doing is graded as the worst one.
    """

    criterion: str
    run_a: str
    run_b: str
    difference: Estimate
    """The mean of run_a less that of run_b, with the interval of this pair alone; n counts the turns."""
    p: float | None
    """The p-value of this pair alone; None without enough topics."""
    p_adjusted: float | None
    """Adjusted for all pairs of runs."""
    cluster: Cluster = "topic"
    """The unit of the test, and what is counted as topics."""
    if_worst: "RunDifference | None" = None
    """The same if each missing grade that counts in a rank were the worst one; None where no run has such a turn."""

    @property
    def at_worst(self) -> "RunDifference":
        """The difference if each missing grade were the worst one."""
        return self.if_worst or self


def folder_unit(criteria: Sequence[Criterion]) -> Unit:
    """What a folder's boards are over, by the prompts of its judgments."""
    return UNITS[UNITS[criteria[0].unit].boards] if criteria else UNITS["response"]


def flag_lines(rows: Iterable[Score], meanings: Mapping[RowFlag, str]) -> list[str]:
    """The meaning of each flag in the rows."""
    used = {flag for row in rows for flag in row.flags}
    return [f"{flag}: {meaning}" for flag, meaning in meanings.items() if flag in used]


def too_few_topics(topics: float, cluster: Cluster) -> str:
    """Why there are no tie letters and no rank intervals, where the topics count as so many of equal size.

    >>> too_few_topics(7.98, "topic")
    'no run is told apart from another, since that needs 8 topics of equal size; these count as 7.9'
    """
    # Rounded, 7.98 would be the number that is needed.
    count = math.floor(10 * topics) / 10
    return (
        f"no run is told apart from another, since that needs {FEWEST_TOPICS_APART} {cluster}s of equal size; these "
        f"count as {count:.1f}"
    )


def noted(reason: str | None, cluster: Cluster) -> str | None:
    """The note of a line: why a number is missing, and by what the line is clustered unless it is by topic."""
    return reason if cluster == "topic" else "; ".join(filter(None, (reason, f"clustered by {cluster}")))
