"""Results read back from their files: every bad line is named, and the results stay where they are."""

import gzip
from pathlib import Path

import pytest

from judge.ask.results import read_results, stored_judgments
from judge.errors import InputError
from judge.io import files
from judge.io.files import MAX_PROBLEMS, allow_files
from tests.calibration_world import failure, jsonl, judgment
from tests.conftest import refused

GRADED = tuple(judgment("1_1", f"R{number}", number) for number in range(3))
FAILED = (failure("1_1", "R3", "refused"), failure("1_1", "R4", "unreadable"))


def put(folder: Path, judgments: bytes, failures: bytes | None = None) -> tuple[Path, Path]:
    (folder / "judgments.jsonl").write_bytes(judgments)
    if failures is not None:
        (folder / "failures.jsonl").write_bytes(failures)
    return folder / "judgments.jsonl", folder / "failures.jsonl"


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines,
        lambda lines: lines.rstrip(b"\n"),
        lambda lines: b"\n \n" + lines.replace(b"\n", b"\n\n\t\n"),
        lambda lines: lines.replace(b"\n", b"\r\n"),
        lambda lines: b"\xef\xbb\xbf" + lines,
    ],
    ids=["as written", "no final line break", "blank lines", "CRLF", "byte order mark"],
)
def test_results_are_read_in_their_order_and_by_their_places(change, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    read = read_results(*put(tmp_path, change(jsonl(GRADED)), change(jsonl(FAILED))))
    assert tuple(read) == (*GRADED, *FAILED) == tuple(read)
    assert [read[place] for place in (4, 0, -3)] == [FAILED[1], GRADED[0], GRADED[2]]
    assert tuple(stored_judgments(tmp_path / "judgments.jsonl")) == GRADED


def test_failures_may_be_missing_and_judgments_empty(tmp_path: Path) -> None:
    assert tuple(read_results(*put(tmp_path, jsonl(GRADED)))) == GRADED
    assert tuple(read_results(*put(tmp_path, b"", jsonl(FAILED)))) == FAILED


def test_every_bad_line_is_listed_with_its_number(tmp_path: Path) -> None:
    good = jsonl(GRADED[:1]).rstrip(b"\n")
    bad = b"\n".join([b"", good, b"{", jsonl(FAILED[:1]).rstrip(b"\n"), b"\xff", good])
    with pytest.raises(InputError, match=r"judgments\.jsonl: 3 lines with problems \(not_a_judgment\)") as caught:
        read_results(*put(tmp_path, bad, b"7\n"))
    assert [problem.path.partition(":")[0] for problem in caught.value.problems] == ["line 3", "line 4", "line 5"]
    with pytest.raises(InputError, match=r"failures\.jsonl: 2 lines with problems \(not_a_failure\)") as caught:
        read_results(*put(tmp_path, jsonl(GRADED), b"\n7\n" + jsonl(FAILED) + b"[]\n"))
    assert [problem.path for problem in caught.value.problems] == ["line 2: $", "line 5: $"]


def test_a_file_of_problems_is_read_no_further_than_they_are_listed(tmp_path: Path) -> None:
    problems = refused(read_results, *put(tmp_path, b"x\n" * (MAX_PROBLEMS + 5)))
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].code == "too_many_problems"


def test_a_mean_of_grades_has_its_bounds(tmp_path: Path) -> None:
    (problem,) = refused(read_results, *put(tmp_path, jsonl([judgment("1_1", "R1", 1, expected=1e10)])))
    assert problem.path == "line 1: $.expected"


def test_the_size_of_the_file_does_not_matter(tmp_path: Path) -> None:
    paths = put(tmp_path, jsonl(GRADED), jsonl(FAILED))
    line = max(map(len, jsonl([*GRADED, *FAILED]).split(b"\n")))
    allow_files(line)
    assert paths[0].stat().st_size > line
    assert len(read_results(*paths)) == 5
    allow_files(line - 1)
    with pytest.raises(InputError, match=rf"line \d holds more than {line - 1} bytes"):
        read_results(*paths)


def test_no_file_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: object) -> bytes:
        raise AssertionError(f"{path} is read whole")

    monkeypatch.setattr(files, "read_stored", refused)
    assert len(read_results(*put(tmp_path, jsonl(GRADED), jsonl(FAILED)))) == 5


def test_a_file_that_is_replaced_is_still_the_one_that_was_read(tmp_path: Path) -> None:
    paths = put(tmp_path, jsonl(GRADED))
    read = read_results(*paths)
    (tmp_path / "new").write_bytes(b"something else\n")
    Path(tmp_path / "new").replace(paths[0])
    assert tuple(read) == GRADED


@pytest.mark.parametrize("content", [b"", b"x" * 10_000], ids=["cut short", "written over"])
def test_a_file_that_changes_in_its_place_is_named(content: bytes, tmp_path: Path) -> None:
    paths = put(tmp_path, jsonl(GRADED))
    read = read_results(*paths)
    paths[0].write_bytes(content)
    with pytest.raises(InputError, match=r"judgments\.jsonl: has changed since it was read: run the command again"):
        list(read)


def test_judgments_alone_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl(GRADED)))
    assert tuple(stored_judgments(path)) == GRADED
    with pytest.raises(InputError, match="not_a_judgment"):
        read_results(path, tmp_path / "failures.jsonl")
