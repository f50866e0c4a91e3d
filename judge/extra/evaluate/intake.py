"""Runs as rankings, of passages or of PTKB statements, read one at a time; the assessment that topics hold."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.io.files import StrPath, input_errors, text_of
from judge.io.ids import column, natural_key, own_turn_id, topic_of
from judge.io.steps import Steps, quiet, stepped
from judge.io.text import count, shown
from judge.pool.conversation import of_one_run, own_turns, with_own_turns
from judge.records import Problem, Record, file_problem
from judge.runs.document import read_head
from judge.runs.formats import ReadRun, find_runs, read_run, rules_of
from judge.runs.formats.shape import PtkbEntry, TurnPlace
from judge.runs.formats.trec import looks_like_trec_run
from judge.runs.profiles import possible_years
from judge.runs.ranking import parse_trec_run, ranking
from judge.runs.records import Run, Topic, Turn

_NO_RUN = "neither JSON nor a TREC run, so not read as a run"


class RankedRun(Record, frozen=True):
    """A run as one ranking a turn."""

    run_id: str
    file: str
    ranking: dict[str, list[tuple[str, float]]]
    """As `judge.runs.ranking.ranking` gives it."""
    years: frozenset[int] = frozenset()
    """The years of which the run may be by its turns; empty where nothing tells."""
    outside: int | None = None
    """PTKB statements that are not in the turn's topic; None where that is not known."""
    remarks: tuple[str, ...] = ()
    """What was passed over, a sentence each."""
    own_turns: bool = False
    """Whether it has its own conversations, so that grades of other runs' turns are never of its turns."""


Rank = Callable[[Run, Sequence[TurnPlace]], RankedRun]
"""How a run, and what is known of the places of its turns, becomes rankings."""


def passage_ranking(run: Run, places: Sequence[TurnPlace] = ()) -> RankedRun:
    """The passages of a run as one ranking a turn."""
    ranked = ranking(run).items()
    columns: dict[str, list[tuple[str, float]]] = {}
    for turn_id, passages in ranked:
        columns[turn_id] = [(column(key), score) for key, score in passages]
    return RankedRun(run.run_id, run.file, columns)


def ranked_runs(
    given: StrPath | Sequence[StrPath], rank: Rank, problems: list[Problem], steps: Steps = quiet
) -> Iterator[RankedRun]:
    """The runs of folders and files, one at a time.

    A run with problems of form is read as far as it can be, as everywhere, with a remark on how many they are.

    `problems` receives what cannot be read, has no name, or has that of a run before it; the caller refuses the whole
    if there is any error among it.
    """
    files, beside = find_runs(given, also=lambda _, head: looks_like_trec_run(head))
    problems += (
        msgspec.structs.replace(problem, message=_NO_RUN) if problem.code == "not_a_run_file" else problem
        for problem in beside
    )
    named: dict[str, str] = {}
    for path in stepped("measuring runs", files, steps):
        try:
            run = _ranked(path, rank)
        except InputError as error:
            problems += error.problems
            if not any(problem.severity == "error" for problem in error.problems):
                problems.append(file_problem("unreadable_run", path, str(error).removeprefix(f"{path}: ")))
            continue
        if not run.run_id.strip():
            problems.append(file_problem("missing_run_id", run.file, "the run has no name"))
        elif run.run_id in named:
            message = f"the run id {shown(run.run_id)} is also that of {named[run.run_id]}"
            problems.append(file_problem("duplicate_run_id", run.file, message))
        else:
            named[run.run_id] = run.file
            yield run


def _remarks_on(read: ReadRun, turns: int) -> tuple[str, ...]:
    """What was passed over in a run that answers so many different turns, a sentence each."""
    errors = sum(problem.count for problem in read.problems if problem.severity == "error")
    twice = len(read.run.turns) - turns if read.run is not None else 0
    return (
        *((f"{count(errors, 'error')} of form, which `judge validate` lists",) if errors else ()),
        *((f"{count(twice, 'turn')} given again, of which the first counts",) if twice else ()),
    )


def _ranked(path: Path, rank: Rank) -> RankedRun:
    """One run file as rankings; an InputError if it is no run."""
    with input_errors(path):
        head = read_head(path)
    if looks_like_trec_run(head):
        return _trec_run(path)
    read = of_one_run(read_run(path))
    if read.run is None:
        raise InputError(f"{path}: not a run", read.problems)
    run, rules = read.run, rules_of(read.run.format)
    turn_ids = {turn.turn_id for turn in run.turns}
    turns = len(turn_ids)
    if rules.own_turns:
        # Grades of a turn of the topics, or of another run's conversation, say nothing about this one.
        run = with_own_turns(run, own_turns(run))
        turn_ids = {f"{topic_of(turn_id)}_1" for turn_id in turn_ids}
    ranked = rank(run, read.places)
    years = possible_years(turn_ids, rules.year)
    remarks = (*ranked.remarks, *_remarks_on(read, turns))
    return msgspec.structs.replace(ranked, years=years, remarks=remarks, own_turns=rules.own_turns)


def _trec_run(path: Path) -> RankedRun:
    run = parse_trec_run(text_of(path), str(path))
    turns = {own_turn_id(turn_id): items for turn_id, items in run.ranking.items()}
    if len(turns) < len(run.ranking):
        raise InputError(f"{path}: some turns are given in two spellings, as 9-1_3 and 9-1-3")
    remarks = (
        *((f"lines that name an item of a turn again: {run.repeated}",) if run.repeated else ()),
        *((f"items after the first 1,000 of a turn: {run.cut}",) if run.cut else ()),
    )
    return RankedRun(run.run_id, str(path), turns, possible_years(turns), remarks=remarks)


def statement_ranking(run: Run, places: Sequence[TurnPlace], turns: Mapping[str, Turn] | None) -> RankedRun:
    """A run's PTKB statements as one ranking a turn, of the numbers that statements have in their topic.

    The statements are those of the turn's first response by rank, by falling score where each has one (2023), else in
    the order of the list. A statement that is named again counts once. One that is not in the topic's PTKB, as the
    statements from the conversation that 2025 allows, keeps its place and matches nothing.

    Without the turns of the topics, only numbers can be matched.
    """
    form = rules_of(run.format).ptkb
    if form is None:
        raise InputError(f"{run.file}: runs of the format {run.format} name no PTKB statements")
    if form == "texts" and turns is None:
        raise InputError(
            f"{run.file}: names PTKB statements by their text: --topics FILE, which numbers them, is needed"
        )
    ranking: dict[str, list[tuple[str, float]]] = {}
    outside = others = 0
    for turn, place in zip(run.turns, places, strict=True):
        if not turn.responses or turn.turn_id in ranking:
            continue
        first = min(range(len(turn.responses)), key=lambda j: turn.responses[j].rank)
        named = turn.responses[first].ptkb_provenance
        others += any(set(response.ptkb_provenance) != set(named) for response in turn.responses)
        numbers = _numbers(named, form, turns, turn.turn_id)
        # No number has a space. A text may hold what no evaluation tool takes, so its place stands for it.
        strange = {text: f"outside {named.index(text)}" for n, text in zip(numbers, named, strict=True) if n is None}
        keys = [strange[text] if n is None else n for n, text in zip(numbers, named, strict=True)]
        order = list(dict.fromkeys(_by_score(keys, place.responses[first].statements)))
        outside += len(strange)
        ranking[turn.turn_id] = [(key, float(len(order) - k)) for k, key in enumerate(order)]
    remark = f"{count(others, 'turn')} with other statements in other responses, of which the first by rank counts"
    ordered = {turn_id: ranking[turn_id] for turn_id in sorted(ranking, key=natural_key)}
    known = None if turns is None else outside
    return RankedRun(run.run_id, run.file, ordered, outside=known, remarks=(remark,) if others else ())


def own_assessment(topics: Iterable[Topic]) -> dict[str, dict[str, int]]:
    """Grades of PTKB statements by turn and number: 1 where the topic's author linked the statement, else 0.

    Of iKAT 2023 this is the assessment by the organizers. As there, a turn without a linked statement is not assessed.
    """
    grades: dict[str, dict[str, int]] = {}
    for topic in topics:
        for turn in topic.turns:
            if turn.ptkb_provenance:
                grades[turn.turn_id] = {
                    statement.ptkb_id: int(statement.ptkb_id in turn.ptkb_provenance) for statement in turn.ptkb
                }
    return grades


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
    scores = [score for _, score in given if score is not None and isfinite(score)]
    if not len(scores) == len(given) == len(keys):
        return list(keys)
    return [key for _, key in sorted(zip(scores, keys, strict=True), key=lambda pair: -pair[0])]
