"""Pairs: drawn from a pool of responses, judged in both orders, and what runs are rated by."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import judge
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.gold.rows import response_digest
from judge.jobs.gold import GoldDrawPlan, draw_gold_plan
from judge.jobs.judged import read_judged
from judge.jobs.pooling import PoolPlan, pool_runs
from judge.jobs.run import Outcome
from judge.pool.bank import read_pool_folder
from judge.pool.pairs import design, equal_responses, one_each
from judge.results.citations import boards_of
from judge.results.corrected import corrected
from judge.results.gold import GoldGrade, measured_gold
from judge.results.pairs import Duel, agreed, at_fault, win_rate
from judge.results.rows import Score
from judge.results.turns import run_turns
from tests.conftest import refused

QUALITY = {"a": 3, "b": 2, "c": 1, "d": 0}


def runs(folder: Path, topics: int = 9, quality: dict[str, int] = QUALITY, same: int = 0) -> dict[str, Any]:
    """The options that name runs whose answers hold their quality; in the first `same` topics a and b answer alike."""
    folder.mkdir(parents=True)
    for run_id, of in quality.items():
        lines = [
            {"run_id": run_id, "topic_id": str(topic), "references": [],
             "answer": [{"text": f"Fine {2 if topic <= same and run_id in 'ab' else of}. </first_response>"}]}
            for topic in range(1, topics + 1)
            if (run_id, topic) != ("d", 9)
        ]  # fmt: skip
        (folder / f"{run_id}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (folder.parent / "topics.tsv").write_text("".join(f"{topic}\tWhy {topic}?\n" for topic in range(1, topics + 1)))
    return {"runs": (folder,), "topics": folder.parent / "topics.tsv", "profile": "rag"}


def answers(folder: Path, qualities: dict[str, list[int]]) -> dict[str, Any]:
    """The options that name runs whose answers hold the quality of each topic."""
    folder.mkdir(parents=True)
    for run_id, of in qualities.items():
        lines = [
            {"run_id": run_id, "topic_id": str(topic), "references": [],
             "answer": [{"text": f"Fine {each}. </first_response>"}]}
            for topic, each in enumerate(of, 1)
        ]  # fmt: skip
        (folder / f"{run_id}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    topics = range(1, 1 + max(map(len, qualities.values())))
    (folder.parent / "topics.tsv").write_text("".join(f"{topic}\tWhy {topic}?\n" for topic in topics))
    return {"runs": (folder,), "topics": folder.parent / "topics.tsv", "profile": "rag"}


Verdict = Callable[[int, int, str], str]
"""From the qualities of the first and the second response and the question to the label."""


def better(first: int, second: int, question: str) -> str:
    return "first" if first > second else "second"


def judged(tmp_path: Path, verdict: Verdict = better, name: str = "out", **options: Any) -> Outcome:
    def label(messages: Any) -> str:
        shown = messages[1]["content"]
        first, second = map(int, re.findall(r"Fine (\d)", shown))
        return f"Grade: {verdict(first, second, shown)}"

    given = options.pop("given", None) or runs(tmp_path / "runs", **options.pop("world", {}))
    model = judge.FunctionJudge("label/v1", label)
    return judge.run(judge.Plan(**given, criteria=("preference",), model=(model,), out=tmp_path / name, **options))


def rows(outcome: Outcome) -> dict[str, Score]:
    return {row.run_id: row for row in outcome.tables.ratings}


def upsets(first: int, second: int, question: str) -> str:
    """In topic 1 the worse one wins, in topic 2 all tie, in topic 3 the first one always wins, in topic 4 no grade."""
    topic = int(re.findall(r"Why (\d)", question)[0])
    if topic == 4 and first == 3:
        return "I cannot say"
    return [better(second, first, ""), "tie", "first", better(first, second, "")][min(topic, 4) - 1]


@pytest.mark.parametrize(("number", "topics"), [(2, 3), (5, 1), (6, 4), (7, 6), (20, 10)])
def test_a_draw_is_balanced_at_any_size_and_begins_with_a_smaller_one(number, topics) -> None:
    run_ids, turns = [f"r{place}" for place in range(number)], [f"{place}_1" for place in range(topics)]
    every = list(design(run_ids, turns, 1))
    assert len(every) == len(set(every)) == number * (number - 1) // 2 * topics
    for size in range(1, len(every) + 1, 7):
        for of, count in (
            (run_ids, Counter(run_id for a, b, _ in every[:size] for run_id in (a, b))),
            (turns, Counter(turn_id for *_, turn_id in every[:size])),
        ):
            assert max(count.values()) - min(count[name] for name in of) <= 2
        assert max(Counter((a, b) for a, b, _ in every[:size]).values()) == -(-size // (number * (number - 1) // 2))
    assert list(design(run_ids, turns, 2)) != every or len(every) < 4


def test_both_orders_of_a_pair_are_pooled_and_equal_responses_are_not(tmp_path: Path) -> None:
    given = runs(tmp_path / "runs", 2, same=1)
    pool = pool_runs(PoolPlan(**given, unit="pair")).pool
    found = [(item.turn_id, item.text[5], item.second[5]) for item in pool.responses]
    # In topic 1 a and b are one response, so 3 of 6 pairs are left.
    assert Counter(turn_id for turn_id, *_ in found) == {"1_1": 6, "2_1": 12}
    assert {(turn_id, second, first) for turn_id, first, second in found} == set(found)
    item = next(item for item in pool.responses if (item.turn_id, item.text[5], item.second[5]) == ("1_1", "2", "0"))
    assert [(entry.run_id, entry.rank) for entry in item.runs] == [("a", 1), ("b", 1), ("d", 2)]
    assert item.shown == "First:\n  Fine 2. </first_response>\n\nSecond:\n  Fine 0. </first_response>"
    assert len({response_digest(item) for item in pool.responses}) == len(
        {(first, second) for _, first, second in found}
    )
    part = pool_runs(PoolPlan(**given, unit="pair", draw="7@3"))
    left = {(row.run_id, row.turn_id) for row in part.pool.exclusions if row.reason == "not_drawn"}
    held = {(entry.run_id, item.turn_id) for item in part.pool.responses for entry in item.runs}
    assert (len(part.pool.responses), part.configured["pooling"]["draw"]) == (6, "7@3")
    assert left | held == {(run_id, f"{topic}_1") for run_id in QUALITY for topic in (1, 2)} and not left & held


def unsure(first: int, second: int, question: str) -> str:
    """a and b win as often, and so do c and d; in an eighth of the topics the worse of the others wins."""
    topic = int(re.findall(r"Why (\d+)", question)[0])
    upset = topic % 2 if {first, second} in ({3, 2}, {1, 0}) else topic % 8 == 0
    return better(second, first, "") if upset else better(first, second, "")


def test_more_pairs_are_drawn_of_runs_that_are_not_told_apart(tmp_path: Path) -> None:
    given = runs(tmp_path / "runs", 32)
    first = judged(tmp_path, unsure, given=given, draw="240@3")
    assert [row.place.letters for row in first.tables.ratings] == ["a", "a", "b", "b"]
    assert "runs were rated" not in first.tables.advantages["preference"]
    before = [(item.response_id, item.turn_id, item.text, item.second) for item in first.pool.responses]
    plans = ({"name": "more"}, {"name": "more", "extend": tmp_path / "more"}, {"extend": tmp_path / "out"})
    for place, options in enumerate(plans):
        asked: list[str] = []
        verdict = lambda *shown, asked=asked: asked.append(shown[2]) or unsure(*shown)  # noqa: E731
        found = judged(tmp_path, verdict, given=given, draw="270@3", **{"extend": tmp_path / "out"} | options)
        held = [(item.response_id, item.turn_id, item.text, item.second) for item in found.pool.responses]
        assert held[: len(before)] == before and len({response_id for response_id, *_ in held}) == len(held) == 270
        assert {text[5] + second[5] for *_, text, second in held[len(before) :]} == {"32", "23", "10", "01"}
        manifest = json.loads((tmp_path / ("out" if place == 2 else "more") / "manifest.json").read_text())
        assert manifest["configuration"]["pooling"]["draw"] == "240@3, 270@3"
        said = "runs were rated 2 times, and each time but the last the ratings decided which pairs were drawn next"
        assert said in found.tables.advantages["preference"] and "up to 2 times as often" in str(found.tables)
        folder = tmp_path / ("out" if place == 2 else "more")
        assert read_judged(folder).tables.ratings == found.tables.ratings
        assert "\truns rated 2 times\n" in (folder / "ratings.tsv").read_text()
        assert len(asked) == (30, 0, 30)[place]
    (tmp_path / "runs" / "e.jsonl").write_text((tmp_path / "runs" / "d.jsonl").read_text().replace('"d"', '"e"'))
    with pytest.raises(UsageError, match="adds pairs of the same runs"):
        judged(tmp_path, unsure, given=given, extend=tmp_path / "out", draw="400")
    with (tmp_path / "more" / "ratings.tsv").open("a+") as file:
        file.write(file.seek(0) or file.readlines()[1])
    with pytest.raises(InputError, match="not usable as ratings"):
        judged(tmp_path, unsure, given=given, extend=tmp_path / "more")


def test_a_draw_before_anybody_rated_runs_is_no_look(tmp_path: Path) -> None:
    given = runs(tmp_path / "runs", 32)
    options = ["--runs", str(given["runs"][0]), "--topics", str(given["topics"]), "--profile", "rag", "--unit", "pair"]
    assert main(["pool", *options, "--draw", "20", "-o", str(tmp_path / "out")]) == 0
    assert main(["pool", *options, "--draw", "60", "--extend", str(tmp_path / "out")]) == 0
    steps = [
        ("100", "20@1 + 60@1 + 100@1", 1),
        ("120", "20@1 + 60@1 + 100@1, 120@1", 2),
        (None, "20@1 + 60@1 + 100@1, 120@1, all", 3),
    ]
    for draw, recorded, looks in steps:
        found = judged(tmp_path, unsure, given=given, draw=draw, extend=tmp_path / "out")
        manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
        assert manifest["configuration"]["pooling"]["draw"] == recorded
        assert {row.more["looks"] for row in found.tables.ratings} == {looks}
        assert (f"rated {looks} times" in found.tables.advantages["preference"]) is (looks > 1)


def test_a_verdict_that_changes_with_the_order_is_missing_and_no_tie(tmp_path: Path) -> None:
    found = rows(judged(tmp_path, upsets))
    # a: 3 pairs in each of 8 topics, 2 in the ninth, which d did not answer.
    row = found["a"]
    assert (
        row.counts["won"],
        row.counts["tied"],
        row.counts["lost"],
        row.counts["flipped"],
        row.counts["missing"],
    ) == (3 * 4 + 2, 3, 3, 3, 3)
    assert win_rate(row) == (14 + 3 / 2) / 20
    assert [*found] == ["a", "b", "c", "d"]
    assert row.mean.topics == 7
    lines = (tmp_path / "out" / "pairs.tsv").read_text().splitlines()
    assert lines[:2] == [
        "criterion\trun_a\trun_b\twon\ttied\tlost\tflipped\tmissing",
        "preference\ta\tb\t5\t1\t1\t1\t1",
    ]
    board = (tmp_path / "out" / "leaderboard.md").read_text()
    assert "## preference: ratings" in board and "6 of 48 pairs flipped" in board


def test_who_won_or_lost_all_has_no_rating_and_stands_at_its_end(tmp_path: Path) -> None:
    def but_for_a(first: int, second: int, shown: str) -> str:
        return better(first, second, shown) if 3 in (first, second) else upsets(first, second, shown)

    found = [(row.run_id, row.rank, row.mean.reason) for row in judged(tmp_path, but_for_a).tables.ratings]
    assert found[:2] == [("a", 1, "it won all comparisons with the rated runs"), ("b", 2, None)]


def test_too_few_topics_for_letters_are_named_with_what_they_count(tmp_path: Path) -> None:
    found = judged(tmp_path, upsets)
    # Of b in 9 topics: 3 decided pairs in six, 2 in the ninth, which d did not answer, and in topics 3 and 4
    # 0 and 2: (6 3 + 2 + 2)² / (6 3² + 2² + 2²).
    row = rows(found)["b"]
    assert (row.more["topics"], row.place.letters, row.place.low) == (pytest.approx(22**2 / 62), "", None)
    said = "that needs 8 topics of equal size; these count as 7.8"
    assert said in found.tables.advantages["preference"]
    assert said in (tmp_path / "out" / "ratings.tsv").read_text()


def test_win_rates_are_a_board_in_which_a_flipped_verdict_is_no_runs_doing(tmp_path: Path) -> None:
    board = {row.run_id: row for row in judged(tmp_path, upsets).leaderboard}
    a, d = board["a"], board["d"]
    assert a.criterion == "preference_win_rate"
    # Topics 3 and 4 have no verdict for a; of topic 9 it is 2 of 2.
    assert (a.mean.value, a.counts["n"], a.reasons) == ((0 + 0.5 + 5) / 7, 7, {"flipped": 1, "unreadable": 1})
    # In topic 4 the judge fails on each pair of a and on no other, so a loses it; in topic 3 no pair has a verdict.
    assert (a.bound, a.flags) == (pytest.approx((0 + 0.5 + 5 + 0) / 8), ("MISSING",))
    assert (d.counts["unanswered"], d.flags) == (1, ("MISSING",))
    assert d.bound is not None and d.mean.value is not None and d.bound < d.mean.value


def refusing(run: int, *topics: int) -> Verdict:
    """A judge that says nothing of pairs with a response of this quality in these topics."""

    def verdict(first: int, second: int, question: str) -> str:
        topic = int(re.findall(r"Why (\d+)", question)[0])
        if run in (first, second) and topic in topics:
            return "I cannot say"
        return upsets(first, second, question) if topic < 3 else better(first, second, question)

    return verdict


def test_a_run_of_which_no_pair_has_a_verdict_while_those_of_the_others_have_loses_the_turn(tmp_path: Path) -> None:
    found = judged(tmp_path, refusing(2, 5, 6, 7))
    board = {row.run_id: row for row in found.leaderboard}
    b = board["b"]
    # b loses to two, one and none in topics 1, 2 (all tie), 3 to 8: 1/3, 1/2, then 2/3 in 3, 4 and 8, 1/2 in 9.
    others = [1 / 3, 1 / 2, 2 / 3, 2 / 3, 2 / 3, 1 / 2]
    assert (b.counts["n"], b.mean.value) == (6, pytest.approx(sum(others) / 6))
    assert (b.bound, b.flags) == (pytest.approx(sum(others) / 9), ("MISSING",))
    # The runs that it met there have other pairs, and those count.
    assert (board["a"].counts["n"], board["a"].flags, board["a"].bound) == (9, (), board["a"].mean.value)
    assert rows(found)["b"].flags == ("MISSING",)
    assert found.tables.advantages


@pytest.mark.parametrize(
    ("lacking", "given", "faults"),
    [
        # One pair alone: the judge may have failed by chance.
        (["ab"], ["bc"], ""),
        (["ab", "ac"], ["bc"], "a"),
        # Of c nothing is known either.
        (["ab", "ac"], ["bd"], ""),
        # One response of two runs is one pair.
        (["a bc"], ["bc d"], ""),
        # Two runs with such responses do not cover for each other.
        (["ab", "ac", "bc", "bd", "cd"], ["ad"], "bc"),
        # a has a verdict against d.
        (["ab", "ac"], ["bc", "ad"], ""),
    ],
)
def test_a_response_is_at_fault_where_two_pairs_lack_a_verdict_that_others_have(
    lacking: list[str], given: list[str], faults: str
) -> None:
    def duel(pair: str, outcome: object) -> Duel:
        one, other = pair.split() if " " in pair else pair
        return "1_1", (tuple(one), tuple(other)), (None, None), outcome

    compared = [*(duel(pair, "unreadable") for pair in lacking), *(duel(pair, 1.0) for pair in given)]
    assert at_fault(compared, lambda outcome, turn_id: True) == {(run_id, "1_1") for run_id in faults}
    assert at_fault(compared, lambda outcome, turn_id: False) == set()


def test_a_judge_that_fails_by_chance_charges_no_run_with_few_pairs(tmp_path: Path) -> None:
    """Of 8 runs in 10 topics 40 pairs are drawn, one a run and topic, and every fourth has no verdict."""
    qualities = {run_id: [place] * 10 for place, run_id in enumerate("abcdefgh")}

    def often(first: int, second: int, question: str) -> str:
        topic = int(re.findall(r"Why (\d+)", question)[0])
        if Random(f"{topic}{min(first, second)}{max(first, second)}").random() < 0.25:
            return "I cannot say"
        return better(first, second, question)

    found = judged(tmp_path, often, given=answers(tmp_path / "runs", qualities), draw=80).leaderboard
    assert sum(row.reasons.get("unreadable", 0) for row in found) > 8
    assert all(row.bound == pytest.approx(row.mean.value) for row in found)
    assert not any("MISSING" in row.flags for row in found)


def test_of_two_runs_that_met_no_other_neither_is_at_fault(tmp_path: Path) -> None:
    given = runs(tmp_path / "runs", quality={"a": 3, "b": 2})
    board = judged(tmp_path, refusing(2, 5), given=given).leaderboard
    assert [(row.counts["n"], row.flags, row.bound == row.mean.value) for row in board] == [(8, (), True)] * 2


def test_a_run_whose_other_pair_only_flipped_is_not_at_fault(tmp_path: Path) -> None:
    def verdict(first: int, second: int, question: str) -> str:
        if "Why 5?" not in question or 2 not in (first, second):
            return better(first, second, question)
        return "first" if 1 in (first, second) else "I cannot say"

    board = {row.run_id: row for row in judged(tmp_path, verdict).leaderboard}
    assert (board["b"].counts["n"], board["b"].flags, board["b"].bound) == (8, (), board["b"].mean.value)


def test_equal_responses_tie_and_nobody_is_asked(tmp_path: Path) -> None:
    asked: list[str] = []
    given = runs(tmp_path / "runs", quality={"a": 3, "b": 2}, same=2)
    found = judged(tmp_path, lambda *shown: asked.append(shown[2]) or better(*shown), given=given)
    # Of 9 topics two are ties, and a wins the others.
    assert len(asked) == 2 * 7
    assert [(row.mean.value, row.counts["n"], row.counts["not_asked"], row.flags) for row in found.leaderboard] == [
        ((7 + 2 / 2) / 9, 9, 0, ()),
        ((2 / 2) / 9, 9, 0, ()),
    ]
    assert [(row.counts["won"], row.counts["tied"], row.counts["lost"]) for row in found.tables.ratings] == [
        (7, 2, 0),
        (0, 2, 7),
    ]
    excluded = (tmp_path / "out" / "excluded.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[3] for line in excluded] == ["equal_responses"] * 4
    assert "7 pairs flipped" in found.tables.advantages["preference"]


def test_equal_responses_tie_for_people_too(tmp_path: Path) -> None:
    found = judged(tmp_path, given=runs(tmp_path / "runs", quality={"a": 3, "b": 2}, same=2))
    (measure,) = boards_of(found.criteria)
    # People prefer b, which the judge never does, in each of the 7 pairs that it was asked about.
    gold = {
        pair.response_id: GoldGrade(2.0 * (pair.text[5] == "2"), 1.0, "certain", ())
        for pair in one_each(found.pool, 1).responses
    }
    turns = run_turns(found.pool, found.results, measure)
    verdicts = agreed(found.pool, found.results, measure.of)
    rows = corrected(turns, measure, measured_gold(measure, found.pool, turns, gold, verdicts))
    assert {row.run_id: (row.raw.mean.value, row.mean.value, row.counts["gold"]) for row in rows} == {
        "b": ((0 + 2 / 2) / 9, pytest.approx((7 + 2 / 2) / 9), 7),
        "a": ((7 + 2 / 2) / 9, pytest.approx((0 + 2 / 2) / 9), 7),
    }


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_ties_are_no_gold_of_a_run_that_nobody_labeled(tmp_path: Path, p: float) -> None:
    """In 4 of 12 topics all tie; people saw a sample of the pairs of a and b, or all of their own."""
    quality = {"a": 0, "b": 1, "c": 2}
    lines = {name: [2 if topic <= 4 else quality[name] for topic in range(1, 13)] for name in quality}
    found = judged(tmp_path, given=answers(tmp_path / "runs", lines))
    (measure,) = boards_of(found.criteria)
    of_both = [item for item in one_each(found.pool, 1).responses if {entry.run_id for entry in item.runs} == {*"ab"}]
    gold = {
        item.response_id: GoldGrade(2.0 * (item.text[5] == "1"), p, "s", ()) for item in of_both[: 2 if p < 1 else None]
    }
    turns = run_turns(found.pool, found.results, measure)
    matched = measured_gold(measure, found.pool, turns, gold, agreed(found.pool, found.results, measure.of))
    rows = {row.run_id: row for row in corrected(turns, measure, matched)}
    if p == 1:
        # Of the pairs with c nobody said anything, so each turn is a's pair with b, or a tie.
        assert [(rows[name].counts["gold"], rows[name].mean.value) for name in "ab"] == [
            (8, (4 / 2 + 0) / 12),
            (8, pytest.approx((4 / 2 + 8) / 12)),
        ]
        assert (rows["c"].counts["gold"], rows["c"].mean.value, rows["c"].flags) == (0, None, ("UNCORRECTED",))
        return
    # Two labels are too few for a and b, as four ties would not be.
    assert {name: (row.counts["gold"], row.mean.value, row.flags) for name, row in rows.items()} == {
        "a": (2, None, ("UNCORRECTED",)),
        "b": (2, None, ("UNCORRECTED",)),
        "c": (0, None, ("UNCORRECTED",)),
    }
    assert {name: row.mean.topics for name, row in rows.items()} == {"a": 2, "b": 2, "c": 0}


def test_equal_responses_tie_only_where_the_draw_comes_to_them(tmp_path: Path) -> None:
    given = runs(tmp_path / "runs", 8, quality={"a": 3, "b": 2}, same=4)
    turns = [turn_id for _, _, turn_id in design("ab", [f"{topic}_1" for topic in range(1, 9)], 1)]
    pools = [pool_runs(PoolPlan(**given, unit="pair", draw=draw)).pool for draw in (2, 8)]
    for pool, drawn in zip(pools, (1, 4), strict=True):
        unlike = [turn_id for turn_id in turns if int(turn_id[0]) > 4]
        # The draw ends where one pair more would be too many.
        reached = turns[: turns.index(unlike[drawn])] if drawn < 4 else turns
        tied = {turn_id for turn_id in reached if int(turn_id[0]) <= 4}
        assert {row.turn_id for row in pool.exclusions if row.reason == "equal_responses"} == tied
        assert {row.turn_id for row in pool.exclusions if row.reason == "not_drawn"} == {
            *unlike[drawn:],
            *({"1_1", "2_1", "3_1", "4_1"} - tied),
        }


def test_ties_count_as_often_as_they_are_drawn(tmp_path: Path) -> None:
    """8 runs in 10 topics, of which all tie in two: 40 other pairs are drawn, and the ties before the last."""
    run_ids = "abcdefgh"
    qualities = {run_id: [4 if topic < 2 else place for topic in range(10)] for place, run_id in enumerate(run_ids)}
    given = answers(tmp_path / "runs", qualities)
    ties: dict[int, set[tuple[str, str, str]]] = {80: set(), 160: set()}
    for draw, found in ties.items():
        unlike = 0
        for a, b, turn_id in design(run_ids, [f"{topic}_1" for topic in range(1, 11)], 1):
            if turn_id in ("1_1", "2_1"):
                found.add((turn_id, a, b))
                continue
            unlike += 1
            if unlike > draw / 2:
                break
    first = judged(tmp_path, given=given, draw=80)
    # A fifth of all topics, so about a fifth of all pairs: not 2 * 8 * 7 / 2.
    assert 8 <= len(ties[80]) <= 12
    assert {*equal_responses(first.pool)} == {*equal_responses(read_judged(tmp_path / "out").pool)} == ties[80]
    assert sum(row.counts["tied"] for row in first.tables.ratings) == 2 * len(ties[80])
    met = {(run_id, turn_id) for turn_id, *both in ties[80] for run_id in both}
    drawn_ties = {(row.run_id, row.turn_id) for row in first.pool.exclusions if row.reason == "equal_responses"}
    others = {(row.run_id, row.turn_id) for row in first.pool.exclusions if row.reason == "not_drawn"}
    assert drawn_ties == met and not met & others
    more = pool_runs(PoolPlan(**given, unit="pair", draw=160, extend=tmp_path / "out")).pool
    assert {*equal_responses(more)} >= ties[80] and len(equal_responses(more)) > len(ties[80])


def test_a_larger_draw_asks_only_about_what_is_new_and_a_rerun_gives_the_same_bytes(tmp_path: Path) -> None:
    given, asked = runs(tmp_path / "runs"), Counter[str]()

    def counted(first: int, second: int, question: str) -> str:
        asked[question] += 1
        return better(first, second, question)

    judged(tmp_path, counted, given=given, draw=20)
    judged(tmp_path, counted, given=given, draw=40, replace=True)
    stored = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*") if path.suffix != ".sqlite"}
    judged(tmp_path, counted, given=given, draw=40)
    assert max(asked.values()) == 1 and asked.total() == len(asked) == 40
    assert {path: path.read_bytes() for path in stored} == stored
    read = read_judged(tmp_path / "out")
    assert read.tables.ratings == read_judged(tmp_path / "out").tables.ratings
    assert read_pool_folder(tmp_path / "out", "excluded.tsv").unit == "pair"


def test_a_verdict_counts_once_in_the_share_of_the_first_place(tmp_path: Path) -> None:
    def first_against_c(first: int, second: int, question: str) -> str:
        return "first" if {first, second} == {1, 2} else better(first, second, question)

    # a and b answer alike: 9 pairs with c, of which both orders prefer the first, and 16 with d, of which one does.
    said = judged(tmp_path, first_against_c, world={"same": 9}).tables.advantages["preference"]
    assert (
        f"{100 * (18 + 16) / (18 + 32):.0f} % prefer the one that is shown first" in said
        and "9 of 25 pairs flipped" in said
    )


def test_a_trial_asks_about_both_orders(tmp_path: Path) -> None:
    found = rows(judged(tmp_path, given=runs(tmp_path / "runs"), limit=15))
    assert sum(row.counts["won"] + row.counts["lost"] for row in found.values()) == 2 * 7
    bank = json.loads((tmp_path / "out" / "bank.json").read_text())
    assert all(len(re.findall("Fine", text)) == 2 for text in bank.values())
    assert "any other without a verdict counts as the rest do" in (tmp_path / "out" / "leaderboard.md").read_text()


@pytest.mark.parametrize("options", [{"draw": 1}, {"world": {"quality": {"a": 1}}}])
def test_no_pair_is_said_in_words_of_pairs(tmp_path: Path, options) -> None:
    with pytest.raises(InputError, match=r"no turn has two different responses \(equal ones tie\), or --draw is less"):
        judged(tmp_path, **options)


def test_where_all_answers_are_equal_nothing_is_called_a_trial(tmp_path: Path) -> None:
    def longer(messages: Any) -> str:
        short_first = re.search("short\n.*</first", messages[1]["content"])
        return f"Grade: {'second' if short_first else 'first'}"

    def said(folder: Path, equal: int) -> judge.Outcome:
        rows = []
        for k in range(12):
            for system, name in (("a", "short"), ("b", "longer")):
                answer = f"It is {'' if k < equal else name}"
                rows.append({"id": f"q{k}", "system": system, "question": f"What of {k}?", "answer": answer})
        model = judge.FunctionJudge("longer/v1", longer)
        return judge.run(judge.Plan(runs=rows, criteria=("preference",), model=model, out=folder))

    with pytest.raises(InputError, match=r"no turn has two different responses \(equal ones tie\)"):
        said(tmp_path / "all", 12)
    assert not (tmp_path / "all").exists()
    # Two of twelve are equal: ties that nobody was asked about, and the run is complete.
    outcome = said(tmp_path / "two", 2)
    rows = {row.run_id: row for row in outcome.leaderboard}
    assert {name: (row.mean.value, row.counts["not_asked"], row.flags) for name, row in rows.items()} == {
        "a": (pytest.approx(1 / 12), 0, ()),
        "b": (pytest.approx(11 / 12), 0, ()),
    }


def test_a_judge_sees_both_responses_and_no_run(tmp_path: Path) -> None:
    shown: list[str] = []
    judged(tmp_path, lambda *given: shown.append(given[2]) or "tie", world={"topics": 1})
    assert all(
        re.search(r"<first_response>\nFine \d. ‹/first_response>\n</first_response>\n<second_response>\nFine", text)
        for text in shown
    )
    assert not any(run_id in text for text in shown for run_id in ("run_id", "R0000"))
    assert {row.mean.reason for row in read_judged(tmp_path / "out").tables.ratings} == {"all comparisons are ties"}


def test_what_does_not_go_with_pairs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = runs(tmp_path / "runs", 1)
    with pytest.raises(UsageError, match=r"--depth: .*about more responses"):
        judge.Plan(**given, unit="pair", depth=2)
    assert main(["evaluate", "responses", str(judged(tmp_path, given=given).out)]) == 2
    assert "a pool of pairs has no grades of responses" in capsys.readouterr().err
    assert main(["plan", str(tmp_path / "out")]) == 2
    assert "a pool of pairs: who wins how often depends on who is compared" in capsys.readouterr().err
    lines = (tmp_path / "out" / "pool.jsonl").read_text().splitlines()
    for wrong, message in (
        ([*lines, lines[0].replace("R00000", "R00099")], "has the turn, the text and the passages of R00000"),
        (lines[1:], "in the other order"),
    ):
        (tmp_path / "out" / "pool.jsonl").write_text("\n".join(wrong) + "\n")
        assert message in refused(read_pool_folder, tmp_path / "out")[0].message


def test_the_terminal_and_the_report_show_ratings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = judged(tmp_path, upsets).out
    assert main(["leaderboard", str(out)]) == 0
    board = (out / "leaderboard.md").read_text()
    for shown in (capsys.readouterr().out, board):
        assert "w-t-l" in shown and shown.index("preference: ratings") < shown.index("preference_win_rate")
    assert re.search(r"\| d \|.* MISSING \|", board)
    assert main(["report", str(out), "-o", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "report.md").read_text()
    assert "## Ratings: preference" in page and "flipped with the order" in page


def test_a_plan_draws_single_pairs_by_the_verdict_of_both_orders(tmp_path: Path) -> None:
    pool = {pair.response_id: pair for pair in judged(tmp_path, upsets).pool.responses}
    options = {"judgments": (tmp_path / "out",), "stratify": "judge", "per_run": 4, "out": tmp_path / "plan.jsonl"}
    rows = draw_gold_plan(GoldDrawPlan(pool=tmp_path / "out", n=32, seed=3, **options)).rows
    assert len(rows) in (32, 33) and len({row.turn_id for row in rows}) == 9
    for row in rows:
        first, second = (int(text[5]) for text in (pool[row.response_id].text, pool[row.response_id].second))
        none = row.topic_id == "3" or (row.topic_id == "4" and 3 in (first, second))
        of_first = 1 if row.topic_id == "2" else 2 * ((first > second) is (row.topic_id != "1"))
        assert row.stratum == ("grade none" if none else f"grade {of_first}")


def test_ratings_are_a_board_beside_mean_grades(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = runs(tmp_path / "runs")
    judged(tmp_path, upsets, name="pairs", given=given)

    def grade(messages: Any) -> str:
        # Of the mean grades a and b change places.
        return f"Grade: {[0, 1, 3, 2][int(re.findall(r'Fine ([0-9])', messages[1]['content'])[-1])]}"

    model = judge.FunctionJudge("grade/v1", grade)
    judge.run(judge.Plan(**given, criteria=("naturalness",), model=(model,), out=tmp_path / "out"))
    page = (Path(__file__).parents[2] / "docs" / "leaderboard.md").read_text("utf-8")
    (shell, told), = re.findall(r"^(awk .*)\njudge (evaluate .*)$", page, re.MULTILINE)  # fmt: skip
    subprocess.run(shell, shell=True, check=True, cwd=tmp_path)
    assert main([str(tmp_path / part) if part in {"out", "ratings"} else part for part in told.split()]) == 0
    # Of 6 pairs of runs one is ordered the other way round.
    assert f"grade@1: tau-b {(5 - 1) / 6:.3f} over 4 runs" in capsys.readouterr().err


def test_commands_count_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(judged(tmp_path, given=runs(tmp_path / "runs", 2)).out.parent)
    for command, said in (
        ("pool --runs runs --profile rag --unit pair -o again", "pooled 12 distinct pairs in both orders of 4 runs"),
        ("run --runs runs --profile rag --topics topics.tsv --criteria preference --dry-run", "12 pairs × 2 orders"),
        ("gold plan --pool out --n 6 --seed 1 --per-run 1 --criteria preference -o plan.jsonl", "6 of 12 pairs"),
        ("gold sheet plan.jsonl --pool out --topics topics.tsv --to csv --assessor x -o sheets", "6 pairs, 6 labels"),
    ):
        assert main(command.split()) == 0 and said in "".join(capsys.readouterr())
