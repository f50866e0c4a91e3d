"""The items of a folder of `judge calibrate`: those on which some judge differs from the assessors."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from judge.ask.labels import FAILURES, JUDGMENTS
from judge.ask.stored_results import read_results
from judge.calibrate.disagreements import Disagreement, JudgeGrade
from judge.calibrate.report.disagreements import DISAGREEMENTS, parse_disagreements
from judge.io.stored import read_stored
from judge.jobs.manifest import JOURNAL
from judge.report.items import BrowsedItem, BrowsedItems, BrowsedSide, Gaps, Opinion, UsedPassage, opinion, spread
from judge.runs.records import Turn

_Said = tuple[str, str, str]
"""Judge, prompt and response id."""


def read_calibration_items(folder: Path, name: str, first: int) -> BrowsedItems:
    """Read the items of a folder of `judge calibrate`.

    Args:
        folder: The folder.
        name: What stands before the name of each judge; empty where no other folder is shown.
        first: The number of its first side among those that are shown.

    Raises:
        InputError: The file of the items cannot be read; every damaged line is listed.
    """
    path = folder / DISAGREEMENTS
    lines = parse_disagreements(read_stored(path), str(path))
    judges = dict.fromkeys(_judge(said) for line in lines for said in line.judges)
    sides = {judge: first + number for number, judge in enumerate(judges)}
    turns = {line.turn_id: turn for line in lines if (turn := _turn(line))}
    journal = folder / JOURNAL
    asked = _asked(folder, {(*_judge(said), line.response_id) for line in lines for said in line.judges})
    return BrowsedItems(
        sides=tuple(BrowsedSide(_name(name, judge), journal if journal.is_file() else None) for judge in sides),
        items=_items(lines, sides, asked),
        turns=turns,
        scales={},
        notes=(),
    )


def _asked(folder: Path, wanted: Collection[_Said]) -> dict[_Said, Opinion]:
    """What the judges said of the shown responses, where the calibration asked them; of several samples, the first."""
    if not (folder / JUDGMENTS).is_file():
        return {}
    results = read_results(folder / JUDGMENTS, folder / FAILURES)
    keyed = (((one.whole_judge, f"{one.criterion}/{one.variant}", one.response_id), one) for one in results)
    return {key: opinion(one) for key, one in keyed if not one.sample and key in wanted}


def _judge(said: JudgeGrade) -> tuple[str, str]:
    return said.judge, said.prompt or ""


def _name(folder: str, judge: tuple[str, str]) -> str:
    return ": ".join(filter(None, (folder, ", ".join(filter(None, judge)))))


def _items(
    lines: Sequence[Disagreement], sides: Mapping[tuple[str, str], int], asked: Mapping[_Said, Opinion]
) -> Iterator[BrowsedItem]:
    for line in lines:
        differences = [said.difference for said in line.judges]
        yield BrowsedItem(
            turn_id=line.turn_id,
            topic_id=line.topic_id,
            criterion=line.criterion,
            text=line.text,
            truncated=False,
            passages=tuple(UsedPassage(passage.id, passage.text, None) for passage in line.passages),
            runs=(),
            opinions={sides[_judge(said)]: _opinion(line, said, asked) for said in line.judges},
            gold=line.gold.assessors,
            gold_grade=line.gold.grade,
            # Each difference is the judge's distance from gold, on whatever scale the calibration compared.
            apart=Gaps(
                gold=max((spread([difference, 0]) for difference in differences), default=None),
                judges=spread(differences) if len(differences) > 1 else None,
                jury=None,
            ),
        )


def _opinion(line: Disagreement, said: JudgeGrade, asked: Mapping[_Said, Opinion]) -> Opinion:
    given = asked.get((*_judge(said), line.response_id)) or Opinion(
        response_id=line.response_id,
        judge=said.judge,
        prompt=said.prompt or "",
        grade=said.grade,
        reason=said.reason if said.grade is None else None,
        expected=said.expected,
        rationale=said.rationale,
    )
    return msgspec.structs.replace(given, off=spread([said.difference, 0]))


def _turn(line: Disagreement) -> Turn | None:
    if line.utterance is None:
        return None
    return Turn(
        turn_id=line.turn_id,
        topic_id=line.topic_id,
        utterance=line.utterance,
        resolved_utterance=None,
        context=line.context,
        ptkb=(),
    )
