import csv
import gzip
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.errors import InputError, OperationalError, UsageError
from judge.io import tabular
from judge.io.folder import temporary_name
from judge.io.table import tsv
from judge.io.tabular import plain_frame, read_table, table_records, write_parquet
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


def test_a_line_above_the_header_may_say_what_parts_the_cells(tmp_path: Path) -> None:
    assert table(tmp_path, "sep=|\na|b,c\n1|x,y\n") == ([(3, {"a": "1", "b,c": "x,y"})], [])
    assert table(tmp_path, "SEP=;\r\na;b\r\n1;x\r\n", "t.tsv") == ([(3, {"a": "1", "b": "x"})], [])
    # It is a header like any other where no line follows.
    assert table(tmp_path, "sep=;")[1] == [("empty_file", "line 1")]


def test_names_that_columns_share_are_numbered_where_that_is_asked(tmp_path: Path) -> None:
    text = "a,note,a,note\n1,x,2,y\n"
    assert table(tmp_path, text)[1] == [("repeated_column", "line 1")]
    assert table(tmp_path, text, only_once=("a",))[1] == [("repeated_column", "line 1")]
    rows, problems = table(tmp_path, text, only_once=("b",))
    assert (rows, problems) == ([(2, {"a#1": "1", "note#1": "x", "a#2": "2", "note#2": "y"})], [])
    assert table(tmp_path, text, only_once=(), needed=("a",))[1] == [("repeated_column", "line 1")]


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
    pytest.importorskip("polars").DataFrame(columns).write_parquet(tmp_path / "t.parquet")
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


pl = pytest.importorskip("polars")

SCHEMA = {
    "text": pl.String,
    "number": pl.Int64,
    "words": pl.List(pl.String),
    "shares": pl.List(pl.Struct({"label": pl.String, "share": pl.Float64})),
}
TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
SHARE = st.fixed_dictionaries({"label": TEXT, "share": st.none() | st.floats(allow_nan=False)})
ROW = st.tuples(
    TEXT,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.lists(TEXT, max_size=2),
    st.none() | st.lists(SHARE, max_size=2),
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "_ROWS", 3)
    monkeypatch.setattr(tabular, "_FEWEST", 1)
    monkeypatch.setattr(tabular, "_LONGEST", 6)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(ROW, max_size=9))
def test_what_is_written_is_read(tmp_path: Path, rows: Sequence[tuple[object, ...]]) -> None:
    out = tmp_path / "t.parquet"
    assert write_parquet(out, SCHEMA, rows) == len(rows)
    frame = pl.read_parquet(out)
    assert dict(frame.schema) == SCHEMA
    assert frame.rows() == [tuple(row) for row in rows]
    before = out.read_bytes()
    write_parquet(out, SCHEMA, rows)
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("value", ["many", 2**70, 2**200, b"1"])
def test_a_value_of_another_type_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(InputError, match=r"t\.parquet: a value is not of the type of its column"):
        write_parquet(tmp_path / "t.parquet", {"n": pl.Int64}, [(1,), (value,)])
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_written_over(tmp_path: Path) -> None:
    left = tmp_path / temporary_name("t.parquet")
    put(left / "00000000", b"half")
    assert write_parquet(tmp_path / "t.parquet", {"n": pl.Int64}, [(1,)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="cannot be written: No such file"):
        write_parquet(tmp_path / "no" / "t.parquet", {"n": pl.Int64}, [(1,)])


def test_messages_name_the_file_that_another_only_waits_for(tmp_path: Path) -> None:
    waiting, told = tmp_path / "no" / "t.parquet", tmp_path / "mine.parquet"
    with pytest.raises(OperationalError, match=r"mine\.parquet: cannot be written: No such file"):
        write_parquet(waiting, {"n": pl.Int64}, [(1,)], told=told)
    waiting.parent.mkdir()
    with pytest.raises(InputError, match=r"mine\.parquet: a value is not of the type"):
        write_parquet(waiting, {"n": pl.Int64}, [("many",)], told=told)


def test_whole_floats_become_integers_in_a_column_of_whole_ones() -> None:
    frame = pl.DataFrame({"whole": [1.0, None], "mixed": [1.0, 0.5], "large": [2.0**60, None], "dated": [True, None]})
    plain, nested = plain_frame(frame)
    assert nested == []
    assert plain.rows() == [(1, "1", str(pl.Series([2.0**60]).cast(pl.String)[0]), "true"), (None, "0.5", None, None)]


# A value of each type of polars, and what a table of texts and integers has for it; None where it has none.
EVERY_TYPE = [
    (pl.Int8(), 1, 1), (pl.Int16(), 1, 1), (pl.Int32(), 1, 1), (pl.Int64(), -(2**63), -(2**63)),
    (pl.UInt8(), 1, 1), (pl.UInt16(), 1, 1), (pl.UInt32(), 1, 1), (pl.UInt64(), 2**64 - 1, 2**64 - 1),
    (pl.Float32(), 2.0, 2), (pl.Float64(), 2.5, "2.5"), (pl.Float32(), float("inf"), "inf"),
    (pl.Decimal(9, 1), Decimal("1.5"), "1.5"), (pl.Boolean(), True, "true"), (pl.String(), "a", "a"),
    (pl.Categorical(), "a", "a"), (pl.Enum(["a"]), "a", "a"), (pl.Date(), date(2025, 1, 2), "2025-01-02"),
    (pl.Datetime("ms"), datetime.fromisoformat("2025-01-02"), "2025-01-02 00:00:00.000"),
    (pl.Time(), time(1), "01:00:00"),
    (pl.Datetime("ms", "UTC"), datetime(2025, 1, 2, tzinfo=UTC), "2025-01-02 00:00:00.000+00:00"),
    (pl.Duration("ms"), timedelta(1), None), (pl.Duration("us"), timedelta(1), None),
    (pl.Duration("ns"), timedelta(1), None), (pl.Binary(), b"a", None), (pl.Object(), Path(), None),
    (pl.List(pl.Int64), [1], None), (pl.Array(pl.Int64, 1), [1], None), (pl.Struct({"a": pl.Int64}), {"a": 1}, None),
]  # fmt: skip
# Types that not every version has.
for new, given_value, told in (
    ("Int128", 2**100, 2**100),
    ("UInt128", 2**100, 2**100),
    ("Float16", float("inf"), "inf"),
):
    if hasattr(pl, new):
        EVERY_TYPE.append((getattr(pl, new)(), given_value, told))


@pytest.mark.parametrize(("dtype", "value", "plain"), EVERY_TYPE, ids=lambda part: str(part))
def test_every_type_is_a_number_a_text_or_neither(dtype: object, value: object, plain: object) -> None:
    frame, neither = plain_frame(pl.DataFrame({"c": pl.Series([value, None], dtype=dtype)}))  # type: ignore[arg-type]
    if plain is None:
        assert (frame.rows(), neither) == ([("",), ("",)], ["c"])
    else:
        assert (frame.rows(), neither) == ([(plain,), (None,)], [])


@pytest.mark.skipif(not hasattr(pl, "Extension"), reason="polars before its extension types")
def test_an_extension_type_is_neither() -> None:
    column = pl.Series("c", [1]).ext.to(pl.Extension("some.type", pl.Int64))
    frame, neither = plain_frame(pl.DataFrame([column]))
    assert (frame.rows(), neither) == ([("",)], ["c"])


def test_how_long_a_cell_may_be_is_the_process_s_own_again() -> None:
    before = csv.field_size_limit()
    assert [cells for _, cells in table_records("a,b\n1,2\n", ",", longest=8)] == [("a", "b"), ("1", "2")]
    (_, said), *_ = table_records("long,b\n", ",", longest=3)
    assert "field larger than field limit (3)" in said
    assert csv.field_size_limit() == before
