"""From files to panels: gold, labels and pools of several origins brought to the same items."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from judge.ask.labels import Labels, parse_columns, read_labels
from judge.calibrate.baselines import ASKED
from judge.calibrate.panel import Panel, gold_items, make_panel
from judge.errors import InputError, UsageError
from judge.files.stored import read_stored, sha256, unpack
from judge.gold import GoldByResponse, match, parse_gold, sealed_beside
from judge.gold.rows import GoldRow, finder
from judge.pool.folder import read_pool_folder
from judge.pool.records import Pool
from judge.records import Criterion, Level, Problem, Scale
from judge.text.ids import topic_of

_MOST_GRADES = 101


class Gold(msgspec.Struct, frozen=True):
    """Gold rows and the digests of the files they come from."""

    rows: tuple[GoldRow, ...]
    digest: str
    """SHA-256 over the files as stored, in whatever order."""
    columns: bool
    """Some rows are from a file of columns, which does not say how they were made."""


class LabelSource(msgspec.Struct, frozen=True):
    """What judges said, with the pool that their response ids are of."""

    labels: tuple[Labels, ...]
    pool: Pool | None


def parse_scale(text: str, polarity: Literal["higher", "lower"] = "higher") -> Scale:
    """`0-3`: the integers from 0 to 3, the better half of them positive.

    Raises:
        UsageError: It is no such range.
    """
    low, dash, high = text.partition("-")
    if not (
        dash
        and low.isdecimal()
        and high.isdecimal()
        and max(len(low), len(high)) < 9
        and int(low) < int(high) < int(low) + _MOST_GRADES
    ):
        raise UsageError(f"scale {text!r}: expected the lowest and the highest grade, such as 0-3")
    grades = range(int(low), int(high) + 1)
    middle = (grades[0] + grades[-1]) / 2
    positive = tuple(grade for grade in grades if (grade > middle if polarity == "higher" else grade < middle))
    levels = tuple(Level(grade, str(grade), "") for grade in grades)
    return Scale(levels, polarity, positive, None)


def read_gold_files(paths: Sequence[Path], criterion: str | None, scale: Scale | None) -> Gold:
    """Gold rows of JSONL files, and of qrels and other four-column files, whose assessor is named after the file.

    Raises:
        InputError: A file is faulty; every fault of every file is listed.
        UsageError: A file of columns is given, and no criterion that its grades are of.
    """
    rows: list[GoldRow] = []
    problems: list[Problem] = []
    stored: list[bytes] = []
    columns = False
    for path in paths:
        stored.append(read_stored(path))
        content = unpack(stored[-1], str(path))
        try:
            if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                found = parse_gold(content, str(path))
                if sealed_beside(path, found):
                    raise UsageError(
                        f"{path}: sealed test grades: they are opened with --test, which puts it on record"
                    )
                rows += found
                continue
            if not content.strip():
                problems.append(Problem("empty_file", "error", str(path), None, "", "expected one grade or more"))
                continue
            columns = True
            if criterion is None:
                raise UsageError(f"{path}: columns do not say what the grades are of: --criterion NAME is needed")
            grades = {level.grade for level in scale.levels} if scale else None
            assessor = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
            rows += [
                GoldRow(row.turn_id, topic_of(row.turn_id), criterion, row.grade, assessor, row.item_id)
                for row in parse_columns(content, str(path), grades)
            ]
        except InputError as error:
            if not error.problems:
                raise
            problems += error.problems
    if problems:
        raise InputError(f"{', '.join(map(str, paths))}: not usable as gold: {len(problems)} faults", problems)
    return Gold(tuple(rows), sha256(b"\n".join(sorted(sha256(one).encode() for one in stored))), columns)


def read_sources(paths: Sequence[Path], pool: Path | None, scale: Scale | None) -> tuple[LabelSource, ...]:
    """Labels of every file, with the pool beside a `judgments.jsonl`, or the one given for all.

    Raises:
        InputError: A file is faulty; every fault of every file is listed.
    """
    given = read_pool_folder(pool, "passages.jsonl") if pool is not None else None
    grades = {level.grade for level in scale.levels} if scale else None
    sources: list[LabelSource] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            labels = read_labels(path, grades)
        except InputError as error:
            if not error.problems:
                raise
            problems += error.problems
            continue
        beside = path.with_name("pool.jsonl")
        own = given
        if own is None and path.name == "judgments.jsonl" and beside.exists():
            own = read_pool_folder(beside, "passages.jsonl")
        sources.append(LabelSource(labels, own))
    if problems:
        raise InputError(f"labels that cannot be used: {len(problems)} faulty lines", problems)
    return tuple(sources)


def make_panels(
    gold: Sequence[GoldRow],
    sources: Sequence[LabelSource],
    criteria: Mapping[str, Criterion],
    scales: Mapping[str, Scale],
    name: str,
    only: Collection[str] | None = None,
) -> tuple[tuple[Panel, ...], int]:
    """A panel of every criterion that has both gold and labels, and the number of gold rows found in no pool.

    Args:
        gold: The rows.
        sources: What judges said; response ids of different pools are brought together through the gold's rows.
        criteria: The prompts by `criterion/variant`, for the scales of labels that name one.
        scales: The gold's scale by criterion; labels on another are compared as positive or not.
        name: What to call the gold in messages.
        only: Criteria to keep; all of them if None.

    Raises:
        InputError: Grades off their scale, or anything else that forbids a comparison.
    """
    pool = next((source.pool for source in sources if source.pool is not None), None)
    matched: GoldByResponse | None = None
    unmatched: tuple[GoldRow, ...] = ()
    if pool is not None:
        matched, unmatched = match(gold, pool, name)
    items = gold_items(gold, matched)
    labels = [one for source in sources for one in _translated(source, pool, gold)]
    panels = []
    for criterion in sorted(items):
        if only is not None and criterion not in only:
            continue
        scale = scales[criterion]
        pairs = [
            (one, criteria[one.prompt].scale if one.prompt else scale)
            for one in labels
            if one.prompt is None or one.prompt.partition("/")[0] == criterion
        ]
        if not pairs:
            continue
        binary = any(not same_grades(its, scale) for _, its in pairs)
        # Where nothing but baselines was judged, they are what the question is about.
        baselines = ASKED if any(said.judge not in ASKED for said, _ in pairs) else ()
        panels.append(
            make_panel(criterion, scale, items[criterion], pairs, pool=pool, baselines=baselines, binary=binary)
        )
    return tuple(panels), len(unmatched)


def _translated(source: LabelSource, pool: Pool | None, gold: Sequence[GoldRow]) -> tuple[Labels, ...]:
    """A source's labels under the response ids of the first pool; those of responses without gold are dropped."""
    if pool is None or source.pool is None or source.pool.responses == pool.responses:
        return source.labels
    # Row by row: which rows stand for others of the same response differs between pools.
    here, there = finder(pool), finder(source.pool)
    new: dict[tuple[str, str], dict[str, None]] = {}
    for row in gold:
        ours, theirs = here(row), there(row)
        if ours is not None and theirs is not None:
            new.setdefault((row.turn_id, theirs.response_id), {})[ours.response_id] = None
    return tuple(
        msgspec.structs.replace(
            labels,
            labels=tuple(
                msgspec.structs.replace(one, response_id=response_id)
                for one in labels.labels
                for response_id in new.get((one.turn_id, one.response_id), ())
            ),
        )
        for labels in source.labels
    )


def same_grades(a: Scale, b: Scale) -> bool:
    """Whether grades of two scales can be compared as they are: the same numbers with the same end good."""
    return a.polarity == b.polarity and {one.grade for one in a.levels} == {one.grade for one in b.levels}
