"""What judges said, read from files of any origin."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from judge.ask.results import Label, Labels, labels_of, parse_columns, read_labels, stored_judgments
from judge.errors import InputError
from judge.io.files import sha256
from tests.calibration_world import failure, jsonl, judgment
from tests.conftest import put, refused


def test_every_line_that_is_no_judgment_is_named(tmp_path: Path) -> None:
    good = jsonl([judgment("1_1", "R1", 1)]).rstrip()
    stored = b"\n".join([good, b"{", b"", b'{"kind":"failure"}', b"\xff\xfe", good[:50], b"7", b"[" * 100_000])
    with pytest.raises(InputError, match=r"j\.jsonl: 6 lines with problems") as caught:
        stored_judgments(put(tmp_path / "j.jsonl", stored))
    lines = [problem.path.partition(":")[0] for problem in caught.value.problems]
    assert lines == ["line 2", "line 4", "line 5", "line 6", "line 7", "line 8"]


def test_a_grade_or_the_reason_why_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    said = [judgment("1_1", "R1", 2, expected=1.5), judgment("1_2", "R2", -1, unable=True)]
    (folder / "judgments.jsonl").write_bytes(jsonl(said))
    (folder / "failures.jsonl").write_bytes(jsonl([failure("1_3", "R3", "unreadable")]))
    (found,) = read_labels(folder / "judgments.jsonl")
    assert found.labels == (
        Label("1_1", "R1", 2, None, 1.5),
        Label("1_2", "R2", None, "unable"),
        Label("1_3", "R3", None, "unreadable"),
    )
    assert (found.judge, found.prompt, found.models_returned) == ("server/m", "groundedness/graded", ("m-2026",))
    assert found.digest == sha256((folder / "judgments.jsonl").read_bytes())


def test_grades_alone_leave_out_what_nobody_compares(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    said = structs.replace(judgment("1_1", "R1", 2, expected=1.5), probabilities={"2": 1.0}, rationale="So it is.")
    path.write_bytes(jsonl([said]))
    (whole,), (bare,) = read_labels(path), read_labels(path, grades_only=True)
    assert whole.labels == (Label("1_1", "R1", 2, None, 1.5, 0, {"2": 1.0}, "So it is."),)
    assert bare.labels == (Label("1_1", "R1", 2, None, 1.5),)


def test_rationales_are_kept_of_the_turns_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    said = [
        structs.replace(
            judgment(turn_id, "R1", 2, expected=1.5), sample=sample, probabilities={"2": 1.0}, rationale="!"
        )
        for turn_id in ("1_1", "1_2")
        for sample in (0, 1)
    ]
    path.write_bytes(jsonl(said))
    (found,) = read_labels(path, explained={"1_2"})
    assert found.labels == (
        Label("1_1", "R1", 2, None, 1.5, 0, {"2": 1.0}),
        Label("1_1", "R1", 2, None, 1.5, 1),
        Label("1_2", "R1", 2, None, 1.5, 0, {"2": 1.0}, "!"),
        Label("1_2", "R1", 2, None, 1.5, 1),
    )


def test_failures_alone_are_labels_too(tmp_path: Path) -> None:
    # A run in which every call failed leaves an empty judgments.jsonl.
    (tmp_path / "judgments.jsonl").write_bytes(b"")
    (tmp_path / "failures.jsonl").write_bytes(jsonl([failure("1_1", "R1", "refused")]))
    (found,) = read_labels(tmp_path / "judgments.jsonl")
    assert (found.labels, found.models_returned) == ((Label("1_1", "R1", None, "refused"),), ())


def test_failures_lie_beside_judgments_of_that_name_only(tmp_path: Path) -> None:
    (tmp_path / "renamed.jsonl").write_bytes(jsonl([judgment("1_1", "R1", 2)]))
    (tmp_path / "failures.jsonl").write_bytes(b"no failures at all\n")
    (found,) = read_labels(tmp_path / "renamed.jsonl")
    assert len(found.labels) == 1
    (tmp_path / "judgments.jsonl").write_bytes(jsonl([judgment("1_1", "R1", 2)]))
    with pytest.raises(InputError, match="not_a_failure"):
        read_labels(tmp_path / "judgments.jsonl")


def test_judges_and_prompts_part_in_natural_order() -> None:
    said = [
        judgment("1_1", "R1", 1, "server/m10"),
        judgment("1_1", "R1", 1, "server/m2", "groundedness/yes_no"),
        judgment("1_1", "R1", 2, "server/m2"),
        judgment("1_2", "R2", 3, "server/m2"),
    ]
    found = labels_of(said, "x", "d")
    assert [(one.judge, one.prompt, len(one.labels)) for one in found] == [
        ("server/m2", "groundedness/graded", 2),
        ("server/m2", "groundedness/yes_no", 1),
        ("server/m10", "groundedness/graded", 1),
    ]


def test_another_version_of_a_prompt_is_another_judge() -> None:
    assert len(labels_of([judgment("1_1", "R1", 1), judgment("1_2", "R2", 2, digest="f" * 64)], "x", "d")) == 2


@pytest.mark.parametrize(
    ("name", "judge"),
    [("umbrela1.txt", "umbrela1"), ("a.b.qrel.gz", "a.b"), ("plain", "plain"), (".txt", ".txt"), (".gz", ".gz")],
)
def test_a_file_of_columns_is_a_judge_named_after_it(tmp_path: Path, name: str, judge: str) -> None:
    content = b"\xef\xbb\xbf1_1 0 R1 3\r\n\r\n1_2\t0\tR2 -1\r\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (found,) = read_labels(tmp_path / name)
    stored = (tmp_path / name).read_bytes()
    labels = (Label("1_1", "R1", 3), Label("1_2", "R2", -1))
    assert found == Labels(judge, None, None, str(tmp_path / name), sha256(stored), labels)


def test_columns_off_the_scale_are_named_line_by_line() -> None:
    problems = refused(parse_columns, b"1_1 0 R1 3\n1_2 0 R2 4\n\n1_3 0 R3 -1\n1_4 0 R4\n1_1 0 R1 2\n", "x", range(4))
    assert [(one.path, one.code) for one in problems] == [
        ("line 2", "off_scale"),
        ("line 4", "off_scale"),
        ("line 5", "wrong_columns"),
        ("line 6", "duplicate_row"),
    ]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xef\xbb\xbf", "empty_file"),
        (b"\x89PNG\r\n\x1a\n", "wrong_encoding"),
    ],
)
def test_rubbish_is_a_problem_of_its_own_name(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    assert code in {one.code for one in refused(read_labels, tmp_path / "x.txt")}


def test_the_line_of_a_wrong_byte_is_named() -> None:
    assert refused(parse_columns, b"1_1 0 R1 1\n\n1_2 0 R\xff 1\n", "x")[0].path == "line 3"


@pytest.mark.parametrize("name", ["absent.txt", "."])
def test_what_cannot_be_opened_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / name)


@given(st.binary(max_size=60))
def test_no_bytes_give_anything_but_labels_or_an_input_error(content: bytes) -> None:
    try:
        rows = parse_columns(content, "x")
    except InputError as error:
        assert error.problems
    else:
        assert rows


def test_the_released_file_with_impossible_grades_is_refused_by_line(shared: Path) -> None:
    path = shared / "llmjudge" / "judges" / "RMITIR-llama70B.txt"
    assert [(one.path, one.code) for one in refused(read_labels, path, range(4))] == [
        ("line 2449", "off_scale"),
        ("line 3825", "off_scale"),
    ]
    (found,) = read_labels(path)
    assert (found.judge, len(found.labels)) == ("RMITIR-llama70B", 4423)


@pytest.mark.parametrize("expected", [1e308, -1e308, 1e10])
def test_an_expected_grade_that_no_grades_have_is_refused(expected: float, tmp_path: Path) -> None:
    """The square of 1e308 is infinite, and what rests on it is not a number."""
    lines = jsonl([judgment("1_1", "R1", 1), judgment("1_2", "R2", 1, expected=expected)])
    problems = refused(stored_judgments, put(tmp_path / "j.jsonl", lines))
    assert [problem.path for problem in problems] == ["line 2: $.expected"]
