"""`judge gold check`'s findings, one test a code, with file and line; and gold rows, read and matched."""

import gzip
import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion
from judge.errors import InputError
from judge.gold.check import assessor_counts, check_gold, plain_scale
from judge.gold.rows import GoldRow, check_scale, deciding, independent, match, parse_gold, read_gold
from judge.pool.records import Pool, PooledResponse
from judge.records import Level
from tests.build import scale
from tests.calibration_world import pooled
from tests.conftest import refused

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


DIGEST = hashlib.sha256(b"Yes, by train.").hexdigest()
FULL = {
    "turn_id": "1-1_1", "topic_id": "1-1", "criterion": "groundedness", "grade": 3, "assessor": "ann",
    "response_id": None, "text_sha256": DIGEST, "run_id": "harbor", "made": "postedit", "inclusion_probability": 0.25,
    "stratum": "short", "split": "dev",
}  # fmt: skip
LEAST = {
    "turn_id": "1-1_1", "topic_id": "1-1", "criterion": "naturalness", "grade": 0, "assessor": "ann",
    "response_id": "R00001",
}  # fmt: skip


def jsonl(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def faults(content: bytes) -> list[tuple[str, str]]:
    """(code, path) of all that is wrong."""
    problems = refused(parse_gold, content, "g.jsonl")
    assert all(problem.file == "g.jsonl" and problem.severity == "error" for problem in problems)
    return [(problem.code, problem.path) for problem in problems]


def row(text: str = "Yes, by train.", **fields: object) -> GoldRow:
    digest = hashlib.sha256(text.encode()).hexdigest()
    base = {"turn_id": "1-1_1", "topic_id": "1-1", "criterion": "groundedness", "grade": 3, "assessor": "ann"}
    return GoldRow(**{**base, "text_sha256": digest, **fields})  # type: ignore[arg-type]


def pool(*responses: PooledResponse) -> Pool:
    return Pool(responses, {}, ())


def test_a_full_and_a_least_row_are_read_in_file_order_and_blank_lines_are_passed_over() -> None:
    content = b"\n" + jsonl(FULL) + b"  \r\n" + jsonl(LEAST)
    assert parse_gold(content, "g") == (GoldRow(**FULL), GoldRow(**LEAST, made="blind"))


def test_rows_survive_being_written_as_records_and_read_again() -> None:
    rows = (row(), row("Other.", run_id="mill", split="test"))
    assert parse_gold(b"\n".join(map(msgspec.json.encode, rows)), "g") == rows


def test_line_separators_other_than_lf_do_not_break_a_row() -> None:
    content = json.dumps({**LEAST, "stratum": "a\u2028b\u0085c"}, ensure_ascii=False).encode()
    assert parse_gold(content, "g")[0].stratum == "a\u2028b\u0085c"


@pytest.mark.parametrize("field", ["turn_id", "topic_id", "criterion", "grade", "assessor"])
def test_a_required_field_may_not_be_missing(field: str) -> None:
    values = {name: value for name, value in LEAST.items() if name != field}
    assert faults(jsonl(values)) == [("missing_field", f"line 1: $.{field}")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("turn_id", ""), ("turn_id", 7), ("topic_id", "\ud800"), ("criterion", None), ("assessor", "  "),
        ("run_id", "a\0b"), ("run_id", ["harbor"]), ("grade", "3"), ("grade", 3.0), ("grade", True), ("grade", None),
        ("text_sha256", DIGEST.upper()), ("text_sha256", DIGEST[:-1]), ("text_sha256", DIGEST + "\n"),
        ("made", "guess"), ("made", None), ("made", ["blind"]), ("inclusion_probability", 0),
        ("inclusion_probability", 1.01), ("inclusion_probability", float("nan")),
        ("inclusion_probability", float("inf")), ("inclusion_probability", True), ("inclusion_probability", "1"),
        ("stratum", 1), ("split", "train"), ("comment", ""), ("comment", 3), ("comment", "a\0b"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_with_its_path(field: str, value: object) -> None:
    assert faults(jsonl({**FULL, field: value})) == [("wrong_value", f"line 1: $.{field}")]


def test_optional_fields_may_be_null() -> None:
    nulls = dict.fromkeys(["text_sha256", "run_id", "inclusion_probability", "stratum", "split", "comment"])
    assert parse_gold(jsonl({**LEAST, **nulls}), "g") == parse_gold(jsonl(LEAST), "g")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"1-1_1 0 R00001 2\n1-1_1 0 R00002 x\n", ("not_json", "line 1")),
        (b"\xef\xbb\xbf1-1_1\tQ0\tR00001\t-1", ("not_json", "line 1")),
        (b"turn_id,response_id,grade\n1-1_1,R00001,2\n1-1_2,R00001,2\n", ("not_json", "line 1")),
        (b'"HITId"\t"WorkerId"\n"a"\t"b"\n', ("not_json", "line 1")),
        (b'{"grade": ' + b"9" * 5000 + b"}", ("not_json", "line 1: $")),
        (b'\n\n"\xff"', ("wrong_encoding", "line 3: $")),
        (b'{"grade": 3, "grade": 0}', ("repeated_field", "line 1: $")),
        (jsonl({**FULL, "note": "good"}), ("unknown_field", "line 1: $")),
        (jsonl({**FULL, "text_sha256": None}), ("missing_field", "line 1: $")),
        (jsonl(FULL, LEAST, {**FULL, "grade": 0}), ("duplicate_row", "line 3: $")),
    ],
)
def test_a_line_that_is_no_row_is_named_with_its_number(content: bytes, fault: tuple[str, str]) -> None:
    assert faults(content) == [fault]


def test_all_faults_of_a_file_are_reported_at_once() -> None:
    content = jsonl({**FULL, "grade": "3", "split": "train", "note": 1}, LEAST) + b"nonsense\n" + jsonl(LEAST)
    assert faults(content) == [
        ("wrong_value", "line 1: $.grade"),
        ("wrong_value", "line 1: $.split"),
        ("unknown_field", "line 1: $"),
        ("not_json", "line 3: $"),
        ("duplicate_row", "line 4: $"),
    ]


def test_a_message_says_what_was_found_and_what_was_expected() -> None:
    faulty = {**FULL, "grade": "three", "text_sha256": "abc", "made": "up", "inclusion_probability": 0}
    with pytest.raises(InputError, match=r"g\.jsonl: not usable as gold: 4 problems") as caught:
        parse_gold(jsonl(faulty), "g.jsonl")
    assert {problem.turn_id for problem in caught.value.problems} == {"1-1_1"}
    assert [problem.message for problem in caught.value.problems] == [
        "'three': expected a valid integer",
        "'abc': expected to match pattern '^[0-9a-f]{64}$'",
        "'up': expected 'blind', 'adjudicated', 'postedit', 'construction' or 'synthetic'",
        "0: expected greater than or equal to 0.000000001",
    ]


@pytest.mark.parametrize("turn_id", ["\ud800", "", 7])
def test_a_faulty_turn_id_names_no_turn(turn_id: object) -> None:
    problems = refused(parse_gold, jsonl({**FULL, "turn_id": turn_id}), "g.jsonl")
    assert [problem.turn_id for problem in problems] == [None]


@pytest.mark.parametrize("topic_id", ["1", "1-1_1", "2-1"])
def test_a_topic_that_is_not_the_turns_is_a_fault(topic_id: str) -> None:
    content = jsonl(LEAST, {**FULL, "topic_id": topic_id})
    assert faults(content) == [("wrong_topic", "line 2: $.topic_id")]
    assert refused(parse_gold, content, "g.jsonl")[0].message == f"'{topic_id}': expected '1-1'"


@pytest.mark.parametrize(
    ("field", "value"),
    [("turn_id", "1-1_2"), ("text_sha256", "0" * 64), ("run_id", "mill"), ("criterion", "c"), ("assessor", "bob")],
)
def test_rows_that_differ_in_one_part_of_the_key_are_no_duplicates(field: str, value: str) -> None:
    assert len(parse_gold(jsonl(FULL, {**FULL, field: value}), "g")) == 2


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_an_input_error(content: bytes) -> None:
    with pytest.raises(InputError):
        parse_gold(content, "g")


def test_each_assessor_is_counted_beside_the_others_and_the_adjudication() -> None:
    given = {"one": (3, 1, None), "two": (2, 2, None), "three": (0, None, 1), "four": (1, 2, 0)}
    rows = [
        row(text, assessor=name, grade=grade)
        for text, grades in given.items()
        for name, grade in zip(("ann", "ben", "cy"), grades, strict=True)
        if grade is not None
    ]
    # One text is adjudicated for ben, one against both, and one by two people who do not agree.
    ruled = [("one", "dee", 1), ("three", "dee", 2), ("four", "dee", 1), ("four", "ben#2", 2)]
    rows += [row(text, assessor=name, grade=grade, made="adjudicated") for text, name, grade in ruled]
    counts = [msgspec.structs.astuple(count) for count in assessor_counts(rows)]
    # Labels, of shared items, differing, confirmed, not confirmed, adjudications.
    assert counts == [
        ("ann", 4, 4, 3, 0, 2, 0),
        ("ben", 3, 3, 2, 1, 0, 0),
        ("ben#2", 0, 0, 0, 0, 0, 1),
        ("cy", 2, 2, 2, 0, 1, 0),
        ("dee", 0, 0, 0, 0, 0, 3),
    ]


def test_an_adjudication_decides_and_the_labels_before_it_do_not() -> None:
    ann, ben, dee = row(grade=0), row(grade=3, assessor="ben"), row(grade=2, assessor="dee", made="adjudicated")
    assert (deciding([ann, ben, dee]), independent([ann, ben, dee])) == ([dee], [ann, ben])
    assert (deciding([ann, ben]), independent([dee])) == ([ann, ben], [dee])


def test_a_file_is_read_gzipped_or_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "g.jsonl", tmp_path / "g.jsonl.gz"
    plain.write_bytes(b"\xef\xbb\xbf" + jsonl(LEAST))
    packed.write_bytes(gzip.compress(jsonl(LEAST)))
    assert read_gold(plain) == read_gold(packed) == parse_gold(jsonl(LEAST), "g")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_gold(tmp_path / "none.jsonl")


def test_grades_off_the_scale_are_found() -> None:
    graded = scale(range(3), positive=(2,), unable=Level(9, "?", ""))
    found = check_scale([row(grade=0), row(grade=3, run_id="mill"), row(grade=-1), row(grade=9)], graded, "g.jsonl")
    assert [problem.code for problem in found] == ["off_scale"] * 3
    assert found[0].message == f"groundedness grade 3 by ann for text {DIGEST[:12]} of mill: expected one of 0, 1, 2"
    assert found[0].file == "g.jsonl"


def test_a_row_matches_by_turn_text_and_run() -> None:
    here = pool(pooled("R00000", "Yes, by train.", "harbor"), pooled("R00001", "No.", "mill"))
    mine, other = row(run_id="harbor"), row("No.", run_id="mill", criterion="naturalness")
    assert match([other, mine], here) == ({("R00001", "naturalness"): [other], ("R00000", "groundedness"): [mine]}, ())


def test_the_run_tells_the_same_text_with_other_passages_apart() -> None:
    here = pool(pooled("R00000", "Yes, by train.", "harbor", "orchard"), pooled("R00001", "Yes, by train.", "thistle"))
    for run, expected in (("harbor", "R00000"), ("orchard", "R00000"), ("thistle", "R00001")):
        assert list(match([row(run_id=run)], here)[0]) == [(expected, "groundedness")]
    nobody = row()
    assert match([nobody], here) == ({}, (nobody,))


def test_without_a_run_a_row_matches_a_text_that_stands_once_in_its_turn() -> None:
    here = pool(
        pooled("R00000", "Yes, by train.", "harbor"), pooled("R00001", "Yes, by train.", "mill", turn_id="1-1_2")
    )
    assert list(match([row()], here)[0]) == [("R00000", "groundedness")]


def test_outer_white_space_and_unicode_form_do_not_matter() -> None:
    here = pool(pooled("R00000", "\n Cafe\u0301 \n", "harbor"))
    assert list(match([row("Caf\u00e9", run_id="harbor")], here)[0]) == [("R00000", "groundedness")]


@pytest.mark.parametrize(
    "stray",
    [row("Never said.", run_id="harbor"), row(run_id="quarry"), row(turn_id="1-1_9", run_id="harbor")],
    ids=["text", "run", "turn"],
)
def test_a_row_of_another_text_run_or_turn_is_unmatched(stray: GoldRow) -> None:
    assert match([stray], pool(pooled("R00000", "Yes, by train.", "harbor"))) == ({}, (stray,))


def test_a_response_id_counts_only_without_a_digest_and_within_its_turn() -> None:
    here = pool(pooled("R00000", "Yes, by train.", "harbor"), pooled("R00001", "No.", "mill"))
    by_id = row(text_sha256=None, response_id="R00001")
    assert match([by_id], here) == ({("R00001", "groundedness"): [by_id]}, ())
    by_text = row(response_id="R00001")
    assert match([by_text], here) == ({("R00000", "groundedness"): [by_text]}, ())
    astray = row(text_sha256=None, response_id="R00001", turn_id="1-1_2")
    assert match([astray], here) == ({}, (astray,))


def test_several_assessors_of_one_response_stay_in_file_order() -> None:
    here = pool(pooled("R00000", "Yes, by train.", "harbor"))
    rows = [row(assessor="bob", grade=1), row(assessor="ann", grade=3)]
    assert match(rows, here) == ({("R00000", "groundedness"): rows}, ())


def test_equal_grades_of_a_response_that_several_runs_gave_count_once() -> None:
    here = pool(pooled("R00000", "Yes, by train.", "harbor", "orchard"))
    by_id = row(text_sha256=None, response_id="R00000")
    first, bob = row(run_id="harbor"), row(run_id="orchard", assessor="bob", grade=1)
    assert match([first, row(run_id="orchard"), bob, by_id], here) == ({("R00000", "groundedness"): [first, bob]}, ())


def test_different_grades_of_a_response_that_several_runs_gave_are_refused() -> None:
    here = pool(pooled("R00000", "Yes, by train.", "harbor", "mill", "orchard"))
    rows = [row(run_id="harbor"), row(run_id="mill", grade=2), row(run_id="orchard", grade=0)]
    with pytest.raises(InputError, match=r"g\.jsonl: different grades of one response") as caught:
        match([*rows, row(run_id="mill", grade=0, criterion="naturalness")], here, "g.jsonl")
    assert [(problem.code, problem.file, problem.turn_id) for problem in caught.value.problems] == [
        ("different_grades", "g.jsonl", "1-1_1")
    ] * 2
    assert caught.value.problems[0].message == (
        f"groundedness grade 2 by ann for text {DIGEST[:12]} of mill, but 3 for text {DIGEST[:12]} of harbor: "
        "expected one grade, both are response R00000 of the pool"
    )


def test_of_one_text_with_other_passages_the_response_id_decides() -> None:
    pool = Pool((pooled("R1", "same", "a"), pooled("R2", "same", "b")), {}, ())
    rows = [row("same", response_id=name, run_id=None) for name in ("R2", "R9", None)]
    matched, unmatched = match(rows, pool)
    assert [(key, list(group)) for key, group in matched.items()] == [(("R2", rows[0].criterion), [rows[0]])]
    assert unmatched == (rows[1], rows[2])
