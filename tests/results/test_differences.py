from typing import Literal

import msgspec
import pytest

from judge.ask.records import Failure, Judgment
from judge.cli.tables import print_leaderboard
from judge.io.table import Table, records_tsv
from judge.pool.records import Pool
from judge.records import Estimate
from judge.results.leaderboard import leaderboard, leaderboard_markdown
from judge.results.rows import RunDifference
from judge.results.tables import COLUMNS, result_tables, told_apart
from tests.results.test_leaderboard import criterion, failure, judgment, pooled


def made(topics: int, **runs: list[int | str | None]) -> tuple[Pool, list[Judgment | Failure]]:
    """Runs with a turn in each topic: a grade, the reason of a failure, or None where nobody asked."""
    responses, results = [], []
    for run_id, grades in runs.items():
        for topic, grade in zip(range(topics), grades, strict=True):
            response = pooled(f"R{len(responses):03}", f"{topic}_1", (run_id, 1))
            responses.append(response)
            if isinstance(grade, str):
                results.append(failure(response, reason=grade))
            elif grade is not None:
                results.append(judgment(response, grade))
    return Pool(tuple(responses), {}, ()), results


def compared(pool: Pool, results: list[Judgment | Failure], **options: str) -> Table[RunDifference]:
    return result_tables(pool, results, [criterion(**options)]).differences


def test_a_turn_without_a_grade_is_the_worst_one_or_left_out_as_in_the_rank() -> None:
    (found,) = compared(*made(9, b=[2] * 9, a=[3, *["refused"] * 6, None, "budget"]))
    # Seven turns count for both: 3 - 2 and six times 0 - 2.
    assert (found.run_a, found.run_b, found.difference.n) == ("a", "b", 7)
    assert found.difference.value == pytest.approx((1 - 6 * 2) / 7)
    (lower,) = compared(*made(9, b=[2] * 9, a=[3, *["refused"] * 8]), polarity="lower")
    assert lower.difference.value == pytest.approx(1.0)
    (wide,) = compared(*made(9, a=[0] * 9, b=[3] * 8 + [2]))
    assert wide.difference.low == -3  # the length of the scale


def test_every_pair_has_a_line_and_a_sentence_says_how_many_differ() -> None:
    pool, results = made(10, top=[3, 3, 3, 2, 3, 3, 3, 3, 3, 3], low=[0, 1, 0, 0, 0, 0, 1, 0, 0, 0], also=[0] * 9 + [1])
    rows = compared(pool, results)
    assert [(one.run_a, one.run_b) for one in rows] == [("also", "low"), ("also", "top"), ("low", "top")]
    # Ten topics that all go one way have p = 2/2^10; the largest of the two wide differences bounds both.
    assert rows[1].p == rows[2].p == rows[1].p_adjusted == rows[2].p_adjusted == 2 / 2**10
    assert rows[0].p_adjusted == rows[0].p > 0.5
    sentence = (
        "top is measurably better than 2 of 2 other runs: 2 of 3 pairs can be told apart (p at most 0.05, adjusted for "
        "all pairs; differences.tsv)."
    )
    few = [msgspec.structs.replace(row, difference=msgspec.structs.replace(row.difference, topics=24)) for row in rows]
    many = [msgspec.structs.replace(row, difference=msgspec.structs.replace(row.difference, topics=25)) for row in rows]
    assert told_apart(many, [criterion()]) == {"groundedness": sentence}
    sentence += " With {} topics, a run may fail badly on a tenth of all topics and on none of these."
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
        ({"a": LOW, "b": HIGH}, "higher", "b is measurably better than 1 of 1 other run: 1 of 1 pair"),
        ({"a": LOW, "b": HIGH}, "lower", "a is measurably better than 1 of 1 other run: 1 of 1 pair"),
        ({"a": LOW, "b": HIGH, "c": HIGH}, "higher",
            "b and c are each measurably better than 1 of 2 other runs: 2 of 3 pairs"),
        ({"a": LOW, "b": LOW}, "higher", "No run is measurably better than another: 0 of 1 pair"),
        ({"a*\n\x1b": HIGH, "b": LOW}, "higher", "a*\\n\\x1b is measurably better than 1 of 1 other run: 1 of 1 pair"),
    ],
)  # fmt: skip
def test_the_verdict_names_the_run_that_is_better_than_most(
    grades: dict[str, list[int]], polarity: Literal["higher", "lower"], verdict: str
) -> None:
    rows = compared(*made(10, **grades), polarity=polarity)
    (said,) = told_apart(rows, [criterion(polarity=polarity)]).values()
    assert said.startswith(f"{verdict} can be told apart (p at most 0.05")


def test_on_few_topics_nothing_is_told_apart_and_every_format_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    pool, results = made(7, top=[3] * 7, low=[0] * 7)
    rows = compared(pool, results)
    assert (rows[0].p, rows[0].p_adjusted, rows[0].difference.low) == (None, None, None)
    sentence = "No run is measurably better than another: that needs 8 topics in common."
    assert told_apart(rows, [criterion()]) == {"groundedness": sentence}
    assert records_tsv(COLUMNS, rows, 4).splitlines()[1].endswith("\t7\t7\tfewer than 8 topics")
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
        "groundedness", r"a\tb", r"c\x1b", "0.5000", "0.2500", "0.7500", "0.0001", "0.0200", "73", "23", "",
    ]  # fmt: skip
