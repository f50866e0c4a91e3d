"""The judge card: what `judge calibrate` finds about one judge on public labels by people. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from judge.ask.opening import OVERLAP
from judge.ask.results import Label, Labels, on_scale
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.findings import AgreementRow, ComparisonRow, FindingRow
from judge.calibrate.intake import same_grades
from judge.calibrate.panel import NOT_JUDGED, Panel, make_panel
from judge.errors import InputError
from judge.extra.bench import Drawn
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.gold.rows import GoldRow
from judge.io.files import decode_lines, jsonl_bytes
from judge.io.ids import groups_of
from judge.io.text import MAX_ID, digest, shown
from judge.judges.prices import Spending
from judge.records import Level, Problem, Record, Scale

SCHEMA = 4
"""Version of the card's layout."""
CARD = "card.json"
PAGE = "card.md"
ITEMS = "items.jsonl"
DECIMALS = 9
"""Of the numbers in a card, so that it is the same on machines whose last digits differ."""
CUT = 0.5
"""The score from which on a response counts as positive, where a judge gave scores from 0 to 1."""


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
    score: float | None
    """What items are ranked by, the higher the better: the expected grade, else the grade, or a released score."""
    reason: str | None
    """Why there is no grade."""


class DatasetCard(Record, frozen=True):
    """One dataset of a card: what it is, and what `judge calibrate` finds with its labels as gold."""

    name: str
    unit: str
    """What intervals are over."""
    licence: str
    source: str
    files: dict[str, str]
    """File below the folder of the data, to its SHA-256."""
    digest: str
    """SHA-256 of every item as read: labels and texts."""
    skipped: dict[str, int]
    """Why rows of the files are no items, and how many."""
    total: int
    """Items of the files that are there; those that were drawn are the gold of each row."""
    prompt_digest: str | None
    """None for stored labels."""
    agreement: tuple[AgreementRow, ...]
    """The judge first, then the constant, and word overlap where it can grade the items and is not the judge."""
    comparisons: tuple[ComparisonRow, ...]
    """The judge and word overlap on the same items."""
    systems: tuple[FindingRow, ...]
    """The ranking of runs by the judge, and by word overlap; none of a dataset that names no runs."""

    @property
    def judge(self) -> AgreementRow:
        """The agreement of the judge."""
        return self.agreement[0]


class JudgeCard(Record, frozen=True, kw_only=True):
    """One judge on public labels; equal inputs and answers give equal bytes."""

    schema: int = SCHEMA
    judge: str
    models_returned: tuple[str, ...] = ()
    options: dict[str, Any] | None = None
    """How the judge was asked; None if its labels were released with the data."""
    spending: Spending | None = None
    """What the calls took, as the journal has it, without their time, which no card depends on."""
    limit: int | None = None
    seed: int
    """Of the draw and of the resamples."""
    versions: dict[str, str | int]
    """Of judge, its parser and its renderer."""
    datasets: tuple[DatasetCard, ...]
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
    _check_card(card, name)
    return card


def _check_card(card: JudgeCard, name: str) -> None:
    """Refuse a card whose names cannot head rows and columns, that has a dataset twice, or one without a finding."""
    named = [("$.judge", card.judge)]
    first: dict[str, int] = {}
    for place, dataset in enumerate(card.datasets):
        path = f"$.datasets[{place}]"
        if not dataset.agreement:
            raise InputError(f"{name}: {path}.agreement: expected the row of the judge, found none")
        if any(row.primary not in row.statistics for row in dataset.agreement):
            raise InputError(f"{name}: {path}.agreement: a row lacks its primary statistic")
        named += [(f"{path}.name", dataset.name), (f"{path}.agreement[0].prompt", dataset.judge.prompt or "")]
        if first.setdefault(dataset.name, place) != place:
            message = f"dataset {shown(dataset.name)} is already at $.datasets[{first[dataset.name]}]"
            raise InputError(f"{name}: {path}.name: {message}")
    for path, text in named:
        if len(text) > MAX_ID:
            raise InputError(f"{name}: {path}: {shown(text)}: expected at most {MAX_ID} characters")


def parse_items(content: bytes, card: JudgeCard, name: str) -> dict[str, tuple[BenchItem, ...]]:
    """Dataset to the items in the bytes of the `items.jsonl` beside a card."""
    if digest(content.decode("utf-8", "surrogateescape")) != card.items_digest:
        raise InputError(f"{name}: not the items of the card beside it: their digests differ")
    problems: list[Problem] = []
    items = groups_of((row.dataset, row) for _, row in decode_lines(content, BenchItem, name, "bad_item", problems))
    if problems:
        raise InputError(f"{name}: {problems[0].path}: {problems[0].message}")
    return {dataset: tuple(rows) for dataset, rows in items.items()}


class Answers(NamedTuple):
    """What a card says of a dataset is made from these."""

    drawn: Drawn
    judge: Labels
    """With the scale that they are on."""
    overlap: Labels | None
    """Word overlap on the same items; None where it cannot grade them, or is the judge."""


def dataset_scale(dataset: Dataset) -> Scale:
    """The scale of a dataset's labels."""
    levels = tuple(Level(grade, str(grade), "") for grade in dataset.grades)
    return Scale(levels, "higher" if dataset.grades[-1] > dataset.grades[0] else "lower", dataset.positive)


def stored_labels(drawn: Drawn, judge: str, values: Mapping[str, float]) -> Labels:
    """The labels or scores of a judge that were released with a dataset.

    Whole numbers are grades of the dataset's scale; one that is off it is missing. But where the scale has three or
    more grades, and all numbers are 0 or 1, they say positive or not. Other numbers are scores from 0 to 1, which say
    positive from CUT on.
    """
    numbers = set(values.values())
    scores = not all(float(number).is_integer() for number in numbers if isfinite(number))
    scale = dataset_scale(drawn.dataset)
    if scores or (numbers <= {0, 1} and len(drawn.dataset.grades) > 2):
        scale = Scale((Level(0, "0", ""), Level(1, "1", "")), "higher", (1,))
    labels: list[Label] = []
    for item, turn_id, response_id in zip(drawn.items, drawn.turn_ids, drawn.ids, strict=True):
        value = values.get(item.item_id)
        if value is None or not isfinite(value):
            labels.append(Label(turn_id, response_id, grade=None, reason=NOT_JUDGED))
        elif scores:
            labels.append(Label(turn_id, response_id, int(value >= CUT), expected=float(value)))
        else:
            labels.append(Label(turn_id, response_id, int(value)))
    released = Labels(
        judge=judge,
        prompt=None,
        prompt_digest=None,
        source=drawn.dataset.name,
        digest=drawn.digest,
        labels=tuple(labels),
        scale=scale,
    )
    return on_scale(released, {level.grade for level in scale.levels})


def bench_panel(answers: Answers) -> Panel:
    """The labels of people, of the judge and of word overlap side by side."""
    drawn = answers.drawn
    dataset = drawn.dataset
    scale = dataset_scale(dataset)
    ranked = _ranked_runs(drawn) if dataset.runs else frozenset()
    gold: dict[tuple[str, str], list[GoldRow]] = {}
    for item, turn_id, response_id in zip(drawn.items, drawn.turn_ids, drawn.ids, strict=True):
        run_id = _run_id(item) if dataset.runs else None
        grades = {str(number): grade for number, grade in enumerate(item.grades, 1)} or {"people": item.grade}
        gold[turn_id, response_id] = [
            GoldRow(
                turn_id=turn_id,
                topic_id=drawn.topics[item.unit],
                criterion=dataset.criterion,
                grade=grade,
                assessor=assessor,
                response_id=response_id,
                run_id=run_id if run_id in ranked else None,
            )
            for assessor, grade in grades.items()
        ]
    columns = [answers.judge] if answers.overlap is None else [answers.judge, answers.overlap]
    return make_panel(
        dataset.criterion,
        scale,
        gold,
        columns,
        baselines=(OVERLAP,) if answers.overlap else (),
        binary=any(not same_grades(column.scale or scale, scale) for column in columns),
    )


def _run_id(item: LabeledResponse) -> str:
    return item.item_id.removeprefix(f"{item.unit}/").rpartition("/")[0]


def _ranked_runs(drawn: Drawn) -> frozenset[str]:
    """The runs with items of half of the units or more; the score of another would be of its units' difficulty."""
    units: dict[str, set[str]] = defaultdict(set)
    for item in drawn.items:
        units[_run_id(item)].add(item.unit)
    every = {item.unit for item in drawn.items}
    return frozenset(run_id for run_id, own in units.items() if 2 * len(own) >= len(every))


def dataset_card(answers: Answers, seed: int) -> tuple[DatasetCard, tuple[str, ...]]:
    """What the answers to a dataset say of the judge, and what a reader must know of it."""
    drawn = answers.drawn
    dataset = drawn.dataset
    calibration = calibrate([bench_panel(answers)], CalibrationOptions(seed=seed))
    card = DatasetCard(
        name=dataset.name,
        unit=dataset.unit,
        licence=dataset.licence,
        source=dataset.source,
        files=drawn.files,
        digest=drawn.digest,
        skipped=drawn.skipped,
        total=len(drawn.every),
        prompt_digest=answers.judge.prompt_digest,
        agreement=_rounded(calibration.agreement, tuple[AgreementRow, ...]),
        comparisons=_rounded(calibration.comparisons, tuple[ComparisonRow, ...]),
        systems=_rounded(calibration.findings["systems"], tuple[FindingRow, ...]),
    )
    notes = [f"{dataset.name}: {warning}" for warning in calibration.warnings]
    if len(drawn.every) < dataset.size:
        notes.append(f"{dataset.name}: {len(drawn.every)} of the {dataset.size} responses of the release are here")
    if dataset.published:
        notes.append(f"published for {dataset.name}: {dataset.published}")
    return card, tuple(notes)


def _rounded(rows: Sequence[Any], kind: Any) -> Any:
    return msgspec.convert(_decimals(msgspec.to_builtins(rows)), kind)


def _decimals(value: Any) -> Any:
    if isinstance(value, float):
        # Not -0.
        return round(value, DECIMALS) + 0.0
    if isinstance(value, Mapping):
        return {key: _decimals(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_decimals(member) for member in value]
    return value


def items_bytes(answers: Sequence[Answers]) -> bytes:
    """The lines of `items.jsonl`."""
    items: list[BenchItem] = []
    for answer in answers:
        items += _items(answer)
    return jsonl_bytes(items)


def _items(answers: Answers) -> list[BenchItem]:
    dataset = answers.drawn.dataset
    sign = 1 if answers.judge.scale and answers.judge.scale.polarity == "higher" else -1
    by_id = {label.response_id: label for label in answers.judge.labels}
    items: list[BenchItem] = []
    for labeled, response_id in zip(answers.drawn.items, answers.drawn.ids, strict=True):
        label = by_id[response_id]
        value = label.grade if label.expected is None else label.expected
        items.append(
            BenchItem(
                dataset=dataset.name,
                item_id=labeled.item_id,
                unit=labeled.unit,
                gold=labeled.grade,
                positive=labeled.grade in dataset.positive,
                grade=label.grade,
                score=None if value is None else sign * float(value),
                reason=label.reason,
            )
        )
    return items
