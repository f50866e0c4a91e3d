"""The runs of a pool, and the turns that each had to answer; of an interactive run, the topics that it had to reach."""

from collections.abc import Collection, Mapping

import msgspec

from judge.io.ids import is_own_turn, is_unreached, natural_key, topic_of, unreached_turn
from judge.pool.build import exclusion_order
from judge.pool.intake import Submitted
from judge.pool.records import Pool, PooledRun
from judge.pool.selection import Selection
from judge.runs.fields import usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.records import Exclusion, Turn
from judge.units import UNITS

_NOT_ASKED = frozenset({"not_selected_turn", "turn_not_judged", "unknown_turn"})
"""Reasons of exclusions for which a run did not have to answer the turn."""


def with_runs(
    submitted: Submitted,
    pool: Pool,
    turns: Mapping[str, Turn] | None,
    selection: Selection,
    previous: Pool | None,
    *,
    brings_texts: bool = False,
) -> Pool:
    """The pool with its runs, earlier ones included, and an exclusion for each topic that a run never reached.

    A run had to answer the turns of the topics or, without topics, those that any run has. An interactive run had to
    answer what its users said, and to reach the topics or, without them, those that any interactive run reached. In a
    pool of dialogues, every run had to reach them.

    `brings_texts`: whether the submitted runs had to bring the texts of their passages.
    """
    own = _own(submitted, pool, previous, by_topic=UNITS[selection.unit].by_topic)
    expected = _expected(pool, turns, selection, own)
    reached = _reached(own, pool)
    topics = {turn.topic_id for turn in turns.values()} if turns is not None else set().union(*reached.values())
    for wanted in (selection.turns, selection.relevance.grades if selection.relevance else None):
        topics = topics if wanted is None else topics & set(map(topic_of, wanted))
    runs: dict[str, PooledRun] = {}
    for earlier in previous.runs if previous else ():
        had = expected if earlier.turns is not None else None
        runs[earlier.run_id] = msgspec.structs.replace(earlier, turns=had)
    for run in submitted.runs:
        selected = run.selected and run.eval_response
        had = expected if rules_of(run.format).all_turns else None
        runs[run.run_id] = PooledRun(
            run_id=run.run_id,
            run_type=run.run_type,
            team=run.team,
            format=run.format,
            digest=run.digest,
            selected=selected,
            turns=had,
            year=run.year,
            brings_texts=brings_texts,
        )
    rows = [row for row in pool.exclusions if row.reason != "unreached_topic"]
    unreached = UNITS[selection.unit].words.unreached
    for run_id, answered in own.items():
        missed = topics - reached[run_id] if runs[run_id].selected else set()
        had = tuple(sorted({*answered, *map(unreached_turn, missed)}, key=natural_key))
        runs[run_id] = msgspec.structs.replace(runs[run_id], turns=had)
        rows += [
            Exclusion(
                run_id=run_id, turn_id=unreached_turn(topic_id), rank=None, reason="unreached_topic", detail=unreached
            )
            for topic_id in missed
        ]
    return msgspec.structs.replace(
        pool,
        runs=tuple(runs[run_id] for run_id in sorted(runs, key=natural_key)),
        exclusions=tuple(sorted(rows, key=exclusion_order)),
    )


def _expected(
    pool: Pool, turns: Mapping[str, Turn] | None, selection: Selection, own: Collection[str]
) -> tuple[str, ...]:
    """The turns that every run had to answer that is not interactive, which those in `own` are."""
    known = turns.keys() if turns is not None else {response.turn_id for response in pool.responses}
    if turns is None:
        # A run had to answer a turn even if all responses to the turn were left out.
        known |= {
            row.turn_id
            for row in pool.exclusions
            if row.run_id not in own and row.reason != "not_selected_run" and usable_turn_id(row.turn_id)
        }
    shared = (turn_id for turn_id in known if not is_own_turn(turn_id))
    return tuple(sorted(selection.wanted_turns(shared), key=natural_key))


def _own(submitted: Submitted, pool: Pool, previous: Pool | None, *, by_topic: bool) -> dict[str, set[str]]:
    """The turns that each interactive run had to answer, or the dialogues of each run, by its id."""
    own: dict[str, set[str]] = {}
    for run in previous.runs if previous else ():
        if by_topic or rules_of(run.format).own_turns:
            own[run.run_id] = {turn_id for turn_id in run.turns or () if not is_unreached(turn_id)}
    for submission in submitted.runs:
        if by_topic or rules_of(submission.format).own_turns:
            own[submission.run_id] = set()
    new = own.keys() & {submission.run_id for submission in submitted.runs}
    for response in pool.responses:
        for entry in response.runs:
            if entry.run_id in new:
                own[entry.run_id].add(response.turn_id)
    if by_topic:
        return own
    # The id that a run writes may look like that of a conversation.
    said = {turn.turn_id for turn in submitted.turns}
    for row in pool.exclusions:
        if row.run_id in new and row.reason not in _NOT_ASKED and row.turn_id in said:
            own[row.run_id].add(row.turn_id)
    return own


def _reached(own: Mapping[str, set[str]], pool: Pool) -> dict[str, set[str]]:
    """The topics that each interactive run reached, also in turns that it did not have to answer."""
    reached = {run_id: set(map(topic_of, turn_ids)) for run_id, turn_ids in own.items()}
    for row in pool.exclusions:
        if row.run_id in own and row.reason in _NOT_ASKED and is_own_turn(row.turn_id):
            reached[row.run_id].add(topic_of(row.turn_id))
    return reached
