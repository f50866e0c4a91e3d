"""One run file: read, checked, and of its responses those kept that may be judged.

Every process that reads runs imports this module, so it needs no numpy, which takes as long to load as a run to read.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from judge.passages import same_text
from judge.pool.build import Candidate
from judge.pool.conversation import of_one_run, own_turns, with_own_turns
from judge.pool.dialogues import as_said, dialogue_candidates
from judge.pool.records import PooledTurn
from judge.pool.selection import Selection, candidates
from judge.records import JudgedUnit, Problem, Record
from judge.runs.check.rules import CollectionHashes
from judge.runs.check.validate import validate_run
from judge.runs.check.year import Trace
from judge.runs.fields import usable_turn_id
from judge.runs.formats import ReadRun, read_run, rules_of
from judge.runs.records import Exclusion, Run, Turn
from judge.runs.tokens import TokenCounter

if TYPE_CHECKING:
    from judge.passages.hashes import Hashes


class Submission(Record, frozen=True):
    """A run file once its responses are candidates: its header, without the turns."""

    run_id: str
    run_type: str | None
    team: str | None
    format: str
    file: str
    digest: str
    eval_response: bool
    turns: int
    selected: bool = True
    """Whether the run is among those to be pooled."""
    year: int | None = None
    """The year of the topics that the run is for; None for no known year."""


class Admitted(msgspec.Struct, frozen=True):
    """What is kept of one file."""

    problems: tuple[Problem, ...]
    exclusions: tuple[Exclusion, ...] = ()
    header: Run | None = None
    """The run without its turns; None if the file cannot be read."""
    trace: Trace | None = None
    submission: Submission | None = None
    """None if nothing of the run can be judged."""
    candidates: tuple[Candidate, ...] = ()
    turns: tuple[PooledTurn, ...] = ()
    """The turns of an interactive run, or of the run's dialogues."""


def admit(
    path: Path,
    *,
    format: str | None,
    turns: Mapping[str, Turn] | None,
    count_tokens: TokenCounter,
    citation_limit: int | None,
    selection: Selection,
    hashes: "Hashes | None" = None,
    measured: Callable[[Run], None] | None = None,
) -> Admitted:
    """Read and check one file; the arguments are those of `read_runs`."""
    read = read_run(path, format)
    if read.run is None:
        return Admitted(read.problems)
    checked = validate_run(
        read,
        turns,
        count_tokens,
        hashes=CollectionHashes(hashes.find, same_text) if hashes else None,
        citation_limit=citation_limit,
    )
    header, run = msgspec.structs.replace(read.run, turns=()), checked.run
    said = _conversations(read, turns, selection.unit)
    own = own_turns(said) if said is not None else {}
    excluded = tuple(_of_own_turn(row, own) for row in checked.exclusions)
    if selection.unit == "dialogue":
        # What an error takes out was said all the same, so it is in the dialogue.
        in_dialogues = {turn.turn_id for turn in own.values()}
        excluded = tuple(row for row in excluded if row.turn_id not in in_dialogues)
    if run is None:
        return Admitted(checked.problems, excluded, header, checked.trace)
    submission = Submission(
        run_id=run.run_id,
        run_type=run.run_type,
        team=run.team,
        format=run.format,
        file=run.file,
        digest=run.digest,
        eval_response=run.eval_response,
        turns=len(run.turns),
        year=checked.trace.year if checked.trace else None,
    )
    if measured is not None and run.eval_response:
        measured(with_own_turns(run, own))
    if selection.unit == "dialogue":
        kept, dropped = dialogue_candidates(run, said, own) if said is not None else ((), ())
    else:
        kept, dropped = candidates(run, selection, own)
    return Admitted(
        problems=checked.problems,
        exclusions=(*excluded, *dropped),
        header=header,
        trace=checked.trace,
        submission=submission,
        candidates=kept,
        turns=tuple(own.values()),
    )


def _conversations(read: ReadRun, turns: Mapping[str, Turn] | None, unit: JudgedUnit) -> Run | None:
    """The run with what was said in its own conversations; None where its turns are those of the topics."""
    run = of_one_run(read).run
    if run is not None and unit == "dialogue":
        return as_said(run, turns)
    return run if run is not None and rules_of(run.format).own_turns else None


def _of_own_turn(row: Exclusion, own: Mapping[str, PooledTurn]) -> Exclusion:
    """An exclusion under the id of the pool's turn."""
    turn = own.get(row.turn_id)
    # What is wrong with a turn that is given twice is not wrong with the first one, which counts. A turn of another
    # run, and one whose id names no topic, is of no conversation.
    if turn is None or row.reason in ("duplicate_turn", "several_runs") or not usable_turn_id(row.turn_id):
        return row
    return msgspec.structs.replace(row, turn_id=turn.turn_id)
