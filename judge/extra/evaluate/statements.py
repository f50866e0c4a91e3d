"""PTKB statements that runs name as rankings of statement numbers, and the assessment that topics hold. Pure."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite

from judge.errors import InputError
from judge.extra.evaluate.intake import RankedRun
from judge.io.cells import count
from judge.io.ids import natural_key
from judge.runs.formats import ReadRun, rules_of
from judge.runs.formats.shape import PtkbEntry
from judge.runs.records import Topic, Turn


def statement_ranking(turns: Mapping[str, Turn] | None) -> Callable[[ReadRun], RankedRun]:
    """How a run's PTKB statements become one ranking a turn, of the numbers that statements have in their topic.

    The statements are those of the turn's first response by rank, by falling score where each has one (2023), else in
    the order of the list. A statement that is named again counts once. One that is not in the topic's PTKB, as the
    statements from the conversation that 2025 allows, keeps its place and matches nothing.

    Args:
        turns: The turns of the topics; None without topics, so that only numbers can be matched.
    """

    def ranked(read: ReadRun) -> RankedRun:
        run = read.run
        if run is None:
            raise ValueError("a run that could not be read")
        form = rules_of(run.format).ptkb
        if form is None:
            raise InputError(f"{run.file}: runs of the format {run.format} name no PTKB statements")
        if form == "texts" and turns is None:
            raise InputError(
                f"{run.file}: names PTKB statements by their text: --topics FILE, which numbers them, is needed"
            )
        ranking: dict[str, list[tuple[str, float]]] = {}
        outside = others = 0
        for turn, place in zip(run.turns, read.places, strict=True):
            if not turn.responses or turn.turn_id in ranking:
                continue
            first = min(range(len(turn.responses)), key=lambda j: turn.responses[j].rank)
            named = turn.responses[first].ptkb_provenance
            others += any(set(response.ptkb_provenance) != set(named) for response in turn.responses)
            numbers = _numbers(named, form, turns, turn.turn_id)
            # No number has a space. A text may hold what no evaluation tool takes, so its place stands for it.
            keys = [
                f"outside {named.index(text)}" if key is None else key for key, text in zip(numbers, named, strict=True)
            ]
            order = list(dict.fromkeys(_by_score(keys, place.responses[first].statements)))
            outside += len({text for key, text in zip(numbers, named, strict=True) if key is None})
            ranking[turn.turn_id] = [(key, float(len(order) - k)) for k, key in enumerate(order)]
        remark = f"{count(others, 'turn')} with other statements in other responses, of which the first by rank counts"
        return RankedRun(
            run.run_id,
            run.file,
            run.team,
            {turn_id: ranking[turn_id] for turn_id in sorted(ranking, key=natural_key)},
            outside=outside if turns is not None else None,
            remarks=(remark,) if others else (),
        )

    return ranked


def own_assessment(topics: Iterable[Topic]) -> dict[str, dict[str, int]]:
    """Grades of PTKB statements by turn and number: 1 where the topic's author linked the statement, else 0.

    Of iKAT 2023 this is the assessment by the organizers. As there, a turn without a linked statement is not assessed.
    """
    return {
        turn.turn_id: {statement.ptkb_id: int(statement.ptkb_id in turn.ptkb_provenance) for statement in turn.ptkb}
        for topic in topics
        for turn in topic.turns
        if turn.ptkb_provenance
    }


def _numbers(named: Sequence[str], form: str, turns: Mapping[str, Turn] | None, turn_id: str) -> list[str | None]:
    """The number of each statement; None for one that is not in the topic, or is not readable."""
    if turns is None:
        return [number or None for number in named]
    statements = turns[turn_id].ptkb if turn_id in turns else ()
    if form == "texts":
        known = {_plain(statement.text): statement.ptkb_id for statement in reversed(statements)}
        return [known.get(_plain(text)) for text in named]
    numbers = {statement.ptkb_id for statement in statements}
    return [number if number in numbers else None for number in named]


def _plain(text: str) -> str:
    """A statement without what copying changes: white space and the composition of characters."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _by_score(keys: Sequence[str], given: Sequence[PtkbEntry]) -> list[str]:
    scores = [score for _, score in given]
    if len(scores) != len(keys) or not all(score is not None and isfinite(score) for score in scores):
        return list(keys)
    order = sorted(range(len(keys)), key=lambda k: -(scores[k] or 0.0))
    return [keys[k] for k in order]
