"""From a pool of responses to one of pairs: two responses to a turn, each pair in both orders. Pure.

Pairs of runs are drawn round by round as in a tournament: in each round every run meets another one, until all have
met. One pair after the other goes to the next turn. So at any number of pairs, runs, pairs of runs and turns have been
drawn about equally often, as far as the runs answered; and a larger draw begins with a smaller one. Where earlier pairs
have told runs apart, none of these are drawn any more.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import partial
from math import gcd

import msgspec

from judge.io.ids import groups_of, natural_key
from judge.io.text import digest
from judge.pool.build import exclusion_order, normalize
from judge.pool.records import LeftOut, Pool, PooledResponse
from judge.pool.selection import chance, spread
from judge.runs.records import Exclusion
from judge.units import UNITS

EQUAL: LeftOut = "equal_responses"
"""Why responses that tie are in no pair; the detail of such an exclusion is the run that the run ties with."""


def pairs_pool(
    pool: Pool,
    most: int | None = None,
    seed: int = 1,
    *,
    earlier: Pool | None = None,
    apart: Container[tuple[str, str]] = (),
) -> Pool:
    """The pairs of a pool with one response a run and turn: all, or as many as make at most `most` judgments.

    Equal responses are no pair; where all responses to a turn are equal, those of two runs that are drawn there tie,
    and are exclusions for that reason. A pair is pooled once for all runs that gave its responses, one order after the
    other. Other responses of no pair are exclusions too. The pairs of an `earlier` pool come first, under their ids;
    of two runs that are `apart` no more are drawn.
    """
    before = earlier.responses if earlier else ()
    tied = set(equal_responses(earlier)) if earlier else set[tuple[str, str, str]]()
    pooled = {(pair.turn_id, normalize(pair.text), normalize(pair.second)) for pair in before}
    by_text: dict[str, dict[str, list[PooledResponse]]] = defaultdict(lambda: defaultdict(list))
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for response in pool.responses:
        text = normalize(response.text)
        by_text[response.turn_id][text].append(response)
        texts[response.turn_id] |= dict.fromkeys((run.run_id for run in response.runs), text)
    drawn: dict[str, set[tuple[str, str]]] = defaultdict(set)
    total = len(pooled)
    for a, b, turn_id in design(sorted(set().union(*texts.values())), [*texts], seed):
        by_run = texts[turn_id]
        if a not in by_run or b not in by_run or (a, b) in apart:
            continue
        if by_run[a] == by_run[b]:
            if len(by_text[turn_id]) == 1:
                tied.add((turn_id, a, b))
            continue
        pair = min(by_run[a], by_run[b]), max(by_run[a], by_run[b])
        if pair not in drawn[turn_id] and (turn_id, *pair) not in pooled:
            total += 2
            if most is not None and total > most:
                break
            drawn[turn_id].add(pair)
    responses = [*before]
    for turn_id in sorted(drawn, key=natural_key):
        for first, second in sorted(drawn[turn_id]):
            for shown, other in ((first, second), (second, first)):
                pair_id = f"R{len(responses):05d}"
                responses.append(_pair(pair_id, by_text[turn_id][shown], by_text[turn_id][other]))
    rows = [*pool.exclusions, *_unpaired(pool, {(pair.turn_id, normalize(pair.text)) for pair in responses}, tied)]
    return msgspec.structs.replace(
        pool, responses=tuple(responses), passages={}, exclusions=tuple(sorted(rows, key=exclusion_order))
    )


def _unpaired(
    pool: Pool, paired: Container[tuple[str, str]], tied: Iterable[tuple[str, str, str]]
) -> Iterator[Exclusion]:
    """An exclusion for each run that gave a response of no pair, or one for each run that it ties with."""
    ties = groups_of(((turn_id, one), other) for turn_id, a, b in sorted(tied) for one, other in ((a, b), (b, a)))
    for response in pool.responses:
        if (response.turn_id, normalize(response.text)) in paired:
            continue
        for run in response.runs:
            reasons: list[tuple[str, str]] = [(EQUAL, other) for other in ties.get((response.turn_id, run.run_id), [])]
            for reason, detail in reasons or [("not_drawn", "the response is in no pair that was drawn")]:
                yield Exclusion(
                    run_id=run.run_id, turn_id=response.turn_id, rank=run.rank, reason=reason, detail=detail
                )


def equal_responses(pool: Pool) -> tuple[tuple[str, str, str], ...]:
    """Turn and both runs of each tie that nobody was asked about, since all responses to the turn are equal."""
    ties = ((row.turn_id, row.run_id, row.detail) for row in pool.exclusions if row.reason == EQUAL)
    return tuple((turn_id, one, other) for turn_id, one, other in ties if one < other)


def other_orders(pool: Pool) -> dict[str, PooledResponse]:
    """Response id of each pair to the same pair in the other order; empty for a pool of another unit."""
    if UNITS[pool.unit].orders == 1:
        return {}
    pairs = {(item.turn_id, normalize(item.text), normalize(item.second)): item for item in pool.responses}
    return {item.response_id: pairs[turn_id, second, first] for (turn_id, first, second), item in pairs.items()}


def one_each(pool: Pool, seed: int, shown: Collection[str] = ()) -> Pool:
    """The pool with one order of each pair, for people: that of the ids which were `shown`, else one by chance."""
    others = other_orders(pool)

    def kept(item: PooledResponse) -> bool:
        ids = item.response_id, others[item.response_id].response_id
        if any(name in shown for name in ids):
            return item.response_id in shown
        return (item.response_id == min(ids)) is (int(digest(f"{seed}\n{item.turn_id}\n{min(ids)}"), 16) % 2 == 0)

    return msgspec.structs.replace(pool, responses=tuple(item for item in pool.responses if not others or kept(item)))


def _pair(response_id: str, first: Sequence[PooledResponse], second: Sequence[PooledResponse]) -> PooledResponse:
    """A pair of responses, each given by the pooled ones with its text."""
    entries = [
        msgspec.structs.replace(entry, rank=rank)
        for rank, responses in enumerate((first, second), 1)
        for response in responses
        for entry in response.runs
    ]
    return msgspec.structs.replace(
        first[0],
        response_id=response_id,
        second=second[0].text,
        passages=(),
        truncated=any(response.truncated for response in (*first, *second)),
        runs=tuple(sorted(entries, key=lambda entry: (entry.rank, natural_key(entry.run_id)))),
        unit="pair",
    )


def design(runs: Sequence[str], turns: Sequence[str], seed: int) -> Iterator[tuple[str, str, str]]:
    """Every two runs in every turn, in the order of drawing.

    >>> [(f"{a}{b}", turn) for a, b, turn in design("abc", ["1_1", "2_1"], 1)]
    [('ab', '2_1'), ('bc', '1_1'), ('ac', '2_1'), ('ab', '1_1'), ('bc', '2_1'), ('ac', '1_1')]
    """
    order = spread(turns, seed)
    ring = [*sorted(runs, key=partial(chance, seed)), *[""] * (len(runs) % 2)]
    pairs: list[tuple[str, str]] = []
    for number in range(len(ring) - 1):
        ring[1:] = [ring[-1], *ring[1:-1]]
        met = ((min(pair), max(pair)) for pair in zip(ring[: len(ring) // 2], ring[::-1], strict=False) if all(pair))
        pairs += sorted(met, key=lambda pair: chance(seed, number, *pair))
    # After so many, pairs and turns would come together again as before; so the turns move on by one.
    again = len(pairs) * len(order) // gcd(len(pairs), len(order)) if pairs else 1
    for number in range(len(pairs) * len(order)):
        yield (*pairs[number % len(pairs)], order[(number + number // again) % len(order)])
