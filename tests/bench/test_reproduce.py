"""Published numbers beside those of the released files: of small made-up files, and of the real ones."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench.reproduce.__main__ import PAPERS, compare, main
from bench.reproduce.papers import BEST, gpt4_labels, llmjudge, rag2024, support_rows, weighted_precision
from judge.io.ids import topic_of
from judge.records import Estimate
from judge.results.tables import paired, tie_letters
from judge.stats.means import mean_interval
from tests.conftest import PROJECT, put

DIFFERENT = {"ikat2023": 13, "cone-rag": 0, "llmjudge": 0, "rag2024": 0, "cast-regin": 5}
"""Cells that the release does not give as they are printed."""


def cells(paper: str, folder: Path) -> dict[tuple[str, str], tuple[float | None, str]]:
    """Row and measure to our value, and the difference from the printed one."""
    found = {}
    for cell in compare(paper, folder):
        value = cell.ours.value if isinstance(cell.ours, Estimate) else cell.ours
        found[cell.row, cell.measure] = (value, cell.difference)
    return found


def called(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["reproduce", *map(str, arguments)])
    return main()


@pytest.mark.parametrize("paper", PAPERS)
def test_every_known_difference_has_its_reason(paper: str) -> None:
    lines = (PROJECT / f"bench/reproduce/{paper}.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["table", "row", "measure", "printed", "released", "why"]
    rows = [line.split("\t") for line in lines[1:]]
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    assert all(bool(row[4]) == bool(row[5]) and row[3] for row in rows)
    assert sum(row[4] not in ("", "-") for row in rows) == DIFFERENT[paper]


def test_an_unknown_folder_has_none_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert {cell.ours for cell in compare("ikat2023", tmp_path)} == {None}
    assert called(monkeypatch, "ikat2023", tmp_path) == 0
    assert "37 published numbers: 0 the same, 0 other, 37 not in these files" in capsys.readouterr().out
    assert called(monkeypatch, "llmjudge", tmp_path) == 2
    assert "no llmjudge_test_qrel_idx.txt" in capsys.readouterr().err


def test_labels_of_another_release_are_told(tmp_path: Path) -> None:
    labels = "turn_id\trun_id\tgpt4-label\n9-1_1\tRun-4-gpt-4\t0\n9-1_2\tRun-4-gpt-4\t1\n10-1_1\tRun-4-gpt-4\t-1\n"
    put(tmp_path / "a/groundedness_judgement-gpt4.txt", labels)
    found = {cell.measure: cell for cell in compare("ikat2023", tmp_path) if cell.row == "run-4-GPT-4"}
    assert [found[name].ours for name in ("grounded", "not grounded", "naturalness")] == [1, 1, None]
    assert found["groundedness"].difference == "-0.39"
    assert found["groundedness"].why.startswith("not known")
    put(tmp_path / "b/groundedness_judgement-gpt4.txt", labels.replace("9-1_2", "9-1_3"))
    with pytest.raises(Exception, match="name the folder of one of them"):
        compare("ikat2023", tmp_path)


def test_nuggets_and_answers_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "gold_nuggets_human.json", json.dumps({"0_1": {"1": "a", "2": "b"}, "0_2": {"1": "c"}}))
    answers = {"0_1": {"manual": {"response": "Yes."}}, "0_2": {"manual": {"response": " "}}}
    put(tmp_path / "gold_response_and_nuggets_human.json", json.dumps(answers))
    found = cells("cone-rag", tmp_path)
    assert [found["iKAT 2024", name][0] for name in ("gold nuggets", "gold answers", "conversations")] == [3, 1, None]


# Cohen (1960) has no such table; grades by two raters of 50 items, κ = .4.
COHEN = ((20, 5), (10, 15))


def test_kappa_is_that_of_the_hand_and_a_label_off_the_scale_is_the_nearest(tmp_path: Path) -> None:
    pairs = [(grade, label) for grade, row in enumerate(COHEN) for label, n in enumerate(row) for _ in range(n)]
    qrels, labels = (
        "".join(f"q{n % 5} 0 p{n} {pair[side]}\n" for n, pair in enumerate(pairs)) for side in (0, 1)
    )  # fmt: skip
    put(tmp_path / "llmjudge_test.qrel", qrels)
    put(tmp_path / "judges/team-a.txt", labels)
    put(tmp_path / "judges/team-off.txt", labels.replace(" p0 0\n", " p0 -3\n"))
    put(tmp_path / "prompts/not-labels.txt", "Judge it, please.\n")
    found = llmjudge(tmp_path)
    # Observed 35/50, expected (25 * 30 + 25 * 20) / 50^2 = 1/2.
    assert found["Table 3", "team-a", "kappa"] == pytest.approx(0.4)
    assert found["Table 4", "team-a", "kappa 0|123"] == pytest.approx(0.4)
    assert found["Table 3", "team-off", "kappa"] == found["Table 3", "team-a", "kappa"]
    assert {judge for _, judge, _ in found} == {"team-a", "team-off"}


def support_line(run_id: str, topic_id: str, *sentences: list[object]) -> str:
    labeled = [{"text": "t", "citations": [{"support": label} for label in labels]} for labels in sentences]
    return json.dumps({"run_id": run_id, "topic_id": topic_id, "sentences": labeled}) + "\n"


def test_labels_from_scratch_are_in_two_files(tmp_path: Path) -> None:
    # The second topic has no response of the run, and a text may be NaN.
    first = support_line(BEST, "1", ["2", "0"], [1], [-1], []).replace('"t"', "NaN")
    put(tmp_path / "final.citation_judgments_without_prediction.20241025.jsonl", first)
    assert rag2024(tmp_path) == {}
    put(tmp_path / "webassess.jsonl", support_line("other", "2", ["3"]))
    found = {measure: value for (_, _, measure), value in rag2024(tmp_path).items()}
    assert found == {
        "rows": 2, "sentences": 5, "first citations": 4, "topics": 2, "weighted precision": (1 + 0.5) / 2 / 2,
    }  # fmt: skip


def test_a_file_is_held_against_the_judgments(tmp_path: Path) -> None:
    def item(item_id: str, grade: int) -> dict[str, object]:
        return {"Question ID": item_id, "Question Text": "Which?", "Relevance": grade, "Novelty": 1, "Diversity": 0}

    folder = tmp_path / "clarifying_question_evaluation"
    turns = {"132_1-1": {"Questions": [item("Q0821", 3)]}, "133_1-1": {"Questions": [item("Q2", 1), item("Q3", 0)]}}
    put(folder / "qrels/question_judgments.json", json.dumps(turns))
    put(folder / "question_bank.json", json.dumps({"Q0821": "Which?", "Q2": "What?"}))
    put(folder / "qrels/question_relevance_all.qrel", "132_1-1 0 Q0821 3\n133_1-1 0 Q2 2\n133_1-1 0 Q3 0\n")
    put(folder / "qrels/question_relevance_filtered.qrel", "132_1-1 0 Q0821 3\n")
    found = {measure: value for (_, measure), (value, _) in cells("cast-regin", tmp_path).items() if value is not None}
    lines = "lines that the judgments do not give"
    assert found[f"qrels/question_relevance_all.qrel: {lines}"] == 2
    assert found[f"qrels/question_relevance_filtered.qrel: {lines}"] == 0
    assert found["judged items that the bank lacks"] == 1
    assert found["judged texts other than the bank's"] == 1
    assert found["132_1-1: pooled items of the README's example not judged"] == 7
    assert [found[name] for name in ("judged questions", "turns", "topics", "relevance 1")] == [3, 2, 2, 1]


# The real files.


@pytest.mark.long
def test_the_tables_of_ikat_2023(shared: Path) -> None:
    found = compare("ikat2023", shared / "ikat")
    assert Counter(cell.difference for cell in found)["0"] == 21
    different = [cell for cell in found if cell.ours is not None and cell.difference != "0"]
    assert len(different) == DIFFERENT["ikat2023"]
    assert not any("not known: the folder" in cell.why for cell in found)
    assert [cell.row for cell in found if cell.ours is None] == [
        "Num of pruned turns", "Num of turns after pruning", "Num of dialogues after pruning",
    ]  # fmt: skip


@pytest.mark.long
def test_cone_rag_counts_what_is_public(shared: Path) -> None:
    found = {measure: difference for (_, measure), (_, difference) in cells("cone-rag", shared).items()}
    assert found == {"conversations": "0", "passage assessments": "0", "gold nuggets": "", "gold answers": ""}


@pytest.mark.long
def test_every_printed_number_of_the_released_judges_is_made_again(shared: Path) -> None:
    found = [difference for _, difference in cells("llmjudge", shared / "llmjudge").values()]
    assert Counter(found) == {"0": 36, "": 51}


@pytest.mark.long
def test_the_best_run_by_post_edited_labels(shared: Path) -> None:
    rows = support_rows(shared / "rag24/final.citation_judgments_with_prediction.20241025.jsonl")
    assert f"{weighted_precision(rows, BEST):.6f}" == "0.792857"
    assert (len(rows), len({row["topic_id"] for row in rows})) == (585, 14)


@pytest.mark.long
def test_cast_regin_against_its_readme(shared: Path) -> None:
    found = compare("cast-regin", shared / "cast-regin")
    readme = [cell for cell in found if cell.table == "README" and cell.difference not in ("0", "")]
    assert [(cell.row, cell.difference) for cell in readme] == [
        ("responses", "+4"), ("responses", "+1"), ("responses", "+1"), ("responses", "+4"), ("questions", "+1"),
    ]  # fmt: skip
    assert not any("not known" in cell.why for cell in readme)
    counts = [cell for cell in found if cell.table == "release"]
    assert {cell.difference for cell in counts if cell.row == "questions"} == {"0"}
    judged = next(cell for cell in counts if cell.measure == "judged responses")
    assert (judged.printed, judged.ours, judged.difference) == ("2479", 1626, "-853")


@pytest.mark.long
def test_the_page_shows_what_is_printed(shared: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert called(monkeypatch, "ikat2023", shared / "ikat") == 0
    text = (PROJECT / "docs/reproduce.md").read_text(encoding="utf-8")
    block = re.search(r"^```\n(table .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert capsys.readouterr().out.startswith(block[1])


@pytest.mark.long
def test_the_means_on_the_page_of_claims_are_those_of_the_labels(shared: Path) -> None:
    labels = gpt4_labels(shared / "ikat/2023/gpt4_judgments/groundedness_judgement-gpt4.txt")
    grades = {run_id: {turn_id: 1 - label for turn_id, label in run.items()} for run_id, run in labels.items()}
    means = {
        run_id: mean_interval(list(run.values()), list(map(topic_of, run)), bounds=(0.0, 1.0))
        for run_id, run in grades.items()
    }
    ranked = sorted(means, key=lambda run_id: -(means[run_id].value or 0))
    rng = np.random.default_rng(2023)
    pairs = paired("groundedness", {run_id: grades[run_id] for run_id in ranked}, "topic", rng, flips=100_000)
    letters = tie_letters(ranked, pairs)
    adjusted = {(ranked.index(pair.run_a) + 1, ranked.index(pair.run_b) + 1): pair.p_adjusted for pair in pairs}
    # As on the page about what is made again.
    for places, p in {(1, 2): 0.043, (1, 3): 0.039, (1, 4): 0.0012, (3, 4): 0.079, (4, 5): 0.079}.items():
        assert adjusted[places] == pytest.approx(p, abs=5e-4)
    printed = {
        cell.row.lower(): cell.printed
        for cell in compare("ikat2023", shared / "ikat")
        if cell.measure == "groundedness"
    }
    text = (PROJECT / "docs/explanation/claims.md").read_text(encoding="utf-8").lower()
    for run_id in ranked:
        mean = means[run_id]
        value, low, high = (f"{number:.2f}".removeprefix("0") for number in (mean.value, mean.low, mean.high))
        published = printed.get(run_id, "-").removeprefix("0")
        assert f"| {run_id} | {published} | {value} [{low}, {high}] | {letters[run_id]} |" in text
