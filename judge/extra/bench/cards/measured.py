"""A judge's grades of one public dataset measured against people's, and beside the baselines. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Failure, Judgment
from judge.extra.bench.cards.pooled import Drawn
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.io.ids import natural_key
from judge.records import Criterion, Estimate, Record, Scale
from judge.stats.discrimination import auc_interval
from judge.stats.means import consensus
from judge.stats.resampling import resampled
from judge.stats.tables import topic_tables

OF_GRADES = ("percent", "kappa", "wkappa", "alpha_ordinal")
"""Statistics of grades on one scale of three or more; POSITIVE stands beside them."""
OF_TWO = ("percent", "kappa")
"""Statistics of positive or not."""
POSITIVE = "kappa_positive"
"""Kappa of positive or not, beside the statistics of grades; of two grades it is `kappa`."""
REPLICATES = 2000


class BenchItem(Record, frozen=True):
    """What a judge said of one item, beside what people said: a line of `items.jsonl`."""

    dataset: str
    item_id: str
    unit: str
    gold: int
    positive: bool
    """Whether the gold grade is positive."""
    grade: int | None
    """None where there is none."""
    says_positive: bool | None
    """Whether the judge's grade is positive on the judge's scale."""
    score: float | None
    """What items are ranked by, the higher the better: the expected grade, else the grade, or a released score."""
    reason: str | None = None
    """Why there is no score."""


CardMeasures = dict[str, Estimate]
"""Statistic to its estimate."""
Basis = Literal["grades", "positive", "scores"]
"""What agreement is of: grades of one scale of three or more, positive or not, nothing where there are only scores."""


def basis(dataset: Dataset, scale: Scale) -> Basis:
    """What grades of a judge on this scale are compared as: grades if they are the dataset's, the same end good."""
    higher = scale.polarity == "higher"
    same = sorted(level.grade for level in scale.levels) == sorted(dataset.grades) and higher == _rises(dataset)
    return "grades" if same and len(dataset.grades) > 2 else "positive"


def asked_items(
    drawn: Drawn, prompt: Criterion, results: Mapping[str, Judgment | Failure]
) -> tuple[tuple[BenchItem, ...], int]:
    """The items of a dataset with a judge's answers, and how many are ranked by an expected grade.

    Args:
        drawn: The items.
        prompt: What the judge was asked.
        results: Response id to the answer.
    """
    sign = 1 if prompt.scale.polarity == "higher" else -1
    items = []
    expected = 0
    for labeled, response_id in zip(drawn.items, drawn.ids, strict=True):
        result = results[response_id]
        if isinstance(result, Failure) or result.unable:
            reason = result.reason if isinstance(result, Failure) else "unable"
            items.append(bench_item(drawn.dataset, labeled, reason=reason))
            continue
        expected += result.expected is not None
        score = result.grade if result.expected is None else result.expected
        positive = result.grade in prompt.scale.positive
        items.append(
            bench_item(drawn.dataset, labeled, grade=result.grade, says_positive=positive, score=sign * float(score))
        )
    return tuple(items), expected


def stored_items(drawn: Drawn, values: Mapping[str, float]) -> tuple[tuple[BenchItem, ...], Basis]:
    """The items of a dataset with the labels or scores of a judge that were released with it, and what they are.

    Whole numbers are grades of the dataset's scale; one that is off it is missing. But where the scale has three or
    more grades, and all numbers are 0 or 1, they say positive or not. Other numbers are scores, which rank items and
    call none positive.
    """
    dataset, numbers = drawn.dataset, set(values.values())
    sign = 1 if _rises(dataset) else -1
    flags = numbers <= {0, 1} and len(dataset.grades) > 2
    grades = not flags and all(float(value).is_integer() for value in numbers)
    items = []
    for labeled in drawn.items:
        value = values.get(labeled.item_id)
        if value is None or not np.isfinite(value):
            items.append(bench_item(dataset, labeled, reason="not_judged"))
        elif not grades:
            items.append(bench_item(dataset, labeled, score=float(value), says_positive=value == 1 if flags else None))
        elif int(value) not in dataset.grades:
            items.append(bench_item(dataset, labeled, reason="off_scale"))
        else:
            grade, positive = int(value), int(value) in dataset.positive
            items.append(bench_item(dataset, labeled, grade=grade, says_positive=positive, score=sign * float(value)))
    if not flags and not grades:
        return tuple(items), "scores"
    return tuple(items), "grades" if grades and len(dataset.grades) > 2 else "positive"


def constant_items(drawn: Drawn) -> tuple[BenchItem, ...]:
    """The items as a judge grades them that always gives the commonest grade of people; of several the lowest."""
    counts = Counter(item.grade for item in drawn.items)
    grade = min(counts, key=lambda grade: (-counts[grade], grade))
    positive = grade in drawn.dataset.positive
    return tuple(
        bench_item(drawn.dataset, item, grade=grade, says_positive=positive, score=0.0) for item in drawn.items
    )


def people_items(drawn: Drawn, judge: Sequence[BenchItem]) -> tuple[tuple[BenchItem, ...], tuple[BenchItem, ...]]:
    """Each assessor's grade of an item against the others' grades, and the judge's against the same.

    The gold is the consensus of the others in both, so they can be set side by side. The consensus of all, which the
    judge is measured on, has one grade more, and agrees better with anyone. Empty where fewer than two assessors'
    grades of an item were released.

    Args:
        drawn: The items.
        judge: The judge's answers to them, in their order.
    """
    dataset = drawn.dataset
    sign = 1 if _rises(dataset) else -1
    people: list[BenchItem] = []
    beside: list[BenchItem] = []
    for labeled, answer in zip(drawn.items, judge, strict=True):
        for place, grade in enumerate(labeled.grades if len(labeled.grades) > 1 else ()):
            others = consensus((*labeled.grades[:place], *labeled.grades[place + 1 :]))
            # A mean of halves may fall between the grades of a scale with a gap.
            if others in dataset.grades:
                positive = grade in dataset.positive
                item = bench_item(dataset, labeled, grade=grade, says_positive=positive, score=sign * float(grade))
                for row, rows in ((item, people), (answer, beside)):
                    rows.append(msgspec.structs.replace(row, gold=others, positive=others in dataset.positive))
    return tuple(people), tuple(beside)


def bench_item(
    dataset: Dataset,
    labeled: LabeledResponse,
    *,
    grade: int | None = None,
    says_positive: bool | None = None,
    score: float | None = None,
    reason: str | None = None,
) -> BenchItem:
    """An item with an answer, or with the reason why there is none."""
    return BenchItem(
        dataset=dataset.name,
        item_id=labeled.item_id,
        unit=labeled.unit,
        gold=labeled.grade,
        positive=labeled.grade in dataset.positive,
        grade=grade,
        says_positive=says_positive,
        score=score,
        reason=reason,
    )


def worst_case(dataset: Dataset, items: Sequence[BenchItem]) -> tuple[BenchItem, ...]:
    """The items, with the wrong answer for each that has none: the last rank, the other class, the farthest grade."""
    called = any(item.says_positive is not None for item in items)
    graded = any(item.grade is not None for item in items)
    return tuple(
        item
        if item.score is not None
        else msgspec.structs.replace(
            item,
            score=-np.inf if item.positive else np.inf,
            says_positive=not item.positive if called else None,
            grade=max(sorted(dataset.grades), key=lambda grade: abs(grade - item.gold)) if graded else None,
        )
        for item in items
    )


def measure(dataset: Dataset, items: Iterable[BenchItem], of: Basis, seed: int) -> CardMeasures:
    """The agreement of answers with people, each statistic with an interval over units.

    Args:
        dataset: The dataset.
        items: The items; those without an answer are left out.
        of: What is compared.
        seed: Of the resamples.
    """
    ranked = [item for item in items if item.score is not None]
    called = [item for item in ranked if item.says_positive is not None]
    measures = {"auc": _auc(ranked, [item.score or 0.0 for item in ranked])}
    if not called:
        return measures
    measures["balanced_accuracy"] = _auc(called, [float(item.says_positive or False) for item in called])
    units = [item.unit for item in called]
    two = [(int(item.positive), int(item.says_positive or False)) for item in called]
    if of != "grades":
        return measures | _agreement(OF_TWO, units, two, (0, 1), seed)
    scale = sorted(dataset.grades)
    graded = [(scale.index(item.gold), scale.index(item.grade)) for item in called if item.grade is not None]
    measures |= _agreement(OF_GRADES, units, graded, scale, seed)
    return measures | {POSITIVE: _agreement(("kappa",), units, two, (0, 1), seed)["kappa"]}


def _agreement(
    names: Sequence[str], units: Sequence[str], pairs: Sequence[tuple[int, int]], scale: Sequence[int], seed: int
) -> CardMeasures:
    """Statistics of codes of people and of the judge."""
    tables = _tables(units, pairs, len(scale))
    return {
        name: resampled(name, tables, scale, np.random.default_rng(seed), replicates=REPLICATES).estimate
        for name in names
    }


def _auc(items: Sequence[BenchItem], scores: Sequence[float]) -> Estimate:
    return auc_interval(scores, [item.positive for item in items], [item.unit for item in items])


def _tables(units: Sequence[str], pairs: Sequence[tuple[int, int]], k: int) -> NDArray[np.int64]:
    """The table of each unit, in natural order, from the codes of people and of the judge."""
    places = {unit: place for place, unit in enumerate(sorted(set(units), key=natural_key))}
    topics = np.array([places[unit] for unit in units], dtype=np.int64)
    human, judge = np.array(pairs, dtype=np.int64).T
    return np.asarray(topic_tables(human, judge, topics, k, len(places)))


def _rises(dataset: Dataset) -> bool:
    """Whether high grades are good."""
    return dataset.grades[-1] > dataset.grades[0]
