"""A judge card as tables and as a page of Markdown, and several cards side by side."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Annotated, Any

import judge.extra.bench.card as bench_card
from judge.ask.opening import OVERLAP
from judge.calibrate.findings import AgreementRow, FindingRow
from judge.calibrate.panel import CONSTANT
from judge.calibrate.selection import turned
from judge.errors import InputError, UsageError
from judge.io.files import file_in, read_stored
from judge.io.ids import nested
from judge.io.plan import Option, Options
from judge.io.table import Cell, RecordColumns, Table, as_column, fields, records_table
from judge.io.text import count, decimals, escape, markdown_cell, prose, shown, table
from judge.records import Estimate
from judge.stats.discrimination import Contest, auc, auc_difference
from judge.stats.ranking import SYSTEM
from judge.stats.tables import defined

PLACES = 3
"""Decimals."""
SHORT_DIGEST = 12
"""Characters of a digest that a page shows."""


def card_grids(card: bench_card.JudgeCard) -> tuple[Table[Any], ...]:
    """How far the judge agrees with people beside word overlap, a constant and people, and how it ranks runs."""
    agrees = records_table(
        AGREES,
        card.datasets,
        "Agreement",
        [
            "As `judge calibrate` finds it with the labels of people as gold. Kappa is weighted where grades are "
            "compared with grades, and plain where both count as positive or not. Intervals are 95 % over units: "
            "topics, or source documents.",
            "Worst case: every missing grade taken as the farthest one. Judge - overlap: the paired difference of "
            "kappa, with p by exchanging whole units. Constant: the share of equal grades if the judge always gave the "
            "commonest one. People: kappa of each against the consensus of the others.",
            "AUC: how often the expected grade of an item that people graded as positive is the better one.",
        ],
        PLACES,
    )
    by_runs = []
    for dataset in card.datasets:
        for row in dataset.systems:
            by_runs.append((dataset, row))
    if not by_runs:
        return (agrees,)
    notes = (
        "Runs with items of half of the units or more, by their mean grade: the judge against people. Half to half: "
        "tau-b of people's order on a random half of the units with theirs on the other half (a noise ceiling: only a "
        "judge with less noise exceeds it), and of the judge's with theirs. It is no ceiling of tau-b, which is over "
        "all units.",
    )
    return agrees, records_table(RUNS, by_runs, "Runs", notes, PLACES)


def card_page(card: bench_card.JudgeCard) -> str:
    """The card as Markdown."""
    parts = [f"# Judge card: {prose(card.judge)}", prose(" ".join(_facts(card)))]
    parts += [grid.markdown().rstrip("\n") for grid in card_grids(card)]
    if card.notes:
        parts += ["## Notes", "\n".join(f"- {prose(note)}" for note in card.notes)]
    rows: list[list[str]] = []
    for dataset in card.datasets:
        rows.append([markdown_cell(escape(str(cell(dataset) or "-"))) for cell in DATA.values()])
    parts += [
        "## Data",
        table([as_column(column).name for column in DATA], rows, numbers=False),
        f"The digest of {bench_card.ITEMS} is {card.items_digest}.",
        f"`{bench_card.CARD}` has everything in full. The page names its datasets: cite their authors, and keep their "
        "licences.",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(card: bench_card.JudgeCard) -> list[str]:
    facts = []
    if card.options is None:
        facts.append("Its labels were released with the data; judge asked nobody.")
    if card.models_returned:
        facts.append(f"Replies name {', '.join(card.models_returned)}.")
    if card.spending is not None:
        spent = card.spending
        cost = "at an unknown cost" if spent.whole_cost is None else f"for ${decimals(spent.whole_cost, 2)}"
        tokens = f", {spent.prompt_tokens} tokens of prompts and {spent.completion_tokens} of replies"
        facts.append(f"{count(spent.calls, 'call')} {cost}{tokens if spent.counted == spent.calls else ''}.")
    if card.options:
        temperature = card.options.get("temperature")
        seed = card.options.get("seed")
        facts.append(f"Temperature {temperature}, sampling seed {'none' if seed is None else seed}.")
    if card.limit is not None:
        facts.append(f"At most {count(card.limit, 'item')} of each dataset, drawn with seed {card.seed}.")
    facts.append(f"Made by {', '.join(f'{name} {version}' for name, version in card.versions.items())}.")
    return facts


def _primary(row: AgreementRow | None) -> Estimate | None:
    return None if row is None else row.statistics[row.primary]


def _beside(dataset: bench_card.DatasetCard, judge: str) -> AgreementRow | None:
    """The row of another judge than that of the card."""
    return next((row for row in dataset.agreement[1:] if row.judge == judge), None)


def _over_overlap(dataset: bench_card.DatasetCard) -> Estimate | None:
    """The judge minus word overlap."""
    for pair in dataset.comparisons:
        return pair.difference if pair.a == dataset.judge.name else turned(pair.difference)
    return None


def _constant(dataset: bench_card.DatasetCard) -> str | None:
    row = _beside(dataset, CONSTANT)
    same = None if row is None else row.statistics.get("percent")
    return None if same is None or same.value is None else f"{decimals(same.value, PLACES)} same"


def _drawn(dataset: bench_card.DatasetCard) -> str:
    """How many items were drawn, of how many."""
    drawn = dataset.judge.gold
    return str(drawn) if drawn == dataset.total else f"{drawn} of {dataset.total}"


def _worst(dataset: bench_card.DatasetCard) -> float | None:
    return dataset.judge.worst_case.get(dataset.judge.primary) if dataset.judge.n < dataset.judge.gold else None


def _without(dataset: bench_card.DatasetCard) -> str | None:
    return ", ".join(f"{number} {reason}" for reason, number in dataset.judge.without_grade.items()) or None


def _of_runs(name: str) -> Callable[[tuple[bench_card.DatasetCard, FindingRow]], Estimate | None]:
    return lambda row: row[1].statistics.get(name)


AGREES: RecordColumns = {
    **fields("dataset=name"),
    "items": _drawn,
    **fields("units=judge.topics"),
    "without a grade": _without,
    "of": lambda dataset: "positive" if dataset.judge.binary else "grades",
    **fields("same=judge.statistics.percent.value"),
    "kappa": lambda dataset: _primary(dataset.judge),
    "worst case": _worst,
    "word overlap": lambda dataset: _primary(_beside(dataset, OVERLAP)),
    "judge - overlap": _over_overlap,
    "p": lambda dataset: next((pair.p for pair in dataset.comparisons), None),
    "constant": _constant,
    **fields("people=judge.ceiling AUC=judge.statistics.auc"),
}
RUNS: RecordColumns = {
    "dataset": lambda row: row[0].name,
    "judge": lambda row: row[1].judge,
    "runs": lambda row: row[1].facts["runs"],
    **{fact.label: _of_runs(name) for name, fact in SYSTEM.items()},
    "people half to half": lambda row: row[1].facts["half_human"],
    "judge half to half": lambda row: row[1].facts["half_judge"],
}
DATA: RecordColumns = {
    **fields("dataset=name criterion=judge.criterion prompt=judge.prompt"),
    "prompt digest": lambda dataset: dataset.prompt_digest and dataset.prompt_digest[:SHORT_DIGEST],
    "data digest": lambda dataset: dataset.digest[:SHORT_DIGEST],
    **fields("unit licence source"),
}


NO_CELL = Estimate(value=None, low=None, high=None, n=0, topics=0, reason="no comparable card")


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
        grids += (Table(rows=lines, columns=columns, title="Differences", notes=(note,), places=PLACES),)
    without = [name for name, (_, items) in zip(names, cards, strict=True) if items is None]
    if without:
        note = (
            f"Without {bench_card.ITEMS} beside the card of {', '.join(without)} there are no paired differences of it."
        )
        grids = (*grids[:-1], grids[-1].with_notes(note))
    return grids


def judge_grids(cards: Sequence[bench_card.JudgeCard]) -> tuple[Table[Any], ...]:
    """Agreement of judges by datasets, and how far they order the runs of these as people do."""
    names = _names([card.judge for card in cards])
    columns = _columns(cards)
    refusals = _refusals(columns, names)
    sound: dict[str, dict[int, bench_card.DatasetCard]] = {}
    for column, datasets in columns.items():
        sound[column] = {place: dataset for place, dataset in datasets.items() if (place, column) not in refusals}

    def grid(title: str, cell: Callable[[bench_card.DatasetCard], Estimate | None], *notes: str) -> Table[Any]:
        lines = []
        for place, name in enumerate(names):
            cells: list[Cell] = [name]
            for there in sound.values():
                dataset = there.get(place)
                cells.append((cell(dataset) if dataset is not None else None) or NO_CELL)
            lines.append(tuple(cells))
        return Table(rows=lines, columns=("judge", *columns), title=title, notes=notes, places=PLACES)

    notes = ["Weighted kappa where grades are compared with grades, else kappa of positive or not. 95 % over units."]
    for column, there in sound.items():
        binary = [names[place] for place, dataset in there.items() if dataset.judge.binary]
        if 0 < len(binary) < len(there):
            notes.append(f"On {column} {', '.join(binary)} is compared as positive or not, other judges by grades.")
        answered = {dataset.judge.n for dataset in there.values()}
        if len(answered) > 1:
            notes.append(
                f"On {column} judges graded different items, {min(answered)} to {max(answered)} of them: only paired "
                "differences are on the same ones."
            )
    notes += [f"{names[place]} on {column}: {reason}." for (place, column), reason in refusals.items()]
    grids = [grid("Agreement", lambda dataset: _primary(dataset.judge), *notes)]
    if any(dataset.systems for there in sound.values() for dataset in there.values()):
        grids.append(grid("Tau-b of runs", _tau_b))
    return tuple(grids)


def _tau_b(dataset: bench_card.DatasetCard) -> Estimate | None:
    return next((row.statistics.get("tau_b") for row in dataset.systems if row.name == dataset.judge.name), None)


def _columns(cards: Sequence[bench_card.JudgeCard]) -> Columns:
    return nested((dataset.name, place, dataset) for place, card in enumerate(cards) for dataset in card.datasets)


def _names(judges: Sequence[str]) -> tuple[str, ...]:
    totals = Counter(judges)
    seen = Counter[str]()
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
    return f"{dataset.judge.prompt} ({(dataset.prompt_digest or '')[:SHORT_DIGEST]})"


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
            pairs = _contest(answers[a], answers[b])
            of_a, of_b = (defined(auc(scores, pairs.positive)) for scores in (pairs.a, pairs.b))
            difference = auc_difference([pairs])
            lines.append((column, names[a], names[b], difference.n, of_a, of_b, difference))
    return lines


def _contest(a: Sequence[bench_card.BenchItem], b: Sequence[bench_card.BenchItem]) -> Contest:
    """Two judges' scores of the items that both ranked, in the order of the first."""
    others = {item.item_id: item.score for item in b}
    pairs = [(item, other) for item in a if item.score is not None and (other := others.get(item.item_id)) is not None]
    return Contest(
        a=[item.score or 0.0 for item, _ in pairs],
        b=[other for _, other in pairs],
        positive=[item.positive for item, _ in pairs],
        topics=[item.unit for item, _ in pairs],
    )


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
    paths = list(dict.fromkeys(chain.from_iterable(map(_paths, plan.cards))))
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
