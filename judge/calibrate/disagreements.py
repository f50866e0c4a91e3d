"""The items on which a judge's grade is not the assessors' or is missing, worst first, with all their texts. Pure.

Only grades that anyone may look at are here. An item of the test part is never among them, sealed or not, because the
list would show its grade.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from judge.ask.labels import Label
from judge.calibrate.findings import Split
from judge.calibrate.inputs import ItemKey
from judge.calibrate.panel import Column, Panel
from judge.gold.seal import SealedItem, item_of
from judge.io.ids import natural_key
from judge.pool.records import Pool, PooledResponse
from judge.records import JudgedUnit, Record
from judge.runs.records import Exchange, Turn
from judge.stats.means import consensus


class AssessorGrade(Record, frozen=True):
    """The grade of one assessor."""

    assessor: str
    grade: int
    made: str
    """How the grade came about, as in a gold row."""


class ReferenceGrade(Record, frozen=True):
    """The grade that judges are compared with, and the grades that it is the consensus of."""

    grade: int
    assessors: tuple[AssessorGrade, ...]


class JudgeGrade(Record, frozen=True):
    """What one judge said: of several samples, the first."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None for labels that name no prompt."""
    grade: int | None
    expected: float | None
    """The mean grade under the label probabilities; None where the judge gave none."""
    rationale: str | None
    reason: str | None
    """Why there is no grade; None where there is one."""
    difference: int | None
    """The judge's grade minus the reference, as `compared` says; None where there is no grade."""


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
    gold: ReferenceGrade
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

    Args:
        panels: Gold and labels side by side.
        pool: The pool whose response ids the panels have.
        turns: The turns by id, for the conversations.
        sealed: Items of a sealed test part, whatever their rows say of their split.
    """
    found = [item for panel in panels for item in _of_panel(panel, pool, turns, frozenset(sealed))]
    found.sort(
        key=lambda item: (
            *(-item.distance, -item.erring, natural_key(item.turn_id), natural_key(item.response_id)),
            item.criterion,
        )
    )
    return tuple(found)


def _of_panel(
    panel: Panel, pool: Pool | None, turns: Mapping[str, Turn] | None, sealed: frozenset[SealedItem]
) -> Iterator[Disagreement]:
    columns = [column for column in panel.columns if not column.baseline]
    wrong = np.zeros(len(panel.items), dtype=bool)
    for column in columns:
        wrong |= column.codes != panel.human
    graded = {(item.turn_id, item.response_id) for item in panel.items}
    said = [_first_labels(column, graded) for column in columns]
    pooled = {response.response_id: response for response in pool.responses} if pool else {}
    for i in np.flatnonzero(wrong).tolist():
        item, rows = panel.items[i], panel.gold[i]
        if panel.split[i] == "test" or any(row.split == "test" or item_of(row) in sealed for row in rows):
            continue
        key = item.turn_id, item.response_id
        judges = tuple(
            _judge_grade(column, labels.get(key), _difference(panel, column, i), column.reasons[i])
            for column, labels in zip(columns, said, strict=True)
        )
        assessors = {row.assessor: AssessorGrade(row.assessor, row.grade, row.made) for row in rows}
        reference = consensus([given.grade for given in assessors.values()])
        response = pooled.get(item.response_id)
        turn = turns.get(item.turn_id) if turns else None
        yield Disagreement(
            turn_id=item.turn_id,
            topic_id=item.topic_id,
            response_id=item.response_id,
            criterion=panel.criterion,
            split=panel.split[i],
            gold=ReferenceGrade(
                reference, tuple(sorted(assessors.values(), key=lambda one: natural_key(one.assessor)))
            ),
            judges=judges,
            compared="positive" if panel.binary else "grades",
            distance=max((abs(judge.difference) for judge in judges if judge.difference is not None), default=0),
            text=response.text if response else None,
            passages=_passages(response, pool) if response and pool else (),
            utterance=turn.utterance if turn else None,
            context=turn.context if turn else (),
            unit=response.unit if response else "response",
        )


def _first_labels(column: Column, graded: Collection[ItemKey]) -> dict[ItemKey, Label]:
    labels = column.origin.labels if column.origin else ()
    # Gold is of a few thousand responses, labels may be of millions.
    return {
        key: label for label in labels if label.sample == 0 and (key := (label.turn_id, label.response_id)) in graded
    }


def _difference(panel: Panel, column: Column, i: int) -> int | None:
    code = int(column.codes[i])
    return None if code < 0 else panel.grades[code] - panel.grades[int(panel.human[i])]


def _judge_grade(column: Column, label: Label | None, difference: int | None, reason: str | None) -> JudgeGrade:
    return JudgeGrade(
        judge=column.judge,
        prompt=column.prompt,
        grade=label.grade if label else None,
        expected=label.expected if label else None,
        rationale=label.rationale if label else None,
        reason=reason,
        difference=difference,
    )


def _passages(response: PooledResponse, pool: Pool) -> tuple[ShownPassage, ...]:
    known = ((key, pool.passages.get(key)) for key in response.passages)
    return tuple(
        ShownPassage(passage.passage_id, passage.text) if passage else ShownPassage(key, None) for key, passage in known
    )
