"""Runs as rankings, read one at a time from the formats of the tracks and from TREC runs of six columns."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.io.cells import count
from judge.io.ids import topic_of
from judge.io.line_stream import text_of
from judge.io.paths import StrPath
from judge.io.safe import shown
from judge.io.steps import Steps, quiet, stepped
from judge.io.trec import column
from judge.pool.conversation import of_one_run, own_turns, with_own_turns
from judge.pool.lists import own_turn_id
from judge.records import Problem, Record
from judge.runs.document import read_head
from judge.runs.formats import ReadRun, find_runs, read_run, rules_of
from judge.runs.profiles import possible_years
from judge.runs.ranking import looks_like_trec_run, parse_trec_run, ranking

_NO_RUN = "neither JSON nor a TREC run, so not read as a run"


class RankedRun(Record, frozen=True):
    """A run as one ranking a turn."""

    run_id: str
    file: str
    team: str | None
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


Rank = Callable[[ReadRun], RankedRun]
"""How a run that was read becomes rankings."""


def passage_ranking(read: ReadRun) -> RankedRun:
    """The passages of a run as one ranking a turn."""
    if read.run is None:
        raise ValueError("a run that could not be read")
    columns = {
        turn_id: [(column(key), score) for key, score in passages] for turn_id, passages in ranking(read.run).items()
    }
    return RankedRun(read.run.run_id, read.run.file, read.run.team, columns)


def ranked_runs(
    given: StrPath | Sequence[StrPath], rank: Rank, problems: list[Problem], steps: Steps = quiet
) -> Iterator[RankedRun]:
    """The runs of folders and files, one at a time.

    A run with problems of form is read as far as it can be, as everywhere, with a remark on how many they are.

    Args:
        given: Folders of run files, and run files.
        rank: How a run in a format of the tracks becomes rankings.
        problems: Receives what cannot be read; the caller refuses the whole if there is any error among it.
        steps: Called as the runs are asked for.

    Raises:
        InputError: A folder is missing or holds no run.
    """
    files, beside = find_runs(given, also=looks_like_trec_run)
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
                problems.append(_problem("unreadable_run", str(path), str(error).removeprefix(f"{path}: ")))
            continue
        if not run.run_id.strip():
            problems.append(_problem("missing_run_id", run.file, "the run has no name"))
        elif run.run_id in named:
            message = f"the run id {shown(run.run_id)} is also that of {named[run.run_id]}"
            problems.append(_problem("duplicate_run_id", run.file, message))
        else:
            named[run.run_id] = run.file
            yield run


def _ranked(path: Path, rank: Rank) -> RankedRun:
    """One run file as rankings.

    Raises:
        InputError: The file is no run.
    """
    if looks_like_trec_run(_head(path)):
        return _trec_run(path)
    read = of_one_run(read_run(path))
    if read.run is None:
        raise InputError(f"{path}: not a run", read.problems)
    rules = rules_of(read.run.format)
    turn_ids = {turn.turn_id for turn in read.run.turns}
    if rules.own_turns:
        # Grades of a turn of the topics, or of another run's conversation, say nothing about this one.
        run = rank(msgspec.structs.replace(read, run=with_own_turns(read.run, own_turns(read.run))))
        turn_ids = {f"{topic_of(turn_id)}_1" for turn_id in turn_ids}
    else:
        run = rank(read)
    years = possible_years(turn_ids, rules.year)
    errors = sum(problem.count for problem in read.problems if problem.severity == "error")
    twice = len(read.run.turns) - len({turn.turn_id for turn in read.run.turns})
    remarks = (
        *run.remarks,
        *((f"{count(errors, 'error')} of form, which `judge validate` lists",) if errors else ()),
        *((f"{count(twice, 'turn')} given again, of which the first counts",) if twice else ()),
    )
    return RankedRun(run.run_id, run.file, run.team, run.ranking, years, run.outside, remarks, rules.own_turns)


def _trec_run(path: Path) -> RankedRun:
    run = parse_trec_run(text_of(path), str(path))
    turns = {own_turn_id(turn_id): items for turn_id, items in run.ranking.items()}
    if len(turns) < len(run.ranking):
        raise InputError(f"{path}: some turns are given in two spellings, as 9-1_3 and 9-1-3")
    remarks = (
        *((f"lines that name an item of a turn again: {run.repeated}",) if run.repeated else ()),
        *((f"items after the first 1,000 of a turn: {run.cut}",) if run.cut else ()),
    )
    return RankedRun(run.run_id, str(path), None, turns, possible_years(turns), remarks=remarks)


def _head(path: Path) -> bytes:
    try:
        return read_head(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _problem(code: str, file: str, message: str) -> Problem:
    return Problem(code, "error", file, None, "", message)
