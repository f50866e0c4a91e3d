"""What goes into a panel: gold rows by criterion and item, and the problems that forbid a comparison. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from judge.ask.labels import Labels
from judge.ask.opening import MOST_SAMPLES
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldByResponse, GoldRow, check_scale
from judge.records import Problem, Scale

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
    earlier = next((known for known in group if known.assessor == row.assessor), None)
    if earlier is None or earlier.grade == row.grade:
        group.append(row)
    else:
        message = f"{row.assessor} gave response {row.response_id} {earlier.grade} and {row.grade}: expected one grade"
        problem = _gold_problem("different_grades", "$.grade", message, row.turn_id)
        raise InputError("gold: different grades of one response by one assessor", [problem])


def input_problems(
    scale: Scale, gold: Mapping[ItemKey, Sequence[GoldRow]], labels: Sequence[tuple[Labels, Scale]]
) -> list[Problem]:
    """Everything that forbids a comparison of the gold and the labels of one criterion."""
    rows = [row for group in gold.values() for row in group]
    problems = [*check_scale(rows, scale), *_split_problems(rows), *_inclusion_problems(gold)]
    for judged, its_scale in labels:
        problems += _label_problems(judged, its_scale)
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
    return Problem(code, "error", "gold", turn_id, path, message)


def _label_problems(labels: Labels, scale: Scale) -> list[Problem]:
    """Grades off the judge's scale, sample numbers out of range, and second judgments of label sample."""
    grades = {level.grade for level in scale.levels}
    expected = ", ".join(map(str, sorted(grades)))
    problems = []
    for label in labels.labels:
        if not 0 <= label.sample < MOST_SAMPLES:
            message = f"sample {label.sample} of {label.response_id}: expected 0 to {MOST_SAMPLES - 1}"
            problems.append(Problem("wrong_sample", "error", labels.source, label.turn_id, "$.sample", message))
        if label.grade is not None and label.grade not in grades:
            message = f"grade {label.grade} for {label.response_id} by {labels.judge}: expected one of {expected}"
            problems.append(Problem("off_scale", "error", labels.source, label.turn_id, "$.grade", message))
    for (turn_id, response_id, _), count in _judged_again(labels).items():
        message = f"{response_id} is judged {count} times by {labels.judge}: expected one judgment a sample"
        problems.append(Problem("duplicate_judgment", "error", labels.source, turn_id, "", message))
    return problems


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


def _repeated(labels: Sequence[tuple[Labels, Scale]]) -> list[Problem]:
    """Judges that come twice: no table could tell two files of one judge and prompt apart."""
    first: dict[tuple[str, str | None], Labels] = {}
    problems = []
    for judged, _ in labels:
        if (judged.judge, judged.prompt) == (CONSTANT, None):
            message = f"{CONSTANT} is the name of the baseline that always gives one grade: rename the file"
            problems.append(Problem("reserved_name", "error", judged.source, None, "", message))
        earlier = first.setdefault((judged.judge, judged.prompt), judged)
        if earlier is not judged:
            message = (
                f"judge {judged.judge}{f' under {judged.prompt}' if judged.prompt else ''} is in {earlier.source} too, "
                "or there under another version of the prompt: calibrate one at a time"
            )
            problems.append(Problem("duplicate_judge", "error", judged.source, None, "", message))
    return problems
