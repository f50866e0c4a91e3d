"""Results beside what they are about: the run, the question and the text, a row for each run that gave the response."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from judge.ask.records import Failure
from judge.ask.results import Result, StoredResults
from judge.pool.records import Pool, PooledTurn
from judge.runs.records import Turn
from judge.units import UNITS


def told_results(
    results: StoredResults, pool: Pool, turns: Mapping[str, Turn] | Mapping[str, PooledTurn]
) -> StoredResults:
    """The same results, whose data frames name runs and show questions and texts.

    A response that several runs gave has a row for each of them. A missing judgment has no grade and its reason, and
    one of "unable to judge" has the reason `unable`. Of a pair, the grade is about the response that is shown first,
    and `place` says whether a run gave the first or the second one. A result about a response that is not in the pool
    names no run. `turns` are those whose questions are known.
    """
    responses = {response.response_id: response for response in pool.responses}

    def rows(result: Result) -> Iterator[dict[str, Any]]:
        response = responses.get(result.response_id)
        turn = turns.get(result.turn_id)
        grade = None
        reason: str | None = None
        if isinstance(result, Failure):
            reason = result.reason
        elif result.unable:
            reason = "unable"
        else:
            grade = result.grade
        about = {
            "turn_id": result.turn_id,
            "question": turn.utterance if turn is not None else None,
            "text": None if response is None else response.shown,
            "criterion": result.criterion,
            "grade": grade,
            "reason": reason,
        }
        rest = {name: value for name, value in msgspec.structs.asdict(result).items() if name not in about}
        if response is None:
            yield {"run_id": None, **about, **rest}
            return
        for run in response.runs:
            row = {"run_id": run.run_id, **about, **rest}
            if UNITS[response.unit].orders > 1:
                row["place"] = run.rank
            yield row

    return results.with_rows(rows)
