"""Judge cards side by side: a table of judges by datasets, and paired differences where items are there. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from judge.errors import InputError
from judge.extra.bench.cards.card import ITEMS, DatasetCard, JudgeCard, primary
from judge.extra.bench.cards.making import contest
from judge.extra.bench.cards.measured import POSITIVE, BenchItem
from judge.extra.bench.cards.page import PLACES, SHORT_DIGEST
from judge.io.safe import shown
from judge.io.table import Cell, Table
from judge.records import Estimate, Record
from judge.stats.discrimination import auc_difference
from judge.stats.expected import auc
from judge.stats.tables import Undefined

NO_CELL = Estimate(None, None, None, 0, 0, "no comparable card")


Columns = dict[str, dict[int, DatasetCard]]
"""Dataset to the place of each card that has it, with what that card says of it."""


class ReadCard(Record, frozen=True):
    """A card, with the answers beside it if they are there."""

    card: JudgeCard
    items: Mapping[str, tuple[BenchItem, ...]] | None
    """Dataset to the answers."""


class CardDifference(Record, frozen=True):
    """AUC of one judge minus that of another on the items that both ranked."""

    dataset: str
    a: str
    b: str
    auc_a: float | None
    auc_b: float | None
    difference: Estimate


class ComparedCards(Record, frozen=True):
    """The judges of several cards side by side."""

    names: tuple[str, ...]
    """The judge of each card; a judge of several cards is numbered."""
    grids: tuple[Table[Any], ...]
    differences: tuple[CardDifference, ...]


def compare_cards(cards: Sequence[ReadCard]) -> ComparedCards:
    """Set cards side by side; a cell of other data or of another prompt than the first card's is refused.

    Raises:
        InputError: The answers beside two cards have other gold for one item.
    """
    names = _names([each.card.judge for each in cards])
    columns = _columns(cards)
    refusals = _refusals(columns, names)
    differences = _differences(cards, names, columns, refusals)
    grids = judge_grids(cards)
    if differences:
        grids += (_pairs(differences),)
    without = [name for name, each in zip(names, cards, strict=True) if each.items is None]
    if without:
        note = f"Without {ITEMS} beside the card of {', '.join(without)} there are no paired differences of it."
        grids = (*grids[:-1], grids[-1].with_notes(note))
    return ComparedCards(names, grids, differences)


def judge_grids(cards: Sequence[ReadCard]) -> tuple[Table[Any], ...]:
    """AUC and agreement of judges by datasets."""
    names = _names([each.card.judge for each in cards])
    columns = _columns(cards)
    refusals = _refusals(columns, names)
    refused = tuple(f"{names[place]} on {column}: {reason}." for (place, column), reason in refusals.items())
    sound = {
        column: [each for place, each in there.items() if (place, column) not in refusals]
        for column, there in columns.items()
    }
    mixed = {column for column, of in sound.items() if len({each.compared for each in of} - {"scores"}) > 1}

    def agreement(dataset: DatasetCard) -> Estimate | None:
        if dataset.name in mixed:
            return dataset.judge.get(POSITIVE) or dataset.judge.get("kappa")
        return dataset.judge.get(primary(dataset))

    def grid(title: str, cell: Callable[[DatasetCard], Estimate | None], *notes: str) -> Table[Any]:
        lines = []
        for place, name in enumerate(names):
            cells: list[Cell] = [name]
            for column, there in columns.items():
                dataset = there.get(place)
                estimate = cell(dataset) if dataset is not None and (place, column) not in refusals else None
                cells.append(estimate or NO_CELL)
            lines.append(tuple(cells))
        return Table(lines, ("judge", *columns), title, notes, PLACES)

    unequal = tuple(
        f"On {column} judges answered different items, {min(answered)} to {max(answered)} of them: only paired "
        "differences are on the same ones."
        for column, of in sound.items()
        if len(answered := {dataset.answered for dataset in of}) > 1
    )
    return (
        grid("AUC", lambda dataset: dataset.judge.get("auc"), "Intervals are 95 % over units.", *unequal),
        grid("Balanced accuracy", lambda dataset: dataset.judge.get("balanced_accuracy")),
        grid(
            "Agreement",
            agreement,
            "Weighted kappa where all judges of a column are compared by grades, else kappa of positive or not.",
            *refused,
        ),
    )


def _columns(cards: Sequence[ReadCard]) -> Columns:
    columns: Columns = {}
    for place, each in enumerate(cards):
        for dataset in each.card.datasets:
            columns.setdefault(dataset.name, {})[place] = dataset
    return columns


def _names(judges: Sequence[str]) -> tuple[str, ...]:
    totals, seen = Counter(judges), Counter[str]()
    names = []
    for judge in judges:
        seen[judge] += 1
        names.append(f"{judge} ({seen[judge]})" if totals[judge] > 1 else judge)
    return tuple(names)


def _refusals(columns: Columns, names: Sequence[str]) -> dict[tuple[int, str], str]:
    """Why a card cannot be compared on a dataset; the first card that has it, and the first prompt, are the measure."""
    refused: dict[tuple[int, str], str] = {}
    for column, there in columns.items():
        first, data = next(iter(there.items()))
        prompted = next(((n, dataset) for n, dataset in there.items() if dataset.prompt_digest), (first, data))
        for place, dataset in there.items():
            if dataset.digest != data.digest:
                refused[place, column] = (
                    f"other data ({_short(dataset.digest)}) than the card of {names[first]} "
                    f"({_short(data.digest)}), so not compared"
                )
            elif dataset.prompt_digest and dataset.prompt_digest != prompted[1].prompt_digest:
                refused[place, column] = (
                    f"another prompt, {_prompt(dataset)}, than the card of {names[prompted[0]]}, "
                    f"{_prompt(prompted[1])}, so not compared"
                )
    return refused


def _prompt(dataset: DatasetCard) -> str:
    return f"{dataset.prompt} ({_short(dataset.prompt_digest or '')})"


def _short(digest: str) -> str:
    return digest[:SHORT_DIGEST]


def _differences(
    cards: Sequence[ReadCard],
    names: Sequence[str],
    columns: Columns,
    refusals: Mapping[tuple[int, str], str],
) -> tuple[CardDifference, ...]:
    differences = []
    for column in columns:
        answers = {
            place: each.items[column]
            for place, each in enumerate(cards)
            if each.items and column in each.items and (place, column) not in refusals
        }
        _check_gold(column, answers, names)
        for a, b in combinations(answers, 2):
            pairs = contest(answers[a], answers[b])
            of_a, of_b = auc(pairs.a, pairs.positive), auc(pairs.b, pairs.positive)
            differences.append(
                CardDifference(
                    dataset=column,
                    a=names[a],
                    b=names[b],
                    auc_a=None if isinstance(of_a, Undefined) else of_a,
                    auc_b=None if isinstance(of_b, Undefined) else of_b,
                    difference=auc_difference([pairs]),
                )
            )
    return tuple(differences)


def _check_gold(column: str, answers: Mapping[int, Sequence[BenchItem]], names: Sequence[str]) -> None:
    gold: dict[str, tuple[str, int, bool]] = {}
    for place, items in answers.items():
        for item in items:
            said = (item.unit, item.gold, item.positive)
            if gold.setdefault(item.item_id, said) != said:
                raise InputError(
                    f"{ITEMS} beside the card of {shown(names[place])}: unit or gold of {shown(item.item_id)} of "
                    f"{shown(column)} are others than beside the cards before it"
                )


def _pairs(differences: Sequence[CardDifference]) -> Table[Any]:
    lines = [
        (each.dataset, each.a, each.b, each.difference.n, each.auc_a, each.auc_b, each.difference)
        for each in differences
    ]
    notes = (
        "AUC of a minus AUC of b on the items that both ranked; intervals are 95 % over units, each pair for itself.",
    )
    return Table(lines, ("dataset", "a", "b", "items", "AUC a", "AUC b", "a - b"), "Differences", notes, PLACES)
