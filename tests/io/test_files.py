"""Files as bytes: what is packed, what is lines of JSON."""

import gzip
import os
import threading
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.io import files as stored_files
from judge.io.files import decode_lines, published, read_stored, unpack
from judge.records import Problem
from judge.runs.records import PtkbStatement


@pytest.mark.parametrize(
    ("stored", "content"),
    [
        (b"", b""),
        (b"plain", b"plain"),
        (gzip.compress(b"", mtime=0), b""),
        (gzip.compress(b"one", mtime=0), b"one"),
        (gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0), b"onetwo"),
        (gzip.compress(b"x" * 3_000_001, mtime=0), b"x" * 3_000_001),
    ],
)
def test_gzip_is_unpacked_and_anything_else_is_left(stored: bytes, content: bytes) -> None:
    assert unpack(stored, "f") == content


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 3_000_001)
    assert stored_files.file_sha256(tmp_path / "f") == stored_files.sha256(b"x" * 3_000_001)
    with pytest.raises(InputError, match="missing: cannot be read"):
        stored_files.file_sha256(tmp_path / "missing")


@pytest.mark.parametrize(
    "stored", [gzip.compress(b"one", mtime=0)[:-1], gzip.compress(b"one", mtime=0)[:5], b"\x1f\x8bno"]
)
def test_a_damaged_gzip_file_is_refused(stored: bytes) -> None:
    with pytest.raises(InputError, match=r"^f: damaged gzip file: "):
        unpack(stored, "f")


@pytest.mark.slow
def test_a_bomb_is_not_unpacked_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.io.files._largest", 1_000)
    read: list[int] = []

    class Counting(gzip.GzipFile):
        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            read.append(len(found))
            return found

    monkeypatch.setattr("gzip.GzipFile", Counting)
    with pytest.raises(InputError):
        unpack(gzip.compress(b"\0" * 50_000_000, mtime=0), "bomb")
    assert sum(read) <= 2 << 20


def test_lines_of_json_are_rows_or_problems_with_their_numbers() -> None:
    content = (
        '\ufeff{"ptkb_id":"1","text":"a\u2028b"}\n\n \r\n{"ptkb_id":2,"text":""}\r\n{"ptkb_id":'.encode() + b"\n\xff"
    )
    rows = list(decode_lines(content, PtkbStatement, "f.jsonl", "bad"))
    assert [number for number, _ in rows] == [1, 4, 5, 6]
    assert rows[0] == (1, PtkbStatement("1", "a\u2028b"))
    problems = [row for _, row in rows[1:] if isinstance(row, Problem)]
    assert [(one.code, one.file, one.path) for one in problems] == [
        ("bad", "f.jsonl", "line 4: $.ptkb_id"),
        ("bad", "f.jsonl", "line 5: $"),
        ("bad", "f.jsonl", "line 6: $"),
    ]
    assert problems[0].message == "Expected `str`, got `int`"


def test_a_line_nested_too_deeply_is_a_problem() -> None:
    content = b'{"ptkb_id":"1","text":"a","more":' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    ((number, row),) = decode_lines(content, PtkbStatement, "f", "bad")
    assert number == 1
    assert isinstance(row, Problem)


def test_a_pipe_without_a_writer_is_refused_and_one_with_a_writer_is_read(tmp_path, monkeypatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(stored_files, "PATIENCE", 0.05)
    with pytest.raises(InputError, match="pipe: cannot be read: a pipe to which nobody writes, expected a file"):
        read_stored(pipe)
    monkeypatch.setattr(stored_files, "PATIENCE", 60)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"content"))
    writer.start()
    assert read_stored(pipe) == b"content"
    writer.join()


def test_a_device_is_refused() -> None:
    with pytest.raises(InputError, match="/dev/zero: cannot be read: a device, expected a file"):
        read_stored("/dev/zero")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/here/runs/a.json", "runs/a.json"),
        ("/srv/here", "."),
        ("--out=/srv/here/out", "--out=out"),
        ("/srv/here2/runs", "/srv/here2/runs"),
        ("/homes/ann/runs", "~/runs"),
        ("--runs=/homes/ann", "--runs=~"),
        ("local//homes/ann/model.gguf", "local/~/model.gguf"),
        ("/homes/anna/runs", "/homes/anna/runs"),
        ("/mnt/homes/ann/runs", "/mnt/homes/ann/runs"),
        ("/home/bob/runs and /Users/eve", "~bob/runs and ~eve"),
        ("runs/a.json", "runs/a.json"),
        ("/data/runs", "/data/runs"),
        ("", ""),
    ],
)
def test_paths_are_published_without_homes(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/srv/here"))
    monkeypatch.setattr(Path, "home", lambda: Path("/homes/ann"))
    assert published(text) == shown
    assert published(shown) == shown


def test_without_a_home_paths_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    assert published("/homes/ann/runs") == "/homes/ann/runs"
