"""The items of a browser: read from folders, matched between them, with how far their graders are apart."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion
from judge.ask.records import SentenceSupport
from judge.calibrate.disagreements import AssessorGrade, JudgeGrade
from judge.errors import InputError
from judge.io.files import jsonl_bytes
from judge.records import Level, Scale
from judge.report.gather import gather
from judge.report.items import LACKS, BrowsedItem, Gaps, Opinion, gaps
from judge.report.listing import checked_supports, labeled_sentences, opened_journal, pieces, sent, supports
from judge.runs.records import Exchange
from tests.calibration_world import row, write_gold
from tests.conftest import put
from tests.report.browsed import (
    FERRY,
    calibrated,
    disagreement,
    failed,
    gold_file,
    judgment,
    opened,
    response,
    runs,
    write_folder,
)


def item(grades: dict[int, int | None], gold: int | None = None, votes: Sequence[int | None] = ()) -> BrowsedItem:
    members = tuple(Opinion("R00001", "m", "groundedness/mine", grade) for grade in votes)
    opinions = {
        side: Opinion("R00001", "j", "groundedness/mine", grade, votes=members) for side, grade in grades.items()
    }
    return BrowsedItem("1-1_1", "1-1", "groundedness", "Yes.", False, (), (), opinions, gold_grade=gold)


def scale(*grades: int, positive: int) -> Scale:
    levels = tuple(Level(grade, str(grade), "") for grade in grades)
    return Scale(levels, "higher", tuple(grade for grade in grades if grade >= positive), None)


GRADED, YES_NO = scale(0, 1, 2, 3, positive=2), scale(0, 1, positive=1)
WORSE, TURNED = Scale(GRADED.levels, "lower", (0, 1), None), scale(3, 2, 1, 0, positive=2)


@pytest.mark.parametrize(
    ("shown", "scales", "expected"),
    [
        (item({0: 2}), {}, Gaps(None, None, None)),
        (item({0: 2}, gold=3), {}, Gaps(1, None, None)),
        (item({0: None}, gold=3), {}, Gaps(LACKS, None, None)),
        (item({0: 0, 1: 3}), {}, Gaps(None, 3, None)),
        (item({0: 3, 1: 3}), {}, Gaps(None, 0, None)),
        (item({0: 3, 1: None}), {}, Gaps(None, LACKS, None)),
        (item({0: None, 1: None}), {}, Gaps(None, 0, None)),
        (item({0: 1, 1: 3}, gold=2), {}, Gaps(1, 2, None)),
        (item({0: 2}, votes=(0, 2, 2)), {}, Gaps(None, None, 2)),
        # 2 of 0 to 3 and 1 of 0 to 1 are both positive; 1 of 0 to 3 is not.
        (item({0: 2, 1: 1}), {0: GRADED, 1: YES_NO}, Gaps(None, 0, None)),
        (item({0: 1, 1: 1}), {0: GRADED, 1: YES_NO}, Gaps(None, 1, None)),
        # The same numbers with the other end good: 3 is positive on the first scale and not on the second.
        (item({0: 3, 1: 3}), {0: GRADED, 1: WORSE}, Gaps(None, 1, None)),
        (item({0: 3, 1: 0}), {0: GRADED, 1: WORSE}, Gaps(None, 0, None)),
        # The order in which a prompt lists its levels is no matter.
        (item({0: 0, 1: 2}), {0: GRADED, 1: TURNED}, Gaps(None, 2, None)),
        # Gold of 3 is no grade of the second side.
        (item({0: 2, 1: 1}, gold=3), {0: GRADED, 1: YES_NO}, Gaps(1, 0, None)),
    ],
)
def test_how_far_graders_are_apart(shown: BrowsedItem, scales: dict[int, Scale], expected: Gaps) -> None:
    assert gaps(shown, scales) == expected


def test_an_output_folder_gives_an_item_for_each_judgment_and_each_failure(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out",
        [response(2, "By bus.", passages=("bus-9",)), response(1, "By ferry.", runs=runs("run-b", "run-a"))],
        [judgment(1, 3, rationale="It says so."), failed(2, "no_passages")],
    )
    read = gather(opened([folder]))
    ferry, bus = read.items
    assert [(one.opinions[0].response_id, one.text, one.runs) for one in (ferry, bus)] == [
        ("R00001", "By ferry.", (("run-b", ""), ("run-a", ""))),
        ("R00002", "By bus.", (("run-a", ""),)),
    ]
    assert ferry.passages == (("ferry-1", FERRY.text, "collection", ""),)
    assert bus.passages == (("bus-9", None, None, ""),)
    assert ferry.opinions[0].rationale == "It says so."
    assert (bus.opinions[0].grade, bus.opinions[0].reason) == (None, "no_passages")
    assert bus.opinions[0].raw == "I had rather not say."
    assert [name for name, _ in read.sides] == ["out"]
    assert read.notes == (
        "out was made without a topics file, so conversations are not shown.",
        "out has no journal.sqlite, so prompts and replies as sent are not shown.",
    )


def test_the_level_of_unable_is_no_grade(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", [response(1, "Hello!")], [judgment(1, -1, unable=True)])
    said = next(iter(gather(opened([folder])).items)).opinions[0]
    assert (said.grade, said.reason) == (None, "unable")


def test_a_jury_brings_the_votes_of_its_members(tmp_path: Path) -> None:
    votes = [judgment(1, 2, judge="server/a"), judgment(1, 0, judge="server/b"), failed(1, judge="server/c")]
    folder = write_folder(
        tmp_path / "out", [response(1, "By ferry.")], [judgment(1, 1, judge="jury/mean")], members=votes
    )
    said = next(iter(gather(opened([folder])).items)).opinions[0]
    given_votes = [(vote.judge, vote.grade, vote.reason) for vote in said.votes]
    assert given_votes == [("server/a", 2, None), ("server/b", 0, None), ("server/c", None, "unreadable")]


def test_folders_that_number_responses_differently_share_their_items(tmp_path: Path) -> None:
    one = write_folder(
        tmp_path / "one", [response(1, "By ferry."), response(2, "By bus.")], [judgment(1, 3), judgment(2, 1)]
    )
    two = write_folder(
        tmp_path / "two",
        [response(1, "By bus."), response(2, "By ferry."), response(3, "By ferry.", passages=("bus-7",))],
        [judgment(1, 0), judgment(2, 2), judgment(3, 0)],
    )
    shared = [
        (one.text, one.passages[0][0], {side: said.grade for side, said in one.opinions.items()})
        for one in gather(opened([one, two])).items
    ]
    both = [("By ferry.", "ferry-1", {0: 3, 1: 2}), ("By bus.", "ferry-1", {0: 1, 1: 0})]
    assert shared == [*both, ("By ferry.", "bus-7", {1: 0})]


def test_responses_that_differ_only_in_the_text_of_a_passage_stay_apart(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out",
        [response(1, "By ferry.", passages=("p#1",)), response(2, "By ferry.", passages=("p#2",))],
        [judgment(1, 3), judgment(2, 0)],
    )
    (read,) = opened([folder]).values()
    assert [one.opinions[0].grade for one in gather({"a": read, "b": read}).items] == [3, 0]


def test_conversations_come_from_the_topics_file_that_the_manifest_names(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out", [response(1, "At noon.", "1-1_2")], [judgment(1, 3, "1-1_2")], sent={}, topics=True
    )
    read = gather(opened([folder]))
    turn = read.turns["1-1_2"]
    assert list(read.turns) == ["1-1_2"]
    assert turn.utterance == "When does it leave?"
    assert turn.context == (Exchange("How do I get to the island?", "By ferry."),)
    assert read.notes == ()
    (tmp_path / "topics.json").write_text("[]", encoding="utf-8")
    assert gather(opened([folder])).notes[0].endswith("has changed since out was made.")
    (tmp_path / "topics.json").unlink()
    assert gather(opened([folder])).notes[0].endswith("the topics file of out, is not there.")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    put(folder / "manifest.json", json.dumps(manifest | {"options": {}}))
    said = "Conversations are not shown: out does not say where its topics file is."
    assert gather(opened([folder])).notes[0] == said


def test_gold_stands_beside_the_judge_with_each_assessor(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out", [response(1, "By ferry."), response(2, "By bus.")], [judgment(1, 0), judgment(2, 1)]
    )
    grades = (("ann", 3), ("bob", 3), ("cleo", 1))
    gold = gold_file(folder, *(("R00001", assessor, grade) for assessor, grade in grades))
    graded, other = gather(opened([folder]), [gold]).items
    assert graded.gold == tuple(AssessorGrade(assessor, grade, "blind") for assessor, grade in grades)
    assert (graded.gold_grade, other.gold_grade) == (3, None)


def test_grades_of_a_test_part_are_on_no_page(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out", [response(1, "By ferry."), response(2, "By bus.")], [judgment(1, 0), judgment(2, 1)]
    )
    rows = [row("1-1_1", f"R0000{number}", 3, split=part) for number, part in ((1, "dev"), (2, "test"))]
    gathered = gather(opened([folder]), [write_gold(tmp_path / "gold.jsonl", rows)])
    assert [one.gold_grade for one in gathered.items] == [3, None]
    assert gathered.notes[0] == "Not shown here: 1 grade by assessors on a test part."


def write_many(folder: Path, first: int, votes: bool = False) -> Path:
    """A folder of 60 responses under two criteria; their numbers begin with `first`, and their texts are the same."""
    numbers = range(first, first + 60)
    criteria = ("groundedness", "naturalness")
    given = [judgment(number, 2, criterion=criterion) for criterion in criteria for number in numbers]
    return write_folder(
        folder,
        [response(number, f"Text {number - first}.") for number in numbers],
        [*given, failed(first + 90)],
        members=given if votes else (),
    )


def test_of_many_judgments_a_part_is_shown(tmp_path: Path) -> None:
    folder = write_many(tmp_path / "out", 1, votes=True)
    every = gather(opened([folder]), most=121)
    assert len(list(every.items)) == 121 and not any("Shown here" in note for note in every.notes)
    read = gather(opened([folder]), most=40)
    items = list(read.items)
    assert 20 <= len(items) <= 60
    assert read.notes[-1] == (
        f"Shown here: {len(items)} of 121 judgments, those of a random part of the responses. The tables are over all "
        "of them, and judgments.jsonl holds them."
    )
    # A response is shown under all criteria, as it is where all are shown, or not at all.
    assert all(one in every.items for one in items)
    pooled = [one for one in items if one.text is not None]
    assert {one.text for one in pooled if one.criterion == "naturalness"} == {one.text for one in pooled}
    assert all(len(one.opinions[0].votes) == 1 for one in pooled)
    assert list(gather(opened([folder]), most=40).items) == items
    only = gather(opened([folder]), criterion="naturalness", most=40)
    assert f"{len(list(only.items))} of 60 judgments" in only.notes[-1]


def test_the_same_part_is_shown_of_every_folder(tmp_path: Path) -> None:
    one, two = write_many(tmp_path / "one", 1), write_many(tmp_path / "two", 301)
    items = [item for item in gather(opened([one, two]), most=120).items if item.text is not None]
    assert 20 <= len(items) < 120
    assert all(item.opinions.keys() == {0, 1} for item in items)


def test_what_has_gold_is_always_shown(tmp_path: Path) -> None:
    folder = write_many(tmp_path / "out", 1)
    read = gather(opened([folder]), [gold_file(folder, ("R00007", "ann", 3))], most=1)
    assert {"R00007"} <= {one.opinions[0].response_id for one in read.items}
    assert len(list(read.items)) < 20
    assert "those of a random part of the responses and those with grades by assessors." in read.notes[-1]


def test_only_one_criterion(tmp_path: Path) -> None:
    results = [judgment(1, 3), judgment(1, 4, criterion="naturalness")]
    folder = write_folder(tmp_path / "out", [response(1, "By ferry.")], results)
    assert [one.criterion for one in gather(opened([folder]), criterion="naturalness").items] == ["naturalness"]


def test_levels_are_those_of_the_prompt_only_if_it_is_the_same_file(tmp_path: Path) -> None:
    prompt = find_criterion("groundedness/graded")
    same = judgment(1, 3, variant="graded", criterion_digest=prompt.digest)
    changed = judgment(1, 3, variant="graded", criterion_digest="0" * 64)
    one = write_folder(tmp_path / "one", [response(1, "By ferry.")], [same])
    two = write_folder(tmp_path / "two", [response(1, "By ferry.")], [changed])
    assert gather(opened([one, two])).scales == {(0, "groundedness"): prompt.scale}


def test_a_calibration_gives_a_side_for_each_judge(tmp_path: Path) -> None:
    first = JudgeGrade("server/a", "groundedness/mine", 1, 1.2, "Too vague.", None, -2)
    second = JudgeGrade("server/b", None, None, None, None, "refused", None)
    calibrated(tmp_path, disagreement("R00001", first, second), disagreement("R00002", first))
    read = gather(opened([tmp_path]))
    one, other = read.items
    assert [name for name, _ in read.sides] == ["server/a, groundedness/mine", "server/b"]
    assert (one.opinions[0].grade, one.opinions[0].rationale, one.opinions[1].reason) == (1, "Too vague.", "refused")
    # The first judge is 2 off gold; the second has no grade beside it.
    assert (one.opinions[0].off, one.opinions[1].off) == (2, LACKS)
    assert (one.apart, other.apart) == (Gaps(2, LACKS, None), Gaps(2, None, None))
    assert one.passages == (("ferry-1", FERRY.text, None, ""), ("bus-9", None, None, ""))
    assert read.turns["1-1_1"].utterance == "How?"


def test_a_calibration_that_asked_its_judges_knows_what_they_said(tmp_path: Path) -> None:
    said = JudgeGrade("server/made-up", "groundedness/mine", 1, None, "Too vague.", None, -2)
    calibrated(tmp_path, disagreement("R00001", said))
    asked = [judgment(1, 1, rationale="Too vague.", sentences=("unsupported",)), judgment(1, 2, sample=1)]
    (tmp_path / "judgments.jsonl").write_bytes(jsonl_bytes(asked))
    (one,) = gather(opened([tmp_path])).items
    assert (one.opinions[0].grade, one.opinions[0].sentences) == (1, ("unsupported",))


def test_the_judges_of_two_calibrations_are_told_apart(tmp_path: Path) -> None:
    said = JudgeGrade("server/a", "groundedness/mine", 1, None, None, None, -2)
    folders = [calibrated(tmp_path / name, disagreement("R00001", said)) for name in ("may", "june")]
    sides = [name for name, _ in gather(opened(folders)).sides]
    assert sides == ["may: server/a, groundedness/mine", "june: server/a, groundedness/mine"]


def test_a_calibration_without_its_items_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text("{}", encoding="utf-8")
    read = gather(opened([tmp_path]))
    assert (read.sides, list(read.items)) == ((), [])
    assert "has no disagreements.jsonl" in read.notes[0]


def test_damaged_lines_of_a_calibration_are_all_named(tmp_path: Path) -> None:
    put(tmp_path / "disagreements.jsonl", b'{"turn_id": 3}\n[]\n' + jsonl_bytes([disagreement("R00001")]))
    with pytest.raises(InputError, match="3 lines not as `judge calibrate` writes") as refused:
        gather(opened([tmp_path]))
    paths = [problem.path for problem in refused.value.problems]
    assert paths == ["line 1: $.turn_id", "line 2: $", "line 3: $.judges"]


def test_the_journal_tells_what_was_sent(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out", [response(1, "By ferry.")], [judgment(1, 3)], sent={"a" * 64: ("Grade it.", "3")}
    )
    journal, problem = opened_journal(folder / "journal.sqlite")
    with journal:
        recorded = sent(journal, "a" * 64)
        assert recorded is not None and problem is None
        assert [one.content for one in recorded.messages] == ["You assess groundedness.", "Grade it."]
        assert recorded.completion.text == "3"
        assert sent(journal, "b" * 64) is sent(journal, None) is None


def test_a_journal_that_is_none_is_said_and_a_damaged_row_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_text("no journal", encoding="utf-8")
    journal, problem = opened_journal(tmp_path / "journal.sqlite")
    assert sent(journal, "a" * 64) is None
    assert problem is not None and "cannot be read" in problem


FENCED = '<passage n="1">\nA ferry.\n</passage>\n<passage n="2">\n\n</passage>\nGrade:'


def test_a_message_is_cut_at_its_tags() -> None:
    assert pieces(FENCED) == [
        *('<passage n="1">\n', "A ferry.", "\n</passage>\n"),
        *('<passage n="2">\n', "\n</passage>\n", "Grade:"),
    ]


@given(st.lists(st.sampled_from(["<response>\n", "\n</response>", "<", "\n", "text", '<passage n="1">\n']) | st.text()))
def test_the_pieces_of_a_message_are_the_message(parts: list[str]) -> None:
    message = "".join(parts)
    assert "".join(pieces(message)) == message


def test_the_passage_that_holds_most_words_of_a_sentence() -> None:
    passages = ["A ferry leaves the pier.", None, "A ferry leaves the pier at noon."]
    # ferry, leaves, pier, noon, dawn: three of the four words of the second sentence are in the last passage.
    sentences = ["The ferry leaves.", "A ferry leaves at noon, dawn.", "It is."]
    assert supports(sentences, passages) == [(0, 1.0), (2, 0.75), None]


def test_the_passage_of_a_checker_goes_before_the_one_with_most_words() -> None:
    support = (SentenceSupport(("p2#a", "p1"), 0.9), SentenceSupport((), 0.2), SentenceSupport((), None))
    said = Opinion("R00001", "checker/overlap", "groundedness/sentences", 1, support=support)
    passages = tuple((name, "A ferry leaves.", "run") for name in ("p1", "p2"))
    one = BrowsedItem("1-1_1", "1-1", "groundedness", "It leaves. At noon. Why?", False, passages, (), {0: said})
    assert checked_supports(one, 3) == [(1, 0.9), None, None]
    # The sentences are counted otherwise now than when the response was judged.
    assert checked_supports(one, 2) is None


def test_sentences_are_shown_only_where_a_judge_labeled_as_many() -> None:
    def labeled(*labels: str) -> BrowsedItem:
        said = Opinion("R00001", "j", "groundedness/sentences", 1, sentences=labels)
        return BrowsedItem("1-1_1", "1-1", "groundedness", "It leaves. At noon.", False, (), (), {0: said})

    assert labeled_sentences(labeled("supported", "unsupported")) == ("It leaves.", "At noon.")
    assert labeled_sentences(labeled("supported")) == ()
    assert labeled_sentences(labeled()) == ()


def test_gold_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", [response(1, "By ferry.")], [judgment(1, 3)])
    gold = put(tmp_path / "gold.jsonl", json.dumps({"turn_id": "9-9_9"}))
    with pytest.raises(InputError, match="not usable as gold"):
        gather(opened([folder]), [gold])
