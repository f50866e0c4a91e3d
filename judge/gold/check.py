"""All problems of gold files at once: errors make rows unusable, warnings weaken a claim made with the gold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import multimode

import msgspec

from judge.errors import InputError
from judge.gold.rows import ADJUDICATED, BLIND, GoldRow, finder, match, row_key, scan_gold
from judge.gold.seal import item_of
from judge.io.ids import groups_of, natural_key
from judge.io.text import count, shown
from judge.pool.records import Pool
from judge.records import Level, Problem, Scale, Severity, file_problem
from judge.units import UNITS


class CheckedGold(msgspec.Struct, frozen=True):
    """The rows and the problems of checked gold files."""

    rows: tuple[GoldRow, ...]
    """The rows of all files that are valid on their own."""
    problems: tuple[Problem, ...]
    """Sorted by file, place and code."""
    unmatched: int | None
    """How many rows belong to no response of the pool; None without a pool."""


class _Line(msgspec.Struct, frozen=True):
    """A gold row with its file and line number."""

    file: str
    number: int
    row: GoldRow

    def problem(self, severity: Severity, code: str, path: str, message: str) -> Problem:
        """A problem at this row."""
        return file_problem(
            code, self.file, message, f"line {self.number}: {path}", turn_id=self.row.turn_id, severity=severity
        )


def check_gold(
    contents: Sequence[tuple[str, bytes]],
    scales: Mapping[str, Scale],
    pool: Pool | None = None,
    *,
    other: Scale | None = None,
) -> CheckedGold:
    """Check the (unpacked) bytes of named gold files, each alone and all together as one set of gold.

    A criterion without a scale has that of `other`; without one, a row under it is an error.
    """
    lines: list[_Line] = []
    problems: list[Problem] = []
    for name, content in contents:
        rows, row_problems = scan_gold(content, name)
        problems += row_problems
        lines += (_Line(name, number, row) for number, row in rows)
    for check in CHECKS:
        problems += check(lines)
    problems += _off_scale(lines, scales, other)
    unmatched = None
    if pool is not None:
        absent = list(_not_in_pool(lines, pool))
        unmatched = sum(problem.code == "not_in_pool" for problem in absent)
        problems += absent
    problems.sort(key=lambda problem: (natural_key(problem.file), natural_key(problem.path), problem.code))
    return CheckedGold(tuple(line.row for line in lines), tuple(problems), unmatched)


class AssessorCount(msgspec.Struct):
    """What one assessor did, beside the others; an item is a response under a criterion."""

    assessor: str
    labels: int = 0
    shared: int = 0
    """Labels of items that another assessor labeled too."""
    differing: int = 0
    """Labels of these that are not the grade of all others."""
    upheld: int = 0
    """Labels that an adjudication of the item confirmed."""
    overruled: int = 0
    """Labels that it did not confirm."""
    adjudications: int = 0
    """Adjudicated grades that they gave."""


def assessor_counts(rows: Iterable[GoldRow]) -> tuple[AssessorCount, ...]:
    """A count for each assessor, in natural order of their names."""
    counts: dict[str, AssessorCount] = {}
    # A key without its last part, the assessor, is an item.
    for group in groups_of((row_key(row)[:-1], row) for row in rows).values():
        given = [row for row in group if row.made != ADJUDICATED]
        ruled = [row for row in group if row.made == ADJUDICATED]
        grades = {row.grade for row in given}
        decided = multimode(row.grade for row in ruled)
        for row in given:
            counted = counts.setdefault(row.assessor, AssessorCount(row.assessor))
            counted.labels += 1
            counted.shared += len(given) > 1
            counted.differing += len(grades) > 1
            counted.upheld += decided == [row.grade]
            counted.overruled += len(decided) == 1 and decided != [row.grade]
        for row in ruled:
            counts.setdefault(row.assessor, AssessorCount(row.assessor)).adjudications += 1
    return tuple(counts[name] for name in sorted(counts, key=natural_key))


def plain_scale(low: int, high: int, *, higher_is_better: bool) -> Scale:
    """A scale of the integers from `low` to `high`, for a criterion without a prompt."""
    levels = tuple(Level(grade, str(grade), "") for grade in range(low, high + 1))
    return Scale(levels, "higher" if higher_is_better else "lower", (high if higher_is_better else low,), None)


def _off_scale(lines: Iterable[_Line], scales: Mapping[str, Scale], other: Scale | None) -> Iterator[Problem]:
    unknown: set[str] = set()
    for line in lines:
        name = line.row.criterion
        grade = line.row.grade
        if scale := scales.get(name, other):
            grades = [level.grade for level in scale.levels]
            if grade not in grades:
                message = f"{shown(name)} grade {shown(grade)}: expected one of {', '.join(map(str, grades))}"
                yield line.problem("error", "off_scale", "$.grade", message)
        elif name not in unknown:
            unknown.add(name)
            message = f"no prompt declares {shown(name)}: neither its scale nor which end is good is known"
            yield line.problem("error", "missing_polarity", "$.criterion", message)


def _met_again(lines: Iterable[_Line], key: Callable[[GoldRow], object]) -> Iterator[tuple[_Line, _Line]]:
    """Each line with a key that an earlier one has, and the first that has it; without a key, a line meets none."""
    first: dict[object, _Line] = {}
    for line in lines:
        name = key(line.row)
        if name is not None and (earlier := first.setdefault(name, line)) is not line:
            yield line, earlier


def _repeated(lines: Iterable[_Line]) -> Iterator[Problem]:
    """Rows that two files share; repeated rows within one file are reported when the file is read."""
    for line, earlier in _met_again(lines, row_key):
        message = (
            f"the same response, criterion and assessor are already in {earlier.file}, line {earlier.number}, "
            f"with {'the same' if earlier.row.grade == line.row.grade else 'another'} grade"
        )
        yield line.problem("error", "duplicate_row", "$", message)


def _run_case(lines: Iterable[_Line]) -> Iterator[Problem]:
    reported: set[str | None] = set()
    for line, earlier in _met_again(lines, lambda row: row.run_id and row.run_id.casefold()):
        run_id = line.row.run_id
        if run_id not in {earlier.row.run_id, *reported}:
            reported.add(run_id)
            message = (
                f"{shown(run_id)} is {shown(earlier.row.run_id)} in {earlier.file}, line {earlier.number}, "
                "but for its case"
            )
            yield line.problem("error", "run_id_case", "$.run_id", message)


def _no_topic(lines: Iterable[_Line]) -> Iterator[Problem]:
    for line in lines:
        if not line.row.turn_id.rpartition("_")[0].strip():
            message = (
                f"{shown(line.row.turn_id)} names no topic: expected `<topic>_<turn>`, since intervals are over topics"
            )
            yield line.problem("warning", "no_topic", "$.turn_id", message)


def _inclusion(lines: Iterable[_Line]) -> Iterator[Problem]:
    groups = groups_of(((line.file, line.row.criterion), line) for line in lines)
    for (_, criterion), group in groups.items():
        without = [line for line in group if line.row.inclusion_probability is None]
        if not without:
            continue
        mixed = len(without) < len(group)
        message = (
            f"{len(without)} of {count(len(group), 'row')} under {shown(criterion)} without the probability with which "
            f"the response was drawn: {'rows with and without it cannot be weighted together' if mixed else _UNKNOWN}"
        )
        code = "mixed_inclusion" if mixed else "unknown_inclusion"
        yield without[0].problem("warning", code, "$.inclusion_probability", message)


_UNKNOWN = "means describe all responses only if those graded are all of them or were drawn at random"


def _split_topic(lines: Sequence[_Line]) -> Iterator[Problem]:
    """A topic with rows in both parts, and gold in which only some rows name a part."""
    for line, earlier in _in_both(lines, lambda row: row.topic_id):
        message = (
            f"topic {shown(line.row.topic_id)} is in {earlier.row.split} on line {earlier.number} of "
            f"{earlier.file} and in {line.row.split} here: a judge chosen on it has seen the test"
        )
        yield line.problem("error", "split_topic", "$.split", message)
    without = [line for line in lines if line.row.split is None]
    if 0 < len(without) < len(lines):
        message = f"{len(without)} of {len(lines)} rows belong to neither dev nor test; the others do"
        yield without[0].problem("warning", "partial_split", "$.split", message)


def _item_in_both(lines: Sequence[_Line]) -> Iterator[Problem]:
    for line, earlier in _in_both(lines, item_of):
        message = f"this response is in {earlier.row.split} on line {earlier.number} of {earlier.file}"
        yield line.problem("error", "item_in_both", "$.split", message)


def _in_both(lines: Sequence[_Line], key: Callable[[GoldRow], object]) -> Iterator[tuple[_Line, _Line]]:
    """Of each key with rows in both parts, the first row of the second part, and the first of the other."""
    reported: set[object] = set()
    for line, earlier in _met_again((line for line in lines if line.row.split is not None), key):
        if earlier.row.split != line.row.split and (name := key(line.row)) not in reported:
            reported.add(name)
            yield line, earlier


def _not_blind(lines: Iterable[_Line]) -> Iterator[Problem]:
    counts = Counter((line.file, line.row.made) for line in lines)
    reported: set[tuple[str, str]] = set()
    for line in lines:
        kind = line.file, line.row.made
        if line.row.made not in BLIND and kind not in reported:
            reported.add(kind)
            message = (
                f"{count(counts[kind], 'row')} {'is' if counts[kind] == 1 else 'are'} {line.row.made}: "
                f"not usable for a claim about a judge ({_MADE[line.row.made]})"
            )
            yield line.problem("warning", "not_blind", "$.made", message)


_MADE = {
    "postedit": "the assessor saw the grade of a judge first",
    "construction": "nobody assessed the response; it was written to have the grade",
    "synthetic": "the grade does not come from a person",
}


def _not_in_pool(lines: Sequence[_Line], pool: Pool) -> Iterator[Problem]:
    """Rows about no response of the pool, and different grades of one pooled response."""
    noun = UNITS[pool.unit].nouns.response
    run_ids: set[str] = set()
    for response in pool.responses:
        run_ids.update(entry.run_id for entry in response.runs)
    by_case = {run_id.casefold(): run_id for run_id in run_ids}
    find = finder(pool)
    reported: set[str] = set()
    for line in lines:
        run_id = line.row.run_id
        if run_id is not None and run_id not in run_ids | reported and (pooled := by_case.get(run_id.casefold())):
            reported.add(run_id)
            message = f"{shown(run_id)} is {shown(pooled)} in the pool"
            yield line.problem("error", "run_id_case", "$.run_id", message)
        if find(line.row) is None:
            message = (
                f"{shown(line.row.text_sha256 or line.row.response_id)} names no {noun} of the pool, or more than one"
            )
            yield line.problem("warning", "not_in_pool", "$", message)
    try:
        match([line.row for line in lines], pool)
    except InputError as error:
        yield from error.problems


CHECKS: tuple[Callable[[Sequence[_Line]], Iterator[Problem]], ...] = (
    _repeated,
    _run_case,
    _no_topic,
    _inclusion,
    _split_topic,
    _item_in_both,
    _not_blind,
)
"""The checks that need the rows alone."""
