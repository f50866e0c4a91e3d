"""Everything that is wrong with gold files, all at once: what cannot be used, and what weakens a claim made with it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from judge.errors import InputError
from judge.gold.rows import GoldRow, finder, match, row_key, scan_gold
from judge.gold.seal import SealedItem, item_of
from judge.pool.records import Pool
from judge.records import Level, Problem, Scale, Severity
from judge.text.ids import natural_key
from judge.text.safe import shown


class CheckedGold(msgspec.Struct, frozen=True):
    """What a check found."""

    rows: tuple[GoldRow, ...]
    """The rows that are sound each by itself, of all files."""
    problems: tuple[Problem, ...]
    unmatched: int | None
    """Rows that belong to no response of the pool; None without a pool."""


class _Placed(msgspec.Struct, frozen=True):
    """A row and where it stands."""

    file: str
    line: int
    row: GoldRow

    def problem(self, severity: Severity, code: str, path: str, message: str) -> Problem:
        """A problem at this row."""
        return Problem(code, severity, self.file, self.row.turn_id, f"line {self.line}: {path}", message)


def check_gold(
    contents: Sequence[tuple[str, bytes]],
    scales: Mapping[str, Scale],
    pool: Pool | None = None,
    *,
    other: Scale | None = None,
) -> CheckedGold:
    """Check gold files, each alone and all together as one set of gold.

    Args:
        contents: Names and (unpacked) bytes of the files.
        scales: The scale of each criterion that has a known one.
        pool: The responses that the rows should be about.
        other: The scale of every other criterion; without it, a row under one is an error.
    """
    placed: list[_Placed] = []
    problems: list[Problem] = []
    for name, content in contents:
        rows, faults = scan_gold(content, name)
        problems += faults
        placed += (_Placed(name, number, row) for number, row in rows)
    for check in CHECKS:
        problems += check(placed)
    problems += _off_scale(placed, scales, other)
    unmatched = None
    if pool is not None:
        found = list(_not_in_pool(placed, pool))
        unmatched = sum(problem.code == "not_in_pool" for problem in found)
        problems += found
    return CheckedGold(tuple(one.row for one in placed), tuple(sorted(problems, key=_order)), unmatched)


def plain_scale(low: int, high: int, *, higher_is_better: bool) -> Scale:
    """A scale of the integers from `low` to `high`, for gold that no prompt describes."""
    levels = tuple(Level(grade, str(grade), "") for grade in range(low, high + 1))
    return Scale(levels, "higher" if higher_is_better else "lower", (high if higher_is_better else low,), None)


def _order(problem: Problem) -> tuple[object, ...]:
    return natural_key(problem.file), natural_key(problem.path), problem.code


def _off_scale(placed: Iterable[_Placed], scales: Mapping[str, Scale], other: Scale | None) -> Iterator[Problem]:
    unknown: set[str] = set()
    for one in placed:
        name, grade = one.row.criterion, one.row.grade
        if scale := scales.get(name, other):
            grades = [level.grade for level in scale.levels]
            if grade not in grades:
                message = f"{shown(name)} grade {shown(grade)}: expected one of {', '.join(map(str, grades))}"
                yield one.problem("error", "off_scale", "$.grade", message)
        elif name not in unknown:
            unknown.add(name)
            message = f"no prompt declares {shown(name)}: neither its scale nor which end is good is known"
            yield one.problem("error", "missing_polarity", "$.criterion", message)


def _repeated(placed: Iterable[_Placed]) -> Iterator[Problem]:
    """Rows that another file has too; those of one file are found when it is read."""
    first: dict[tuple[str | None, ...], _Placed] = {}
    for one in placed:
        other = first.setdefault(row_key(one.row), one)
        if other is not one:
            message = (
                f"the same response, criterion and assessor are already in {other.file}, line {other.line}, "
                f"with {'the same' if other.row.grade == one.row.grade else 'another'} grade"
            )
            yield one.problem("error", "duplicate_row", "$", message)


def _run_case(placed: Iterable[_Placed]) -> Iterator[Problem]:
    first: dict[str, _Placed] = {}
    told: set[str] = set()
    for one in placed:
        run_id = one.row.run_id
        if run_id is None or run_id in told:
            continue
        other = first.setdefault(run_id.casefold(), one)
        if other.row.run_id != run_id:
            told.add(run_id)
            message = (
                f"{shown(run_id)} is {shown(other.row.run_id)} in {other.file}, line {other.line}, but for its case"
            )
            yield one.problem("error", "run_id_case", "$.run_id", message)


def _no_topic(placed: Iterable[_Placed]) -> Iterator[Problem]:
    for one in placed:
        if not one.row.turn_id.rpartition("_")[0].strip():
            message = (
                f"{shown(one.row.turn_id)} names no topic: expected `<topic>_<turn>`, since intervals are over topics"
            )
            yield one.problem("warning", "no_topic", "$.turn_id", message)


def _inclusion(placed: Iterable[_Placed]) -> Iterator[Problem]:
    groups: dict[tuple[str, str], list[_Placed]] = defaultdict(list)
    for one in placed:
        groups[one.file, one.row.criterion].append(one)
    for (_, criterion), group in groups.items():
        without = [one for one in group if one.row.inclusion_probability is None]
        if not without:
            continue
        mixed = len(without) < len(group)
        message = (
            f"{len(without)} of {len(group)} rows under {shown(criterion)} do not say with which probability the "
            f"response was drawn: {'rows with and without one cannot be weighted together' if mixed else _UNKNOWN}"
        )
        code = "mixed_inclusion" if mixed else "unknown_inclusion"
        yield without[0].problem("warning", code, "$.inclusion_probability", message)


_UNKNOWN = "means are those of the graded responses, and of all only if they were drawn at random or are all"


def _split_topic(placed: Iterable[_Placed]) -> Iterator[Problem]:
    """A topic with rows in two parts, and gold of which only a part is split."""
    first: dict[str, _Placed] = {}
    told: set[str] = set()
    placed = list(placed)
    for one in placed:
        if one.row.split is None or one.row.topic_id in told:
            continue
        other = first.setdefault(one.row.topic_id, one)
        if other.row.split != one.row.split:
            told.add(one.row.topic_id)
            message = (
                f"topic {shown(one.row.topic_id)} is in {other.row.split} on line {other.line} of {other.file} and in "
                f"{one.row.split} here: a judge chosen on it has seen the test"
            )
            yield one.problem("error", "split_topic", "$.split", message)
    without = [one for one in placed if one.row.split is None]
    if first and without:
        message = f"{len(without)} of {len(placed)} rows belong to neither dev nor test, the others do"
        yield without[0].problem("warning", "partial_split", "$.split", message)


def _item_in_both(placed: Iterable[_Placed]) -> Iterator[Problem]:
    first: dict[SealedItem, _Placed] = {}
    told: set[SealedItem] = set()
    for one in placed:
        item = item_of(one.row)
        if one.row.split is None or item in told:
            continue
        other = first.setdefault(item, one)
        if other.row.split != one.row.split:
            told.add(item)
            message = f"this response is in {other.row.split} on line {other.line} of {other.file}"
            yield one.problem("error", "item_in_both", "$.split", message)


def _not_blind(placed: Iterable[_Placed]) -> Iterator[Problem]:
    counts = Counter((one.file, one.row.made) for one in placed)
    told: set[tuple[str, str]] = set()
    for one in placed:
        kind = one.file, one.row.made
        if one.row.made != "blind" and kind not in told:
            told.add(kind)
            message = (
                f"{counts[kind]} rows are {one.row.made}: not usable for a claim about a judge ({_MADE[one.row.made]})"
            )
            yield one.problem("warning", "not_blind", "$.made", message)


_MADE = {
    "postedit": "the assessor saw the grade of a judge first",
    "construction": "nobody assessed the response; it was written to have the grade",
    "synthetic": "the grade does not come from a person",
}


def _not_in_pool(placed: Sequence[_Placed], pool: Pool) -> Iterator[Problem]:
    """Rows about no response of the pool, and different grades of what is one response there."""
    run_ids = {entry.run_id for response in pool.responses for entry in response.runs}
    by_case = {run_id.casefold(): run_id for run_id in run_ids}
    find = finder(pool)
    told: set[str] = set()
    for one in placed:
        run_id = one.row.run_id
        if run_id is not None and run_id not in run_ids | told and (other := by_case.get(run_id.casefold())):
            told.add(run_id)
            message = f"{shown(run_id)} is {shown(other)} in the pool"
            yield one.problem("error", "run_id_case", "$.run_id", message)
        if find(one.row) is None:
            message = (
                f"{shown(one.row.text_sha256 or one.row.response_id)} is no response, or not one only, of the pool"
            )
            yield one.problem("warning", "not_in_pool", "$", message)
    try:
        match([one.row for one in placed], pool)
    except InputError as error:
        yield from error.problems


CHECKS: tuple[Callable[[Sequence[_Placed]], Iterator[Problem]], ...] = (
    _repeated,
    _run_case,
    _no_topic,
    _inclusion,
    _split_topic,
    _item_in_both,
    _not_blind,
)
"""What needs nothing but the rows."""
