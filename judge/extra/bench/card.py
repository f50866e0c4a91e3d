"""The judge card: how far one judge agrees with people on public labels, and everything that it depends on. Pure."""

from typing import Any, Literal

import msgspec

from judge.errors import InputError
from judge.extra.bench.datasets import Rung
from judge.io.files import decode_lines
from judge.io.text import MAX_ID, count, digest, shown
from judge.records import Estimate, Record

SCHEMA = 1
"""Version of the card's layout."""
CARD, PAGE, ITEMS = "card.json", "card.md", "items.jsonl"
DECIMALS = 9
"""Of the numbers in a card, so that it is the same on machines whose last digits differ."""
ALPHA = 0.05
"""How often some rung of a card may be called better or worse than word overlap where it is neither."""
RUNGS: tuple[Rung, ...] = ("easy", "middle", "hard")

Against = Literal["better", "worse", "not told apart", "not compared"]
"""How a judge ranks items, beside word overlap; by the interval of the difference of AUC."""


class BenchItem(Record, frozen=True):
    """What a judge said of one item, beside what people said: a line of `items.jsonl`."""

    dataset: str
    item_id: str
    unit: str
    gold: int
    positive: bool
    """Whether the gold grade is positive."""
    grade: int | None = None
    """None where there is none."""
    says_positive: bool | None = None
    """Whether the judge's grade is positive on the judge's scale."""
    score: float | None = None
    """What items are ranked by, the higher the better: the expected grade, else the grade, or a released score."""
    reason: str | None = None


CardMeasures = dict[str, Estimate]
"""Statistic to its estimate."""
Basis = Literal["grades", "positive", "scores"]
"""What agreement is of: grades of one scale of three or more, positive or not, nothing where there are only scores."""


class DatasetCard(Record, frozen=True, omit_defaults=True):
    """One dataset of a card."""

    name: str
    title: str
    criterion: str
    rung: Rung | None
    unit: str
    licence: str
    source: str
    files: dict[str, str]
    """File below the folder of the data, to its SHA-256."""
    digest: str
    """SHA-256 of every item as read: labels and texts."""
    skipped: dict[str, int]
    """Why rows of the files are no items, and how many."""
    grades: tuple[int, ...]
    positive: tuple[int, ...]
    released: int
    """Labeled responses of the whole release, as its authors give it; 0 where they do not."""
    total: int
    """Items of the files that are there."""
    items: int
    """Items that were drawn, all of them without a limit."""
    units: int
    positives: int
    """Drawn items whose gold grade is positive."""
    prompt: str | None
    """`criterion/variant`; None for stored labels."""
    prompt_digest: str | None
    compared: Basis
    answered: int
    """Items with an answer."""
    expected: int
    """Answers that are ranked by an expected grade, not by the grade."""
    missing: dict[str, int]
    """Reason to the number of items without an answer."""
    judge: CardMeasures
    worst_case: dict[str, float | None]
    """The same with every missing answer taken as the worst one."""
    constant: dict[str, float | None]
    """A judge that always gives the commonest grade."""
    overlap: CardMeasures | None
    """Word overlap on the same items; None where it cannot grade them."""
    people: CardMeasures | None
    """Each assessor against the others; None where their grades were not released."""
    beside_people: CardMeasures | None
    """The judge against the same consensus of others."""
    over_overlap: Estimate | None
    """AUC of the judge minus that of word overlap, on the items that both ranked."""
    against_overlap: Against
    runs: dict[str, CardMeasures] = msgspec.field(default_factory=dict)
    """Of a dataset that names its runs: what scores them, and how far judge and people order them alike."""
    run_scores: dict[str, dict[str, list[float]]] = msgspec.field(default_factory=dict)
    """What scores the runs, and the score of each of them by people and by the judge."""
    published: str = ""
    """Figures of others, with their source."""


class RungCard(Record, frozen=True):
    """The datasets of one rung together."""

    rung: Rung
    datasets: tuple[str, ...]
    over_overlap: Estimate
    """The mean over the datasets of the difference of AUC; intervals of a card's rungs hold together."""
    against_overlap: Against
    """By that interval."""


class Expense(Record, frozen=True):
    """What the calls took, as the journal has it."""

    calls: int
    prompt_tokens: int | None
    """None where the provider of some call did not count."""
    completion_tokens: int | None
    cost: float | None
    """US dollars; None where the cost of some call is not known."""


class JudgeCard(Record, frozen=True, kw_only=True):
    """One judge on public labels; equal inputs and answers give equal bytes."""

    schema: int = SCHEMA
    judge: str
    kind: Literal["asked", "stored"]
    """stored: its labels were released with the data."""
    models_returned: tuple[str, ...] = ()
    options: dict[str, Any] | None = None
    expense: Expense | None = None
    limit: int | None = None
    seed: int
    """Of the draw and of the resamples."""
    versions: dict[str, str | int]
    """Of judge, its parser and its renderer."""
    datasets: tuple[DatasetCard, ...]
    rungs: tuple[RungCard, ...]
    items_digest: str
    """SHA-256 of `items.jsonl`."""
    notes: tuple[str, ...] = ()


def parse_card(content: bytes, name: str) -> JudgeCard:
    """The card in a file's bytes; an InputError if it is none, or one of another layout."""
    try:
        head = msgspec.json.decode(content, type=dict[str, Any])
        if head.get("schema") != SCHEMA:
            raise InputError(f"{name}: expected a judge card of layout {SCHEMA}, this says {shown(head.get('schema'))}")
        card = msgspec.json.decode(content, type=JudgeCard)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{name}: not a judge card: {error}") from error
    _check_names(card, name)
    return card


def _check_names(card: JudgeCard, name: str) -> None:
    """Refuse a card whose names cannot head rows and columns, or that has a dataset twice."""
    named = [("$.judge", card.judge)]
    for place, dataset in enumerate(card.datasets):
        named += [(f"$.datasets[{place}].name", dataset.name), (f"$.datasets[{place}].prompt", dataset.prompt or "")]
    for path, text in named:
        if len(text) > MAX_ID:
            raise InputError(f"{name}: {path}: {shown(text)}: expected at most {MAX_ID} characters")
    first: dict[str, int] = {}
    for place, dataset in enumerate(card.datasets):
        if first.setdefault(dataset.name, place) != place:
            message = f"dataset {shown(dataset.name)} is already at $.datasets[{first[dataset.name]}]"
            raise InputError(f"{name}: $.datasets[{place}].name: {message}")


def parse_items(content: bytes, card: JudgeCard, name: str) -> dict[str, tuple[BenchItem, ...]]:
    """Dataset to the items in the bytes of the `items.jsonl` beside a card."""
    if digest(content.decode("utf-8", "surrogateescape")) != card.items_digest:
        raise InputError(f"{name}: not the items of the card beside it: their digests differ")
    items: dict[str, list[BenchItem]] = {}
    for _, row in decode_lines(content, BenchItem, name, "bad_item"):
        if not isinstance(row, BenchItem):
            raise InputError(f"{name}: {row.path}: {row.message}")
        items.setdefault(row.dataset, []).append(row)
    return {dataset: tuple(rows) for dataset, rows in items.items()}


def primary(card: DatasetCard) -> str:
    """The statistic of agreement that a dataset is shown under: weighted kappa of grades, else kappa."""
    return "wkappa" if "wkappa" in card.judge else "kappa"


def missing_words(card: DatasetCard) -> str:
    """Why answers are missing, in words; "" if none is."""
    return ", ".join(f"{count(number, 'item')} {reason}" for reason, number in card.missing.items())
