"""A file as its lines, one after the other: the same lines as of the whole file, and no more of it in the memory."""

import gzip
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.errors import InputError
from judge.io import files
from judge.io.files import LineStream, allow_files, numbered, numbered_lines, sha256, text_of

IN_A_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def put(folder: Path, content: bytes) -> Path:
    (folder / "f").write_bytes(content)
    return folder / "f"


@IN_A_FIXTURE
@given(
    content=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\xef\xbb\xbf"])).map(b"".join),
    block=st.integers(3, 9),
)
def test_lines_are_those_of_the_whole_file(content: bytes, block: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", block)
    lines = LineStream(put(tmp_path, content), digested=True)
    found = list(lines)
    whole = list(numbered(content.removeprefix(b"\xef\xbb\xbf"), "f"))
    # After a final line break there is nothing, which `numbered` counts as a line.
    assert found == (whole if whole[-1][1] else whole[:-1])
    assert lines.digest == sha256(content)
    lines.file.close()


@IN_A_FIXTURE
@given(
    content=st.lists(st.sampled_from([b"a", b"bcd", b"\n"])).map(b"".join), mark=st.sampled_from([b"", b"\xef\xbb\xbf"])
)
def test_a_line_begins_where_it_is_said_to(content: bytes, mark: bytes, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 4)
    lines = LineStream(put(tmp_path, mark + content))
    for _, line in lines:
        assert (mark + content)[lines.start :].startswith(line)
        assert lines.start == len(mark) or (mark + content)[lines.start - 1 : lines.start] == b"\n"
    lines.file.close()


def test_a_large_file_of_short_lines_is_read_and_a_long_line_is_not(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 64)
    allow_files(100)
    lines = LineStream(put(tmp_path, b"0123456789\n" * 1000))
    assert sum(1 for _ in lines) == 1000
    lines.file.close()
    lines = LineStream(put(tmp_path, b"short\n" + b"x" * 101 + b"\n"))
    with pytest.raises(InputError, match=r"f: line 2 holds more than 100 bytes; --max-file-size allows more$"):
        list(lines)
    lines.file.close()
    lines = LineStream(put(tmp_path, b"short\n" + b"x" * 101))
    with pytest.raises(InputError, match=r"f: holds more than 100 bytes; --max-file-size allows more$"):
        lines.whole()
    lines.file.close()


def test_no_more_than_some_blocks_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 64)
    lines = LineStream(put(tmp_path, b"0123456789\n" * 1000))
    for number, _ in lines:
        assert lines.file.tell() <= 11 * number + 64
    lines.file.close()


def test_a_packed_file_is_unpacked_up_to_the_bound(tmp_path: Path) -> None:
    path = put(tmp_path, gzip.compress(b"a\nb\n" * 50))
    allow_files(200)
    lines = LineStream(path, packed=True, digested=True)
    assert [line for _, line in lines] == [b"a", b"b"] * 50
    assert lines.digest == sha256(path.read_bytes())
    with LineStream(path).file as stored:
        assert stored.read() == path.read_bytes()
    allow_files(199)
    with pytest.raises(InputError, match=r"f: unpacks to more than 199 bytes; --max-file-size allows more$"):
        LineStream(path, packed=True)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"a\nb"))
    writer.start()
    lines = LineStream(tmp_path / "pipe")
    writer.join()
    assert list(lines) == [(1, b"a"), (2, b"b")]


@pytest.mark.parametrize("name", ["missing", ".", "nul\0"])
def test_what_cannot_be_opened_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        LineStream(tmp_path / name)


def test_blank_lines_keep_their_numbers_and_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "turns.txt"
    path.write_bytes(b"\xef\xbb\xbf 1-1_1 \r\n\n\t\n1-1_2")
    assert list(numbered_lines(path)) == [(1, "1-1_1"), (4, "1-1_2")]


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
