"""Parquet files: what is written is what is read, in groups of any size."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.errors import InputError, OperationalError
from judge.io import tabular
from judge.io.folder import temporary_name
from judge.io.tabular import plain_frame, write_parquet

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
    left.mkdir()
    (left / "00000000").write_bytes(b"half")
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
