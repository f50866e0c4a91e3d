"""Publications made again from folders in the shapes of their releases, made up and small."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from judge.crowd.released import read_study
from judge.errors import InputError
from judge.extra.reproduce import published as shared
from judge.extra.reproduce.published.ikat2023 import MOST_RUNS
from judge.records import Estimate
from tests.conftest import put, refused

GROUNDEDNESS = "groundedness_judgement-gpt4.txt"
NATURALNESS = "naturallness_judgement-gpt4.txt"
RELEVANCE = "relevance_judgement-gpt4.txt"
MONOT5 = "run_automatic_dense_monot5"


def estimate(value: float | None) -> Estimate:
    return Estimate(value, None, None, 1, 1)


@pytest.mark.parametrize(("published", "ours", "difference"), [
    ("0.67", 50 / 73, 0.01),  # .68493
    ("0.67", 49 / 73, 0.0),  # .67123
    ("3.684", 266 / 73, -0.04),  # 3.64384
    ("26,159", 34183.0, 8024.0),
    ("0.5", 0.25, -0.2),  # a half is rounded up, as people do: .3
    ("4.0", 4.0, 0.0),
])  # fmt: skip
def test_a_number_is_compared_as_it_is_printed(published: str, ours: float, difference: float) -> None:
    made = shared.beside_ours("Table 1", "row", "measure", published, estimate(ours), "a reason")
    assert made.difference == difference
    assert made.reason == ("a reason" if difference else "")


@pytest.mark.parametrize("ours", [None, estimate(None)])
def test_a_number_that_cannot_be_made_keeps_its_reason(ours: Estimate | None) -> None:
    made = shared.beside_ours("Table 1", "row", "measure", "43", ours, "no list of them is public")
    assert (made.difference, made.reason) == (None, "no list of them is public")


def test_a_count_has_no_interval() -> None:
    assert shared.counted(65, 73, 23) == Estimate(65.0, None, None, 73, 23, "counted, not sampled")


FILE = shared.ReleasedFile("a", "a.txt", "the page example.org", needed=True)


def test_a_released_file_is_found_below_the_folder_under_any_case(tmp_path: Path) -> None:
    path = put(tmp_path / "one/two/A.TXT", "x")
    put(tmp_path / "one/ba.txt", "x")
    assert shared.find_released(tmp_path, (FILE,)) == {"a": path}


def test_copies_of_one_file_are_one_file_and_hidden_folders_are_passed_by(tmp_path: Path) -> None:
    first = put(tmp_path / "a.txt", "x")
    put(tmp_path / "copy/a.txt", "x")
    put(tmp_path / ".git/a.txt", "an older one")
    put(tmp_path / "hidden/.a.txt", "what a tool leaves beside a file")
    assert shared.find_released(tmp_path, (FILE,)) == {"a": first}


def test_different_files_of_one_name_are_told_with_every_absent_file(tmp_path: Path) -> None:
    put(tmp_path / "v1/a.txt", "1")
    put(tmp_path / "v2/a.txt", "2")
    absent = shared.ReleasedFile("b", "b.txt", "the page example.org", needed=True)
    problems = refused(shared.find_released, tmp_path, (FILE, absent))
    assert [problem.code for problem in problems] == ["ambiguous_file", "missing_file"]
    first, second = (problem.message for problem in problems)
    assert first == "2 different files could be a.txt: 'v1/a.txt', 'v2/a.txt'; name the folder of one of them"
    assert second == "looked for b.txt here and in the folders below; it comes from the page example.org"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "a.txt", "x")
    with pytest.raises(InputError, match="not a folder that can be read"):
        shared.find_released(path, (FILE,))


def test_a_folder_that_may_not_be_listed_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.txt", "x")
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def guarded(place: Path) -> Any:
        if place.name == "closed":
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", guarded)
    assert shared.find_released(tmp_path, (FILE,)) == {"a": path}
    with pytest.raises(InputError, match="closed: cannot be listed: Permission denied"):
        shared.find_released(tmp_path / "closed", (FILE,))


def test_a_link_around_in_the_folder_ends(tmp_path: Path) -> None:
    path = put(tmp_path / "a.txt", "x")
    (tmp_path / "round").symlink_to(tmp_path, target_is_directory=True)
    assert shared.find_released(tmp_path, (FILE,)) == {"a": path}


def labels(rows: list[tuple[str, str, object]], column: str = "gpt4-label") -> str:
    return f"turn_id\trun_id\t{column}\n" + "".join(f"{turn}\t{run}\t{label}\n" for turn, run, label in rows)


def release(folder: Path) -> Path:
    """Two runs and two topics; the release spells one of the runs in two ways."""
    turns = ("9-1_1", "9-1_2", "10-1_1")
    better, worse = (0, 0, 0), (0, 1, 1)
    grounded = [(turn, MONOT5, label) for turn, label in zip(turns, better, strict=True)]
    grounded += [(turn, "other", label) for turn, label in zip(turns, worse, strict=True)]
    natural = [(turn, MONOT5, label) for turn, label in zip(turns, (4, 3, 1), strict=True)]
    natural += [(turn, "OTHER", label) for turn, label in zip(turns, (0, 0, 0), strict=True)]
    relevant = [(turn, MONOT5, label) for turn, label in zip(turns, (3, -1, 0), strict=True)]
    put(folder / GROUNDEDNESS, labels(grounded))
    put(folder / NATURALNESS, labels(natural, "gpt4-score"))
    put(folder / RELEVANCE, labels(relevant))
    return folder


def test_labels_become_the_numbers_of_table_7(tmp_path: Path) -> None:
    made = shared.reproduce_publication("ikat2023", release(tmp_path))
    ours = {
        number.measure: (number.published, number.ours and number.ours.value, number.difference)
        for number in made.numbers
        if number.row == MONOT5
    }
    # All three labels are 0, so all three responses are grounded; (4 + 3 + 1) / 3 = 2.667.
    assert ours == {
        "groundedness": ("0.51", 1.0, 0.49),
        "grounded": ("37", 3.0, -34.0),
        "not grounded": ("36", 0.0, -36.0),
        "naturalness": ("2.808", 8 / 3, -0.141),
    }
    reasons = {number.measure: number.reason for number in made.numbers if number.row == MONOT5}
    assert reasons["naturalness"] == "not known: the release that this command was written for gives 2.767"
    others = [number for number in made.numbers if number.row != MONOT5]
    assert {number.reason for number in others} == {"the folder has no label of this run"}
    assert any(note == "Not in the folder, so left out: completeness_judgement-gpt4.txt." for note in made.notes)


def test_what_table_7_does_not_show_is_beside_it(tmp_path: Path) -> None:
    means, intervals, pairs = shared.reproduce_publication("ikat2023", release(tmp_path)).beyond
    assert [(line[0], line[1], line[2]) for line in means] == [
        ("groundedness", MONOT5, 3),
        ("groundedness", "other", 3),
        ("naturalness", MONOT5, 3),
        ("naturalness", "other", 3),
        ("relevance", MONOT5, 2),
    ]
    # The label -1 of relevance is no grade: 3 and 0 are left; with it the mean would be (3 + 0 - 1) / 3.
    assert means[-1][3] == Estimate(1.5, None, None, 2, 2, "fewer than 3 topics")
    assert (
        f"{MONOT5}, relevance: 1 label of -1 (unable to judge) left out; as a grade it would make the mean 0.6667"
        in (means.notes)
    )
    assert {line[5] for line in means} == {""}  # too few topics for letters
    assert [line[1] for line in intervals] == ["3/3"] * 4 + ["1/3"] * 4
    assert [line[4:] for line in pairs] == [(None, None)] * 2


def test_equal_grades_have_no_interval_but_a_note(tmp_path: Path) -> None:
    means = shared.reproduce_publication("ikat2023", release(tmp_path)).beyond[0]
    assert means[0][3] == Estimate(1.0, None, None, 3, 2, "fewer than 3 topics")
    # 3 of 3 have the probability p^3, which is 2.5 % at p = .2924.
    assert pytest.approx(0.2924, abs=5e-5) == 0.025 ** (1 / 3)
    assert any("all 3 grades are 1" in note and "[0.2924, 1]" in note for note in means.notes)


@pytest.mark.parametrize(("text", "codes", "message"), [
    (labels([("9-1_1", "a", 2)]), ["off_scale"], "label '2': expected one of 0, 1"),
    (labels([("9-1_1", "a", "-1")]), ["off_scale"], "label '-1': expected one of 0, 1"),
    (labels([("9-1_1", "a", "0.5")]), ["off_scale"], "label '0.5': expected one of 0, 1"),
    (labels([("9-1_1", "a", "")]), ["off_scale"], "label '': expected one of 0, 1"),
    (labels([("", "a", 0)]), ["missing_id"], "no turn_id"),
    (labels([("9-1_1", "", 0)]), ["missing_id"], "no run_id"),
    (labels([("9-1_1", "a", 0), ("9-1_2", "a", 1), ("9-1_1", "a", 0)]), ["duplicate_row"],
     "run 'a' already has a label for this turn on line 2"),
    (labels([("9-1_1", "a", 0), ("9-1_2", "A", 1)]), ["ambiguous_run"],
     "run 'A' is 'a' above: expected one spelling in a file"),
    (labels([("9-1_1", f"r{number}", 0) for number in range(MOST_RUNS + 1)]), ["too_many_runs"],
     "run 'r100': expected at most 100 runs"),
    (labels([("9-1_1", "a", 0)], "label"), ["missing_column"], "no column gpt4-label or gpt4-score"),
    ("turn_id\tgpt4-label\n9-1_1\t0\n", ["missing_column"], "no column 'run_id'; found 'turn_id', 'gpt4-label'"),
    ("", ["empty_file"], "the file is empty"),
    (labels([("9-1_1", "a", 9), ("9-1_2", "b", 8)]), ["off_scale", "off_scale"], "label '9'"),
])  # fmt: skip
def test_labels_that_cannot_be_used_are_all_named_with_their_lines(tmp_path, text, codes, message) -> None:
    release(tmp_path)
    put(tmp_path / GROUNDEDNESS, text)
    problems = refused(shared.reproduce_publication, "ikat2023", tmp_path)
    assert [problem.code for problem in problems] == codes
    assert problems[0].message.startswith(message)
    assert problems[0].file == str(tmp_path / GROUNDEDNESS)


@pytest.mark.parametrize(("name", "text", "code", "line"), [
    (NATURALNESS, labels([("9-1_1", "café", 0)]).encode("latin-1"), "wrong_encoding", "line 2"),
    ("2023_test_qrels.trec", b"9-1_1 0 a:1 7\n", "off_scale", "line 1"),
])  # fmt: skip
def test_another_encoding_and_passage_grades_off_the_scale_are_named(tmp_path, name, text, code, line) -> None:
    release(tmp_path)
    (tmp_path / name).write_bytes(text)
    problems = refused(shared.reproduce_publication, "ikat2023", tmp_path)
    assert [(problem.code, problem.path) for problem in problems] == [(code, line)]


@pytest.mark.parametrize("name", shared.PUBLICATIONS)
def test_an_empty_folder_is_told_what_was_looked_for_and_where_to_get_it(tmp_path: Path, name: str) -> None:
    problems = refused(shared.reproduce_publication, name, tmp_path)
    assert {problem.code for problem in problems} == {"missing_file"}
    assert all("looked for" in problem.message for problem in problems)


def test_labels_of_all_turns_do_not_stand_in_for_those_of_table_7(tmp_path: Path) -> None:
    release(tmp_path)
    put(tmp_path / "groundedness_judgement-gpt4-all.txt", "another file of the repository")
    assert shared.reproduce_publication("ikat2023", tmp_path).numbers


TOPIC = {
    "number": "9-1",
    "title": "t",
    "ptkb": {"1": "I run."},
    "turns": [{"turn_id": n, "utterance": "?", "resolved_utterance": "?", "response": "!"} for n in (1, 2)],
}


def test_table_1_is_counted_from_the_files_that_are_there(tmp_path: Path) -> None:
    release(tmp_path)
    topics = [TOPIC, {**TOPIC, "number": "9-2"}, {**TOPIC, "number": "10-1"}]
    put(tmp_path / "data/2023_test_topics.json", json.dumps(topics))
    put(tmp_path / "qrels/2023_test_qrels.trec", "9-1_1 0 a:1 0\n9-1_1 0 a:2 4\n9-2_1 0 a:1 0\n")
    put(tmp_path / "ptkb_rel_nist", "9-1_1 0 1 1\n9-1_2 0 1 0\n")
    made = shared.reproduce_publication("ikat2023", tmp_path)
    ours = {n.row: (n.ours.value, n.difference) for n in made.numbers if n.table == "Table 1" and n.ours is not None}
    assert ours == {
        "Topics": (2.0, -11.0),
        "Dialogues": (3.0, -22.0),
        "Turns": (6.0, -320.0),
        "Avg. dialogue length": (2.0, -11.04),
        "Avg. num. of dialogue per topic": (1.5, -0.42),
        "Assessed turns": (2.0, -174.0),
        "Passages assessed": (3.0, -26156.0),
        "Fails to meet (0)": (2.0, -20456.0),
        "Slightly meets (1)": (0.0, -2787.0),
        "Moderately meets (2)": (0.0, -1803.0),
        "Highly meets (3)": (0.0, -932.0),
        "Fully meets (4)": (1.0, -178.0),
        "PTKB turns assessed by NIST": (2.0, -96.0),
        "PTKB assessments by NIST": (2.0, -1028.0),
        "Relevant (1) by NIST": (1.0, -223.0),
    }
    other = "not known: this is not the release that this command was written for"
    assert {n.reason for n in made.numbers if n.row in ours} == {other}
    absent = {n.row: n.reason for n in made.numbers if n.table == "Table 1" and n.ours is None}
    assert absent["Relevant (1) by the organizers"] == "ptkb_rel_org is not in the folder"
    assert absent["Num of pruned turns"] == "no list of the pruned turns is public"


def nuggets(folder: Path) -> Path:
    """CONE-RAG with two turns, two runs and three pairs of the human study."""
    texts = {"0_2": {"b": "Two words.", "a": "word " * 251}, "1_1": {"a": "One.", "b": "   "}}
    gold = {"0_2": {"[1]": {"text": "x", "relevance": "2"}, "[2]": {"text": "y", "relevance": "1"}}, "1_1": {}}
    answers = {"0_2": {"manual": {"response": "An answer."}}, "1_1": {"manual": {"response": ""}}}
    put(folder / "automatic_responses.json", json.dumps(texts))
    put(folder / "gold_nuggets_human.json", json.dumps(gold))
    put(folder / "gold_response_and_nuggets_human.json", json.dumps(answers))
    put(folder / "human-study-matching-labels.txt", "1_0_2_1_b-1\t0\n1_0_2_2_b-1\t1\n2_1_1_1_a-2\t0\n")
    return folder


@pytest.mark.slow
def test_cone_rag_is_counted_from_the_files_that_are_there(tmp_path: Path) -> None:
    made = shared.reproduce_publication("cone-rag", nuggets(tmp_path))
    assert {n.measure: (n.published, n.ours and n.ours.value, n.difference) for n in made.numbers} == {
        "conversations": ("17", None, None),
        "passage assessments": ("20,575", None, None),
        "gold nuggets": ("2,279", 2.0, -2277.0),
        "gold answers": ("62", 1.0, -61.0),  # an empty answer is none
    }
    matches, lengths = made.beyond
    # a-2: 1 pair, b-1: 2 pairs with 1 yes, together 3 pairs.
    assert [line[:4] for line in matches] == [("a-2", 1, 1, 0), ("b-1", 1, 2, 1), ("all", 2, 3, 1)]
    # The bare tokenizer counts the 251 words and, of the white space at the end, nothing.
    assert [line[:6] for line in lengths if line[1] == "bare"] == [
        ("a", "bare", 2, 1, 0, 251),
        ("b", "bare", 1, 0, 0, 2),
    ]


@pytest.mark.parametrize(("name", "text", "code", "path"), [
    ("automatic_responses.json", '{"0_2": {"a": 5}}', "wrong_type", '$["0_2"].a'),
    ("automatic_responses.json", '{"0_2": ["a"]}', "wrong_type", '$["0_2"]'),
    ("automatic_responses.json", '{"two": {"a": "x"}}', "wrong_type", "$.two"),
    ("automatic_responses.json", '{"0_2": {"a": "x"}, "0_2": {"a": "y"}}', "repeated_key", "$"),
    ("automatic_responses.json", '{"0_2": {"a": "x"}', "truncated_json", ""),
    ("automatic_responses.json", "[]", "wrong_type", "$"),
    ("gold_response_and_nuggets_human.json", '{"0_2": {}}', "wrong_type", '$["0_2"].manual.response'),
    ("human-study-matching-labels.txt", "1_0_2_1_b-1\t2\n", "not_a_match", "line 1"),
    ("human-study-matching-labels.txt", "1_0_2_1_b-1\t0\n1_0_2_1_b-1\t1\n", "duplicate_row", "line 2"),
])  # fmt: skip
def test_files_of_cone_rag_that_cannot_be_used_are_named_with_the_place(tmp_path, name, text, code, path) -> None:
    put(tmp_path / name, text)
    problems = refused(shared.reproduce_publication, "cone-rag", tmp_path)
    assert [(problem.code, problem.path) for problem in problems] == [(code, path)]


def test_two_people_may_label_one_pair(tmp_path: Path) -> None:
    path = put(tmp_path / "matches.txt", "1_0_2_1_b-1\t0\n7_0_2_1_b-1\t1\n")
    assert read_study(path) == (("1", "0_2", 1, "b-1", False), ("7", "0_2", 1, "b-1", True))


def test_lengths_are_counted_by_each_rule() -> None:
    texts = {"1-1_1": "Yes. " * 251, "1-1_2": "No.", "1-1_3": "One " * 250}
    # "Yes." is one token to the bare tokenizer, and two to the English one; 250 words are at the limit, not over it.
    assert [line[1:6] for line in shared.lengths_grid({"r": texts})] == [
        ("bare", 3, 1, 1, 251),
        ("english", 3, 1, 1, 502),
        ("whitespace", 3, 1, 1, 251),
    ]
