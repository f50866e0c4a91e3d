import gzip
import io
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.io.table import tsv
from judge.io.tabular import read_table
from judge.records import Problem
from tests.conftest import put


def table(
    tmp_path: Path, text: str | bytes, name: str = "t.csv", **options: object
) -> tuple[list[tuple[int, dict[str, str]]], list[tuple[str, str]]]:
    """Line and cells of every row; code and place of every problem."""
    path = put(tmp_path / name, text.encode() if isinstance(text, str) else text)
    problems: list[Problem] = []
    rows = read_table(path, problems, **options)[1]
    return [(row.line, row.cells) for row in rows], [(one.code, one.path) for one in problems]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1, x \n"),
        ("t.csv", "a;b\r\n1;x\r\n"),
        ("t.txt", "a\tb\n1\tx"),
        ("t.tsv", "a\tb\n\n1\tx\n".replace("\n\n", "\n")),
        ("t.csv", "\ufeffa,b\n1,x\n"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,x\n", mtime=0)),
    ],
)
def test_the_header_says_what_parts_the_cells(tmp_path: Path, name: str, text: str | bytes) -> None:
    assert table(tmp_path, text, name) == ([(2, {"a": "1", "b": "x"})], [])


def test_a_row_has_the_line_that_it_begins_on(tmp_path: Path) -> None:
    rows, problems = table(tmp_path, 'a,b\n1,"x\ny"\n\n2,z\n')
    assert rows == [(2, {"a": "1", "b": "x\ny"}), (5, {"a": "2", "b": "z"})]
    assert problems == []


def test_quotation_marks_may_be_text(tmp_path: Path) -> None:
    assert table(tmp_path, 'a,b\n1,"x\n', quoted=False) == ([(2, {"a": "1", "b": '"x'})], [])
    assert table(tmp_path, 'a,b\n1,"x\n')[1] == [("not_a_table", "line 2")]


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("a,b\n", "empty_file", "line 1"),
        ("", "empty_file", ""),
        ("a,a\n1,2\n", "repeated_column", "line 1"),
        ("a,c\n1,2\n", "missing_column", "line 1"),
        ("a,b\n1\n", "wrong_columns", "line 2"),
        (b"a,b\n1,\xff\n", "wrong_encoding", "line 2"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str | bytes, code: str, where: str) -> None:
    assert (code, where) in table(tmp_path, text, needed=["a", "b"])[1]


def test_a_table_without_rows_is_named_after_other_problems(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    problems = [Problem("row_left_out", "warning", "s.csv", None, "line 2", "")]
    assert read_table(tmp_path / "t.csv", problems)[1] == []
    assert [(one.code, one.file) for one in problems[1:]] == [("empty_file", str(tmp_path / "t.csv"))]


def test_every_wrong_row_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    rows, problems = table(tmp_path, "a,b\n1\n2,y\n3,z,9\n")
    assert rows == [(3, {"a": "2", "b": "y"})]
    assert problems == [("wrong_columns", "line 2"), ("wrong_columns", "line 4")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    text = tsv(("a", "b", "c", "d"), [("x\ty", 1 / 3, None, True)])
    assert text == "a\tb\tc\td\nx\\ty\t0.333333\t\ttrue\n"
    assert table(tmp_path, text, "t.tsv", quoted=False)[0] == [
        (2, {"a": "x\\ty", "b": "0.333333", "c": "", "d": "true"})
    ]


def test_a_parquet_file_has_the_cells_of_a_csv_file(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "a": [1, None, 3],
            "b": [2.0, None, 4.0],
            "c": [0.5, float("nan"), 2.0],
            "d": [" x ", None, "ä"],
            "e": [True, None, False],
        }
    )
    packed = io.BytesIO()
    frame.write_parquet(packed)
    path = tmp_path / "t.parquet"
    for content in (packed.getvalue(), gzip.compress(packed.getvalue())):
        path.write_bytes(content)
        problems: list[Problem] = []
        header, rows = read_table(path, problems, needed=["a", "d"])
        assert (header, problems) == (("a", "b", "c", "d", "e"), [])
        # The second row is blank, as a spreadsheet's would be.
        assert [(row.place, list(row.cells.values())) for row in rows] == [
            ("row 1", ["1", "2", "0.5", "x", "true"]),
            ("row 3", ["3", "4", "2", "ä", "false"]),
        ]


@pytest.mark.parametrize(
    ("columns", "code", "message"),
    [
        ({"a": [1]}, "missing_column", "no column 'b'; found 'a'"),
        ({"a": [1], "b": [[1, 2]]}, "wrong_type", "column 'b' holds lists"),
        ({"a": [1], "b": [1], " a": [2]}, "repeated_column", "the header has 'a' more than once"),
        ({"a": [None], "b": [""]}, "empty_file", "the table has no row"),
    ],
)
def test_what_is_wrong_with_a_parquet_file_is_named(tmp_path, columns, code, message) -> None:
    pl = pytest.importorskip("polars")
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    problems: list[Problem] = []
    assert read_table(tmp_path / "t.parquet", problems, needed=["a", "b"])[1] == []
    assert [problem.code for problem in problems] == [code]
    assert problems[0].message.startswith(message)


def test_a_parquet_file_that_ends_early_is_named(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    assert table(tmp_path, b"PAR1 and no more", "t.parquet") == ([], [("unreadable_file", "")])


def test_a_parquet_file_without_polars_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.io.installed.find_spec", lambda module: None)
    with pytest.raises(UsageError, match=r"a Parquet file needs polars, .*judge\[crowd\]"):
        table(tmp_path, b"PAR1", "t.parquet")
