"""Passages that runs list, judged like responses: from lists, TREC runs and qrels to qrels that other commands take."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.ask.prompt import render
from judge.ask.records import Task
from judge.cli import main
from judge.errors import UsageError
from judge.pool.bank import read_pool_folder
from judge.pool.intake import read_runs
from judge.pool.listed_checks import check_pairs
from judge.pool.selection import Selection
from judge.runs.formats import read_run
from judge.runs.topics import read_topics, turns_by_id
from tests.build import pooled
from tests.conftest import PROJECT, complaint, json_lines, on_stderr, printed, put

A, B, C, D = (f"clueweb22-en9999-00-0000{k}:0" for k in range(4))
TURN = "1-1_1"
TEXTS = {A: "Sparrows nest in spring.", B: "Owls hunt at night.", C: "Owls sleep by day.", D: "Bread needs flour."}


def listed(name: str, turns: dict[str, list[list[Any]]], **head: Any) -> dict[str, Any]:
    """A run of 2024 whose turns have responses with these (passage id, score, used, text)."""
    made = []
    for turn_id, responses in turns.items():
        given = []
        for rank, passages in enumerate(responses, 1):
            provenance = []
            for passage_id, score, used, text in passages:
                fields = {"id": passage_id, "score": score, "used": used}
                provenance.append(fields if text is None else fields | {"text": text})
            given.append({"rank": rank, "text": "Owls.", "ptkb_provenance": [], "passage_provenance": provenance})
        made.append({"turn_id": turn_id, "responses": given})
    return {"run_name": name, "run_type": "automatic", "turns": made} | head


def world(folder: Path) -> Path:
    """Two runs: one lists A, B, C and used the last, the other lists B, then D that has no text."""
    one = [[(A, 9.0, False, None), (B, 8.0, False, None), (C, 7.0, True, None)]]
    other = [[(B, 5.0, True, None), (D, 4.0, True, None)]]
    put(folder / "runs" / "one.json", listed("one", {TURN: one}))
    put(folder / "runs" / "other.json", listed("other", {TURN: other}))
    put(folder / "passages.jsonl", "".join(f"{json.dumps({'id': k, 'contents': TEXTS[k]})}\n" for k in (A, B, C)))
    utterance = {"turn_id": 1, "utterance": "When do they hunt?", "resolved_utterance": "When do owls hunt?"}
    topics = [{"number": "1-1", "title": "owls", "ptkb": {"1": "I live near a wood."}, "turns": [utterance]}]
    put(folder / "topics.json", topics)
    return folder


def pool(folder: Path, *more: object, runs: str = "runs", out: str = "out", passages: bool = True) -> int:
    evidence = ["--passages", folder / "passages.jsonl"] if passages else []
    given = ["pool", "--runs", folder / runs, *evidence, "--criteria", "passage_relevance", "--out", folder / out]
    return main([str(each) for each in (*given, *more)])


def judged(folder: Path, *more: object, runs: str = "runs") -> int:
    given = ["run", "--runs", folder / runs, "--topics", folder / "topics.json", "--passages"]
    given += [folder / "passages.jsonl", "--criteria", "passage_relevance", "--model", "baseline/overlap"]
    return main([str(each) for each in (*given, "--out", folder / "out", *more)])


def listings(out: Path) -> dict[str, list[str]]:
    """Each pooled passage with run and rank of those that list it."""
    found = {}
    for response in read_pool_folder(out).responses:
        assert (response.unit, response.text, response.turn_id) == ("passage", "", TURN)
        found[response.listed_as] = [f"{entry.run_id} {entry.rank}" for entry in response.runs]
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {A: ["one 1"], B: ["one 2", "other 1"], C: ["one 3"], D: ["other 2"]}),
        (("--depth", 1), {A: ["one 1"], B: ["other 1"]}),
        (("--provenance", "used"), {B: ["other 1"], C: ["one 1"], D: ["other 2"]}),
        (("--provenance", "used", "--depth", 1), {B: ["other 1"], C: ["one 1"]}),
    ],
)
def test_the_first_passages_of_each_turn_are_pooled(tmp_path, options, expected) -> None:
    assert pool(world(tmp_path), *options) == 0
    assert listings(tmp_path / "out") == expected


def test_ten_passages_of_a_turn_are_pooled_by_default(tmp_path) -> None:
    many = [(f"clueweb22-en9999-00-00000:{k}", 20.0 - k, True, None) for k in range(12)]
    put(world(tmp_path) / "many" / "many.json", listed("many", {TURN: [many[:6], many[6:]]}))
    put(tmp_path / "passages.jsonl", json.dumps({"id": many[0][0], "contents": "owls"}))
    assert pool(tmp_path, runs="many") == 0
    assert len(listings(tmp_path / "out")) == 10


def test_passages_are_judged_whatever_is_wrong_with_the_responses(tmp_path, capsys) -> None:
    world(tmp_path)
    silent = listed("silent", {TURN: [[(A, 1.0, True, None)]]})
    silent["turns"][0]["responses"][0]["text"] = " "
    put(tmp_path / "runs" / "silent.json", silent)
    put(tmp_path / "runs" / "hidden.json", listed("hidden", {TURN: [[(A, 1.0, True, None)]]}, eval_response=False))
    assert "passages are judged whatever is wrong with the responses" in on_stderr(capsys, pool(tmp_path))
    assert listings(tmp_path / "out")[A] == ["hidden 1", "one 1", "silent 1"]


TREC = f"{TURN} Q0 {B} 1 0.5 bm25\n{TURN} Q0 {A} 2 2.5 bm25\n1-1-1 Q0 {C} 3 0.1 bm25\n"


def test_trec_runs_and_qrels_are_lists_of_passages(tmp_path) -> None:
    world(tmp_path)
    put(tmp_path / "lists" / "bm25.trec", TREC)
    put(tmp_path / "lists" / "nist.qrels", f"1-1-1 0 {D} 0\n{TURN} 0 {A} 3\n")
    # A run goes by its scores, and qrels are judged whole.
    assert pool(tmp_path, "--depth", 1, runs="lists") == 0
    assert listings(tmp_path / "out") == {A: ["bm25 1", "nist.qrels 2"], D: ["nist.qrels 1"]}


def test_a_trec_run_has_no_responses(tmp_path, capsys) -> None:
    world(tmp_path)
    bm25 = put(tmp_path / "lists" / "bm25.trec", TREC)
    said = complaint(capsys, main(["pool", "--runs", str(bm25), "--out", str(tmp_path / "out")]))
    assert "'bm25': they list passages and have no responses" in said
    assert "'bm25': they do not say which passages a response uses" in complaint(
        capsys, pool(tmp_path, "--provenance", "used", runs="lists")
    )
    assert main(["convert", str(bm25), "--to", "ikat2025", "--out", str(tmp_path / "new")]) == 2


def test_an_id_that_cannot_be_printed_is_left_out_with_the_reason(tmp_path) -> None:
    world(tmp_path)
    put(tmp_path / "lists" / "bm25.trec", f"{TURN} Q0 a\0b 1 9.0 bm25\n{TURN} Q0 {A} 2 8.0 bm25\n")
    assert pool(tmp_path, runs="lists") == 0
    rows = (tmp_path / "out" / "excluded.tsv").read_text(encoding="utf-8").splitlines()[1:]
    detail = "passage id 'a\\\\x00b': expected 1 to 200 characters that can be printed"
    assert rows == [f"bm25\t{TURN}\t1\tunusable_id\t{detail}"]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("bm25.trec", f"{TREC}{TURN} Q0 {A} x y bm25\n", "line 4"),
        ("bm25.trec", f"{TREC}{TURN} Q0 {D} 1 1.0 other\n", "line 4"),
        ("nist.qrels", f"{TURN} 0 {A} 1\n{TURN} 0 {B}\n", "line 2"),
        ("nist.qrels", f"{TURN} 0 {A} 1\n{TURN} 0 {A} 2\n", "line 2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, name, content, place) -> None:
    read = read_run(put(tmp_path / name, content))
    assert read.run is None
    assert [(problem.code, problem.path) for problem in read.problems] == [("malformed_line", place)]


def test_qrels_name_passages_and_a_missing_text_is_no_grade(tmp_path, capsys) -> None:
    assert judged(world(tmp_path)) == 0
    said, err = capsys.readouterr()
    # owls, hunt: B has both, C owls alone, A neither. D has no text, so it has no grade.
    assert (tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel").read_text() == (
        f"{TURN} 0 {A} 0\n{TURN} 0 {B} 3\n{TURN} 0 {C} 2\n"
    )
    sidecar = json.loads((tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel.json").read_text())
    assert sidecar["rows"] == "turn_id 0 passage_id grade"
    assert sidecar["counts"]["failures"] == {"no_passages": 1}
    assert "share" not in sidecar
    assert [failure["reason"] for failure in json_lines(tmp_path / "out" / "failures.jsonl")] == ["no_passages"]
    assert (tmp_path / "out" / "grades.tsv").read_text().splitlines() == [
        "criterion\tturn_id\tgrade\titems",
        f"passage_relevance\t{TURN}\t3\t1",
        f"passage_relevance\t{TURN}\t2\t1",
        f"passage_relevance\t{TURN}\t0\t1",
        f"passage_relevance\t{TURN}\tmissing\t1",
    ]
    assert "1 turn of 1 have a passage of grade 2 or 3." in said
    assert "grades.md (index.md lists all files)" in err
    assert not {"leaderboard.md", "report.html", "bank.json"} & {path.name for path in (tmp_path / "out").iterdir()}


def test_evaluations_and_pools_take_the_qrels_as_they_are(tmp_path, capsys) -> None:
    assert judged(world(tmp_path)) == 0
    qrels = str(tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel")
    capsys.readouterr()
    evaluate = ["evaluate", "passages", "--runs", str(tmp_path / "runs"), "--qrels", qrels, "--format", "tsv"]
    table = printed(capsys, main(evaluate)).splitlines()
    assert sorted(line.split("\t")[0] for line in table[1:3]) == ["one", "other"]
    folder = str(tmp_path / "responses")
    given = ["pool", "--runs", str(tmp_path / "runs"), "--passage-qrels", qrels, "--min-relevance", "3"]
    assert main([*given, "--out", folder]) == 0
    assert [response.runs[0].run_id for response in read_pool_folder(Path(folder)).responses] == ["other"]


def test_a_depth_beyond_all_lists_is_said(tmp_path, capsys) -> None:
    said = on_stderr(capsys, pool(world(tmp_path), "--depth", 500))
    assert "no turn has 500 passages (--depth): the last one that is judged is number 3 of its list" in said


def test_a_release_says_what_takes_the_qrels(tmp_path) -> None:
    assert judged(world(tmp_path)) == 0
    assert main(["release", str(tmp_path / "out"), "--out", str(tmp_path / "public")]) == 0
    readme = (tmp_path / "public" / "README.md").read_text()
    assert "# Passage assessment" in readme and "take the qrels as they are" in readme
    assert "leaderboard" not in readme
    assert (tmp_path / "public" / "grades.tsv").read_bytes() == (tmp_path / "out" / "grades.tsv").read_bytes()


@pytest.mark.parametrize("command", ["leaderboard", "report", "plan"])
def test_no_runs_are_ranked_by_grades_of_passages(tmp_path, capsys, command) -> None:
    assert judged(world(tmp_path)) == 0
    capsys.readouterr()
    assert "a pool of passages ranks no runs: `judge evaluate passages`" in complaint(
        capsys, main([command, str(tmp_path / "out")])
    )


def test_the_prompt_shows_the_question_and_the_passage(tmp_path) -> None:
    assert pool(world(tmp_path)) == 0
    stored = read_pool_folder(tmp_path / "out", "passages.jsonl")
    turn = turns_by_id(read_topics(tmp_path / "topics.json"))[TURN]
    second = next(response for response in stored.responses if response.listed_as == B)
    shown = {}
    for variant in ("graded", "resolved"):
        request = render(Task(second, find_criterion(f"passage_relevance/{variant}")), stored.passages, turn, "text")
        shown[variant] = request.messages[1].content
        assert (request.response, request.passages) == ("When do owls hunt?", (TEXTS[B],))
    for words in ("I live near a wood.", "When do they hunt?", "When do owls hunt?", TEXTS[B]):
        assert words in shown["graded"]
    assert "When do they hunt?" not in shown["resolved"]
    decision = render(Task(second, find_criterion("passage_relevance")), stored.passages, turn, "decision")
    assert "<response>" not in decision.messages[1].content
    assert TEXTS[B] in decision.messages[1].content


def test_a_prompt_about_responses_asks_about_no_passage() -> None:
    response = pooled("R00000", TURN, "one", text="", passages=(B,), unit="passage")
    with pytest.raises(UsageError, match="about responses, but passages are judged here"):
        render(Task(response, find_criterion("naturalness")), {}, None, "text")


def test_runs_may_bring_the_texts_but_one_passage_has_one(tmp_path, capsys) -> None:
    put(world(tmp_path) / "texts" / "a.json", listed("a", {TURN: [[(A, 1.0, True, "Owls."), (B, 0.5, True, None)]]}))
    put(tmp_path / "texts" / "b.json", listed("b", {TURN: [[(B, 1.0, True, "Owls."), (A, 0.5, True, None)]]}))
    assert pool(tmp_path, runs="texts", passages=False) == 0
    stored = read_pool_folder(tmp_path / "out", "passages.jsonl")
    assert sorted((passage.passage_id, passage.text) for passage in stored.passages.values()) == [
        (A, "Owls."),
        (B, "Owls."),
    ]
    assert [len(response.runs) for response in stored.responses] == [2, 2]
    put(tmp_path / "texts" / "c.json", listed("c", {TURN: [[(A, 1.0, True, "Ravens.")]]}))
    capsys.readouterr()
    said = complaint(capsys, pool(tmp_path, runs="texts", out="other", passages=False))
    assert f"'{A}' has another text here than in" in said and "c.json" in said and "a.json" in said
    assert "--passages gives those of the collection" in said


def test_passages_of_another_collection_are_refused(tmp_path, capsys) -> None:
    put(world(tmp_path) / "passages.jsonl", json.dumps({"id": "elsewhere:1", "contents": "Owls."}) + "\n")
    said = complaint(capsys, pool(tmp_path))
    assert "none of the passages that the runs list is there, such as" in said and "another collection?" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--depth", 1001), "a turn lists at most 1000 passages"),
        (("--passage-qrels", "x"), "--passage-qrels: without effect here"),
        (("--over-limit", "exclude"), "--over-limit: without effect here"),
    ],
)
def test_options_that_are_not_about_passages_are_refused(tmp_path, capsys, options, words) -> None:
    assert words in complaint(capsys, pool(world(tmp_path), *options))


def test_options_about_passages_are_refused_elsewhere(tmp_path, capsys) -> None:
    given = ["pool", "--runs", str(world(tmp_path) / "runs"), "--provenance", "used", "--out", str(tmp_path / "out")]
    assert "--provenance: without effect here: about passages, and responses are judged here" in complaint(
        capsys, main(given)
    )


def test_too_many_pairs_are_refused_with_the_largest_run(tmp_path) -> None:
    world(tmp_path)
    submitted = read_runs(tmp_path / "runs", selection=Selection(depth=10, unit="passage"))
    check_pairs(submitted, 4)
    with pytest.raises(UsageError, match=r"^4 pairs of turn and passage, at most 3 .*one\.json alone has 3: "):
        check_pairs(submitted, 3)


def test_the_example_is_judged(tmp_path) -> None:
    given = [
        "pool",
        "--runs",
        str(PROJECT / "examples" / "runs"),
        "--topics",
        str(PROJECT / "examples" / "topics.json"),
    ]
    given += ["--passages", str(PROJECT / "examples" / "passages.jsonl"), "--criteria", "passage_relevance"]
    assert main([*given, "--out", str(tmp_path / "out")]) == 0
    assert len(json_lines(tmp_path / "out" / "pool.jsonl")) == 52
    lines = (tmp_path / "out" / "pool.txt").read_text().splitlines()
    assert (len(lines), lines[0]) == (52, "1-1_1 Q0 clueweb22-en9999-01-00017:0 1 0.0 judge")


def test_only_holes_of_peoples_grades_are_judged_and_both_stay_apart(tmp_path, capsys) -> None:
    people = put(world(tmp_path) / "nist.qrels", f"1-1-1 0 {A} 4\n1-1_2 0 {B} 1\n")
    assert judged(tmp_path, "--fill", people) == 0
    said = capsys.readouterr().err
    assert "people graded 2 passages, the judge 2 more: passage_relevance.merged.qrel" in said
    assert "1 grade by people off the judge's scale, left as given" in said
    excluded = (tmp_path / "out" / "excluded.tsv").read_text().splitlines()[1:]
    assert excluded == [f"one\t{TURN}\t1\tgraded_by_people\t{A} has grade 4"]
    assert A not in listings(tmp_path / "out")
    qrels = {path.name: path.read_text() for path in (tmp_path / "out" / "qrels").glob("*.qrel")}
    assert qrels == {
        "passage_relevance.llm.qrel": f"{TURN} 0 {B} 3\n{TURN} 0 {C} 2\n",
        "passage_relevance.people.qrel": f"{TURN} 0 {A} 4\n1-1_2 0 {B} 1\n",
        "passage_relevance.merged.qrel": (
            f"{TURN} people {A} 4\n{TURN} judge {B} 3\n{TURN} judge {C} 2\n1-1_2 people {B} 1\n"
        ),
    }
    about = json.loads((tmp_path / "out" / "qrels" / "passage_relevance.merged.qrel.json").read_text())
    assert about["counts"]["people"] == {"graded": 2, "by_grade": {"1": 1, "4": 1}}
    assert about["counts"]["judge"] == {"graded": 2, "by_grade": {"2": 1, "3": 1}}
    assert about["judge"]["prompt_digest"] == find_criterion("passage_relevance").digest
    assert about["people"]["off_the_scale_of_the_judge"] == 1
    merged = str(tmp_path / "out" / "qrels" / "passage_relevance.merged.qrel")
    assert main(["evaluate", "passages", "--runs", str(tmp_path / "runs"), "--qrels", merged]) == 0


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f"7-1_1 0 {A} 1\n", f"line 1 grades '{A}' of turn '7-1_1', the runs list '{A}' for turn '{TURN}'"),
        (f"{TURN} 0 clueweb22-en9999-00-00000 1\n", "the qrels have ids of documents, and passages are wanted"),
        (f"{TURN} 0 {A}\n", "line 1: 3 columns: expected 4 (turn_id 0 item_id grade)"),
        ("", "nist.qrels: grades nothing"),
        ("\n\n", "nist.qrels: grades nothing"),
    ],
)
def test_grades_of_other_turns_or_of_documents_fill_nothing(tmp_path, capsys, lines, words) -> None:
    people = put(world(tmp_path) / "nist.qrels", lines)
    said = complaint(capsys, judged(tmp_path, "--fill", people))
    assert str(people) in said and words in " ".join(said.split())
    assert not (tmp_path / "out").exists()


def test_where_people_graded_everything_nothing_is_judged(tmp_path, capsys) -> None:
    people = put(world(tmp_path) / "nist.qrels", "".join(f"{TURN} 0 {k} 1\n" for k in (A, B, C, D)))
    assert "no passage can be judged: the runs list none, or people graded each (--fill)" in complaint(
        capsys, judged(tmp_path, "--fill", people)
    )


def calibrated(folder: Path, capsys: pytest.CaptureFixture[str], *more: object) -> tuple[str, dict[str, str]]:
    """What a calibration of the judged world by people's qrels prints, and the row of the judge."""
    people = put(
        folder / "nist.qrel", f"1-1-1 0 {A} 0\n{TURN} 0 {B} 4\n{TURN} 0 {C} 1\n{TURN} 0 {D} 2\n9-9_9 0 {A} 1\n"
    )
    given = ["calibrate", "--gold", people, "--judgments", folder / "out" / "judgments.jsonl"]
    given += ["--criterion", "passage_relevance", "--out", folder / "calibrated", *more]
    said = printed(capsys, main([str(each) for each in given]))
    head, *rows = (folder / "calibrated" / "agreement.tsv").read_text().splitlines()
    return said, dict(zip(head.split("\t"), rows[0].split("\t"), strict=True))


def test_a_judge_of_passages_is_calibrated_by_the_qrels_of_people(tmp_path, capsys) -> None:
    assert judged(world(tmp_path)) == 0
    capsys.readouterr()
    said, row = calibrated(tmp_path, capsys)
    # Of A, B and C the judge said 0, 3, 2, and the people 0, 4, 1; D has no grade by the judge.
    assert (row["gold"], row["n"], row["binary"]) == ("4", "3", "false")
    assert float(row["percent"]) == pytest.approx(2 / 3, abs=1e-6)
    assert "passage_relevance: 1 gold grade above 3 counted as 3" in said
    assert "1 of 5 gold grades are of passages not in the pool" in " ".join(said.split())
    # Runs are ranked by no mean of what they list.
    assert not (tmp_path / "calibrated" / "systems.tsv").exists()


def test_grades_of_five_levels_are_compared_as_positive_or_not(tmp_path, capsys) -> None:
    assert judged(world(tmp_path)) == 0
    capsys.readouterr()
    said, row = calibrated(tmp_path, capsys, "--gold-scale", "passage_relevance/ikat")
    # From 2 on, grades are positive: of people B alone, of the judge B and C.
    assert (row["n"], row["binary"]) == ("3", "true")
    assert float(row["percent"]) == pytest.approx(2 / 3, abs=1e-6)
    assert "above" not in said


def test_runs_are_ranked_by_both_qrels(tmp_path, capsys) -> None:
    assert judged(world(tmp_path)) == 0
    people = put(tmp_path / "nist.qrel", f"{TURN} 0 {A} 0\n{TURN} 0 {B} 4\n{TURN} 0 {C} 1\n")
    capsys.readouterr()
    given = ["evaluate", "qrels", people, tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel"]
    given += ["--runs", tmp_path / "runs", "--scale", "0-4", "--format", "tsv"]
    said = printed(capsys, main([str(each) for each in given]))
    assert "nDCG@5\ttau_b" in said


def test_lists_and_qrels_may_name_topics_of_one_turn(tmp_path, capsys) -> None:
    # As the id of a turn, 2024-7 would be turn 7 of topic 2024.
    world(tmp_path)
    (tmp_path / "topics.json").write_text("2024-7\tWhen do owls hunt?\n2024-9\tWhen do sparrows nest?\n", "utf-8")
    lines = [f"{topic} Q0 {passage} {rank} {-rank} sys" for topic in ("2024-7", "2024-9") for rank, passage in
             enumerate((A, B), 1)]  # fmt: skip
    put(tmp_path / "run.txt", "".join(f"{line}\n" for line in lines))
    people = put(tmp_path / "people.qrel", f"2024-7 0 {A} 0\n2024-8 0 {A} 1\n")
    assert judged(tmp_path, "--fill", people, runs="run.txt") == 0
    merged = (tmp_path / "out" / "qrels" / "passage_relevance.merged.qrel").read_text()
    assert merged == (
        f"2024-7_1 people {A} 0\n2024-7_1 judge {B} 3\n2024-8_1 people {A} 1\n"
        f"2024-9_1 judge {A} 3\n2024-9_1 judge {B} 0\n"
    )
    capsys.readouterr()
    gold = put(tmp_path / "gold.qrel", f"2024-7 0 {B} 3\n2024-9 0 {A} 2\n")
    given = ["calibrate", "--gold", gold, "--judgments", tmp_path / "out", "--criterion", "passage_relevance", "--json"]
    said = json.loads(printed(capsys, main([str(each) for each in given])))
    assert [row["n"] for row in said["agreement"] if row["judge"] == "baseline/overlap"] == [2]
