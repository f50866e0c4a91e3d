"""Files as bytes: what is packed, what is lines of JSON, how much is read, and the memory that bombs take.

A file as its lines, one after the other, is the same lines as of the whole file, and no more of it in the memory.
"""

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.gold.rows import scan_gold
from judge.io import files
from judge.io import files as io_files
from judge.io import files as stored_files
from judge.io.ids import parse_qrels
from judge.io.tabular import read_table
from judge.records import Problem
from judge.runs.records import PtkbStatement
from judge.runs.topics import read_topics
from tests.conftest import PROJECT, complaint, put, refused


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
    assert io_files.unpack(stored, "f") == content


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
        io_files.unpack(stored, "f")


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
        io_files.unpack(gzip.compress(b"\0" * 50_000_000, mtime=0), "bomb")
    assert sum(read) <= 2 << 20


def test_lines_of_json_are_rows_or_problems_with_their_numbers() -> None:
    content = (
        '\ufeff{"ptkb_id":"1","text":"a\u2028b"}\n\n \r\n{"ptkb_id":2,"text":""}\r\n{"ptkb_id":'.encode() + b"\n\xff"
    )
    problems: list[Problem] = []
    rows = list(io_files.decode_lines(content, PtkbStatement, "f.jsonl", "bad", problems))
    assert rows == [(1, PtkbStatement("1", "a\u2028b"))]
    assert [(one.code, one.file, one.path) for one in problems] == [
        ("bad", "f.jsonl", "line 4: $.ptkb_id"),
        ("bad", "f.jsonl", "line 5: $"),
        ("bad", "f.jsonl", "line 6: $"),
    ]
    assert problems[0].message == "Expected `str`, got `int`"
    assert problems[2].message == "byte 1 (0xff) is not UTF-8: invalid start byte"


def test_a_line_nested_too_deeply_is_a_problem() -> None:
    content = b'{"ptkb_id":"1","text":"a","more":' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    problems: list[Problem] = []
    assert not list(io_files.decode_lines(content, PtkbStatement, "f", "bad", problems))
    assert [problem.path for problem in problems] == ["line 1: $"]


def test_a_pipe_without_a_writer_is_refused_and_one_with_a_writer_is_read(tmp_path, monkeypatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(stored_files, "PATIENCE", 0.05)
    with pytest.raises(InputError, match="pipe: cannot be read: a pipe to which nobody writes, expected a file"):
        io_files.read_stored(pipe)
    monkeypatch.setattr(stored_files, "PATIENCE", 60)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"content"))
    writer.start()
    assert io_files.read_stored(pipe) == b"content"
    writer.join()


def test_a_device_is_refused() -> None:
    with pytest.raises(InputError, match="/dev/zero: cannot be read: a device, expected a file"):
        io_files.read_stored("/dev/zero")


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
    assert io_files.published(text) == shown
    assert io_files.published(shown) == shown


def test_without_a_home_paths_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    assert io_files.published("/homes/ann/runs") == "/homes/ann/runs"


@pytest.mark.parametrize(
    ("size", "expected"),
    [("2G", 2**31), ("800M", 800 * 2**20), ("64k", 65_536), ("1GiB", 2**30), ("1mb", 2**20), ("10", 10), (10, 10)],
)
def test_a_size_is_bytes_with_a_unit(size: int | str, expected: int) -> None:
    io_files.allow_files(size)
    assert (io_files.largest_file(), io_files.most_values()) == (expected, expected // 100)


@pytest.mark.parametrize("size", ["", "G", "0", "-1", "1.5G", "2T", "2 G", "٢G", -3])
def test_anything_else_is_no_size(size: int | str) -> None:
    with pytest.raises(UsageError, match=r"^--max-file-size .*: expected bytes such as 2G, 800M or 1048576"):
        io_files.allow_files(size)
    assert io_files.largest_file() == io_files.LARGEST_FILE


@given(st.text("a\n\r\u2028", max_size=30))
def test_lines_are_numbered_as_they_are_split(text: str) -> None:
    assert list(io_files.numbered(text, "f")) == list(enumerate(text.split("\n"), start=1))
    assert list(io_files.numbered(text.encode(), "f")) == list(enumerate(text.encode().split(b"\n"), start=1))


def test_lines_are_bounded() -> None:
    io_files.allow_files(300)
    assert len(list(io_files.numbered("1\n2\n3", "f"))) == 3
    with pytest.raises(InputError, match=r"^f: more than 3 lines; --max-file-size allows more$"):
        list(io_files.numbered("1\n2\n3\n", "f"))


def test_a_pipe_is_read_up_to_the_bound() -> None:
    io_files.allow_files(10)
    for size in (10, 11):
        source, sink = os.pipe()
        os.write(sink, b"x" * size)
        os.close(sink)
        try:
            if size <= 10:
                assert io_files.read_stored(f"/dev/fd/{source}") == b"x" * 10
            else:
                with pytest.raises(InputError, match=r"holds more than 10 bytes; --max-file-size allows more$"):
                    io_files.read_stored(f"/dev/fd/{source}")
        finally:
            os.close(source)


def _qrels(text: str) -> list[Problem]:
    return list(refused(parse_qrels, text, "f"))


def test_a_file_lists_so_many_problems_and_no_more(tmp_path: Path) -> None:
    text = "x\n" * (io_files.MAX_PROBLEMS + 5)
    lines, table = list[Problem](), list[Problem]()
    assert not list(io_files.decode_lines(text.encode(), int, "f", "c", lines))
    (tmp_path / "t.csv").write_text("a,b,c\n" + text)
    read_table(tmp_path / "t.csv", table)
    readers = {
        "qrels": _qrels(text),
        "gold": scan_gold(text.encode(), "f")[1],
        "lines": lines,
        "table": table,
    }
    for name, problems in readers.items():
        assert len(problems) == io_files.MAX_PROBLEMS + 1, name
        assert problems[-1].code == "too_many_problems", name
        assert "10,000 problems up to here; the rest of the file was not read" in problems[-1].message


def test_one_problem_less_is_listed_whole() -> None:
    problems = _qrels("x\n" * io_files.MAX_PROBLEMS)
    assert [problem.code for problem in problems] == ["wrong_columns"] * io_files.MAX_PROBLEMS


def test_a_table_has_so_many_columns(tmp_path: Path) -> None:
    for columns, code in ((io_files.MAX_COLUMNS, []), (io_files.MAX_COLUMNS + 1, ["too_many_columns"])):
        (tmp_path / "t.csv").write_text("\n".join(",".join(f"{row}{n}" for n in range(columns)) for row in "cx"))
        problems: list[Problem] = []
        read_table(tmp_path / "t.csv", problems)
        assert [problem.code for problem in problems] == code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("[" + "{}," * 10_000 + "{}]", "too_many_turns"),
        ('[{"number": 1, "ptkb": {}, "turns": [' + "{}," * 1_000 + "{}]}]", "too_many_turns"),
        ('[{"number": 1, "turn": [' + "{}," * 1_000 + "{}]}]", "too_many_turns"),
    ],
)
def test_topics_have_so_many_topics_and_turns(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "t.json").write_text(content)
    assert [problem.code for problem in refused(read_topics, tmp_path / "t.json")] == [code]


def test_topics_list_so_many_problems(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"number": 1, "ptkb": [' + "0," * 20_000 + '0], "turns": []}]')
    assert len(refused(read_topics, tmp_path / "t.json")) == io_files.MAX_PROBLEMS


def test_the_option_of_every_command_is_taken_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    gold = str(PROJECT / "gold" / "example.gold.jsonl")
    for arguments in (["--max-file-size", "9K", "gold", "check", gold], ["gold", "check", gold, "--max-file-size=9K"]):
        assert f"{gold}: holds more than 9,216 bytes; --max-file-size allows more" in complaint(capsys, main(arguments))
    assert main(["gold", "check", "--max-file-size", "9K", "--max-file-size", "1G", gold]) == 2
    assert main(["gold", "check", "--max-file-size", "1G", gold]) == 0


def bombs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Small files that would fill the memory, with the command that reads them."""
    runs = str(PROJECT / "examples" / "runs")

    def put(name: str, *parts: bytes) -> str:
        (folder / name).parent.mkdir(exist_ok=True)
        content = b"".join(parts)
        (folder / name).write_bytes(gzip.compress(content, 6) if name.endswith(".gz") else content)
        return str(folder / name)

    yield "topics", ["validate", "--runs", runs, "--topics", put("topics.json.gz", b"[", b"{}," * 2_000_000, b"{}]")]
    yield "gold", ["gold", "check", put("gold.jsonl.gz", b"{}\n" * 4_000_000)]
    qrels = put("qrels.gz", b"x\n" * 4_000_000)
    pool = ["pool", "--runs", runs, "--out", str(folder / "out")]
    yield "qrels", [*pool, "--passage-qrels", qrels]
    yield "turns", [*pool, "--turns", put("turns.gz", b"9-1_1\n" * 2_000_000)]
    crowd = ["crowd", "--scale", "0-3", "--criterion", "relevance", "--out", str(folder / "out")]
    yield "labels", [*crowd, put("labels.csv.gz", b"task,worker,label\n", b"a,b,1\n" * 3_000_000)]
    yield "quoted labels", [*crowd, put("quoted.csv.gz", b"task,worker,label\n", b'a,"b",1\n' * 2_000_000)]
    yield "JSON labels", [*crowd, put("labels.jsonl.gz", b'{"task":"a","worker":"b","label":1}\n' * 1_000_000)]
    table = io.BytesIO()
    cells = {"task": "a" * 1000, "worker": "w", "label": 1}
    pl.DataFrame({name: pl.repeat(cell, 3_000_000, eager=True) for name, cell in cells.items()}).write_parquet(table)
    yield "Parquet", [*crowd, put("labels.parquet", table.getvalue())]
    yield "columns", [*crowd, put("columns.csv", b",".join(b"%d" % n for n in range(300_000)), b"\n", b"1," * 299_999)]
    keys = b",".join(b'"k%d":0' % n for n in range(600_000))
    turn = b'{"turn_id":"9-1_1","responses":[{"rank":1,"text":"a","ptkb_provenance":[],"passage_provenance":[]}],%s}'
    run = b'{"run_name":"x","run_type":"automatic","eval_response":true,"turns":[%s]}' % (turn % keys)
    yield "unknown keys", ["validate", "--runs", str(Path(put("keys/run.json", run)).parent)]
    with (folder / "keys" / "big.json").open("wb") as file:
        file.truncate(65 << 20)
    yield "plain", ["validate", "--runs", str(folder / "keys")]


MEASURED = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "judge", *sys.argv[1:]], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


# Eight times smaller than the default, and so are the bombs: the memory grows with the bound.
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_no_bomb_takes_more_memory_than_its_share(tmp_path: Path) -> None:
    taken = {}
    for name, arguments in bombs(tmp_path):
        command = [sys.executable, "-c", MEASURED, *arguments, "--max-file-size=64M"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        code, peak = map(int, done.stdout.split())
        assert code in (0, 1, 2) and "Traceback" not in done.stderr, (name, done.stderr[-500:])
        taken[name] = peak >> 10
    assert {name: peak for name, peak in taken.items() if peak >= 200} == {}, taken


IN_A_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@IN_A_FIXTURE
@given(
    content=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\xef\xbb\xbf"])).map(b"".join),
    block=st.integers(3, 9),
)
def test_lines_are_those_of_the_whole_file(content: bytes, block: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", block)
    lines = io_files.LineStream(put(tmp_path / "f", content), digested=True)
    found = list(lines)
    whole = list(io_files.numbered(content.removeprefix(b"\xef\xbb\xbf"), "f"))
    # After a final line break there is nothing, which `numbered` counts as a line.
    assert found == (whole if whole[-1][1] else whole[:-1])
    assert lines.digest == io_files.sha256(content)
    lines.file.close()


@IN_A_FIXTURE
@given(
    content=st.lists(st.sampled_from([b"a", b"bcd", b"\n"])).map(b"".join), mark=st.sampled_from([b"", b"\xef\xbb\xbf"])
)
def test_a_line_begins_where_it_is_said_to(content: bytes, mark: bytes, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 4)
    lines = io_files.LineStream(put(tmp_path / "f", mark + content))
    for _, line in lines:
        assert (mark + content)[lines.start :].startswith(line)
        assert lines.start == len(mark) or (mark + content)[lines.start - 1 : lines.start] == b"\n"
    lines.file.close()


def test_a_large_file_of_short_lines_is_read_and_a_long_line_is_not(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 64)
    io_files.allow_files(100)
    lines = io_files.LineStream(put(tmp_path / "f", b"0123456789\n" * 1000))
    assert sum(1 for _ in lines) == 1000
    lines.file.close()
    lines = io_files.LineStream(put(tmp_path / "f", b"short\n" + b"x" * 101 + b"\n"))
    with pytest.raises(InputError, match=r"f: line 2 holds more than 100 bytes; --max-file-size allows more$"):
        list(lines)
    lines.file.close()
    lines = io_files.LineStream(put(tmp_path / "f", b"short\n" + b"x" * 101))
    with pytest.raises(InputError, match=r"f: holds more than 100 bytes; --max-file-size allows more$"):
        lines.whole()
    lines.file.close()


def test_no_more_than_some_blocks_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 64)
    lines = io_files.LineStream(put(tmp_path / "f", b"0123456789\n" * 1000))
    for number, _ in lines:
        assert lines.file.tell() <= 11 * number + 64
    lines.file.close()


def test_a_packed_file_is_unpacked_up_to_the_bound(tmp_path: Path) -> None:
    path = put(tmp_path / "f", gzip.compress(b"a\nb\n" * 50))
    io_files.allow_files(200)
    lines = io_files.LineStream(path, packed=True, digested=True)
    assert [line for _, line in lines] == [b"a", b"b"] * 50
    assert lines.digest == io_files.sha256(path.read_bytes())
    with io_files.LineStream(path).file as stored:
        assert stored.read() == path.read_bytes()
    io_files.allow_files(199)
    with pytest.raises(InputError, match=r"f: unpacks to more than 199 bytes; --max-file-size allows more$"):
        io_files.LineStream(path, packed=True)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"a\nb"))
    writer.start()
    lines = io_files.LineStream(tmp_path / "pipe")
    writer.join()
    assert list(lines) == [(1, b"a"), (2, b"b")]


@pytest.mark.parametrize("name", ["missing", ".", "nul\0"])
def test_what_cannot_be_opened_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        io_files.LineStream(tmp_path / name)


def test_blank_lines_keep_their_numbers_and_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "turns.txt"
    path.write_bytes(b"\xef\xbb\xbf 1-1_1 \r\n\n\t\n1-1_2")
    assert list(io_files.numbered_lines(path)) == [(1, "1-1_1"), (4, "1-1_2")]


def test_a_packed_file_is_its_text(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt.gz"
    path.write_bytes(gzip.compress("é\n".encode()))
    assert io_files.text_of(path) == "é\n"


@pytest.mark.parametrize("stored", [b"a\nb\xff", "a".encode("utf-16")])
def test_a_text_that_is_not_utf_8_is_refused(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "runs.txt"
    path.write_bytes(stored)
    with pytest.raises(InputError, match=rf"runs.txt: not UTF-8 at byte {stored.index(0xFF)}"):
        io_files.text_of(path)


def test_problems_of_two_files_say_that_no_more_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_files, "MAX_PROBLEMS", 3)
    problems = io_files.Problems()
    for name in ("a", "b"):
        assert not list(io_files.decode_lines(b"x\n" * 2, int, name, "c", problems))
    problems.add("c", "", "m")
    assert [(problem.code, problem.file) for problem in problems] == [
        ("c", "a"),
        ("c", "a"),
        ("c", "b"),
        ("too_many_problems", "b"),
    ]
