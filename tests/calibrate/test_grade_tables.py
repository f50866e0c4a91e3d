"""People's and judges' grades in one table, and people's grades in a table beside what was judged."""

import csv
import json
from pathlib import Path

import pytest

import judge
from judge.calibrate.tables import GRADERS, UNNAMED, Items, gold_in_pool, grade_table, grades_of, scale_of, side_by_side
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.io.rows import read_rows
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.release import ReleasePlan
from judge.jobs.run import run
from judge.jobs.run_inputs import Plan
from judge.pool.bank import read_pool_folder
from judge.records import Problem

ANSWERS = [
    ("How tall?", "It is 34 metres high.", "It is 34 metres high."),
    ("When was it lit?", "It was lit in 1871.", "It was lit in 1871 by the keeper's daughter and her dog."),
    ("Is it open?", "It is open on Saturdays.", "Trains leave from platform nine every morning."),
]


def table(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def graded(path: Path, *named: str):
    problems: list[Problem] = []
    found = grade_table(path, named, GRADERS, problems)
    assert found is not None, problems
    return found


def test_grades_side_by_side_are_gold_and_labels_of_the_same_items(tmp_path):
    path = table(tmp_path / "t.csv", "id,question,human,judge", "1,a,3,2", "2,a,,1", "3,b,0,")
    gold, (labels,) = side_by_side(graded(path), "correctness", [])
    # Rows about one question are one topic; an empty cell is no grade.
    assert [(row.topic_id, row.response_id, row.grade, row.assessor) for row in gold] == [
        ("t1", "1", 3, "human"), ("t2", "3", 0, "human"),
    ]  # fmt: skip
    assert [(label.turn_id, label.response_id, label.grade) for label in labels.labels] == [
        ("t1_1", "1", 2), ("t1_1", "2", 1),
    ]  # fmt: skip
    assert (labels.judge, scale_of(gold, [labels])) == ("judge", (0, 3))


@pytest.mark.parametrize(
    ("header", "human", "judge"),
    [
        ("human,judge", ("human",), ("judge",)),
        ("Assessor 1,assessor_2,LLM grade", ("Assessor 1", "assessor_2"), ("LLM grade",)),
        ("human,gold_id,human_rationale,judge,judge_run,llm_ms", ("human",), ("judge",)),
        ("gold,llm_judge,judge_b", ("gold",), ("llm_judge", "judge_b")),
    ],
)
def test_columns_of_grades_are_found_by_their_usual_names(tmp_path, header, human, judge):
    found = graded(table(tmp_path / "t.csv", header, ",".join("1" for _ in header.split(","))))
    assert (found.graders["human"], found.graders["judge"]) == (human, judge)


@pytest.mark.parametrize(
    ("cells", "grades"),
    [
        (["2", "0", "", "-1"], [2, 0, None, -1]),
        (["2.0", "1.00"], [2, 1]),
        (['"2,0"', '"1,00"'], [2, 1]),
        (["Yes", "no", "PASS", "false", "Correct"], [1, 0, 1, 0, 1]),
    ],
)
def test_grades_are_whole_numbers_or_two_words(tmp_path, cells, grades):
    path = table(tmp_path / "t.csv", "id,human,judge", *(f"{n},{cell},0" for n, cell in enumerate(cells)))
    problems: list[Problem] = []
    assert grades_of(graded(path), "human", problems, two_levels=(UNNAMED,)) == grades
    assert problems == []


def test_what_is_no_grade_is_a_problem_with_its_line(tmp_path, capsys):
    path = table(tmp_path / "t.csv", "id,human,judge", "1,good,0.85", "2,1,1", "2,1,1")
    assert main(["calibrate", str(path)]) == 2
    said = capsys.readouterr().err
    expected = "expected a grade such as 2, yes or no, or an empty cell"
    assert f"wrong_value at line 2: column 'human': {expected}; found 'good'" in said
    assert f"wrong_value at line 2: column 'judge': {expected}; found '0.85'" in said


@pytest.mark.parametrize("options", [["--scale", "0-3"], ["--criterion", "groundedness"]])
def test_a_grade_off_the_scale_is_named_by_its_line(tmp_path, capsys, options):
    path = table(tmp_path / "t.csv", "id,human,judge", "1,7,1", "2,2,-1", "3,1,x")
    assert main(["calibrate", str(path), *options]) == 2
    said = capsys.readouterr().err
    assert "off_scale at line 2: column 'human': expected one of 0, 1, 2, 3; found 7" in said
    assert "off_scale at line 3: column 'judge': expected one of 0, 1, 2, 3; found -1" in said
    assert "wrong_value at line 4: column 'judge'" in said
    assert "; --scale LOW-HIGH says on which scale columns are, --off-scale missing counts what is no grade" in said


def test_a_judges_grade_off_the_scale_may_count_as_missing(tmp_path, capsys):
    rows = ["1,2,1", "2,2,9", "3,1,1", "4,0,0"]
    command = ["calibrate", "--scale", "0-3", "--off-scale", "missing"]
    assert main([*command, str(table(tmp_path / "t.csv", "id,human,judge", *rows))]) == 0
    assert "1 of 4 labels by judge" in capsys.readouterr().out
    # A person's grade off the scale is a mistake in any case.
    assert main([*command, str(table(tmp_path / "t.csv", "id,human,judge", *rows, "5,9,9"))]) == 2
    said = capsys.readouterr().err
    assert "line 6: column 'human'" in said
    assert "column 'judge'" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            [],
            "no column of people's grades (human, assessor, annotator); found 'x', 'y'; name it: --column human=COLUMN",
        ),
        (["--column", "human=z"], "no column 'z'"),
        (["--column", "person=x"], "--column person=x: expected one of human=COLUMN, judge=COLUMN, question=COLUMN"),
        (["--gold", "g.jsonl"], "--gold: without effect here: a table has the grades of people and of judges"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused(tmp_path, capsys, options, said):
    path = table(tmp_path / "t.csv", "x,y", "1,1")
    assert main(["calibrate", str(path), *options]) == 2
    assert said in capsys.readouterr().err


def test_the_column_of_questions_may_be_named(tmp_path, capsys):
    # Two questions of 40 rows are two topics, on which nothing is decided.
    rows = [f"{number},frage {number % 2},{number % 3 % 2},{number % 3 % 2}" for number in range(80)]
    path = table(tmp_path / "t.csv", "nummer,frage,human,judge", *rows)
    assert main(["calibrate", str(path)]) == 0
    assert "each row is a topic of its own" in capsys.readouterr().err
    assert main(["calibrate", str(path), "--column", "question=frage"]) == 0
    out, err = capsys.readouterr()
    assert "rows with one 'question' are one topic" in err
    assert "80/2" in out


def test_one_command_compares_a_judge_with_a_person(tmp_path, capsys):
    # 60 of 80 rows agree: (60/80 - 1/2) / (1 - 1/2) = .5, with both sides giving each grade 40 times.
    pairs = [(1, 1)] * 30 + [(0, 0)] * 30 + [(1, 0)] * 10 + [(0, 1)] * 10
    path = table(tmp_path / "t.csv", "id,human,judge", *(f"{n},{a},{b}" for n, (a, b) in enumerate(pairs)))
    assert main(["calibrate", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "a table of 80 rows: grades of people from 'human'; grades of judges from 'judge'" in err
    assert "grades are taken to be on the scale 0 to 1" in err
    assert "0.50 [" in out


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    rows = [{"question": question, "contexts": [text], "answer": answer} for question, text, answer in ANSWERS]
    run(Plan(runs=rows, criteria="groundedness", model="baseline/overlap", out=folder / "out"))
    return folder / "out"


@pytest.mark.parametrize("names", [("run", "turn_id"), ("question", "answer"), ("answer",)])
def test_a_persons_table_is_joined_to_what_was_judged(tmp_path, judged, names):
    results = read_rows(judged / "results.csv", [])
    assert results is not None
    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "human"])
        writer.writerows(
            [*(row.cells[name] for name in names), grade] for row, grade in zip(results.rows, (3, 1, 0), strict=True)
        )
    outcome = calibrate_judges(CalibrationPlan(gold=path, judgments=judged))
    row = next(row for row in outcome.calibration.agreement if row.judge == "baseline/overlap")
    assert row.n == 3


@pytest.mark.parametrize(
    "left_out", [(), ("run", "turn_id"), ("run", "turn_id", "answer"), ("run", "turn_id", "question", "id")]
)
def test_labels_beside_results_are_joined_where_cells_begin_as_formulas_do(tmp_path, left_out):
    rows = [
        {"id": label, "system": system, "question": question, "contexts": "one two", "answer": f"- {label} {system}"}
        for system in ("-base", "=new")
        for label, question in (("=1", "=1+1 is what?"), ("@2", "- and two?"))
    ]
    run(Plan(runs=rows, criteria="groundedness", model="baseline/overlap", out=tmp_path / "out"))
    results = read_rows(tmp_path / "out" / "results.csv", [])
    assert results is not None
    path = tmp_path / "people.csv"
    names = [name for name in results.columns if name not in left_out]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "human"])
        writer.writerows([*(row.cells[name] for name in names), number] for number, row in enumerate(results.rows))
    problems: list[Problem] = []
    people = grade_table(path, (), ("human",), problems)
    assert people is not None
    pool = read_pool_folder(tmp_path / "out", "runs.jsonl")
    gold = gold_in_pool(people, "groundedness", pool, problems)
    assert problems == []
    assert [(row.turn_id, row.grade) for row in gold] == [("=1_1", 0), ("@2_1", 1), ("=1_1", 2), ("@2_1", 3)]


def test_two_grades_of_one_answer_are_named_by_their_rows(tmp_path, judged, capsys):
    rows = ("How tall?,It is 34 metres high.,3", "How tall?,It is 34 metres high.,1")
    path = table(tmp_path / "people.csv", "question,answer,human", *rows)
    assert main(["calibrate", "--gold", str(path), "--judgments", str(judged), "--out", str(tmp_path / "cal")]) == 2
    err = capsys.readouterr().err
    assert "different_grades at line 3: groundedness grade 1 by 'human', but 3 at line 2" in err
    assert not (tmp_path / "cal").exists()


def test_rows_that_do_not_say_which_of_several_runs_they_are_about_are_refused(tmp_path, capsys):
    rows = [{"id": 1, "system": name, "question": "q", "contexts": "one two", "answer": name} for name in ("a", "b")]
    run(Plan(runs=rows, criteria="groundedness", model="baseline/overlap", out=tmp_path / "out"))
    path = table(tmp_path / "people.csv", "id,human", "1,3")
    assert main(["calibrate", "--gold", str(path), "--judgments", str(tmp_path / "out")]) == 2
    said = "line 2: 2 runs were judged, and the row names neither run nor answer: add a column of either"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", [["calibrate", "--judgments"], ["leaderboard"], ["report"]])
def test_yes_is_no_grade_of_more_than_two_levels(tmp_path, judged, capsys, command):
    rows = ("data,q1_1,yes", "data,q2_1,no", "data,q3_1,yes")
    path = table(tmp_path / "people.csv", "run,turn_id,human", *rows)
    assert main([*command, str(judged), "--gold", str(path), "--out", str(tmp_path / "there")]) == 2
    said = "column 'human': expected a grade such as 2 (0, 1, 2, 3 in groundedness/graded), or an empty cell; found"
    assert f"{said} 'yes'" in capsys.readouterr().err


def test_yes_is_a_grade_of_a_prompt_with_two_levels(tmp_path, capsys):
    rows = [{"question": f"q{n}", "contexts": "c d e", "answer": "yes"[: n + 1]} for n in range(3)]
    mine = judge.FunctionJudge("mine/1", lambda messages: 1)
    out = tmp_path / "out"
    run(Plan(runs=rows, prompts=["groundedness/yes_no"], model=mine, out=out))
    path = table(tmp_path / "people.csv", "run,turn_id,human", "data,q1_1,yes", "data,q2_1,no", "data,q3_1,yes")
    assert main(["leaderboard", str(out), "--gold", str(path), "--out", str(tmp_path / "corrected")]) == 0
    # Two of three: (1 + 0 + 1) / 3.
    assert "  0.667  " in capsys.readouterr().out
    outcome = calibrate_judges(CalibrationPlan(gold=path, judgments=out))
    assert next(row for row in outcome.calibration.agreement if row.judge.startswith("mine/1")).n == 3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--scale", "0-3"], 2),
        (["--criterion", "groundedness"], 2),
        (["--scale", "0-1"], 0),
        (["--criterion", "groundedness", "--scale", "0-1"], 0),
    ],
)
def test_words_are_no_grades_of_a_longer_scale(tmp_path, capsys, options, code):
    path = table(tmp_path / "t.csv", "id,human,judge", "1,yes,yes", "2,no,yes", "3,yes,no")
    assert main(["calibrate", str(path), *options]) == code
    assert ("column 'human': expected a grade such as 2" in capsys.readouterr().err) == (code == 2)


def test_words_and_numbers_of_more_levels_are_not_compared(tmp_path, capsys):
    path = table(tmp_path / "t.csv", "id,human,judge", "1,yes,3", "2,no,0")
    assert main(["calibrate", str(path)]) == 2
    assert "column 'human': expected a grade such as 2, or an empty cell; found 'yes'" in capsys.readouterr().err


def test_a_row_of_no_judged_response_is_named(tmp_path, judged):
    path = table(tmp_path / "people.csv", "answer,human", "Something else.,1")
    with pytest.raises(InputError) as refused:
        calibrate_judges(CalibrationPlan(gold=path, judgments=judged))
    (problem,) = refused.value.problems
    assert (problem.code, problem.path) == ("no_such_response", "line 2")


def test_a_correction_that_is_refused_leaves_no_folder(tmp_path, judged, capsys):
    path = table(tmp_path / "people.csv", "answer,human", "Something else.,1")
    assert main(["leaderboard", str(judged), "--gold", str(path), "--out", str(tmp_path / "corrected")]) == 2
    assert "no_such_response" in capsys.readouterr().err
    assert not (tmp_path / "corrected").exists()


def test_a_column_of_a_judge_without_any_grade_is_refused(tmp_path, capsys):
    path = table(tmp_path / "t.csv", "id,human,judge", "1,1,", "2,0,")
    assert main(["calibrate", str(path), "--out", str(tmp_path / "out")]) == 2
    said = "missing_value: no grade in column 'judge': expected some (--column judge=COLUMN names another one)"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_table_of_gold_needs_the_pool(tmp_path):
    path = table(tmp_path / "people.csv", "answer,human", "x,1")
    labels = tmp_path / "judge.qrels"
    labels.write_text("t_1 0 x 1\n")
    with pytest.raises(UsageError, match="--pool says where these are"):
        calibrate_judges(CalibrationPlan(gold=path, judgments=labels, criterion="groundedness"))


def test_rows_of_two_tables_are_one_item_only_where_they_are_about_one(tmp_path):
    items = Items()
    first = table(tmp_path / "a.csv", "question,human,judge", "x?,1,1", "y?,0,0")
    second = table(tmp_path / "b.csv", "question,human,judge", "z?,0,1", "y?,0,1")
    problems: list[Problem] = []
    keys = [items.keys(graded(path).table, problems) for path in (first, second)]
    assert keys == [[("t1_1", "t1", "1"), ("t2_1", "t2", "2")], [("t3_1", "t3", "1"), ("t2_1", "t2", "2")]]
    assert problems == []


@pytest.mark.parametrize(
    ("header", "row", "code"),
    [("human,judge_b", "1,1", "missing_column"), ("id,answer,human,judge_b", "1,Another.,1,1", "other_answer")],
)
def test_tables_whose_rows_cannot_be_told_apart_are_refused(tmp_path, header, row, code):
    first = table(tmp_path / "a.csv", "id,answer,human,judge", "1,One.,1,1")
    second = table(tmp_path / "b.csv", header, row)
    with pytest.raises(InputError) as refused:
        calibrate_judges(CalibrationPlan(tables=(first, second)))
    assert [problem.code for problem in refused.value.problems] == [code]


def test_rows_without_questions_are_said_to_be_topics(tmp_path, capsys):
    path = table(tmp_path / "t.csv", "frage,human,judge", "a,1,1", "a,0,0")
    main(["calibrate", str(path)])
    assert "each row is a topic of its own" in capsys.readouterr().err


def test_a_grade_of_an_earlier_answer_is_not_joined_to_a_later_one(tmp_path, judged):
    path = table(tmp_path / "people.csv", "turn_id,answer,human", "q1_1,It was 30 metres high.,1")
    with pytest.raises(InputError) as refused:
        calibrate_judges(CalibrationPlan(gold=path, judgments=judged))
    (problem,) = refused.value.problems
    assert "was judged in turn 'q1_1' by another answer" in problem.message


def test_an_id_of_the_table_that_is_no_turn_joins_no_grade_to_another_question(tmp_path, judged):
    # The pool calls its first question q1, the table its second one.
    answers = [answer for _, _, answer in ANSWERS]
    path = table(tmp_path / "p.csv", "id,answer,human", f"q2,{answers[0]},3", f"q1,{answers[1]},1")
    problems: list[Problem] = []
    grades = grade_table(path, (), ("human",), problems)
    assert grades is not None
    gold = gold_in_pool(grades, "groundedness", read_pool_folder(judged, "passages.jsonl"), problems)
    assert [(row.turn_id, row.grade) for row in gold] == [("q1_1", 3), ("q2_1", 1)]
    assert problems == []


def test_a_column_that_is_named_as_peoples_grades_is_no_judge(tmp_path):
    found = graded(table(tmp_path / "t.csv", "judge_person,judge_llm", "1,0"), "human=judge_person")
    assert (found.graders["human"], found.graders["judge"]) == (("judge_person",), ("judge_llm",))
    with pytest.raises(UsageError, match="one column has the grades of one of them"):
        graded(tmp_path / "t.csv", "human=judge_llm", "judge=judge_llm")


def test_what_other_tools_call_a_criterion_is_said_where_nothing_was_judged_by_it(tmp_path, judged):
    path = table(tmp_path / "people.csv", "turn_id,human", "q1_1,1")
    with pytest.raises(UsageError, match="faithfulness is called groundedness here"):
        calibrate_judges(CalibrationPlan(gold=path, judgments=judged, criterion="faithfulness"))


def test_a_column_of_large_numbers_is_not_taken_for_grades(tmp_path, capsys):
    path = table(tmp_path / "t.csv", "question,human,judge,llm_length", "a,1,1,300")
    assert main(["calibrate", str(path)]) == 2
    assert "grades from 0 to 300 are on no scale: --column human=COLUMN" in capsys.readouterr().err


def test_an_id_alone_is_no_turn_of_a_topic_with_several(tmp_path):
    rows = [
        {"topic": topic, "id": n, "question": f"{n}?", "contexts": ["one two"], "answer": f"{n} two"}
        for n, topic in enumerate((1, 1, 2), 1)
    ]
    run(Plan(runs=rows, criteria="groundedness", model="baseline/overlap", out=tmp_path / "out"))
    path = table(tmp_path / "people.csv", "id,human", "2,1")
    with pytest.raises(InputError) as refused:
        calibrate_judges(CalibrationPlan(gold=path, judgments=tmp_path / "out"))
    assert [problem.code for problem in refused.value.problems] == ["no_such_response"]


ALL_THREE = "data,q1_1,3 data,q2_1,2 data,q3_1,0"
"""Run, turn and grade of each response that was judged."""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.csv", "run,turn_id,human\n" + ALL_THREE.replace(" ", "\n")),
        ("people.tsv", "run\tturn_id\tgrade\n" + ALL_THREE.replace(" ", "\n").replace(",", "\t")),
        (
            "people.jsonl",
            '{"turn_id":"q1_1","run":"data","label":3.0}\n{"turn_id":"q2_1","run":"data","label":"2"}\n'
            '{"turn_id":"q3_1","run":"data","label":0}',
        ),
        (
            "people.csv",
            "run,turn_id,assessor,criterion,grade\n"
            "data,q1_1,ann,groundedness,3\ndata,q2_1,bob,,2\ndata,q3_1,ann,groundedness,0",
        ),
        ("people.csv", "id,human\nq1,3\nq2,2\nq3,0"),
        (
            "people.csv",
            "response,rating\n" + "\n".join([f"{ANSWERS[0][2]},3", f"{ANSWERS[1][2]},2", f"{ANSWERS[2][2]},0"]),
        ),
    ],
)
def test_a_leaderboard_is_corrected_by_a_table_of_all_that_was_judged(tmp_path, judged, capsys, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert main(["leaderboard", str(judged), "--gold", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["rows"]
    # Every response has a grade, so the corrected mean is people's: (3 + 2 + 0) / 3.
    assert row["mean"]["value"] == pytest.approx(5 / 3)
    assert f"{path}: a table of 3 rows: grades of people from " in err
    assert "groundedness: every judged response has a grade, so none was drawn by chance" in err
    assert main(["leaderboard", str(judged), "--gold", str(path)]) == 0
    out, err = capsys.readouterr()
    # Nothing is left to chance here, and an interval without a width would look like a claim about other responses.
    assert "1.667" in out
    assert "[1.667" not in out
    assert "there is none where they graded every one" in " ".join(err.split())


def test_a_part_of_what_was_judged_corrects_means_where_its_probability_is_in_the_table(tmp_path, judged, capsys):
    rows = ("data,q1_1,3", "data,q2_1,2")
    path = table(tmp_path / "people.csv", "run,turn_id,human", *rows)
    assert main(["leaderboard", str(judged), "--gold", str(path)]) == 2
    assert "or a column inclusion_probability of a table, declares that of a random sample" in capsys.readouterr().err
    path = table(tmp_path / "people.csv", "run,turn_id,human,inclusion_probability", *(f"{row},0.667" for row in rows))
    assert main(["leaderboard", str(judged), "--gold", str(path)]) == 0
    # A spreadsheet with commas for points.
    path = table(
        tmp_path / "people.csv", "run,turn_id,human,inclusion_probability", *(f'{row},"0,667"' for row in rows)
    )
    assert main(["leaderboard", str(judged), "--gold", str(path)]) == 0
    path = table(tmp_path / "people.csv", "run,turn_id,human,Inclusion probability", *(f"{row},2" for row in rows))
    assert main(["leaderboard", str(judged), "--gold", str(path)]) == 2
    said = "line 2: column 'Inclusion probability': expected a probability above 0, at most 1; found '2'"
    assert said in capsys.readouterr().err


def test_a_report_sets_a_table_of_grades_beside_the_judges(tmp_path, judged, capsys):
    path = table(tmp_path / "people.csv", "run,turn_id,mensch", *ALL_THREE.split())
    given = ["report", str(judged), "--out", str(tmp_path / "out"), "--gold", str(path)]
    assert main(given) == 2
    assert "no column of people's grades" in capsys.readouterr().err
    assert main([*given, "--column", "human=mensch"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '"assessors":[["mensch",3,"blind"]]' in page
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "corrected" in report


def test_a_plan_takes_a_table_of_grades(tmp_path, judged, capsys):
    path = table(tmp_path / "people.csv", "run,turn_id,human", *ALL_THREE.split())
    assert main(["plan", str(judged), "--gold", str(path), "--json"]) == 0
    assert {pilot["graders"] for pilot in json.loads(capsys.readouterr().out)["pilots"]} >= {"judge", "assessors"}


def test_columns_are_named_of_tables_only(tmp_path, judged, capsys):
    path = table(tmp_path / "gold.jsonl", "{}")
    assert main(["leaderboard", str(judged), "--gold", str(path), "--column", "human=x"]) == 2
    assert "--column is about tables of people's grades; --gold names none" in capsys.readouterr().err
    assert main(["leaderboard", str(judged), "--column", "human=x"]) == 2
    assert "--column: without effect here: they are about a correction, which needs --gold" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"--column: without effect here: they are of tables of people's grades"):
        ReleasePlan(folder=judged, out=tmp_path / "bundle", columns="human=x")


def test_grades_of_people_and_a_label_of_the_table_are_not_confused(tmp_path, judged):
    # A column that is named after people has their grades, whatever else there is.
    path = table(tmp_path / "people.csv", "run,turn_id,label,human", "data,q1_1,7,3")
    problems: list[Problem] = []
    found = grade_table(path, (), ("human",), problems)
    assert found is not None
    assert (found.graders["human"], found.assessors) == (("human",), None)


def test_a_grade_of_another_answer_under_a_response_id_is_refused(tmp_path, judged):
    rows = {row.turn_id: row for row in read_pool_folder(judged).responses}
    first = rows["q1_1"].response_id
    second = rows["q2_1"].response_id
    path = table(
        tmp_path / "people.csv",
        "response_id,answer,human",
        f"{first},  It is   34 metres high. ,3",
        f"{first},Nobody knows.,1",
        f"{second},It was lit in 1871 by the keeper's daughter and her cat.,1",
        f"{second},,2",
    )
    with pytest.raises(InputError) as refused:
        calibrate_judges(CalibrationPlan(gold=path, judgments=judged))
    # White space is what spreadsheets change, and a row may do without an answer.
    assert [(row.path, row.message) for row in refused.value.problems] == [
        (
            "line 3",
            f"column 'answer' has 'Nobody knows.', and '{first}' was judged as 'It is 34 metres high.'",
        ),
        (
            "line 4",
            f"column 'answer' has '…r and her cat.', and '{second}' was judged as '…r and her dog.'",
        ),
    ]


def test_a_grade_between_levels_is_refused_with_the_levels(tmp_path, judged, capsys):
    path = table(tmp_path / "people.csv", "run,turn_id,human", "data,q1_1,2.0", "data,q2_1,1.5", "data,q3_1,1.00")
    assert main(["calibrate", "--gold", str(path), "--judgments", str(judged)]) == 2
    expected = "expected a grade such as 2 (0, 1, 2, 3 in groundedness/graded), or an empty cell; found '1.5'"
    said = capsys.readouterr().err
    assert f"wrong_value at line 3: column 'human': {expected}" in said
    assert "1 problem" in said
    given = [
        "--column",
        "grade=human",
        "--criterion",
        "groundedness",
        "--assessor",
        "ann",
        "--column",
        "response_id=run",
    ]
    assert main(["gold", "import", "csv", str(path), *given, "--out", str(tmp_path / "gold.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "'1.5': expected an integer (0, 1, 2, 3 in groundedness/graded), or what the levels of" in said
    assert "1 problem" in said


def test_a_bundle_is_corrected_by_a_table_of_grades(tmp_path, judged):
    path = table(tmp_path / "people.csv", "run,turn_id,mensch", *ALL_THREE.split())
    given = ["release", str(judged), "--gold", str(path), "--column", "human=mensch", "--out", str(tmp_path / "bundle")]
    assert main(given) == 0
    row = (tmp_path / "bundle" / "corrected.tsv").read_text(encoding="utf-8").splitlines()[1]
    assert "\t1.6667\t" in row
