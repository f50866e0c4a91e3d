"""`judge evaluate responses` from files to files."""

import json
from pathlib import Path

import ir_measures
import pytest
from ir_measures import P

import judge
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.extra.evaluate.breakdown import TABLES
from judge.extra.evaluate.responses import ResponsesPlan, evaluate_responses
from judge.io.ids import parse_run
from judge.pool.lists import read_grades
from tests.calibration_world import contents
from tests.conftest import PROJECT, printed, put, refused

TOPICS = PROJECT / "examples/topics.json"


def test_a_folder_gives_what_ir_measures_makes_of_its_files(judged: Path) -> None:
    outcome = evaluate_responses(ResponsesPlan(folder=judged))
    grades = read_grades(judged / "qrels/response_groundedness.llm.qrel")
    files = sorted((judged / "response_runs").iterdir())
    runs = {run.run_id: run for run in outcome.criteria[0].runs}
    assert runs.keys() == {path.stem for path in files}
    measure = P(rel=2) @ 1
    for path in files:
        run = parse_run(path.read_text(encoding="utf-8"), path.name)
        value = runs[run.run_id].scores["positive", "qrels"].mean.value
        assert value == ir_measures.calc_aggregate([measure], grades, run.scores)[measure]
    # thistle-faulty answers 11 of 16 turns, and one response has no grade.
    assert (len(runs["thistle-faulty"].first), runs["thistle-faulty"].unjudged) == (11, 1)
    assert runs["thistle-faulty"].scores["positive", "qrels"].mean.value == 7 / 16
    assert runs["thistle-faulty"].scores["positive", "answered"].mean.value == 7 / 11


def test_a_criterion_that_the_name_of_the_file_contradicts_is_said(judged: Path, tmp_path: Path) -> None:
    text = (judged / "qrels/response_groundedness.llm.qrel").read_text(encoding="utf-8")
    qrels = put(tmp_path / "response_relevance.qrel", text)
    other = put(tmp_path / "people.qrel", text)
    said = "naturalness: so says --criterion; by its name response_relevance.qrel holds grades of relevance."
    for path, criterion, told in (
        (qrels, "naturalness", True),
        (qrels, "relevance", False),
        (other, "relevance", False),
    ):
        outcome = evaluate_responses(ResponsesPlan(folder=judged, qrels=path, criterion=criterion))
        assert (said in outcome.table("run").notes) == told


def test_the_leaderboards_means_are_those_that_the_docs_name(judged: Path) -> None:
    outcome = evaluate_responses(ResponsesPlan(folder=judged))
    board = {row.run_id: row for row in judge.read_judged(judged).leaderboard}
    for run in outcome.criteria[0].runs:
        assert run.scores["mean", "worst"].mean.value == board[run.run_id].bound
        assert run.scores["positive", "qrels"].mean.value == board[run.run_id].more["share_of_turns"]
    # thistle-faulty: 17 points in 10 graded turns; here an eleventh answer without a grade counts 0.
    (faulty,) = [run for run in outcome.criteria[0].runs if run.run_id == "thistle-faulty"]
    assert board["thistle-faulty"].mean.value == 17 / 10
    assert faulty.scores["mean", "answered"].mean.value == 17 / 11


def test_the_files_of_a_folder_as_runs_give_the_same(judged: Path) -> None:
    own = evaluate_responses(ResponsesPlan(folder=judged)).table("run")
    files = ResponsesPlan(runs=judged / "response_runs", qrels=judged / "qrels/response_groundedness.llm.qrel")
    assert evaluate_responses(files).table("run") == own


def test_a_sidecar_says_criterion_scale_and_caution(judged: Path) -> None:
    grid = evaluate_responses(ResponsesPlan(folder=judged)).table("run")
    assert {line[0] for line in grid} == {"groundedness"}
    assert "positive from 2 on: P(rel=2)@1, trec_eval -l 2 -m P.1" in grid.notes[0]
    assert grid.notes[1].startswith("groundedness: UNCALIBRATED: ")


def test_grades_of_people_are_read_in_place_of_the_folders_own(judged: Path, tmp_path: Path) -> None:
    rows = (judged / "qrels/response_groundedness.llm.qrel").read_text(encoding="utf-8").splitlines()
    people = put(tmp_path / "people.qrel", "".join(f"{row.rsplit(' ', 1)[0]} 1\n" for row in rows))
    outcome = evaluate_responses(ResponsesPlan(folder=judged, qrels=people, criterion="groundedness"))
    (of,) = outcome.criteria
    assert (of.qrels.name, of.qrels.remark) == ("groundedness", None)
    assert {run.scores["mean", "answered"].mean.value for run in of.runs if not run.unjudged} == {1.0}


def test_two_files_of_one_criterion_have_names_of_their_own(judged: Path, tmp_path: Path) -> None:
    own = judged / "qrels/response_groundedness.llm.qrel"
    copy = put(tmp_path / "people.qrel", own.read_text(encoding="utf-8"))
    outcome = evaluate_responses(ResponsesPlan(folder=judged, qrels=[own, copy], criterion="groundedness"))
    names = [of.qrels.name for of in outcome.criteria]
    assert names == ["groundedness (response_groundedness.llm.qrel)", "groundedness (people.qrel)"]


def test_a_folder_holds_every_table_in_every_form_and_the_same_bytes_again(judged, tmp_path, monkeypatch) -> None:
    plan = ResponsesPlan(folder=judged, topics=TOPICS, out=tmp_path / "out")
    evaluate_responses(plan)
    first = contents(tmp_path / "out")
    tables = {f"{name}.{ending}" for name in TABLES.values() for ending in ("tsv", "json", "md", "tex")}
    assert tables | {"turns.tsv", "responses.sha256"} <= first.keys()
    # All turns of the example depend on the PTKB, so there is nothing to set them against.
    drawn = {f"groundedness_{m}_{name}" for m in ("mean", "positive") for name in ("runs", "topics", "depths")}
    assert {name.partition(".")[0] for name in first if name.endswith((".svg", ".png"))} == drawn
    # That pictures are the same again is tested where they are drawn.
    monkeypatch.setattr("judge.extra.evaluate.breakdown.has_extra", lambda name: False)
    evaluate_responses(plan)
    again = {name: content for name, content in first.items() if not name.endswith((".svg", ".png", ".sha256"))}
    assert {name: contents(tmp_path / "out")[name] for name in again} == again


def test_depths_and_ptkb_need_topics_that_say_them(tmp_path: Path) -> None:
    run = put(tmp_path / "a.run", "132_1-1 Q0 R1 1 1 a\n")
    outcome = evaluate_responses(ResponsesPlan(runs=run, qrels=put(tmp_path / "a.qrel", "132_1-1 0 R1 2\n")))
    for table in TABLES:
        if table in ("depth", "ptkb"):
            with pytest.raises(UsageError, match=f"--by {table}: nothing says .* expected --topics"):
                outcome.table(table)
        else:
            assert outcome.table(table).names[0] == "criterion"


def test_a_tree_of_cast_has_depths_by_its_topics(shared: Path, tmp_path: Path) -> None:
    folder = shared / "cast-regin/response_evaluation/qrels"
    grades = read_grades(folder / "response_relevance.qrel")
    text = "".join(f"{turn_id} Q0 {next(iter(graded))} 1 1 a\n" for turn_id, graded in grades.items())
    topics = shared / "cast2022/2022_evaluation_topics_tree_v1.0.json"
    of = {"runs": put(tmp_path / "a.run", text), "qrels": folder / "response_relevance.qrel", "scale": "0-3"}
    outcome = evaluate_responses(ResponsesPlan(**of, topics=topics))  # type: ignore[arg-type]
    counts = {line[2]: line[3] for line in outcome.table("depth") if line[1] == "mean"}
    assert counts == {1: 7, 2: 18, 3: 22, 4: 19, 5: 12, 6: 11, 7: 6, 8: 4, 9: 4, 10: 2}
    with pytest.raises(UsageError, match="--by ptkb"):
        outcome.table("ptkb")


RUN = "1-1_1 Q0 R1 1 1 a\n"
GOOD = "1-1_1 0 R1 2\n"


@pytest.mark.parametrize(("run", "qrels", "code", "message"), [
    (RUN, "1-1_1 0 R1 9\n", "off_scale", "grade 9: expected one of 0, 1, 2, 3"),
    (RUN, GOOD + GOOD, "duplicate_row", "1-1_1 R1 is already on line 1"),
    (RUN, "1-1_1 R1 2\n", "wrong_columns", "3 columns: expected 4 (turn_id 0 item_id grade)"),
    ("", GOOD, "empty_file", "the file is empty"),
    (RUN + RUN, GOOD, "duplicate_row", "1-1_1 R1 is on an earlier line too"),
    (RUN + "1-1_2 Q0 R1 1 1 b\n", GOOD, "second_run_id", "run id 'b': expected 'a', as in the lines before"),
    ("1-1_1 Q0 R1 1 nan a\n", GOOD, "wrong_score", "score 'nan': expected a finite number"),
    ("1-1_1 Q0 R1 1 1e999 a\n", GOOD, "wrong_score", "score '1e999': expected a finite number"),
    ("1-1_1\n", GOOD, "wrong_columns", "1 column: expected 6 (turn_id Q0 item_id rank score run_id)"),
    ('{"run_name": "a"}', GOOD, "not_lines", "JSON: expected lines `turn_id Q0 response_id rank score tag`, as "),
])  # fmt: skip
def test_a_bad_file_is_an_error_with_its_line(tmp_path: Path, run: str, qrels: str, code: str, message: str) -> None:
    plan = ResponsesPlan(runs=put(tmp_path / "a.run", run), qrels=put(tmp_path / "a.qrel", qrels), scale="0-3")
    (problem,) = refused(evaluate_responses, plan)
    assert problem.code == code and problem.message.startswith(message)


@pytest.mark.parametrize(("options", "message"), [
    ({}, "expected either an output folder"),
    ({"runs": "a.run"}, "response runs need grades: give --qrels"),
    ({"runs": "a.run", "folder": "out", "qrels": "a.qrel"}, "expected either an output folder"),
    ({"runs": "a.run", "qrels": "a.qrel", "polarity": "lower"}, "--polarity says which end of --scale is good"),
    ({"runs": "a.run", "qrels": "a.qrel", "criterion": "wit"}, "--criterion 'wit': no prompt says its scale"),
    ({"runs": "a.run", "qrels": "a.qrel", "over": "worst"}, "--over worst: nothing says the worst grade of a.qrel"),
    ({"runs": "a.run", "qrels": "a.qrel", "scale": "0-3", "positive": 4}, "--positive 4: a.qrel has the grades 0"),
    ({"runs": "a.run", "qrels": "a.qrel", "topics": TOPICS}, ""),
    ({"runs": "a.run", "qrels": "far.qrel", "topics": TOPICS}, "--topics: has no turn of the qrels, such as 77_1"),
    ({"runs": "a.run", "qrels": ["a.qrel", "a.qrel"]}, "two qrels files have one name"),
    ({"folder": "pool"}, "pool: no qrels there, as of a folder of `judge pool`"),
])  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path, monkeypatch, options: dict[str, object], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path("a.run"), RUN + "77_1 Q0 R1 1 1 a\n")
    put(Path("a.qrel"), GOOD)
    put(Path("far.qrel"), "77_1 0 R1 1\n")
    put(Path("pool/pool.jsonl"), "")
    plan = ResponsesPlan(**options)  # type: ignore[arg-type]
    if not message:
        assert evaluate_responses(plan).warnings == (
            "a.qrel: has no grade in 1 turn that 1 run answered (77_1); they count nowhere",
        )
        return
    with pytest.raises(UsageError) as raised:
        evaluate_responses(plan)
    assert str(raised.value).startswith(message)


def test_two_files_of_one_tag_are_refused(tmp_path: Path) -> None:
    runs = [put(tmp_path / name, RUN) for name in ("a.run", "b.run")]
    with pytest.raises(InputError, match="response runs: 1 problem"):
        evaluate_responses(ResponsesPlan(runs=runs, qrels=put(tmp_path / "a.qrel", GOOD)))


def test_a_sidecar_contradicts_what_is_stated(judged: Path) -> None:
    own = judged / "qrels/response_groundedness.llm.qrel"
    with pytest.raises(UsageError, match=r"grades of 'groundedness', as response_groundedness.llm.qrel.json says"):
        evaluate_responses(ResponsesPlan(folder=judged, qrels=own, criterion="naturalness"))
    with pytest.raises(UsageError, match="says the scale: leave out --scale"):
        evaluate_responses(ResponsesPlan(folder=judged, scale="0-1"))
    with pytest.raises(UsageError, match="no qrels of naturalness among"):
        evaluate_responses(ResponsesPlan(folder=judged, criterion="naturalness"))


@pytest.mark.parametrize(("content", "said"), [
    ('{"criterion": 3}', "not what judge writes beside qrels"),
    (
        '{"criterion": "x", "scale": {"levels": [], "polarity": "higher", "positive": []}}',
        "no level: expected the grades of the scale",
    ),
])  # fmt: skip
def test_a_damaged_sidecar_is_an_error(judged: Path, tmp_path: Path, content: str, said: str) -> None:
    grades = put(tmp_path / "a.qrel", GOOD)
    put(tmp_path / "a.qrel.json", content)
    with pytest.raises(InputError, match=rf"a.qrel.json: .*{said}"):
        evaluate_responses(ResponsesPlan(folder=judged, qrels=grades))


def test_a_sidecar_of_a_scale_whose_lower_end_is_good_is_followed(tmp_path: Path) -> None:
    run = put(tmp_path / "a.run", "".join(f"{n}_1 Q0 R1 1 1 a\n" for n in (1, 2)))
    grades = put(tmp_path / "a.qrel", "1_1 0 R1 0\n2_1 0 R1 1\n3_1 0 R1 0\n")
    scale = {"levels": [{"grade": 0}, {"grade": 1}], "polarity": "lower", "positive": [0]}
    put(tmp_path / "a.qrel.json", json.dumps({"criterion": "groundedness", "scale": scale}))
    grid = evaluate_responses(ResponsesPlan(runs=run, qrels=grades)).table("run")
    assert grid.names[3:6] == ("over_qrels", "over_answered", "over_worst")
    mean, positive = ([cell.value for cell in line[3:6]] for line in grid)
    # Grades 0 and 1, and an unanswered turn: 0 as in trec_eval, or the worst grade, which is 1.
    assert mean == [1 / 3, 1 / 2, 2 / 3]
    assert positive == [1 / 3, 1 / 2, 1 / 3]


def test_breakdowns_are_over_what_is_asked(tmp_path: Path) -> None:
    runs = [
        put(tmp_path / "a.run", "".join(f"{n}-1_1 Q0 R1 1 1 a\n" for n in range(10))),
        put(tmp_path / "b.run", "".join(f"{n}-1_1 Q0 R2 1 1 b\n" for n in range(9))),
    ]
    grades = "".join(f"{n}-1_1 0 R1 3\n{n}-1_1 0 R2 {n % 2}\n" for n in range(10))
    plan = {"runs": runs, "qrels": put(tmp_path / "a.qrel", grades), "scale": "0-3"}
    (over_all, *_), (over_answered, *_) = (
        evaluate_responses(ResponsesPlan(**plan, over=over)).table("pair")  # type: ignore[arg-type]
        for over in ("qrels", "answered")
    )
    # b has four grades of 1 on nine turns; the tenth is unanswered.
    assert over_all[4].value == pytest.approx(3 - 4 / 10) and over_all[7] == 10
    assert over_answered[4].value == pytest.approx(3 - 4 / 9) and over_answered[7] == 9
    # One way in all topics: 2 of 2^10 and of 2^9 signs.
    assert (over_all[5], over_answered[5]) == (2 / 2**10, 2 / 2**9)
    letters = [line[-1] for line in evaluate_responses(ResponsesPlan(**plan)).table("run")]  # type: ignore[arg-type]
    assert letters == ["a", "b", "a", "b"]


def test_themes_are_clusters_where_asked(tmp_path: Path) -> None:
    topics = [(theme, persona) for theme in (1, 2) for persona in (1, 2)]
    runs = put(tmp_path / "a.run", "".join(f"{theme}-{persona}_1 Q0 R1 1 1 a\n" for theme, persona in topics))
    grades = "".join(f"{theme}-{persona}_1 0 R1 {persona}\n" for theme, persona in topics)
    plan = {"runs": runs, "qrels": put(tmp_path / "a.qrel", grades), "scale": "0-3"}
    by_topic, by_theme = (
        evaluate_responses(ResponsesPlan(**plan, cluster=cluster)).table("run")  # type: ignore[arg-type]
        for cluster in ("topic", "theme")
    )
    assert by_topic[0][3].low is not None
    assert by_theme[0][3].low is None and by_theme[0][3].topics == 2
    assert any("over themes" in note for note in by_theme.notes)


def test_grades_below_zero_of_no_known_scale_are_told(tmp_path: Path) -> None:
    run, grades = put(tmp_path / "a.run", RUN), put(tmp_path / "a.qrel", GOOD + "1-1_1 0 R2 -1\n")
    outcome = evaluate_responses(ResponsesPlan(runs=run, qrels=grades))
    assert outcome.warnings == ("a.qrel: 1 grade below 0, which count as they are; --scale refuses such grades",)


def test_ids_that_agree_by_chance_are_told(tmp_path: Path) -> None:
    run = put(tmp_path / "a.run", "".join(f"1-1_{n} Q0 R{n} 1 1 a\n" for n in (1, 2, 3)))
    other = "".join(f"1-1_{n} 0 R{n if n == 1 else n + 7} 2\n" for n in (1, 2, 3))
    (warning,) = evaluate_responses(ResponsesPlan(runs=run, qrels=put(tmp_path / "a.qrel", other))).warnings
    assert warning.startswith("a.qrel: has a grade of 1 of the 3 first responses in its turns; if these are")


def test_of_a_folder_the_files_named_run_are_read(tmp_path: Path) -> None:
    grades = put(tmp_path / "a.qrel", GOOD)
    put(tmp_path / "runs/plain", RUN)
    put(tmp_path / "runs/.hidden", "x")
    plan = ResponsesPlan(runs=tmp_path / "runs", qrels=grades)
    assert [run.run_id for run in evaluate_responses(plan).criteria[0].runs] == ["a"]
    put(tmp_path / "runs/named.run", RUN.replace(" a\n", " named\n"))
    assert [run.run_id for run in evaluate_responses(plan).criteria[0].runs] == ["named"]


def test_the_command_prints_tables_and_the_forms_of_other_tools(judged: Path, capsys) -> None:
    call = ["evaluate", "responses", str(judged)]
    (table,) = json.loads(printed(capsys, main([*call, "--format", "json", "--by", "depth"])))
    assert table["rows"][0]["depth"] == 1
    out = printed(capsys, main([*call, "--format", "trec_eval"]))
    assert "runid                 \tall\tthistle-faulty\ngrade_1               \tall\t1.0625\nP_1" in out
    assert main([*call, "--format", "ir_measures", "--over", "answered"]) == 0
    assert f"thistle-faulty\tP(rel=2)@1\t{7 / 11:.4f}\n" in capsys.readouterr().out
    assert main([*call, "--format", "trec_eval", "--over", "worst"]) == 2
    assert main([*call, "--format", "trec_eval", "--by", "topic"]) == 2
    assert main([*call, "--by", "ptkb", "--out", str(judged / "none")]) == 2
    assert not (judged / "none").exists()
    assert "over_qrels" in printed(capsys, main(call))


def test_tools_print_one_criterion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = put(tmp_path / "a.run", RUN)
    grades = [str(put(tmp_path / name, GOOD)) for name in ("response_x.qrel", "response_y.qrel")]
    call = ["evaluate", "responses", "--runs", str(run), "--qrels", *grades, "--format", "trec_eval"]
    assert main([*call, "--out", str(tmp_path / "out")]) == 2
    assert "of one criterion: choose with --criterion or --qrels (x, y)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
