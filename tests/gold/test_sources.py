"""Grades of others as gold: every source, its quirks, all that can be wrong with its files, and what texts mean."""

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from judge.ask.criteria import bundled_criteria
from judge.errors import InputError, UsageError
from judge.gold import GradeMeanings, folded, level_words
from judge.gold.draft import ImportOptions, read_bank
from judge.gold.plan import PlanRow
from judge.gold.rows import GoldRow, gold_jsonl, match, parse_gold, text_digest
from judge.gold.sources import CAST_CRITERIA, Imported, import_gold, typed
from judge.jobs.gold import CROWD, GOLD_SOURCES, read_label_tables
from judge.pool.bank import passages_jsonl, pool_jsonl, read_pool
from judge.pool.records import Pool
from tests.calibration_world import pooled
from tests.conftest import put, refused

BEGIN_HEADER = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"


def imported(source: str, *paths: Path, **options) -> Imported:
    with_pool = options.pop("with_pool", False)
    read = read_label_tables if source == CROWD else None
    return import_gold(source, paths, ImportOptions(**options), with_pool=with_pool, read=read)


def faults(source: str, *paths: Path, **options) -> list[tuple[str, str]]:
    """(code, path) of all that is wrong."""
    return [(problem.code, problem.path) for problem in refused(imported, source, *paths, **options)]


# qrels

CRITERION = {"constants": {"criterion": "relevance"}}


def test_qrels_without_texts_name_the_response_by_its_id(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "\n1-1_1 0 R00000 3\n1-1_1\t0\tR00001\t0\r\n")
    assert imported("qrels", path, **CRITERION).rows == (
        GoldRow("1-1_1", "1-1", "relevance", 3, "qrels", response_id="R00000"),
        GoldRow("1-1_1", "1-1", "relevance", 0, "qrels", response_id="R00001"),
    )


def test_a_bank_gives_qrels_their_texts(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "1-1_1 0 R00000 3\n")
    (row,) = imported("qrels", path, bank={"R00000": " Cafe\u0301 "}, **CRITERION).rows
    assert (row.text_sha256, row.response_id) == (text_digest("Café"), "R00000")


def test_a_pool_gives_qrels_texts_and_the_run_that_tells_them_apart(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "1-1_1 0 R00000 3\n1-1_1 0 R00001 1\n")
    pool = Pool((pooled("R00000", "Yes.", "mill10", "mill9"), pooled("R00001", "Yes.", "harbor")), {}, ())
    rows = imported("qrels", path, pool=pool, **CRITERION).rows
    assert [row.run_id for row in rows] == ["mill9", "harbor"]
    matched, unmatched = match(rows, pool)
    assert ({key: group[0].grade for key, group in matched.items()}, unmatched) == (
        {("R00000", "relevance"): 3, ("R00001", "relevance"): 1},
        (),
    )


def test_every_fault_of_qrels_has_its_line(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "1-1_1 0 R0 x\n1-1_1 0 R1\n1-1_1 0 R2 1\n1-1_1 0 R2 2\n")
    assert faults("qrels", path, **CRITERION) == [
        ("wrong_grade", "line 1"),
        ("wrong_columns", "line 2"),
        ("duplicate_row", "line 4"),
    ]


def test_an_id_without_a_text_is_named_with_its_line(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "\n1-1_1 0 R0 1\n1-1_1 0 R1 1\n")
    assert faults("qrels", path, bank={"R0": "a"}, **CRITERION) == [("not_in_bank", "line 3: $.response_id")]
    pool = Pool((pooled("R0", "a", "x"), pooled("R1", "b", "x", turn_id="1-1_2")), {}, ())
    assert faults("qrels", path, pool=pool, **CRITERION) == [("not_in_pool", "line 3: $.response_id")]


def test_qrels_need_a_criterion(tmp_path: Path) -> None:
    assert faults("qrels", put(tmp_path / "q.qrel", "1-1_1 0 R0 1\n")) == [("missing_field", "line 1: $.criterion")]


def test_a_text_with_two_ids_in_a_turn_has_a_second_assessor(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "1-1_1 0 R0 1\n1-1_1 0 R1 3\n1-1_1 0 R2 0\n1-1_2 0 R0 1\n")
    done = imported("qrels", path, bank={"R0": "a", "R1": " a", "R2": "a "}, **CRITERION)
    assert [(row.turn_id, row.grade, row.assessor) for row in done.rows] == [
        ("1-1_1", 1, "qrels"),
        ("1-1_1", 3, "qrels#2"),
        ("1-1_1", 0, "qrels#3"),
        ("1-1_2", 1, "qrels"),
    ]
    assert any("2 grades are of texts that already have" in note for note in done.notes)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x1f\x8bnonsense", "unreadable_file"),
        (b"x" * 500_000, "wrong_columns"),
    ],
)
def test_bytes_that_are_no_qrels_are_a_fault(tmp_path: Path, content: bytes, code: str) -> None:
    assert [found for found, _ in faults("qrels", put(tmp_path / "q", content), **CRITERION)] == [code]


def test_a_missing_file_and_a_faulty_one_are_reported_together(tmp_path: Path) -> None:
    found = faults("qrels", tmp_path / "none", put(tmp_path / "q", "1 0 R0\n"), **CRITERION)
    assert [code for code, _ in found] == ["unreadable_file", "wrong_columns"]


@pytest.mark.parametrize("source", GOLD_SOURCES)
def test_a_folder_or_a_missing_file_is_an_input_error_of_every_source(tmp_path: Path, source: str) -> None:
    for path in (tmp_path, tmp_path / "none"):
        assert faults(source, path, **({} if source == "cast-regin" else CRITERION))


# plans and options


def test_a_plan_gives_probability_stratum_text_and_run(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "1-1_1 0 R0 1\n1-1_1 0 R1 1\n")
    planned = PlanRow("1-1_1", "1-1", "R0", text_digest("a"), ("x", "y"), ("relevance",), 0.25, "drawn")
    problems = refused(imported, "qrels", path, plan={("1-1_1", "R0"): planned}, **CRITERION)
    assert [(p.code, p.path) for p in problems] == [("not_in_plan", "line 2: $.response_id")]
    put(tmp_path / "q.qrel", "1-1_1 0 R0 1\n")
    unnamed = {"constants": {"criterion": "relevanc"}}
    assert faults("qrels", path, plan={("1-1_1", "R0"): planned}, **unnamed) == [("not_in_plan", "line 1: $.criterion")]
    (row,) = imported("qrels", path, plan={("1-1_1", "R0"): planned}, **CRITERION).rows
    assert (row.inclusion_probability, row.stratum) == (0.25, "drawn")
    assert (row.text_sha256, row.run_id) == (text_digest("a"), "x")


def test_a_plan_that_is_not_finished_is_said(tmp_path: Path) -> None:
    """Of 3 responses planned under relevance 1 has a grade; the criterion that nobody graded yet is no part of it."""
    path = put(tmp_path / "q.qrel", "1-1_1 0 R0 1\n")
    plan = {
        ("1-1_1", key): PlanRow("1-1_1", "1-1", key, text_digest(key), ("x",), ("novelty", "relevance"), 0.25, "drawn")
        for key in ("R0", "R1", "R2")
    }
    said = "2 of 3 planned responses without a grade: inclusion probabilities are those of the finished plan"
    assert [said in note for note in imported("qrels", path, plan=plan, **CRITERION).notes].count(True) == 1
    put(tmp_path / "q.qrel", "".join(f"1-1_1 0 {key} 1\n" for key in ("R0", "R1", "R2")))
    assert not any(said[6:] in note for note in imported("qrels", path, plan=plan, **CRITERION).notes)


def test_options_fill_in_what_the_file_does_not_say(tmp_path: Path) -> None:
    constants = {"criterion": "c", "assessor": "nist", "made": "postedit", "inclusion_probability": 0.5}
    (row,) = imported("qrels", put(tmp_path / "q", "1_1 0 R0 1\n"), constants=constants).rows
    assert (row.criterion, row.assessor, row.made, row.inclusion_probability) == ("c", "nist", "postedit", 0.5)


@pytest.mark.parametrize(
    ("field", "value"), [("inclusion_probability", 1.5), ("made", "guess"), ("assessor", "\ud800")]
)
def test_an_option_that_no_row_may_have_is_a_fault(tmp_path: Path, field: str, value: object) -> None:
    path = put(tmp_path / "q", "1_1 0 R0 1\n")
    assert faults("qrels", path, constants={"criterion": "c", field: value}) == [("wrong_value", f"line 1: $.{field}")]


@pytest.mark.parametrize("content", ['{"R0": 1}', '{"R0": "a\\u0000"}', '{"R0": "\\ud800"}'])
def test_what_is_no_bank_is_an_input_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match="not usable as a response bank") as caught:
        read_bank(put(tmp_path / "bank.json", content))
    assert caught.value.problems


# csv

TABLE = "turn_id,response_id,criterion,grade,assessor\n1-1_1,R0,naturalness,3,ann\n1-1_2,R1,naturalness,0,bob\n"
ROWS = (
    GoldRow("1-1_1", "1-1", "naturalness", 3, "ann", response_id="R0"),
    GoldRow("1-1_2", "1-1", "naturalness", 0, "bob", response_id="R1"),
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TABLE),
        ("t.csv", "\ufeff" + TABLE.replace("\n", "\r\n")),
        ("t.csv", TABLE.replace("\n", "\r")),
        ("t.csv", TABLE.replace(",", ";")),
        ("t.txt", TABLE.replace(",", "\t")),
        ("t.tsv", TABLE.replace(",", "\t")),
        ("t.csv.gz", gzip.compress(TABLE.encode(), mtime=0)),
        ("t.csv", "\n" + TABLE.replace("ann", '" ann "') + "\n,,,,\n"),
    ],
)
def test_a_table_is_read_however_it_was_saved(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert imported("csv", put(tmp_path / name, content)).rows == ROWS


def test_columns_are_mapped_and_constants_fill_in(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", 'Turn,Answer,Mark,P\n1-1_1,"Yes, ""by train"".\nReally.",2,0.5\n')
    columns = {"turn_id": "Turn", "text": "Answer", "grade": "Mark", "inclusion_probability": "P"}
    done = imported(
        "csv", path, columns=columns, constants={"criterion": "c", "assessor": "a", **typed({"split": "dev"})}
    )
    read = text_digest('Yes, "by train".\nReally.')
    assert done.rows == (GoldRow("1-1_1", "1-1", "c", 2, "a", None, read, inclusion_probability=0.5, split="dev"),)


@pytest.mark.parametrize(("cell", "comment"), [
    ("why", "why"),
    ("", None),
    # As a sheet keeps a comment from being a formula, and as it was written.
    ("\\=why?", "=why?"),
    ("\\ @x", " @x"),
    ("\\n", "\\n"),
])  # fmt: skip
def test_a_comment_goes_along_with_its_grade(tmp_path: Path, cell: str, comment: str | None) -> None:
    table = TABLE.replace("assessor", "assessor,comment").replace("ann", f"ann,{cell}").replace("bob", "bob,")
    path = put(tmp_path / "t.csv", table)
    assert imported("csv", path).rows[0].comment == (comment and comment.strip())


def test_columns_that_are_not_used_are_named(tmp_path: Path) -> None:
    path = put(
        tmp_path / "t.csv", TABLE.replace("assessor", "assessor,note").replace("ann", "ann,!").replace("bob", "bob,!")
    )
    assert imported("csv", path).notes == (f"{path}: columns not used: 'note'", BLIND)


BLIND = "taken as given blind; --made says otherwise"


def test_grades_of_unstated_origin_are_taken_as_given_blind_and_that_is_said(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", TABLE)
    crowd = put(tmp_path / "c.csv", "task,worker,label\n1-1_1/R0,w,3\n")
    qrels = put(tmp_path / "q.txt", "1-1_1 0 R0 3\n")
    for source, path in (("csv", table), ("crowd", crowd), ("qrels", qrels)):
        said = imported(source, path, constants={"criterion": "c"})
        assert said.notes == (BLIND,)
        assert {row.made for row in said.rows} == {"blind"}
        assert imported(source, path, constants={"criterion": "c", "made": "postedit"}).notes == ()
    stated = put(
        tmp_path / "s.csv",
        TABLE.replace("assessor", "assessor,made").replace("ann", "ann,blind").replace("bob", "bob,"),
    )
    assert imported("csv", stated).notes == (BLIND,)
    both = stated.read_text(encoding="utf-8").replace("bob,", "bob,postedit")
    assert imported("csv", put(tmp_path / "b.csv", both)).notes == ()


@pytest.mark.parametrize("probability", ["1e-310", "0.9e-9", "0", "nan"])
def test_a_probability_too_small_to_weigh_with_is_a_fault(tmp_path: Path, probability: str) -> None:
    path = put(tmp_path / "t.csv", TABLE)
    said = faults("csv", path, constants=typed({"inclusion_probability": probability}))
    assert [code for code, _ in said] == ["wrong_value", "wrong_value"]
    assert imported("csv", path, constants=typed({"inclusion_probability": "1e-9"})).rows


def test_every_faulty_row_of_a_table_is_named(tmp_path: Path) -> None:
    rows = [
        "1-1_1,R0,c,three,ann",
        "1-1_1,R1,c,3",
        "1-1_1,,c,3,ann",
        '1-1_1,"R\n2",c,2.5,ann',
        ",R3,c,1,",
        "1-1_1,R4,c,1,ann",
        "1-1_1,R4,c,2,ann",
    ]
    assert faults("csv", put(tmp_path / "t.csv", "\n".join([TABLE.partition("\n")[0], *rows]))) == [
        ("wrong_value", "line 2: $.grade"),
        ("wrong_columns", "line 3"),
        ("missing_field", "line 4: $"),
        ("wrong_value", "line 5: $.grade"),
        ("missing_field", "line 7: $.assessor"),
        ("missing_field", "line 7: $.turn_id"),
        ("duplicate_row", "line 9: $"),
    ]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("turn_id,turn_id\n1,2\n", ("repeated_column", "line 1")),
        ("turn_id,grade\n", ("empty_file", "line 1")),
        ('turn_id,grade\n1_1,"2\n1_2,3\n', ("not_a_table", "line 2")),
    ],
)
def test_what_is_no_table_is_a_fault(tmp_path: Path, content: str, fault: tuple[str, str]) -> None:
    assert faults("csv", put(tmp_path / "t.csv", content))[0] == fault


def test_a_cell_may_hold_a_passage_of_any_length_and_a_grade_may_not(tmp_path: Path) -> None:
    head = "turn_id,response_id,criterion,assessor,grade,passage\n"
    long = put(tmp_path / "long.csv", f"{head}1_1,R1,relevance,ann,2,{'owl ' * 50_000}\n")
    assert [row.grade for row in imported("csv", long).rows] == [2]
    assert faults("csv", put(tmp_path / "t.csv", f"{head}1_1,R1,relevance,ann,{'9' * 200_000},\n")) == [
        ("wrong_value", "line 2: $.grade")
    ]


def test_a_mapped_column_must_be_there_and_a_field_must_exist(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", TABLE)
    assert faults("csv", path, columns={"grade": "Mark"}) == [("missing_column", "line 1")]
    with pytest.raises(UsageError, match="'mark' is no field"):
        imported("csv", path, columns={"mark": "grade"})


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("turn_id,response_id,criterion,assessor", "no column of grade; found 'turn_id', 'response_id', "),
        ("TURN_ID,response_id,criterion,assessor,Grade", "so give --column turn_id=TURN_ID --column grade=Grade"),
        ("WorkerId,Input.turn_id,Input.response_id,Answer.relevance", "are read by `judge gold import crowd` and"),
        ("1-1_1 0 R0 3", "`judge gold import qrels` reads qrels"),
    ],
)
def test_a_table_that_lacks_columns_has_one_problem(tmp_path: Path, header: str, told: str) -> None:
    path = put(tmp_path / "t.csv", "\n".join([header, *["x" + ",x" * header.count(",")] * 39]))
    (problem,) = refused(imported, "csv", path)
    assert problem.code == "missing_column"
    assert told in problem.message


@pytest.mark.parametrize("source", ["csv", "crowd"])
def test_whole_floats_are_grades_where_their_integers_are(tmp_path: Path, source: str) -> None:
    rows = ("2.0", "0.00", "1", "-3.0", "1.5", "7.0")
    lines = (f"1-1_1,R{place},relevance,w,{grade}" for place, grade in enumerate(rows))
    path = put(tmp_path / "t.csv", "\n".join(["turn_id,response_id,criterion,assessor,grade", *lines]))
    assert faults(source, path) == [("wrong_value", f"line {line}: $.grade") for line in (5, 6, 7)]
    path.write_text("\n".join(path.read_text().splitlines()[:4]))
    assert [row.grade for row in imported(source, path).rows] == [2, 0, 1]
    # What the user says goes first.
    meanings = GradeMeanings({"2.0": 3})
    assert [row.grade for row in imported(source, path, meanings=meanings).rows] == [3, 0, 1]


# crowd


def test_each_label_of_a_worker_is_a_row(tmp_path: Path) -> None:
    path = put(tmp_path / "c.csv", "task,worker,label\n1-1_1/R0,w1,2\n1-1_1/R0,w2,0\n")
    assert imported("crowd", path, **CRITERION).rows == (
        GoldRow("1-1_1", "1-1", "relevance", 2, "w1", response_id="R0"),
        GoldRow("1-1_1", "1-1", "relevance", 0, "w2", response_id="R0"),
    )


def label_studio(*tasks: Sequence[tuple[str, int, bool]]) -> str:
    """An export: for each task its annotations by who made them, with the grade, and whether it is the ground truth."""
    entries = []
    for number, annotations in enumerate(tasks, start=1):
        made = [
            {
                "id": 10 * number + place, "completed_by": {"email": who}, "ground_truth": truth,
                "result": [
                    {"from_name": "relevance", "type": "choices", "value": {"choices": [str(grade)]}},
                    {"from_name": "comment", "type": "textarea", "value": {"text": [f"{who} on {number}"]}},
                ],
            }
            for place, (who, grade, truth) in enumerate(annotations)
        ]  # fmt: skip
        entries.append(
            # What was shown may be called as the mark is.
            {"id": number, "annotations": made,
             "data": {"turn_id": "1-1_1", "response_id": f"R{number}", "ground_truth": "true"}}
        )  # fmt: skip
    return json.dumps(entries)


def test_the_ground_truth_of_label_studio_is_the_adjudication(tmp_path: Path) -> None:
    export = label_studio(
        # A reviewer, who does nothing else, decides between two.
        [("ann", 0, False), ("bob", 2, False), ("rev", 1, True)],
        # One of two labels is marked: it stays what bob gave.
        [("ann", 0, False), ("bob", 3, True)],
        # Ann gave another label before.
        [("ann", 1, False), ("ann", 2, True)],
        [("ann", 3, False), ("bob", 3, False)],
    )
    done = imported("crowd", put(tmp_path / "p.json", export), **CRITERION)
    assert [(row.response_id, row.assessor, row.grade, row.made, row.comment) for row in done.rows] == [
        ("R1", "ann", 0, "blind", "ann on 1"),
        ("R1", "bob", 2, "blind", "bob on 1"),
        ("R1", "rev", 1, "adjudicated", "rev on 1"),
        ("R2", "ann", 0, "blind", "ann on 2"),
        ("R2", "bob", 3, "blind", "bob on 2"),
        ("R2", "bob (ground truth)", 3, "adjudicated", None),
        ("R3", "ann", 1, "blind", "ann on 3"),
        ("R3", "ann (ground truth)", 2, "adjudicated", "ann on 3"),
        ("R4", "ann", 3, "blind", "ann on 4"),
        ("R4", "bob", 3, "blind", "bob on 4"),
    ]
    assert f"{tmp_path / 'p.json'}: 3 labels marked as ground truth: adjudicated" in done.notes
    # Without a mark nothing is adjudicated.
    plain = imported("crowd", put(tmp_path / "q.json", label_studio([("ann", 0, False)])), **CRITERION)
    assert [row.made for row in plain.rows] == ["blind"]


@pytest.mark.parametrize(("name", "content"), [
    ("c.csv", 'task,worker,label,comment\n1-1_1/R0,w1,2,"why, so"\n1-1_1/R0,w2,0,\n'),
    ("ls.csv", 'turn_id,response_id,relevance,comment,annotator,annotation_id\n'
               '1-1_1,R0,2,"why, so",w1,1\n1-1_1,R0,0,,w2,2\n'),
    ("mturk.csv", 'WorkerId,Input.turn_id,Input.response_id,Answer.relevance,Answer.comment\n'
                  'w1,1-1_1,R0,2,"why, so"\nw2,1-1_1,R0,0,\n'),
])  # fmt: skip
def test_a_workers_comment_goes_along(tmp_path: Path, name: str, content: str) -> None:
    rows = imported("crowd", put(tmp_path / name, content), **CRITERION).rows
    assert [(row.assessor, row.grade, row.comment) for row in rows] == [("w1", 2, "why, so"), ("w2", 0, None)]


def test_a_comment_beside_a_column_for_each_worker_is_nobodys(tmp_path: Path) -> None:
    path = put(tmp_path / "w.csv", "task,w1,w2,comment\n1-1_1/R0,2,0,why\n")
    read = partial(read_label_tables, workers=("w1", "w2"))
    rows = import_gold(CROWD, [path], ImportOptions(**CRITERION), read=read).rows
    assert [(row.assessor, row.comment) for row in rows] == [("w1", None), ("w2", None)]


def test_a_crowds_task_may_be_mapped(tmp_path: Path) -> None:
    path = put(tmp_path / "c.tsv", "turn\ttask\tworker\tlabel\n1-1_1\tR0\tw1\t2\n")
    (row,) = imported("crowd", path, columns={"turn_id": "turn", "response_id": "task"}, **CRITERION).rows
    assert (row.turn_id, row.response_id) == ("1-1_1", "R0")


def test_a_crowds_faults_are_named(tmp_path: Path) -> None:
    path = put(tmp_path / "c.csv", "task,worker,label\nR0,w1,2\n1_1/R0,,2\n1_1/R0,w1,good\n1_1/R1,w1,1\n1_1/R1,w1,1\n")
    assert faults("crowd", path, **CRITERION) == [
        ("wrong_task", "line 2"),
        ("missing_field", "line 3: $.assessor"),
        ("wrong_value", "line 4: $.grade"),
        ("duplicate_row", "line 6: $"),
    ]
    assert faults("crowd", put(tmp_path / "d.csv", "item,worker,label\n1,2,3\n"), **CRITERION) == [
        ("missing_column", "line 1")
    ]


# begin


def begin(*rows: tuple[str, str, str, str, str]) -> str:
    lines = (
        f"{model}\t{source}\t{knowledge}\thi\t{response}\t{label}\r\n"
        for model, source, knowledge, response, label in rows
    )
    return BEGIN_HEADER + "".join(lines)


FULL, NOT = "Fully attributable", "Not fully attributable"


def test_begin_rows_are_turns_and_share_a_topic_by_their_knowledge(tmp_path: Path) -> None:
    path = put(
        tmp_path / "b.tsv",
        begin(
            ("t5", "wow", 'K "one"', "A", FULL),
            ("gpt2", "wow", "K two", '"B', NOT),
            ("doha", "wow", 'K "one" ', "Hm.", "Generic"),
            ("gpt2", "wow", 'K "one"', "A", NOT),
        ),
    )
    done = imported("begin", path, with_pool=True)
    assert [(r.turn_id, r.topic_id, r.run_id, r.grade, r.criterion, r.assessor) for r in done.rows] == [
        ("wow-0001_1", "wow-0001", "t5", 1, "groundedness", "begin"),
        ("wow-0002_1", "wow-0002", "gpt2", 0, "groundedness", "begin"),
        ("wow-0001_3", "wow-0001", "gpt2", 0, "groundedness", "begin"),
    ]
    assert done.notes == ("1 generic responses are left out",)
    assert [passage.text for passage in done.pool.passages.values()] == ['K "one"', "K two"]
    assert [len(response.passages) for response in done.pool.responses] == [1, 1, 1]
    assert read_pool(pool_jsonl(done.pool), passages_jsonl(done.pool), "b") == done.pool
    matched, unmatched = match(done.rows, done.pool)
    assert (len(matched), unmatched) == (3, ())


def test_generic_responses_may_count_as_not_attributable(tmp_path: Path) -> None:
    path = put(tmp_path / "b.tsv", begin(("t5", "wow", "K", "A", FULL), ("t5", "wow", "K", "Hm.", "Generic")))
    done = imported("begin", path, generic_as_zero=True)
    assert [(row.turn_id, row.grade) for row in done.rows] == [("wow-0001_1", 1), ("wow-0001_2", 0)]
    assert done.notes == ("1 generic responses are taken as grade 0",)


def test_begins_faults_are_named(tmp_path: Path) -> None:
    rows = [("t5", "wow", "", "A", FULL), ("t5", "wow", "K", "A\x00", FULL), ("t5", "wow", "K", "A", "fully")]
    assert faults("begin", put(tmp_path / "b.tsv", begin(*rows))) == [
        ("empty_cell", "line 2"),
        ("wrong_value", "line 3"),
        ("wrong_value", "line 4"),
    ]
    assert faults("begin", put(tmp_path / "c.tsv", "a\tb\n1\t2\n")) == [("missing_column", "line 1")]


def test_a_source_in_which_nothing_is_left_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no grade to import; 1 generic responses are left out"):
        imported("begin", put(tmp_path / "b.tsv", begin(("t5", "wow", "K", "Hm.", "Generic"))))


def test_a_source_without_texts_has_no_pool(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="qrels has no texts to make a pool of"):
        imported("qrels", put(tmp_path / "q", "1_1 0 R0 1\n"), with_pool=True, **CRITERION)


# CAsT-ReGIn


def cast(folder: Path, turns: object, bank: object = None) -> Path:
    put(folder / "qrels/response_judgments.json", json.dumps(turns))
    put(folder / "response_bank.json", json.dumps({"R00000": " Yes.", "R00001": "Yes. "} if bank is None else bank))
    return folder


def judged(item_id: str, **grades: object) -> dict[str, object]:
    # Not in the order of the criteria, as in the released file.
    first = {"Conciseness": 1, "Response ID": item_id, "Naturalness": 2}
    return {**first, "Response Text": "other", "Relevance": 3, **grades}


def test_cast_regin_grades_go_by_the_names_of_their_keys_and_texts_by_the_bank(tmp_path: Path) -> None:
    folder = cast(tmp_path, {"132_1-1": {"Responses": [judged("R00000")]}})
    rows = imported("cast-regin", folder).rows
    assert [(row.criterion, row.grade) for row in rows] == [("relevance", 3), ("naturalness", 2), ("conciseness", 1)]
    assert {(r.turn_id, r.topic_id, r.assessor, r.response_id, r.text_sha256) for r in rows} == {
        ("132_1-1", "132", "crowd", "R00000", text_digest("Yes."))
    }
    assert imported("cast-regin", folder / "qrels/response_judgments.json").rows == rows


def test_cast_regin_can_be_read_for_one_criterion(tmp_path: Path) -> None:
    folder = cast(tmp_path, {"132_1-1": {"Responses": [judged("R00000")]}})
    assert [row.grade for row in imported("cast-regin", folder, constants={"criterion": "naturalness"}).rows] == [2]
    with pytest.raises(UsageError, match="no grades of 'charm'"):
        imported("cast-regin", folder, constants={"criterion": "charm"})


def test_cast_regins_second_grades_of_a_text_are_a_second_assessors(tmp_path: Path) -> None:
    folder = cast(tmp_path, {"132_1-1": {"Responses": [judged("R00000"), judged("R00001", Relevance=0)]}})
    done = imported("cast-regin", folder, constants={"criterion": "relevance"}, with_pool=True)
    assert [(row.assessor, row.grade) for row in done.rows] == [("crowd", 3), ("crowd#2", 0)]
    assert len(done.pool.responses) == 1
    matched, unmatched = match(done.rows, done.pool)
    assert ([len(group) for group in matched.values()], unmatched) == ([2], ())


def test_cast_regins_faults_are_named(tmp_path: Path) -> None:
    turns = {
        "132_1-1": {"Responses": [judged("Q2173"), judged("R00000", Naturalness="2"), {"Response ID": 7}]},
        "132_1-3": [],
    }
    assert faults("cast-regin", cast(tmp_path, turns)) == [
        ("not_in_bank", "$['132_1-1'].Responses[0]"),
        ("wrong_value", "$['132_1-1'].Responses[1]: $.grade"),
        ("wrong_type", "$['132_1-1'].Responses[2]"),
        ("wrong_type", "$['132_1-3']"),
    ]
    assert [code for code, _ in faults("cast-regin", cast(tmp_path, [], []))] == ["wrong_type", "not_a_bank"]


# the real files


def test_the_real_cast_regin(shared: Path) -> None:
    folder = shared / "cast-regin/response_evaluation"
    done = imported("cast-regin", folder, with_pool=True)
    assert done.pool is not None
    assert Counter(row.criterion for row in done.rows) == dict.fromkeys(
        ("relevance", "naturalness", "conciseness"), 1626
    )
    assert Counter(row.assessor for row in done.rows) == {"crowd": 4878 - 129, "crowd#2": 129}
    assert parse_gold(gold_jsonl(done.rows), "g") == done.rows
    assert match(done.rows, done.pool)[1] == ()
    bank = read_bank(folder / "response_bank.json")
    for name in CAST_CRITERIA:
        options = {"bank": bank, "constants": {"criterion": name, "assessor": "crowd"}}
        assert imported("qrels", folder / f"qrels/response_{name}.qrel", **options).rows == tuple(
            row for row in done.rows if row.criterion == name
        )


def test_the_real_cast_question_qrels_name_what_the_bank_lacks(shared: Path) -> None:
    folder = shared / "cast-regin/clarifying_question_evaluation"
    path, bank = folder / "qrels/question_novelty.qrel", read_bank(folder / "question_bank.json")
    (problem,) = refused(imported, "qrels", path, bank=bank, constants={"criterion": "novelty"})
    assert problem.message == "'Q2173' has no text in the bank"


def test_the_real_begin(shared: Path) -> None:
    done = imported("begin", *sorted((shared / "begin").glob("*.tsv")), with_pool=True)
    # WoW 180 and 250, CMU 59 and 278, and 79 generic ones left out.
    assert Counter(row.grade for row in done.rows) == {1: 180 + 59, 0: 250 + 278}
    assert done.notes == ("79 generic responses are left out",)
    assert len(done.pool.responses) == len(done.rows)
    assert match(done.rows, done.pool)[1] == ()
    assert len({row.topic_id for row in done.rows if row.turn_id.startswith("wow")}) == 333


def test_levels_mean_their_grades_by_name_and_by_description() -> None:
    words = level_words("groundedness", (0, 1, 2, 3), bundled_criteria())
    names = ("Not grounded", "WEAKLY grounded.", " Mostly  grounded", "fully grounded")
    assert [words[folded(name)] for name in names] == [0, 1, 2, 3]
    description = "Not grounded. It takes nothing from the passages beyond names and the subject."
    assert words[folded(description)] == 0


@pytest.mark.parametrize("scale", [(1, 2, 3, 4), (0, 1, 2), (0, 1, 2, 3, 4)])
def test_levels_of_another_scale_mean_nothing(scale: tuple[int, ...]) -> None:
    assert folded("Mostly grounded") not in level_words("groundedness", scale, bundled_criteria())


def test_another_criterion_means_nothing() -> None:
    assert level_words("novelty", (0, 1, 2, 3), bundled_criteria()) == {}


# Values that stand for no label


@pytest.mark.parametrize(
    ("source", "head"), [("csv", "assessor,turn_id,response_id,grade"), (CROWD, "worker,turn_id,response_id,label")]
)
def test_values_that_stand_for_no_label_are_left_out_of_tables(tmp_path: Path, source: str, head: str) -> None:
    labels = ("NA", "NA", "-1", "99", "2")
    rows = "".join(f"ann,1-1_1,R{n},{label}\n" for n, label in enumerate(labels))
    path = put(tmp_path / "t.csv", f"{head}\n{rows}")
    found = imported(source, path, constants={"criterion": "groundedness"})
    assert [(row.response_id, row.grade) for row in found.rows] == [("R4", 2)]
    assert "4 values left out, which stand for no label: 'NA' (2), '-1' (1), '99' (1)" in found.notes
    # Of a criterion without a prompt no scale is known, so that a number is a grade.
    found = imported(source, path, constants={"criterion": "wit"})
    assert [row.grade for row in found.rows] == [-1, 99, 2]
    stated = GradeMeanings(missing=["99", "2"])
    found = imported(source, path, constants={"criterion": "wit"}, meanings=stated)
    assert [row.grade for row in found.rows] == [-1]


def test_minus_one_in_qrels_is_a_grade(tmp_path: Path) -> None:
    path = put(tmp_path / "q.qrel", "1-1_1 0 R1 -1\n")
    assert faults("qrels", path, constants={"criterion": "groundedness"}) == [("wrong_value", "line 1: $.grade")]


def test_a_table_of_semicolons_may_have_commas_for_points(tmp_path: Path) -> None:
    head = "sep=;\nassessor;turn_id;response_id;criterion;grade;inclusion_probability;note;note"
    path = put(tmp_path / "t.csv", f"{head}\nann;1-1_1;R1;groundedness;2,0;0,25;x;y\n")
    (row,) = imported("csv", path).rows
    assert (row.grade, row.inclusion_probability, row.response_id) == (2, 0.25, "R1")
