"""A judge card as tables and as a page of Markdown, and several cards side by side."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import judge.extra.bench.card as bench_card
from judge.errors import InputError, UsageError
from judge.io.files import file_in, read_stored
from judge.io.ids import nested
from judge.io.plan import Option, Options
from judge.io.table import Cell, Table, TsvColumns, fields, records_table
from judge.io.text import count, decimals, escape, interval, markdown_cell, prose, shown, table
from judge.judges.backends import backend_facts
from judge.records import Estimate
from judge.stats.discrimination import auc, auc_difference
from judge.stats.ranking import SYSTEM
from judge.stats.tables import defined

PLACES = 3
"""Decimals."""
SHORT_DIGEST = 12
"""Characters of a digest that a page shows."""


def card_grids(card: bench_card.JudgeCard) -> tuple[Table[Any], ...]:
    """How the judge ranks items beside word overlap, how far its grades agree with people's, and how it ranks runs."""
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
        level = decimals(100 * (1 - bench_card.ALPHA / len(card.rungs)), 1)
        notes.append(f"The intervals of the {len(card.rungs)} rungs are {level} %, so that all hold together at 95 %.")
    parts = [f"{each.name}, {each.total} of {each.released}" for each in card.datasets if each.total < each.released]
    if parts:
        notes.append(f"A part of the release is here: {'; '.join(parts)}.")
    absent = [f"{each.name}: {bench_card.missing_words(each)}" for each in card.datasets if each.missing]
    if absent:
        notes.append(f"Without an answer: {'; '.join(absent)}.")
    ranks = records_table(RANKS, card.datasets, "Ranking", notes, PLACES)
    words = (
        "Same: the share of equal grades. Kappa and alpha are 0 for agreement by chance. Of grades: the numbers of the "
        "judge's scale are those of the data's, whatever the words. Of positive: grades are compared as positive or "
        "not. Balanced accuracy: the mean of the shares of positive "
        "and of other items that the judge calls so. Worst case, constant (a judge that always gives the commonest "
        "grade), people (each assessor against the consensus of the others) and beside people (the judge against the "
        "same) are weighted kappa where there is one, else kappa; for the constant, the share of equal grades.",
    )
    agrees = records_table(AGREES, card.datasets, "Agreement", words, PLACES)
    by_runs = [(each.name, by, of) for each in card.datasets for by, of in each.runs.items()]
    if not by_runs:
        return ranks, agrees
    notes = [
        "Runs with items of half of the units or more; a score is the mean over a run's units, on the items that the "
        "judge answered. Intervals are of the agreement to expect on other units, and lie low: resampled orders are "
        "noisier.",
        "Half to half: tau-b of people's order on a random half of the units with theirs on the other half (a noise "
        "ceiling: only a judge with less noise exceeds it), and of the judge's with theirs. It is no ceiling of tau-b, "
        "which is over all units.",
        *(f"{name} by {by}: {of['tau_b'].reason}." for name, by, of in by_runs if of["tau_b"].reason),
        *(f"Published for {each.name}: {each.published}" for each in card.datasets if each.published),
    ]
    return ranks, agrees, records_table(RUNS, by_runs, "Runs", notes, PLACES)


def card_page(card: bench_card.JudgeCard) -> str:
    """The card as Markdown."""
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
        *(grid.markdown().rstrip("\n") for grid in card_grids(card)),
        "## Data",
        table(
            tuple(DATA),
            ([markdown_cell(escape(str(cell(each) or "-"))) for cell in DATA.values()] for each in card.datasets),
            numbers=False,
        ),
        f"The digest of {bench_card.ITEMS} is {card.items_digest}.",
        f"`{bench_card.CARD}` has everything in full. The page names its datasets: cite their authors, and keep their "
        "licences.",
    ]
    return "\n\n".join(parts) + "\n"


def verdict(card: bench_card.JudgeCard) -> str:
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


def _facts(card: bench_card.JudgeCard) -> list[str]:
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


def _worst(each: bench_card.DatasetCard, name: str) -> float | None:
    return each.worst_case.get(name) if each.missing else None


def _of_runs(name: str) -> Callable[[tuple[str, str, bench_card.CardMeasures]], Estimate | None]:
    return lambda row: row[2].get(name)


RANKS: TsvColumns = {
    **fields("dataset=name rung"),
    "items": lambda each: f"{each.items} of {each.total}" if each.items != each.total else str(each.items),
    **fields("units"),
    "answered": lambda each: f"{decimals(100 * each.answered / each.items, 1)} %",
    **fields("AUC=judge.auc"),
    "worst case": lambda each: _worst(each, "auc"),
    "word overlap": lambda each: (each.overlap or {}).get("auc"),
    "judge - overlap": lambda each: each.over_overlap,
}
AGREES: TsvColumns = {
    **fields("dataset=name of=compared same=judge.percent.value kappa=judge.kappa"),
    "weighted kappa": lambda each: each.judge.get("wkappa"),
    **fields("alpha=judge.alpha_ordinal"),
    "balanced accuracy": lambda each: each.judge.get("balanced_accuracy"),
    "worst case": lambda each: _worst(each, bench_card.primary(each)),
    "constant": lambda each: (
        None if (same := each.constant.get("percent")) is None else f"{decimals(same, PLACES)} same"
    ),
    "people": lambda each: (each.people or {}).get(bench_card.primary(each)),
    "beside people": lambda each: (each.beside_people or {}).get(bench_card.primary(each)),
}
RUNS: TsvColumns = {
    "dataset": lambda row: row[0], "runs by": lambda row: row[1], "runs": lambda row: row[2]["tau_b"].n,
    "units": lambda row: row[2]["tau_b"].topics, **{fact.label: _of_runs(name) for name, fact in SYSTEM.items()},
    "people half to half": _of_runs(bench_card.PEOPLE_HALVES), "judge half to half": _of_runs(bench_card.JUDGE_HALVES),
    "word overlap": _of_runs(bench_card.OVERLAP_TAU),
}  # fmt: skip
DATA: TsvColumns = {
    **fields("dataset=name criterion prompt"),
    "prompt digest": lambda each: each.prompt_digest and each.prompt_digest[:SHORT_DIGEST],
    "data digest": lambda each: each.digest[:SHORT_DIGEST],
    **fields("unit licence source"),
}


NO_CELL = Estimate(None, None, None, 0, 0, "no comparable card")


Columns = dict[str, dict[int, bench_card.DatasetCard]]
"""Dataset to the place of each card that has it, with what that card says of it."""


ReadCard = tuple[bench_card.JudgeCard, Mapping[str, tuple[bench_card.BenchItem, ...]] | None]
"""A card, with the answers beside it if they are there."""


def compare_cards(cards: Sequence[ReadCard]) -> tuple[Table[Any], ...]:
    """Set cards side by side; a cell of other data or of another prompt than the first card's is refused."""
    names = _names([card.judge for card, _ in cards])
    grids = judge_grids([card for card, _ in cards])
    if lines := _differences(cards, names):
        note = (
            "AUC of a minus AUC of b on the items that both ranked; "
            "intervals are 95 % over units, each pair for itself."
        )
        columns = ("dataset", "a", "b", "items", "AUC a", "AUC b", "a - b")
        grids += (Table(lines, columns, "Differences", (note,), PLACES),)
    without = [name for name, (_, items) in zip(names, cards, strict=True) if items is None]
    if without:
        note = (
            f"Without {bench_card.ITEMS} beside the card of {', '.join(without)} there are no paired differences of it."
        )
        grids = (*grids[:-1], grids[-1].with_notes(note))
    return grids


def judge_grids(cards: Sequence[bench_card.JudgeCard]) -> tuple[Table[Any], ...]:
    """AUC and agreement of judges by datasets, and how far they order the runs of these as people do."""
    names = _names([card.judge for card in cards])
    columns = _columns(cards)
    refusals = _refusals(columns, names)
    refused = tuple(f"{names[place]} on {column}: {reason}." for (place, column), reason in refusals.items())
    sound = {
        column: [each for place, each in there.items() if (place, column) not in refusals]
        for column, there in columns.items()
    }
    mixed = {column for column, of in sound.items() if len({each.compared for each in of} - {"scores"}) > 1}

    def agreement(dataset: bench_card.DatasetCard) -> Estimate | None:
        if dataset.name in mixed:
            return dataset.judge.get(bench_card.POSITIVE) or dataset.judge.get("kappa")
        return dataset.judge.get(bench_card.primary(dataset))

    def grid(title: str, cell: Callable[[bench_card.DatasetCard], Estimate | None], *notes: str) -> Table[Any]:
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
        *(
            grid(f"Tau-b of runs by {by}", lambda dataset, by=by: dataset.runs.get(by, {}).get("tau_b"))  # type: ignore[misc]
            for by in (bench_card.MEAN, bench_card.SHARE)
            if any(by in dataset.runs for of in sound.values() for dataset in of)
        ),
    )


def _columns(cards: Sequence[bench_card.JudgeCard]) -> Columns:
    return nested((dataset.name, place, dataset) for place, card in enumerate(cards) for dataset in card.datasets)


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
                    f"other data ({dataset.digest[:SHORT_DIGEST]}) than the card of {names[first]} "
                    f"({data.digest[:SHORT_DIGEST]}), so not compared"
                )
            elif dataset.prompt_digest and dataset.prompt_digest != prompted[1].prompt_digest:
                refused[place, column] = (
                    f"another prompt, {_prompt(dataset)}, than the card of {names[prompted[0]]}, "
                    f"{_prompt(prompted[1])}, so not compared"
                )
    return refused


def _prompt(dataset: bench_card.DatasetCard) -> str:
    return f"{dataset.prompt} ({(dataset.prompt_digest or '')[:SHORT_DIGEST]})"


def _differences(cards: Sequence[ReadCard], names: Sequence[str]) -> list[tuple[Cell, ...]]:
    """A line for each dataset and two judges: AUC of one minus that of the other on the items that both ranked."""
    columns = _columns([card for card, _ in cards])
    refusals = _refusals(columns, names)
    lines: list[tuple[Cell, ...]] = []
    for column in columns:
        answers = {
            place: items[column]
            for place, (_, items) in enumerate(cards)
            if items and column in items and (place, column) not in refusals
        }
        _check_gold(column, answers, names)
        for a, b in combinations(answers, 2):
            pairs = bench_card.contest(answers[a], answers[b])
            of_a, of_b = (defined(auc(scores, pairs.positive)) for scores in (pairs.a, pairs.b))
            difference = auc_difference([pairs])
            lines.append((column, names[a], names[b], difference.n, of_a, of_b, difference))
    return lines


def _check_gold(column: str, answers: Mapping[int, Sequence[bench_card.BenchItem]], names: Sequence[str]) -> None:
    gold: dict[str, tuple[str, int, bool]] = {}
    for place, items in answers.items():
        for item in items:
            said = (item.unit, item.gold, item.positive)
            if gold.setdefault(item.item_id, said) != said:
                raise InputError(
                    f"{bench_card.ITEMS} beside the card of {shown(names[place])}: unit or gold of "
                    f"{shown(item.item_id)} of {shown(column)} are others than beside the cards before it"
                )


class CardsPlan(Options):
    """Everything `judge bench compare` can be told."""

    cards: Annotated[tuple[Path, ...], Option(metavar="CARD", place="only")]
    """Cards, or folders that `judge bench` wrote; a folder of folders stands for the cards in these."""


def compare_bench(plan: CardsPlan) -> tuple[Table[Any], ...]:
    """Read cards and set them side by side: judges by datasets, and paired differences.

    A UsageError if there are fewer than two; an InputError if a card cannot be read, or items beside it are another's.
    """
    paths = list(dict.fromkeys(path for given in plan.cards for path in _paths(given)))
    if len(paths) < 2:
        raise UsageError(f"{len(paths)} card: expected two or more to compare")
    return compare_cards([_read_card(path) for path in paths])


def _paths(given: Path) -> list[Path]:
    if (
        given.is_dir()
        and not (given / bench_card.CARD).is_file()
        and (several := sorted(given.glob(f"*/{bench_card.CARD}")))
    ):
        return several
    return [file_in(given, bench_card.CARD)]


def _read_card(path: Path) -> ReadCard:
    card = bench_card.parse_card(read_stored(path), str(path))
    beside = path.with_name(bench_card.ITEMS)
    if not beside.is_file():
        return card, None
    return card, bench_card.parse_items(read_stored(beside), card, str(beside))
