"""The judge card: how far one judge agrees with people on public labels, and how answers make one. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import lcm
from statistics import fmean
from typing import Any, Literal

import msgspec
import numpy as np

from judge.ask.records import Failure, Judgment
from judge.calibrate.panel import pair_statistics
from judge.errors import InputError
from judge.extra.bench import Drawn
from judge.extra.bench.datasets import Dataset, LabeledResponse, Rung
from judge.io.files import decode_lines, jsonl_bytes
from judge.io.ids import groups_of, natural_key
from judge.io.text import MAX_ID, count, digest, shown
from judge.records import Criterion, Estimate, Problem, Record, Scale
from judge.stats.discrimination import SAME, Contest, auc_difference, auc_interval
from judge.stats.means import consensus
from judge.stats.ranking import split_half, system_agreement

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
    problems: list[Problem] = []
    items = groups_of((row.dataset, row) for _, row in decode_lines(content, BenchItem, name, "bad_item", problems))
    if problems:
        raise InputError(f"{name}: {problems[0].path}: {problems[0].message}")
    return {dataset: tuple(rows) for dataset, rows in items.items()}


def primary(card: DatasetCard) -> str:
    """The statistic of agreement that a dataset is shown under: weighted kappa of grades, else kappa."""
    return "wkappa" if "wkappa" in card.judge else "kappa"


def missing_words(card: DatasetCard) -> str:
    """Why answers are missing, in words; "" if none is."""
    return ", ".join(f"{count(number, 'item')} {reason}" for reason, number in card.missing.items())


OF_GRADES = ("percent", "kappa", "wkappa", "alpha_ordinal")
"""Statistics of grades on one scale of three or more; POSITIVE stands beside them."""
OF_TWO = ("percent", "kappa")
"""Statistics of positive or not."""
POSITIVE = "kappa_positive"
"""Kappa of positive or not, beside the statistics of grades; of two grades it is `kappa`."""
REPLICATES = 2000
MEAN, SHARE = "mean grade", "share of positives"
"""What scores the runs of a dataset."""
PEOPLE_HALVES, JUDGE_HALVES, OVERLAP_TAU = "people_halves", "judge_halves", "overlap_tau_b"
"""Beside the statistics of two rankings of the runs: tau-b of people's on one half of the topics with theirs on the
other, of the judge's with it, and of that by word overlap with people's."""
_OF_DATASET = ("name", "title", "criterion", "rung", "unit", "licence", "source", "grades", "positive", "published")
"""What a card says of a dataset as the dataset says it."""


def basis(dataset: Dataset, scale: Scale) -> Basis:
    """What grades of a judge on this scale are compared as: grades if they are the dataset's, the same end good."""
    higher = scale.polarity == "higher"
    same = sorted(level.grade for level in scale.levels) == sorted(dataset.grades) and higher == _rises(dataset)
    return "grades" if same and len(dataset.grades) > 2 else "positive"


def asked_items(
    drawn: Drawn, prompt: Criterion, results: Mapping[str, Judgment | Failure]
) -> tuple[tuple[BenchItem, ...], int]:
    """The items of a dataset with a judge's answers, and how many are ranked by an expected grade."""
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


def bench_item(dataset: Dataset, labeled: LabeledResponse, **answer: Any) -> BenchItem:
    """An item with the fields of an answer, or with the reason why there is none."""
    gold = labeled.grade
    return BenchItem(dataset.name, labeled.item_id, labeled.unit, gold, gold in dataset.positive, **answer)


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

    Items without an answer are left out.
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
        return measures | pair_statistics(OF_TWO, units, two, (0, 1), seed)
    scale = sorted(dataset.grades)
    graded = [(scale.index(item.gold), scale.index(item.grade)) for item in called if item.grade is not None]
    measures |= pair_statistics(OF_GRADES, units, graded, scale, seed)
    return measures | {POSITIVE: pair_statistics(("kappa",), units, two, (0, 1), seed)["kappa"]}


def _auc(items: Sequence[BenchItem], scores: Sequence[float]) -> Estimate:
    return auc_interval(scores, [item.positive for item in items], [item.unit for item in items])


def _rises(dataset: Dataset) -> bool:
    return dataset.grades[-1] > dataset.grades[0]


_PARTS = lcm(*range(1, 23))
_RunScores = Mapping[str, Mapping[str, tuple[float, ...]]]
"""Run to unit to the scores by people and by the judge."""


def _run_scores(dataset: Dataset, items: Iterable[BenchItem], by: str) -> _RunScores:
    """The scores of every run in every unit that it has items of: the mean grade, or the share of positive items.

    A run with items of fewer than half of the units is left out, since its score would be of their difficulty.
    """
    sign = 1 if _rises(dataset) else -1
    pairs: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        judged = item.score if by == MEAN else item.says_positive
        if judged is not None:
            run_id = item.item_id.removeprefix(f"{item.unit}/").rpartition("/")[0]
            people = sign * item.gold if by == MEAN else item.positive
            pairs[run_id][item.unit].append((float(people), float(judged)))
    units = {unit for of in pairs.values() for unit in of}
    return {
        run_id: {unit: tuple(map(fmean, zip(*of, strict=True))) for unit, of in pairs[run_id].items()}
        for run_id in sorted(pairs, key=natural_key)
        if 2 * len(pairs[run_id]) >= len(units)
    }


def _run_agreement(scores: _RunScores, seed: int) -> CardMeasures:
    """How far judge and people order the runs alike, each unit of a run with one score; and on halves of the units."""
    units = sorted({unit for of in scores.values() for unit in of}, key=natural_key)
    cells = np.array([[(*of.get(unit, (0.0, 0.0)), unit in of) for unit in units] for of in scores.values()])
    # In whole numbers, so that equal means tie; those of 22 items and fewer are exact.
    people, judge, counts = np.round(cells.reshape(len(scores), len(units), 3) * (_PARTS, _PARTS, 1)).transpose(2, 0, 1)
    tables = people, counts, judge, counts
    measures = system_agreement(*tables, np.random.default_rng(seed), higher_is_better=True, replicates=REPLICATES)
    halves = split_half(*tables, np.random.default_rng(seed), higher_is_better=True)
    for name, value in ((PEOPLE_HALVES, halves.human), (JUDGE_HALVES, halves.judge)):
        measures[name] = Estimate(value, None, None, len(scores), len(units), halves.reason)
    return measures


class Answers(Record, frozen=True):
    """A judge's answers to a dataset, from which a `DatasetCard` is made."""

    drawn: Drawn
    items: tuple[BenchItem, ...]
    compared: Basis
    overlap: tuple[BenchItem, ...] | None = None
    """Word overlap on the same items; None where it cannot grade them, or is the judge."""
    overlap_prompt: Criterion | None = None
    expected: int = 0
    prompt: Criterion | None = None
    """None for stored labels, which are on the scale of the dataset."""


def dataset_card(answers: Answers, seed: int) -> DatasetCard:
    """What the answers to a dataset say of the judge."""
    drawn, prompt, items = answers.drawn, answers.prompt, answers.items
    dataset, of = drawn.dataset, answers.compared

    def measured(rows: Sequence[BenchItem], of: Basis = of) -> CardMeasures:
        return {name: estimate.rounded(DECIMALS) for name, estimate in measure(dataset, rows, of, seed).items()}

    def values(measures: CardMeasures) -> dict[str, float | None]:
        return {name: estimate.value for name, estimate in measures.items()}

    missing = Counter(item.reason or "" for item in items if item.score is None)
    judge, (people, beside) = measured(items), people_items(drawn, items)
    overlap_of = basis(dataset, answers.overlap_prompt.scale) if answers.overlap_prompt else of
    over = None
    if answers.overlap is not None:
        over = auc_difference([contest(items, answers.overlap)]).rounded(DECIMALS)
    return DatasetCard(
        **{name: getattr(dataset, name) for name in _OF_DATASET},
        files=drawn.files,
        digest=drawn.digest,
        skipped=drawn.skipped,
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
        worst_case=values(measured(worst_case(dataset, items)) if missing else judge),
        constant=values(measured(constant_items(drawn))),
        overlap=measured(answers.overlap, overlap_of) if answers.overlap else None,
        people=measured(people) if people else None,
        beside_people=measured(beside) if people else None,
        over_overlap=over,
        against_overlap=_against(over),
        **_by_runs(answers, seed),
    )


def _by_runs(answers: Answers, seed: int) -> dict[str, Any]:
    """The fields of a card about runs; none of a dataset that names no run."""
    runs, run_scores = {}, {}
    answered = {item.item_id for item in answers.items if item.score is not None}
    overlap = [item for item in answers.overlap or () if item.item_id in answered]
    for by in (MEAN, SHARE) if answers.drawn.dataset.runs else ():
        scores, words = (_run_scores(answers.drawn.dataset, of, by) for of in (answers.items, overlap))
        measures = _run_agreement(scores, seed) | {OVERLAP_TAU: _run_agreement(words, seed)["tau_b"]}
        runs[by] = {name: estimate.rounded(DECIMALS) for name, estimate in measures.items()}
        run_scores[by] = {
            run_id: [round(fmean(side), DECIMALS) for side in zip(*of.values(), strict=True)]
            for run_id, of in scores.items()
        }
    return {"runs": runs, "run_scores": run_scores}


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
        contests = [contest(each.items, each.overlap or ()) for each in of_rung]
        difference = auc_difference(contests, level=1 - ALPHA / len(there)).rounded(DECIMALS)
        names = tuple(each.drawn.dataset.name for each in of_rung)
        cards.append(RungCard(rung, names, difference, _against(difference)))
    return tuple(cards)


def items_bytes(answers: Sequence[Answers]) -> bytes:
    """The lines of `items.jsonl`."""
    return jsonl_bytes(item for each in answers for item in each.items)


def contest(a: Sequence[BenchItem], b: Sequence[BenchItem]) -> Contest:
    """Two judges' scores of the items that both ranked, in the order of the first."""
    others = {item.item_id: item for item in b if item.score is not None}
    pairs = [(item, others[item.item_id]) for item in a if item.score is not None and item.item_id in others]
    return Contest(
        [first.score or 0.0 for first, _ in pairs],
        [second.score or 0.0 for _, second in pairs],
        [first.positive for first, _ in pairs],
        [first.unit for first, _ in pairs],
    )


def _against(difference: Estimate | None) -> Against:
    if difference is None or difference.value is None:
        return "not compared"
    if difference.low is None or difference.high is None:
        return "not told apart" if difference.reason == SAME else "not compared"
    if difference.low > 0:
        return "better"
    return "worse" if difference.high < 0 else "not told apart"
