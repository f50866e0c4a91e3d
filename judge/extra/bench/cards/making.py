"""A judge card made of the answers to its datasets. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from judge.extra.bench.cards.card import ALPHA, DECIMALS, RUNGS, Against, DatasetCard, RungCard
from judge.extra.bench.cards.measured import (
    Basis,
    BenchItem,
    CardMeasures,
    basis,
    constant_items,
    measure,
    people_items,
    worst_case,
)
from judge.extra.bench.cards.pooled import Drawn
from judge.io.line_stream import jsonl_bytes
from judge.records import Criterion, Estimate, Record
from judge.stats.discrimination import SAME, Contest, auc_difference


class Answers(Record, frozen=True):
    """A judge's answers to a dataset, from which a `DatasetCard` is made."""

    drawn: Drawn
    items: tuple[BenchItem, ...]
    compared: Basis
    expected: int = 0
    prompt: Criterion | None = None
    """None for stored labels, which are on the scale of the dataset."""
    overlap: tuple[BenchItem, ...] | None = None
    """Word overlap on the same items; None where it cannot grade them, or is the judge."""
    overlap_prompt: Criterion | None = None


def dataset_card(answers: Answers, seed: int) -> DatasetCard:
    """What the answers to a dataset say of the judge."""
    drawn, prompt, items = answers.drawn, answers.prompt, answers.items
    dataset, of = drawn.dataset, answers.compared

    def measured(rows: Sequence[BenchItem], of: Basis = of) -> CardMeasures:
        return {name: _rounded(estimate) for name, estimate in measure(dataset, rows, of, seed).items()}

    missing = Counter(item.reason or "" for item in items if item.score is None)
    judge, (people, beside) = measured(items), people_items(drawn, items)
    overlap_of = basis(dataset, answers.overlap_prompt.scale) if answers.overlap_prompt else of
    over = _over(answers)
    return DatasetCard(
        name=dataset.name,
        title=dataset.title,
        criterion=dataset.criterion,
        rung=dataset.rung,
        unit=dataset.unit,
        licence=dataset.licence,
        source=dataset.source,
        files=dict(drawn.files),
        digest=drawn.digest,
        skipped=dict(drawn.skipped),
        grades=dataset.grades,
        positive=dataset.positive,
        released=dataset.size,
        total=len(drawn.every),
        items=len(items),
        units=len({item.unit for item in items}),
        positives=sum(item.positive for item in items),
        prompt=prompt.prompt_id if prompt else None,
        prompt_digest=prompt.digest if prompt else None,
        compared=of,
        answered=len(items) - missing.total(),
        expected=answers.expected,
        missing=dict(sorted(missing.items())),
        judge=judge,
        worst_case=_values(measured(worst_case(dataset, items)) if missing else judge),
        constant=_values(measured(constant_items(drawn))),
        overlap=measured(answers.overlap, overlap_of) if answers.overlap else None,
        people=measured(people) if people else None,
        beside_people=measured(beside) if people else None,
        over_overlap=over,
        against_overlap=_against(over),
    )


def rung_cards(answers: Sequence[Answers]) -> tuple[RungCard, ...]:
    """Each rung of the datasets, the easy one first: whether the judge ranks better than word overlap.

    A card says this of all its rungs in one sentence, so their intervals hold together (Bonferroni).
    """
    of_rungs = {
        rung: [each for each in answers if each.drawn.dataset.rung == rung and each.overlap is not None]
        for rung in RUNGS
    }
    there = {rung: of_rung for rung, of_rung in of_rungs.items() if of_rung}
    cards = []
    for rung, of_rung in there.items():
        contests = [_contest(each) for each in of_rung]
        difference = _rounded(auc_difference(contests, level=1 - ALPHA / len(there)))
        names = tuple(each.drawn.dataset.name for each in of_rung)
        cards.append(RungCard(rung, names, difference, _against(difference)))
    return tuple(cards)


def items_bytes(answers: Sequence[Answers]) -> bytes:
    """The lines of `items.jsonl`."""
    return jsonl_bytes(item for each in answers for item in each.items)


def _values(measures: CardMeasures) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in measures.items()}


def both_ranked(a: Sequence[BenchItem], b: Sequence[BenchItem]) -> tuple[tuple[BenchItem, BenchItem], ...]:
    """The items that two judges ranked, in the order of the first."""
    others: Mapping[str, BenchItem] = {item.item_id: item for item in b if item.score is not None}
    return tuple((item, others[item.item_id]) for item in a if item.score is not None and item.item_id in others)


def contest(a: Sequence[BenchItem], b: Sequence[BenchItem]) -> Contest:
    """Two judges' scores of the items that both ranked."""
    pairs = both_ranked(a, b)
    return Contest(
        [first.score or 0.0 for first, _ in pairs],
        [second.score or 0.0 for _, second in pairs],
        [first.positive for first, _ in pairs],
        [first.unit for first, _ in pairs],
    )


def _contest(answers: Answers) -> Contest:
    return contest(answers.items, answers.overlap or ())


def _over(answers: Answers) -> Estimate | None:
    return None if answers.overlap is None else _rounded(auc_difference([_contest(answers)]))


def _rounded(estimate: Estimate) -> Estimate:
    value, low, high = (
        None if number is None else round(number, DECIMALS) for number in (estimate.value, estimate.low, estimate.high)
    )
    return msgspec.structs.replace(estimate, value=value, low=low, high=high)


def _against(difference: Estimate | None) -> Against:
    if difference is None or difference.value is None:
        return "not compared"
    if difference.low is None or difference.high is None:
        return "not told apart" if difference.reason == SAME else "not compared"
    if difference.low > 0:
        return "better"
    return "worse" if difference.high < 0 else "not told apart"
