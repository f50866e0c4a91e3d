"""The items on which a judge's grade is not the assessors' or is missing, worst first, with all their texts. Pure.

A file has a line of JSON for each, which is read back too; a report shows the worst.

Only grades that anyone may look at are here. An item of the test part is never among them, sealed or not, because the
list would show its grade.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import multimode
from typing import Literal

import numpy as np

from judge.ask.prompt import NO_ANSWER
from judge.calibrate.findings import Split, judge_name
from judge.calibrate.panel import JudgeColumn, Panel
from judge.calibrate.report.lookup import of
from judge.errors import refuse
from judge.gold.rows import ADJUDICATED, GoldRow, deciding
from judge.gold.seal import SealedItem, item_of
from judge.io.files import decode_lines, jsonl_bytes
from judge.io.ids import natural_key
from judge.io.text import count, name_of, number, prose, quotation, table
from judge.pool.records import Pool, PooledResponse
from judge.records import JudgedUnit, Problem, Record, file_problem
from judge.runs.records import Exchange, Turn
from judge.units import UNITS


class AssessorGrade(Record, frozen=True, omit_defaults=True):
    """The grade of one assessor."""

    assessor: str
    grade: int
    made: str
    """How the grade came about, as in a gold row."""
    label: str | None = None
    """What a scale of two grades calls it."""
    comment: str | None = None
    """What the assessor wrote about it."""


def assessor_grade(row: GoldRow, label: str | None = None) -> AssessorGrade:
    """The grade of a gold row; `label` is what a scale of two grades calls it."""
    return AssessorGrade(
        assessor=row.assessor,
        grade=row.grade,
        made=row.made,
        label=label,
        comment=row.comment,
    )


class JudgeGrade(Record, frozen=True, omit_defaults=True):
    """What one judge said: of several samples, the first."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None for labels that name no prompt."""
    grade: int | None
    expected: float | None
    """The mean grade under the label probabilities; None where the judge gave none."""
    rationale: str | None
    reason: str | None
    difference: int | None
    """The judge's grade minus the reference, as `compared` says; None where there is no grade. Of tied grades it is the
    distance from the nearest, 0 between them."""
    label: str | None = None
    """What a scale of two grades calls it."""


class ShownPassage(Record, frozen=True):
    """A passage that the response used; `text` is None where the pool lacks it."""

    id: str
    text: str | None


class Disagreement(Record, frozen=True, omit_defaults=True):
    """One response under one criterion that some judge grades otherwise than the assessors, or not at all."""

    turn_id: str
    topic_id: str
    response_id: str
    criterion: str
    split: Split
    gold_grade: int | None
    """The grade that judges are compared with, an adjudicated one where there is one; None where several grades tie for
    most assessors."""
    gold: tuple[AssessorGrade, ...]
    judges: tuple[JudgeGrade, ...]
    """Every judge that is compared, the agreeing ones too; baselines that nobody asked for are left out."""
    compared: Literal["grades", "positive"]
    """positive: scales differ, so a positive grade counts as 1 and any other as 0."""
    distance: int
    """The largest difference of a judge, without its sign; 0 where grades are only missing."""
    text: str | None
    """The response; None without a pool."""
    passages: tuple[ShownPassage, ...]
    utterance: str | None
    """What the user said; None without topics."""
    context: tuple[Exchange, ...]
    unit: JudgedUnit = "response"
    """What was graded: the response, or the dialogue that it ends."""

    @property
    def erring(self) -> int:
        """How many judges have another grade, or none."""
        return sum(judge.difference != 0 for judge in self.judges)


def disagreements(
    panels: Sequence[Panel],
    pool: Pool | None = None,
    turns: Mapping[str, Turn] | None = None,
    sealed: Collection[SealedItem] = (),
) -> tuple[Disagreement, ...]:
    """Every disagreement outside the test part: the greatest distance first, then the most judges, then natural order.

    `sealed` has items of a sealed test part, whatever their rows say of their split.
    """
    items: list[Disagreement] = []
    for panel in panels:
        items += _of_panel(panel, pool, turns, frozenset(sealed))
    # Items of one panel are in natural order; their names as keys would take more memory than the items.
    return tuple(sorted(items, key=_worst_first if len(panels) > 1 else _worst))


def _worst(item: Disagreement) -> tuple[int, int]:
    return -item.distance, -item.erring


def _worst_first(item: Disagreement) -> tuple[object, ...]:
    return *_worst(item), natural_key(item.turn_id), natural_key(item.response_id), item.criterion


def _of_panel(
    panel: Panel, pool: Pool | None, turns: Mapping[str, Turn] | None, sealed: frozenset[SealedItem]
) -> Iterator[Disagreement]:
    columns = [column for column in panel.columns if not column.baseline]
    wrong = np.zeros(len(panel.items), dtype=bool)
    # The codes of the lowest and the highest of tied grades; else both are that of the one grade.
    low = (panel.shares > 0).argmax(axis=1)
    high = len(panel.grades) - 1 - (panel.shares[:, ::-1] > 0).argmax(axis=1)
    for column in columns:
        wrong |= (column.codes < low) | (column.codes > high)
    codes = [column.codes.tolist() for column in columns]
    nearest = [np.clip(column.codes, low, high).tolist() for column in columns]
    pooled = {response.response_id: response for response in pool.responses} if pool else {}
    for i in np.flatnonzero(wrong).tolist():
        item = panel.items[i]
        rows = panel.gold[i]
        if panel.split[i] == "test" or any(row.split == "test" or item_of(row) in sealed for row in rows):
            continue
        judges = tuple(
            _judge_grade(panel, column, i, own[i], reference[i])
            for column, own, reference in zip(columns, codes, nearest, strict=True)
        )
        assessors = {row.assessor: assessor_grade(row, panel.words.get(row.grade)) for row in rows}
        modes = multimode({row.assessor: row.grade for row in deciding(rows)}.values())
        response = pooled.get(item.response_id)
        turn = turns.get(item.turn_id) if turns else None
        yield Disagreement(
            turn_id=item.turn_id,
            topic_id=item.topic_id,
            response_id=item.response_id,
            criterion=panel.criterion,
            split=panel.split[i],
            gold_grade=modes[0] if len(modes) == 1 else None,
            gold=tuple(sorted(assessors.values(), key=lambda one: natural_key(one.assessor))),
            judges=judges,
            compared="positive" if panel.binary else "grades",
            distance=max((abs(judge.difference) for judge in judges if judge.difference is not None), default=0),
            text=response.shown if response else None,
            passages=_passages(response, pool) if response and pool else (),
            utterance=turn.utterance if turn else None,
            context=turn.context if turn else (),
            unit=response.unit if response else "response",
        )


def _judge_grade(panel: Panel, column: JudgeColumn, i: int, code: int, human: int) -> JudgeGrade:
    label = column.first[i]
    grade = label.grade if label else None
    return JudgeGrade(
        judge=column.judge,
        prompt=column.prompt,
        grade=grade,
        expected=label.expected if label else None,
        rationale=label.rationale if label else None,
        reason=column.reasons[i],
        difference=None if code < 0 else panel.grades[code] - panel.grades[human],
        label=None if grade is None else column.words.get(grade),
    )


def _passages(response: PooledResponse, pool: Pool) -> tuple[ShownPassage, ...]:
    shown = []
    for key in response.passages:
        passage = pool.passages.get(key)
        shown.append(ShownPassage(passage.passage_id, passage.text) if passage else ShownPassage(key, None))
    return tuple(shown)


DISAGREEMENTS = "disagreements.jsonl"
REPORT = "disagreements.md"
MOST_SHOWN = 50
"""Disagreements of a criterion that the report shows; the lines have all of them."""
_LONGEST = 2000
_EXCHANGES = 3


def disagreement_files(items: Sequence[Disagreement], graded: int) -> dict[str, bytes]:
    """The content of both files by name; both are there if nobody disagrees. `graded`: items outside the test part."""
    return {DISAGREEMENTS: jsonl_bytes(items), REPORT: disagreements_markdown(items, graded).encode()}


def parse_disagreements(content: bytes, name: str) -> tuple[Disagreement, ...]:
    """The disagreements in the bytes of a file, in their order; an InputError lists every line that is none."""
    items: list[Disagreement] = []
    problems: list[Problem] = []
    for place, row in decode_lines(content, Disagreement, name, "not_a_disagreement", problems):
        if row.judges:
            items.append(row)
        else:
            where = f"line {place}: $.judges"
            expected = "expected one judge or more"
            problems.append(file_problem("not_a_disagreement", name, expected, where, turn_id=row.turn_id))
    refuse(problems, f"{name}: {count(len(problems), 'line')} not as `judge calibrate` writes {DISAGREEMENTS}")
    return tuple(items)


def disagreements_markdown(items: Sequence[Disagreement], graded: int) -> str:
    """The report of the worst disagreements of each criterion, every text of others without markup."""
    return "\n\n".join(_blocks(items, graded)) + "\n"


def _blocks(items: Sequence[Disagreement], graded: int) -> Iterator[str]:
    yield "# Where judges and assessors disagree"
    yield (
        f"On {len(items)} of {count(graded, 'item')} with gold, a judge's grade is not the assessors', or is missing. "
        "The worst come first: by the greatest distance between a judge's grade and the assessors', then by the number "
        "of judges that err. Items of a test part are never shown here."
    )
    if items and all(item.text is None for item in items):
        yield "The texts are not known: `--pool` names the pool that has them."
    elif items and all(item.utterance is None for item in items):
        yield "The conversations are not known: `--topics` names the topics file that has them."
    for criterion in dict.fromkeys(item.criterion for item in items):
        yield from _chapter(criterion, of(items, criterion))


def _chapter(criterion: str, items: Sequence[Disagreement]) -> Iterator[str]:
    yield f"## {name_of(criterion)}"
    directions = [_directions([item.judges[place] for item in items]) for place in range(len(items[0].judges))]
    yield table(
        ["judge", "higher", "lower", "no grade"],
        ([_name(judge), *map(str, counts)] for judge, counts in zip(items[0].judges, directions, strict=True)),
    )
    for place, item in enumerate(items[:MOST_SHOWN], 1):
        yield from _item(place, item)
    if (more := len(items) - MOST_SHOWN) > 0:
        yield f"{more:,} more under {name_of(criterion)} are in `{DISAGREEMENTS}`."


def _directions(grades: Sequence[JudgeGrade]) -> tuple[int, int, int]:
    differences = [judge.difference for judge in grades]
    missing = differences.count(None)
    high = sum(difference is not None and difference > 0 for difference in differences)
    return high, len(differences) - missing - high - differences.count(0), missing


def _item(place: int, item: Disagreement) -> Iterator[str]:
    apart = "no grade by a judge"
    if item.distance:
        apart = "positive or not" if item.compared == "positive" else f"{count(item.distance, 'grade')} apart"
    yield f"### {place}. {name_of(item.turn_id)} {name_of(item.response_id)}: {apart}"
    columns = 3 + any(judge.reason for judge in item.judges)
    header = ["who", "grade", "difference", "why none"][:columns]
    yield table(header, (row[:columns] for row in _grades(item)), words=(0, 3))
    for assessor in item.gold:
        if assessor.comment is not None:
            yield f"**Comment of assessor {name_of(assessor.assessor)}**"
            yield _quoted(assessor.comment)
    for judge in item.judges:
        if judge.rationale is not None:
            yield f"**Rationale of {_name(judge)}**"
            yield _quoted(judge.rationale)
    if item.utterance is not None:
        yield "**The user asks**"
        yield _quoted(item.utterance)
        if item.context:
            shown = item.context if UNITS[item.unit].by_topic else item.context[-_EXCHANGES:]
            left = len(item.context) - len(shown)
            of_all = f" (the last {len(shown)} of {count(len(item.context), 'exchange')})" if left else ""
            yield f"**Before that**{of_all}"
            yield "\n>\n".join(
                f"{_quoted(f'User: {exchange.utterance}')}\n>\n{_quoted(f'System: {exchange.response}')}"
                for exchange in shown
            )
    if item.text is not None and not UNITS[item.unit].listed:
        yield "**The last response**" if UNITS[item.unit].by_topic else "**Response**"
        yield _quoted(item.text or NO_ANSWER)
    for passage in item.passages:
        yield f"**Passage {name_of(passage.id)}**"
        yield _quoted(passage.text) if passage.text is not None else "Its text is not known."


def _grades(item: Disagreement) -> Iterator[list[str]]:
    if len(item.gold) > 1:
        same = next((assessor for assessor in item.gold if assessor.grade == item.gold_grade), None)
        grade = "tied" if item.gold_grade is None else _called(item.gold_grade, same.label if same else None)
        adjudicated = any(assessor.made == ADJUDICATED for assessor in item.gold)
        yield ["**adjudicated grade**" if adjudicated else "**assessors' consensus**", grade, "", ""]
    for assessor in item.gold:
        made = "" if assessor.made == "blind" else f" ({assessor.made})"
        yield [f"assessor {name_of(assessor.assessor)}{made}", _called(assessor.grade, assessor.label), "", ""]
    for judge in item.judges:
        expected = "" if judge.expected is None else f" (expected {number(judge.expected, 2)})"
        grade = "-" if judge.grade is None else f"{_called(judge.grade, judge.label)}{expected}"
        if judge.difference is None:
            difference = ""
        elif judge.difference == 0:
            difference = "same"
        elif judge.label or item.compared == "positive":
            difference = "higher" if judge.difference > 0 else "lower"
        else:
            difference = f"{judge.difference:+d}"
        yield [_name(judge), grade, difference, prose(judge.reason or "")]


def _called(grade: int, label: str | None) -> str:
    return prose(label or str(grade))


def _name(judge: JudgeGrade) -> str:
    return name_of(judge_name(judge.judge, judge.prompt))


def _quoted(text: str) -> str:
    if len(text) <= _LONGEST:
        return quotation(text)
    return f"{quotation(text[:_LONGEST])}\n>\n> … {len(text) - _LONGEST:,} more characters in `{DISAGREEMENTS}`"
