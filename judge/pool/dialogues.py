"""The dialogues of runs: all that a run and its user said in a topic, as one item of a pool. Pure.

An item of a pool is a response in a turn. A dialogue is the run's last response of a topic, in a turn whose id covers
all that was said before (`judge.pool.conversation`). The users of interactive runs say what the run's file has; those
of other runs say what the topics have, whatever the run answered.
"""

from collections.abc import Mapping

import msgspec

from judge.errors import UsageError
from judge.io.ids import natural_key, topic_of
from judge.io.safe import has_content, shown
from judge.pool.build import Candidate
from judge.pool.conversation import storable_text
from judge.pool.records import PooledTurn
from judge.runs.check.rules import rank_of
from judge.runs.fields import usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.records import Exclusion, Response, Run, RunTurn, Turn


def by_topic(turns: Mapping[str, Turn]) -> dict[str, list[Turn]]:
    """The turns of each topic in natural order."""
    topics: dict[str, list[Turn]] = {}
    for turn in turns.values():
        topics.setdefault(turn.topic_id, []).append(turn)
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
        return (), tuple(Exclusion(run.run_id, turn.turn_id, None, "eval_response_false", detail) for turn in run.turns)
    topics: dict[str, list[RunTurn]] = {}
    excluded: list[Exclusion] = []
    # Of a turn that is given twice the first entry counts.
    for turn in {turn.turn_id: turn for turn in reversed(said.turns)}.values():
        topics.setdefault(own[turn.turn_id].topic_id, []).append(turn)
        detail = "the dialogue has the run's best-ranked response"
        for response in sorted(turn.responses, key=_rank)[1:]:
            row = Exclusion(run.run_id, own[turn.turn_id].turn_id, rank_of(response), "below_depth", detail)
            excluded.append(row)
    kept: list[Candidate] = []
    for of_topic in topics.values():
        firsts = [min(turn.responses, key=_rank, default=None) for turn in of_topic]
        if not any(first is not None and has_content(first.text) for first in firsts):
            continue
        turn, last = max(zip(of_topic, firsts, strict=True), key=lambda pair: natural_key(pair[0].turn_id))
        text = storable_text(last.text) if last is not None and has_content(last.text) else ""
        # A run has one dialogue in a topic, whatever the ranks of its responses.
        kept.append(Candidate(run.run_id, own[turn.turn_id].turn_id, 1, text, (), "used"))
    return tuple(kept), tuple(excluded)


def _rank(response: Response) -> int:
    return response.rank
