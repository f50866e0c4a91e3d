"""The tables that only some results have: sentences, citations, topics of interactive runs. Pure."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from judge.io.ids import Cluster, cluster_of, groups_of, is_own_turn, is_unreached, natural_key, nested, topic_of
from judge.io.table import RecordColumns, Table, fields
from judge.io.text import markdown_cell, number
from judge.pool.records import PooledResponse
from judge.records import Criterion, Estimate, Record
from judge.results.rows import noted
from judge.results.turns import RunTurns, TurnGrade, worst_grade
from judge.stats.means import mean_interval

READING = (
    "The share of a response's sentences with each label, on average, and in how many responses the label occurs at "
    "all. Sentences that claim nothing are left out."
)
ALL = "all"
"""What stands for all topics in the column of the topic."""


class SentenceRow(Record, frozen=True):
    """One label in the responses of one run."""

    run_id: str
    criterion: str
    label: str
    responses: int
    """Graded responses whose sentences have labels."""
    with_label: int
    """Responses of these with at least one such sentence."""
    sentences: int
    """Such sentences in all of them."""
    share: Estimate | None
    """The share of a response's sentences that have the label, on average; sentences that do not count towards the
    grade are left out, and their own label has None."""
    cluster: Cluster = "topic"
    """What the interval is over, and what is counted as topics."""


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


def sentence_rows(run: RunTurns, criterion: Criterion, cluster: Cluster) -> Iterator[SentenceRow]:
    """A row for each label of a criterion that labels sentences, as in the prompt.

    A response that claims nothing has no share, as it has no grade. A run without labels has no row.
    """
    labeled = [(response, given) for response, given in run.graded if given.sentences]
    ignored = criterion.rollup.ignored if criterion.rollup else None
    for label in [level.label for level in criterion.sentence_levels] if labeled else ():
        counts = [given.sentences.count(label) for _, given in labeled]
        counted = [sum(one != ignored for one in given.sentences) for _, given in labeled]
        shares = [(n / of, response) for n, of, (response, _) in zip(counts, counted, labeled, strict=True) if of]
        with_label = sum(n > 0 for n in counts)
        sentences = sum(counts)
        share = None if label == ignored else _mean_share(shares, cluster)
        yield SentenceRow(
            run_id=run.run_id,
            criterion=criterion.name,
            label=label,
            responses=len(labeled),
            with_label=with_label,
            sentences=sentences,
            share=share,
            cluster=cluster,
        )


def citation_rows(run: RunTurns, criterion: Criterion, cluster: Cluster) -> Iterator[CitationRow]:
    """Precision and recall of a run that a checker judged.

    The measures are those of ALCE (Gao et al. 2023, EMNLP), with the passage as the unit of a citation: runs say which
    passages a response used, and not for which sentence.
    """
    told = [entry for entry in run.graded if entry[1].support and entry[0].passages]
    scored = [(_scores(response, given, criterion), response) for response, given in told]
    for at, measure in enumerate(("precision", "recall") if told else ()):
        mean = _mean_share([(both[at], response) for both, response in scored], cluster)
        yield CitationRow(run_id=run.run_id, criterion=criterion.name, measure=measure, mean=mean, cluster=cluster)


def _mean_share(shares: Sequence[tuple[float, PooledResponse]], cluster: Cluster) -> Estimate:
    """The mean of shares, each of a response."""
    clusters = [cluster_of(response.topic_id, cluster) for _, response in shares]
    return mean_interval([share for share, _ in shares], clusters, bounds=(0, 1), what="shares")


def _scores(response: PooledResponse, given: TurnGrade, criterion: Criterion) -> tuple[float, float]:
    """Precision and recall of one response; it has used passages and a sentence that counts."""
    ignored = criterion.rollup.ignored if criterion.rollup else None
    counted = [one for label, one in zip(given.sentences, given.support, strict=True) if label != ignored]
    supporting = {passage for one in counted for passage in one.passages}
    precision = len(supporting) / len(set(response.passages))
    return precision, sum(bool(one.passages) for one in counted) / len(counted)


def topic_rows(run: RunTurns, criterion: Criterion) -> Iterator[TopicRow]:
    """The topics of an interactive run in natural order, then all of them."""
    worst = worst_grade(criterion.scale)
    counted = run.grades(worst)
    graded = {response.turn_id: float(given.grade) for response, given in run.graded}
    topics: dict[str, list[str]] = {}
    for turn_id in run.turn_ids if any(map(is_own_turn, run.turn_ids)) else ():
        topics.setdefault(topic_of(turn_id), []).extend([] if is_unreached(turn_id) else [turn_id])
    row = partial(TopicRow, run.run_id, criterion.name)
    rows = []
    for topic_id in sorted(topics, key=natural_key):
        turns = topics[topic_id]
        values = [graded[turn_id] for turn_id in turns if turn_id in graded]
        bound = _mean(counted.get(turn_id) for turn_id in turns) if turns else float(worst)
        rows.append(row(topic_id, 1, int(bool(turns)), len(turns), len(values), _mean(values), bound))
    yield from rows
    if rows:
        reached, asked, n = (sum(getattr(each, name) for each in rows) for name in ("reached", "turns", "n"))
        mean = _mean(each.mean for each in rows)
        bound = _mean(each.bound for each in rows)
        yield row(ALL, len(rows), reached, asked, n, mean, bound)


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


SENTENCES: RecordColumns = {
    **fields("run_id criterion label responses with_label sentences share=share.value low=share.low"),
    **fields("high=share.high topics=share.topics"),
    "note": lambda row: noted(row.share.reason if row.share else "does not count towards the grade", row.cluster),
}
CITATIONS: RecordColumns = {
    **fields("run_id criterion measure responses=mean.n mean=mean.value low=mean.low high=mean.high"),
    **fields("topics=mean.topics"),
    "note": lambda row: noted(row.mean.reason, row.cluster),
}
TOPICS: RecordColumns = fields(" ".join(TopicRow.__struct_fields__))


def sentences_markdown(rows: Sequence[SentenceRow]) -> str:
    """A table for each criterion; empty if there are no rows."""
    parts: list[str] = []
    for criterion, group in groups_of((row.criterion, row) for row in rows).items():
        labels = list(dict.fromkeys(row.label for row in group if row.share is not None))
        lines = []
        for run_id, by_label in nested((row.run_id, row.label, row) for row in group).items():
            responses = next(iter(by_label.values())).responses
            # `0.25 (in 3)`: a quarter of the sentences, and some in 3 responses.
            rows_of = [by_label[label] for label in labels]
            shares = [f"{number(row.share.value if row.share else None, 2)} (in {row.with_label})" for row in rows_of]
            lines.append([run_id, responses, *shares])
        parts.append(f"\n## {markdown_cell(criterion)}: sentences\n\n{READING}\n\n")
        parts.append(Table(lines, ("run", "responses", *labels)).body(words={0}) + "\n")
    return "".join(parts)
