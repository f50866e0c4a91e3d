"""TREC RAG 2024: support and nuggets by assessors' labels, of a small made-up release and of the real one."""

import json
from pathlib import Path

from judge.extra.reproduce.published import reproduce_publication
from tests.conftest import refused


def line(run_id: str, topic_id: str, *sentences: list[object]) -> dict:
    of = [{"sentenceID": k, "text": "t", "citations": [{"support": each} for each in labels]}
          for k, labels in enumerate(sentences)]  # fmt: skip
    return {"run_id": run_id, "topic_id": topic_id, "sentences": of}


def write(path: Path, *rows: object) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


EDITED = "final.citation_judgments_with_prediction.20241025.jsonl"


def test_a_small_release(tmp_path: Path) -> None:
    # Run b lacks topic 2, which counts 0; NaN is no JSON, but a text may be NaN.
    rows = [line("x.a", "1", ["2"], ["-1"]), line("x.a", "2", [1], []), line("x.b", "1", ["2", 0])]
    rows[0]["sentences"][0]["text"] = float("nan")
    write(tmp_path / EDITED, *rows)
    nuggets = [("vital", "support"), ("vital", "partial_support"), ("okay", "not_support")]
    entries = [{"importance": importance, "assignment": found} for importance, found in nuggets]
    write(tmp_path / "nugget_assignment.20241108.jl", {"run_id": "a", "qid": "1", "nuggets": entries},
          {"run_id": "b", "qid": "1", "nuggets": []})  # fmt: skip
    made = reproduce_publication("rag2024", tmp_path)
    assert [number.ours for number in made.numbers] == [None] * 5
    board, nuggets_board = made.beyond
    values = {row[0]: [each.value for each in row[2:]] for row in board}
    # a: first citations (1 + .5)/2, recall (1 + .25)/2; hard (1 + 0)/2.
    assert values["x.a"][:4] == [0.75, 0.625, 0.5, 0.5]
    assert values["x.b"] == [0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    assert [[each.value for each in row[2:]] for row in nuggets_board] == [[0.5, 0.75, 1 / 3, 0.5], [0.0] * 4]
    assert (
        "vital_strict with precision_weighted (Support by post-edited labels): 1.000, 2 runs" in nuggets_board.notes[2]
    )


def test_bad_labels_are_listed(tmp_path: Path) -> None:
    write(tmp_path / EDITED, line("a", "1", ["4"]), [], {"run_id": "a"}, line("a", "2"), line("a", "2"))
    problems = refused(reproduce_publication, "rag2024", tmp_path)
    assert [(each.code, each.path) for each in problems] == [
        ("wrong_type", "line 1"), ("wrong_type", "line 2"), ("wrong_type", "line 3"), ("duplicate_row", "line 5"),
    ]  # fmt: skip


def test_the_real_labels(shared: Path) -> None:
    board, nuggets = reproduce_publication("rag2024", shared / "rag24").beyond
    assert board.notes[0] == "585 responses to 14 topics."
    assert (board[0][0], f"{board[0][2].value:.6f}") == ("IITD-IRL.ag_rag_gpt35_expansion_rrf_20", "0.792857")
    assert len(board) == 45
    assert nuggets.notes[0] == "354 responses to 8 topics."
