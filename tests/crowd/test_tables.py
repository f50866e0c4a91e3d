"""Tables of labels in every shape, and all that can be wrong with them, named by file and row."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.crowd.labels import Item
from judge.crowd.layout import LabelColumn
from judge.crowd.platforms import read_questions
from judge.errors import InputError, JudgeError, UsageError
from tests.conftest import put, refused
from tests.crowd.world import SCALE, faults, problems_of, read, rows, warned

ONE = {"relevance": SCALE}
HEADER = "worker,turn_id,response_id,criterion,label\n"


# Long tables

LONG = [("w10", "1_10", "R1", 3), ("w2", "1_2", "R1", 0), ("w10", "1_2", "R10", 1), ("w10", "1_2", "R2", 2)]
TSV = "worker\tturn_id\tresponse_id\tcriterion\tlabel\n" + "".join(
    f"{worker}\t{turn}\t{item}\trelevance\t{label}\n" for worker, turn, item, label in LONG
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", TSV),
        ("t.csv", TSV.replace("\t", ",")),
        ("t.csv", TSV.replace("\t", " , ").replace("\n", "\r\n")),
        ("t.csv", '"' + TSV.replace("\t", '","').replace("\n", '"\n"').removesuffix('"')),
        ("t.csv", "\n" + TSV.replace("\t", ";").replace("\n", "\n\n") + ";;;;\n"),
        ("t.csv", TSV.replace("\t", ",") + " ,,,,\n"),
        ("t.csv.gz", gzip.compress(TSV.encode(), mtime=0)),
        ("t.txt", b"\xef\xbb\xbf" + TSV.encode()),
        (
            "t.jsonl",
            "\n".join(
                json.dumps({"worker": w, "turn_id": t, "response_id": r, "criterion": "relevance", "label": label})
                for w, t, r, label in LONG
            ),
        ),
    ],
)
def test_a_long_table_in_any_dress_is_the_same_labels(tmp_path: Path, name: str, content: str | bytes) -> None:
    (labels,) = read(put(tmp_path / name, content)).values()
    assert rows(labels) == LONG
    assert labels.workers == ("w2", "w10")
    assert labels.items == (Item("1_2", "R1"), Item("1_2", "R2"), Item("1_2", "R10"), Item("1_10", "R1"))
    assert (labels.criterion, labels.grades, labels.seconds) == ("relevance", SCALE, None)
    assert labels.worker.dtype == labels.item.dtype == np.int32
    assert labels.code.dtype == np.int8


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt64, pl.String])
def test_parquet_takes_integers_as_they_are_and_any_id_as_text(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    frame = pl.DataFrame({"worker": [10, 9, 10], "turn_id": ["1_1"] * 3, "question_id": [7, 7, 8], "label": [3, 0, 1]})
    frame = frame.with_columns(
        pl.col("label").cast(dtype), pl.col("worker").cast(dtype), pl.col("turn_id").cast(pl.Categorical)
    )
    frame.write_parquet(tmp_path / "t.parquet")
    (labels,) = read(tmp_path / "t.parquet", scales=ONE).values()
    assert rows(labels) == [("10", "1_1", "7", 3), ("9", "1_1", "7", 0), ("10", "1_1", "8", 1)]
    assert labels.workers == ("9", "10")
    # Rows are counted from one.
    frame = frame.with_columns(worker=pl.Series(["a", None, "b"]), label=pl.Series([4, 1, 1], dtype=pl.Int64))
    frame.write_parquet(tmp_path / "t.parquet")
    assert faults(tmp_path / "t.parquet", scales=ONE) == [("wrong_label", "row 1"), ("empty_cell", "row 2")]


@pytest.mark.parametrize("label", ["3.5", "x", "4", "-3", "1e0", "٣", "99999999999999999999", "0 1", "inf"])
def test_a_label_is_an_integer_of_the_scale(tmp_path: Path, label: str) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\nb,1_1,R1,relevance,{label}\n")
    assert faults(path) == [("wrong_label", "line 3")]


def test_all_faults_are_listed_at_once_in_the_order_of_the_rows(tmp_path: Path) -> None:
    first = put(
        tmp_path / "1.csv",
        f"{HEADER}a,1_1,R1,relevance,3\n,1_1,R2,relevance,9\na,1_1,R1,relevance,2\na,{'x' * 201},R1,relevance,2\n"
        "a,1_1,R\x1b1,relevance,0\na,1_1,R4,,1\n",
    )
    second = put(tmp_path / "2.csv", f"{HEADER}a,1_1,R1,relevance,0\n\na,1_1,R5,beauty,0\n")
    problems = problems_of(first, second, scales=ONE)
    assert [(one.file[-5:], one.code, one.path, one.turn_id) for one in problems] == [
        ("1.csv", "empty_cell", "line 3", "1_1"),
        ("1.csv", "wrong_label", "line 3", "1_1"),
        ("1.csv", "different_labels", "line 4", "1_1"),
        ("1.csv", "wrong_id", "line 5", None),
        ("1.csv", "wrong_id", "line 6", "1_1"),
        ("1.csv", "empty_cell", "line 7", "1_1"),
        ("2.csv", "different_labels", "line 2", "1_1"),
        ("2.csv", "unknown_criterion", "line 4", "1_1"),
    ]
    assert f"again: 0, but 3 at line 2 of {first}" in problems[6].message


def test_the_same_label_twice_counts_once_with_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\nb,1_1,R1,relevance,1\na,1_1,R1,relevance,3\n")
    labels, warnings = warned(path)
    assert rows(labels["relevance"]) == [("a", "1_1", "R1", 3), ("b", "1_1", "R1", 1)]
    assert [(one.code, one.severity, one.path) for one in warnings] == [("duplicate_row", "warning", "line 4")]


def test_one_item_under_two_criteria_is_no_repetition(tmp_path: Path) -> None:
    labels = read(put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\na,1_1,R1,novelty,1\nb,1_2,R1,novelty,1\n"))
    assert list(labels) == ["novelty", "relevance"]
    assert [(one.workers, len(one.items)) for one in labels.values()] == [(("a", "b"), 2), (("a",), 1)]


def test_crowd_kit_tasks_are_turn_and_response(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "task,worker,label\n9-1_2/R00001,a,3\n")
    assert rows(read(path, scales=ONE)["relevance"]) == [("a", "9-1_2", "R00001", 3)]
    path = put(tmp_path / "t.csv", "task,worker,label\nR1,a,3\n,b,3\na/b/c,a,0\n")
    assert faults(path, scales=ONE) == [("wrong_task", "line 2"), ("empty_cell", "line 3")]


def test_a_pattern_may_find_the_turn_inside_the_id(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "unit,worker,label\nQ10_EC1,a,3\nQ9_EC1,a,0\n")
    task = r"(?P<response_id>(?P<turn_id>Q\d+)_\w+)"
    labels = read(path, scales=ONE, columns={"task": "unit"}, task=task)["relevance"]
    assert rows(labels) == [("a", "Q10", "Q10_EC1", 3), ("a", "Q9", "Q9_EC1", 0)]
    assert labels.topics == ("Q9", "Q10")


def test_a_pool_tells_the_turns_of_ids(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "response_id,worker,label\nR1,a,3\nR2,a,3\n")
    assert rows(read(path, scales=ONE, turns={"R1": "1_1", "R2": "2_1"})["relevance"])[1] == ("a", "2_1", "R2", 3)
    assert faults(path, scales=ONE, turns={"R1": "1_1"}) == [("unknown_item", "line 3")]
    assert faults(path, scales=ONE) == [("missing_column", "line 1")]


def test_each_criterion_may_have_a_column(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "worker,turn_id,item_id,relevance,nov\na,1_1,R1,3,1\nb,1_1,R1,0,x\n")
    columns = {"label:relevance": "relevance", "label:novelty": "nov"}
    assert faults(path, columns=columns) == [("wrong_label", "line 3: nov")]
    path = put(tmp_path / "t.csv", "worker,turn_id,item_id,relevance,novelty\na,1_1,R1,3,1\n")
    labels = read(path, scales={"relevance": SCALE, "novelty": (1, 2)})
    assert {name: rows(one)[0][3] for name, one in labels.items()} == {"relevance": 3, "novelty": 1}
    assert labels["novelty"].grades == (1, 2)


def test_criteria_not_asked_for_are_passed_over(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\na,1_1,R1,novelty,77\n")
    assert list(read(path, criteria=["relevance"])) == ["relevance"]
    assert list(read(path, scales=ONE, criteria=["relevance"])) == ["relevance"]
    with pytest.raises(InputError, match="no label of 'beauty'"):
        read(path, criteria=["beauty"])
    assert faults(path, scales=ONE) == [("unknown_criterion", "line 3")]


def test_a_column_of_ids_read_as_criteria_is_refused_once(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", HEADER + "".join(f"a,1_1,R1,c{n},1\n" for n in range(501)))
    with pytest.raises(
        InputError, match=r"t\.csv: 501 criteria \('c0', 'c1', 'c2', …\), expected at most 500; --column"
    ):
        read(path, scales=SCALE)
    assert list(read(path, scales={"c7": SCALE}, criteria=["c7"])) == ["c7"]


@pytest.mark.parametrize(
    "options",
    [{"scales": ONE | {"novelty": SCALE}}, {"criteria": ["relevance", "novelty"]}],
    ids=["scales", "criteria"],
)
@pytest.mark.parametrize(
    "table",
    ["worker,turn_id,item_id,relevance,noveltie\na,1_1,R1,3,1\n", f"{HEADER}a,1_1,R1,relevance,3\n"],
    ids=["columns", "rows"],
)
def test_a_criterion_asked_for_without_labels_is_an_error(tmp_path: Path, table: str, options: dict) -> None:
    with pytest.raises(InputError, match="no label of 'novelty'; found labels of 'relevance'"):
        read(put(tmp_path / "t.csv", table), **options)


def test_criteria_beside_those_wanted_are_read_if_they_are_there(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\na,1_1,R1,novelty,1\na,1_1,R1,beauty,77\n")
    assert list(read(path, criteria=["relevance"], beside=["novelty", "diversity"])) == ["novelty", "relevance"]
    assert list(read(path, scales=ONE, criteria=["relevance"], beside=["novelty"])) == ["relevance"]
    path = put(tmp_path / "t.csv", "worker,turn_id,item_id,label\na,1_1,R1,3\n")
    assert list(read(path, criteria=["relevance"], beside=["novelty"])) == ["relevance"]


def test_a_known_item_may_be_labeled_again(tmp_path: Path) -> None:
    table = "worker,turn_id,item_id,label\na,1_1,K,0\na,1_1,K,1\na,1_1,K,1\na,1_1,R,2\na,1_2,K,3\n"
    path = put(tmp_path / "t.csv", table)
    again = [Item("1_1", "K"), Item("9_9", "K"), Item("1_2", "X")]
    labels, warnings = warned(path, scales=ONE, repeatable=again)
    assert [row[3] for row in rows(labels["relevance"])] == [0, 1, 1, 2, 3]
    assert warnings == []
    path = put(tmp_path / "t.csv", f"{table}a,1_2,K,0\n")
    assert faults(path, scales=ONE, repeatable=again) == [("different_labels", "line 7")]


def test_a_hundred_thousand_digits_are_a_fault_and_no_traceback(tmp_path: Path) -> None:
    long = "9" * 120_000
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,{long}\na,1_1,{long},relevance,2\n")
    assert faults(path) == [("wrong_label", "line 2"), ("wrong_id", "line 3")]
    # A number of so many digits numbers no item.
    path = put(tmp_path / "m.csv", f"WorkerId,Input.turn_id,Input.item_id,Answer.r_{long}\na,1_1,R1,2\n")
    assert faults(path, scales={"r": SCALE}) == [("missing_column", "line 1")]


def test_of_many_faults_the_first_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    wrong = "".join(f"w{n},1_1,R1,relevance,9\n" for n in range(250))
    twice = "".join(f"v{n % 120},1_1,R1,relevance,1\n" for n in range(240))
    first = put(tmp_path / "1.csv", f"{HEADER}{wrong},1_1,R1,relevance,1\n")
    second = put(tmp_path / "2.csv", f"{HEADER}{''.join(wrong.splitlines(keepends=True)[:125])}{twice}")
    with pytest.raises(InputError, match="376 problems") as caught:
        read(first, second)
    listed = [(one.file[-5:], one.code, one.path) for one in caught.value.problems]
    wrong_lines = [f"line {n}" for n in range(2, 102)]
    assert listed == [
        *(("1.csv", "wrong_label", line) for line in wrong_lines),
        *(("1.csv", "empty_cell", "line 252"), ("1.csv", "wrong_label", "")),
        *(("2.csv", "wrong_label", line) for line in (*wrong_lines, "")),
    ]
    assert next(one.message for one in caught.value.problems if not one.path) == "150 more of these, not listed"
    _, warnings = warned(put(tmp_path / "3.csv", HEADER + twice))
    assert len(warnings) == 101
    assert (warnings[-1].code, warnings[-1].severity) == ("duplicate_row", "warning")
    assert warnings[-1].message == "20 more of these, not listed"


def test_integers_with_gaps_are_integers_in_parquet(tmp_path: Path) -> None:
    columns = {"worker": [10.0, 9.0], "item_id": [7.0] * 2, "label": [3.0, 2.0], "seconds": [float("nan"), 2.5]}
    frame = pl.DataFrame({"turn_id": ["1_1"] * 2, **columns})
    frame.write_parquet(tmp_path / "t.parquet")
    labels = read(tmp_path / "t.parquet", scales=ONE)["relevance"]
    assert rows(labels) == [("10", "1_1", "7", 3), ("9", "1_1", "7", 2)]
    np.testing.assert_array_equal(labels.seconds, [np.nan, 2.5])
    for bad in (2.5, float("inf")):
        frame.with_columns(label=pl.Series([3.0, bad])).write_parquet(tmp_path / "t.parquet")
        assert faults(tmp_path / "t.parquet", scales=ONE) == [("wrong_label", "row 2")]


def test_seconds_are_kept_and_checked(tmp_path: Path) -> None:
    table = "worker,turn_id,item_id,label,seconds\na,1_1,R1,3,2.5\nb,1_1,R1,3,\n"
    seconds = read(put(tmp_path / "t.csv", table), scales=ONE)["relevance"].seconds
    assert seconds is not None
    np.testing.assert_array_equal(seconds, [2.5, np.nan])
    bad = "c,1_1,R1,3,-1\nd,1_1,R1,3,soon\ne,1_1,R1,3,inf\n"
    assert faults(put(tmp_path / "t.csv", table + bad), scales=ONE) == [
        ("wrong_seconds", f"line {n}") for n in (4, 5, 6)
    ]


def test_a_row_of_white_space_is_a_fault(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\n , , , , \n")
    assert set(faults(path, scales=ONE)) == {("empty_cell", "line 3")}


def test_nested_json_is_a_fault_only_where_it_is_needed(tmp_path: Path) -> None:
    row = {"worker": "a", "turn_id": "1_1", "item_id": "R1", "label": 1, "more": [1, 2]}
    path = put(tmp_path / "t.jsonl", json.dumps(row))
    assert rows(read(path, scales=ONE)["relevance"]) == [("a", "1_1", "R1", 1)]
    path = put(tmp_path / "t.jsonl", f"{json.dumps(row)}\n\n{json.dumps(row | {'worker': ['a', 'b']})}\n{{\n")
    assert faults(path, scales=ONE) == [("not_json", "line 4: $")]
    path = put(tmp_path / "t.jsonl", f"{json.dumps(row)}\n\n{json.dumps(row | {'worker': ['a', 'b']})}\n")
    assert faults(path, scales=ONE) == [("wrong_type", "line 3: $.worker")]


def test_json_is_bounded_by_its_cells_and_a_list_by_its_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.io.files._largest", 6_000)
    row = {"worker": "a", "turn_id": "1_1", "item_id": "R1", "label": 1, "why": "," * 61}
    assert rows(read(put(tmp_path / "t.jsonl", json.dumps(row)), scales=ONE)["relevance"]) == [("a", "1_1", "R1", 1)]
    assert faults(put(tmp_path / "t.json", json.dumps([row])), scales=ONE) == [("too_many_values", "")]
    # Nothing is read after the row that is too many.
    (problem,) = problems_of(put(tmp_path / "t.jsonl", f"{json.dumps(row | {'why': ''})}\n" * 13 + "{"), scales=ONE)
    assert (problem.code, problem.message[:22]) == ("too_many_cells", "13 rows of 5 columns: ")


def test_parquet_lists_cannot_be_labels(tmp_path: Path) -> None:
    frame = pl.DataFrame({"worker": ["a"], "turn_id": ["1_1"], "item_id": ["R1"], "label": [[3]], "other": [[1]]})
    frame.write_parquet(tmp_path / "t.parquet")
    assert faults(tmp_path / "t.parquet", scales=ONE) == [("wrong_type", "column 'label'")]


@pytest.mark.parametrize(
    ("header", "lacking"),
    [
        ("turn_id,item_id,criterion,label", "workers"),
        ("worker,turn_id,criterion,label", "turns"),
        ("worker,turn_id,item_id,criterion", "labels"),
        ("worker,turn_id,item_id,label", "criteria"),
    ],
)
def test_a_missing_column_is_named(tmp_path: Path, header: str, lacking: str) -> None:
    (problem,) = problems_of(put(tmp_path / "t.csv", f"{header}\n{','.join('1' * (header.count(',') + 1))}\n"))
    assert problem.code == "missing_column"
    assert lacking in problem.message


@pytest.mark.parametrize("row", ["b,1_1,R1,relevance", "b,1_1,R1,relevance,3,9", "b", "b\nc,1_1,R1,relevance,3,9"])
def test_a_row_too_short_is_no_empty_cell(tmp_path: Path, row: str) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\n{row}\nz,1_1,R1,relevance,3\n")
    assert faults(path) == [("wrong_columns", f"line {3 + n}") for n in range(row.count("\n") + 1)]
    path = put(tmp_path / "t.csv", "worker,turn_id,item_id,label,seconds\nw1,1_1,R1,2,5\nw2,1_1,R1,3\n")
    assert faults(path, scales=ONE) == [("wrong_columns", "line 3")]


def test_files_of_other_kinds_join(tmp_path: Path) -> None:
    pl.DataFrame({"worker": [1], "turn_id": ["1_1"], "item_id": ["R1"], "label": [3]}).write_parquet(
        tmp_path / "t.parquet"
    )
    other = put(tmp_path / "t.csv", "worker,turn_id,item_id,label\n01,1_1,R1,2\n")
    labels = read(tmp_path / "t.parquet", other, scales=ONE)["relevance"]
    assert rows(labels) == [("1", "1_1", "R1", 3), ("01", "1_1", "R1", 2)]


@pytest.mark.parametrize(
    "options",
    [
        {"columns": {"wrker": "worker"}},
        {"scales": (1,)},
        {"scales": range(101)},
        {"scales": ONE, "criteria": ["novelty"]},
        {"columns": {"task": "a", "turn_id": "b"}},
        {"task": "(", "columns": {"task": "worker"}},
        {"task": "(?P<turn_id>.*)", "columns": {"task": "worker"}},
        {"wide": "("},
        {"wide": "(?P<turn_id>.)(?P<response_id>.*)", "columns": {"label": "a"}},
        {"wide": "(?P<response_id>.*)"},
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict) -> None:
    path = put(tmp_path / "t.csv", f"{HEADER}a,1_1,R1,relevance,3\n")
    with pytest.raises(UsageError):
        read(path, **options)


# Wide tables

MTURK = (
    "WorkerId,AssignmentId,WorkTimeInSeconds,Input.turn_id,Input.response_id_1,Input.response_id_2,"
    "Answer.relevance_1,Answer.relevance_2,Answer.comment\n"
)


def test_mturk_has_a_row_an_assignment(tmp_path: Path) -> None:
    path = put(tmp_path / "m.csv", f"{MTURK}w1,A,20,1_1,R1,R2,3,0,fine\nw2,B,7,1_2,R3,,2,,\n")
    labels = read(path, scales=ONE)["relevance"]
    assert rows(labels) == [("w1", "1_1", "R1", 3), ("w1", "1_1", "R2", 0), ("w2", "1_2", "R3", 2)]
    # 20 s over two responses, 7 s over one.
    assert labels.seconds.tolist() == [10.0, 10.0, 7.0]


def test_mturk_labels_are_in_the_order_of_assignments_then_slots(tmp_path: Path) -> None:
    head = "WorkerId,Input.turn_id,Input.item_id_1,Input.item_id_2,Input.item_id_10,Answer.r_1,Answer.r_10,Answer.r_2\n"
    path = put(tmp_path / "m.csv", f"{head}a,1_1,A,B,C,0,2,1\na,1_2,A,B,C,0,2,1\n")
    assert [row[3] for row in rows(read(path)["r"])] == [0, 1, 2, 0, 1, 2]


def test_rejected_assignments_have_no_vote(tmp_path: Path) -> None:
    head = "WorkerId,AssignmentStatus,Input.turn_id,Input.item_id,Answer.r\n"
    path = put(
        tmp_path / "m.csv", f"{head}a,Approved,1_1,A,3\nb,Rejected,1_1,A,0\nc,Submitted,1_1,A,2\nd,rejected,1_1,A,9\n"
    )
    labels, (warning,) = warned(path)
    assert [row[0] for row in rows(labels["r"])] == ["a", "c"]
    assert (warning.code, warning.severity, warning.path) == ("row_left_out", "warning", "line 3")
    assert warning.message == "2 rows left out, AssignmentStatus 'Rejected', 'rejected'; this is the first"
    path = put(tmp_path / "m.csv", f"{head}b,Rejected,1_1,A,0\n")
    with pytest.raises(InputError, match="no label of any criterion") as caught:
        read(path)
    assert [one.code for one in caught.value.problems] == ["row_left_out"]


def test_mturk_faults_name_the_column(tmp_path: Path) -> None:
    path = put(tmp_path / "m.csv", f"{MTURK}w1,A,20,1_1,R1,R2,3,,\nw2,B,x,1_2,,,2,,\n")
    assert faults(path, scales=ONE) == [
        ("empty_cell", "line 3: Answer.relevance_1"),
        ("wrong_seconds", "line 3: Answer.relevance_1"),
    ]
    path = put(tmp_path / "m.csv", "WorkerId,Input.turn_id,Answer.relevance_3\nw,1_1,2\n")
    assert faults(path, scales=ONE) == [("missing_column", "line 1")]
    path = put(tmp_path / "m.csv", f"{MTURK}w1,A,20,1_1,R1,R2,3,0,\n".replace("WorkerId", "Id"))
    (problem,) = problems_of(path, scales=ONE)
    assert problem.message.startswith("no column WorkerId; found 'Id', 'AssignmentId', ")
    assert problem.message.endswith(": name it, as in --column worker=NAME")
    assert [row[0] for row in rows(read(path, scales=ONE, columns={"worker": "Id"})["relevance"])] == ["w1", "w1"]


def test_labels_that_pandas_made_floats_are_grades(tmp_path: Path) -> None:
    path = put(
        tmp_path / "t.csv", "worker,turn_id,item_id,criterion,label\na,1_1,A,r,1.0\nb,1_1,A,r,9.0\nc,1_1,A,r,2\n"
    )
    assert faults(path) == [("wrong_label", "line 3")]
    path.write_text(path.read_text().replace("9.0", "0.0"))
    assert [row[3] for row in rows(read(path)["r"])] == [1, 0, 2]


SURVEY = (
    "StartDate,PROLIFIC_PID,1_1.R1.relevance,1_1.R2.relevance\n"
    '"Start Date","PID","How relevant,\nis it?","…"\n"{""ImportId"":""s""}","{""ImportId"":""p""}","x","y"\n'
    "2024,p1,3,\n2024,p2,2,1\n"
)
PATTERN = r"(?P<turn_id>[^.]+)\.(?P<response_id>R\d+)\.(?P<criterion>\w+)"
SURVEYED = [("p1", "1_1", "R1", 3), ("p2", "1_1", "R1", 2), ("p2", "1_1", "R2", 1)]


def test_a_qualtrics_survey_has_a_row_a_participant(tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", SURVEY)
    assert rows(read(path, wide=PATTERN)["relevance"]) == SURVEYED
    short = PATTERN.replace("(?P<criterion>", "(?:")
    assert rows(read(path, wide=short, scales=ONE)["relevance"]) == SURVEYED
    assert faults(path, wide=short) == [("missing_column", "line 1")]
    assert faults(path, wide="(?P<turn_id>x)(?P<response_id>y)", scales=ONE) == [("missing_column", "line 1")]


@pytest.mark.parametrize("extra", ["", "{one}\n{two}\n"])
def test_previews_spam_and_unfinished_records_have_no_vote(tmp_path: Path, extra: str) -> None:
    two = '"{""ImportId"":""s""}",x,x,x,x,x'
    table = "ResponseId,Status,Finished,DistributionChannel,PROLIFIC_PID,1_1.R1.relevance\n"
    table += extra.format(one="Response ID,Response Type,Finished,Distribution Channel,PID,How?", two=two)
    records = (
        *("IP Address,True,anonymous", "0,1,gl", "Survey Preview,True,preview", "8,1,anonymous"),
        *("IP Address,False,anonymous", "IP Address,0,anonymous", "IP Address,1,test"),
    )
    table += "".join(f"R_{n},{record},p{n},3\n" for n, record in enumerate(records))
    labels, warnings = warned(put(tmp_path / "s.csv", table), wide=PATTERN)
    assert labels["relevance"].workers == ("p0", "p1")
    below = 2 if extra else 0
    assert [(one.path, one.message.partition(";")[0]) for one in warnings] == [
        (f"line {4 + below}", "2 rows left out, Status '8', 'Survey Preview'"),
        (f"line {6 + below}", "2 rows left out, Finished '0', 'False'"),
        (f"line {8 + below}", "1 row left out, DistributionChannel 'test'"),
    ]


def test_what_qualtrics_did_not_export_keeps_all_of_its_rows(tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", "worker,Status,1_1.R1.relevance\np1,1,3\np2,1,2\n")
    assert read(path, wide=PATTERN)["relevance"].workers == ("p1", "p2")
    path.write_text(path.read_text() + "p3,1,x\n")
    assert faults(path, wide=PATTERN) == [("wrong_label", "line 4: 1_1.R1.relevance")]


def test_faults_of_a_survey_have_the_line_of_the_file(tmp_path: Path) -> None:
    # The question text in the second row takes two lines.
    path = put(tmp_path / "s.csv", f"{SURVEY}2024,,3,\n2024,p3,3.5,\n")
    column = "1_1.R1.relevance"
    assert faults(path, wide=PATTERN) == [("empty_cell", f"line 7: {column}"), ("wrong_label", f"line 8: {column}")]


def test_a_map_of_columns_does_what_a_pattern_does(tmp_path: Path) -> None:
    table = "column\tturn_id\tresponse_id\tcriterion\n1_1.R1.relevance\t1_1\tR1\trelevance\n"
    table += "1_1.R2.relevance\t1_1\tR2\trelevance\n"
    questions = read_questions(put(tmp_path / "map.tsv", table))
    assert questions["1_1.R1.relevance"] == LabelColumn("1_1", "R1", "relevance")
    assert rows(read(put(tmp_path / "s.csv", SURVEY), wide=questions)["relevance"]) == SURVEYED
    wrong = put(tmp_path / "map.tsv", f"{table}1_1.R1.relevance\tx\ty\tz\na\t\tb\tc\n")
    problems = [(one.code, one.path) for one in refused(read_questions, wrong)]
    assert problems == [("duplicate_row", "line 4"), ("empty_cell", "line 5")]


def test_the_seconds_of_a_participant_are_shared(tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", "worker,t,1_1.R1.relevance,1_1.R2.relevance\np1,9,3,\np2,9,2,1\n")
    assert read(path, wide=PATTERN, columns={"seconds": "t"})["relevance"].seconds.tolist() == [9.0, 4.5, 4.5]


# Hostile data


CELL = st.sampled_from(["", "a", "b", "1_1", "R1", "0", "3", "4", "x", "\u202e", '"', "3.5", ",", "\t", "relevance"])


@given(st.lists(st.lists(CELL, min_size=3, max_size=6), max_size=6), st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
def test_no_table_ends_in_a_traceback_and_every_bad_row_is_named(tmp_path_factory, cells, end) -> None:
    path = put(tmp_path_factory.mktemp("t") / "t.csv", (HEADER.strip() + end + end.join(map(",".join, cells))).encode())
    try:
        labels = read(path)
    except JudgeError as error:
        assert all(one.file == str(path) and one.message for one in error.problems)
        return
    assert all(len(one.code) and one.code.min() >= 0 for one in labels.values())


@given(st.binary(max_size=200), st.sampled_from([b"", b"PAR1", b"{", b"\x1f\x8b", HEADER.encode()]))
def test_no_bytes_end_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes, start: bytes) -> None:
    path = put(tmp_path_factory.mktemp("t") / "t", start + content)
    with pytest.raises(JudgeError):
        read(path, scales=ONE, criteria=["relevance"], columns={"worker": "no such column"})


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", ""]),
            st.sampled_from(["1_1", ""]),
            st.sampled_from(["R1", "R2"]),
            st.sampled_from("03x"),
        ),
        min_size=1,
    )
)
def test_each_faulty_row_is_named_once_for_each_fault(tmp_path_factory, cells: list[tuple[str, str, str, str]]) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_text(HEADER + "".join(f"{w},{t},{r},relevance,{label}\n" for w, t, r, label in cells), encoding="utf-8")
    expected: list[tuple[str, str]] = []
    first: dict[str, str] = {}
    for line, (worker, turn, item, label) in enumerate(cells, start=2):
        wrong = [("empty_cell", f"line {line}")] * ((not worker) + (not turn))
        wrong += [("wrong_label", f"line {line}")] if label == "x" else []
        if not wrong and first.setdefault(item, label) != label:
            wrong.append(("different_labels", f"line {line}"))
        expected += wrong
    if expected:
        assert sorted(faults(path)) == sorted(expected)
    else:
        assert {item: str(label) for _, _, item, label in rows(read(path)["relevance"])} == first


# Layouts


def test_a_list_of_one_is_its_value_and_an_empty_one_is_empty(tmp_path: Path) -> None:
    given = [("R1", ["0"]), ("R2", []), ("R3", ["2"])]
    content = "\n".join(
        json.dumps({"worker": "a", "turn_id": "1_1", "response_id": item, "label": label}) for item, label in given
    )
    labels, warnings = warned(put(tmp_path / "all.jsonl", content), scales=ONE)
    assert rows(labels["relevance"]) == [("a", "1_1", "R1", 0), ("a", "1_1", "R3", 2)]
    assert [(problem.code, problem.path) for problem in warnings] == [("not_labeled", "line 2")]
    path = put(tmp_path / "all.jsonl", content.replace('["2"]', '["2", "1"]'))
    assert faults(path, scales=ONE) == [("wrong_type", "line 3: $.label")]


def test_an_object_in_several_lines_is_one_row(tmp_path: Path) -> None:
    row = {"worker": "a", "turn_id": "1_1", "response_id": "R1", "label": 2}
    path = put(tmp_path / "one.json", json.dumps(row, indent=2))
    assert rows(read(path, scales=ONE)["relevance"]) == [("a", "1_1", "R1", 2)]
    # One problem, and not one a line.
    assert faults(put(tmp_path / "one.json", json.dumps(row, indent=2)[:-2]), scales=ONE) == [("not_json", "$")]


SEMICOLONS = "worker;turn_id;response_id;label;seconds\na;1_1;R1;1,0;2,5\nb;1_1;R1;2;3\n"


@pytest.mark.parametrize("content", [SEMICOLONS, SEMICOLONS.replace("a;", '"a";')])
@pytest.mark.parametrize("hint", ["", "sep=;\n", "\ufeffSep=;\r\n", '"sep=;"\n'])
def test_spreadsheets_part_cells_by_semicolons_and_write_a_comma_for_the_point(
    tmp_path: Path, hint: str, content: str
) -> None:
    path = put(tmp_path / "t.csv", hint + content)
    (labels,) = read(path, scales=ONE).values()
    assert rows(labels) == [("a", "1_1", "R1", 1), ("b", "1_1", "R1", 2)]
    assert labels.seconds.tolist() == [2.5, 3.0]
    wrong = put(tmp_path / "t.csv", hint + content.replace("1,0", "1,5"))
    assert faults(wrong, scales=ONE) == [("wrong_label", f"line {3 if hint else 2}")]


def test_where_a_comma_parts_the_cells_it_is_no_point(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", 'worker,turn_id,response_id,label\na,1_1,R1,"1,0"\n')
    assert faults(path, scales=ONE) == [("wrong_label", "line 2")]


def test_a_name_that_columns_share_matters_where_they_are_needed(tmp_path: Path) -> None:
    head = "worker,turn_id,response_id,label,note,note\n"
    path = put(tmp_path / "t.csv", f"{head}a,1_1,R1,1,x,y\n")
    assert rows(read(path, scales=ONE)["relevance"]) == [("a", "1_1", "R1", 1)]
    path = put(tmp_path / "t.csv", f"{head.replace('note', 'label')}a,1_1,R1,1,2,3\n")
    (problem,) = problems_of(path, scales=ONE)
    assert (problem.code, problem.path) == ("repeated_column", "line 1")
    assert problem.message.endswith("say which one, as in --column label='label#1'")
    for place in (1, 2, 3):
        labels = read(path, scales=ONE, columns={"label": f"label#{place}"})["relevance"]
        assert rows(labels) == [("a", "1_1", "R1", place)]
    # A grade beside the labels does not take their place unsaid.
    path = put(tmp_path / "t.csv", "worker,turn_id,response_id,label,label,grade\na,1_1,R1,1,2,3\n")
    assert faults(path, scales=ONE) == [("repeated_column", "line 1")]


def test_a_question_that_stands_in_a_header_twice_is_named_by_its_place(tmp_path: Path) -> None:
    path = put(tmp_path / "form.csv", "Who,How?,How?\nann,0,3\nbob,1,2\n")
    wide = {f"How?#{place}": LabelColumn("1_1", f"R{place}", "relevance") for place in (1, 2)}
    labels = read(path, scales=ONE, wide=wide, columns={"worker": "Who"})["relevance"]
    assert [row[2:] for row in rows(labels)] == [("R1", 0), ("R2", 3), ("R1", 1), ("R2", 2)]
    path = put(tmp_path / "form.csv", "worker,1_1.R1.relevance,1_1.R1.relevance\nann,0,3\n")
    (problem,) = problems_of(path, scales=ONE, kind="survey")
    assert problem.code == "repeated_column" and "'1_1.R1.relevance#1'" in problem.message
    path = put(tmp_path / "form.csv", "PROLIFIC_PID,PROLIFIC_PID,ResponseId,1_1.R1.relevance\np,,R_1,3\n")
    assert faults(path, scales=ONE, kind="survey") == [("repeated_column", "line 1")]


def test_each_worker_may_have_a_column(tmp_path: Path) -> None:
    path = put(tmp_path / "m.csv", "turn_id,response_id,ann,bob,note\n1_1,R1,1,2,x\n1_1,R2,,NA,y\n1_1,R3,0,,\n")
    labels, warnings = warned(path, scales=ONE, workers=["ann", "b*"])
    assert rows(labels["relevance"]) == [
        ("ann", "1_1", "R1", 1), ("bob", "1_1", "R1", 2), ("ann", "1_1", "R3", 0)
    ]  # fmt: skip
    # An empty cell is an item that the worker was not given.
    assert [(problem.code, problem.path) for problem in warnings] == [("not_labeled", "line 3: bob")]
    assert faults(path, scales=ONE, workers=["ann", "note"]) == [
        ("wrong_label", "line 2: note"), ("wrong_label", "line 3: note")
    ]  # fmt: skip
    (problem,) = problems_of(path, scales=ONE, workers=["dan"])
    assert problem.message.startswith("no column fits --workers dan; found ")
    assert "--workers COLUMN..." in problems_of(path, scales=ONE)[0].message
    with pytest.raises(UsageError, match="a column of worker cannot go with it"):
        read(path, scales=ONE, workers=["ann"], columns={"worker": "note"})


def test_a_pool_knows_the_turn_of_a_bare_item_or_task(tmp_path: Path) -> None:
    for name in ("item", "task"):
        path = put(tmp_path / "t.csv", f"worker,{name},label\na,R1,2\n")
        assert rows(read(path, scales=ONE, turns={"R1": "1_1"})["relevance"]) == [("a", "1_1", "R1", 2)]
    (problem,) = problems_of(put(tmp_path / "t.csv", "worker,item,label\na,R1,2\n"), scales=ONE)
    assert problem.message.startswith("no column of turns (--column turn_id=NAME; or --pool OUT")


# Pairs in both orders

BOTH_ORDERS = (
    "worker,turn_id,response_id,second_id,label\n"
    # Two of three workers take B's text for the better one: 2 and, in the other order, 0.
    "w1,1_1,A,B,2\nw2,1_1,B,A,0\nw3,1_1,B,A,2\nw1,1_2,B,A,0\nw2,1_2,B,A,1\n"
)


def test_a_pair_in_either_order_is_one_item(tmp_path: Path) -> None:
    labels, warnings = warned(put(tmp_path / "p.csv", BOTH_ORDERS), scales={"preference": (0, 1, 2)})
    assert rows(labels["preference"]) == [
        ("w1", "1_1", "A|B", 2),
        ("w2", "1_1", "A|B", 2 - 0),
        ("w3", "1_1", "A|B", 2 - 2),
        # All saw this one in one order, which stays.
        ("w1", "1_2", "B|A", 0),
        ("w2", "1_2", "B|A", 1),
    ]
    assert [(problem.code, problem.path) for problem in warnings] == [("pair_turned", "line 3")]
    assert "2 labels of pairs" in warnings[0].message and "a grade g counts as 2 - g" in warnings[0].message


def test_the_order_of_a_known_pair_is_that_of_its_item(tmp_path: Path) -> None:
    known = [Item("1_1", "B|A")]
    labels = read(put(tmp_path / "p.csv", BOTH_ORDERS), scales={"preference": (0, 1, 2)}, repeatable=known)
    assert [row[2:] for row in rows(labels["preference"])][:3] == [("B|A", 0), ("B|A", 0), ("B|A", 2)]


def test_a_worker_gives_a_pair_one_label_in_whatever_order(tmp_path: Path) -> None:
    header = "worker,turn_id,response_id,second_id,label\n"
    scales = {"preference": (0, 1, 2)}
    same = put(tmp_path / "p.csv", f"{header}a,1_1,A,B,2\na,1_1,B,A,0\n")
    labels, warnings = warned(same, scales=scales)
    assert rows(labels["preference"]) == [("a", "1_1", "A|B", 2)]
    assert [problem.code for problem in warnings] == ["pair_turned", "duplicate_row"]
    # Who takes the first one in both orders prefers none: 0 and 2 - 0.
    first = put(tmp_path / "p.csv", f"{header}a,1_1,A,B,0\na,1_1,B,A,0\n")
    labels, warnings = warned(first, scales=scales)
    assert rows(labels["preference"]) == [("a", "1_1", "A|B", 1)]
    assert warnings[1].message.endswith("where it is 0; counted once, as 1")
    assert rows(read(first, scales=scales, last=True)["preference"]) == [("a", "1_1", "A|B", 2)]
    # Halves go to the middle, from either side; two labels in one order are refused as ever.
    for label, other in ((0, 1), (1, 0), (2, 1), (1, 2)):
        path = put(tmp_path / "p.csv", f"{header}a,1_1,A,B,{label}\na,1_1,B,A,{2 - other}\n")
        assert rows(read(path, scales=scales)["preference"]) == [("a", "1_1", "A|B", 1)]
    once = put(tmp_path / "p.csv", f"{header}a,1_1,A,B,0\na,1_1,A,B,2\nb,1_1,B,A,0\n")
    assert faults(once, scales=scales) == [("different_labels", "line 3")]
    # A scale of two has no middle.
    two = put(tmp_path / "p.csv", f"{header}a,1_1,A,B,0\na,1_1,B,A,0\n")
    assert faults(two, scales={"preference": (0, 1)}) == [("different_labels", "line 3")]
    # 0, 1, 3 turned around would be 3, 2, 0.
    assert faults(same, scales={"preference": (0, 1, 3)}, words=lambda *_: {}) == [("wrong_label", "line 3")]


def test_orders_of_a_pool_are_one_item_too(tmp_path: Path) -> None:
    path = put(tmp_path / "p.csv", "worker,response_id,label\na,R1,2\nb,R0,2\n")
    options = {"turns": {"R0": "1_1", "R1": "1_1"}, "other_orders": {"R0": "R1", "R1": "R0"}}
    labels = read(path, scales={"preference": (0, 1, 2)}, **options)["preference"]
    assert rows(labels) == [("a", "1_1", "R0", 0), ("b", "1_1", "R0", 2)]


# Names of workers


def test_workers_who_may_be_one_are_named(tmp_path: Path) -> None:
    names = ["ann", "Ann", "bob", "7", "07", "7.0", "70", "Zoe\u0308", "Zo\u00eb", "a b", "ab", "w01", "w1"]
    path = put(tmp_path / "t.csv", HEADER + "".join(f"{name},1_1,R1,relevance,1\n" for name in names))
    labels, warnings = warned(path)
    assert len(labels["relevance"].workers) == 13
    groups = [problem.message.partition(": ")[2].partition(";")[0] for problem in warnings]
    assert sorted(groups) == sorted(
        ["'Ann', 'ann'", "'07', '7', '7.0'", "'Zoe\u0308', 'Zo\u00eb'", "'a b', 'ab'", "'w01', 'w1'"]
    )
    assert {problem.code for problem in warnings} == {"workers_alike"}


def test_rows_that_a_file_of_toloka_rejects_have_no_vote(tmp_path: Path) -> None:
    head = "INPUT:turn_id\tINPUT:response_id\tOUTPUT:relevance\tASSIGNMENT:worker_id\tACCEPT:verdict\n"
    path = put(tmp_path / "t.tsv", f"{head}1_1\tR1\t2\ta\t+\n1_1\tR1\t0\tb\t-\n1_1\tR1\t1\tc\t\n")
    columns = {"worker": "ASSIGNMENT:worker_id", "turn_id": "INPUT:turn_id", "response_id": "INPUT:response_id"}
    labels, warnings = warned(path, scales=ONE, columns={**columns, "label": "OUTPUT:relevance"})
    assert [(row[0], row[3]) for row in rows(labels["relevance"])] == [("a", 2), ("c", 1)]
    assert [(problem.code, problem.path) for problem in warnings] == [("row_left_out", "line 3")]
