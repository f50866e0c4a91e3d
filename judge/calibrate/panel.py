"""Gold and labels of one criterion side by side: arrays of codes over the same items. Pure.

A code is the place of a grade on the scale in ascending order, -1 where there is no grade.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import multimode
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.opening import MOST_SAMPLES
from judge.ask.results import Label, Labels
from judge.ask.verdict import grade_probabilities
from judge.calibrate.findings import CalibrationOptions, FindingFact, FindingRow, Split, judge_name
from judge.errors import InputError, UsageError, refuse
from judge.gold.rows import ADJUDICATED, GoldByResponse, GoldRow, check_scale
from judge.gold.seal import item_of
from judge.io.ids import Cluster, cluster_of, groups_of, natural_key, topic_of
from judge.pool.pairs import other_orders
from judge.pool.records import Pool, PooledResponse
from judge.records import Estimate, JudgedUnit, Problem, Scale, file_problem
from judge.stats.consensus import mode_shares
from judge.stats.raters import GradeCodes, codes_of
from judge.stats.tables import topic_tables
from judge.units import UNITS

ItemKey = tuple[str, str]
"""turn_id and response_id."""
CONSTANT = "constant"
"""The judge that always gives the assessors' commonest grade; made from the gold."""


def gold_items(
    rows: Sequence[GoldRow], matched: GoldByResponse | None
) -> dict[str, dict[ItemKey, tuple[GoldRow, ...]]]:
    """Gold rows by criterion and item.

    A UsageError if there is no pool, and a row names its response by text alone. An InputError if an assessor gave one
    item different grades.
    """
    by_criterion: dict[str, dict[ItemKey, list[GoldRow]]] = defaultdict(lambda: defaultdict(list))
    if matched is not None:
        for (response_id, criterion), group in matched.items():
            by_criterion[criterion][group[0].turn_id, response_id] += group
    else:
        nameless = [row for row in rows if row.response_id is None]
        if nameless:
            raise UsageError(
                f"{len(nameless)} gold rows name their response by text_sha256 alone: --pool with the pool.jsonl they "
                "were judged in is needed to find them"
            )
        for row in rows:
            _add(by_criterion[row.criterion][row.turn_id, row.response_id or ""], row)
    return {name: {key: tuple(group) for key, group in items.items()} for name, items in by_criterion.items()}


def _add(group: list[GoldRow], row: GoldRow) -> None:
    """Add a row to its item's; an assessor may have several equal ones, such as a row for each run with the response.

    An InputError if the assessor also gave the item a different grade.
    """
    earlier = next((other for other in group if other.assessor == row.assessor), None)
    if earlier is None or earlier.grade == row.grade:
        group.append(row)
    else:
        message = f"{row.assessor} gave response {row.response_id} {earlier.grade} and {row.grade}: expected one grade"
        problem = _gold_problem("different_grades", "$.grade", message, row.turn_id)
        raise InputError("gold: different grades of one response by one assessor", [problem])


def input_problems(scale: Scale, gold: Mapping[ItemKey, Sequence[GoldRow]], labels: Sequence[Labels]) -> list[Problem]:
    """Everything that forbids a comparison of the gold and the labels of one criterion."""
    rows = [row for group in gold.values() for row in group]
    problems = [*check_scale(rows, scale), *_split_problems(rows), *_inclusion_problems(gold)]
    for judged in labels:
        problems += _label_problems(judged, judged.scale or scale)
    return [*problems, *_repeated(labels)]


def _inclusion_problems(gold: Mapping[ItemKey, Sequence[GoldRow]]) -> list[Problem]:
    """An inclusion probability must be on every row or on none, and the same on all of an item."""
    path = "$.inclusion_probability"
    rows = [row for group in gold.values() for row in group]
    without = sum(row.inclusion_probability is None for row in rows)
    if 0 < without < len(rows):
        message = f"{without} rows have no inclusion probability, others have one: expected it on every row or on none"
        return [_gold_problem("mixed_inclusion", path, message)]
    problems = []
    for (turn_id, response_id), group in gold.items():
        probabilities = sorted({row.inclusion_probability for row in group if row.inclusion_probability is not None})
        if len(probabilities) > 1:
            message = f"response {response_id} has {' and '.join(map(str, probabilities))}: expected one probability"
            problems.append(_gold_problem("inclusion_probability", path, message, turn_id))
    return problems


def _split_problems(rows: Sequence[GoldRow]) -> list[Problem]:
    """A split must be on every row, and on one side for each topic."""
    sides: dict[str, set[str | None]] = defaultdict(set)
    for row in rows:
        sides[row.topic_id].add(row.split)
    without = sum(row.split is None for row in rows)
    if 0 < without < len(rows):
        return [_gold_problem("mixed_split", "$.split", f"{without} rows have no split, others have one")]
    return [
        _gold_problem("split_topic", "$.split", f"topic {topic} is in dev and in test")
        for topic, splits in sides.items()
        if len(splits) > 1
    ]


def _gold_problem(code: str, path: str, message: str, turn_id: str | None = None) -> Problem:
    return file_problem(code, "gold", message, path, turn_id=turn_id)


def _label_problems(labels: Labels, scale: Scale) -> list[Problem]:
    """Grades off the judge's scale, sample numbers out of range, and second judgments of label sample."""
    grades = {level.grade for level in scale.levels}
    expected = ", ".join(map(str, sorted(grades)))
    problems = []
    for label in labels.labels:
        if not 0 <= label.sample < MOST_SAMPLES:
            message = f"sample {label.sample} of {label.response_id}: expected 0 to {MOST_SAMPLES - 1}"
            problems.append(file_problem("wrong_sample", labels.source, message, "$.sample", turn_id=label.turn_id))
        if label.grade is not None and label.grade not in grades:
            message = f"grade {label.grade} for {label.response_id} by {labels.judge}: expected one of {expected}"
            problems.append(file_problem("off_scale", labels.source, message, "$.grade", turn_id=label.turn_id))
    for (turn_id, response_id, _), count in _judged_again(labels).items():
        message = f"{response_id} is judged {count} times by {labels.judge}: expected one judgment a sample"
        problems.append(file_problem("duplicate_judgment", labels.source, message, turn_id=turn_id))
    return problems


def scale_remedy(problems: Iterable[Problem]) -> str:
    """The options that take columns with grades off their scale; empty where all are on it."""
    files = {problem.file for problem in problems if problem.code == "off_scale"}
    remedy = "; --scale LOW-HIGH says on which scale columns are" if files else ""
    if files - {"gold"}:
        remedy += ", --off-scale missing counts what is no grade of a judge's scale as missing"
    return remedy


def _judged_again(labels: Labels) -> dict[tuple[str, str, int], int]:
    """How many judgments a sample has where it has several, by turn, response and sample, the first one first."""
    # Numbers take a fraction of the memory of names; of those that come again, the names decide.
    hashes: set[int] = set()
    again: set[int] = set()
    for label in labels.labels:
        number = hash((label.turn_id, label.response_id, label.sample))
        (again if number in hashes else hashes).add(number)
    counts = Counter(
        key
        for label in (labels.labels if again else ())
        if hash(key := (label.turn_id, label.response_id, label.sample)) in again
    )
    return {key: count for key, count in counts.items() if count > 1}


def _repeated(labels: Sequence[Labels]) -> list[Problem]:
    """Judges that come twice: no table could tell two files of one judge and prompt apart."""
    first: dict[tuple[str, str | None], Labels] = {}
    problems = []
    for judged in labels:
        if (judged.judge, judged.prompt) == (CONSTANT, None):
            message = f"{CONSTANT} is the name of the baseline that always gives one grade: rename the file"
            problems.append(file_problem("reserved_name", judged.source, message))
        earlier = first.setdefault((judged.judge, judged.prompt), judged)
        if earlier is not judged:
            message = (
                f"judge {judged.judge}{f' under {judged.prompt}' if judged.prompt else ''} is in {earlier.source} too, "
                "or there under another version of the prompt: calibrate one at a time"
            )
            problems.append(file_problem("duplicate_judge", judged.source, message))
    return problems


NOT_JUDGED = "not_judged"
"""The reason of a gold item that the judge's labels do not mention."""


class GradedItem(msgspec.Struct, frozen=True, gc=False):
    """One response with gold."""

    turn_id: str
    response_id: str
    topic_id: str
    runs: tuple[str, ...]
    """The runs that gave it at rank 1, as far as known."""
    words: int | None
    """Length of its text; None without a pool."""
    named: str = ""
    """Digest of its text or its id, as the gold names it: the same in every pool."""
    seconds: tuple[str, ...] = ()
    """Of a pair: the runs that gave the response shown second."""
    second_words: int = 1
    """Of a pair: the length of that response."""


class RunsByQrels(NamedTuple):
    """Runs under a measure by people's grades of passages and by a judge's: sums and counts of turns (R x T)."""

    measure: str
    human_sums: NDArray[np.float64]
    human_counts: NDArray[np.float64]
    judge_sums: NDArray[np.float64]
    judge_counts: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgeColumn:
    """One judge's labels over the items of a panel."""

    judge: str
    prompt: str | None
    baseline: bool
    codes: GradeCodes
    """(N,), the codes of the first sample."""
    first: tuple[Label | None, ...]
    """(N,), the labels of the first sample."""
    reasons: tuple[str | None, ...]
    expected: NDArray[np.float64]
    """(N,), the mean grade under the label probabilities; nan where there is none."""
    probabilities: NDArray[np.float64]
    """(N, k), the judge's probability of each grade of the panel; nan where there is none."""
    samples: GradeCodes
    """(R, N), a row for each sample."""
    origin: Labels | None
    """Where the labels come from; None for the constant."""
    words: Mapping[int, str]
    """What the scale calls each of two grades; empty for a longer one."""
    by_runs: RunsByQrels | None = None
    """Of passages: the runs that are ranked by people's grades and by the judge's; None without runs."""

    @property
    def name(self) -> str:
        """Judge and variant, as one name."""
        return judge_name(self.judge, self.prompt)


@dataclass(frozen=True, eq=False)
class Panel:
    """The gold items of one criterion with every grade that assessors and judges gave them."""

    criterion: str
    grades: tuple[int, ...]
    """Ascending; a code is an index into these."""
    positive: frozenset[int]
    """The codes that count as positive."""
    higher_is_better: bool
    items: tuple[GradedItem, ...]
    topics: tuple[str, ...]
    """Topic ids, or themes, in natural order: the units that intervals are over."""
    topic: GradeCodes
    """(N,), each item's place in `topics`."""
    split: tuple[Split, ...]
    """(N,), each item's split; `all` where the gold is not split."""
    shares: NDArray[np.float64]
    """(N, k), the reference: 1 at the grade that most assessors of the item gave, or its adjudicators where it has
    some; tied grades share it equally."""
    reference: str
    """Whose grades the reference is, in words: an assessor's name, or the kind of consensus."""
    assessors: Mapping[str, GradeCodes]
    """(N,), the codes of each assessor, without adjudications, which do not say how far people agree."""
    made: tuple[str, ...]
    """How the gold was made, every way once."""
    columns: tuple[JudgeColumn, ...]
    binary: bool
    """Grades are compared as positive or not, each by its own scale; expected grades stay on the judge's scale."""
    weights: NDArray[np.float64]
    """(N,), how many responses each item stands for: 1 / its inclusion probability, 1 where gold has none."""
    gold: tuple[tuple[GoldRow, ...], ...]
    words: Mapping[int, str]
    """What the scale of the gold calls each of two grades; empty for a longer one."""
    cluster: Cluster = "topic"
    unit: JudgedUnit = "response"
    """What an item is."""
    adjudicators: Mapping[str, GradeCodes] = field(default_factory=dict)
    """(N,), the codes of each adjudicator."""

    @property
    def of_pairs(self) -> bool:
        """Whether items are pairs, on a scale that each order of a pair turns around."""
        return not self.binary and any(item.seconds for item in self.items)

    @cached_property
    def tied(self) -> NDArray[np.bool_]:
        """The items for which no grade was given by most assessors (N,)."""
        return np.asarray((self.shares > 0).sum(axis=1) > 1)

    @cached_property
    def human(self) -> GradeCodes:
        """(N,), the code of the reference; -1 where assessors tie."""
        return np.where(self.tied, -1, self.shares.argmax(axis=1)).astype(np.int64)

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """(N,), the mean grade of the item's assessors, or of its adjudicators where it has some, as it is."""
        mean = self._mean(self.assessors)
        if not self.adjudicators:
            return mean
        decided = (_stacked(self.adjudicators, len(self.items)) >= 0).any(axis=0)
        return np.where(decided, self._mean(self.adjudicators), mean)

    def _mean(self, graders: Mapping[str, GradeCodes]) -> NDArray[np.float64]:
        codes = _stacked(graders, len(self.items))
        graded = codes >= 0
        grades = np.array(self.grades, dtype=np.float64)[codes]
        return np.asarray((grades * graded).sum(axis=0) / np.maximum(graded.sum(axis=0), 1))

    @property
    def weighted(self) -> bool:
        """Whether items stand for unequal numbers of responses."""
        return bool((self.weights != self.weights[:1]).any())

    def within(self, split: Split) -> NDArray[np.bool_]:
        """The items of a split (N,); `all` has every item."""
        return np.array([split in ("all", item_split) for item_split in self.split], dtype=bool)

    def tables(self, codes: GradeCodes, mask: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """C of every topic (T x k x k) over the items of the mask that have both grades.

        C holds counts or, where weights differ or assessors tie, sums of weights as `topic_tables` makes them.
        """
        return self.tables_against(self.shares[None] if mask is None else self.shares[None] * mask[:, None], codes)

    def tables_against(self, reference: NDArray[np.float64], codes: GradeCodes) -> NDArray[Any]:
        """The same against other references (M x N x k) for M rows of codes (M x N or N), which count together.

        An item counts with its share of each grade. Which order of a pair the gold names is chance, so each pair counts
        half in either.
        """
        row, item, human = np.nonzero(reference)
        C = topic_tables(
            human,
            np.broadcast_to(codes, reference.shape[:2])[row, item],
            self.topic[item],
            len(self.grades),
            len(self.topics),
            weights=self.weights[item],
            shares=reference[row, item, human],
        )
        return (C + C[:, ::-1, ::-1]) / 2 if self.of_pairs else C

    def against_others(self) -> tuple[GradeCodes, NDArray[np.float64]]:
        """The codes of each assessor (A x N), and the reference that the others give (A x N x k); A is 0 with one.

        A code is -1, and a reference 0 throughout, where nobody graded.
        """
        codes = _stacked(self.assessors, len(self.items))
        if len(codes) < 2:
            return codes[:0], np.zeros((0, *self.shares.shape))
        k = len(self.grades)
        return codes, np.array([_shares(np.delete(codes, i, axis=0), k) for i in range(len(codes))])

    def farthest(self, codes: GradeCodes) -> GradeCodes:
        """The codes, with every missing grade replaced by the one farthest from the reference.

        No grade is worse for percent or a mean distance. Kappa, alpha and tau_b also depend on the marginals, so other
        replacements may be worse for them.
        """
        g = np.array(self.grades)
        worst = (self.shares @ np.abs(g[:, None] - g)).argmax(axis=1)
        return np.where(codes < 0, worst, codes)


class Case(NamedTuple):
    """One judge beside the assessors, and how it is calibrated: what a finding is computed from."""

    panel: Panel
    column: JudgeColumn
    split: Split
    """On which the judges are compared."""
    options: CalibrationOptions = CalibrationOptions()
    others: tuple[JudgeColumn, ...] = ()
    """The other judges that are compared, baselines among them."""
    decided: Split | None = None
    """Of the chosen judge: the split of the verdict."""

    @property
    def graded(self) -> NDArray[np.bool_]:
        """The items of the split that the judge graded (N,)."""
        return self.panel.within(self.split) & (self.column.codes >= 0)

    @property
    def topics(self) -> NDArray[Any]:
        """The topic of each item (N,)."""
        return np.array(self.panel.topics)[self.panel.topic]

    def row(
        self,
        facts: Mapping[str, FindingFact] = {},
        statistics: Mapping[str, Estimate] = {},
        split: Split | None = None,
    ) -> FindingRow:
        """A row about the judge, by default on the split of the comparison."""
        return FindingRow(
            judge=self.column.judge,
            prompt=self.column.prompt,
            criterion=self.panel.criterion,
            split=split or self.split,
            facts=dict(facts),
            statistics=dict(statistics),
        )


def make_panel(
    criterion: str,
    scale: Scale,
    gold: Mapping[ItemKey, Sequence[GoldRow]],
    labels: Sequence[Labels],
    *,
    pool: Pool | None = None,
    baselines: Collection[str] = (),
    binary: bool = False,
    cluster: Cluster = "topic",
    unit: JudgedUnit = "response",
) -> Panel:
    """Bring gold and labels of one criterion together.

    Labels that name no scale are on that of the gold. Several rows by one assessor have the same grade, which counts
    once. The pool has text lengths and runs. `binary` compares positive with positive grades instead of grade with
    grade, each by its own scale. An InputError for grades off their scale, two labels for one item, a split or an
    inclusion probability that is not on every row, or two probabilities for one item.
    """
    problems = input_problems(scale, gold, labels)
    of_columns = any(judged.prompt is None for judged in labels)
    remedy = scale_remedy(problems) if of_columns else ""
    refuse(problems, f"gold and judgments cannot be compared under {criterion}{remedy}")
    keys = _in_order(gold)
    grades = (0, 1) if binary else tuple(sorted(level.grade for level in scale.levels))
    code = _coding(scale, binary)
    people = _people([gold[key] for key in keys], code, len(grades))
    units = [cluster_of(topic_of(turn_id), cluster) for turn_id, _ in keys]
    topics = sorted(set(units), key=natural_key)
    columns = tuple(
        _column(judged, keys, judged.scale or scale, binary, judged.judge in baselines) for judged in labels
    )
    return Panel(
        criterion=criterion,
        grades=grades,
        positive=frozenset({1} if binary else {grades.index(grade) for grade in scale.positive if grade in grades}),
        higher_is_better=binary or scale.polarity == "higher",
        items=_items(keys, gold, pool),
        topics=tuple(topics),
        topic=codes_of(units, topics),
        split=tuple(gold[key][0].split or "all" for key in keys),
        shares=people.shares,
        reference=people.reference,
        assessors=people.assessors,
        made=tuple(sorted({row.made for group in gold.values() for row in group})),
        columns=columns,
        binary=binary,
        weights=np.array([1 / (gold[key][0].inclusion_probability or 1) for key in keys], dtype=np.float64),
        gold=tuple(tuple(gold[key]) for key in keys),
        words=scale.words,
        cluster=cluster,
        unit=unit,
        adjudicators=people.adjudicators,
    )


class _People(NamedTuple):
    """What people gave the items of a panel; the fields are those of the panel."""

    assessors: Mapping[str, GradeCodes]
    adjudicators: Mapping[str, GradeCodes]
    shares: NDArray[np.float64]
    reference: str


def _people(gold: Sequence[Sequence[GoldRow]], code: Mapping[int, int], k: int) -> _People:
    """The codes of all people, and the reference that they come to on a scale of k grades; `gold` by item, in order."""
    assessors = _graders(gold, adjudicating=False)
    adjudicators = _graders(gold, adjudicating=True)
    shares = np.zeros((len(gold), k))
    most = 0
    adjudicated = 0
    for i, rows in enumerate(gold):
        given = {row.assessor: row.grade for row in rows if row.made != ADJUDICATED}
        ruled = {row.assessor: row.grade for row in rows if row.made == ADJUDICATED}
        most = max(most, len(given))
        adjudicated += bool(ruled)
        for name, grade in given.items():
            assessors[name][i] = code[grade]
        for name, grade in ruled.items():
            adjudicators[name][i] = code[grade]
        # The grade of most, or tied grades in equal parts.
        modes = multimode((ruled or given).values())
        for grade in modes:
            shares[i, code[grade]] += 1 / len(modes)
    return _People(
        assessors=assessors,
        adjudicators=adjudicators,
        shares=shares,
        reference=_reference(tuple(assessors), most, adjudicated, len(gold)),
    )


def _graders(gold: Sequence[Sequence[GoldRow]], *, adjudicating: bool) -> dict[str, GradeCodes]:
    """No code yet of each person who graded in a role, in natural order."""
    names: set[str] = set()
    for rows in gold:
        names.update(row.assessor for row in rows if (row.made == ADJUDICATED) == adjudicating)
    ordered = sorted(names, key=lambda name: (natural_key(name), name))
    return {name: np.full(len(gold), -1, dtype=np.int64) for name in ordered}


def _stacked(graders: Mapping[str, GradeCodes], items: int) -> GradeCodes:
    """The codes of some people (A x N), who may be nobody."""
    return np.array(list(graders.values()), dtype=np.int64).reshape(len(graders), items)


def _in_order(gold: Mapping[ItemKey, object]) -> list[ItemKey]:
    """The items in natural order, a turn at a time: keys to sort a million items by take half a gigabyte."""
    by_turn = groups_of((key[0], key) for key in gold)
    keys: list[ItemKey] = []
    for turn_id in sorted(by_turn, key=natural_key):
        keys += sorted(by_turn[turn_id], key=lambda key: natural_key(key[1]))
    return keys


def _shares(codes: GradeCodes, k: int) -> NDArray[np.float64]:
    """How much of each item each of k codes is (N x k), by the codes of several assessors (A x N)."""
    votes = np.array([(codes == code).sum(axis=0) for code in range(k)], dtype=np.int64).T
    return mode_shares(votes)


def constant(panel: Panel, mask: NDArray[np.bool_]) -> JudgeColumn:
    """The judge that always gives the reference's commonest grade within the mask, by weight; of two, the lower.

    Of pairs it is the middle one, since only a tie is the same verdict in both orders.
    """
    share = panel.weights[mask] @ panel.shares[mask]
    commonest = len(share) // 2 if panel.of_pairs else int(share.argmax())
    codes = np.full(len(panel.items), commonest, dtype=np.int64)
    nothing = _unknown(len(panel.items), len(panel.grades))
    nobody = (None,) * len(codes)
    return JudgeColumn(
        judge=CONSTANT,
        prompt=None,
        baseline=True,
        codes=codes,
        first=nobody,
        reasons=nobody,
        expected=nothing[:, 0],
        probabilities=nothing,
        samples=codes[None],
        origin=None,
        words={},
    )


def _unknown(items: int, grades: int) -> NDArray[np.float64]:
    """An array of nan (N x k) that cannot be written and takes no memory."""
    return np.broadcast_to(np.array(np.nan), (items, grades))


def _coding(scale: Scale, binary: bool) -> dict[int, int]:
    """The code of each grade; with `binary` 1 for a positive grade and 0 for any other."""
    grades = sorted(level.grade for level in scale.levels)
    return {grade: int(grade in scale.positive) if binary else i for i, grade in enumerate(grades)}


def _reference(assessors: Sequence[str], most: int, adjudicated: int, items: int) -> str:
    """Whose grades the reference holds, in words; `most` assessors graded one item."""
    if not assessors:
        return "adjudication"
    if len(assessors) == 1:
        whose = assessors[0]
    else:
        whose = f"consensus of up to {most} assessors" if most > 1 else "assessors, one an item"
    return f"{whose}, {adjudicated} of {items} items adjudicated" if adjudicated else whose


def _column(labels: Labels, keys: Sequence[ItemKey], scale: Scale, binary: bool, baseline: bool) -> JudgeColumn:
    code = _coding(scale, binary)
    # AUC takes a greater expected grade as a better one, so a scale whose low end is good is turned around.
    sign = -1 if binary and scale.polarity == "lower" else 1
    wanted = {key: i for i, key in enumerate(keys)}
    count = 1 + max((label.sample for label in labels.labels), default=0)
    samples = [[-1] * len(keys) for _ in range(count)]
    first: list[Label | None] = [None] * len(keys)
    expected = np.full(len(keys), np.nan)
    probabilities = _unknown(len(keys), max(code.values()) + 1)
    if any(label.probabilities for label in labels.labels):
        probabilities = probabilities.copy()
    for label in labels.labels:
        i = wanted.get((label.turn_id, label.response_id))
        if i is None:
            continue
        if label.grade is not None:
            samples[label.sample][i] = code[label.grade]
        if label.sample != 0:
            continue
        first[i] = label
        if label.expected is not None:
            expected[i] = sign * label.expected
        if label.grade is not None and (by_grade := grade_probabilities(label.probabilities, scale)) is not None:
            probabilities[i] = 0.0
            for grade, p in by_grade.items():
                probabilities[i, code[grade]] += p
    codes = np.array(samples, dtype=np.int64)
    return JudgeColumn(
        judge=labels.judge,
        prompt=labels.prompt,
        baseline=baseline,
        codes=codes[0],
        first=tuple(first),
        reasons=tuple(label.reason if label else NOT_JUDGED for label in first),
        expected=expected,
        probabilities=probabilities,
        samples=codes,
        origin=labels,
        words=scale.words,
    )


def _items(
    keys: Sequence[ItemKey], gold: Mapping[ItemKey, Sequence[GoldRow]], pool: Pool | None
) -> tuple[GradedItem, ...]:
    pooled = {response.response_id: response for response in pool.responses} if pool else {}
    others = other_orders(pool) if pool else {}
    topic_ids = {turn_id: topic_of(turn_id) for turn_id, _ in keys}
    items = []
    for turn_id, response_id in keys:
        response = pooled.get(response_id)
        other = others.get(response_id)
        named = {row.run_id for row in gold[turn_id, response_id] if row.run_id is not None}
        runs = {entry.run_id for entry in response.runs if entry.rank == 1 or entry.citation} if response else named
        if pool is not None and UNITS[pool.unit].listed:
            # Runs are not ranked by mean grades of what they list.
            runs = set()
        words = _length(response, pool) if response and pool else None
        names = min(item_of(row).response for row in gold[turn_id, response_id])
        ordered = tuple(sorted(runs, key=natural_key))
        seconds = tuple(entry.run_id for entry in other.runs if entry.rank == 1) if other else ()
        length = max(other.tokens.whitespace, 1) if other else 1
        items.append(
            GradedItem(
                turn_id=turn_id,
                response_id=response_id,
                topic_id=topic_ids[turn_id],
                runs=ordered,
                words=words,
                named=names,
                seconds=seconds,
                second_words=length,
            )
        )
    return tuple(items)


def _length(response: PooledResponse, pool: Pool) -> int | None:
    """The words of a response, or of a passage; None where its text is not known."""
    if not UNITS[pool.unit].listed:
        return response.tokens.whitespace
    passage = pool.passages.get(response.passages[0])
    return None if passage is None else len(passage.text.split())
