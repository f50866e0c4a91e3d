"""Judgments as Parquet: each field is a column, and the columns make the same judgments again."""

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.ask.records import Failure, Judgment, SentenceSupport
from judge.cli import call
from judge.errors import InputError, OperationalError, UsageError
from judge.jobs.results_parquet import ResultsConvertPlan, convert_results
from tests.conftest import put, refused

pl = pytest.importorskip("polars")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
SHARE = st.floats(0, 1)
JUDGMENT = st.builds(
    Judgment, response_id=TEXT, turn_id=TEXT, topic_id=TEXT, criterion=TEXT, variant=TEXT, grade=st.integers(-3, 9),
    unable=st.booleans(), expected=st.none() | SHARE,
    probabilities=st.none() | st.dictionaries(TEXT, SHARE, max_size=3), rationale=st.none() | TEXT,
    sentences=st.lists(TEXT, max_size=2).map(tuple), judge=TEXT, model=st.none() | TEXT, criterion_digest=TEXT,
    request_digest=TEXT, form=st.sampled_from(["json", "text", "label"]), repaired=st.booleans(),
    sample=st.integers(0, 3),
    support=st.lists(
        st.builds(SentenceSupport, st.lists(TEXT, max_size=2).map(tuple), st.none() | SHARE), max_size=2
    ).map(tuple),
    nuggets=st.lists(TEXT, max_size=2).map(tuple),
)  # fmt: skip
JUDGED = Judgment(
    response_id="R0", turn_id="1-1_1", topic_id="1-1", criterion="c", variant="v", grade=2, unable=False,
    expected=1.5, probabilities={"1": 0.5, "2": 0.5}, rationale="<b>\u2028", sentences=("yes", "no"), judge="b/m",
    model=None, criterion_digest="d", request_digest="e", form="label", repaired=False, sample=0,
)  # fmt: skip
MISSING = Failure("R1", "1-1_1", "1-1", "c", "v", "refused", "why", None, "b/m", "d", None, 0)


def write(folder: Path, name: str, records: list[Any]) -> None:
    put(folder / name, msgspec.json.Encoder().encode_lines(records))


def read(path: Path, kind: type[Any]) -> list[Any]:
    rows = pl.read_parquet(path).to_dicts()
    for row in rows:
        if row.get("probabilities") is not None:
            row["probabilities"] = {pair["label"]: pair["probability"] for pair in row["probabilities"]}
    return [msgspec.convert({"kind": kind.__name__.lower(), **row}, kind) for row in rows]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(judgments=st.lists(JUDGMENT, max_size=4))
def test_the_columns_make_the_same_judgments_again(tmp_path: Path, judgments: list[Judgment]) -> None:
    write(tmp_path / "out", "judgments.jsonl", judgments)
    converted = convert_results(ResultsConvertPlan(folder=tmp_path / "out", out=tmp_path / "tables"))
    assert converted == {tmp_path / "tables/judgments.parquet": len(judgments)}
    assert read(tmp_path / "tables/judgments.parquet", Judgment) == judgments


def test_what_a_folder_has_no_more_of_goes(tmp_path: Path) -> None:
    out, tables = tmp_path / "out", tmp_path / "tables"
    write(out, "judgments.jsonl", [JUDGED])
    write(out, "failures.jsonl", [MISSING])
    write(out, "members.jsonl", [JUDGED, JUDGED])
    convert_results(ResultsConvertPlan(folder=out, out=tables))
    assert read(tables / "failures.parquet", Failure) == [MISSING]
    assert read(tables / "members.parquet", Judgment) == [JUDGED, JUDGED]
    (out / "members.jsonl").unlink()
    convert_results(ResultsConvertPlan(folder=out, out=tables))
    assert sorted(path.name for path in tables.iterdir()) == ["failures.parquet", "judgments.parquet"]


def test_a_line_that_is_no_judgment_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, "judgments.jsonl", [JUDGED, {"kind": "judgment", "response_id": 3}])
    (problem,) = refused(convert_results, ResultsConvertPlan(folder=out, out=tmp_path / "tables"))
    assert (problem.code, problem.path) == ("not_a_judgment", "line 2: $.response_id")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_integers_that_no_column_holds_are_named_with_their_lines(tmp_path: Path) -> None:
    out = tmp_path / "out"
    samples = [2**63 - 1, 2**63, 2**200, -(2**63), -(2**63) - 1]
    write(out, "judgments.jsonl", [JUDGED])
    line = (out / "judgments.jsonl").read_text()
    assert '"sample":0' in line
    (out / "judgments.jsonl").write_text("".join(line.replace('"sample":0', f'"sample":{n}') for n in samples))
    problems = refused(convert_results, ResultsConvertPlan(folder=out, out=tmp_path / "tables"))
    assert {problem.file for problem in problems} == {str(out / "judgments.jsonl")}
    assert [problem.path for problem in problems] == [f"line {n}: $.sample" for n in (2, 3, 5)]
    assert names(tmp_path) == ["out"]


def test_every_line_that_is_no_judgment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write(out, "judgments.jsonl", [{"kind": "judgment"}, JUDGED, 3, 4])
    problems = refused(convert_results, ResultsConvertPlan(folder=out, out=tmp_path / "tables"))
    assert [problem.path for problem in problems] == [f"line {n}: $" for n in (1, 3, 4)]
    monkeypatch.setattr("judge.io.files.MAX_PROBLEMS", 2)
    problems = refused(convert_results, ResultsConvertPlan(folder=out, out=tmp_path / "tables"))
    assert [problem.code for problem in problems[:2]] == ["not_a_judgment", "not_a_judgment"]
    assert len(problems) == 3


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, "judgments.jsonl", [JUDGED])
    (out / "judgments.jsonl").write_bytes(b"\xef\xbb\xbf" + (out / "judgments.jsonl").read_bytes())
    convert_results(ResultsConvertPlan(folder=out, out=tmp_path / "tables"))
    assert read(tmp_path / "tables/judgments.parquet", Judgment) == [JUDGED]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, "judgments.jsonl", [JUDGED])
    put(tmp_path / "mine/notes.txt", "mine")
    for other in (out, tmp_path / "mine"):
        with pytest.raises(UsageError, match="give a"):
            convert_results(ResultsConvertPlan(folder=out, out=other))
    with pytest.raises(InputError, match=r"no judgments\.jsonl there"):
        convert_results(ResultsConvertPlan(folder=tmp_path / "mine", out=tmp_path / "tables"))


def test_the_folder_for_the_tables_may_be_on_another_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, disk, tables = tmp_path / "out", tmp_path / "disk", tmp_path / "tables"
    disk.mkdir()
    tables.symlink_to(disk)
    write(out, "judgments.jsonl", [JUDGED])
    replace = os.replace

    def within(source: Path, target: Path) -> None:
        if Path(source).resolve().is_relative_to(disk) != Path(target).parent.resolve().is_relative_to(disk):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        replace(source, target)

    monkeypatch.setattr(os, "replace", within)
    for judgments in ([JUDGED], [JUDGED, JUDGED]):
        write(out, "judgments.jsonl", judgments)
        convert_results(ResultsConvertPlan(folder=out, out=tables))
        assert read(tables / "judgments.parquet", Judgment) == judgments
    assert (names(disk), names(tmp_path)) == (["judgments.parquet"], ["disk", "out", "tables"])


def test_what_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, tables = tmp_path / "out", tmp_path / "tables"
    write(out, "judgments.jsonl", [JUDGED])
    write(out, "failures.jsonl", [MISSING])
    convert_results(ResultsConvertPlan(folder=out, out=tables))
    before = {name: (tables / name).read_bytes() for name in names(tables)}
    write(out, "judgments.jsonl", [JUDGED, JUDGED])
    (out / "failures.jsonl").unlink()
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if Path(target).parent == tables:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OperationalError, match="tables: cannot be written: No space left"):
        convert_results(ResultsConvertPlan(folder=out, out=tables))
    assert {name: (tables / name).read_bytes() for name in names(tables)} == before


def test_the_tables_may_go_into_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", "judgments.jsonl", [JUDGED])
    (tmp_path / "tables").mkdir()
    monkeypatch.chdir(tmp_path / "tables")
    convert_results(ResultsConvertPlan(folder="../out", out="."))
    assert names(tmp_path / "tables") == ["judgments.parquet"]


def test_what_a_process_left_that_was_killed_goes(tmp_path: Path) -> None:
    out, tables = tmp_path / "out", tmp_path / "tables"
    write(out, "judgments.jsonl", [JUDGED])
    put(tables / ".judgments.parquet.tmp/judgments.parquet", b"half")
    convert_results(ResultsConvertPlan(folder=out, out=tables))
    assert names(tables) == ["judgments.parquet"]


def test_a_folder_in_the_place_of_a_table_is_named(tmp_path: Path) -> None:
    out, tables = tmp_path / "out", tmp_path / "tables"
    write(out, "judgments.jsonl", [JUDGED])
    convert_results(ResultsConvertPlan(folder=out, out=tables))
    (tables / "members.parquet").mkdir()
    with pytest.raises(InputError, match=r"members\.parquet: a folder where a file has to be"):
        convert_results(ResultsConvertPlan(folder=out, out=tables))


@pytest.mark.parametrize(
    ("arguments", "message"), [(["a", "b"], "expected one output folder"), (["a", "--team", "t"], "--team is for runs")]
)
def test_what_is_for_runs_alone_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call("convert", [*arguments, "--to", "parquet", "-o", "new"])
