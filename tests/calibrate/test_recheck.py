"""The statistics of a recheck, by hand."""

from collections.abc import Sequence

import pytest

from judge.calibrate.recheck import (
    JudgedQuestion,
    RecheckedItem,
    RecheckPart,
    ServedChange,
    change_lines,
    chosen,
    parse_part,
    recheck_rows,
    served_changes,
)
from judge.errors import UsageError
from judge.records import FailureReason
from judge.stats.means import clopper_pearson, mean_interval


def item(
    topic: str = "1-1",
    grade: int | None = 2,
    again: int | None = 2,
    missing: FailureReason | None = None,
    served: tuple[str | None, str | None] = ("fp_a", "fp_a"),
    number: int = 1,
) -> RecheckedItem:
    return RecheckedItem(
        response_id=f"R{number:05}", turn_id=f"{topic}_1", topic_id=topic, criterion="groundedness", variant="graded",
        judge="openai/m", sample=0, grade=grade, again_grade=again, again_missing=missing, model="m-2026-01-31",
        again_model=None if missing else "m-2026-01-31", system_fingerprint=served[0],
        again_system_fingerprint=None if missing else served[1], request_digest=f"first{number}",
        again_request_digest=None if missing else f"second{number}",
    )  # fmt: skip


def test_flips_distances_and_their_intervals_over_topics() -> None:
    # Of six answers, three are other: 2 to 3, 3 to 1, and 1 to "unable", which has no distance from 1.
    items = [
        *(item("1-1", 2, 3), item("1-1", 2, 2)),
        *(item("2-1", 3, 1), item("2-1", 0, 0)),
        *(item("3-1", 1, None), item("3-1", None, None)),
        item("3-1", 2, None, "budget"),
    ]
    (row,) = recheck_rows(items)
    assert (row.judge, row.prompt, row.asked, row.missing) == ("openai/m", "groundedness/graded", 7, 1)
    assert (row.flipped.value, row.flipped.n, row.flipped.topics) == (3 / 6, 6, 3)
    # |3 - 2|, 0, |1 - 3| and 0 of four pairs of grades in two topics, which are too few for an interval.
    assert (row.change.value, row.change.n, row.change.topics, row.change.low) == (3 / 4, 4, 2, None)
    assert (row.higher, row.lower) == (1, 1)


def test_the_interval_of_flips_is_over_topics() -> None:
    flips = [1, 0, 0, 0, 1, 1, 0, 0]
    topics = ["1-1", "1-1", "2-1", "2-1", "3-1", "3-1", "4-1", "4-1"]
    (row,) = recheck_rows([item(topic, 2, 3 if flip else 2) for flip, topic in zip(flips, topics, strict=True)])
    assert row.flipped == mean_interval(flips, topics, bounds=(0, 1))
    assert row.change.value == 3 / 8
    assert row.change.low == 0.0  # no distance is below 0


def test_no_flip_at_all_leaves_an_upper_end() -> None:
    # In none of four topics: 1 - .025^(1/4) = .602, however many items of them were asked.
    (row,) = recheck_rows([item(topic, 1, 1) for topic in ("1-1", "2-1", "3-1", "4-1") for _ in range(5)])
    assert (row.flipped.value, row.flipped.low) == (0, 0)
    assert row.flipped.high == pytest.approx(1 - 0.025 ** (1 / 4)) == pytest.approx(clopper_pearson(0, 4)[1])
    (row,) = recheck_rows([item(topic, 1, 2) for topic in ("1-1", "2-1", "3-1", "4-1")])
    assert (row.flipped.low, row.flipped.high) == (pytest.approx(0.025 ** (1 / 4)), 1)
    (row,) = recheck_rows([item(topic, 1, 1) for topic in ("1-1", "2-1")])
    assert (row.flipped.value, row.flipped.low, row.flipped.reason) == (0, None, "fewer than 3 topics")


def test_nothing_came_back() -> None:
    (row,) = recheck_rows([item(missing="provider_error", again=None)])
    assert (row.asked, row.missing, row.flipped.value, row.change.value) == (1, 1, None, None)
    assert recheck_rows([]) == ()


def test_what_answered_is_named_with_the_times_between() -> None:
    items = [
        item(number=1, served=("fp_a", "fp_b")),
        item(number=2, served=("fp_a", "fp_b")),
        item(number=3, served=("fp_b", "fp_b")),
        item(number=4, missing="budget", served=("fp_a", None)),
        item(number=5, served=("fp_b", None)),
    ]
    assert served_changes(items) == (
        ServedChange("openai/m", "system_fingerprint", "fp_a", "fp_b", 2),
        ServedChange("openai/m", "system_fingerprint", "fp_b", None, 1),
    )
    recorded = {
        "first1": "2026-05-01T10:00:00.000Z",
        "first2": "2026-05-01T10:00:05.000Z",
        "second1": "2026-05-01T11:00:07.500Z",
        "second2": "2026-05-01T11:00:09.000Z",
    }
    assert change_lines(items, recorded) == (
        "openai/m: 2 second answers came from another system_fingerprint: 'fp_a' (2026-05-01 10:00:05), "
        "then 'fp_b' (2026-05-01 11:00:07)",
        "openai/m: 1 second answer came from another system_fingerprint: 'fp_b', then none named",
    )
    assert change_lines(items[2:4], recorded) == ()


@pytest.mark.parametrize(
    ("text", "judged", "expected"),
    [
        ("2%", 150, 3),
        ("2%", 151, 4),
        ("0.5%", 77, 1),
        ("100%", 7, 7),
        ("20", 7, 7),
        (" 3 ", 7, 3),
        ("2%", 0, 0),
        ("1e-5%", 77, 1),
    ],
)
def test_how_many_a_part_is(text: str, judged: int, expected: int) -> None:
    assert parse_part(text).of(judged) == expected


@pytest.mark.parametrize("text", ["", "0", "0%", "-1", "101%", "nan%", "2 %%", "2.5", "%", "two", "2%x", "\x1b[31m"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a share such as 2%") as refused:
        parse_part(text)
    assert "\x1b" not in str(refused.value)


def judged(*numbers: int, judge: str = "a", sample: int = 0) -> list[JudgedQuestion]:
    return [JudgedQuestion(judge, "digest", sample, f"R{number:05}") for number in numbers]


def names(questions: Sequence[JudgedQuestion], places: Sequence[int]) -> set[str]:
    return {questions[place].response_id for place in places}


def test_what_is_asked_again_is_drawn_by_the_seed_and_kept_as_the_pool_grows() -> None:
    few, more = judged(*range(100)), judged(*range(200))
    first, then = chosen(few, RecheckPart(number=10)), chosen(more, RecheckPart(number=20))
    assert (len(first), len(then)) == (10, 20)
    assert chosen(few[::-1], RecheckPart(number=10)) == sorted(99 - place for place in first)
    kept = names(more, then) & names(few, range(100))
    # Of the larger pool's part, those of the smaller pool are its own first ones.
    assert kept <= names(few, chosen(few, RecheckPart(number=20)))
    assert first != list(range(10))


def test_every_judge_prompt_and_sample_has_its_part() -> None:
    questions = judged(*range(10)) + judged(*range(10), judge="b") + judged(*range(10), sample=1)
    places = chosen(questions, RecheckPart(share=0.2))
    assert [sum(place // 10 == group for place in places) for group in range(3)] == [2, 2, 2]
    # Two judges are asked about the same responses.
    assert names(questions, places[:2]) == names(questions, places[2:4])


def test_two_prompts_are_asked_again_about_the_same_responses() -> None:
    questions = [JudgedQuestion("a", prompt, 0, f"R{number:05}") for prompt in "xy" for number in range(20)]
    places = chosen(questions, RecheckPart(number=5))
    assert names(questions, places[:5]) == names(questions, places[5:])
