"""Support: citations pooled one by one, judged, and measured by response; gold of citations corrects the measures."""

import json
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import judge
from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.gold.draft import ImportOptions
from judge.gold.plan import PlanRow
from judge.gold.rows import GoldRow, citation_digest, gold_jsonl
from judge.gold.sources import import_gold
from judge.jobs.judged import read_judged
from judge.jobs.leaderboard import CorrectionPlan, correct_leaderboard
from judge.pool.bank import read_pool_folder
from judge.pool.records import Pool, PooledResponse, PooledRun
from judge.results.citations import boards_of, support
from judge.results.leaderboard import share_positive
from judge.results.rows import Score
from judge.results.tables import result_tables
from judge.stats.generalizability import GradeTable, GradeVariance, grade_variance
from tests.conftest import complaint, put, refused
from tests.results.test_leaderboard import excluded, failure, judgment, pooled


@pytest.mark.parametrize(
    ("sentences", "every", "measures"),
    [
        # By the first citation: 1 and .5 of two judged sentences; an uncited third is in the recall alone.
        ([[1, 0], [0.5], []], False, (1.5 / 2, 1.5 / 3)),
        # By every citation the first sentence has (1 + 0)/2.
        ([[1, 0], [0.5], []], True, ((0.5 + 0.5) / 2, 1 / 3)),
        # A first citation that nobody judged takes its sentence out of both; by every citation the second counts.
        ([[None, 1], [0]], False, (0.0, 0.0)),
        ([[None, 1], [0]], True, (1 / 2, 1 / 2)),
        ([[None], [1]], False, (1.0, 1.0)),
        ([[], []], False, (0.0, 0.0)),
        ([], True, (0.0, 0.0)),
    ],
)
def test_support(sentences, every, measures) -> None:
    assert support(sentences, every=every) == pytest.approx(measures)


ANSWERS = {
    # Sentences with the places of what they cite; run a has no answer to topic 8.
    "a": {"7": {"One.": [0, 1], "Two.": [2], "Three.": []}},
    "b": {"7": {"One.": [0]}, "8": {"Four.": [3]}},
}
LABELS = {("One.", "s0"): "full", ("One.", "s1"): "none", ("Two.", "s2"): "partial", ("Four.", "s3"): "full"}


def runs(folder: Path, answers: Mapping[str, Mapping[str, Mapping[str, list[int]]]] = ANSWERS) -> dict[str, Any]:
    """The options that name the runs with these answers."""
    folder.mkdir(parents=True)
    for run_id, topics in answers.items():
        lines = [
            {"run_id": run_id, "topic_id": topic, "references": [f"s{k}" for k in range(4)],
             "answer": [{"text": text, "citations": cited} for text, cited in sentences.items()]}
            for topic, sentences in topics.items()
        ]  # fmt: skip
        (folder / f"{run_id}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (folder.parent / "topics.tsv").write_text("7\tWhy?\n8\tWho?\n", "utf-8")
    texts = (json.dumps({"id": f"s{k}", "text": f"This is s{k}."}) + "\n" for k in range(4))
    (folder.parent / "passages.jsonl").write_text("".join(texts), "utf-8")
    return {"runs": (folder,), "topics": folder.parent / "topics.tsv", "profile": "rag",
            "passages": (folder.parent / "passages.jsonl",)}  # fmt: skip


def judged(tmp_path: Path, labels: Mapping[tuple[str, str], str] = LABELS) -> Path:
    def label(messages: Any) -> str:
        asked = messages[1]["content"]
        found = (label for (text, passage), label in labels.items() if text in asked and f"This is {passage}." in asked)
        return f"Grade: {next(found)}"

    model = judge.FunctionJudge("labels/v1", label)
    out = tmp_path / "out"
    judge.run(judge.Plan(**runs(tmp_path / "runs"), criteria=("support",), model=(model,), out=out))
    return out


def row_of(folder: Path, run_id: str, measure: str) -> Score:
    rows = read_judged(folder).tables.leaderboard
    return next(row for row in rows if (row.run_id, row.criterion) == (run_id, f"support_{measure}"))


def test_every_measure_is_a_board_of_runs(tmp_path: Path) -> None:
    out = judged(tmp_path)
    found = {
        board.name.removeprefix("support_"): [
            row_of(out, run_id, board.name.removeprefix("support_")).mean.value for run_id in "ab"
        ]
        for board in boards_of([find_criterion("support")])
    }
    # Over two topics, of which a has answered the first.
    assert found == {
        "precision_weighted": [(1 + 0.5) / 2 / 2, 1],
        "recall_weighted": [(1 + 0.5 + 0) / 3 / 2, 1],
        "precision_hard": [(1 + 0) / 2 / 2, 1],
        "recall_hard": [(1 + 0 + 0) / 3 / 2, 1],
        "precision_weighted_all": [((1 + 0) / 2 + 0.5) / 2 / 2, 1],
        "recall_weighted_all": [((1 + 0) / 2 + 0.5 + 0) / 3 / 2, 1],
        "precision_hard_all": [((1 + 0) / 2 + 0) / 2 / 2, 1],
        "recall_hard_all": [((1 + 0) / 2 + 0 + 0) / 3 / 2, 1],
    }
    first = row_of(out, "a", "precision_weighted")
    assert (first.bound, first.counts["n"], first.counts["unanswered"], first.counts["turns"], first.flags) == (
        0.375,
        1,
        1,
        2,
        ("MISSING",),
    )
    assert (first.mean.n, first.counts["positive"], share_positive(first)) == (2, 0, 0)
    board = (out / "leaderboard.md").read_text("utf-8")
    assert "## support_precision_weighted" in board and "Prompt support/graded, a measure from 0 to 1" in board
    assert "response_support.llm.qrel" in {path.name for path in (out / "qrels").iterdir()}


def test_a_judge_of_citations_is_probed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = judged(tmp_path)
    asked = ["--model", "baseline/overlap", "--items", "2"]
    main(["probe", str(out), *asked, "--out", str(tmp_path / "probe")])
    runs_of = ["--runs", str(tmp_path / "runs"), "--profile", "rag", "--passages", str(tmp_path / "passages.jsonl")]
    main(["probe", *runs_of, *asked, "--out", str(tmp_path / "again")])
    for folder in ("probe", "again"):
        twins = [json.loads(line) for line in (tmp_path / folder / "twins.jsonl").read_text().splitlines()]
        swapped = [row["change"] for row in twins if row["probe"] == "passages swapped"]
        assert {row["prompt"] for row in twins} == {"support/graded"}
        # The one citation of topic 8 has no other to exchange its passage with.
        assert swapped == ["passages of another response", None]
    capsys.readouterr()
    assert main(["probe", str(out), "--profile", "rag", *asked, "--out", str(tmp_path / "none")]) == 2
    assert "--profile is about runs (--runs)" in capsys.readouterr().err


def test_a_citation_of_several_runs_is_pooled_once(tmp_path: Path) -> None:
    pool = read_pool_folder(judged(tmp_path), "excluded.tsv")
    first = next(response for response in pool.responses if (response.text, response.passages) == ("One.", ("s0",)))
    assert [(entry.run_id, entry.rank, entry.citation) for entry in first.runs] == [("a", 1, 1), ("b", 1, 1)]
    assert (pool.unit, len(pool.responses)) == ("citation", 4)
    uncited = [(row.run_id, row.turn_id, row.rank) for row in pool.exclusions if row.reason == "uncited_sentence"]
    assert uncited == [("a", "7_1", 3)]


def test_a_citation_without_a_grade_counts_in_the_bound_alone(tmp_path: Path) -> None:
    out = judged(tmp_path, LABELS | {("Two.", "s2"): "I had rather not say."})
    precision, recall = (row_of(out, "a", measure) for measure in ("precision_weighted", "recall_weighted"))
    # Of topic 7 the first sentence has a grade, and the third cites nothing.
    assert (precision.mean.value, precision.bound) == (1 / 2, (1 + 0) / 2 / 2)
    assert (recall.mean.value, recall.bound) == ((1 + 0) / 2 / 2, (1 + 0 + 0) / 3 / 2)
    assert row_of(out, "b", "precision_weighted").flags == ()
    without = judged(tmp_path / "none", {pair: f"I had rather not say of {pair[0]}" for pair in LABELS})
    row = row_of(without, "b", "recall_hard")
    assert (row.mean.value, row.bound, row.counts["n"], row.reasons) == (None, 0.0, 0, {"unreadable": 2})


EIGHT = [str(topic) for topic in range(8)]


@pytest.mark.parametrize(
    ("without", "organizers", "values"),
    [
        # Nothing is missing: of three sentences two cite, and both are supported.
        ((), True, {"precision": (1.0, 1.0), "recall": (2 / 3, 2 / 3)}),
        # The text of the second citation is not in the organizer's file: the first one stands for both.
        (("s1",), True, {"precision": (1.0, 1 / 2), "recall": (2 / 3, 1 / 3)}),
        # The run had to bring the text of the second one.
        (("s1",), False, {"precision": (1 / 2, 1 / 2), "recall": (1 / 3, 1 / 3)}),
    ],
)
def test_a_text_that_the_collection_lacks_is_not_the_runs_doing(
    without: tuple[str, ...], organizers: bool, values: dict[str, tuple[float, float]]
) -> None:
    """What two runs are compared by, and what it would be at worst, of a run against one that supports all."""
    found: dict[str, list[PooledResponse]] = {"x": [], "y": []}
    results: list[Judgment | Failure] = []
    exclusions = []
    for topic, run_id in product(EIGHT, found):
        for number in (1, 2):
            key = f"s{number - 1}" if run_id == "x" else "s0"
            named = pooled(f"{run_id}{topic}{number}", f"{topic}_1", (run_id, number))
            of = replace(named, passages=(key,), unit="citation", text=f"{run_id}{number}")
            found[run_id].append(replace(of, runs=(replace(of.runs[0], citation=1),)))
        if run_id == "x":
            exclusions.append(excluded("x", f"{topic}_1", "uncited_sentence", 3))
    for response in (*found["x"], *found["y"]):
        lacking = response.passages[0] in without
        given = failure(response, "support", "no_passages") if lacking else judgment(response, 2, name="support")
        results.append(given)
    turns = tuple(f"{topic}_1" for topic in EIGHT)
    runs = tuple(PooledRun(name, None, None, "rag", "", True, turns, brings_texts=not organizers) for name in found)
    here = Pool((*found["x"], *found["y"]), {}, tuple(exclusions), runs)
    rows = {row.criterion: row for row in result_tables(here, results, [find_criterion("support")]).differences}
    for measure, (compared, at_worst) in values.items():
        row = rows[f"support_{measure}_weighted"]
        assert (row.run_a, row.run_b, row.difference.n) == ("x", "y", 8)
        assert row.difference.value == pytest.approx(compared - 1)
        assert row.at_worst.difference.value == pytest.approx(at_worst - 1)
        assert (row.if_worst is None) is (compared == at_worst)


def gold(text: str, passage: str, turn_id: str, grade: int, p: float = 1.0) -> GoldRow:
    about = turn_id, turn_id.partition("_")[0], "support", grade, "ann", None, citation_digest(text, passage)
    return GoldRow(*about, inclusion_probability=p)


def test_gold_of_citations_is_gold_of_the_measures(tmp_path: Path) -> None:
    out = judged(tmp_path)
    rows = [gold("One.", "s0", "7_1", 0), gold("Two.", "s2", "7_1", 2), gold("Four.", "s3", "8_1", 1)]
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl(rows))
    outcome = correct_leaderboard(CorrectionPlan(folder=out, gold=(tmp_path / "gold.jsonl",)))
    found = {
        (row.run_id, row.criterion.removeprefix("support_")): (row.more["method"], row.mean.value)
        for row in outcome.rows
    }
    # All first citations have gold; the topic without an answer needs none.
    assert found["a", "precision_weighted"] == ("census", (0 + 1) / 2 / 2)
    assert found["a", "recall_hard"] == ("census", (0 + 1 + 0) / 3 / 2)
    assert found["b", "precision_weighted"] == ("census", (0 + 0.5) / 2)
    # Of all citations, One. with s1 has none: it does not count, and a caution says so.
    assert found["a", "precision_weighted_all"] == ("census", (0 + 1) / 2 / 2)
    (partly,) = (text for text in outcome.cautions if "only some" in text)
    assert partly.startswith(
        "support_precision_weighted_all, support_recall_weighted_all, …: of 1 response only some citations have gold"
    )
    # With earlier gold, certain, of a citation of a response that was drawn or not, each counts by its own chance.
    rows = [
        gold("One.", "s0", "7_1", 0),
        gold("One.", "s1", "7_1", 1, 0.25),
        gold("Two.", "s2", "7_1", 2, 0.5),
        gold("Four.", "s3", "8_1", 1, 0.25),
    ]
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl(rows))
    outcome = correct_leaderboard(CorrectionPlan(folder=out, gold=(tmp_path / "gold.jsonl",)))
    of_a = {row.criterion: row.mean.value for row in outcome.rows if row.run_id == "a"}
    by_judge = ((1 + 0) / 2 + 1 / 2) / 2
    parts = ((0, 1 / 4 / 1), (1 / 2, 1 / 4 / 0.25), (1, 1 / 2 / 0.5), (None, 1.0))
    errors = [(0 if worth is None else worth - by_judge, w) for worth, w in parts]
    corrected = by_judge / 2 + sum(e * w for e, w in errors) / sum(w for _, w in errors)
    assert of_a["support_precision_weighted_all"] == pytest.approx(corrected)
    # A turn without an answer needs no label, so it is no label of a run that has too few.
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl([rows[0], *rows[2:]]))
    outcome = correct_leaderboard(CorrectionPlan(folder=out, gold=(tmp_path / "gold.jsonl",)))
    (row,) = (of for of in outcome.rows if (of.run_id, of.criterion) == ("a", "support_precision_weighted_all"))
    assert (row.counts["gold"], row.mean.value, row.mean.reason) == (2, None, "fewer than 3 gold grades")


def test_gold_stands_for_failed_citations_that_have_it(tmp_path: Path) -> None:
    failed = {("Two.", "s2"): "?", ("Four.", "s3"): "?"}
    out = judged(tmp_path, LABELS | failed)
    rows = [gold("One.", "s0", "7_1", 2), gold("Four.", "s3", "8_1", 2)]
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl(rows))
    outcome = correct_leaderboard(CorrectionPlan(folder=out, gold=(tmp_path / "gold.jsonl",)))
    bounds = {row.run_id: row.bound for row in outcome.rows if row.criterion == "support_precision_weighted"}
    # Of a, Two. has neither grade and is no support: (1 + 0)/2 of topic 7, 0 of topic 8. Of b, gold says what Four. is.
    assert bounds == {"a": (1 + 0) / 2 / 2, "b": (1 + 1) / 2}


def test_a_trial_is_flagged_where_a_citation_was_not_asked_about(tmp_path: Path) -> None:
    out = tmp_path / "out"
    model = judge.FunctionJudge("full/v1", lambda messages: "Grade: full")
    judge.run(judge.Plan(**runs(tmp_path / "runs"), criteria=("support",), model=(model,), out=out, limit=2))
    row = row_of(out, "a", "recall_weighted_all")
    # Of its three citations some were asked about, so that the response has a grade.
    assert (row.counts["n"], row.counts["not_asked"], "TRIAL" in row.flags) == (1, 0, True)


def test_citations_are_no_responses_to_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(judged(tmp_path))
    for argv in (["evaluate", "responses", out], ["evaluate", "qrels", out, out]):
        capsys.readouterr()
        assert "a pool of citations has no grades of responses" in complaint(capsys, main(argv))


def test_labels_of_assessors_are_gold(tmp_path: Path) -> None:
    def sentence(text: object, *labels: object) -> dict[str, Any]:
        cited = [{"citationId": k, "reference": f"s{k}", "support": label} for k, label in enumerate(labels)]
        return {"sentenceId": 0, "text": text, "citations": cited}

    path = tmp_path / "final.citation_judgments_with_prediction.jsonl"
    lines = [
        {"run_id": "x.a", "topic_id": "7", "sentences": [sentence("One.", "2", 3), sentence(float("nan"), "2")]},
        # The same citation of another run has the same label, then another one: the first label counts.
        {"run_id": "x.b", "topic_id": "7", "sentences": [sentence("One.", 2)]},
        {"run_id": "x.c", "topic_id": "7", "sentences": [sentence("One.", 0)]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    imported = import_gold("rag2024", [path], ImportOptions())
    found = [(row.turn_id, row.grade, row.assessor, row.made, row.text_sha256) for row in imported.rows]
    name = citation_digest("One.", "s0")
    assert found == [("7_1", 2, "nist", "postedit", name)]
    assert imported.notes == (
        "2 citations left out: nobody judged them, or their sentence has no text",
        "1 label left out: another run's label of the same citation came first",
        "the labels do not say how likely each citation was to be labeled, and `judge leaderboard --gold` needs it: "
        "import them with --inclusion 1 where every citation of the runs was labeled in these topics",
    )


def test_labels_that_are_none_are_told_with_their_places(tmp_path: Path) -> None:
    def line(topic: object = "7", support: object = "2", **changed: object) -> str:
        cited = {"reference": "s0", "support": support}
        sentence = {"text": "One.", "citations": [cited]}
        return json.dumps({"run_id": "a", "topic_id": topic, "sentences": [sentence]} | changed)

    path = tmp_path / "labels.jsonl"
    lines = [
        line(), line(support="9"), "[]", line("8", 2.5), line(None), line("9", sentences=[{"text": "t"}]),
        line("10", support="9"), line("11", sentences="x"),
    ]  # fmt: skip
    put(path, "\n".join(lines))
    problems = refused(import_gold, "rag2024", [path], ImportOptions())
    assert {(problem.path, problem.message) for problem in problems} == {
        ("line 2: $", "topic '7' of run 'a' again: expected once"),
        ("line 2: $.sentences[0].citations[0].support", "expected 2, 1, 0, -1, 3, found '9'"),
        ("line 3: $", "Expected `object`, got `array`"),
        ("line 4: $.sentences[0].citations[0].support", "Expected `int | str`, got `float`"),
        ("line 5: $", "expected `topic_id` or `qid`"),
        ("line 6: $.sentences[0]", "Object missing required field `citations`"),
        ("line 7: $.sentences[0].citations[0].support", "expected 2, 1, 0, -1, 3, found '9'"),
        ("line 8: $.sentences", "Expected `array`, got `str`"),
    }
    put(path, "")
    with pytest.raises(InputError, match=r"no grade to import; no row$"):
        import_gold("rag2024", [path], ImportOptions())


def test_labels_of_a_plan_are_found_by_their_texts(tmp_path: Path) -> None:
    cited = [{"reference": "s0", "support": 2}, {"reference": "s1", "support": 0}]
    path = tmp_path / "labels.jsonl"
    line = {"run_id": "a", "topic_id": "7", "sentences": [{"text": "One.", "citations": cited[:1]}]}
    put(path, json.dumps(line) + "\n")
    row = PlanRow(
        turn_id="7_1", topic_id="7", response_id="R00003", text_sha256=citation_digest("One.", "s0"), runs=("a",),
        criteria=("support",), inclusion_probability=0.25, stratum="drawn",
    )  # fmt: skip
    options = ImportOptions(plan={("7_1", "R00003"): row})
    (found,) = import_gold("rag2024", [path], options).rows
    assert (found.response_id, found.inclusion_probability, found.stratum) == ("R00003", 0.25, "drawn")
    line["sentences"] = [{"text": "One.", "citations": cited}]
    put(path, json.dumps(line) + "\n")
    (problem,) = refused(import_gold, "rag2024", [path], options)
    assert problem.message == "the plan has no such text in this turn, so its inclusion probability is unknown"


def test_what_is_about_whole_responses_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = runs(tmp_path / "runs")
    with pytest.raises(UsageError, match=r"--depth, --over-limit: .* single citations"):
        judge.Plan(**given, unit="citation", depth=2, over_limit="exclude")
    with pytest.raises(UsageError, match="support/graded: about citations; naturalness/graded: about responses"):
        judge.run(
            judge.Plan(**given, criteria=("support", "naturalness"), model=("baseline/overlap",), out=tmp_path / "o")
        )
    argv = [
        "run", "--runs", "examples/runs/mill-fluent-invented.json", "--criteria", "support", "-o", str(tmp_path / "o"),
    ]  # fmt: skip
    assert main([*argv, "--model", "checker/overlap"]) == 2
    assert "'mill-fluent-invented': their formats have no citations of sentences" in capsys.readouterr().err


WORTH = {"full": 1.0, "partial": 0.5, "none": 0.0}
TOPIC_WORDS = [(list(WORTH)[k % 3], list(WORTH)[k % 2]) for k in range(10)]
"""For each of ten topics, what the second sentence of run a has, and the only one of run b that cites."""


def pilot(tmp_path: Path) -> Path:
    """Ten topics. Run a has two sentences that cite, the first of them full; run b one, and one that does not cite."""
    answers: dict[str, dict[str, dict[str, list[int]]]] = {"a": {}, "b": {}}
    for k, (of_a, of_b) in enumerate(TOPIC_WORDS):
        answers["a"][str(k)] = {f"Say full {k}.": [0], f"Say {of_a} {k} too.": [1]}
        answers["b"][str(k)] = {f"Say {of_b} {k} alone.": [0], "Plain.": []}
    given = runs(tmp_path / "runs", answers)
    given["topics"].write_text("".join(f"{k}\tWhy {k}?\n" for k in range(10)), "utf-8")
    model = judge.FunctionJudge(
        "labels/v1", lambda messages: f"Grade: {re.findall('Say (full|partial|none)', messages[1]['content'])[-1]}"
    )
    judge.run(judge.Plan(**given, criteria=("support",), model=(model,), out=tmp_path / "out"))
    return tmp_path / "out"


def test_topics_are_planned_by_measures_of_citations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = pilot(tmp_path)
    capsys.readouterr()
    values = {
        "support_precision_weighted": [((1 + WORTH[of_a]) / 2, WORTH[of_b]) for of_a, of_b in TOPIC_WORDS],
        "support_recall_weighted": [((1 + WORTH[of_a]) / 2, WORTH[of_b] / 2) for of_a, of_b in TOPIC_WORDS],
    }
    assert main(["plan", str(out), "--half-width", "0.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["pilots"]
    assert [(pilot["criterion"], pilot["graders"]) for pilot in found] == [(name, "judge") for name in values]
    for pilot_of, of_topics in zip(found, values.values(), strict=True):
        expected = grade_variance(
            GradeTable(
                values=[value for pair in of_topics for value in pair],
                runs=["a", "b"] * 10,
                topics=[str(k) for k in range(10) for _ in "ab"],
                turns=[f"{k}_1" for k in range(10) for _ in "ab"],
            )
        )
        assert isinstance(expected, GradeVariance)
        assert {row["source"]: row["estimate"] for row in pilot_of["variance"]["components"]} == pytest.approx(
            {row.source: row.estimate for row in expected.components}
        )
        assert pilot_of["needed"][0]["goal"] == "half_width"
    # Gold that every citation is full: the recall of b is half, and the judge is too strict by what it did not give.
    rows = []
    for k, (of_a, of_b) in enumerate(TOPIC_WORDS):
        rows.append(gold(f"Say full {k}.", "s0", f"{k}_1", 2))
        rows.append(gold(f"Say {of_b} {k} alone.", "s0", f"{k}_1", 2))
        # Of the last topic, a citation lacks gold, so that its response has none.
        if k < 9:
            rows.append(gold(f"Say {of_a} {k} too.", "s1", f"{k}_1", 2))
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl(rows))
    assert main(["plan", str(out), "--gold", str(tmp_path / "gold.jsonl"), "--json"]) == 0
    recall = {row["graders"]: row for row in json.loads(capsys.readouterr().out)["pilots"][3:]}
    assert recall["assessors"]["criterion"] == "support_recall_weighted"
    assert [recall[name]["variance"]["grades"] for name in recall] == [20, 19, 19]
    shares = {row["source"]: row["variance"] for row in recall["assessors"]["variance"]["components"]}
    # All differences are those of the runs, 1 and 1/2.
    assert shares["run"] == pytest.approx(0.125) and shares["run x topic"] == pytest.approx(0)
