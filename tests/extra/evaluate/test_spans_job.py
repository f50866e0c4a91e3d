"""`judge evaluate spans` from files to figures: what it notes, what it refuses, what it writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.extra.evaluate.spans import SpansOutcome, SpansPlan, evaluate_spans
from tests.calibration_world import contents
from tests.conftest import complaint, printed, put

FILES = {
    "gold.tsv": "1\tthe Fifth Amendment\n2\tswitch knives\n3\televated trains\n4\tsecret ballots\n",
    "run.tsv": "1\tfifth amendment\n2\tcute little switchknife\n3\tthe elevated train\n4\tsecret ballot\n",
    "short.tsv": "4 secret ballot\n\n1\t\n2\tknives\n77\tjury\n",
    "equiv.txt": "1\n2 3\n4 99\n50 51\n",
    "passages.res": "1 Q0 a 1 2.5 r\n1 Q0 b 2 1.5 r\n2 Q0 b 1 1 r\n",
    "grades.qrel": "1 Q0 b 1\n3 Q0 b 1\n3 Q0 c 0\n4 Q0 d 1\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        put(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluated(**named: Any) -> SpansOutcome:
    return evaluate_spans(SpansPlan(**named))


def test_what_is_left_out_is_said(folder: Path) -> None:
    outcome = evaluated(gold="gold.tsv", runs=["run.tsv", "short.tsv"], equivalence="equiv.txt")
    assert outcome.notes == (
        "Group 4 99 is skipped: 99 not in the gold.",
        "1 group without a topic of the gold skipped.",
        "short: 1 topic not in the gold, left out: 77.",
        "short: 1 empty prediction: 1.",
        "short: 1 group skipped, since the run lacks 3; over `qrels` a missing prediction is empty.",
        "short: its lines are not those of the gold one by one, so the organizers' script compares predictions with "
        "the spans of other topics (`crossed`); the figures by topic id are the right ones.",
    )
    assert [(score.run_id, score.over, len(score.groups)) for score in outcome.spans] == [
        ("run", "answered", 2),
        ("short", "answered", 1),
        ("short", "qrels", 2),
    ]
    assert outcome.spans[0].groups[0].overlap == 1.0
    assert outcome.spans[1].overlap.value == 0.0
    # Lines 4, (blank), 1, 2 and 77 stand beside 1, 2, 3, 4 and nothing.
    assert {figures.crossed for figures in outcome.script if figures.run_id == "short"} == {4}
    assert outcome.script[3].reason == "it stops: line 5 has no gold span"


def test_without_groups_every_topic_is_alone(folder: Path) -> None:
    outcome = evaluated(gold="gold.tsv", runs="run.tsv")
    assert outcome.notes == ("Without --equivalence, every topic of the gold is a group of its own.",)
    assert [group.topics for group in outcome.spans[0].groups] == [("1",), ("2",), ("3",), ("4",)]


def test_a_topic_in_no_group_is_said(folder: Path) -> None:
    Path("equiv.txt").write_text("1\n2 3\n", encoding="utf-8")
    outcome = evaluated(gold="gold.tsv", runs="run.tsv", equivalence="equiv.txt")
    assert outcome.notes == ("1 topic of the gold in no group, so in no mean: 4.",)


def test_line_ends_marks_and_spaces_change_nothing(folder: Path) -> None:
    plain = evaluated(gold="gold.tsv", runs="run.tsv").spans
    odd = "\ufeff" + FILES["run.tsv"].replace("\t", " \t ").replace("\n", " \r\n") + "\n\n"
    Path("run.tsv").write_text(odd, encoding="utf-8")
    assert evaluated(gold="gold.tsv", runs="run.tsv").spans == plain


def test_groups_of_other_topics_are_refused(folder: Path) -> None:
    Path("equiv.txt").write_text("1 50\n2 51\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"equiv\.txt: no group has all its topics in the gold, which has 1, 2, 3, 4"):
        evaluated(gold="gold.tsv", runs="run.tsv", equivalence="equiv.txt")


def test_passages_of_conversations(folder: Path) -> None:
    outcome = evaluated(qrels="grades.qrel", runs="passages.res", equivalence="equiv.txt")
    rows = {(run.merging, run.over): [score.mean.value for score in run.scores] for run in outcome.passages}
    # Topic 1: b at rank 2. Topic 2 has the b of topic 3: rank 1. Topics 3, 4 and 99 are not answered.
    assert rows["merged", "answered"] == pytest.approx([(1 / 2 + 1) / 2, 1 / 5, (1 / 2 + 1) / 2])
    assert rows["merged", "qrels"] == pytest.approx([(1 / 2 + 1) / 5, (2 / 5) / 5, (1 / 2 + 1) / 5])
    assert [group.over for group in outcome.passages if group.merging == "script"] == ["answered", "qrels"]
    # Topic 2 has no grade of its own.
    assert outcome.notes == ("passages: 1 topic not in the qrels: 2.",)
    alone = evaluated(qrels="grades.qrel", runs="passages.res")
    assert [(run.merging, run.over) for run in alone.passages] == [("merged", "answered"), ("merged", "qrels")]
    assert alone.passages[0].scores[0].mean.value == 0.5


@pytest.mark.parametrize(("named", "said"), [
    ({"runs": ["run.tsv"]}, "a run of spans .* needs --gold"),
    ({"runs": ["passages.res"]}, "a run of passages .* needs --qrels"),
    ({"runs": ["run.tsv"], "gold": "gold.tsv", "qrels": "grades.qrel"}, "--qrels is of no use here"),
    ({"runs": ["passages.res"], "gold": "gold.tsv", "qrels": "grades.qrel"}, "--gold is of no use here"),
    ({"runs": []}, "run: expected a value, found none"),
    ({"runs": ["run.tsv", "./run.tsv"], "gold": "gold.tsv"}, "two runs are named 'run'"),
])  # fmt: skip
def test_files_that_do_not_fit_are_refused(folder: Path, named: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluated(**named)


@pytest.mark.parametrize(("name", "text", "said", "problems"), [
    ("run.tsv", "", "run.tsv: the file is empty", []),
    ("run.tsv", "1\ta\n2\tb\n1\tc\n", "not usable as spans: 1 line", ["topic '1' is already on line 1"]),
    ("run.tsv", "70\ta\n71\tb\n", "none of its 2 topics is in the gold: 70, 71", []),
    ("run.tsv", b"1\t\xff\n", "not UTF-8 at byte 2", []),
    ("gold.tsv", "1 a b\n2\tb\n3\t\n4\ta\tb\n", "gold.tsv: not usable as spans: 3 lines", [
        "'1 a b': expected a topic, one tab and its span",
        "'3\\t': expected a topic, one tab and its span",
        "'4\\ta\\tb': expected a topic, one tab and its span",
    ]),
    ("gold.tsv", "\n\n", "gold.tsv: the file is empty", []),
    ("equiv.txt", "1 2\n3 1\n4 4\n", "not a list of groups: 2 lines", [
        "topic '1' is already on line 1", "topic '4' is already on line 3",
    ]),
    ("equiv.txt", " \n", "equiv.txt: the file is empty", []),
    ("passages.res", "1 Q0 a 1 2.5 r\n1 Q0 a 2 1 r\n1 Q0 b 2 nan r\n1 Q0 c\n1 Q0 d 1 1e999 r\n", "4 lines", [
        "1 a is on an earlier line too", "score 'nan': expected a finite number",
        "3 columns: expected 6 (turn_id Q0 item_id rank score run_id)", "score '1e999': expected a finite number",
    ]),
    ("passages.res", "1 q0 a 1 much r\n", "1 line", ["score 'much': expected a finite number"]),
    ("passages.res", "88 Q0 a 1 2.5 r\n", "none of its 1 topic has a relevant passage in the qrels: 88", []),
    ("grades.qrel", "1 Q0 b\n", "not usable as qrels", ["3 columns: expected 4 (turn_id 0 item_id grade)"]),
])  # fmt: skip
def test_a_bad_file_of_spans_or_passages_is_refused(folder, name, text, said, problems) -> None:
    put(Path(name), text)
    passages = name in ("passages.res", "grades.qrel")
    read = {"qrels": "grades.qrel", "runs": "passages.res"} if passages else {"gold": "gold.tsv", "runs": "run.tsv"}
    with pytest.raises(InputError, match=said) as refused:
        evaluated(**read, equivalence="equiv.txt")
    assert [problem.message for problem in refused.value.problems] == problems


def test_the_command_prints_tables_and_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["evaluate", "spans", "--gold", "gold.tsv", "--run", "run.tsv", "passages.res", "--qrels", "grades.qrel"]
    tables = printed(capsys, main([*line, "--equivalence", "equiv.txt", "--format", "tsv"])).split("\n\n")
    assert [table.split("\t")[0] for table in tables] == ["run", "run", "run"]
    told = json.loads(printed(capsys, main([*line, "--json"])))
    assert list(told) == ["spans", "script", "passages", "notes"]
    assert told["spans"][0]["groups"][0]["predicted"] == "fifth amend"
    assert complaint(capsys, main(["evaluate", "spans", "--run", "run.tsv"])).startswith("judge: a run of spans")


def test_the_tables_explain_their_intervals_and_columns(folder: Path) -> None:
    runs = ["run.tsv", "passages.res"]
    grids = evaluated(gold="gold.tsv", runs=runs, qrels="grades.qrel", equivalence="equiv.txt").grids
    assert [note.partition(":")[0] for note in grids["spans"].notes] == ["overlap", "[ ]"]
    assert "95 % interval over groups" in grids["spans"].notes[1]
    assert "95 % interval over conversations" in grids["passages"].notes[0]
    assert grids["passages"].notes[1] == "Group 4 99 is skipped: 99 not in the gold."


def test_the_folder_is_the_same_on_a_rerun(folder: Path) -> None:
    for out in ("a", "b", "a"):
        evaluated(gold="gold.tsv", runs=["run.tsv", "short.tsv"], equivalence="equiv.txt", out=out)
    assert contents(folder / "a") == contents(folder / "b")
    assert b"\t99 not in the gold\n" in contents(folder / "a")["groups.tsv"]
    put(Path("c/spans.tsv"), FILES["run.tsv"])
    with pytest.raises(UsageError, match="would be written over"):
        evaluated(gold="gold.tsv", runs="c/spans.tsv", out="c")
