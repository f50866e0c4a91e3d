"""A judge card as tables, and as one page of Markdown. Pure."""

from typing import Any

from judge.extra.bench.cards.card import ALPHA, CARD, ITEMS, DatasetCard, JudgeCard, missing_words, primary
from judge.io.cells import count, decimals, interval, markdown_cell
from judge.io.markup import prose, table
from judge.io.safe import escape
from judge.io.table import Cell, Table
from judge.judges.backends import backend_facts
from judge.records import Estimate

PLACES = 3
"""Decimals."""
RANKS = (
    *("dataset", "rung", "items", "units", "answered", "AUC", "worst case"),
    *("word overlap", "judge - overlap"),
)
AGREES = (
    *("dataset", "of", "same", "kappa", "weighted kappa", "alpha", "balanced accuracy"),
    *("worst case", "constant", "people", "beside people"),
)
DATA = ("dataset", "criterion", "prompt", "prompt digest", "data digest", "unit", "licence", "source")
SHORT_DIGEST = 12
"""Characters of a digest that a page shows."""


def card_grids(card: JudgeCard) -> tuple[Table[Any], Table[Any]]:
    """How well the judge ranks items beside word overlap, and how far its grades agree with people's."""
    notes = [
        "AUC: how often an item that people graded as positive scores above one that they did not. Intervals are 95 % "
        "over units: topics, or source documents.",
        "Worst case: every missing answer taken as the wrong one. Judge - overlap: the paired difference of AUC.",
    ]
    for rung in card.rungs:
        notes.append(
            f"The {rung.rung} rung ({', '.join(rung.datasets)}): judge - overlap "
            f"{interval(rung.over_overlap, PLACES, signed=True)}, {rung.against_overlap}."
        )
    if len(card.rungs) > 1:
        level = decimals(100 * (1 - ALPHA / len(card.rungs)), 1)
        notes.append(f"The intervals of the {len(card.rungs)} rungs are {level} %, so that all hold together at 95 %.")
    parts = [f"{each.name}, {each.total} of {each.released}" for each in card.datasets if each.total < each.released]
    if parts:
        notes.append(f"A part of the release is here: {'; '.join(parts)}.")
    absent = [f"{each.name}: {missing_words(each)}" for each in card.datasets if each.missing]
    if absent:
        notes.append(f"Without an answer: {'; '.join(absent)}.")
    ranks = Table(map(_ranks, card.datasets), RANKS, "Ranking", notes, PLACES)
    words = (
        "Same: the share of equal grades. Kappa and alpha are 0 for agreement by chance. Of grades: the numbers of the "
        "judge's scale are those of the data's, whatever the words. Of positive: grades are compared as positive or "
        "not. Balanced accuracy: the mean of the shares of positive "
        "and of other items that the judge calls so. Worst case, constant (a judge that always gives the commonest "
        "grade), people (each assessor against the consensus of the others) and beside people (the judge against the "
        "same) are weighted kappa where there is one, else kappa; for the constant, the share of equal grades.",
    )
    return ranks, Table(map(_agrees, card.datasets), AGREES, "Agreement", words, PLACES)


def card_page(card: JudgeCard) -> str:
    """The card as Markdown."""
    ranks, agrees = card_grids(card)
    lead = (
        "This judge is word overlap, the baseline that a judge has to beat above the easy rung."
        if backend_facts(card.judge).baseline
        else verdict(card)
    )
    parts = [
        f"# Judge card: {prose(card.judge)}",
        prose(lead),
        prose(" ".join(_facts(card))),
        *(prose(note) for note in card.notes),
        ranks.markdown().rstrip("\n"),
        agrees.markdown().rstrip("\n"),
        "## Data",
        table(DATA, [[markdown_cell(escape(cell)) for cell in cells] for cells in _data(card)], numbers=False),
        f"The digest of {ITEMS} is {card.items_digest}.",
        f"`{CARD}` has everything in full. The page names its datasets: cite their authors, and keep their licences.",
    ]
    return "\n\n".join(parts) + "\n"


def verdict(card: JudgeCard) -> str:
    """Whether the judge is worth its price, in a sentence."""
    if not card.rungs:
        return "No dataset of this card says whether the judge ranks responses better than word overlap does."
    phrases = {
        "better": "is better than word overlap",
        "worse": "is worse than word overlap",
        "not told apart": "is not told apart from word overlap",
        "not compared": "could not be compared with word overlap",
    }
    words = "; ".join(
        f"on the {rung.rung} rung {'it' if place else 'the judge'} {phrases[rung.against_overlap]}"
        for place, rung in enumerate(card.rungs)
    )
    of_rungs = {name for rung in card.rungs for name in rung.datasets}
    if any(each.missing for each in card.datasets if each.name in of_rungs):
        words += " (of the items that it answered)"
    above = [rung for rung in card.rungs if rung.rung != "easy"]
    if not above:
        worth = "a judge is worth its price above the easy rung only, and no dataset of such a rung is here"
    elif all(rung.against_overlap == "better" for rung in above):
        worth = "it is better where word overlap fails, so it can be worth a price"
    elif any(rung.against_overlap == "better" for rung in above):
        worth = "above the easy rung it can be worth a price in part"
    else:
        worth = "above the easy rung nothing here shows that it is worth a price"
    return f"O{words[1:]}: {worth}."


def _facts(card: JudgeCard) -> list[str]:
    facts = []
    if card.kind == "stored":
        facts.append("Its labels were released with the data; judge asked nobody.")
    if card.models_returned:
        facts.append(f"Replies name {', '.join(card.models_returned)}.")
    if card.expense is not None:
        spent = card.expense
        cost = "at an unknown cost" if spent.cost is None else f"for ${decimals(spent.cost, 2)}"
        tokens = f", {spent.prompt_tokens} tokens of prompts and {spent.completion_tokens} of replies"
        counted = spent.prompt_tokens is not None and spent.completion_tokens is not None
        facts.append(f"{count(spent.calls, 'call')} {cost}{tokens if counted else ''}.")
    if card.options:
        temperature, seed = card.options.get("temperature"), card.options.get("seed")
        facts.append(f"Temperature {temperature}, sampling seed {'none' if seed is None else seed}.")
    if card.limit is not None:
        facts.append(f"At most {count(card.limit, 'item')} of each dataset, drawn with seed {card.seed}.")
    facts.append(f"Made by {', '.join(f'{name} {version}' for name, version in card.versions.items())}.")
    return facts


def _ranks(each: DatasetCard) -> tuple[Cell, ...]:
    return (
        each.name,
        each.rung,
        f"{each.items} of {each.total}" if each.items != each.total else str(each.items),
        each.units,
        share(each),
        each.judge.get("auc"),
        _worst(each, "auc"),
        each.overlap.get("auc") if each.overlap else None,
        each.over_overlap,
    )


def _agrees(each: DatasetCard) -> tuple[Cell, ...]:
    main = primary(each)
    constant = each.constant.get("percent")
    return (
        each.name,
        each.compared,
        *(_value(each.judge.get(name)) for name in ("percent",)),
        *(each.judge.get(name) for name in ("kappa", "wkappa", "alpha_ordinal", "balanced_accuracy")),
        _worst(each, main),
        None if constant is None else f"{decimals(constant, PLACES)} same",
        each.people.get(main) if each.people else None,
        each.beside_people.get(main) if each.beside_people else None,
    )


def _worst(each: DatasetCard, name: str) -> float | None:
    """The worst case, where an answer is missing."""
    return each.worst_case.get(name) if each.missing else None


def _value(estimate: Estimate | None) -> float | None:
    return estimate.value if estimate else None


def share(each: DatasetCard) -> str:
    """How many drawn items have an answer, as a share."""
    return f"{decimals(100 * each.answered / each.items, 1)} %"


def _data(card: JudgeCard) -> list[tuple[str, ...]]:
    return [
        (
            each.name,
            each.criterion,
            each.prompt or "-",
            (each.prompt_digest or "-")[:SHORT_DIGEST],
            each.digest[:SHORT_DIGEST],
            each.unit,
            each.licence,
            each.source,
        )
        for each in card.datasets
    ]
