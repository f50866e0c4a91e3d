"""From files to panels: gold, labels and pools of several origins, over the same items."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from judge.ask.results import OFF_SCALE, Label, Labels, on_scale, parse_columns, read_labels
from judge.calibrate.panel import NOT_JUDGED, Panel, gold_items, make_panel
from judge.errors import InputError, UsageError, refuse
from judge.gold.rows import GoldByResponse, GoldRow, finder, match, one_order, parse_gold
from judge.gold.seal import sealed_beside
from judge.io.files import read_stored, sha256, unpack
from judge.io.ids import Cluster, column, only_turns, passage_turn_id, topic_of
from judge.io.plan import scale_bounds
from judge.io.text import count
from judge.judges.backends import backend_facts
from judge.pool.bank import read_pool_folder
from judge.pool.pairs import other_orders
from judge.pool.records import Pool
from judge.records import Criterion, JudgedUnit, Level, Problem, Scale, file_problem
from judge.results.pairs import duels, first_place, share_of_first
from judge.results.turns import TurnGrade
from judge.units import UNITS

OffScale = Literal["missing", "error"]
"""What becomes of a judge's label whose grade is not on its scale: a missing judgment, or a problem of the file."""
MOST_GRADES = 101
"""Grades of the longest scale that `parse_scale` takes: 0 to 100."""


class Gold(msgspec.Struct, frozen=True):
    """Gold rows and the digests of the files they come from."""

    rows: tuple[GoldRow, ...]
    digest: str
    """SHA-256 over the files as stored; their order does not matter."""
    columns: bool
    """Whether some rows are from a file of columns, which does not say how they were made."""


def parse_scale(text: str, polarity: Literal["higher", "lower"] = "higher") -> Scale:
    """Read a scale such as `0-3`: the integers from 0 to 3, the better half of them positive.

    A UsageError if the text is not a range of integers, or the range is too long.
    """
    bounds = scale_bounds(text)
    if bounds is None or bounds[1] - bounds[0] >= MOST_GRADES:
        raise UsageError(f"scale {text!r}: expected the lowest and the highest grade, such as 0-3 or -2-2")
    grades = range(bounds[0], bounds[1] + 1)
    middle = (grades[0] + grades[-1]) / 2
    positive = tuple(grade for grade in grades if (grade > middle if polarity == "higher" else grade < middle))
    levels = tuple(Level(grade, str(grade), "") for grade in grades)
    return Scale(levels, polarity, positive, None)


def read_gold_files(paths: Sequence[Path], criterion: str | None, scale: Scale | None) -> Gold:
    """Read gold rows of JSONL files, and of qrels and other four-column files, whose assessor is named after the file.

    Grades in columns are of one criterion; without a scale they are not checked here. An InputError if a file has
    problems; every problem of every file is listed. A UsageError if a file of columns is given without a criterion, or
    a file holds sealed test grades.
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
                parsed = parse_gold(content, str(path))
                if sealed_beside(path, parsed):
                    raise UsageError(
                        f"{path}: sealed test grades: they are opened with --test, which puts it on record"
                    )
                rows += parsed
                continue
            if not content.strip():
                problems.append(file_problem("empty_file", path, "expected one grade or more"))
                continue
            columns = True
            if criterion is None:
                raise UsageError(f"{path}: columns do not say what the grades are of: --criterion NAME is needed")
            grades = {level.grade for level in scale.levels} if scale else None
            assessor = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
            rows += [
                GoldRow(
                    turn_id=sys.intern(row.turn_id),
                    topic_id=sys.intern(topic_of(row.turn_id)),
                    criterion=criterion,
                    grade=row.grade,
                    assessor=assessor,
                    # Labels name the same items.
                    response_id=sys.intern(row.item_id),
                )
                for row in parse_columns(content, str(path), grades)
            ]
        except InputError as error:
            if not error.problems:
                raise
            problems += error.problems
    refuse(problems, f"{', '.join(map(str, paths))}: not usable as gold: {count(len(problems), 'problem')}")
    return Gold(tuple(rows), sha256(b"\n".join(sorted(sha256(data).encode() for data in stored))), columns)


def read_sources(
    paths: Sequence[Path],
    pool: Path | None,
    scale: Scale | None,
    *,
    grades_only: bool = False,
    explained: Collection[str] | None = None,
    off_scale: OffScale | None = None,
) -> tuple[Labels, ...]:
    """Read the labels of every file, with their pool.

    Without `pool` it is the one beside each `judgments.jsonl`. Without a scale, labels in columns are not checked here;
    `grades_only` and `explained` are as for `read_labels`; `off_scale` is what becomes of a value that is no grade,
    None where the user has no say in it. An InputError if a file has problems; every problem of every file is listed.
    """
    given = read_pool_folder(pool, "passages.jsonl") if pool is not None else None
    grades = {level.grade for level in scale.levels} if scale else None
    columns: list[Labels] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            lenient = off_scale == "missing"
            labels = read_labels(path, grades, grades_only=grades_only, explained=explained, lenient=lenient)
        except InputError as error:
            if not error.problems:
                raise
            problems += error.problems
            continue
        beside = path.with_name("pool.jsonl")
        own = given
        if own is None and path.name == "judgments.jsonl" and beside.exists():
            own = read_pool_folder(beside, "passages.jsonl")
        columns += labels if own is None else in_pool(labels, own)
    refuse(problems, f"labels that cannot be used: {count(len(problems), 'problem')}{remedy(problems, off_scale)}")
    return tuple(columns)


def remedy(problems: Iterable[Problem], off_scale: OffScale | None) -> str:
    """The option that takes labels with these problems; empty if none does, or the user has no say in it."""
    if off_scale == "error" and any(problem.code in ("bad_label", "off_scale") for problem in problems):
        return "; --off-scale missing counts what is no grade of the scale as missing"
    return ""


def in_pool(columns: Sequence[Labels], pool: Pool) -> tuple[Labels, ...]:
    """The labels with their pool, and with its turn ids; qrels list dialogues by topic."""
    if not UNITS[pool.unit].by_topic:
        return tuple(replace(column, pool=pool) for column in columns)
    turn_ids = {(response.listed_under, response.response_id): response.turn_id for response in pool.responses}

    def placed(label: Label) -> Label:
        return replace(label, turn_id=turn_ids.get((label.turn_id, label.response_id), label.turn_id))

    return tuple(replace(column, labels=tuple(map(placed, column.labels)), pool=pool) for column in columns)


def make_panels(
    gold: Sequence[GoldRow],
    labels: Sequence[Labels],
    criteria: Mapping[str, Criterion],
    scales: Mapping[str, Scale],
    name: str,
    only: Collection[str] | None = None,
    off_scale: OffScale = "error",
    cluster: Cluster = "topic",
    units: Mapping[str, JudgedUnit] = {},
) -> tuple[tuple[Panel, ...], int]:
    """A panel of every criterion that has both gold and labels, and the number of gold rows that match no response.

    The gold's rows connect response ids of different pools. `criteria` are the prompts by `criterion/variant`, for the
    scales of labels that name a prompt; `scales` the gold's by criterion; labels on another scale are compared as
    positive or not. `only` are criteria to keep. Grades of the gold have to be on its scale, whatever `off_scale` says
    of labels. `units`: what the grades of a criterion are of where no pool says it. An InputError if gold, called
    `name`, or labels have problems that forbid a comparison.
    """
    pool = next((judged.pool for judged in labels if judged.pool is not None), None)
    if pool is not None:
        units = dict.fromkeys(scales, pool.unit)
    listed = {criterion for criterion, unit in units.items() if UNITS[unit].listed}
    if listed:
        turn_of: Mapping[str, str] = {}
        if pool is not None:
            turn_of = only_turns({row.turn_id for row in gold}, {response.turn_id for response in pool.responses})
        gold = [_as_listed(row, scales, turn_of) if row.criterion in listed else row for row in gold]
    matched: GoldByResponse | None = None
    unmatched: tuple[GoldRow, ...] = ()
    if pool is not None:
        gold = one_order(gold, pool, {criterion: scale.ends for criterion, scale in scales.items()})
        matched, unmatched = match(gold, pool, name)
    items = gold_items(gold, matched)
    labels = [_of_both_orders(judged, criteria, scales, off_scale, cluster) for judged in labels]
    if pool is not None:
        labels = _translated(labels, pool, gold)
    panels = []
    for criterion in sorted(items):
        if only is not None and criterion not in only:
            continue
        scale = scales[criterion]
        columns = []
        for judged in labels:
            if judged.prompt is None or judged.prompt.partition("/")[0] == criterion:
                own = criteria[judged.prompt].scale if judged.prompt else scale
                if off_scale == "missing":
                    judged = on_scale(judged, {level.grade for level in own.levels})
                if criterion in listed:
                    judged = _in_own_turns(judged)
                columns.append(replace(judged, scale=own))
        if not columns:
            continue
        # Where only baselines judged, they are the candidates.
        baselines = {judged.judge for judged in columns if backend_facts(judged.judge).baseline}
        alone = all(judged.judge in baselines for judged in columns)
        panels.append(
            make_panel(
                criterion,
                scale,
                items[criterion],
                columns,
                pool=pool,
                baselines=() if alone else baselines,
                binary=any(judged.scale and not same_grades(judged.scale, scale) for judged in columns),
                cluster=cluster,
                unit=units.get(criterion, "response"),
            )
        )
    return tuple(panels), len(unmatched)


def _in_own_turns(judged: Labels) -> Labels:
    """Labels of passages with turns as runs write them, which older qrels do not."""
    own = {label.turn_id: passage_turn_id(label.turn_id) for label in judged.labels}
    if all(turn_id == written for written, turn_id in own.items()):
        return judged
    return replace(judged, labels=tuple(replace(label, turn_id=own[label.turn_id]) for label in judged.labels))


def _as_listed(row: GoldRow, scales: Mapping[str, Scale], turn_of: Mapping[str, str]) -> GoldRow:
    """A grade of a passage with the turn as runs write it, and one beyond the best of its scale as the best.

    Older qrels have `9-1-3` for `9-1_3`, and iKAT's assessors have a level more than the judge.

    `turn_of`: the only turn of each topic, where rows name topics.
    """
    turn_id = turn_of.get(row.turn_id) or passage_turn_id(row.turn_id)
    if turn_id != row.turn_id:
        row = replace(row, turn_id=turn_id, topic_id=topic_of(turn_id))
    scale = scales.get(row.criterion)
    if scale is None or scale.polarity != "higher" or row.grade <= scale.ends[1]:
        return row
    return replace(row, grade=scale.ends[1])


def beyond_warnings(gold: Iterable[GoldRow], panels: Sequence[Panel]) -> list[str]:
    """A warning for each criterion of passages with gold beyond the best grade, which counts as that."""
    rows = tuple(gold)
    warnings: list[str] = []
    for panel in panels:
        if not UNITS[panel.unit].listed:
            continue
        best = panel.grades[-1]
        beyond = sum(row.criterion == panel.criterion and row.grade > best for row in rows)
        if panel.higher_is_better and not panel.binary and beyond:
            warnings.append(f"{panel.criterion}: {count(beyond, 'gold grade')} above {best} counted as {best}")
    return warnings


def _of_both_orders(
    judged: Labels,
    criteria: Mapping[str, Criterion],
    scales: Mapping[str, Scale],
    off_scale: OffScale,
    cluster: Cluster,
) -> Labels:
    """The labels; of pairs the verdicts in which both orders agree, of which each order has one."""
    pool = judged.pool
    if pool is None or UNITS[pool.unit].orders == 1:
        return judged
    others = other_orders(pool)
    run_ids = {entry.run_id for response in pool.responses for entry in response.runs}
    scale = criteria[judged.prompt].scale if judged.prompt else next(iter(scales.values()))
    if off_scale == "missing":
        judged = on_scale(judged, {level.grade for level in scale.levels})
    by_sample = {(label.response_id, label.sample): label for label in judged.labels}
    outcomes = {
        label.response_id: label.reason if label.grade is None else TurnGrade(label.grade, label.expected)
        for label in judged.labels
        if label.sample == 0
    }
    labels = tuple(
        _verdict(label, by_sample.get((others[label.response_id].response_id, label.sample)), scale)
        if label.response_id in others
        else label
        for label in judged.labels
    )
    advantage = first_place(duels(pool, outcomes, scale), run_ids, cluster)
    return replace(judged, labels=labels, first_place=advantage)


def _verdict(label: Label, other: Label | None, scale: Scale) -> Label:
    """The label of a pair, without a grade where that of the other order says otherwise or has none."""
    if label.grade is None:
        return label
    if other is None or other.grade is None:
        reason = NOT_JUDGED if other is None else other.reason
    elif share_of_first(label.grade, scale) + share_of_first(other.grade, scale) != 1:
        reason = "flipped"
    else:
        # Label probabilities are of one order.
        return replace(label, expected=None, probabilities=None)
    return replace(label, grade=None, reason=reason, expected=None, probabilities=None)


def off_scale_warnings(panels: Sequence[Panel]) -> list[str]:
    """A warning for each judge with labels that count as missing because they are off its scale."""
    counts = [
        (panel, column.name, len(column.origin.labels), sum(one.reason == OFF_SCALE for one in column.origin.labels))
        for panel in panels
        for column in panel.columns
        if column.origin is not None
    ]
    return [
        f"{panel.criterion}: {number} of {count(total, 'label')} by {name} are off the scale and count as missing"
        for panel, name, total, number in counts
        if number
    ]


def _translated(columns: Sequence[Labels], pool: Pool, gold: Sequence[GoldRow]) -> list[Labels]:
    """The labels under the response ids of the first pool; those of responses of another pool without gold go."""
    new_ids: dict[int, dict[tuple[str, str], dict[str, None]]] = {}
    by_passage: dict[tuple[str, str], str] = {}
    if UNITS[pool.unit].listed:
        by_passage = {(item.turn_id, column(item.listed_as)): item.response_id for item in pool.responses}
    translated = []
    for judged in columns:
        if judged.pool is None and by_passage:
            # Qrels name passages by their own ids.
            named = _in_own_turns(judged)
            labels = []
            for label in named.labels:
                name = by_passage.get((label.turn_id, label.response_id), label.response_id)
                labels.append(replace(label, response_id=name))
            translated.append(replace(named, labels=tuple(labels)))
            continue
        if judged.pool is None or judged.pool.responses == pool.responses:
            translated.append(judged)
            continue
        if id(judged.pool) not in new_ids:
            new_ids[id(judged.pool)] = _new_ids(judged.pool, pool, gold)
        names = new_ids[id(judged.pool)]
        labels = []
        for label in judged.labels:
            labels += [replace(label, response_id=name) for name in names.get((label.turn_id, label.response_id), ())]
        translated.append(replace(judged, labels=tuple(labels)))
    return translated


def _new_ids(other: Pool, pool: Pool, gold: Sequence[GoldRow]) -> dict[tuple[str, str], dict[str, None]]:
    """Turn and response id of the other pool to the ids that the response has in the pool."""
    here = finder(pool)
    there = finder(other)
    # Every row is looked up, because pools group rows of one response differently.
    new: dict[tuple[str, str], dict[str, None]] = {}
    for row in gold:
        ours = here(row)
        theirs = there(row)
        if ours is not None and theirs is not None:
            new.setdefault((row.turn_id, theirs.response_id), {})[ours.response_id] = None
    return new


def same_grades(a: Scale, b: Scale) -> bool:
    """Whether grades of two scales can be compared as they are: the same numbers, with the same end good."""
    return a.polarity == b.polarity and {level.grade for level in a.levels} == {level.grade for level in b.levels}
