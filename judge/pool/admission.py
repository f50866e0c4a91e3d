"""One run file: read, checked, and of its responses, dialogues or citations those kept that may be judged.

A dialogue is the run's last response of a topic, in a turn whose id covers all that was said before
(`judge.pool.conversation`). Every process that reads runs imports this module, so it needs no numpy, which takes as
long to load as a run to read.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from judge.errors import UsageError
from judge.io.ids import groups_of, natural_key, only_turns, topic_of
from judge.io.text import has_content, printable_id, shown
from judge.passages import same_text
from judge.pool.build import Candidate
from judge.pool.conversation import of_one_run, own_turns, storable_text, with_own_turns
from judge.pool.listed import passage_candidates
from judge.pool.records import PooledTurn
from judge.pool.selection import Selection, candidates, citation_candidates
from judge.records import JudgedUnit, Problem, Record
from judge.runs.check.responses import CollectionHashes
from judge.runs.check.rules import rank_of
from judge.runs.check.validate import validate_run
from judge.runs.check.year import Trace
from judge.runs.fields import usable_turn_id
from judge.runs.formats import ReadRun, read_run, rules_of
from judge.runs.profiles import Limits
from judge.runs.records import Exclusion, Response, Run, RunTurn, Turn
from judge.runs.tokens import TokenCounter
from judge.units import UNITS

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


_Candidates = tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]
"""What of a run may be judged, and an exclusion for everything that is left out."""


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
    answers: tuple[Candidate, ...] = ()
    """The whole responses, where the candidates are parts of them."""


def admit(
    source: Path | ReadRun,
    *,
    format: str | None,
    turns: Mapping[str, Turn] | None,
    count_tokens: TokenCounter,
    limits: Limits | None,
    selection: Selection,
    hashes: "Hashes | None" = None,
    measured: Callable[[Run], None] | None = None,
) -> Admitted:
    """Read and check one file, or check a run of a table; the arguments are those of `read_runs`."""
    read = source if isinstance(source, ReadRun) else read_run(source, format)
    if read.run is not None and turns is not None and rules_of(read.run.format).form == "list":
        read = _with_only_turns(read, read.run, turns)
    if read.run is None:
        return Admitted(read.problems)
    checked = validate_run(
        read, turns, count_tokens, hashes=CollectionHashes(hashes.find, same_text) if hashes else None, limits=limits
    )
    header = msgspec.structs.replace(read.run, turns=())
    run = checked.run
    conversations = _conversations(read, turns, by_topic=UNITS[selection.unit].by_topic)
    own = own_turns(conversations) if conversations is not None else {}
    excluded = tuple(_of_own_turn(row, own) for row in checked.exclusions)
    if UNITS[selection.unit].by_topic:
        # What an error takes out was said all the same, so it is in the dialogue.
        in_dialogues = {turn.turn_id for turn in own.values()}
        excluded = tuple(row for row in excluded if row.turn_id not in in_dialogues)
    if UNITS[selection.unit].listed:
        # What is wrong with a response is no fault of what the turn lists.
        excluded = tuple(row for row in excluded if row.rank is None)
        run = _with_all_lists(read.run, checked.exclusions)
    if run is None:
        return Admitted(checked.problems, excluded, header, checked.trace)
    submission = Submission(
        run_id=run.run_id,
        run_type=run.run_type,
        team=run.team,
        format=run.format,
        file=run.file,
        digest=run.digest,
        eval_response=run.eval_response or UNITS[selection.unit].listed,
        turns=len(run.turns),
        year=checked.trace.year if checked.trace else None,
    )
    if measured is not None and run.eval_response:
        measured(with_own_turns(run, own))
    kept, dropped = CANDIDATES[selection.unit](selection, run, own, conversations, read)
    answers = candidates(run, selection, own)[0] if UNITS[selection.unit].part_of_response else ()
    return Admitted(
        problems=checked.problems,
        exclusions=(*excluded, *dropped),
        header=header,
        trace=checked.trace,
        submission=submission,
        candidates=kept,
        turns=tuple(own.values()),
        answers=answers,
    )


def _with_only_turns(read: ReadRun, run: Run, turns: Mapping[str, Turn]) -> ReadRun:
    """A list of passages with the turns of its topics, where it names topics that have one turn each."""
    turn_of = only_turns([turn.turn_id for turn in run.turns], turns.keys())
    named: list[RunTurn] = []
    for turn in run.turns:
        turn_id = turn_of.get(turn.turn_id, turn.turn_id)
        named.append(msgspec.structs.replace(turn, turn_id=turn_id) if turn_id in turns else turn)
    return msgspec.structs.replace(read, run=msgspec.structs.replace(run, turns=tuple(named)))


def _responses(
    selection: Selection, run: Run, own: Mapping[str, PooledTurn], said: Run | None, read: ReadRun
) -> _Candidates:
    return candidates(run, selection, own)


def _dialogues(
    selection: Selection, run: Run, own: Mapping[str, PooledTurn], said: Run | None, read: ReadRun
) -> _Candidates:
    return dialogue_candidates(run, said, own) if said is not None else ((), ())


def _citations(
    selection: Selection, run: Run, own: Mapping[str, PooledTurn], said: Run | None, read: ReadRun
) -> _Candidates:
    """The citations of the responses, and the sentences without one; none of a format that has no such citations."""
    responses, dropped = candidates(run, selection, own)
    cited = rules_of(run.format).cited
    if read.run is None or cited is None:
        return (), dropped
    # Of a turn that is given twice the first entry counts.
    pairs = zip(reversed(read.run.turns), reversed(read.places), strict=True)
    lines = {turn.turn_id: place.value for turn, place in pairs}
    kept, uncited = citation_candidates(responses, lambda turn_id: cited(lines[turn_id]))
    return kept, (*dropped, *uncited)


def _passages(
    selection: Selection, run: Run, own: Mapping[str, PooledTurn], said: Run | None, read: ReadRun
) -> _Candidates:
    return passage_candidates(run, selection, own)


def _with_all_lists(run: Run, exclusions: Sequence[Exclusion]) -> Run | None:
    """A run as it was read, without the turns that are out as a whole; None where the whole run is."""
    # Of a turn that is given twice the first entry counts.
    out = {row.turn_id for row in exclusions if row.rank is None and row.reason != "duplicate_turn"}
    kept = tuple(turn for turn in run.turns if printable_id(turn.turn_id) not in out)
    return msgspec.structs.replace(run, turns=kept) if kept and "*" not in out else None


def _conversations(read: ReadRun, turns: Mapping[str, Turn] | None, *, by_topic: bool) -> Run | None:
    """The run with what was said in its own conversations; None where its turns are those of the topics."""
    run = of_one_run(read).run
    if run is not None and by_topic:
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


def by_topic(turns: Mapping[str, Turn]) -> dict[str, list[Turn]]:
    """The turns of each topic in natural order."""
    topics = groups_of((turn.topic_id, turn) for turn in turns.values())
    for topic_id, of_topic in topics.items():
        of_topic.sort(key=lambda turn: natural_key(turn.turn_id))
        said = [turn.utterance for turn in of_topic]
        for place, turn in enumerate(of_topic):
            if [exchange.utterance for exchange in turn.context] != said[:place]:
                raise UsageError(
                    f"topic {shown(topic_id)}: turn {shown(turn.turn_id)} does not follow all turns before it, so the "
                    "topic is no one dialogue"
                )
    return topics


def as_said(run: Run, turns: Mapping[str, Turn] | None) -> Run | None:
    """A run as it was read, with the whole conversation of each topic that it has a turn of; None if nobody knows it.

    The user of an interactive run says what its file has. The user of another run says what the topics have, in turns
    that the run lacks too. Turns that no topic has are left out.
    """
    if rules_of(run.format).own_turns:
        known = {turn.topic_id for turn in turns.values()} if turns is not None else None
        usable = (turn for turn in run.turns if usable_turn_id(turn.turn_id))
        said = tuple(turn for turn in usable if known is None or topic_of(turn.turn_id) in known)
        return msgspec.structs.replace(run, turns=said)
    if turns is None:
        return None
    given: dict[str, tuple[Response, ...]] = {}
    for turn in run.turns:
        given.setdefault(turn.turn_id, turn.responses)
    reached = {turns[turn_id].topic_id for turn_id in given if turn_id in turns}
    said = tuple(
        RunTurn(turn.turn_id, given.get(turn.turn_id, ()), turn.utterance, tuple(each.text for each in turn.ptkb))
        for topic_id, of_topic in by_topic(turns).items()
        if topic_id in reached
        for turn in of_topic
    )
    return msgspec.structs.replace(run, turns=said)


def dialogue_candidates(
    run: Run, said: Run, own: Mapping[str, PooledTurn]
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """The dialogues of a run, and an exclusion for each response that was not said or is not to be judged.

    `run` is the run without what its errors take out, `said` that of `as_said`, and `own` has its turns by the ids that
    it gives them. A topic in which the run said nothing is no dialogue.
    """
    if not run.eval_response:
        detail = "the run says eval_response: false"
        return (), tuple(
            Exclusion(run_id=run.run_id, turn_id=turn.turn_id, rank=None, reason="eval_response_false", detail=detail)
            for turn in run.turns
        )
    topics: dict[str, list[RunTurn]] = {}
    excluded: list[Exclusion] = []
    # Of a turn that is given twice the first entry counts.
    for turn in {turn.turn_id: turn for turn in reversed(said.turns)}.values():
        topics.setdefault(own[turn.turn_id].topic_id, []).append(turn)
        detail = "the dialogue has the run's best-ranked response"
        for response in sorted(turn.responses, key=attrgetter("rank"))[1:]:
            row = Exclusion(
                run_id=run.run_id,
                turn_id=own[turn.turn_id].turn_id,
                rank=rank_of(response),
                reason="below_depth",
                detail=detail,
            )
            excluded.append(row)
    kept: list[Candidate] = []
    for of_topic in topics.values():
        firsts = [min(turn.responses, key=attrgetter("rank"), default=None) for turn in of_topic]
        if not any(first is not None and has_content(first.text) for first in firsts):
            continue
        turn, last = max(zip(of_topic, firsts, strict=True), key=lambda pair: natural_key(pair[0].turn_id))
        text = storable_text(last.text) if last is not None and has_content(last.text) else ""
        # A run has one dialogue in a topic, whatever the ranks of its responses.
        kept.append(
            Candidate(
                run_id=run.run_id, turn_id=own[turn.turn_id].turn_id, rank=1, text=text, used=(), provenance_rule="used"
            )
        )
    return tuple(kept), tuple(excluded)


_Maker = Callable[[Selection, Run, Mapping[str, PooledTurn], Run | None, ReadRun], _Candidates]
CANDIDATES: Mapping[JudgedUnit, _Maker] = {
    "response": _responses,
    "dialogue": _dialogues,
    "citation": _citations,
    # Pairs are made of the pool of responses.
    "pair": _responses,
    "passage": _passages,
}
"""How the candidates of a unit are made: of a run that is checked, whose own turns have the given ids, and which was
read and said as is given beside it."""
