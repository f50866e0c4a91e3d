"""Contents that are made piece by piece are what they would be in one piece."""

import hashlib
from itertools import count, repeat
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from judge.io.folder import Pieces, content_digest, is_content, jsonl_pieces, lines_of, replace_folder, text_pieces
from judge.io.line_stream import jsonl_bytes

PIECES = st.lists(st.binary(max_size=5) | st.sampled_from([b"\n", b"a\n", b"\nb"]), max_size=8)


@given(PIECES)
def test_the_lines_and_the_digest_do_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    content = Pieces(lambda: pieces)
    assert list(lines_of(content)) == whole.split(b"\n") == list(lines_of(whole))
    assert content_digest(content) == hashlib.sha256(whole).hexdigest() == content_digest(whole)
    assert bytes(content) == whole


def test_a_file_is_its_content_to_the_last_byte(tmp_path: Path) -> None:
    path, content = tmp_path / "a", Pieces(lambda: [b"one\n", b"", b"two"])
    for stored, same in ((b"one\ntwo", True), (b"one\ntwo\n", False), (b"one\ntw", False), (b"one\ntwi", False)):
        path.write_bytes(stored)
        assert is_content(path, content) is same
        assert is_content(path, bytes(content)) is same


@given(st.integers(0, 2500))
def test_records_in_pieces_are_the_same_lines(number: int) -> None:
    records = [{"n": place} for place in range(number)]
    assert b"".join(jsonl_pieces(records)) == jsonl_bytes(records)


@given(st.integers(0, 2500))
def test_lines_in_pieces_are_the_same_text(number: int) -> None:
    lines = [f"{place} ä\n" for place in range(number)]
    assert b"".join(text_pieces(lines)) == "".join(lines).encode()


def test_pieces_of_lines_are_made_before_the_last_line_is_there() -> None:
    assert next(text_pieces(f"{place}\n" for place in count())).startswith(b"0\n1\n")
    assert next(text_pieces(repeat("")), None) == b""


def test_a_folder_takes_contents_in_pieces(tmp_path: Path) -> None:
    made = []

    def pieces() -> list[bytes]:
        made.append(1)
        return [b"a\n", b"b\n"]

    for _ in range(2):
        replace_folder(tmp_path, {"x.txt": Pieces(pieces)}, "record.sha256")
    assert (tmp_path / "x.txt").read_bytes() == b"a\nb\n"
    digest = hashlib.sha256(b"a\nb\n").hexdigest()
    assert (tmp_path / "record.sha256").read_text() == f"{digest}  x.txt\n"
    assert made
