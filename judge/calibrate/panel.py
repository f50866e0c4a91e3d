"""Gold and labels of one criterion side by side: arrays of codes over the same items.

A code is the place of a grade on the scale in ascending order, -1 where there is no grade.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.labels import Label, Labels
from judge.ask.several import MOST_SAMPLES
from judge.calibrate.baselines import CONSTANT
from judge.calibrate.findings import Split
from judge.errors import InputError, UsageError
from judge.gold import GoldByResponse, check_scale
from judge.gold.rows import GoldRow
from judge.pool.records import Pool
from judge.records import Problem, Scale
from judge.stats.means import consensus
from judge.stats.tables import topic_tables
from judge.text.ids import natural_key, topic_of

Key = tuple[str, str]
"""turn_id and response_id."""
GradeCodes = NDArray[np.int64]
NOT_JUDGED = "not_judged"


class GradedItem(msgspec.Struct, frozen=True):
    """One response with gold."""

    turn_id: str
    response_id: str
    topic_id: str
    runs: tuple[str, ...]
    """Runs that ranked it first, as far as known."""
    words: int | None
    """Length of its text, where the pool is at hand."""


@dataclass(frozen=True, eq=False)
class Column:
    """One judge's labels over the items of a panel."""

    judge: str
    prompt: str | None
    baseline: bool
    codes: GradeCodes
    """(N,), of the first sample."""
    reasons: tuple[str | None, ...]
    """Why an item has no grade; None where it has one."""
    expected: NDArray[np.float64]
    """(N,), the mean grade under the label probabilities; nan where there is none."""
    samples: GradeCodes
    """(R, N), one row a sample."""
    origin: Labels | None
    """Where the labels come from; None for the constant."""

    @property
    def name(self) -> str:
        """Judge and variant, as one name."""
        return self.judge if self.prompt is None else f"{self.judge} {self.prompt.partition('/')[2]}"


@dataclass(frozen=True, eq=False)
class Panel:
    """All that was said about the gold items of one criterion."""

    criterion: str
    grades: tuple[int, ...]
    """Ascending; what codes point into."""
    positive: frozenset[int]
    """GradeCodes that count as positive."""
    higher_is_better: bool
    items: tuple[GradedItem, ...]
    topics: tuple[str, ...]
    """In natural order."""
    topic: GradeCodes
    """(N,), each item's place in `topics`."""
    split: tuple[Split, ...]
    """Of each item."""
    human: GradeCodes
    """(N,), the reference: the assessor's grade, or the consensus of those who graded the item."""
    reference: str
    assessors: Mapping[str, GradeCodes]
    made: tuple[str, ...]
    """How the gold came about, every way once."""
    columns: tuple[Column, ...]
    binary: bool
    """Positive or not is compared, by each side's own scale; expected grades are then on the judge's."""
    weights: NDArray[np.float64]
    """(N,), how many responses each item stands for: 1 / its inclusion probability, 1 where gold has none."""

    @property
    def weighted(self) -> bool:
        """Whether items stand for unequal numbers of responses."""
        return bool((self.weights != self.weights[:1]).any())

    def within(self, split: Split) -> NDArray[np.bool_]:
        """The items of a split; `all` is all of them."""
        return np.array([split in ("all", one) for one in self.split], dtype=bool)

    def tables(self, codes: GradeCodes, mask: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """C of every topic (T x k x k) over the items of the mask that have both grades.

        Counts, or where weights differ sums of weights as `topic_tables` makes them.
        """
        reference = self.human if mask is None else np.where(mask, self.human, -1)
        return topic_tables(reference, codes, self.topic, len(self.grades), len(self.topics), self.weights)

    def counts(self, codes: GradeCodes, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many items of the mask have each pair of grades (k x k), whatever they weigh."""
        reference = np.where(mask, self.human, -1)
        tables = topic_tables(reference, codes, self.topic, len(self.grades), len(self.topics))
        return np.asarray(tables.sum(axis=0), dtype=np.int64)

    def farthest(self, codes: GradeCodes) -> GradeCodes:
        """The codes with each missing one at the grade farthest from the reference.

        No grade is worse for percent or a mean distance; kappa, alpha and tau_b depend on the marginals too, and
        may have worse ones.
        """
        g = np.array(self.grades)
        worst = np.abs(g[:, None] - g).argmax(axis=1)
        return np.where(codes < 0, worst[self.human], codes)


def gold_items(rows: Sequence[GoldRow], matched: GoldByResponse | None) -> dict[str, dict[Key, tuple[GoldRow, ...]]]:
    """Gold rows by criterion and item.

    Args:
        rows: All rows.
        matched: The rows by pooled response and criterion, where a pool is at hand.

    Raises:
        UsageError: There is no pool and a row names its response by text alone.
    """
    found: dict[str, dict[Key, list[GoldRow]]] = defaultdict(lambda: defaultdict(list))
    if matched is not None:
        for (response_id, criterion), group in matched.items():
            found[criterion][group[0].turn_id, response_id] += group
    else:
        nameless = [row for row in rows if row.response_id is None]
        if nameless:
            raise UsageError(
                f"{len(nameless)} gold rows name their response by text_sha256 alone: --pool with the pool.jsonl they "
                "were judged in is needed to find them"
            )
        for row in rows:
            _add(found[row.criterion][row.turn_id, row.response_id or ""], row)
    return {name: {key: tuple(group) for key, group in items.items()} for name, items in found.items()}


def _add(group: list[GoldRow], row: GoldRow) -> None:
    """Put a row to those of its item; an assessor may have several, such as one for each run that gave the response.

    Raises:
        InputError: The assessor gave the item another grade too.
    """
    earlier = next((one for one in group if one.assessor == row.assessor), None)
    if earlier is None or earlier.grade == row.grade:
        group.append(row)
    else:
        message = f"{row.assessor} gave response {row.response_id} {earlier.grade} and {row.grade}: expected one grade"
        problem = Problem("different_grades", "error", "gold", row.turn_id, "$.grade", message)
        raise InputError("gold: different grades of one response by one assessor", [problem])


def make_panel(
    criterion: str,
    scale: Scale,
    gold: Mapping[Key, Sequence[GoldRow]],
    labels: Sequence[tuple[Labels, Scale]],
    *,
    pool: Pool | None = None,
    baselines: Collection[str] = (),
    binary: bool = False,
) -> Panel:
    """Bring gold and labels of one criterion together.

    Args:
        criterion: Its name.
        scale: The gold's.
        gold: The rows of every item; several by one assessor have the same grade, which counts once.
        labels: What each judge said, and on which scale.
        pool: Where texts and runs are known from.
        baselines: Judges that are baselines, not candidates.
        binary: Compare positive with positive grades instead of grade with grade, each by its own scale.

    Raises:
        InputError: Grades off their scale, two labels for one item, a split or an inclusion probability that is not on
            every row, or two probabilities for one item.
    """
    rows = [row for group in gold.values() for row in group]
    problems = [*check_scale(rows, scale), *_split_faults(rows), *_inclusion_faults(gold)]
    for one, its_scale in labels:
        problems += _label_faults(one, its_scale)
    problems += _repeated(labels)
    if problems:
        raise InputError(f"gold and judgments cannot be compared under {criterion}", problems)
    keys = sorted(gold, key=lambda key: (natural_key(key[0]), natural_key(key[1])))
    grades = (0, 1) if binary else tuple(sorted(level.grade for level in scale.levels))
    code = _coding(scale, binary)
    assessors = {
        name: np.array([_grade_by(name, gold[key], code) for key in keys], dtype=np.int64)
        for name in sorted({row.assessor for row in rows}, key=lambda name: (natural_key(name), name))
    }
    topics = tuple(sorted({topic_of(turn_id) for turn_id, _ in keys}, key=natural_key))
    place = {topic: i for i, topic in enumerate(topics)}
    given = [{row.assessor: row.grade for row in gold[key]} for key in keys]
    human = np.array([code[consensus(list(one.values()))] for one in given], dtype=np.int64)
    columns = tuple(_column(one, keys, its, binary, one.judge in baselines) for one, its in labels)
    return Panel(
        criterion=criterion,
        grades=grades,
        positive=frozenset({1} if binary else {grades.index(grade) for grade in scale.positive if grade in grades}),
        higher_is_better=binary or scale.polarity == "higher",
        items=_items(keys, gold, pool),
        topics=topics,
        topic=np.array([place[topic_of(turn_id)] for turn_id, _ in keys], dtype=np.int64),
        split=tuple(gold[key][0].split or "all" for key in keys),
        human=human,
        reference=_reference(list(assessors), max(map(len, given), default=0)),
        assessors=assessors,
        made=tuple(sorted({row.made for row in rows})),
        columns=columns,
        binary=binary,
        weights=np.array([1 / (gold[key][0].inclusion_probability or 1) for key in keys], dtype=np.float64),
    )


def constant(panel: Panel, mask: NDArray[np.bool_]) -> Column:
    """The judge that always gives the commonest grade of the reference within the mask, by weight; the lower of two."""
    share = np.bincount(panel.human[mask], weights=panel.weights[mask], minlength=len(panel.grades))
    commonest = int(share.argmax())
    codes = np.full(len(panel.items), commonest, dtype=np.int64)
    nothing = np.full(len(panel.items), np.nan)
    return Column(CONSTANT, None, True, codes, (None,) * len(codes), nothing, codes[None], None)


def _coding(scale: Scale, binary: bool) -> dict[int, int]:
    """Grade to code."""
    grades = sorted(level.grade for level in scale.levels)
    return {grade: int(grade in scale.positive) if binary else i for i, grade in enumerate(grades)}


def _grade_by(name: str, rows: Iterable[GoldRow], code: Mapping[int, int]) -> int:
    return next((code[row.grade] for row in rows if row.assessor == name), -1)


def _reference(assessors: Sequence[str], most: int) -> str:
    """Whose grades the reference is, from all assessors and the most that graded one item."""
    if len(assessors) == 1:
        return assessors[0]
    return f"consensus of at most {most}" if most > 1 else "assessors, one an item"


def _inclusion_faults(gold: Mapping[Key, Sequence[GoldRow]]) -> list[Problem]:
    """An inclusion probability must be on every row or on none, and the same on all of an item."""
    path = "$.inclusion_probability"
    rows = [row for group in gold.values() for row in group]
    without = sum(row.inclusion_probability is None for row in rows)
    if 0 < without < len(rows):
        message = f"{without} rows have no inclusion probability, others have one: expected it on every row or on none"
        return [Problem("mixed_inclusion", "error", "gold", None, path, message)]
    return [
        Problem(
            "inclusion_probability",
            "error",
            "gold",
            turn_id,
            path,
            f"response {response_id} has {' and '.join(map(str, sorted(found)))}: expected one probability",
        )
        for (turn_id, response_id), group in gold.items()
        if len(found := {row.inclusion_probability for row in group if row.inclusion_probability is not None}) > 1
    ]


def _split_faults(rows: Sequence[GoldRow]) -> list[Problem]:
    """A split must be on every row, and on one side for each topic."""
    sides: dict[str, set[str | None]] = defaultdict(set)
    for row in rows:
        sides[row.topic_id].add(row.split)
    everywhere = set().union(*sides.values()) if sides else set()
    if None in everywhere and len(everywhere) > 1:
        count = sum(row.split is None for row in rows)
        return [
            Problem("mixed_split", "error", "gold", None, "$.split", f"{count} rows have no split, others have one")
        ]
    return [
        Problem("split_topic", "error", "gold", None, "$.split", f"topic {topic} is in dev and in test")
        for topic, found in sides.items()
        if len(found) > 1
    ]


def _label_faults(labels: Labels, scale: Scale) -> list[Problem]:
    grades = {level.grade for level in scale.levels}
    expected = ", ".join(map(str, sorted(grades)))
    problems = []
    seen: Counter[tuple[str, str, int]] = Counter()
    for one in labels.labels:
        seen[one.turn_id, one.response_id, one.sample] += 1
        if not 0 <= one.sample < MOST_SAMPLES:
            message = f"sample {one.sample} of {one.response_id}: expected 0 to {MOST_SAMPLES - 1}"
            problems.append(Problem("wrong_sample", "error", labels.source, one.turn_id, "$.sample", message))
        if one.grade is not None and one.grade not in grades:
            message = f"grade {one.grade} for {one.response_id} by {labels.judge}: expected one of {expected}"
            problems.append(Problem("off_scale", "error", labels.source, one.turn_id, "$.grade", message))
    for (turn_id, response_id, _), count in seen.items():
        if count > 1:
            message = f"{response_id} is judged {count} times by {labels.judge}: expected one judgment a sample"
            problems.append(Problem("duplicate_judgment", "error", labels.source, turn_id, "", message))
    return problems


def _repeated(labels: Sequence[tuple[Labels, Scale]]) -> list[Problem]:
    """Two files of one judge and prompt could not be told apart in any table."""
    first: dict[tuple[str, str | None], Labels] = {}
    problems = []
    for one, _ in labels:
        if (one.judge, one.prompt) == (CONSTANT, None):
            message = f"{CONSTANT} is the name of the baseline that always gives one grade: rename the file"
            problems.append(Problem("reserved_name", "error", one.source, None, "", message))
        earlier = first.setdefault((one.judge, one.prompt), one)
        if earlier is not one:
            message = (
                f"judge {one.judge}{f' under {one.prompt}' if one.prompt else ''} is in {earlier.source} too, or there "
                "under another version of the prompt: calibrate one at a time"
            )
            problems.append(Problem("duplicate_judge", "error", one.source, None, "", message))
    return problems


def _column(labels: Labels, keys: Sequence[Key], scale: Scale, binary: bool, baseline: bool) -> Column:
    code = _coding(scale, binary)
    # Of positive or not, the expected grade tells only on a scale whose high end is good.
    sign = -1 if binary and scale.polarity == "lower" else 1
    wanted = {key: i for i, key in enumerate(keys)}
    count = 1 + max((one.sample for one in labels.labels), default=0)
    samples = np.full((count, len(keys)), -1, dtype=np.int64)
    first: dict[int, Label] = {}
    for one in labels.labels:
        i = wanted.get((one.turn_id, one.response_id))
        if i is None:
            continue
        if one.grade is not None:
            samples[one.sample, i] = code[one.grade]
        if one.sample == 0:
            first[i] = one
    places = range(len(keys))
    return Column(
        judge=labels.judge,
        prompt=labels.prompt,
        baseline=baseline,
        codes=samples[0],
        reasons=tuple(first[i].reason if i in first else NOT_JUDGED for i in places),
        expected=sign * np.array([_expected(first.get(i)) for i in places], dtype=np.float64),
        samples=samples,
        origin=labels,
    )


def _expected(label: Label | None) -> float:
    return label.expected if label is not None and label.expected is not None else float("nan")


def _items(keys: Sequence[Key], gold: Mapping[Key, Sequence[GoldRow]], pool: Pool | None) -> tuple[GradedItem, ...]:
    pooled = {one.response_id: one for one in pool.responses} if pool else {}
    items = []
    for turn_id, response_id in keys:
        known = pooled.get(response_id)
        named = {row.run_id for row in gold[turn_id, response_id] if row.run_id is not None}
        runs = {entry.run_id for entry in known.runs if entry.rank == 1} if known else named
        words = known.tokens.whitespace if known else None
        items.append(GradedItem(turn_id, response_id, topic_of(turn_id), tuple(sorted(runs, key=natural_key)), words))
    return tuple(items)
