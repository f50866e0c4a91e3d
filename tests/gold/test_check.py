"""`judge gold check`'s findings: one test a code, with file and line."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion
from judge.gold.check import check_gold, plain_scale
from judge.pool.records import Pool
from tests.calibration_world import pooled

PROJECT = Path(__file__).parent.parent.parent
SCALES = {name: find_criterion(name).scale for name in ("groundedness", "naturalness")}


def line(**fields: object) -> bytes:
    base = {
        "turn_id": "1-1_1", "topic_id": "1-1", "criterion": "groundedness", "grade": 3, "assessor": "ann",
        "response_id": "R00000", "inclusion_probability": 1.0,
    }  # fmt: skip
    return json.dumps({**base, **fields}).encode() + b"\n"


def codes(*contents: bytes, pool: Pool | None = None, **more) -> list[tuple[str, str, str, str]]:
    """(severity, code, file, path) of all findings; files are called a, b, …"""
    named = list(zip("abc", contents, strict=False))
    found = check_gold(named, SCALES, pool, **more).problems
    return [(problem.severity, problem.code, problem.file, problem.path) for problem in found]


def pool_of(*texts: str, runs: tuple[str, ...] = ("harbor",)) -> Pool:
    return Pool(tuple(pooled(f"R{n:05d}", text, *runs) for n, text in enumerate(texts)), {}, ())


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_sound_gold_has_no_findings_and_all_its_rows() -> None:
    checked = check_gold([("a", line() + line(criterion="naturalness", grade=4))], SCALES)
    assert (len(checked.rows), checked.problems, checked.unmatched) == (2, (), None)


@pytest.mark.parametrize(
    ("second", "finding"),
    [
        (line(assessor="bob", grade=4), ("error", "off_scale", "a", "line 2: $.grade")),
        (line(assessor="bob", grade=-1), ("error", "off_scale", "a", "line 2: $.grade")),
        (line(grade=0), ("error", "duplicate_row", "a", "line 2: $")),
        (line(criterion="charm"), ("error", "missing_polarity", "a", "line 2: $.criterion")),
        (line(turn_id="1", topic_id="1"), ("warning", "no_topic", "a", "line 2: $.turn_id")),
        (line(turn_id="_1", topic_id="_1"), ("warning", "no_topic", "a", "line 2: $.turn_id")),
        (line(turn_id="1-1_2", topic_id=None), ("error", "wrong_value", "a", "line 2: $.topic_id")),
        (line(turn_id="1-1_2", topic_id="1"), ("error", "wrong_topic", "a", "line 2: $.topic_id")),
        (
            line(assessor="bob", inclusion_probability=None),
            ("warning", "mixed_inclusion", "a", "line 2: $.inclusion_probability"),
        ),
        (
            line(criterion="naturalness", inclusion_probability=None),
            ("warning", "unknown_inclusion", "a", "line 2: $.inclusion_probability"),
        ),
        (line(assessor="bob", made="postedit"), ("warning", "not_blind", "a", "line 2: $.made")),
        (line(assessor="bob", made="construction"), ("warning", "not_blind", "a", "line 2: $.made")),
        (line(assessor="bob", made="synthetic"), ("warning", "not_blind", "a", "line 2: $.made")),
        (b"\xff\xfe\n", ("error", "wrong_encoding", "a", "line 2: $")),
        (b'{"turn_id": "\x00"}\n', ("error", "not_json", "a", "line 2: $")),
        (b'"' + b"x" * 3_000_000 + b'"\n', ("error", "wrong_type", "a", "line 2: $")),
    ],
)
def test_each_finding_alone(second: bytes, finding: tuple[str, str, str, str]) -> None:
    assert codes(line() + second) == [finding]


def test_a_criterion_nobody_knows_is_named_once() -> None:
    rows = b"".join(line(criterion="charm", response_id=f"R{n}") for n in range(3))
    assert codes(rows) == [("error", "missing_polarity", "a", "line 1: $.criterion")]


def test_a_scale_may_be_given_for_all_other_criteria() -> None:
    rows = line(criterion="charm", grade=2) + line(criterion="charm", grade=4, assessor="bob")
    scale = plain_scale(0, 3, higher_is_better=True)
    assert (scale.polarity, scale.positive) == ("higher", (3,))
    assert plain_scale(0, 3, higher_is_better=False).positive == (0,)
    assert codes(rows, other=scale) == [("error", "off_scale", "a", "line 2: $.grade")]


def test_run_ids_that_differ_in_case_only_are_named_once() -> None:
    rows = line(run_id="Harbor") + line(run_id="harbor") + line(run_id="harbor", assessor="bob") + line(run_id="mill")
    assert codes(rows) == [("error", "run_id_case", "a", "line 2: $.run_id")]


def test_a_row_that_another_file_has_too_is_a_duplicate() -> None:
    checked = check_gold([("a", line()), ("b", line(assessor="bob") + line(grade=0))], SCALES)
    (problem,) = checked.problems
    assert (problem.code, problem.file, problem.path) == ("duplicate_row", "b", "line 2: $")
    assert problem.message.endswith("already in a, line 1, with another grade")


def test_a_split_that_cuts_a_topic_or_an_item_is_an_error_even_across_files() -> None:
    cut = ("error", "split_topic", "b", "line 1: $.split")
    assert codes(line(split="dev"), line(turn_id="1-1_2", split="test")) == [cut]
    both = ("error", "item_in_both", "b", "line 1: $.split")
    assert codes(line(split="dev"), line(assessor="bob", split="test")) == [both, cut]


def test_gold_that_is_split_in_part_is_warned_about() -> None:
    rows = line(split="dev") + line(turn_id="2_1", topic_id="2") + line(turn_id="2_2", topic_id="2")
    assert codes(rows) == [("warning", "partial_split", "a", "line 2: $.split")]


def test_rows_that_match_nothing_in_the_pool_are_counted() -> None:
    rows = line() + line(response_id="R00009") + line(response_id=None, text_sha256=sha("Never said."))
    checked = check_gold([("a", rows)], SCALES, pool_of("Yes.", "No."))
    assert [(p.severity, p.code, p.path) for p in checked.problems] == [
        ("warning", "not_in_pool", "line 2: $"),
        ("warning", "not_in_pool", "line 3: $"),
    ]
    assert checked.unmatched == 2


def test_different_grades_of_what_the_pool_has_as_one_response_are_found() -> None:
    first = line(response_id=None, text_sha256=sha("Yes."), run_id="harbor")
    second = line(response_id=None, text_sha256=sha("Yes."), run_id="mill", grade=0)
    found = check_gold([("a", first + second)], SCALES, pool_of("Yes.", runs=("harbor", "mill")))
    assert [problem.code for problem in found.problems] == ["different_grades"]


def test_a_run_id_that_the_pool_writes_otherwise_is_found() -> None:
    rows = line(response_id=None, text_sha256=sha("Yes."), run_id="HARBOR")
    assert codes(rows, pool=pool_of("Yes.")) == [
        ("warning", "not_in_pool", "a", "line 1: $"),
        ("error", "run_id_case", "a", "line 1: $.run_id"),
    ]


def test_findings_are_in_the_order_of_files_and_lines() -> None:
    rows = b"".join(line(response_id=f"R{n}", grade=9) for n in range(12))
    found = codes(rows, line(response_id="x", grade=9))
    assert [path for _, _, file, path in found if file == "a"] == [f"line {n}: $.grade" for n in range(1, 13)]
    assert found[-1][2] == "b"


@given(st.binary(max_size=100))
def test_no_bytes_raise_anything(content: bytes) -> None:
    assert codes(line() + content) or not content.strip()


def test_the_bundled_gold_is_sound_but_not_for_claims() -> None:
    for name in ("example.gold.jsonl", "example.synthetic.jsonl"):
        checked = check_gold([(name, (PROJECT / "gold" / name).read_bytes())], SCALES)
        assert {problem.severity for problem in checked.problems} == {"warning"}
        assert "not_blind" in {problem.code for problem in checked.problems}
