"""The tables that only some results have: sentences, citations, topics of interactive runs. Pure."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from judge.ask.records import SentenceSupport
from judge.io.ids import Cluster, groups_of, is_own_turn, is_unreached, natural_key, nested, topic_of
from judge.io.table import Cell, RecordColumns, Table, fields
from judge.io.text import markdown_cell, number
from judge.records import Criterion, Estimate
from judge.results.rows import Score, UnitKey, mean_over, noted
from judge.results.turns import RunTurns, worst_grade

READING = (
    "The share of a response's sentences with each label, on average, and in how many responses the label occurs at "
    "all. Sentences that claim nothing are left out."
)
ALL = "all"
"""What stands for all topics in the column of the topic."""


NOT_COUNTED = Estimate(value=None, low=None, high=None, n=0, topics=0, reason="does not count towards the grade")
"""The mean of a label whose sentences do not count."""
SentenceMeasure = Callable[[UnitKey, Sequence[str], Sequence[SentenceSupport]], float]
"""What a response comes to, by its sentences that count: their labels, and which passages support them."""


def _precision(unit: UnitKey, labels: Sequence[str], supports: Sequence[SentenceSupport]) -> float:
    supporting: set[str] = set()
    for sentence in supports:
        supporting.update(sentence.passages)
    return len(supporting) / len(set(unit.passages))


def _recall(unit: UnitKey, labels: Sequence[str], supports: Sequence[SentenceSupport]) -> float:
    return sum(bool(sentence.passages) for sentence in supports) / len(supports)


CHECKED: dict[str, SentenceMeasure] = {"precision": _precision, "recall": _recall}
"""Measures of a run that a checker judged, as of ALCE (Gao et al. 2023, EMNLP), with the passage as the unit of a
citation: runs say which passages a response used, and not for which sentence.

precision: the share of a response's used passages that support a sentence. recall: the share of its sentences that some
used passage supports. Sentences that claim nothing are left out.
"""


def sentence_scores(run: RunTurns, criterion: Criterion, cluster: Cluster) -> Iterator[Score]:
    """A score for each label of a criterion that labels sentences, as in the prompt: the share of sentences with it.

    A response that claims nothing has no share, as it has no grade. A run without labels has no score.
    """
    labeled = [(unit, grade) for unit, grade in run.graded if grade.sentences]
    ignored = criterion.rollup.ignored if criterion.rollup else None
    for level in criterion.sentence_levels if labeled else ():
        label = level.label
        shares = []
        for unit, grade in labeled:
            counted = [name for name in grade.sentences if name != ignored]
            if counted:
                shares.append((unit.topic_id, counted.count(label) / len(counted)))
        counts = [grade.sentences.count(label) for _, grade in labeled]
        yield Score(
            run_id=run.run_id,
            criterion=criterion.name,
            part=label,
            mean=NOT_COUNTED if label == ignored else mean_over(shares, cluster, (0, 1), "shares"),
            counts={
                "responses": len(labeled),
                "with_label": sum(n > 0 for n in counts),
                "sentences": sum(counts),
            },
            cluster=cluster,
        )


def checked_scores(run: RunTurns, criterion: Criterion, cluster: Cluster) -> Iterator[Score]:
    """The measures of CHECKED over the graded responses of which a checker says which passage supports what."""
    ignored = criterion.rollup.ignored if criterion.rollup else None
    checked = [(unit, grade) for unit, grade in run.graded if grade.support and unit.passages]
    for name, measure in CHECKED.items() if checked else ():
        values = []
        for unit, grade in checked:
            pairs = zip(grade.sentences, grade.support, strict=True)
            counted = [(label, support) for label, support in pairs if label != ignored]
            labels = [label for label, _ in counted]
            supports = [support for _, support in counted]
            values.append((unit.topic_id, measure(unit, labels, supports)))
        mean = mean_over(values, cluster, (0, 1), "shares")
        yield Score(run_id=run.run_id, criterion=criterion.name, part=name, mean=mean, cluster=cluster)


def topic_scores(run: RunTurns, criterion: Criterion) -> Iterator[Score]:
    """The topics of an interactive run in natural order, then all of them.

    The mean is over the graded turns of a topic; of all topics it is the mean of these means, without topics never
    reached. In the bound of a topic, a turn whose lack of a grade counts against the run has the worst grade; of all
    topics it is the mean of these, where a topic never reached has the worst grade.
    """
    if not any(map(is_own_turn, run.turn_ids)):
        return
    worst = worst_grade(criterion.scale)
    counted = run.grades(worst)
    graded = {unit.turn_id: float(grade.grade) for unit, grade in run.graded}
    topics: dict[str, list[str]] = {}
    for turn_id in run.turn_ids:
        turns = topics.setdefault(topic_of(turn_id), [])
        if not is_unreached(turn_id):
            turns.append(turn_id)
    scores = []
    for topic_id in sorted(topics, key=natural_key):
        turns = topics[topic_id]
        values = [graded[turn_id] for turn_id in turns if turn_id in graded]
        scores.append(
            Score(
                run_id=run.run_id,
                criterion=criterion.name,
                part=topic_id,
                mean=_mean(values, n=len(values)),
                bound=_mean(counted.get(turn_id) for turn_id in turns).value if turns else float(worst),
                counts={"topics": 1, "reached": int(bool(turns)), "turns": len(turns)},
            )
        )
    yield from scores
    yield Score(
        run_id=run.run_id,
        criterion=criterion.name,
        part=ALL,
        mean=_mean((score.mean.value for score in scores), n=sum(score.mean.n for score in scores)),
        bound=_mean(score.bound for score in scores).value,
        counts={name: sum(score.counts[name] for score in scores) for name in ("topics", "reached", "turns")},
    )


def _mean(values: Iterable[float | None], n: int = 0) -> Estimate:
    """The mean of the values that are there, without an interval."""
    there = [value for value in values if value is not None]
    mean = math.fsum(there) / len(there) if there else None
    return Estimate(value=mean, low=None, high=None, n=n, topics=len(there))


SENTENCES: RecordColumns = {
    **fields("run_id criterion label=part responses=counts.responses with_label=counts.with_label"),
    **fields("sentences=counts.sentences share=mean.value low=mean.low high=mean.high"),
    "topics": lambda score: None if score.mean == NOT_COUNTED else score.mean.topics,
    "note": lambda score: noted(score.mean.reason, score.cluster),
}
CITATIONS: RecordColumns = {
    **fields("run_id criterion measure=part responses=mean.n mean=mean.value low=mean.low high=mean.high"),
    **fields("topics=mean.topics"),
    "note": lambda score: noted(score.mean.reason, score.cluster),
}
TOPICS: RecordColumns = fields(
    "run_id criterion topic_id=part topics=counts.topics reached=counts.reached turns=counts.turns n=mean.n "
    "mean=mean.value bound"
)


def labels_by_run(scores: Sequence[Score]) -> tuple[list[str], dict[str, dict[str, Score]]]:
    """The labels of one criterion that count towards the grade, and run to label to its score."""
    labels = list(dict.fromkeys(score.part for score in scores if score.mean != NOT_COUNTED))
    return labels, nested((score.run_id, score.part, score) for score in scores)


def sentences_markdown(scores: Sequence[Score]) -> str:
    """A table for each criterion; empty if there are no scores."""
    parts: list[str] = []
    for criterion, group in groups_of((score.criterion, score) for score in scores).items():
        labels, by_run = labels_by_run(group)
        lines: list[list[Cell]] = []
        for run_id, by_label in by_run.items():
            line: list[Cell] = [run_id, next(iter(by_label.values())).counts["responses"]]
            # `0.25 (in 3)`: a quarter of the sentences, and some in 3 responses.
            for label in labels:
                score = by_label[label]
                line.append(f"{number(score.mean.value, 2)} (in {score.counts['with_label']})")
            lines.append(line)
        parts.append(f"\n## {markdown_cell(criterion)}: sentences\n\n{READING}\n\n")
        parts.append(Table(lines, ("run", "responses", *labels)).body(words={0}) + "\n")
    return "".join(parts)
