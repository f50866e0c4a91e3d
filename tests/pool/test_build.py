import hashlib
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.io.ids import natural_key
from judge.pool.bank import excluded_tsv, pool_lines, stored_pool
from judge.pool.build import Candidate, LengthRule, build_pool, evidence_of, normalize, passage_order
from judge.pool.records import Pool, RunEntry
from judge.pool.selection import Selection, candidates
from judge.records import Passage
from judge.runs.formats import read_run
from judge.runs.records import Exclusion, Provenance, TokenCount
from tests.build import psg
from tests.runs import TokenLimit


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def counter(limit: int) -> Callable[[str], TokenCount]:
    """Words between white space; enough of a tokenizer to follow by eye."""

    def count(text: str) -> TokenCount:
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        n = len(ends)
        return TokenCount(bare=n, english=n + 1, whitespace=n, cut=ends[limit - 1] if n > limit else None)

    return count


def cand(run_id: str, turn_id: str, text: str, *used: Provenance, rank: int = 1) -> Candidate:
    return Candidate(run_id, turn_id, rank, text, used, "used")


USUAL = {"limit": 250, "over_limit": "flag", "rule": "bare"}


def pool_of(*found: Candidate, **options: Any) -> Pool:
    limit, over, rule = (options.pop(name, usual) for name, usual in USUAL.items())
    evidence = evidence_of(options.pop("collection", None), verified=options.pop("verified", False))
    return build_pool(found, evidence, LengthRule(TokenLimit(counter(limit), limit, rule), over), **options)


def ids(pool: Pool) -> list[tuple[str, str, str]]:
    return [(response.response_id, response.turn_id, response.text) for response in pool.responses]


# Pool


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("text", "  text\n", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("two words", "two  words", False),  # inner white space is content
        ("Text", "text", False),
        ("½", "1⁄2", False),  # NFC, not NFKC
    ],
)
def test_texts_are_the_same_after_nfc_and_outer_trimming_only(one: str, other: str, same: bool) -> None:
    assert (normalize(one) == normalize(other)) == same
    assert len(pool_of(cand("a", "1_1", one), cand("b", "1_1", other)).responses) == (1 if same else 2)


def test_a_text_is_shared_only_within_a_turn_and_over_the_same_passages() -> None:
    pool = pool_of(
        cand("a", "1_1", "same", psg("p", text="P")),
        cand("b", "1_1", "same ", psg("p", text="P")),
        cand("c", "1_1", "same", psg("p", text="P, planted")),
        cand("d", "1_1", "same"),
        cand("e", "1_2", "same", psg("p", text="P")),
    )
    assert [(r.turn_id, [entry.run_id for entry in r.runs]) for r in pool.responses] == [
        ("1_1", ["d"]),
        ("1_1", ["a", "b"]),
        ("1_1", ["c"]),
        ("1_2", ["e"]),
    ]


def test_the_ranking_of_the_used_passages_does_not_matter() -> None:
    p2, p10 = psg("p2", 1, text="two"), psg("p10", 2, text="ten")
    pool = pool_of(cand("a", "1_1", "same", p10, p2), cand("b", "1_1", "same", p2, p10))
    (response,) = pool.responses
    keys = (f"p2#{sha('two')}", f"p10#{sha('ten')}")
    assert response.passages == keys
    assert pool.passages == {keys[0]: Passage("p2", "two", "run"), keys[1]: Passage("p10", "ten", "run")}


def test_with_a_collection_only_its_texts_are_evidence() -> None:
    found = cand("a", "1_1", "x", psg("p1", text="planted"), psg("p2", text="planted"), psg("p3"))
    collection = {"p1": Passage("p1", "true", "collection"), "p3": Passage("p3", " \n", "collection")}
    pool = pool_of(found, collection=collection)
    assert pool.responses[0].passages == ("p1", "p2", "p3")
    assert pool.passages == {"p1": Passage("p1", "true", "collection")}


def test_without_a_collection_a_passage_without_text_keeps_its_key_and_has_no_entry() -> None:
    pool = pool_of(cand("a", "1_1", "x", psg("p1"), psg("p2", text=" ")))
    assert (pool.responses[0].passages, pool.passages) == (("p1", "p2"), {})


def test_ids_follow_natural_turn_order_then_text_then_passages() -> None:
    pool = pool_of(
        cand("a", "10-1_1", "x"),
        cand("a", "9-1_10", "x"),
        cand("a", "9-1_2", "y"),
        cand("b", "9-1_2", " x"),
        cand("c", "9-1_2", "x", psg("p")),
    )
    assert ids(pool) == [
        ("R00000", "9-1_2", "x"),
        ("R00001", "9-1_2", "x"),
        ("R00002", "9-1_2", "y"),
        ("R00003", "9-1_10", "x"),
        ("R00004", "10-1_1", "x"),
    ]
    assert [response.topic_id for response in pool.responses] == ["9-1", "9-1", "9-1", "9-1", "10-1"]


def test_ids_that_are_equal_in_natural_order_are_ordered_as_text() -> None:
    found = [cand("a", "9_1", "x"), cand("a", "09_1", "x"), cand("a", "9_01", "x")]
    assert ids(pool_of(*found)) == ids(pool_of(*reversed(found)))
    assert [turn for _, turn, _ in ids(pool_of(*found))] == ["09_1", "9_01", "9_1"]


def test_the_pooled_text_has_no_outer_white_space_and_each_run_keeps_the_digest_of_its_own() -> None:
    pool = pool_of(cand("b", "1_1", "text"), cand("a10", "1_1", "text "), cand("a9", "1_1", " text", rank=3))
    (response,) = pool.responses
    assert response.text == "text"
    assert response.tokens == counter(250)("text")
    assert response.runs == (
        RunEntry("a9", 3, "used", sha(" text")),
        RunEntry("a10", 1, "used", sha("text ")),
        RunEntry("b", 1, "used", sha("text")),
    )


@pytest.mark.parametrize(
    ("over_limit", "expected", "truncated", "excluded"),
    [
        ("flag", ["one two", "one two three four"], [False, False], []),
        ("truncate", ["one two"], [True], []),
        ("exclude", ["one two"], [False], [("long", 1, "over_limit")]),
    ],
)
def test_what_happens_to_a_text_over_the_limit(over_limit, expected, truncated, excluded) -> None:
    found = (cand("long", "1_1", "one two three four"), cand("short", "1_1", "one two"))
    pool = pool_of(*found, limit=2, over_limit=over_limit)
    assert [response.text for response in pool.responses] == expected
    assert [response.truncated for response in pool.responses] == truncated
    assert [(row.run_id, row.rank, row.reason) for row in pool.exclusions] == excluded
    assert sorted(entry.text_sha256 for response in pool.responses for entry in response.runs) == sorted(
        sha(one.text) for one in found if one.run_id not in {row[0] for row in excluded}
    )


def test_an_exclusion_by_length_gives_all_counts() -> None:
    pool = pool_of(cand("long", "1_1", "one two three", psg("p", text="P")), limit=2, over_limit="exclude")
    detail = "over 2 tokens by the bare rule: bare 3, english 4, whitespace 3"
    assert pool == Pool((), {}, (Exclusion("long", "1_1", 1, "over_limit", detail),))


def test_truncation_goes_on_until_the_rest_is_within_the_limit_on_its_own() -> None:
    """Some tokenizers split the end of a text in two that stood before more text as one."""
    counts = {"a b c": (3, 3), "a b": (3, 1), "a": (1, None)}

    def count(text: str) -> TokenCount:
        return TokenCount(counts[text][0], 0, 0, counts[text][1])

    pool = build_pool([cand("r", "1_1", "a b c")], evidence_of(), LengthRule(count, "truncate"))
    assert ids(pool) == [("R00000", "1_1", "a")]


def test_a_text_of_which_the_limit_leaves_nothing_is_excluded() -> None:
    def count(text: str) -> TokenCount:
        return TokenCount(2, 2, 1, 0 if text else None)

    pool = build_pool([cand("r", "1_1", "a")], evidence_of(), LengthRule(TokenLimit(count, 1, "bare"), "truncate"))
    assert (pool.responses, [row.reason for row in pool.exclusions]) == ((), ["over_limit"])


# Extending


def test_extending_keeps_ids_and_numbers_new_responses_after_them() -> None:
    first = pool_of(cand("a", "1_2", "m"), cand("a", "1_3", "x"))
    second = pool_of(cand("b", "1_1", "a"), cand("b", "1_2", "m "), cand("b", "1_3", "a"), previous=first)
    assert ids(second) == [
        ("R00002", "1_1", "a"),
        ("R00000", "1_2", "m"),
        ("R00001", "1_3", "x"),
        ("R00003", "1_3", "a"),
    ]
    assert [[entry.run_id for entry in response.runs] for response in second.responses] == [
        ["b"],
        ["a", "b"],
        ["a"],
        ["b"],
    ]


def test_a_response_stays_marked_as_truncated_when_a_run_gives_it_whole() -> None:
    first = pool_of(cand("a", "1_1", "one two three"), limit=2, over_limit="truncate")
    second = pool_of(cand("b", "1_1", "one two"), limit=2, over_limit="truncate", previous=first)
    assert [(r.text, r.truncated, [e.run_id for e in r.runs]) for r in second.responses] == [
        ("one two", True, ["a", "b"])
    ]


def test_a_run_that_comes_again_is_replaced_whole_and_its_old_responses_stay() -> None:
    dropped = Exclusion("a", "1_4", 1, "empty_text", "")
    others = Exclusion("b", "1_4", 1, "empty_text", "")
    first = pool_of(
        cand("a", "1_1", "old"), cand("a", "1_2", "kept"), cand("b", "1_2", "kept"), excluded=[dropped, others]
    )
    second = pool_of(cand("a", "1_1", "new"), previous=first)
    assert [(r.response_id, r.text, [e.run_id for e in r.runs]) for r in second.responses] == [
        ("R00000", "old", []),
        ("R00002", "new", ["a"]),
        ("R00001", "kept", ["b"]),
    ]
    assert second.exclusions == (others,)


def test_a_run_that_comes_again_without_anything_to_judge_is_replaced_too() -> None:
    gone = Exclusion("a", "1_1", None, "eval_response_false", "")
    second = pool_of(previous=pool_of(cand("a", "1_1", "old")), excluded=[gone])
    assert [response.runs for response in second.responses] == [()]
    assert second.exclusions == (gone,)


def test_extending_with_another_text_of_a_known_passage_is_refused() -> None:
    def judged(text: str, **options: Any) -> Pool:
        collection = {"p": Passage("p", text, "collection")}
        return pool_of(cand("a", "1_1", "x", psg("p")), collection=collection, **options)

    with pytest.raises(InputError, match="other texts") as caught:
        judged("now", previous=judged("then"))
    assert [problem.message for problem in caught.value.problems] == [
        "the text of passage p is not the one that the pool holds"
    ]


def test_extending_fills_in_a_passage_that_was_missing() -> None:
    found = cand("a", "1_1", "x", psg("p"))
    passage = Passage("p", "text", "collection")
    second = pool_of(found, collection={"p": passage}, previous=pool_of(found, collection={}))
    assert (len(second.responses), second.passages) == (1, {"p": passage})


# Properties

a_text = st.sampled_from(["a", "a ", " a", "b c d", "b c e", "é", "e\u0301", "x\ny\tz", '"\\', "😀 \u2028 \x00"])
a_passage = st.builds(
    Provenance,
    passage_id=st.sampled_from(["p1", "p2", "p10"]),
    score=st.none(),
    used=st.just(True),
    text=st.none() | st.sampled_from(["", "one", "two\n"]),
)
a_candidate = st.builds(
    Candidate,
    run_id=st.sampled_from(["r1", "r2", "r10", "r01"]),
    turn_id=st.sampled_from(["1-1_1", "1-1_2", "1-1_10", "2-1_1", "02-1_1"]),
    rank=st.integers(1, 2),
    text=a_text,
    used=st.lists(a_passage, max_size=3).map(tuple),
    provenance_rule=st.sampled_from(["used", "top5", "citations"]),
)
a_policy = st.sampled_from(["flag", "truncate", "exclude"])


def files(pool: Pool) -> tuple[bytes, ...]:
    lines = pool_lines(pool).encode()
    return *map(bytes, stored_pool(pool).values()), excluded_tsv(pool.exclusions), lines


@given(st.lists(a_candidate), a_policy, st.randoms(use_true_random=False))
def test_the_pool_does_not_depend_on_the_order_of_candidates(found: list[Candidate], policy: str, random: Any) -> None:
    shuffled = random.sample(found, len(found))
    assert files(pool_of(*found, limit=2, over_limit=policy)) == files(pool_of(*shuffled, limit=2, over_limit=policy))


@given(st.lists(a_candidate, unique_by=lambda one: (one.run_id, one.turn_id, one.rank)), a_policy)
def test_every_candidate_is_in_one_pooled_response_or_excluded(found: list[Candidate], policy: str) -> None:
    pool = pool_of(*found, limit=2, over_limit=policy)
    placed = Counter((entry.run_id, r.turn_id, entry.rank) for r in pool.responses for entry in r.runs)
    placed.update((row.run_id, row.turn_id, row.rank) for row in pool.exclusions)
    assert placed == Counter((one.run_id, one.turn_id, one.rank) for one in found)


@given(st.lists(a_candidate), st.lists(a_candidate), a_policy)
def test_extending_keeps_every_old_response_and_repeats_nothing(old, new, policy) -> None:
    first = pool_of(*old, limit=2, over_limit=policy)
    second = pool_of(*new, limit=2, over_limit=policy, previous=first)
    now = {r.response_id: (r.turn_id, r.text, r.passages, r.tokens) for r in second.responses}
    assert len(now) == len(second.responses)
    assert {r.response_id: (r.turn_id, r.text, r.passages, r.tokens) for r in first.responses}.items() <= now.items()
    assert len({(r.turn_id, normalize(r.text), r.passages) for r in second.responses}) == len(now)
    assert sorted(now) == [f"R{number:05d}" for number in range(len(now))]
    assert files(pool_of(*new, limit=2, over_limit=policy, previous=second)) == files(second)


# Real data


def test_the_cast_sample_run_pools_to_one_response_a_turn(shared: Path) -> None:
    run = read_run(shared / "cast2022/sample_run.json").run
    assert run
    found, excluded = candidates(run, Selection())
    pool = pool_of(*found, excluded=excluded)
    assert (len(found), [row.reason for row in pool.exclusions]) == (205, ["below_depth"] * 2)
    assert len(pool.responses) == 205
    assert pool.responses[0].turn_id == "132_1-1"
    assert all(len(response.passages) == 3 for response in pool.responses)
    assert set(pool.passages) == {key for response in pool.responses for key in response.passages}


COLLIDING = ("r   // /////// ///      / /   // // / /  /  / ///", "r /  /  ////  // //   /  / ////  /   /  / ///// /")
"""Two texts whose SHA-256 begin with the same 48 bits, found in minutes."""


def test_two_texts_that_share_the_beginning_of_their_digest_are_two_passages() -> None:
    one, other = COLLIDING
    assert sha(one)[:12] == sha(other)[:12]
    pool = pool_of(cand("a", "1_1", "same", psg("p", text=one)), cand("b", "1_1", "same", psg("p", text=other)))
    assert len(pool.responses) == 2
    assert sorted(passage.text for passage in pool.passages.values()) == sorted(COLLIDING)


keys = st.from_regex(r"[ab01]{0,3}(:[0-9]{1,2})?[!#z]?", fullmatch=True)


@given(st.lists(keys | st.builds("{}#{}".format, keys, st.from_regex(r"[a0-2]{1,4}", fullmatch=True)), max_size=12))
@example(["a01#x", "a1#b", "a1", "a1#", "a1!", "a01", "a1z#0"])
def test_the_order_of_passage_keys_is_the_natural_order(found: list[str]) -> None:
    assert sorted(found, key=passage_order) == sorted(found, key=natural_key)
