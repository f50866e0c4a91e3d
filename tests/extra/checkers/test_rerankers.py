"""Rerankers as judges of passages: cut points make grades of scores, behind a server or from a file."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.judges.backends import open_model
from judge.judges.model import ModelOptions
from tests.conftest import json_lines, printed, put
from tests.cross_encoder import write_encoder
from tests.scoring import Serve
from tests.units.test_passages import TEXTS, TURN, A, B, C, world

PASSAGES = find_criterion("passage_relevance")
SCORES = {A: 0.05, B: 0.9, C: 0.375}


def scoring(body: Any) -> tuple[int, Any]:
    """As vLLM's /score answers, by the texts of the passages."""
    by_text = {TEXTS[passage]: score for passage, score in SCORES.items()}
    rows = [{"index": place, "score": by_text[text]} for place, text in enumerate(body["text_2"])]
    return 200, {"data": rows}


def judged(folder: Path, *more: object) -> int:
    world(folder)
    given = ["run", "--runs", folder / "runs", "--topics", folder / "topics.json", "--passages"]
    given += [folder / "passages.jsonl", "--criteria", "passage_relevance", "--out", folder / "out", *more]
    return main([str(each) for each in given])


def grades(out: Path) -> dict[str, tuple[int, float]]:
    """The grade and the expected grade of each passage, by its score."""
    return {row["response_id"]: (row["grade"], row["expected"]) for row in json_lines(out / "judgments.jsonl")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Cut points .25 .5 .75: .05 is a tenth of the way from 0 to .5, .375 halfway between .5 and 1.5.
        ("m", [(0, 0.1), (3, 2.8), (1, 1.0)]),
        ("m#cuts=0.375:0.6:0.95", [(0, 0.5 * 0.05 / 0.375), (2, 1.5 + 0.3 / 0.35), (1, 0.5)]),
    ],
)
def test_cut_points_make_grades_of_scores(tmp_path, serve: Serve, name, expected) -> None:
    server = serve(scoring)
    given = ["--model", f"checker/reranker/{name}", "--base-url", f"{server.url}/score"]
    assert judged(tmp_path, *given) == 0
    assert [*grades(tmp_path / "out").values()] == [(grade, pytest.approx(mean, abs=1e-5)) for grade, mean in expected]
    # Rerankers are trained with the question in front.
    assert {path for path, _ in server.asked} == {"/score"}
    assert {tuple(body["text_1"]) for _, body in server.asked} == {("When do owls hunt?",)}
    qrels = (tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel").read_text().split("\n")
    assert qrels[:3] == [f"{TURN} 0 {passage} {grade}" for passage, (grade, _) in zip((A, B, C), expected, strict=True)]


def test_its_scores_give_an_auc_that_no_cut_point_changes(tmp_path, serve: Serve, capsys) -> None:
    server = serve(scoring)
    people = put(tmp_path / "nist.qrel", f"{TURN} 0 {A} 0\n{TURN} 0 {B} 3\n{TURN} 0 {C} 0\n")
    found = []
    for name in ("m#cuts=0.95:0.96:0.97", "m"):
        assert judged(tmp_path, "--model", f"checker/reranker/{name}", "--base-url", f"{server.url}/score",
                      "--replace") == 0  # fmt: skip
        capsys.readouterr()
        given = ["calibrate", "--gold", people, "--judgments", tmp_path / "out", "--criterion", "passage_relevance"]
        rows = json.loads(printed(capsys, main([str(each) for each in (*given, "--json")])))["findings"]["cuts"]
        row = next(row for row in rows if row["judge"].startswith("checker/") and row["facts"]["own"])
        found.append((row["facts"]["judged"], row["statistics"]["auc"]["value"], row["facts"]["auc_of"]))
    assert found == [(0, 1, "expected grades"), (pytest.approx(1 / 3), 1, "expected grades")]


@pytest.mark.parametrize(
    ("name", "address", "criterion", "message"),
    [
        ("reranker/m", "score", "groundedness/sentences", "grades passages by how well they answer the question"),
        (
            "reranker/m",
            "predict",
            "passage_relevance",
            "expected an address that says what it serves, such as http://l",
        ),
        ("reranker/m#cuts=0.2:0.5", "score", "passage_relevance", "2 cut points, and passage_relevance/graded has 4"),
        ("reranker/m#cuts=0.5:0.2:0.7", "score", "passage_relevance", "expected rising numbers between 0 and 1"),
        ("reranker/m#cuts=a", "score", "passage_relevance", "expected rising numbers between 0 and 1"),
        ("reranker/m@0.6", "score", "passage_relevance", "a threshold is of sentences; the cut points"),
        ("server/m", "score", "passage_relevance", "passages are graded by checker/reranker/MODEL --base-url"),
        ("overlap", "score", "passage_relevance", "checker/reranker-onnx/PATH, or baseline/overlap"),
    ],
)
def test_what_cannot_be_asked_is_refused(name, address, criterion, message) -> None:
    model = open_model(f"checker/{name}", ModelOptions(base_url=f"http://localhost:1/{address}"))
    with pytest.raises(UsageError) as raised:
        model.check([find_criterion(criterion)])
    assert message in str(raised.value)


def test_a_level_more_needs_a_cut_point_more() -> None:
    options = ModelOptions(base_url="http://localhost:1/score")
    open_model("checker/reranker/m#cuts=0.2:0.4:0.6:0.8", options).check([find_criterion("passage_relevance/ikat")])


def test_a_score_beyond_its_range_is_no_grade(tmp_path, serve: Serve, capsys) -> None:
    server = serve(lambda body: (200, {"data": [{"index": 0, "score": 4.2}]}))
    given = ["--model", "checker/reranker/m", "--base-url", f"{server.url}/score"]
    assert judged(tmp_path, *given) == 3
    assert "the reply cannot be read: Expected `float` <= 1.0" in capsys.readouterr().err


def test_a_file_puts_the_question_first_and_needs_one_output(tmp_path) -> None:
    pytest.importorskip("onnx", reason="makes the model of this test")
    pytest.importorskip("onnxruntime", reason="runs it")
    from tests.mock import used

    # The encoder compares the second text's words with the first one's: the passage's with the question's.
    folder = write_encoder(tmp_path / "one", (6.0,), (-3.0,), {})
    reranker = open_model(f"checker/reranker-onnx/{folder}", ModelOptions())
    reranker.check([PASSAGES])
    assert reranker.name.startswith("checker/reranker-onnx/one~")
    pairs = [
        ("the ferry leaves", "ferry leaves"),
        ("the ferry leaves", "ferry rain"),
        ("the ferry leaves", "dogs ride"),
    ]
    scores = used(reranker, lambda scorer: scorer.score(pairs))
    assert [score.supports for score in scores] == pytest.approx([1 / (1 + math.exp(-x)) for x in (3, 0, -3)], abs=1e-6)
    # Of a passage beyond the model's length the best window counts.
    short = write_encoder(tmp_path / "short", (6.0,), (-3.0,), {"max_position_embeddings": 32})
    long = " ".join(["rain"] * 40 + ["ferry"] * 40)
    windowed = open_model(f"checker/reranker-onnx/{short}", ModelOptions())
    (best,) = used(windowed, lambda scorer: scorer.score([("ferry", long)]))
    assert best.supports == pytest.approx(1 / (1 + math.exp(-3)), abs=1e-6)
    classes = {"id2label": {"0": "entailment", "1": "neutral", "2": "contradiction"}}
    other = write_encoder(tmp_path / "nli", (4.0, 0.0, -4.0), (-2.0, 0.0, 2.0), classes)
    with pytest.raises((UsageError, InputError), match=r"it has 3 classes .* a reranker has one output"):
        open_model(f"checker/reranker-onnx/{other}", ModelOptions()).check([PASSAGES])
