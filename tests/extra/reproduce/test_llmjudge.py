"""LLMJudge made again: every printed digit, labels off the scale, and folders that are not the release."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from judge.cli import main
from judge.errors import InputError
from judge.extra.reproduce.published import Reproduction, llmjudge, reproduce_publication
from judge.io.table import Table
from tests.conftest import complaint, printed, refused

TOPICS = 10


def lines(labels: list[tuple[int, int]], side: int) -> str:
    """Qrels lines of (assessor, judge) pairs, dealt to ten topics."""
    return "".join(f"q{i % TOPICS} 0 p{i} {pair[side]}\n" for i, pair in enumerate(labels))


COHEN = [(0, 0)] * 20 + [(0, 1)] * 5 + [(1, 0)] * 10 + [(1, 1)] * 15
"""50 pairs, of which 15 differ; chance would make 25 · 20 + 25 · 30 of 50 · 50 differ: κ = 1 - .3 / .5 = .4."""
BETTER = [(0, 0)] * 24 + [(0, 1)] * 1 + [(1, 0)] * 2 + [(1, 1)] * 23


def release(folder: Path, judges: Mapping[str, str], qrels: str = lines(COHEN, 0)) -> Path:
    """A folder with the assessors' grades and label files."""
    (folder / "judges").mkdir(parents=True)
    (folder / "llmjudge_test.qrel").write_text(qrels)
    for name, text in judges.items():
        (folder / "judges" / f"{name}.txt").write_text(text)
    return folder


def grid(made: Reproduction, title: str) -> Table[Any]:
    return next(grid for grid in made.beyond if grid.title == title)


def test_every_printed_number_of_the_released_judges_is_made_again(shared: Path, monkeypatch) -> None:
    # Exchanges tell judges apart, which takes most of the time; no printed number needs any.
    monkeypatch.setattr(llmjudge, "EXCHANGES", 20)
    real = reproduce_publication("llmjudge", shared / "llmjudge")
    printed = [number for number in real.numbers if number.published is not None]
    # κ and α of 17 judges, and the two cells of Table 4 that are at hand.
    assert len(printed) == 2 * 17 + 2
    assert [number for number in printed if number.difference != 0] == []
    # 17 judges in three splits of the scale.
    unprinted = [number for number in real.numbers if number.published is None]
    assert len(unprinted) == 3 * 17 - 2
    assert all(number.difference is None and number.reason.startswith("the printed number") for number in unprinted)
    assert {number.ours.topics for number in real.numbers if number.ours} == {25}
    # The printed digits are met by the nearest grade alone.
    readings = {line[2]: line[3:] for line in grid(real, "Off-scale labels")}
    assert [line[:2] for line in grid(real, "Off-scale labels")] == [("RMITIR-llama70B", "2 × 5")] * 3
    rounded = {reading: (pairs, f"{kappa:.4f}", f"{alpha:.4f}") for reading, (pairs, kappa, alpha) in readings.items()}
    # The paper prints .2654 and .4873.
    assert rounded == {
        "the nearest grade": (4423, "0.2654", "0.4873"),
        "missing": (4421, "0.2657", "0.4884"),
        "a grade of its own": (4423, "0.2655", "0.4871"),
    }


@pytest.mark.long
def test_intervals_over_topics_say_that_most_judges_are_not_told_apart(shared: Path) -> None:
    real = reproduce_publication("llmjudge", shared / "llmjudge")
    ranking = grid(real, "Ranking")
    assert [line[0] for line in ranking[:3]] == ["willia-umbrela1", "h2oloo-fewself", "willia-umbrela3"]
    worse = [line[0] for line in ranking if line[5] is False]
    assert worse == ["TREMA-naiveBdecompose", "TREMA-other", "TREMA-rubric0"]
    effects = [line[-1] for line in grid(real, "Agreement")]
    assert all(isinstance(effect, float) and effect > 6 for effect in effects)
    assert any(note.startswith("25 of the 42 judges of Table 3 have no label file here") for note in real.notes)


def test_kappa_of_a_made_up_judge_is_that_of_the_hand(tmp_path: Path) -> None:
    made = reproduce_publication("llmjudge", release(tmp_path, {"a-one": lines(COHEN, 1)}))
    ours = {number.measure: number for number in made.numbers}
    assert ours["kappa"].ours.value == pytest.approx(0.4)
    assert (ours["kappa"].ours.n, ours["kappa"].ours.topics) == (50, TOPICS)
    # On grades 0 and 1 the split 0|123 is the whole table, and the others have one grade only.
    assert ours["kappa 0|123"].ours.value == pytest.approx(0.4)
    assert ours["kappa 012|3"].ours is not None
    assert ours["kappa 012|3"].ours.value is None
    assert {number.reason for number in made.numbers} == {"no judge of Table 3 has this name"}


def test_a_split_of_the_scale_agrees_with_the_library(tmp_path: Path) -> None:
    labels = [(i % 4, (i * 7 // 5) % 4) for i in range(60)]
    made = reproduce_publication("llmjudge", release(tmp_path, {"a-one": lines(labels, 1)}, lines(labels, 0)))
    for measure, least in (("kappa 0|123", 1), ("kappa 01|23", 2), ("kappa 012|3", 3)):
        ours = next(number.ours for number in made.numbers if number.measure == measure)
        expected = cohen_kappa_score([a >= least for a, _ in labels], [b >= least for _, b in labels])
        assert ours.value == pytest.approx(expected)


@pytest.mark.parametrize(("released", "nearest"), [(-1, 0), (5, 3), (10, 3)])
def test_a_label_off_the_scale_counts_as_the_nearest_grade(tmp_path: Path, released: int, nearest: int) -> None:
    labels = [(i % 4, (i * 7 // 5) % 4) for i in range(60)]
    off, on = ([*labels[:-1], (labels[-1][0], label)] for label in (released, nearest))
    judges = {"a-off": lines(off, 1), "a-on": lines(on, 1)}
    made = reproduce_publication("llmjudge", release(tmp_path, judges, lines(labels, 0)))
    values = {(number.row, number.measure): number.ours.value for number in made.numbers if number.ours}
    assert all(values["a-off", measure] == values["a-on", measure] for _, measure in values)
    readings = grid(made, "Off-scale labels")
    assert [(line[0], line[1], line[2], line[3]) for line in readings] == [
        ("a-off", f"1 × {released}", "the nearest grade", 60),
        ("a-off", f"1 × {released}", "missing", 59),
        ("a-off", f"1 × {released}", "a grade of its own", 60),
    ]


def test_missing_labels_are_counted_and_compared_on_the_pairs_of_both(tmp_path: Path) -> None:
    end, start = lines(BETTER, 1).splitlines()[:45], lines(COHEN, 1).splitlines()[3:]
    judges = {"willia-umbrela1": "\n".join(end), "a-one": "\n".join(start)}
    made = reproduce_publication("llmjudge", release(tmp_path, judges))
    numbers = {(number.row, number.measure): number for number in made.numbers}
    assert numbers["willia-umbrela1", "kappa"].reason == "5 of 50 pairs have no label here"
    for measure in ("kappa", "alpha", "kappa 0|123", "kappa 01|23"):
        assert numbers["willia-umbrela1", measure].ours.n == 45, measure
    (pair,) = grid(made, "Pairs")
    # Of 50 pairs one judge lacks the last 5, the other the first 3.
    assert getattr(pair[2], "n", None) == 42


def test_the_layout_of_the_release_is_found_and_its_prompts_are_not_labels(tmp_path: Path) -> None:
    scores, prompts = tmp_path / "submissions" / "scores", tmp_path / "submissions" / "prompts"
    for folder in (scores, prompts, tmp_path / "llmjudge" / "qrels"):
        folder.mkdir(parents=True)
    (tmp_path / "llmjudge" / "qrels" / "llmjudge_test_qrel_idx.txt").write_text(lines(COHEN, 0))
    (scores / "a-one.txt").write_text(lines(COHEN, 1))
    (prompts / "a-one.txt").write_text("Grade the passage.")
    assert {number.row for number in reproduce_publication("llmjudge", tmp_path).numbers} == {"a-one"}


def test_in_a_folder_of_judges_each_text_is_one_and_elsewhere_those_called_team_run(tmp_path: Path) -> None:
    folder = release(tmp_path / "in", {"mine": lines(COHEN, 1), ".hidden-one": "not labels"})
    assert {number.row for number in reproduce_publication("llmjudge", folder).numbers} == {"mine"}
    plain = tmp_path / "plain"
    plain.mkdir()
    for name, text in (("llmjudge_test_qrel_idx", lines(COHEN, 0)), ("a-one", lines(COHEN, 1)), ("notes", "of ours")):
        (plain / f"{name}.txt").write_text(text)
    assert {number.row for number in reproduce_publication("llmjudge", plain).numbers} == {"a-one"}
    (plain / "judges").mkdir()
    (plain / "a-one.txt").rename(plain / "judges" / "a-one.txt")
    # The assessors' own file is no judge, wherever it lies.
    (plain / "llmjudge_test_qrel_idx.txt").rename(plain / "judges" / "llmjudge_test_qrel_idx.txt")
    assert {number.row for number in reproduce_publication("llmjudge", plain).numbers} == {"a-one"}


def test_two_topics_have_no_interval_and_no_letters(tmp_path: Path) -> None:
    def dealt(side: int, labels: list[tuple[int, int]]) -> str:
        return "".join(f"q{i % 2} 0 p{i} {pair[side]}\n" for i, pair in enumerate(labels))

    judges = {"a-one": dealt(1, COHEN), "a-two": dealt(1, BETTER)}
    made = reproduce_publication("llmjudge", release(tmp_path, judges, dealt(0, COHEN)))
    kappa = next(number.ours for number in made.numbers if (number.row, number.measure) == ("a-one", "kappa"))
    assert (kappa.low, kappa.reason) == (None, "fewer than 5 topics")
    assert [line[2:6] for line in grid(made, "Ranking")] == [(None,) * 4] * 2
    assert "kappa: fewer than 5 topics" in grid(made, "Stability").notes


def test_every_problem_of_the_files_is_listed_at_once(tmp_path: Path) -> None:
    good = lines(COHEN, 1)
    judges = {
        "a-columns": good.replace("q3 0 p3 0", "q3 p3 0"),
        "b-twice": good + "q3 0 p3 1\n",
        "c-word": good.replace("q4 0 p4 0", "q4 0 p4 relevant"),
        "d-strange": good + "q99 0 p1 0\n",
        "e-empty": "",
        "f-good": good,
    }
    folder = release(tmp_path, judges)
    (folder / "judges" / "g-latin.txt").write_bytes(b"q1 0 caf\xe9 1\n")
    with pytest.raises(InputError, match="6 problems") as raised:
        reproduce_publication("llmjudge", folder)
    found = [(Path(problem.file).stem, problem.code, problem.path) for problem in raised.value.problems]
    assert found == [
        ("a-columns", "wrong_columns", "line 4"),
        ("b-twice", "duplicate_row", "line 51"),
        ("c-word", "wrong_grade", "line 5"),
        ("e-empty", "empty_file", ""),
        ("g-latin", "unreadable_file", ""),
        ("d-strange", "unknown_pair", ""),
    ]
    assert "q99 p1" in raised.value.problems[-1].message
    folder = release(tmp_path / "other", {"a-one": good}, lines(COHEN, 0).replace("p7 0", "p7 4"))
    told = refused(reproduce_publication, "llmjudge", folder)
    assert [(problem.code, problem.path) for problem in told] == [("off_scale", "line 8")]


def test_a_folder_without_qrels_or_labels_says_what_was_looked_for(tmp_path, capsys) -> None:
    assert "llmjudge_test_qrel_idx.txt" in complaint(capsys, main(["reproduce", "llmjudge", str(tmp_path)]))
    (tmp_path / "llmjudge_test.qrel").write_text(lines(COHEN, 0))
    assert "submissions/scores" in complaint(capsys, main(["reproduce", "llmjudge", str(tmp_path)]))


def test_too_many_label_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llmjudge, "MOST_JUDGES", 1)
    with pytest.raises(InputError, match="2 label files: expected at most 1"):
        reproduce_publication("llmjudge", release(tmp_path, {"a-one": lines(COHEN, 1), "a-two": lines(COHEN, 1)}))


def test_hostile_file_names_are_shown_and_run_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = release(tmp_path / "in", {"=1-1\x1b[31m|<b>": lines(COHEN, 1)})
    (folder / "judges" / os.fsdecode(b"\xff-two.txt")).write_text(lines(BETTER, 1))
    out = tmp_path / "out"
    shown = printed(capsys, main(["reproduce", "llmjudge", str(folder), "--out", str(out)]))
    assert "\x1b" not in shown
    assert "udcff-two" in shown
    rows = [line.split("\t")[1] for line in (out / "comparison.tsv").read_text().splitlines()[1:]]
    assert all(row.startswith("\\") for row in rows)
    assert "<b>" not in (out / "comparison.md").read_text()
    assert "\\u001b" in (out / "comparison.json").read_text()
