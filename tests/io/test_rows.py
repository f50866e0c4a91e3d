"""Rows of a table that are read once more from its file."""

import gzip
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.io.rows import FrameRow, RowTable, read_rows

CONTENTS = {
    "plain": b"a,b\n1,2\n3,4\n",
    "without a last line break": b"a,b\n1,2\n3,4",
    "line breaks of Windows": b"a,b\r\n1,2\r\n\r\n3,4\r\n",
    "line breaks of old": b"a,b\r1,2\r3,4\r",
    "a byte order mark, a hint and empty lines": "\ufeff\n\nsep=;\na;b\n1;2\n\n3;\N{GREEK SMALL LETTER PI}\n".encode(),
    "line breaks in cells": b'a,b\n"1\n\n1\r\n1","2\r2"\n3,"4""4"\n',
    "tabs": b"\n \na\tb\n1\t2,2\n3\t4\n",
    "objects": b'{"a": 1, "b": [2]}\n{"a": 3}\n',
    "packed": gzip.compress(b"a,b\n1,2\n3,4\n"),
}


def table_of(path: Path, content: bytes) -> RowTable:
    path.write_bytes(content)
    table = read_rows(path, [])
    assert table is not None
    return table


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_the_rows_are_the_same_when_they_are_read_again(tmp_path: Path, content: bytes) -> None:
    table = table_of(tmp_path / "t.csv", content)
    assert len(table.rows) == 2
    assert tuple(table.without_rows().again()) == table.rows


def test_lines_are_read_again_with_their_numbers(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t.csv", CONTENTS["a byte order mark, a hint and empty lines"])
    assert list(table.without_rows().again()) == [
        FrameRow("line 5", {"a": "1", "b": "2"}),
        FrameRow("line 7", {"a": "3", "b": "π"}),
    ]


def test_a_table_that_has_changed_or_gone_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = table_of(path, b"a\n1\n").without_rows()
    path.write_bytes(b"a\n2\n")
    with pytest.raises(InputError, match=r"t\.csv: changed while its answers were judged"):
        list(table.again())
    path.unlink()
    with pytest.raises(InputError, match=r"t\.csv: changed while its answers were judged") as gone:
        list(table.again())
    assert [(problem.code, problem.file) for problem in gone.value.problems] == [("unreadable_file", str(path))]
