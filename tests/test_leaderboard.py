import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ids import topic_of
from judge.leaderboard import (
    COLUMNS,
    HEADER,
    by_criterion,
    leaderboard,
    leaderboard_cells,
    leaderboard_markdown,
    leaderboard_tsv,
    printable,
)
from judge.records import (
    Criterion,
    Estimate,
    Failure,
    Judgment,
    LeaderboardRow,
    Level,
    Pool,
    PooledResponse,
    RunEntry,
    Scale,
    TokenCount,
)

UNABLE = Level(-1, "unable", "")


def scale(grades: range = range(4), polarity: str = "higher", positive: tuple[int, ...] = (2, 3)) -> Scale:
    return Scale(tuple(Level(grade, str(grade), "") for grade in grades), polarity, positive, UNABLE)


def criterion(name: str = "groundedness", variant: str = "graded", **options: object) -> Criterion:
    return Criterion(name, variant, 1, (), "grade", scale(**options), (), None, "", "", "x.md", "c" * 64)


def pooled(response_id: str, turn_id: str, *entries: tuple[str, int]) -> PooledResponse:
    runs = tuple(RunEntry(run_id, rank, "used", "0" * 64) for run_id, rank in entries)
    return PooledResponse(
        response_id, turn_id, topic_of(turn_id), "text", (), TokenCount(1, 1, 1, None), False, runs
    )  # fmt: skip


def pool(*responses: PooledResponse) -> Pool:
    return Pool(responses, {}, ())


def judgment(
    response: PooledResponse,
    grade: int,
    *,
    name: str = "groundedness",
    variant: str = "graded",
    unable: bool = False,
    expected: float | None = None,
) -> Judgment:
    return Judgment(
        response.response_id, response.turn_id, response.topic_id, name, variant, grade, unable, expected, None, None,
        (), "litellm/m", "m", "c" * 64, "r" * 64, "json", False, 0,
    )  # fmt: skip


def failure(response: PooledResponse, name: str = "groundedness") -> Failure:
    return Failure(
        response.response_id, response.turn_id, response.topic_id, name, "graded", "unreadable", "", None, "litellm/m",
        "c" * 64, "r" * 64, 0,
    )  # fmt: skip


def row(run_id: str, *, mean: Estimate | None = None, **changes: object) -> LeaderboardRow:
    fields: dict[str, object] = {
        "criterion": "groundedness", "pooled": 80, "n": 73, "unable": 3, "missing": 4,
        "mean": mean or Estimate(2.5, 2.25, 2.75, 73, 23), "expected_mean": 2.4375, "positive": 65,
        "share_positive": 65 / 73, **changes,
    }  # fmt: skip
    return LeaderboardRow(run_id=run_id, **fields)


def test_a_shared_response_counts_for_every_run_that_gave_it() -> None:
    a = pooled("R0", "1_1", ("x", 1), ("y", 1))
    b, c = pooled("R1", "2_1", ("x", 1)), pooled("R2", "2_1", ("y", 1))
    rows = leaderboard(pool(a, b, c), [judgment(a, 3), judgment(b, 2), judgment(c, 0)], [criterion()])
    assert [(one.run_id, one.mean.value, one.n, one.mean.topics) for one in rows] == [
        ("x", (3 + 2) / 2, 2, 2),
        ("y", (3 + 0) / 2, 2, 2),
    ]
    assert [(one.positive, one.share_positive) for one in rows] == [(2, 2 / 2), (1, 1 / 2)]


def test_what_is_missing_or_unable_is_counted_and_in_no_mean() -> None:
    responses = [pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(6)]
    results = [
        judgment(responses[0], 3),
        judgment(responses[1], 1),
        judgment(responses[2], -1, unable=True),
        failure(responses[3]),
        failure(responses[4]),
    ]
    (found,) = leaderboard(pool(*responses), results, [criterion()])
    assert (found.pooled, found.n, found.unable, found.missing) == (6, 2, 1, 3)
    assert found.mean.value == (3 + 1) / 2
    assert found.coverage == (2 + 1) / 6
    assert (found.positive, found.share_positive) == (1, 1 / 2)


def test_a_level_below_zero_is_in_the_mean_where_it_is_no_unable() -> None:
    a, b = pooled("R0", "1_1", ("x", 1)), pooled("R1", "2_1", ("x", 1))
    (found,) = leaderboard(
        pool(a, b), [judgment(a, -1), judgment(b, 3)], [criterion(grades=range(-1, 4), positive=(2, 3))]
    )
    assert (found.mean.value, found.mean.low, found.mean.high) == ((-1 + 3) / 2, -1, 3)


def test_the_best_ranked_response_of_a_turn_stands_for_the_run() -> None:
    first, second = pooled("R0", "1_1", ("x", 2), ("y", 1)), pooled("R1", "1_1", ("x", 1), ("y", 2))
    results = [judgment(first, 0), judgment(second, 3)]
    rows = leaderboard(pool(first, second), results, [criterion()])
    assert [(one.run_id, one.pooled, one.mean.value) for one in rows] == [("x", 1, 3.0), ("y", 1, 0.0)]


def test_runs_stand_best_mean_first_then_in_natural_order_and_the_unjudged_last() -> None:
    responses = [pooled(f"R{i}", "1_1", (run_id, 1)) for i, run_id in enumerate(["run10", "run2", "top", "none"])]
    results = [judgment(responses[0], 2), judgment(responses[1], 2), judgment(responses[2], 3), failure(responses[3])]
    order = [one.run_id for one in leaderboard(pool(*responses), results, [criterion()])]
    assert order == ["top", "run2", "run10", "none"]
    order = [one.run_id for one in leaderboard(pool(*responses), results, [criterion(polarity="lower")])]
    assert order == ["run2", "run10", "top", "none"]


def test_criteria_stand_in_the_order_given_and_do_not_mix() -> None:
    a = pooled("R0", "1_1", ("x", 1))
    results = [judgment(a, 3), judgment(a, 1, name="naturalness"), judgment(a, 0, variant="other")]
    rows = leaderboard(pool(a), results, [criterion("naturalness"), criterion()])
    assert [(one.criterion, one.mean.value) for one in rows] == [("naturalness", 1.0), ("groundedness", 3.0)]


def test_the_expected_mean_is_given_only_if_every_graded_response_has_one() -> None:
    a, b, c = (pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(3))
    whole = [judgment(a, 3, expected=2.5), judgment(b, 1, expected=1.25), judgment(c, -1, unable=True)]
    (found,) = leaderboard(pool(a, b, c), whole, [criterion()])
    assert found.expected_mean == (2.5 + 1.25) / 2
    (found,) = leaderboard(pool(a, b, c), [*whole[:2], judgment(c, 2)], [criterion()])
    assert found.expected_mean is None


def test_two_judgments_of_one_response_are_an_error() -> None:
    a = pooled("R0", "1_1", ("x", 1))
    with pytest.raises(ValueError, match="R0 has two judgments under groundedness/graded"):
        leaderboard(pool(a), [judgment(a, 3), judgment(a, 3)], [criterion()])
    with pytest.raises(ValueError, match="two prompts"):
        leaderboard(pool(a), [], [criterion(), criterion(variant="other")])


def test_the_tsv_has_four_decimals_and_empty_fields_where_undefined() -> None:
    undefined = Estimate(None, None, None, 0, 0, "no grades")
    rows = [
        row("x"),
        row("y", mean=undefined, n=0, unable=0, missing=80, expected_mean=None, positive=0, share_positive=None),
    ]
    head, first, second = (line.split("\t") for line in leaderboard_tsv(rows).splitlines())
    assert tuple(head) == COLUMNS
    assert dict(zip(head, first, strict=True)) == {
        "run_id": "x", "criterion": "groundedness", "pooled": "80", "n": "73", "unable": "3", "missing": "4",
        "coverage": "0.9500", "mean": "2.5000", "low": "2.2500", "high": "2.7500", "topics": "23",
        "expected_mean": "2.4375", "positive": "65", "share_positive": "0.8904", "note": "",
    }  # fmt: skip
    assert dict(zip(head, second, strict=True)) == {
        "run_id": "y", "criterion": "groundedness", "pooled": "80", "n": "0", "unable": "0", "missing": "80",
        "coverage": "0.0000", "mean": "", "low": "", "high": "", "topics": "0",
        "expected_mean": "", "positive": "0", "share_positive": "", "note": "no grades",
    }  # fmt: skip


def test_a_negative_zero_loses_its_sign() -> None:
    assert "-0.0000" not in leaderboard_tsv([row("x", expected_mean=-0.00001)])


def test_the_share_is_printed_with_positive_and_other_counts() -> None:
    (cells,) = leaderboard_cells([row("run-4", mean=Estimate(2.5, None, None, 73, 23, "all grades equal"))])
    assert dict(zip(HEADER, cells, strict=True)) == {
        "run": "run-4", "mean": "2.500", "95 % interval": "none: all grades equal", "positive": "0.89 (65/8)",
        "expected": "2.438", "n": "73", "unable": "3", "missing": "4", "coverage": "0.95",
    }  # fmt: skip


def test_markdown_has_a_table_a_criterion_under_the_banner() -> None:
    rows = [row("b"), row("a"), row("b", criterion="naturalness", expected_mean=None)]
    text = leaderboard_markdown(rows, "UNCALIBRATED", [criterion(polarity="lower", positive=(0, 1))])
    assert text == (
        "# Leaderboard\n\n**UNCALIBRATED**\n\n## groundedness\n\n"
        "Prompt groundedness/graded, grades 0, 1, 2, 3: lower is better; positive: 0, 1 "
        "(share, then positive and other counts).\n\n"
        "| run | mean | 95 % interval | positive | expected | n | unable | missing | coverage |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| b | 2.500 | [2.250, 2.750] | 0.89 (65/8) | 2.438 | 73 | 3 | 4 | 0.95 |\n"
        "| a | 2.500 | [2.250, 2.750] | 0.89 (65/8) | 2.438 | 73 | 3 | 4 | 0.95 |\n"
        "\n## naturalness\n\n"
        "| run | mean | 95 % interval | positive | expected | n | unable | missing | coverage |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| b | 2.500 | [2.250, 2.750] | 0.89 (65/8) | - | 73 | 3 | 4 | 0.95 |\n"
    )
    assert [(name, len(group)) for name, group in by_criterion(rows)] == [("groundedness", 2), ("naturalness", 1)]


@pytest.mark.parametrize(
    ("run_id", "shown"),
    [
        ("run_4-GPT_4", "run_4-GPT_4"),
        ("a|b", r"a\|b"),
        ("a\n| evil | 9.9 |", r"a\\n\| evil \| 9.9 \|"),
        ("`x`", r"\`x\`"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("[x](http://evil)", r"\[x\](http://evil)"),
        ("**best**", r"\*\*best\*\*"),
        ("_best_", r"\_best\_"),
        ("a\u202eb", r"a\\u202eb"),
    ],
)
def test_a_hostile_run_id_shows_as_itself_in_markdown(run_id: str, shown: str) -> None:
    lines = leaderboard_markdown([row(run_id)], "banner").splitlines()
    assert lines[-1].startswith(f"| {shown} | 2.500 |")


def test_printable_text_tells_a_line_break_from_a_backslash_and_n() -> None:
    assert printable("a\nb") == "a\\nb"
    assert printable("a\\nb") == "a\\\\nb"


@given(st.text())
def test_a_hostile_run_id_breaks_no_line_of_the_tsv(run_id: str) -> None:
    text = leaderboard_tsv([row(run_id)])
    assert len(text.splitlines()) == 2
    assert text.splitlines()[1].count("\t") == len(COLUMNS) - 1
    assert printable(run_id).isprintable()
    text.encode()


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 3), st.integers(0, 3)), max_size=20),
    st.randoms(use_true_random=False),
)
def test_the_leaderboard_does_not_depend_on_the_order_of_responses_or_results(
    given_items: list[tuple[str, int, int]], shuffle: random.Random
) -> None:
    turns: dict[str, int] = {}
    responses, results = [], []
    for i, (run_id, topic, grade) in enumerate(given_items):
        turns[run_id] = turns.get(run_id, 0) + 1
        responses.append(pooled(f"R{i}", f"{topic}_{turns[run_id]}", (run_id, 1)))
        results.append(judgment(responses[-1], grade))
    rows = leaderboard(pool(*responses), results, [criterion()])
    shuffle.shuffle(responses)
    shuffle.shuffle(results)
    assert leaderboard(pool(*responses), results, [criterion()]) == rows
    assert sum(one.n for one in rows) == len(given_items)


def ikat_2023(shared: Path, name: str, positive: tuple[int, ...], grades: range, polarity: str) -> list[LeaderboardRow]:
    """The released GPT-4 judgments of five runs x 73 turns as a leaderboard, best run first."""
    file = shared / "ikat" / "2023" / "gpt4_judgments" / f"{name}_judgement-gpt4.txt"
    lines = [line.split("\t")[-3:] for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    responses = [pooled(f"R{i:05}", turn_id, (run_id, 1)) for i, (turn_id, run_id, _) in enumerate(lines)]
    prompt = criterion(grades=grades, polarity=polarity, positive=positive)
    results = [
        judgment(response, int(grade), unable=int(grade) not in grades)
        for response, (_, _, grade) in zip(responses, lines, strict=True)
    ]
    return list(leaderboard(pool(*responses), results, [prompt]))


def test_ikat_2023_groundedness_has_the_published_order_only_with_its_inverted_polarity(shared: Path) -> None:
    rows = ikat_2023(shared, "groundedness", (0,), range(2), "lower")
    assert [(one.run_id.lower(), leaderboard_cells([one])[0][3]) for one in rows] == [
        ("run-4-gpt-4", "0.89 (65/8)"),
        ("georgetown_infosense_ikat_run_3", "0.68 (50/23)"),
        ("uot-yahoo_run_llmnoptkb", "0.67 (49/24)"),
        ("run_automatic_dense_monot5", "0.51 (37/36)"),
        ("llama2_only_10_docs", "0.32 (23/50)"),
    ]
    assert [round(one.share_positive, 4) for one in rows] == [0.8904, 0.6849, 0.6712, 0.5068, 0.3151]
    # Topic-bootstrap percentile intervals of the shares; the mean is 1 - share.
    bootstrap = [(0.806, 0.956), (0.577, 0.786), (0.552, 0.774), (0.414, 0.584), (0.186, 0.458)]
    for one, (low, high) in zip(rows, bootstrap, strict=True):
        assert (one.mean.n, one.mean.topics) == (73, 23)
        assert (1 - one.mean.high, 1 - one.mean.low) == pytest.approx((low, high), abs=0.02)


def test_ikat_2023_naturalness_keeps_a_constant_run_without_an_interval(shared: Path) -> None:
    rows = ikat_2023(shared, "naturallness", (3, 4), range(5), "higher")
    assert [round(one.mean.value, 4) for one in rows] == [4.0, 3.6986, 3.6438, 2.9041, 2.7671]
    assert rows[0].mean == Estimate(4.0, None, None, 73, 23, "all grades equal")


def test_ikat_2023_completeness_leaves_the_unable_out_of_the_mean(shared: Path) -> None:
    rows = ikat_2023(shared, "completeness", (2, 3), range(4), "higher")
    assert [round(one.mean.value, 4) for one in rows] == [2.8493, 1.2329, 1.0556, 0.3699, 0.1096]
    assert [(one.n, one.unable) for one in rows] == [(73, 0), (73, 0), (72, 1), (73, 0), (73, 0)]
    assert math.isclose(rows[2].mean.value, 76 / 72)
