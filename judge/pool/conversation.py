"""The conversations of interactive runs and of dialogues: each turn with what led to it, under an id of its own. Pure.

Turn 3 of a topic has another utterance in every interactive run. So a turn of such a run is told from others by all
that was said up to it: `1-1_3~5f2c9a01be42d370` is the turn that the run calls `1-1_3`, and the first 16 digits of the
SHA-256 of its conversation. Two runs share a turn only where their conversations are the same up to it.
"""

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from judge.errors import InputError
from judge.io.ids import conversation_turn_id, is_own_turn, natural_key, run_turn_id, topic_of
from judge.io.text import digest, shown, storable
from judge.pool.records import Pool, PooledTurn
from judge.runs.fields import ancestors
from judge.runs.formats import ReadRun, rules_of
from judge.runs.records import Exchange, PtkbStatement, Run, RunTurn, Turn

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def own_turns(run: Run) -> dict[str, PooledTurn]:
    """The turns of a run with its own conversations by the ids that the run gives them.

    The conversation is that of the run as it was read: also a response that is not judged was said to the user. Of
    several responses of a turn, the best-ranked one was. A turn that is given twice counts once.
    """
    topics: dict[str, dict[str, RunTurn]] = {}
    for turn in run.turns:
        topics.setdefault(topic_of(turn.turn_id), {}).setdefault(turn.turn_id, turn)
    found: dict[str, PooledTurn] = {}
    for topic_id, turns in topics.items():
        told: dict[str, None] = {}
        last: PooledTurn | None = None
        answer: str | None = None
        for turn_id in sorted(turns, key=natural_key):
            turn = turns[turn_id]
            new = [statement for statement in dict.fromkeys(map(storable_text, turn.ptkb)) if statement not in told]
            told |= dict.fromkeys(new)
            utterance = storable_text(turn.utterance or "")
            previous = last.turn_id if last is not None else None
            bare = PooledTurn(
                turn_id=turn_id,
                topic_id=topic_id,
                utterance=utterance,
                ptkb=tuple(new),
                previous=previous,
                answer=answer,
            )
            last = found[turn_id] = msgspec.structs.replace(bare, turn_id=conversation_turn_id(turn_id, _digest(bare)))
            best = min(turn.responses, key=lambda response: response.rank, default=None)
            answer = storable_text(best.text) if best is not None else ""
    return found


def of_one_run(read: ReadRun) -> ReadRun:
    """An interactive run without the turns that its file says are another run's; a run of another format as it is."""
    if read.run is None or not rules_of(read.run.format).own_turns:
        return read
    strange = {path for problem in read.problems if problem.code == "several_runs" for path in ancestors(problem.path)}
    if not strange:
        return read
    kept = [i for i, place in enumerate(read.places) if place.path not in strange]
    return msgspec.structs.replace(
        read,
        run=msgspec.structs.replace(read.run, turns=tuple(read.run.turns[i] for i in kept)),
        places=tuple(read.places[i] for i in kept),
    )


def with_own_turns(run: Run, own: Mapping[str, PooledTurn]) -> Run:
    """A run with its turns under the ids of the pool; turns that are not in `own` keep theirs."""
    turns = (
        msgspec.structs.replace(turn, turn_id=own[turn.turn_id].turn_id) if turn.turn_id in own else turn
        for turn in run.turns
    )
    return msgspec.structs.replace(run, turns=tuple(turns)) if own else run


def storable_text(text: str) -> str:
    """A text that can be stored; a character that cannot be becomes U+FFFD."""
    return text if storable(text) else _UNSTORABLE.sub("\ufffd", text)


def _digest(turn: PooledTurn) -> str:
    """The digest of a turn, which by its `previous` is that of the conversation up to it."""
    said = msgspec.structs.replace(turn, turn_id=run_turn_id(turn.turn_id))
    return digest(msgspec.json.encode(said).decode())


def is_genuine(turn: PooledTurn) -> bool:
    """Whether the id of a turn belongs to what was said; a question of a table has a plain id."""
    if not is_own_turn(turn.turn_id):
        return True
    return turn.turn_id == conversation_turn_id(run_turn_id(turn.turn_id), _digest(turn))


def joined(turns: Iterable[PooledTurn]) -> dict[str, PooledTurn]:
    """The turns of several runs by id; an InputError if one id has two questions or conversations."""
    found: dict[str, PooledTurn] = {}
    for turn in turns:
        known = found.setdefault(turn.turn_id, turn)
        if known == turn:
            continue
        if is_own_turn(turn.turn_id):
            raise InputError(f"two conversations have the turn id {turn.turn_id}: a run was made to have it")
        # A table without references may be about the questions of one that has them.
        references = known.references or turn.references
        question = msgspec.structs.replace(known, references=references)
        if question != msgspec.structs.replace(turn, references=turn.references or references):
            raise InputError(_differ(known, turn))
        found[turn.turn_id] = question
    return found


def _differ(known: PooledTurn, turn: PooledTurn) -> str:
    """How two tables differ about one question."""
    if turn.utterance != known.utterance:
        return (
            f"{turn.turn_id} asks {shown(turn.utterance)} in one table and {shown(known.utterance)} in another: "
            "give the questions ids in a column"
        )
    if (turn.previous, turn.answer) != (known.previous, known.answer):
        return f"{turn.turn_id}: what was said before it is not the same in two tables: judge them apart"
    return f"{turn.turn_id}: {shown(turn.utterance)} has other references in one table than in another"


def with_earlier(turn_ids: Iterable[str], turns: Mapping[str, PooledTurn]) -> dict[str, PooledTurn]:
    """The turns with these ids and those that led to them, in natural order; ids without a turn are left out."""
    kept: dict[str, PooledTurn] = {}
    for turn_id in turn_ids:
        at = turns.get(turn_id)
        while at is not None and at.turn_id not in kept:
            kept[at.turn_id] = at
            at = turns.get(at.previous) if at.previous is not None else None
    return {turn_id: kept[turn_id] for turn_id in sorted(kept, key=natural_key)}


def without_turn(pool_turns: Collection[str], turns: Mapping[str, PooledTurn]) -> list[str]:
    """The ids of own turns that are in no conversation here, in natural order."""
    named = {turn_id for turn_id in pool_turns if is_own_turn(turn_id)}
    named |= {turn.previous for turn in turns.values() if turn.previous is not None}
    return sorted(named - turns.keys(), key=natural_key)


def depths(turns: Mapping[str, PooledTurn]) -> dict[str, int]:
    """Turn id to the number of turns that lead to it, itself included."""
    found: dict[str, int] = {}
    for turn_id in _in_order(turns):
        previous = turns[turn_id].previous
        found[turn_id] = 1 if previous is None else found[previous] + 1
    return found


def turns_shown(pool: Pool, topics: Mapping[str, Turn] | None) -> dict[str, Turn] | None:
    """The turns that prompts show: those of the topics, and the pool's own ones with the conversation before them.

    None without topics where the pool has no turns of its own.
    """
    if topics is None and not pool.turns:
        return None
    shown = dict(topics or {})
    told: dict[str, tuple[str, ...]] = {}
    for turn_id in _in_order(pool.turns):
        turn = pool.turns[turn_id]
        context: tuple[Exchange, ...] = ()
        told[turn_id] = turn.ptkb
        if turn.previous is not None:
            before = shown[turn.previous]
            context = (*before.context, Exchange(before.utterance, turn.answer or ""))
            told[turn_id] = (*told[turn.previous], *turn.ptkb)
        statements = tuple(PtkbStatement(str(k), text) for k, text in enumerate(told[turn_id], 1))
        shown[turn_id] = Turn(
            turn_id=turn_id,
            topic_id=turn.topic_id,
            utterance=turn.utterance,
            resolved_utterance=None,
            context=context,
            ptkb=statements,
            references=turn.references,
        )
    return shown


def _in_order(turns: Mapping[str, PooledTurn]) -> Iterable[str]:
    """The ids of the turns, each after that of the turn before it."""
    done: dict[str, None] = {}
    for turn_id in turns:
        path = []
        at: str | None = turn_id
        while at is not None and at not in done:
            path.append(at)
            at = turns[at].previous
        done |= dict.fromkeys(reversed(path))
    return done
