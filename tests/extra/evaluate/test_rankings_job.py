"""From runs and qrels to tables: every problem at once, runs of every form together, the same folder again."""

import json
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.extra.evaluate.intake import passage_ranking, ranked_runs
from judge.extra.evaluate.rankings import PassagesPlan, StatementsPlan, evaluate_passages, evaluate_statements
from tests.calibration_world import contents
from tests.conftest import PROJECT, put, refused

TOPICS = PROJECT / "examples/topics.json"
RUNS = PROJECT / "examples/runs"
QRELS = "1-1_1 0 a 2\n1-1_1 0 b 0\n1-1_2 0 c 1\n2-1_1 0 d 1\n"


def trec(run_id: str, *rows: str) -> str:
    """Rows `turn item`, best first."""
    return "".join(f"{row.split()[0]} Q0 {row.split()[1]} {k} {9 - k} {run_id}\n" for k, row in enumerate(rows))


@pytest.fixture
def world(tmp_path: Path) -> Path:
    put(tmp_path / "runs" / "a.run", trec("a", "1-1_1 a", "1-1_2 x", "1-1_2 c", "2-1_1 d"))
    (tmp_path / "runs" / "b.txt").write_text(trec("b", "1-1_1 b", "1-1_2 c", "9-9_9 z"))
    passage = {"id": "a", "text": "t", "score": 1.0, "used": True}
    response = {"rank": 1, "text": "x", "passage_provenance": [passage], "ptkb_provenance": [2]}
    turns = [{"turn_id": "1-1_1", "responses": [response]}]
    run = {"run_name": "c", "run_type": "automatic", "eval_response": True, "turns": turns}
    (tmp_path / "runs" / "c.json").write_text(json.dumps(run))
    (tmp_path / "runs" / "README.md").write_text("notes\n")
    (tmp_path / "some.qrels").write_text(QRELS)
    return tmp_path


def plan(world: Path, **more: object) -> PassagesPlan:
    return PassagesPlan(**({"runs": world / "runs", "qrels": world / "some.qrels"} | more))


def test_runs_of_every_form_are_measured_together(world: Path) -> None:
    outcome = evaluate_passages(plan(world))
    (evaluation,) = outcome.evaluations
    counted = [(run.run_id, run.counts["answered"], run.counts["beside"]) for run in evaluation.main]
    assert counted == [("a", 3, 0), ("b", 2, 1), ("c", 1, 0)]
    rr = {score.run_id: score.mean.value for score in evaluation.scores if score.criterion == "RR"}
    # a: 1, 1/2 and 1; b: 0, 1 and 0; c: 1, 0 and 0.
    assert rr == pytest.approx({"a": 2.5 / 3, "b": 1 / 3, "c": 1 / 3})
    assert outcome.warnings == (f"{world}/runs/README.md: neither JSON nor a TREC run, so not read as a run",)


def test_every_problem_is_listed_at_once(world: Path) -> None:
    (world / "runs" / "d.run").write_text("1-1_1 Q0 a 1 high d\n1-1_1 Q0 a 1 0.5\n")
    (world / "runs" / "e.run").write_text(trec("e", "7-7_7 a"))
    (world / "runs" / "f.run").write_text(trec("a", "1-1_1 a"))
    (world / "some.qrels").write_text(QRELS + "1-1_1 0 a 2\n")
    (world / "other.qrels").write_text(QRELS)
    told = {(Path(problem.file).name, problem.code) for problem in refused(evaluate_passages, plan(world))}
    assert told >= {("some.qrels", "duplicate_row"), ("d.run", "wrong_score"), ("d.run", "wrong_columns"),
                    ("f.run", "duplicate_run_id")}  # fmt: skip
    problems = refused(evaluate_passages, plan(world, qrels=world / "other.qrels"))
    messages = [problem.message for problem in problems if problem.code == "other_turns"]
    assert messages == ["answers none of the 3 turns of other.qrels: it has 7-7_7, the qrels 1-1_1, 1-1_2, 2-1_1"]


@pytest.mark.parametrize("topics", [None, TOPICS])
def test_interactive_runs_without_graded_turns_are_left_out_beside_others(tmp_path: Path, topics: Path | None) -> None:
    (tmp_path / "qrels").write_text("1-1_1 0 clueweb22-en9999-00-00010:0 1\n")
    runs = [RUNS / "harbor-grounded.json", PROJECT / "examples/interactive"]
    outcome = evaluate_passages(PassagesPlan(runs=runs, qrels=tmp_path / "qrels", topics=topics))
    assert [run.run_id for run in outcome.evaluations[0].main] == ["harbor-grounded"]
    assert outcome.warnings == (
        "left out, because no grade is of a turn of their conversations: "
        "'plover-remembers', 'stilt-plain' (interactive)",
    )


def test_interactive_runs_alone_are_refused_where_no_grade_is_of_them(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1-1_1 0 a 1\n")
    problems = refused(evaluate_passages, PassagesPlan(runs=PROJECT / "examples/interactive", qrels=tmp_path / "qrels"))
    assert [problem.code for problem in problems] == ["other_turns", "other_turns"]


def test_an_interactive_run_is_measured_by_grades_of_its_conversation(tmp_path: Path) -> None:
    run = PROJECT / "examples/interactive/stilt-plain.json"
    (ranked,) = ranked_runs(run, passage_ranking, [])
    turn_id, ((item, _), *_) = next((turn_id, items) for turn_id, items in ranked.ranking.items() if items)
    (tmp_path / "qrels").write_text(f"{turn_id} 0 {item} 1\n")
    outcome = evaluate_passages(PassagesPlan(runs=run, qrels=tmp_path / "qrels"))
    assert [(run.run_id, run.counts["answered"]) for run in outcome.evaluations[0].main] == [("stilt-plain", 1)]
    assert outcome.warnings == ()


def test_turns_that_no_topic_has_are_listed(world: Path) -> None:
    (world / "some.qrels").write_text("1-1_1 0 a 1\n1-1_99 0 a 1\n")
    problems = refused(evaluate_passages, plan(world, topics=TOPICS))
    unknown = {(Path(row.file).name, row.turn_id) for row in problems if row.code == "unknown_turn"}
    assert {("some.qrels", "1-1_99"), ("b.txt", "9-9_9")} <= unknown


def test_qrels_that_cannot_be_read_or_are_empty_are_told_with_the_rest(world: Path) -> None:
    (world / "empty.qrels").write_text("\n")
    for name, message in (("empty.qrels", "grades nothing"), ("absent.qrels", "cannot be read")):
        problems = refused(evaluate_passages, plan(world, qrels=world / name))
        assert any(message in problem.message for problem in problems)


@pytest.mark.slow
def test_the_folder_has_every_table_and_is_the_same_again(world: Path, tmp_path: Path) -> None:
    evaluate_passages(plan(world, out=tmp_path / "out"))
    first = contents(tmp_path / "out")
    assert {f"{name}.{ending}" for name in ("runs", "pairs", "topics", "depths", "groups")
            for ending in ("tsv", "json", "md", "tex")} < first.keys()  # fmt: skip
    assert {"turns.tsv", "runs.svg", "topics.png", "depths.svg", "passages.sha256"} < first.keys()
    assert not any(name.startswith("ptkb") for name in first)
    files = sorted((world / "runs").glob("[abc].*"), reverse=True)
    evaluate_passages(plan(world, runs=files, out=tmp_path / "again"))
    assert contents(tmp_path / "again") == first


@pytest.mark.parametrize("wrong", [{"relevant": 0}, {"over": "worst"}, {"cluster": "run"}, {"by": "turn"}])
def test_words_that_mean_nothing_are_refused(world: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))[:3]}"):
        plan(world, **wrong)


def test_a_folder_among_the_runs_is_refused(world: Path) -> None:
    with pytest.raises(UsageError, match="inside"):
        evaluate_passages(plan(world, out=world / "runs" / "out"))
    with pytest.raises(UsageError, match="this is where"):
        evaluate_passages(plan(world, out=world / "runs"))


def test_ids_that_hide_from_tools_are_measured_as_columns(world: Path) -> None:
    (world / "runs").joinpath("c.json").unlink()
    ids = ["a\x00b", "\ud800", "a b", "%41", "a"]
    passages = [{"id": name, "text": "t", "score": 9.0 - k, "used": True} for k, name in enumerate(ids)]
    response = {"rank": 1, "text": "x", "passage_provenance": passages, "ptkb_provenance": []}
    run = {"run_name": "c", "run_type": "automatic", "eval_response": True, "turns": []}
    turns = [{"turn_id": turn, "responses": [response]} for turn in ("1-1_1", "\ud800", "")]
    (world / "runs" / "c.json").write_text(json.dumps(run | {"turns": turns}))
    (evaluation,) = evaluate_passages(plan(world, runs=world / "runs" / "c.json")).evaluations
    # The passage `a` is the fifth, and the only one of the turn with a grade.
    assert {score.values["1-1_1"] for score in evaluation.scores if score.criterion in ("RR", "Judged@5")} == {1 / 5}


@pytest.mark.slow
def test_assessments_stand_side_by_side_in_every_output(world: Path, tmp_path: Path) -> None:
    (world / "nist").write_text("1-1_1 0 1 0\n1-1_1 0 2 1\n")
    (world / "org").write_text("1-1_1 0 1 1\n1-1_1 0 2 0\n")
    run = world / "runs" / "c.json"
    outcome = evaluate_statements(StatementsPlan(runs=run, qrels=[world / "nist", world / "org"], out=tmp_path / "out"))
    first, second, both = outcome.tables("run")
    assert [grid[0][:2] for grid in (first, second)] == [("c", 1), ("c", 1)]
    assert both.names == ("run", "nist", "org")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"side_by_side.md", "nist_runs.svg", "org_topics.png", "statements.sha256"} < files
    assert (tmp_path / "out" / "runs.tsv").read_text().splitlines()[0].split("\t")[:3] == ["qrels", "run", "answered"]
    with pytest.raises(UsageError, match="--qrels FILE, or --topics FILE"):
        evaluate_statements(StatementsPlan(runs=run))


def test_two_qrels_of_one_name_are_told_apart_by_their_folders(world: Path) -> None:
    files = [put(world / name / "ptkb", "1-1_1 0 2 1\n") for name in ("nist", "org")]
    outcome = evaluate_statements(StatementsPlan(runs=world / "runs" / "c.json", qrels=files))
    assert [evaluation.assessment for evaluation in outcome.evaluations] == [str(file) for file in files]


def test_the_example_by_the_links_of_its_topics() -> None:
    outcome = evaluate_statements(StatementsPlan(runs=RUNS / "harbor-grounded.json", topics=TOPICS))
    (evaluation,) = outcome.evaluations
    assert evaluation.assessment == "topics.json"
    assert 0 < evaluation.main[0].mean.n == evaluation.turns


def test_a_grade_for_which_trec_eval_would_fill_the_memory_is_refused(world: Path) -> None:
    (world / "q.qrel").write_text("1-1_1 0 a 10001\n1-1_1 0 b 1\n")
    problems = refused(evaluate_passages, PassagesPlan(runs=world / "runs", qrels=world / "q.qrel"))
    assert [problem.message for problem in problems] == ["grade 10001: expected at most 10000"]
    (world / "q.qrel").write_text("1-1_1 0 a 10000\n1-1_1 0 b 1\n")
    assert evaluate_passages(PassagesPlan(runs=world / "runs", qrels=world / "q.qrel"))
