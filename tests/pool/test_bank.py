"""The files of a pool: byte for byte, there and back, and refused when damaged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl, pool_lines, read_pool, stored_pool
from judge.pool.build import Candidate
from judge.pool.records import Pool
from judge.runs.records import Exclusion
from tests.conftest import refused
from tests.pool.test_build import a_candidate, a_policy, cand, files, pool_of, psg, sha

an_exclusion = st.builds(
    Exclusion,
    run_id=st.sampled_from(["r1", "r3"]) | st.text(st.characters(exclude_categories=[]), max_size=5),
    turn_id=st.text(max_size=5),
    rank=st.none() | st.integers(-3, 1000),
    reason=st.sampled_from(["over_limit", "below_depth"]),
    detail=st.text(st.sampled_from("\\tnru0\t\n\r\x00\x85\u2028\ud800é0041"), max_size=8),
)


@given(st.lists(a_candidate), st.lists(an_exclusion), a_policy)
def test_a_pool_comes_back_from_its_files(found: list[Candidate], excluded: list[Exclusion], policy: str) -> None:
    pool = pool_of(*found, limit=2, over_limit=policy, excluded=excluded)
    again = read_pool(pool_jsonl(pool), passages_jsonl(pool), "out", excluded_tsv(pool.exclusions))
    assert again == pool
    assert files(again) == files(pool)


OWN = ' "é"\t'
"""A text as its run gave it."""


@pytest.fixture
def small() -> Pool:
    return pool_of(cand("a", "9-1_2", OWN, psg("p", text="P\u2028")), cand("b", "9-1_10", "y", psg("q")))


def test_the_files_byte_for_byte(small: Pool) -> None:
    digest = sha("P\u2028")
    key = f"p#{digest}"
    assert pool_lines(small) == "9-1_2 Q0 R00000 1 0.0 judge\n9-1_10 Q0 R00001 1 0.0 judge\n"
    assert bytes(stored_pool(small)["bank.json"]).decode() == '{\n    "R00000": "\\"é\\"",\n    "R00001": "y"\n}\n'
    assert passages_jsonl(small).decode() == f'{{"id":"p","contents":"P\u2028","key":"{key}","source":"run"}}\n'
    assert pool_jsonl(small).decode().split("\n")[0] == (
        '{"response_id":"R00000","turn_id":"9-1_2","topic_id":"9-1","text":"\\"é\\"",'
        f'"passages":["{key}"],"tokens":{{"bare":1,"english":2,"whitespace":1,"cut":null}},"truncated":false,'
        f'"runs":[{{"run_id":"a","rank":1,"provenance_rule":"used","text_sha256":"{sha(OWN)}"}}]}}'
    )
    assert json.loads(bytes(stored_pool(small)["bank.json"])) == {"R00000": '"é"', "R00001": "y"}


def test_excluded_rows_are_ordered_and_cannot_break_a_line() -> None:
    made = [
        Exclusion("r10", "1_1", 2, "below_depth", "x"),
        Exclusion("r9", "1_10", None, "late", "C:\\new\ttab\r\nline\u2028\x00\ud800"),
        Exclusion("r9", "1_2", 0, "empty_text", ""),
        Exclusion("r9", "1_2", None, "empty_text", ""),
    ]
    assert excluded_tsv(made).decode() == (
        "run_id\tturn_id\trank\treason\tdetail\n"
        "r9\t1_2\t\tempty_text\t\n"
        "r9\t1_2\t0\tempty_text\t\n"
        "r9\t1_10\t\tlate\tC:\\\\new\\ttab\\r\\nline\\u2028\\x00\\ud800\n"
        "r10\t1_1\t2\tbelow_depth\tx\n"
    )


def test_empty_pool_files() -> None:
    empty = Pool((), {}, ())
    assert files(empty) == (b"", b"{}\n", b"", b"run_id\tturn_id\trank\treason\tdetail\n", b"")
    assert read_pool(b"", b"", "out") == empty


def damage(data: bytes, old: str, new: str) -> bytes:
    assert old.encode() in data
    return data.replace(old.encode(), new.encode(), 1)


@pytest.mark.parametrize(
    ("change", "where", "says"),
    [
        (lambda p, q: (damage(p, '"bare":1', '"bare":"1"'), q), ("out/pool.jsonl", "line 1: $.tokens.bare"), "int"),
        (lambda p, q: (damage(p, "R00001", "R1"), q), ("out/pool.jsonl", "line 2: $.response_id"), "'R1' is not"),
        (lambda p, q: (damage(p, "R00001", "R00000"), q), ("out/pool.jsonl", "line 2: $.response_id"), "earlier"),
        (lambda p, q: (p + damage(p.split(b"\n")[1], "R00001", "R00002"), q), ("out/pool.jsonl", "line 3: $"),
            "R00002 has the turn, the text and the passages of R00001"),
        (lambda p, q: (p, damage(q, '"P', '"X')), ("out/passages.jsonl", "line 1: $.key"), "does not belong"),
        (lambda p, q: (p, damage(q, '"run"', '"moon"')), ("out/passages.jsonl", "line 1: $.source"), "moon"),
    ],
)  # fmt: skip
def test_a_damaged_pool_is_refused_by_line(small, change, where, says) -> None:
    with pytest.raises(InputError, match="out: the files of the pool are damaged") as caught:
        read_pool(*change(pool_jsonl(small), passages_jsonl(small)), "out")
    (problem,) = caught.value.problems
    assert (problem.file, problem.path) == where
    assert says in problem.message


def test_every_damaged_line_is_listed() -> None:
    problems = refused(read_pool, b"{}\n[]\n", b"x\n", "out", b"run\na\tb\n")
    assert [(problem.file, problem.path) for problem in problems] == [
        ("out/passages.jsonl", "line 1: $"),
        ("out/pool.jsonl", "line 1: $"),
        ("out/pool.jsonl", "line 2: $"),
        ("out/excluded.tsv", "line 1: $"),
        ("out/excluded.tsv", "line 2: $"),
    ]


def test_no_id_of_a_pool_can_break_a_line_of_the_pool() -> None:
    assert pool_lines(pool_of(cand("a", "9 1_2", "x")), "my tag") == "9%201_2 Q0 R00000 1 0.0 my%20tag\n"
