"""The statistics of a recheck by hand, and how far a judge moved between two dates."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from judge.ask.results import Label, Labels
from judge.calibrate import recheck
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.jobs.drift import DriftPlan, compare_dates
from judge.records import FailureReason
from judge.stats.means import clopper_pearson, mean_interval, t_quantile
from tests.calibration_world import failure, items, jsonl, judgment, labeled, labels, pool, write_output, write_pool


def item(
    topic: str = "1-1",
    grade: int | None = 2,
    again: int | None = 2,
    missing: FailureReason | None = None,
    served: tuple[str | None, str | None] = ("fp_a", "fp_a"),
    number: int = 1,
) -> recheck.RecheckedItem:
    return recheck.RecheckedItem(
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
    (row,) = recheck.recheck_rows(items)
    assert (row.judge, row.prompt, row.asked, row.missing) == ("openai/m", "groundedness/graded", 7, 1)
    assert (row.flipped.value, row.flipped.n, row.flipped.topics) == (3 / 6, 6, 3)
    # |3 - 2|, 0, |1 - 3| and 0 of four pairs of grades in two topics, which are too few for an interval.
    assert (row.change.value, row.change.n, row.change.topics, row.change.low) == (3 / 4, 4, 2, None)
    assert (row.higher, row.lower) == (1, 1)


def test_the_interval_of_flips_is_over_topics() -> None:
    flips = [1, 0, 0, 0, 1, 1, 0, 0]
    topics = ["1-1", "1-1", "2-1", "2-1", "3-1", "3-1", "4-1", "4-1"]
    (row,) = recheck.recheck_rows([item(topic, 2, 3 if flip else 2) for flip, topic in zip(flips, topics, strict=True)])
    assert row.flipped == mean_interval(flips, topics, bounds=(0, 1))
    assert row.change.value == 3 / 8
    assert row.change.low == 0.0  # no distance is below 0


def test_no_flip_at_all_leaves_an_upper_end() -> None:
    # In none of four topics: 1 - .025^(1/4) = .602, however many items of them were asked.
    (row,) = recheck.recheck_rows([item(topic, 1, 1) for topic in ("1-1", "2-1", "3-1", "4-1") for _ in range(5)])
    assert (row.flipped.value, row.flipped.low) == (0, 0)
    assert row.flipped.high == pytest.approx(1 - 0.025 ** (1 / 4)) == pytest.approx(clopper_pearson(0, 4)[1])
    (row,) = recheck.recheck_rows([item(topic, 1, 2) for topic in ("1-1", "2-1", "3-1", "4-1")])
    assert (row.flipped.low, row.flipped.high) == (pytest.approx(0.025 ** (1 / 4)), 1)
    (row,) = recheck.recheck_rows([item(topic, 1, 1) for topic in ("1-1", "2-1")])
    assert (row.flipped.value, row.flipped.low, row.flipped.reason) == (0, None, "fewer than 3 topics")


def test_nothing_came_back() -> None:
    (row,) = recheck.recheck_rows([item(missing="provider_error", again=None)])
    assert (row.asked, row.missing, row.flipped.value, row.change.value) == (1, 1, None, None)
    assert recheck.recheck_rows([]) == ()


def test_what_answered_is_named_with_the_times_between() -> None:
    items = [
        item(number=1, served=("fp_a", "fp_b")),
        item(number=2, served=("fp_a", "fp_b")),
        item(number=3, served=("fp_b", "fp_b")),
        item(number=4, missing="budget", served=("fp_a", None)),
        item(number=5, served=("fp_b", None)),
    ]
    assert recheck.served_changes(items) == (
        recheck.ServedChange("openai/m", "system_fingerprint", "fp_a", "fp_b", 2),
        recheck.ServedChange("openai/m", "system_fingerprint", "fp_b", None, 1),
    )
    recorded = {
        "first1": "2026-05-01T10:00:00.000Z",
        "first2": "2026-05-01T10:00:05.000Z",
        "second1": "2026-05-01T11:00:07.500Z",
        "second2": "2026-05-01T11:00:09.000Z",
    }
    assert recheck.change_lines(items, recorded) == (
        "openai/m: 2 second answers came from another system_fingerprint: 'fp_a' (2026-05-01 10:00:05), "
        "then 'fp_b' (2026-05-01 11:00:07)",
        "openai/m: 1 second answer came from another system_fingerprint: 'fp_b', then none named",
    )
    assert recheck.change_lines(items[2:4], recorded) == ()


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
    assert recheck.parse_part(text)(judged) == expected


@pytest.mark.parametrize("text", ["", "0", "0%", "-1", "101%", "nan%", "2 %%", "2.5", "%", "two", "2%x", "\x1b[31m"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a share such as 2%") as refused:
        recheck.parse_part(text)
    assert "\x1b" not in str(refused.value)


def judged(*numbers: int, judge: str = "a", sample: int = 0) -> list[tuple[str, str, int, str]]:
    return [(judge, "digest", sample, f"R{number:05}") for number in numbers]


def names(questions: Sequence[tuple[str, str, int, str]], places: Sequence[int]) -> set[str]:
    return {questions[place][-1] for place in places}


def test_what_is_asked_again_is_drawn_by_the_seed_and_kept_as_the_pool_grows() -> None:
    few, more = judged(*range(100)), judged(*range(200))
    first, then = (
        recheck.chosen(few, recheck.parse_part("10")),
        recheck.chosen(more, recheck.parse_part("20")),
    )
    assert (len(first), len(then)) == (10, 20)
    assert recheck.chosen(few[::-1], recheck.parse_part("10")) == sorted(99 - place for place in first)
    kept = names(more, then) & names(few, range(100))
    # Of the larger pool's part, those of the smaller pool are its own first ones.
    assert kept <= names(few, recheck.chosen(few, recheck.parse_part("20")))
    assert first != list(range(10))


def test_every_judge_prompt_and_sample_has_its_part() -> None:
    questions = judged(*range(10)) + judged(*range(10), judge="b") + judged(*range(10), sample=1)
    places = recheck.chosen(questions, recheck.parse_part("20%"))
    assert [sum(place // 10 == group for place in places) for group in range(3)] == [2, 2, 2]
    # Two judges are asked about the same responses.
    assert names(questions, places[:2]) == names(questions, places[2:4])


def test_two_prompts_are_asked_again_about_the_same_responses() -> None:
    questions = [("a", prompt, 0, f"R{number:05}") for prompt in "xy" for number in range(20)]
    places = recheck.chosen(questions, recheck.parse_part("5"))
    assert names(questions, places[:5]) == names(questions, places[5:])


WORLD = items(topics=12, each=5)


def between(first: dict[tuple[str, str], int | None], second: dict[tuple[str, str], int | None]) -> recheck.Drift:
    return recheck.drift(labels("m", first), labels("m", second), {}, {}, 0.1)


def test_the_change_is_the_mean_of_later_minus_earlier_over_topics() -> None:
    first = {("1_1", "a"): 0, ("1_2", "b"): 1} | {(f"{topic}_1", "c"): 2 for topic in range(2, 9)}
    second = first | {("1_1", "a"): 1, ("1_2", "b"): 2, ("3_1", "c"): 1}
    found = between(first, second)
    # Changes 1 1 | -1 | 0 in six topics have the mean 1/9; residuals have the sums 16/9, -10/9 and six times -1/9.
    se = (8 / 7 * (16**2 + 10**2 + 6)) ** 0.5 / 9**2
    assert found.change.value == 1 / 9
    # One topic of 2 responses and seven of 1 weigh as 9² / (2² + 7) topics of equal size.
    for estimate, level in ((found.change, 0.95), (found.within, 0.9)):
        half = t_quantile(level, 81 / 11 - 1) * se
        assert estimate.low == pytest.approx(1 / 9 - half)
        # The topics are skewed: the correction reaches farther above (`for_skewness`).
        assert (estimate.high or 0.0) > 1 / 9 + half
    assert (found.unchanged.value, found.higher, found.lower) == (6 / 9, 2, 1)
    assert (found.n, found.topics, found.word) == (9, 8, "INCONCLUSIVE")


def test_few_topics_say_nothing_and_no_change_exceeds_the_scale() -> None:
    """Three topics gave [-1.1, 5.0] on a scale of four grades, and ten of which one hardly changed more than 3."""
    few = between({(f"{topic}_1", "a"): 0 for topic in (1, 2, 3)}, {("1_1", "a"): 3, ("2_1", "a"): 3, ("3_1", "a"): 0})
    assert (few.change.value, few.change.low, few.change.reason) == (2.0, None, "fewer than 8 topics")
    first = {(f"{topic}_1", "a"): 0 for topic in range(10)}
    much = between(first, dict.fromkeys(first, 3) | {("1_1", "a"): 2})
    assert (much.change.high, much.within.high, much.word) == (3.0, 3.0, "MOVED")


def test_grades_that_come_and_go_are_counted_and_are_no_grades() -> None:
    first = {("1_1", "a"): 1, ("2_1", "b"): None, ("3_1", "c"): 1, ("4_1", "d"): 1, ("5_1", "e"): None}
    second = {
        ("1_1", "a"): None,
        ("2_1", "b"): 1,
        ("3_1", "c"): 1,
        ("5_1", "e"): None,
        ("6_1", "f"): 1,
        ("6_2", "g"): 1,
    }
    found = between(first, second)
    assert (found.n, found.lost, found.gained, found.only_before, found.only_after) == (1, 1, 1, 1, 2)
    assert found.change.value == 0.0


@pytest.mark.parametrize(("topics", "word"), [(8, "INCONCLUSIVE"), (25, "STEADY")])
def test_changes_to_one_side_on_few_topics_are_not_steady(topics: int, word: str) -> None:
    """Student's interval alone, [-.012, .087] on 8 topics, would be within the margin."""
    first = {(f"{topic}_1", str(place)): 0 for topic in range(1, topics + 1) for place in range(10)}
    second = {key: int(key in {("1_1", "0"), ("1_1", "1"), ("2_1", "0")}) for key in first}
    found = between(first, second)
    assert (found.word, found.within.value) == (word, 3 / (10 * topics))


@pytest.mark.parametrize(
    ("shift", "every", "word"), [(0, 1, "INCONCLUSIVE"), (1, 60, "INCONCLUSIVE"), (1, 1, "MOVED"), (1, 3, "MOVED")]
)
def test_the_verdict_goes_by_the_margin(shift: int, every: int, word: str) -> None:
    keys = [(one.turn_id, one.response_id) for one in WORLD]
    first = dict.fromkeys(keys, 1)
    second = {key: 1 + shift * (place % every == 0) for place, key in enumerate(keys)}
    # A change of 1/60, all in one topic, could be a tenth elsewhere, and no change at all could be one; 1/3 is beyond.
    # One of exactly 1 everywhere leaves 1 - .05^(1/12) = .22 of the topics: .78 - .22 is beyond as well.
    assert between(first, second).word == word


@pytest.mark.parametrize(
    ("topics", "each", "shift", "word"),
    [
        (3, 1, 0, "INCONCLUSIVE"), (3, 5, 0, "INCONCLUSIVE"), (5, 4, 0, "INCONCLUSIVE"), (8, 1, 0, "INCONCLUSIVE"),
        (8, 5, 0, "INCONCLUSIVE"), (25, 1, 0, "INCONCLUSIVE"), (25, 12, 0, "STEADY"), (89, 1, 0, "STEADY"),
        (20, 5, -2, "MOVED"), (8, 1, -2, "MOVED"), (3, 5, -2, "INCONCLUSIVE"), (1, 50, -2, "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_grades_that_all_move_alike_are_bounded_exactly(topics: int, each: int, shift: int, word: str) -> None:
    first = {(f"{topic}_1", str(place)): 2 + place % 2 for topic in range(topics) for place in range(each)}
    # The grades of both dates are 0 to 3, or 0 to 2 where there is one response a topic and all fall.
    first |= {("0_2", "low"): 0} if not shift else {}
    second = {key: grade + shift for key, grade in first.items()}
    assert between(first, second).word == word


def test_the_bound_of_what_did_not_move_is_exact() -> None:
    first = {(f"{topic}_1", "a"): topic % 4 for topic in range(20)}
    found = between(first, first)
    # 1 - .05^(1/20) = .139108 of all topics may have moved, by 3 at most; one other answer alone would reach -.15 - ….
    assert (found.within.low, found.within.high) == pytest.approx((-3 * 0.139108, 3 * 0.139108), abs=1e-5)
    assert (found.change.low, found.change.high) == pytest.approx((-3 * 0.168433, 3 * 0.168433), abs=1e-5)
    fell = between(first, {key: grade - 2 for key, grade in first.items()})
    # -2 where it was seen, and 5 up where it was not: the grades of both dates go from -2 to 3.
    assert fell.within.high == pytest.approx(-2 * (1 - 0.139108) + 5 * 0.139108, abs=1e-5)
    assert fell.word == "MOVED"


def test_a_second_answer_at_one_date_is_left_aside() -> None:
    again = Labels("m", None, None, "m.txt", "e" * 64, (Label("1_1", "a", 1), Label("1_1", "a", 3, sample=1)))
    found = recheck.drift(labels("m", {("1_1", "a"): 1}), again, {}, {}, 0.1)
    assert (found.n, found.change.value) == (1, 0.0)


def test_the_same_responses_in_two_pools_are_found_by_text(tmp_path: Path) -> None:
    grades = labeled(WORLD, 0.3, 1)
    first = write_output(tmp_path / "a", WORLD, {"server/m": grades})
    second = write_output(tmp_path / "b", WORLD, {"server/m": grades}, shift=7)
    (row,) = compare_dates(DriftPlan(before=first, after=second, margin=0.5)).rows
    assert (row.n, row.only_before, row.only_after, row.word) == (60, 0, 0, "STEADY")
    # By id alone, another response would have stood beside each.
    (second.parent / "pool.jsonl").unlink()
    with pytest.raises(InputError, match="no response that server/m graded at both dates"):
        compare_dates(DriftPlan(before=first, after=second))


def test_what_else_changed_is_said(tmp_path: Path) -> None:
    def written(name: str, judge: str, model: str, digest: str) -> Path:
        write_pool(tmp_path / name, pool(WORLD))
        made = [judgment(one.turn_id, one.response_id, one.deserved, judge, digest=digest) for one in WORLD]
        lines = jsonl(made).replace(b'"m-2026"', json.dumps(model).encode())
        (tmp_path / name / "judgments.jsonl").write_bytes(lines)
        return tmp_path / name / "judgments.jsonl"

    first = written("a", "server/m", "m-2026", "a" * 64)
    second = written("b", "server/n", "m-2027", "b" * 64)
    assert compare_dates(DriftPlan(before=first, after=second)).warnings == (
        "server/m and server/n are compared: two names, so perhaps two judges",
        "server/n under groundedness/graded: the prompt has changed between the dates",
        "server/n under groundedness/graded: the provider named other models: m-2026 and m-2027",
    )


def test_each_judge_meets_itself_and_one_alone_is_named(tmp_path: Path) -> None:
    a, b = labeled(WORLD, 0.1, 1), labeled(WORLD, 0.8, 2)
    first = write_output(tmp_path / "a", WORLD, {"server/a": a, "server/b": b})
    second = write_output(tmp_path / "b", WORLD, {"server/a": b, "server/b": b, "server/c": a})
    found = compare_dates(DriftPlan(before=first, after=second, margin=0.5))
    assert [(row.before, row.after) for row in found.rows] == [("server/a", "server/a"), ("server/b", "server/b")]
    assert found.rows[1].word == "STEADY"
    assert found.warnings == (f"{second}: server/c under groundedness/graded is in this file only",)


def test_failures_beside_the_judgments_are_lost_grades(tmp_path: Path) -> None:
    grades = labeled(WORLD, 0.3, 1)
    first = write_output(tmp_path / "a", WORLD, {"server/m": grades})
    second = write_output(tmp_path / "b", WORLD[1:], {"server/m": grades})
    write_pool(tmp_path / "b", pool(WORLD))
    (tmp_path / "b" / "failures.jsonl").write_bytes(jsonl([failure(WORLD[0].turn_id, "R00001", "refused")]))
    (row,) = compare_dates(DriftPlan(before=first, after=second)).rows
    assert (row.n, row.lost, row.only_before) == (59, 1, 0)


@pytest.mark.parametrize("margin", [0.0, -1.0, float("nan")])
def test_a_margin_is_above_0(tmp_path: Path, margin: float) -> None:
    with pytest.raises(UsageError, match="margin: expected a "):
        compare_dates(DriftPlan(before=tmp_path, after=tmp_path, margin=margin))


def test_two_judgments_of_a_response_are_refused(tmp_path: Path) -> None:
    path = write_output(tmp_path / "a", WORLD, {"server/m": labeled(WORLD, 0.3, 1)})
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(InputError, match="two judgments of 'R00001' by server/m under groundedness/graded"):
        compare_dates(DriftPlan(before=path, after=path))


def test_the_command_prints_and_exits_1_unless_all_is_steady(tmp_path, capsys) -> None:
    first, same, other = (
        write_output(tmp_path / name, WORLD, {"server/m": labeled(WORLD, noise, 1)})
        for name, noise in (("a", 0.2), ("b", 0.2), ("c", 0.9))
    )
    # Of 12 topics without a change, a fifth may have one: within half a grade, but not within a tenth.
    assert main(["drift", str(first), str(same)]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["server/m", "groundedness/graded", "INCONCLUSIVE"]
    assert main(["drift", str(first), str(same), "--margin", "0.5"]) == 0
    head, line, *left_out = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["judge", "prompt", "verdict"]
    assert line.split()[:3] == ["server/m", "groundedness/graded", "STEADY"]
    assert " ".join(" ".join(left_out).split()).endswith(", gained (wider terminal or --json)")
    assert main(["drift", str(first), str(other), "--margin", "0.05", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["word"] != "STEADY"
    assert row["unchanged"]["value"] < 1


def test_columns_are_compared_on_their_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, grade in (("2025.txt", 1), ("2026.txt", 1), ("odd.txt", 7)):
        lines = (f"{one.turn_id} 0 {one.response_id} {grade}\n" for one in WORLD)
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    arguments = [str(tmp_path / name) for name in ("2025.txt", "2026.txt", "odd.txt")]
    assert main(["drift", *arguments[:2], "--scale", "0-3", "--margin", "0.2"]) == 0
    assert main(["drift", arguments[0], arguments[2], "--scale", "0-3"]) == 2
    assert "off_scale" in capsys.readouterr().err
