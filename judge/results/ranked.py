"""What each run of a pool ranked first, and the turns that it had to answer. Pure."""

from collections.abc import Collection, Mapping

from judge.io.ids import is_own_turn, natural_key, nested
from judge.pool.records import Pool, PooledResponse


def turns_of_runs(
    pool: Pool,
    firsts: Mapping[str, Mapping[str, object]],
    expected: Mapping[str, Collection[str]] | None = None,
) -> dict[str, set[str]]:
    """Each run that was to be judged, in natural order, to the turns that it had to answer or answered."""
    if expected is None:
        expected = {run.run_id: run.turns or () for run in pool.runs if run.selected}
    every = {response.turn_id for response in pool.responses}.union(*expected.values())
    every = {turn_id for turn_id in every if not is_own_turn(turn_id)}
    declined = {row.run_id for row in pool.exclusions if row.reason == "eval_response_false"}
    declined.update(run.run_id for run in pool.runs if not run.selected)
    run_ids = {*firsts, *expected, *(row.run_id for row in pool.exclusions)} - declined
    return {
        run_id: {*expected.get(run_id, every), *firsts.get(run_id, {})} for run_id in sorted(run_ids, key=natural_key)
    }


def first_ranked(pool: Pool) -> dict[str, dict[str, PooledResponse]]:
    """Run id and turn id to the pooled response that the run ranked first.

    A response excluded for `no_relevant_passage` was never a candidate, so the next one may be first. If a response
    that ranks better was excluded for another reason, the turn is unanswered.
    """
    best: dict[tuple[str, str], tuple[int, PooledResponse | None]] = {}
    for response in pool.responses:
        for entry in response.runs:
            key = entry.run_id, response.turn_id
            if key not in best or entry.rank < best[key][0]:
                best[key] = entry.rank, response
    for row in pool.exclusions:
        if row.reason == "no_relevant_passage":
            continue
        key = row.run_id, row.turn_id
        # Rank 0 is valid too: some runs count from 0. At equal rank the pooled response stays first.
        if key in best and row.rank is not None and row.rank < best[key][0]:
            best[key] = row.rank, None
    return nested((run_id, turn_id, first) for (run_id, turn_id), (_, first) in best.items() if first)


def top_pooled(pool: Pool) -> dict[str, dict[str, str]]:
    """Run id and turn id to the id of the pooled response that stands first in the run's file of `response_runs/`.

    That file lists dialogues by topic id.

    Other than by `first_ranked`, that is a lower one where the response ranked first was excluded.
    """
    entries = ((entry, response) for response in pool.responses for entry in response.runs)
    # The last of a turn is kept.
    falling = sorted(entries, key=lambda pair: (pair[0].rank, natural_key(pair[1].response_id)), reverse=True)
    return nested((entry.run_id, response.listed_under, response.response_id) for entry, response in falling)
