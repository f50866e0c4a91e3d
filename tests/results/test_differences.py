from typing import Literal, get_args

import msgspec
import pytest

from judge.ask.records import Failure, Judgment
from judge.cli.tables import print_leaderboard
from judge.io.table import Table, records_tsv
from judge.pool.records import Pool, PooledRun
from judge.records import Estimate, FailureReason
from judge.results.leaderboard import leaderboard, leaderboard_markdown
from judge.results.rows import RunDifference
from judge.results.tables import COLUMNS, is_apart, result_tables, tie_letters, told_apart
from tests.results.test_leaderboard import criterion, failure, judgment, pooled


def made(
    topics: int, *, brings_texts: bool = False, **runs: list[int | str | None]
) -> tuple[Pool, list[Judgment | Failure]]:
    """Runs with a turn in each topic: a grade, the reason of a failure, or None where nobody asked.

    "silent" is a turn without a response, "cites nothing" a failure for want of a passage that the response names;
    where another text is missing, the response names one.
    """
    responses, results = [], []
    for run_id, grades in runs.items():
        for topic, grade in zip(range(topics), grades, strict=True):
            if grade == "silent":
                continue
            response = pooled(f"R{len(responses):03}", f"{topic}_1", (run_id, 1))
            if grade == "cites nothing":
                grade = "no_passages"
            elif grade == "no_passages":
                response = msgspec.structs.replace(response, passages=("absent",))
            responses.append(response)
            if grade == "unable":
                results.append(judgment(response, -1, unable=True))
            elif isinstance(grade, str):
                results.append(failure(response, reason=grade))
            elif grade is not None:
                results.append(judgment(response, grade))
    turns = tuple(f"{topic}_1" for topic in range(topics))
    pooled_runs = (
        PooledRun(run_id, None, None, "rag", "", True, turns, brings_texts=brings_texts) for run_id in sorted(runs)
    )
    return Pool(tuple(responses), {}, (), tuple(pooled_runs)), results


def compared(pool: Pool, results: list[Judgment | Failure], **options: str) -> Table[RunDifference]:
    return result_tables(pool, results, [criterion(**options)]).differences


def test_a_turn_without_a_grade_is_left_out_and_at_worst_it_counts_as_in_the_rank() -> None:
    (found,) = compared(*made(9, b=[2] * 9, a=[3, *["refused"] * 6, None, "budget"]))
    assert (found.run_a, found.run_b, found.difference.n, found.difference.value) == ("a", "b", 1, 3 - 2)
    # At worst, seven turns count for both: 3 - 2 and six times 0 - 2.
    assert found.at_worst.difference.n == 7
    assert found.at_worst.difference.value == pytest.approx((1 - 6 * 2) / 7)
    (lower,) = compared(*made(9, b=[2] * 9, a=[3, *["refused"] * 8]), polarity="lower")
    assert lower.at_worst.difference.value == pytest.approx(1.0)
    (wide,) = compared(*made(9, a=[0] * 9, b=[3] * 8 + [2]))
    assert wide.difference.low == -3  # the length of the scale


@pytest.mark.parametrize(
    ("lack", "brings_texts", "own_doing"),
    [
        # What the run did.
        ("silent", False, True),
        ("cites nothing", False, True),
        ("no_passages", True, True),
        # What the organizer's file, the judge or its provider did, or may have done.
        ("no_passages", False, False),
        *(
            (reason, True, False)
            for reason in (*get_args(FailureReason), "unable")
            if reason not in ("no_passages", "flipped")
        ),
    ],
)
def test_only_what_a_run_did_itself_is_the_worst_grade_in_a_comparison(
    lack: str, brings_texts: bool, own_doing: bool
) -> None:
    """On 8 of 9 turns b is as good as a; the ninth, without a grade, is the worst: 2 - 0 on one of 9 turns."""
    (found,) = compared(*made(9, brings_texts=brings_texts, a=[2] * 9, b=[*[2] * 8, lack]))
    assert (found.difference.n, found.difference.value) == ((9, pytest.approx(2 / 9)) if own_doing else (8, 0.0))
    # Of a spent budget the rank knows nothing either.
    at_worst = (8, 0.0) if lack == "budget" else (9, pytest.approx(2 / 9))
    assert (found.at_worst.difference.n, found.at_worst.difference.value) == at_worst
    assert (found.if_worst is None) is (own_doing or lack == "budget")


MISSING = ["no_passages"] * 6
"""Of the 2^6 signs of 6 topics, two are as extreme as all plus: p = .031."""


@pytest.mark.parametrize(
    ("grades", "verdict", "apart"),
    [
        # Equal on the 8 turns with both grades; 6 · 3 / 14 apart at worst.
        ({"a": [3] * 14, "b": [*[3] * 8, *MISSING]},
            "Neither run is measurably better than the other on the turns graded for both; they can be told apart if "
            "each missing grade were the worst (p at most 0.05; differences.tsv).",
            False),
        # 3 on the 8 turns, and at worst on all 14.
        ({"a": [3] * 14, "b": [*[0] * 8, *MISSING]},
            "a is measurably better than b, both on the turns graded for both and if each missing grade were the worst "
            "(p at most 0.05;", True),
        # 1 on the 8 turns of both; at worst (8 · 1 - 6 · 2) / 14.
        ({"a": [*[3] * 8, *MISSING], "b": [2] * 14},
            "a is measurably better than b on the turns graded for both, but not if each missing grade were the worst "
            "(p at most 0.05;", False),
        # 1 on the 8 turns of both; at worst the other way round, (8 · 1 - 13 · 2) / 21.
        ({"a": [*[3] * 8, *["refused"] * 13], "b": [2] * 21},
            "a is measurably better than b on the turns graded for both, but not if each missing grade were the worst "
            "(p at most 0.05;", False),
        # Nothing either way.
        ({"a": [3] * 9, "b": [*[3] * 8, "refused"]},
            "Neither run is measurably better than the other, on the turns graded for both or if each missing grade "
            "were the worst (p above 0.05;", False),
        # Too few turns of both.
        ({"a": [3] * 14, "b": [*[3] * 7, *MISSING, "refused"]},
            "Neither run is measurably better than the other on the turns graded for both: that needs 8 topics in "
            "common; they can be told apart if each missing grade were the worst (p at most 0.05;", False),
    ],
)  # fmt: skip
def test_a_run_is_better_where_it_is_so_on_what_is_graded_and_if_the_rest_were_the_worst(
    grades: dict[str, list[int | str | None]], verdict: str, apart: bool
) -> None:
    pool, results = made(len(grades["a"]), **grades)
    rows = compared(pool, results)
    (said,) = told_apart(rows, [criterion()]).values()
    assert said.startswith(verdict)
    assert is_apart(rows[0]) is apart
    letters = tie_letters(["a", "b"], rows)
    assert letters == ({} if rows[0].p is None else {"a": "a", "b": "b"} if apart else {"a": "a", "b": "a"})
    of_dialogue = told_apart(rows, [msgspec.structs.replace(criterion(), unit="dialogue")])["groundedness"]
    assert of_dialogue == said.replace("turns graded for both", "topics graded for both")


@pytest.mark.parametrize(
    ("grades", "counts"),
    [
        # a has a grade in 3 of 20 topics. At worst it has 0 in the others, where b and c have 2 or 3.
        ({"a": [1] * 3 + ["refused"] * 17, "b": [2, 3] * 10, "c": [3, 2] * 10},
            "No run is measurably better than another on the turns graded for both: 0 of 3 pairs can be told apart "
            "there, 2 if each missing grade were the worst; 2 not tested there, with fewer than 8 topics in common (p"),
        # c is worse than b in every topic, and a was not asked about elsewhere.
        ({"a": [1] * 3 + [None] * 17, "b": [2] * 20, "c": [1] * 20},
            "b is measurably better than 1 of 2 other runs: 1 of 3 pairs can be told apart; 2 not tested, with fewer "
            "than 8 topics in common (p"),
        # The same with grades missing: c is worse either way, and so is a at worst.
        ({"a": [1] * 3 + ["refused"] * 17, "b": [3] * 20, "c": [2] * 20},
            "b is measurably better than 1 of 2 other runs: 1 of 3 pairs can be told apart either way, 1 on the turns "
            "graded for both and 3 if each missing grade were the worst; 2 not tested on the turns graded for both, "
            "with fewer than 8 topics in common (p"),
        ({"a": [1] * 20, "b": [2] * 20, "c": [1] * 20},
            "b is measurably better than both other runs: 2 of 3 pairs can be told apart (p"),
    ],
)  # fmt: skip
def test_pairs_that_were_not_tested_are_not_called_undecided(grades: dict[str, list[int | str | None]], counts: str):
    rows = compared(*made(20, **grades))
    (said,) = told_apart(rows, [criterion()]).values()
    assert said.startswith(counts)


def test_where_no_grade_is_missing_both_differences_are_one() -> None:
    (found,) = compared(*made(9, a=[2] * 9, b=[*[1] * 8, "silent"]))
    assert found.if_worst is None
    head, line = (row.split("\t") for row in records_tsv(COLUMNS, [found], 4).splitlines())
    cells = dict(zip(head, line, strict=True))
    names = ("difference", "p_adjusted", "turns")
    assert [cells[name] for name in names] == [cells[f"{name}_at_worst"] for name in names] == ["1.1111", "0.0039", "9"]


def test_runs_of_which_nothing_is_graded_are_compared_with_nobody() -> None:
    rows = compared(*made(9, a=["refused"] * 9, b=["refused"] * 9, c=[3] * 9))
    assert [(row.difference.value, row.difference.n, row.p) for row in rows] == [(None, 0, None)] * 3
    assert rows[1].at_worst.difference.value == -3
    rows = compared(*made(9, a=["refused"] * 9, b=["refused"] * 9))
    assert (rows[0].difference.value, rows[0].at_worst.difference.value) == (None, 0.0)


def test_every_pair_has_a_line_and_a_sentence_says_how_many_differ() -> None:
    pool, results = made(10, top=[3, 3, 3, 2, 3, 3, 3, 3, 3, 3], low=[0, 1, 0, 0, 0, 0, 1, 0, 0, 0], also=[0] * 9 + [1])
    rows = compared(pool, results)
    assert [(one.run_a, one.run_b) for one in rows] == [("also", "low"), ("also", "top"), ("low", "top")]
    # Ten topics that all go one way have p = 2/2^10; the largest of the two wide differences bounds both.
    assert rows[1].p == rows[2].p == rows[1].p_adjusted == rows[2].p_adjusted == 2 / 2**10
    assert rows[0].p_adjusted == rows[0].p > 0.5
    sentence = (
        "top is measurably better than both other runs: 2 of 3 pairs can be told apart (p at most 0.05, adjusted for "
        "all pairs; differences.tsv)."
    )
    few = [msgspec.structs.replace(row, difference=msgspec.structs.replace(row.difference, topics=24)) for row in rows]
    many = [msgspec.structs.replace(row, difference=msgspec.structs.replace(row.difference, topics=25)) for row in rows]
    assert told_apart(many, [criterion()]) == {"groundedness": sentence}
    sentence += " {} topics are few: a run that fails badly on one topic in ten may fail on none of them."
    assert told_apart(few, [criterion()]) == {"groundedness": sentence.format(24)}
    sentence = sentence.format(10)
    assert told_apart(rows, [criterion()]) == {"groundedness": sentence}
    board = leaderboard(pool, results, [criterion()])
    apart = told_apart(rows, [criterion()])
    assert f"\n**{sentence}**\n" in leaderboard_markdown(board, "banner", [criterion()], apart=apart)


LOW, HIGH = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1], [3, 3, 3, 3, 3, 3, 3, 3, 2, 2]


@pytest.mark.parametrize(
    ("grades", "polarity", "verdict"),
    [
        ({"a": LOW, "b": HIGH}, "higher", "b is measurably better than a (p at most 0.05; differences.tsv)."),
        ({"a": LOW, "b": HIGH}, "lower", "a is measurably better than b (p at most 0.05; differences.tsv)."),
        ({"a": LOW, "b": HIGH, "c": HIGH}, "higher",
            "b and c are each measurably better than 1 of 2 other runs: 2 of 3 pairs can be told apart (p at"),
        ({"a": LOW, "b": LOW}, "higher",
            "Neither run is measurably better than the other (p above 0.05; differences.tsv)."),
        ({"a*\n\x1b": HIGH, "b": LOW}, "higher",
            "a*\\n\\x1b is measurably better than b (p at most 0.05; differences.tsv)."),
    ],
)  # fmt: skip
def test_the_verdict_names_the_run_that_is_better_than_most(
    grades: dict[str, list[int]], polarity: Literal["higher", "lower"], verdict: str
) -> None:
    rows = compared(*made(10, **grades), polarity=polarity)
    (said,) = told_apart(rows, [criterion(polarity=polarity)]).values()
    assert said.startswith(verdict)


def test_on_few_topics_nothing_is_told_apart_and_every_format_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    pool, results = made(7, top=[3] * 7, low=[0] * 7)
    rows = compared(pool, results)
    assert (rows[0].p, rows[0].p_adjusted, rows[0].difference.low) == (None, None, None)
    sentence = "Neither run is measurably better than the other: that needs 8 topics in common."
    assert told_apart(rows, [criterion()]) == {"groundedness": sentence}
    assert records_tsv(COLUMNS, rows, 4).splitlines()[1].endswith("\t7\t7\t-3.0000\t\t7\tfewer than 8 topics")
    print_leaderboard(leaderboard(pool, results, [criterion()]), [criterion()], "banner", rows)
    assert sentence in capsys.readouterr().out


def test_one_run_is_compared_with_nobody() -> None:
    rows = compared(*made(9, a=[3] * 9))
    assert (rows, told_apart(rows, [criterion()])) == ((), {})
    assert compared(Pool((), {}, ()), []) == ()


def test_the_tsv_has_four_decimals_and_hostile_names_stay_in_their_cells() -> None:
    row = RunDifference("groundedness", "a\tb", "c\x1b", Estimate(0.5, 0.25, 0.75, 73, 23), 0.0001, 0.02)
    head, line = records_tsv(COLUMNS, [row], 4).splitlines()
    assert tuple(head.split("\t")) == tuple(COLUMNS)
    assert line.split("\t") == [
        "groundedness", r"a\tb", r"c\x1b", "0.5000", "0.2500", "0.7500", "0.0001", "0.0200", "73", "23",
        "0.5000", "0.0200", "73", "",
    ]  # fmt: skip
