"""Interactive runs topic by topic: how far each conversation went, and its mean grade. Pure."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from judge.ask.records import Failure, Judgment
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.results.turns import RunTurns, had_to_answer, run_turns, worst_grade
from judge.text.ids import is_own_turn, is_unreached, natural_key, topic_of
from judge.text.table import sequence
from judge.text.tsv import tsv

COLUMNS = ("run_id", "criterion", "topic_id", "topics", "reached", "turns", "n", "mean", "bound")
ALL = "all"
"""What stands for all topics in the column of the topic."""


class TopicRow(Record, frozen=True):
    """One topic of an interactive run under one criterion, or all of them."""

    run_id: str
    criterion: str
    topic_id: str
    """`all` for all topics."""
    topics: int
    """Topics that the run had to reach: 1 in the row of a topic."""
    reached: int
    """How many of them it reached."""
    turns: int
    """Turns of the conversations."""
    n: int
    """Turns with a grade."""
    mean: float | None
    """Over the graded turns of the topic; of all topics the mean of these means, without topics never reached."""
    bound: float | None
    """Over all turns of the topic, where a turn whose lack of a grade counts against the run has the worst grade; of
    all topics the mean of these, where a topic never reached has the worst grade."""


def topic_rows(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    expected: Mapping[str, Collection[str]] | None = None,
) -> tuple[TopicRow, ...]:
    """The rows of every interactive run: criteria as given, runs and topics in natural order, then all topics.

    Args:
        pool: As for `leaderboard`.
        results: As for `leaderboard`.
        criteria: As for `leaderboard`.
        expected: As for `leaderboard`.
    """
    results = sequence(results)
    if not any(is_own_turn(response.turn_id) for response in pool.responses) and not any(
        is_own_turn(turn_id)
        for turns in (had_to_answer(pool) if expected is None else expected).values()
        for turn_id in turns
    ):
        return ()
    return tuple(
        row
        for criterion in criteria
        for run in run_turns(pool, results, criterion, expected)
        if any(map(is_own_turn, run.turn_ids))
        for row in _of_run(run, criterion)
    )


def _of_run(run: RunTurns, criterion: Criterion) -> Iterator[TopicRow]:
    worst = worst_grade(criterion.scale)
    counted = run.grades(worst)
    graded = {response.turn_id: float(given.grade) for response, given in run.graded}
    topics: dict[str, list[str]] = {}
    for turn_id in run.turn_ids:
        topics.setdefault(topic_of(turn_id), []).extend([] if is_unreached(turn_id) else [turn_id])
    rows = []
    for topic_id in sorted(topics, key=natural_key):
        turns = topics[topic_id]
        values = [graded[turn_id] for turn_id in turns if turn_id in graded]
        bounded = [counted[turn_id] for turn_id in turns if turn_id in counted]
        rows.append(
            TopicRow(
                run_id=run.run_id,
                criterion=criterion.name,
                topic_id=topic_id,
                topics=1,
                reached=int(bool(turns)),
                turns=len(turns),
                n=len(values),
                mean=_mean(values),
                bound=_mean(bounded) if turns else float(worst),
            )
        )
    yield from rows
    yield TopicRow(
        run_id=run.run_id,
        criterion=criterion.name,
        topic_id=ALL,
        topics=len(rows),
        reached=sum(row.reached for row in rows),
        turns=sum(row.turns for row in rows),
        n=sum(row.n for row in rows),
        mean=_mean([row.mean for row in rows if row.mean is not None]),
        bound=_mean([row.bound for row in rows if row.bound is not None]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def interactive_tsv(rows: Iterable[TopicRow]) -> str:
    """The rows under a header, four decimals, undefined numbers empty."""
    lines = (
        (
            *(row.run_id, row.criterion, row.topic_id, row.topics, row.reached, row.turns, row.n),
            *(row.mean, row.bound),
        )
        for row in rows
    )
    return tsv(COLUMNS, lines, 4)
