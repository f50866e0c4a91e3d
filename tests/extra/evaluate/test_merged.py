"""Passages under merged qrels: small rankings by hand, and the organizers' merged file."""

from pathlib import Path

import pytest

from judge.extra.evaluate.spans import merged_qrels, merged_run, read_groups
from judge.io.ids import QrelRow, parse_qrels
from tests.conftest import put, refused

ROWS = [QrelRow(*row) for row in [("1", "a", 1), ("1", "z", 0), ("2", "b", 1), ("3", "c", 2), ("9", "d", 1)]]
GROUPS = [("3",), ("1", "2"), ("4",)]


def test_topics_of_a_conversation_share_their_relevant_passages() -> None:
    assert merged_qrels(ROWS, GROUPS) == {"1": {"a", "b"}, "2": {"a", "b"}, "3": {"c"}}


def test_the_script_keeps_the_passages_of_the_conversations_before() -> None:
    # In the order of first topics: 1 2, then 3, then 4; topic 9 is in no group.
    merged = merged_qrels(ROWS, GROUPS, "script")
    assert merged == {"1": {"a", "b"}, "2": {"a", "b"}, "3": {"a", "b", "c"}, "4": {"a", "b", "c"}}


def test_measures_by_hand() -> None:
    relevant = merged_qrels(ROWS, GROUPS)
    ranking = {"1": {"x": 3.0, "a": 2.0, "b": 1.0}, "3": {"y": 1.0}, "7": {"a": 1.0}}
    run = merged_run("r", ranking, relevant, GROUPS, "merged", "answered")
    precision, early, reciprocal = (score.mean for score in run.scores)
    # Topic 1: relevant at ranks 2 and 3 of two; topic 3: none.
    assert precision.value == pytest.approx(((1 / 2 + 2 / 3) / 2 + 0) / 2)
    assert early.value == pytest.approx((2 / 5 + 0) / 2)
    assert reciprocal.value == pytest.approx((1 / 2 + 0) / 2)
    assert (precision.n, precision.topics) == (2, 2)
    every = merged_run("r", ranking, relevant, GROUPS, "merged", "qrels").scores[0]
    assert every.mean.value == pytest.approx(((1 / 2 + 2 / 3) / 2 + 0 + 0) / 3)
    # Three topics of two conversations.
    assert (every.mean.n, every.mean.topics) == (3, 2)
    assert every.values == pytest.approx({"1": 7 / 12, "2": 0.0, "3": 0.0})


def test_equal_scores_are_ordered_as_by_trec_eval() -> None:
    relevant = {"1": frozenset({"a"})}
    run = merged_run("r", {"1": {"a": 1.0, "b": 1.0}}, relevant, [("1",)], "merged", "answered")
    assert [score.mean.value for score in run.scores] == [0.5, 0.2, 0.5]


def test_a_run_of_other_topics_has_no_values() -> None:
    run = merged_run("r", {"7": {"a": 1.0}}, {"1": frozenset({"a"})}, [("1",)], "merged", "answered")
    assert [score.mean.value for score in run.scores] == [None, None, None]


@pytest.mark.parametrize(("version", "rows"), [("v3", 24498), ("v4", 25288)])
def test_the_merged_file_of_the_track(shared: Path, version: str, rows: int) -> None:
    folder = shared / "rcd2020"
    qrels = parse_qrels((folder / f"qrel-judgement-{version}.txt").read_text(encoding="utf-8"), version)
    groups = read_groups(folder / "equiv.txt")
    script = merged_qrels(qrels, groups, "script")
    # What the organizers' script writes under gawk; its file for v4 is public and has as many lines.
    assert sum(map(len, script.values())) == rows
    own = merged_qrels(qrels, groups)
    assert script["1"] == own["1"] and script["50"] == frozenset().union(*own.values())
    if version == "v4":
        assert [len(script[topic_id]) for topic_id in ("1", "2", "10", "39", "50")] == [34, 37, 222, 222, 926]


def test_a_line_of_very_many_topics_is_read_once(tmp_path: Path) -> None:
    """Each topic compared with all before it would take minutes here."""
    path = put(tmp_path / "equiv.txt", " ".join(map(str, range(100_000))) + "\n")
    assert len(read_groups(path)[0]) == 100_000
    path.write_text("1 2 3 2\n3 4\n", encoding="utf-8")
    assert [problem.message for problem in refused(read_groups, path)] == [
        "topic '2' is already on line 1",
        "topic '3' is already on line 1",
    ]
