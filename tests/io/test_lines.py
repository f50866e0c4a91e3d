import gzip
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.io.line_stream import line_problem, numbered_lines, text_of


def test_blank_lines_keep_their_numbers_and_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "turns.txt"
    path.write_bytes(b"\xef\xbb\xbf 1-1_1 \r\n\n\t\n1-1_2")
    assert list(numbered_lines(path)) == [(1, "1-1_1"), (4, "1-1_2")]


def test_only_a_line_break_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "turns.txt"
    path.write_text("a\u2028b\x85c", encoding="utf-8")
    assert list(numbered_lines(path)) == [(1, "a\u2028b\x85c")]


def test_a_packed_file_is_its_text(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt.gz"
    path.write_bytes(gzip.compress("é\n".encode()))
    assert text_of(path) == "é\n"


@pytest.mark.parametrize("stored", [b"a\nb\xff", "a".encode("utf-16")])
def test_a_text_that_is_not_utf_8_is_refused(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "runs.txt"
    path.write_bytes(stored)
    with pytest.raises(InputError, match=rf"runs.txt: not UTF-8 at byte {stored.index(0xFF)}"):
        text_of(path)


def test_a_problem_names_file_and_line() -> None:
    found = line_problem("unknown_turn", Path("turns.txt"), 3, "no such turn")
    assert (found.severity, found.file, found.path) == ("error", "turns.txt", "line 3")
