"""How well each run's used passages bear out its sentences, by a checker: citation precision and recall. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from judge.ask.records import Failure, Judgment
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Estimate, Record
from judge.results.rows import noted
from judge.results.turns import TurnGrade, run_turns
from judge.stats.means import mean_interval
from judge.text.ids import Cluster, cluster_of
from judge.text.table import Table, sequence
from judge.text.tsv import tsv

COLUMNS = ("run_id", "criterion", "measure", "responses", "mean", "low", "high", "topics", "note")
MEASURES = ("precision", "recall")


class CitationRow(Record, frozen=True):
    """One measure of one run."""

    run_id: str
    criterion: str
    measure: str
    """precision: the share of a response's used passages that support a sentence. recall: the share of its sentences
    that some used passage supports; sentences that claim nothing are left out."""
    mean: Estimate
    """Over the graded responses of which a checker says which passage supports which sentence."""
    cluster: Cluster = "topic"
    """What the interval is over, and what is counted as topics."""


def citation_rows(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    *,
    expected: Mapping[str, Collection[str]] | None = None,
    cluster: Cluster = "topic",
) -> Table[CitationRow]:
    """Two rows for each criterion and run that a checker judged: runs in natural order, precision first.

    The measures are those of ALCE (Gao et al. 2023, EMNLP), with the passage as the unit of a citation: runs say which
    passages a response used, and not for which sentence.

    Args:
        pool: As for `leaderboard`.
        results: As for `leaderboard`.
        criteria: As for `leaderboard`.
        expected: As for `leaderboard`.
        cluster: What the intervals are over.
    """
    results = sequence(results)
    return Table(
        CitationRow(
            run.run_id,
            criterion.name,
            measure,
            mean_interval(
                [scores(response, given, criterion)[at] for response, given in told],
                [cluster_of(response.topic_id, cluster) for response, _ in told],
                bounds=(0, 1),
                what="shares",
            ),
            cluster,
        )
        for criterion in criteria
        if criterion.answer == "sentences"
        for run in run_turns(pool, results, criterion, expected)
        if (told := [entry for entry in run.graded if _tells(*entry)])
        for at, measure in enumerate(MEASURES)
    )


def _tells(response: PooledResponse, given: TurnGrade) -> bool:
    """Whether a judgment says which passages support which sentences, as it would of any response.

    The checker of a cascade tells it only of the responses that it is sure of, and those say nothing of the others.
    """
    return bool(given.support and response.passages) and given.cascade is None


def scores(response: PooledResponse, given: TurnGrade | Judgment, criterion: Criterion) -> tuple[float, float]:
    """Precision and recall of one response; it has used passages and a sentence that counts.

    Args:
        response: The response.
        given: Its judgment by a checker.
        criterion: The prompt, which says which sentences count.
    """
    ignored = criterion.rollup.ignored if criterion.rollup else None
    counted = [one for label, one in zip(given.sentences, given.support, strict=True) if label != ignored]
    supporting = {passage for one in counted for passage in one.passages}
    precision = len(supporting) / len(set(response.passages))
    return precision, sum(bool(one.passages) for one in counted) / len(counted)


def citations_tsv(rows: Iterable[CitationRow]) -> str:
    """All rows under one header, four decimals, undefined numbers empty with the reason as `note`."""
    lines = (
        (
            *(row.run_id, row.criterion, row.measure, row.mean.n, row.mean.value, row.mean.low, row.mean.high),
            *(row.mean.topics, noted(row.mean.reason, row.cluster)),
        )
        for row in rows
    )
    return tsv(COLUMNS, lines, 4)
