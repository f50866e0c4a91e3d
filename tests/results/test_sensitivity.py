import pytest

from judge.ask.criteria import find_criterion
from judge.ask.records import Judgment
from judge.errors import InputError
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.results.sensitivity import token_sensitivity, without_over_limit
from judge.runs.records import TokenCount

GROUNDEDNESS = find_criterion("groundedness")
GRADES = sorted(level.grade for level in GROUNDEDNESS.scale.levels)
LOW, HIGH = (GRADES if GROUNDEDNESS.scale.polarity == "higher" else GRADES[::-1])[:: len(GRADES) - 1]


def pooled(
    number: int, turn_id: str, english: int, *entries: tuple[str, int], truncated: bool = False
) -> PooledResponse:
    tokens = TokenCount(english // 2, english, english // 2, None)
    runs = tuple(RunEntry(run_id, rank, "used", "0" * 64) for run_id, rank in entries)
    return PooledResponse(f"R{number:05d}", turn_id, "1", f"text {number}", (), tokens, truncated, runs)


def judgment(response: PooledResponse, grade: int) -> Judgment:
    return Judgment(
        response.response_id, response.turn_id, "1", GROUNDEDNESS.name, GROUNDEDNESS.variant, grade, False, None, None,
        None, (), "a/b", None, GROUNDEDNESS.digest, "r" * 64, "json", False, 0,
    )  # fmt: skip


RESPONSES = (
    pooled(0, "1_1", 300, ("a", 1), ("b", 2)),
    pooled(1, "1_1", 100, ("a", 2), ("b", 1)),
    pooled(2, "1_2", 100, ("a", 1)),
    pooled(3, "1_2", 251, ("b", 1)),
)
POOL = Pool(RESPONSES, {}, ())
RESULTS = [judgment(one, grade) for one, grade in zip(RESPONSES, (HIGH, LOW, HIGH, LOW), strict=True)]


def test_a_response_ranked_lower_never_takes_the_place() -> None:
    found = token_sensitivity(POOL, RESULTS, [GROUNDEDNESS], 250)
    rows = {(view.run_id, view.rule): (view.over, view.turns, view.n, view.unanswered) for view in found.views}
    assert rows["a", "none"] == (0, 2, 2, 0)
    assert rows["a", "english"] == (1, 2, 1, 1)
    # R00000 is over the limit too, but b ranks it second.
    assert rows["b", "english"] == (1, 2, 1, 1)
    assert rows["a", "bare"] == (0, 2, 2, 0)


def test_ranks_follow_the_scale() -> None:
    found = token_sensitivity(POOL, RESULTS, [GROUNDEDNESS], 250)
    ranks = {(view.run_id, view.rule): view.rank for view in found.views}
    assert (ranks["a", "none"], ranks["b", "none"], ranks["a", "english"]) == (1, 2, 1)
    assert [one.tau_b for one in found.agreements] == [1, 1, 1]


def test_a_turn_that_nobody_answers_any_more_is_still_to_answer() -> None:
    reduced, turns = without_over_limit(Pool(RESPONSES[3:], {}, ()), "english", 250)
    assert reduced.responses == ()
    assert turns == {"b": {"1_2"}}
    (row,) = reduced.exclusions
    assert (row.run_id, row.turn_id, row.rank, row.reason) == ("b", "1_2", 1, "over_limit")
    assert row.detail == "over 250 tokens by the english rule: 251"


def test_the_limit_itself_is_within_it() -> None:
    reduced, _ = without_over_limit(POOL, "english", 251)
    assert [one.response_id for one in reduced.responses] == ["R00001", "R00002", "R00003"]


def test_a_pool_of_cut_texts_is_refused() -> None:
    pool = Pool((pooled(0, "1_1", 100, ("a", 1), truncated=True),), {}, ())
    with pytest.raises(InputError, match="1 responses of the pool were cut"):
        without_over_limit(pool, "bare", 250)
