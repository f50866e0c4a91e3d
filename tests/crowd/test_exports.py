"""Tables of labels as platforms export them, read without editing."""

import csv
import io
import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from judge.crowd.labels import Item
from judge.crowd.layout import LabelProblems, LabelTable, Layout
from judge.crowd.sheets import LabelSheet, text_of
from judge.crowd.tables import KINDS
from judge.gold.draft import ImportOptions
from judge.gold.sources import import_gold
from judge.jobs.gold import read_label_tables
from tests.conftest import put
from tests.crowd import world
from tests.crowd.world import SCALE, rows

ONE = {"groundedness": SCALE}
LEVELS = {"not grounded": 0, "mostly grounded": 2}
read = partial(world.read, scales=ONE)
warned = partial(world.warned, scales=ONE)
faults = partial(world.faults, scales=ONE)


def problem_of(path: Path, **options) -> tuple[str, str]:
    """Code and message of the one problem."""
    (problem,) = world.problems_of(path, **{"scales": ONE} | options)
    return problem.code, problem.message


def table(header: Sequence[str], rows: Sequence[Sequence[object]], delimiter: str = ",") -> str:
    """A table as a platform writes it, with quotation marks where a cell needs them."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([header, *rows])
    return text.getvalue()


LABELED = [("A1", "1_1", "R1", 2), ("A2", "1_1", "R1", 0)]
"""What every export below says."""

# MTurk. The columns of batch results before `Input.` and `Answer.`, in their order.
HEAD = ("HITId", "Title", "AssignmentId", "WorkerId", "AssignmentStatus", "WorkTimeInSeconds")


def batch(answers: Sequence[str], *given: Sequence[object], inputs: Sequence[str] = ("turn_id", "response_id")) -> str:
    """Batch results of two workers on R1 of turn 1_1."""
    named = (*(f"Input.{name}" for name in inputs), *(f"Answer.{name}" for name in answers))
    header = [*HEAD, *named, "Approve", "Reject"]
    lines = [
        ["3H", "Judge it, please", f"3A{n}", f"A{n}", "Approved", 60, "1_1", "R1", *cells, "", ""]
        for n, cells in enumerate(given, start=1)
    ]
    return table(header, lines)


@pytest.mark.parametrize(
    "content",
    [
        # A text field or <select> called after the criterion, and one with a name of its own beside a comment.
        batch(["groundedness"], ["2"], ["0"]),
        batch(["grade", "comment"], ["2", "fine, 3 of 3"], ["0", ""]),
        # crowd-classifier.
        batch(["label.label"], ["Mostly grounded"], ["not grounded."]),
        batch(["groundedness.label", "sure.label"], ["Mostly grounded", "yes"], ["Not  grounded", "no"]),
        # <input type="radio" name="grade" value="2">: a column for each value.
        batch(["grade.0", "grade.2", "grade.3"], ["false", "true", "false"], ["true", "false", "false"]),
        batch(["grade.Mostly grounded", "grade.Not grounded"], ["TRUE", "FALSE"], ["FALSE", "TRUE"]),
        # crowd-form: all answers as JSON in one column.
        batch(["taskAnswers"], ['[{"grade":{"label":"Mostly grounded"}}]'], ['[{"grade":{"label":"Not grounded"}}]']),
        batch(["taskAnswers"], ['[{"grade":{"0":false,"2":true},"why":"a"}]'], ['[{"grade":{"0":true,"2":false}}]']),
        batch(["taskAnswers"], ['[{"grade":2,"more":{"a":[1,2]}}]'], ['[{"grade":"0"}]']),
    ],
)  # fmt: skip
def test_mturk_answers_in_every_form(tmp_path: Path, content: str) -> None:
    labels = read(put(tmp_path / "Batch_1_batch_results.csv", content), words=lambda *_: LEVELS)["groundedness"]
    assert rows(labels) == LABELED
    assert labels.seconds.tolist() == [60.0, 60.0]


@pytest.mark.parametrize(
    ("answers", "given"),
    [
        (["some question"], (["2"], ["0"])),
        (["category.label", "sure.label"], (["2", "yes"], ["0", "no"])),
        (["rating.0", "rating.2"], (["false", "true"], ["true", "false"])),
    ],
)
def test_what_a_requester_calls_otherwise_is_named(
    tmp_path: Path, answers: list[str], given: tuple[list[str], list[str]]
) -> None:
    path = put(tmp_path / "b.csv", batch(answers, *given))
    code, said = problem_of(path)
    assert code == "missing_column"
    found = ", ".join(repr(f"Answer.{name}") for name in answers)
    named = answers[0].partition(".")[0]
    # A single answer is the one that is meant; of several the one whose name is near.
    option = {"some question": "'label=some question'", "rating": "label=rating"}.get(named, "label=NAME")
    assert said.endswith(f"the answers are {found}: name it, as in --column {option}")
    assert rows(read(path, columns={"label": f"Answer.{answers[0]}"})["groundedness"]) == LABELED
    assert rows(read(path, columns={"label": named})["groundedness"]) == LABELED


def test_of_several_chosen_buttons_none_is_the_label(tmp_path: Path) -> None:
    path = put(tmp_path / "b.csv", batch(["grade.0", "grade.2"], ["true", "true"], ["false", "false"]))
    assert faults(path) == [("wrong_label", "line 2: Answer.grade.0")]


def test_an_answer_that_nobody_chose_and_one_that_cannot_be_judged_have_no_vote(tmp_path: Path) -> None:
    names = ["grade.0", "grade.2", "grade.unable"]
    given = [["false", "false", "false"], ["false", "false", "true"], ["false", "true", "false"]]
    labels, warnings = warned(put(tmp_path / "b.csv", batch(names, *given)))
    assert rows(labels["groundedness"]) == [("A3", "1_1", "R1", 2)]
    assert [(problem.code, problem.path, problem.message) for problem in warnings] == [
        ("not_labeled", "line 2: Answer.grade.0", "1 row left out, label is empty; this is the first"),
        ("unable_to_judge", "line 3: Answer.grade.0", "1 row left out, unable to judge; this is the first"),
    ]


def test_packed_answers_without_end_are_a_problem(tmp_path: Path) -> None:
    given = [[json.dumps([{f"q{n}_{i}": 1 for i in range(600)}])] for n in range(2)]
    missing, endless = world.problems_of(put(tmp_path / "b.csv", batch(["taskAnswers"], *given)), scales=ONE)
    assert (missing.code, endless.code, endless.path) == ("missing_column", "not_json", "line 3: Answer.taskAnswers")
    assert "more than 1,000 answers" in endless.message
    path = put(tmp_path / "b.csv", batch(["taskAnswers", "groundedness"], ["[{", "1"], ["[" * 100_000, "1"]))
    assert faults(path) == [("not_json", f"line {line}: Answer.taskAnswers") for line in (2, 3)]


def test_several_criteria_and_several_responses_of_a_form(tmp_path: Path) -> None:
    answers = ["a_1.0", "a_1.1", "a_2.0", "a_2.1", "b_1", "b_2"]
    inputs = ("turn_id", "response_id_1", "response_id_2")
    header = [*HEAD, *(f"Input.{name}" for name in inputs), *(f"Answer.{name}" for name in answers)]
    line = ["H", "T", "A", "w", "Submitted", 8, "1_1", "R1", "R2", "false", "true", "true", "false", 3, 2]
    labels = read(put(tmp_path / "b.csv", table(header, [line])), scales={"a": (0, 1), "b": SCALE})
    assert {name: [row[2:] for row in rows(of_criterion)] for name, of_criterion in labels.items()} == {
        "a": [("R1", 1), ("R2", 0)],
        "b": [("R1", 3), ("R2", 2)],
    }
    assert labels["a"].seconds.tolist() == [2.0, 2.0]


def test_columns_of_a_platform_can_be_named(tmp_path: Path) -> None:
    content = batch(["x", "y"], ["3", "2"], ["3", "0"], inputs=("t", "doc")).replace("WorkerId", "WorkerId,Who")
    content = content.replace(",A1,", ",,A1,").replace(",A2,", ",,A2,")
    path = put(tmp_path / "b.csv", content)
    columns = {"worker": "Who", "turn_id": "Input.t", "item_id": "Input.doc"}
    assert rows(read(path, columns={**columns, "label": "Answer.y"})["groundedness"]) == LABELED
    assert rows(read(path, columns={**columns, "label:groundedness": "y"})["groundedness"]) == LABELED
    for named, message in (
        (columns, "no answer is 'groundedness'; the answers are 'Answer.x', 'Answer.y'"),
        ({"label": "Answer.y"}, "no column Input.response_id, Input.turn_id"),
        ({**columns, "label": "Answer.z"}, "no column Answer.z"),
    ):
        code, said = problem_of(path, columns=named)
        assert code == "missing_column"
        assert message in said


def test_a_pool_knows_the_turns_of_an_export_too(tmp_path: Path) -> None:
    content = batch(["grade"], ["2"], ["0"]).replace("Input.turn_id", "Input.nr")
    assert rows(read(put(tmp_path / "b.csv", content), turns={"R1": "1_1"})["groundedness"]) == LABELED
    path = put(tmp_path / "b.csv", content.replace(",R1,", ",1_1/R1,").replace("response_id", "task"))
    assert rows(read(path)["groundedness"]) == LABELED


def test_an_export_without_answers_is_told_so_once(tmp_path: Path) -> None:
    code, said = problem_of(put(tmp_path / "b.csv", batch(["x"], ["2"], ["3"]).replace("Answer.x", "x")))
    assert (code, "the answers are none" in said) == ("missing_column", True)


def test_the_kind_of_a_table_can_be_said(tmp_path: Path) -> None:
    header = ["WorkerId", "turn_id", "response_id", "Answer.a", "label"]
    path = put(tmp_path / "t.csv", table(header, [["A1", "1_1", "R1", "x", 2], ["A2", "1_1", "R1", "y", 0]]))
    assert faults(path) == [("missing_column", "line 1")]
    assert rows(read(path, kind="long", columns={"worker": "WorkerId"})["groundedness"]) == LABELED


def test_a_task_may_name_its_criterion(tmp_path: Path) -> None:
    content = batch(["label"], ["2"], ["0"], inputs=("turn_id", "response_id"))
    content = content.replace("Input.turn_id", "Input.criterion,Input.turn_id").replace(",1_1,", ",groundedness,1_1,")
    path = put(tmp_path / "b.csv", content)
    assert rows(read(path, scales=SCALE)["groundedness"]) == LABELED
    assert rows(read(path, scales={**ONE, "relevance": SCALE}, criteria=["groundedness"])["groundedness"]) == LABELED


# Label Studio.


def annotation(number: int, who: object, results: dict[str, dict[str, object]], **more: object) -> dict[str, object]:
    made = [{"from_name": name, "to_name": "r", "type": "x", "value": value} for name, value in results.items()]
    return {"id": number, "completed_by": who, "result": made, "was_cancelled": False, "lead_time": 12.5, **more}


def test_label_studio_json(tmp_path: Path) -> None:
    data = {"turn_id": "1_1", "response_id": "R1", "text": "A text", "passages": [{"id": "p"}]}
    chosen = {"groundedness": {"choices": ["Mostly grounded"]}, "why": {"text": ["a"]}}
    made = [annotation(7, {"id": 3, "email": "A1"}, chosen), annotation(8, "A2", {"groundedness": {"rating": 0}})]
    task = {"id": 1, "data": data, "annotations": [*made, annotation(9, 5, {}, was_cancelled=True)], "predictions": []}
    path = put(tmp_path / "project-1.json", json.dumps([task]))
    labels, warnings = warned(path, words=lambda *_: LEVELS)
    assert rows(labels["groundedness"]) == LABELED
    assert labels["groundedness"].seconds.tolist() == [12.5, 12.5]
    assert [(problem.code, problem.path) for problem in warnings] == [
        ("row_left_out", "entry 1"),
        ("label_in_words", "entry 1, annotation 7: groundedness"),
    ]
    assert faults(path)[0] == ("wrong_label", "entry 1, annotation 7: groundedness")


def test_of_two_annotations_by_one_person_the_last_may_count(tmp_path: Path) -> None:
    data = {"turn_id": "1_1", "response_id": "R1"}
    made = [(12, "A1", 2), (8, "A2", 0), (9, "A1", 3)]
    annotations = [annotation(number, who, {"groundedness": {"rating": grade}}) for number, who, grade in made]
    path = put(tmp_path / "project-1.json", json.dumps([{"id": 1, "data": data, "annotations": annotations}]))
    code, said = problem_of(path)
    assert (code, faults(path)) == ("different_labels", [("different_labels", "entry 1, annotation 9: groundedness")])
    assert "but 2 at entry 1, annotation 12: groundedness of " in said and "--repeated last" in said
    labels, warnings = warned(path, last=True)
    assert rows(labels["groundedness"]) == [("A1", "1_1", "R1", 2), LABELED[1]]
    assert [problem.path for problem in warnings] == ["entry 1, annotation 9: groundedness"]
    # Without annotations the order of rows counts; what may be labeled again stays, and so do empty cells.
    lines = ("a,1_1,R1,2", "a,1_1,R1,3", "a,1_1,R1,", "b,1_1,R2,1", "b,1_1,R2,0")
    path = put(tmp_path / "t.csv", "\n".join(["worker,turn_id,response_id,label", *lines]))
    options = {"criteria": ["groundedness"], "last": True, "repeatable": [Item("1_1", "R2")]}
    assert [row[3] for row in rows(read(path, **options)["groundedness"])] == [3, 1, 0]


@pytest.mark.parametrize("name", ["groundedness", "rating", "choice"])
def test_label_studio_json_min_and_csv(tmp_path: Path, name: str) -> None:
    about = {"turn_id": "1_1", "response_id": "R1", "text": "A, text", "id": 1, "created_at": "x", "lead_time": 3.25}
    entries = [
        {**about, name: [{"rating": 2}], "annotator": "A1", "annotation_id": 7},
        {**about, name: "Not grounded", "annotator": "A2", "annotation_id": 8},
    ]
    columns = {} if name == "groundedness" else {"label": name}
    path = put(tmp_path / "project.json", json.dumps(entries))
    assert rows(read(path, words=lambda *_: LEVELS, columns=columns)["groundedness"]) == LABELED
    header = list(entries[0])
    cells = [[json.dumps(v) if isinstance(v, list) else v for v in entry.values()] for entry in entries]
    path = put(tmp_path / "project.csv", table(header, cells))
    assert rows(read(path, words=lambda *_: LEVELS, columns=columns)["groundedness"]) == LABELED


def test_a_list_of_records_is_a_table(tmp_path: Path) -> None:
    records = [{"worker": w, "turn_id": t, "response_id": r, "label": label} for w, t, r, label in LABELED]
    assert rows(read(put(tmp_path / "l.json", json.dumps(records, indent=1)))["groundedness"]) == LABELED
    records[1]["label"] = [0, 1]
    assert faults(put(tmp_path / "l.json", json.dumps(records)))[0] == ("wrong_type", "entry 2: $.label")
    wide = json.dumps([{f"c{n}": n for n in range(5_001)}])
    for content, code in (("[]", "empty_file"), (wide, "too_many_columns")):
        assert problem_of(put(tmp_path / "l.json", content))[0] == code


def test_a_control_is_told_from_what_was_shown_and_suggested_by_its_name(tmp_path: Path) -> None:
    data = {"turn_id": "1_1", "response_id": "R1", "answer": "A text", "grade": "shown too"}
    given = [annotation(7, "A1", {"grounded": {"rating": 2}}), annotation(8, "A2", {"grounded": {"rating": 0}})]
    task = {"id": 1, "data": data, "annotations": given}
    path = put(tmp_path / "p.json", json.dumps([task]))
    code, said = problem_of(path)
    assert (code, said) == (
        "missing_column",
        "no answer is 'groundedness'; the answers are 'grounded': name it, as in --column label=grounded",
    )
    assert rows(read(path, columns={"label": "grounded"})["groundedness"]) == LABELED
    # Without a criterion, each control is one; what was shown is none.
    assert set(read(path, scales=SCALE)) == {"grounded"}
    # A task may be the whole file, or an annotation that holds its task.
    alone = put(tmp_path / "1", json.dumps(task, indent=2))
    assert rows(read(alone, columns={"label": "grounded"})["groundedness"]) == LABELED
    parts = [json.dumps({**made, "task": {"id": 1, "data": data}}, indent=2) for made in given]
    files = [put(tmp_path / str(number), part) for number, part in enumerate(parts, start=2)]
    assert rows(read(*files, columns={"label": "grounded"})["groundedness"]) == LABELED


def test_several_answers_of_one_control_in_one_annotation_are_no_label(tmp_path: Path) -> None:
    made = annotation(5, "A1", {"groundedness": {"rating": 3}})
    made["result"] += annotation(5, "A1", {"groundedness": {"rating": 0}})["result"]
    task = {"id": 1, "data": {"turn_id": "1_1", "response_id": "R1"}, "annotations": [made]}
    code, said = problem_of(put(tmp_path / "p.json", json.dumps([task])))
    assert (code, said) == ("wrong_type", "a list with 2 entries: expected a text or a number")


# Surveys.


def survey(*names: str, texts: Sequence[str] = ()) -> str:
    header = ["StartDate", "Status", "Finished", "RecordedDate", "ResponseId", "PROLIFIC_PID", *names]
    heads = ("Start Date", "Response Type", "Finished", "Recorded Date", "Response ID", "PROLIFIC_PID")
    below = [*heads, *(texts or names)]
    ids = [json.dumps({"ImportId": name}) for name in header]
    first = ["2024-01-01 10:00:00", "IP Address", "True", "2024-01-01 10:09:00"]
    lines = [[*first, "R_1", "A1", *"2" * len(names)], [*first, "R_2", "A2", *"0" * len(names)]]
    return table(header, [below, ids, *lines])


@pytest.mark.parametrize("name", ["1_1.R1.groundedness", "1_1/R1", "1_1:R1:groundedness"])
def test_a_survey_of_qualtrics_needs_no_pattern_where_names_say_all(tmp_path: Path, name: str) -> None:
    assert rows(read(put(tmp_path / "s.csv", survey(name)))["groundedness"]) == LABELED


def test_a_pattern_may_fit_the_texts_of_the_questions(tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", survey("Q7", texts=["How grounded is response 1_1-R1, given the passages?"]))
    labels = read(path, wide=r"response (?P<turn_id>\w+)-(?P<response_id>R\d+)")["groundedness"]
    assert rows(labels) == LABELED
    code, message = problem_of(path)
    assert (code, "--wide PATTERN" in message) == ("missing_column", True)


def test_the_questions_of_a_participant_are_counted_once(tmp_path: Path) -> None:
    """Counted anew for each question, they take ten times as long."""
    path = put(
        tmp_path / "s.csv", table(["worker", "secs", *(f"1_{n}.R1.x" for n in range(300))], [["a", 9, *"1" * 300]])
    )
    started = time.process_time()
    (labels,) = read(
        path, kind="survey", scales={"x": (0, 1)}, columns={"worker": "worker", "seconds": "secs"}
    ).values()
    assert time.process_time() - started < 2
    assert labels.seconds.tolist() == pytest.approx([0.03] * 300)


PROLIFIC = "Submission id,Participant id,Status,Started at,Completed at,Time taken,Age\n"


def test_submissions_of_prolific_leave_out_who_was_rejected(tmp_path: Path) -> None:
    survey_of_three = survey("1_1.R1") + "2024,IP Address,True,2024,R_3,A3,3\n2024,IP Address,True,2024,R_4,A4,2\n"
    labels = put(tmp_path / "s.csv", survey_of_three)
    statuses = {"A1": "APPROVED", "A2": "AWAITING REVIEW", "A3": "REJECTED", "A5": "RETURNED"}
    lines = "".join(f"s{name},{name},{status},x,x,300,20\n" for name, status in statuses.items())
    submissions = put(tmp_path / "prolific_export_1.csv", PROLIFIC + lines)
    for paths in ((submissions, labels), (labels, submissions)):
        found, warnings = warned(*paths)
        assert rows(found["groundedness"]) == [*LABELED, ("A4", "1_1", "R1", 2)]
    assert [(problem.code, problem.message.partition(";")[0]) for problem in warnings] == [
        ("unknown_worker", "1 worker of the labels not listed, such as 'A4'"),
        ("row_left_out", "1 label of 1 participant left out, neither approved nor awaiting review: 'rejected' (1)"),
    ]  # fmt: skip
    # Who was let in again after a rejection stays.
    submissions.write_text(f"{PROLIFIC}{lines}s9,A3,APPROVED,x,x,300,20\n", encoding="utf-8")
    assert len(rows(read(labels, submissions)["groundedness"])) == 4
    (problem,) = world.problems_of(labels, submissions, scales=ONE, columns={"worker": "ResponseId"})
    assert (problem.code, "--column worker=NAME" in problem.message) == ("unknown_worker", True)


@pytest.mark.parametrize(
    ("state", "votes"),
    [
        *(("APPROVED", True), ("AWAITING REVIEW", True), ("awaiting_review", True), ("PARTIALLY APPROVED", True)),
        *(("SCREENED OUT", False), ("CONSENT_REVOKED", False), ("ACTIVE", False), ("RESERVED", False)),
        *(("TIMED-OUT", False), ("RETURNED", False), ("", False), ("A NEW STATE", False)),
    ],
)  # fmt: skip
def test_only_submissions_that_are_approved_or_to_be_reviewed_vote(tmp_path: Path, state: str, votes: bool) -> None:
    labels = put(tmp_path / "s.csv", survey("1_1.R1"))
    lines = f"s1,A1,APPROVED,x,x,300,20\ns2,A2,{state},x,x,300,20\n"
    found = read(labels, put(tmp_path / "prolific.csv", PROLIFIC + lines))
    assert len(rows(found["groundedness"])) == 1 + votes


def test_rows_that_a_requester_rejects_offline_have_no_vote(tmp_path: Path) -> None:
    content = batch(["grade"], ["2"], ["0"], ["1"]).splitlines()
    # The columns Approve and Reject come last: an X, or the reason.
    content[1] = f"{content[1].removesuffix(',')}X,"
    content[2] = f"{content[2]}X"
    content[3] = f"{content[3]}always the same answer"
    labels, warnings = warned(put(tmp_path / "b.csv", "\n".join(content)))
    assert [(row[0], row[3]) for row in rows(labels["groundedness"])] == [("A1", 2)]
    assert [(problem.code, problem.path, problem.message) for problem in warnings] == [
        ("row_left_out", "line 3", "2 rows left out, Reject 'X', 'always the same answer'; this is the first")
    ]


# Others.


def test_crowd_kit_with_labels_in_words(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "task,worker,label\n1_1/R1,A1,Mostly grounded\n1_1/R1,A2,not grounded\n")
    assert rows(read(path, words=lambda *_: LEVELS)["groundedness"]) == LABELED


def test_words_are_asked_for_by_criterion_and_scale(tmp_path: Path) -> None:
    asked: list[tuple[str, tuple[int, ...]]] = []

    def words(criterion: str, grades: tuple[int, ...]) -> dict[str, int]:
        asked.append((criterion, grades))
        return {"good": grades[-1]}

    path = put(tmp_path / "t.csv", "worker,turn_id,item_id,a,b\nA1,1_1,R1,Good.,1\nA2,1_1,R1,0,GOOD\n")
    labels = read(path, scales={"a": (0, 1), "b": (1, 2)}, words=words)
    assert [rows(of_criterion)[0][3] for of_criterion in labels.values()] == [1, 1]
    assert asked == [("a", (0, 1)), ("b", (1, 2))]


def test_transparentcis_in_the_dress_of_every_platform(shared: Path, tmp_path: Path) -> None:
    with (shared / "worker-level/transparentCIS/judgments_long.tsv").open(encoding="utf-8", newline="") as file:
        given = [row for row in csv.DictReader(file, delimiter="\t") if row["dimension"] == "relevance"]
    ids = [(row["worker_id"], row["item_id"].partition("_")[0], row["item_id"], int(row["label"])) for row in given]
    scales = {"relevance": (1, 2, 3, 4)}
    chosen = [["true" if label == value else "false" for value in (1, 2, 3, 4)] for *_, label in ids]
    mturk = table(
        ["HITId", "WorkerId", "Input.turn_id", "Input.response_id", *(f"Answer.relevance.{n}" for n in (1, 2, 3, 4))],
        [["H", w, turn, item, *cells] for (w, turn, item, _), cells in zip(ids, chosen, strict=True)],
    )
    made = [annotation(1, w, {"relevance": {"choices": [str(label)]}}) for w, _, _, label in ids]
    shown = [{"turn_id": turn, "response_id": item} for _, turn, item, _ in ids]
    studio = json.dumps([{"data": data, "annotations": [one]} for data, one in zip(shown, made, strict=True)])
    kit = table(["task", "worker", "label"], [[f"{turn}/{item}", w, label] for w, turn, item, label in ids])
    contents = {"mturk.csv": mturk, "studio.json": studio, "kit.csv": kit}
    for name, content in contents.items():
        assert rows(read(put(tmp_path / name, content), scales=scales)["relevance"]) == ids, name


def test_a_layout_is_a_function_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Potato has a column for each level, which is filled where somebody chose it."""

    def levels(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> Iterator[pl.DataFrame]:
        for column in sheet.columns:
            criterion, colons, level = column.partition(":::")
            if colons:
                fields = {"worker": text_of("user"), "task": text_of("instance_id"), "criterion": pl.lit(criterion)}
                frame = sheet.rows(column, None, label=pl.lit(level), **fields)
                yield frame.filter(sheet.texts(text_of(column)) != "")

    potato = LabelTable(wrote=lambda sheet: "instance_id" in sheet.columns, rows=levels)
    monkeypatch.setitem(KINDS, "potato", potato)
    header = ["user", "instance_id", "groundedness:::0", "groundedness:::2"]
    path = put(tmp_path / "p.tsv", table(header, [["A1", "1_1/R1", "", "x"], ["A2", "1_1/R1", "x", ""]], "\t"))
    assert rows(read(path)["groundedness"]) == LABELED
    imported = import_gold("crowd", [path], ImportOptions(), read=read_label_tables)
    assert [(row.assessor, row.turn_id, row.response_id, row.grade) for row in imported.rows] == LABELED
