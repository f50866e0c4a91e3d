"""Themes as clusters: the numbers of the same data with each topic renamed to its theme."""

import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from judge.ask.records import Judgment
from judge.gold.rows import GoldRow
from judge.io.ids import Cluster
from judge.io.table import records_tsv
from judge.pool.records import Pool
from judge.results import tables
from judge.results.corrected import corrected
from judge.results.gold import gold_grades
from judge.results.leaderboard import COLUMNS, CORRECTED_COLUMNS, corrected_markdown, leaderboard, leaderboard_markdown
from judge.results.tables import result_tables, told_apart
from judge.results.turns import run_turns
from tests.results.test_leaderboard import criterion, judgment, pooled

Naming = Callable[[int, int], str]


def two_topics(theme: int, conversation: int) -> str:
    """Each conversation of a theme is a topic, as in iKAT."""
    return f"{theme}-{conversation}_1"


def one_topic(theme: int, conversation: int) -> str:
    """Each conversation of a theme is a turn of one topic."""
    return f"{theme}_{conversation}"


def made(name: Naming, **runs: list[tuple[int, ...]]) -> tuple[Pool, list[Judgment]]:
    """Runs with a tuple of grades for each theme, one grade for each of its conversations."""
    responses, results = [], []
    for run_id, themes in runs.items():
        for theme, grades in enumerate(themes, start=1):
            for conversation, grade in enumerate(grades, start=1):
                responses.append(pooled(f"R{len(responses):03}", name(theme, conversation), (run_id, 1)))
                results.append(judgment(responses[-1], grade))
    return Pool(tuple(responses), {}, ()), results


def unnamed(rows: object) -> list[object]:
    """The rows without the name of their cluster."""
    found: list[object] = []
    for row in rows:  # type: ignore[attr-defined]
        raw = getattr(row, "raw", None)
        inner = {} if raw is None else {"raw": msgspec.structs.replace(raw, cluster="topic")}
        found.append(msgspec.structs.replace(row, cluster="topic", **inner))
    return found


FOUR = [(3, 3), (2, 2), (1, 1), (0, 0)]


def test_the_mean_of_four_themes_has_four_pieces_of_evidence_and_not_eight() -> None:
    here = made(two_topics, a=FOUR)
    (topics,) = leaderboard(*here, [criterion()])
    (themes,) = leaderboard(*here, [criterion()], cluster="theme")
    # Residuals of the 8 topics: twice 1.5, .5, -.5 and -1.5, so V = 8/7 · 10 / 8²; t of 7 degrees is 2.364624.
    # The sums of the 4 themes: 3, 1, -1 and -3, so V = 4/3 · 20 / 8²; t of 3 degrees is 3.182446.
    for mean, half in (
        (topics.mean, 2.364624 * math.sqrt(8 / 7 * 10 / 64)),
        (themes.mean, 3.182446 * math.sqrt(4 / 3 * 20 / 64)),
    ):
        # The mean lies in the middle of 0 to 3, where a step of log odds is half / (3 · ½ · ½).
        step = half / 0.75
        assert (mean.value, mean.n) == (1.5, 8)
        assert (mean.low, mean.high) == pytest.approx((3 / (1 + math.exp(step)), 3 / (1 + math.exp(-step))), abs=1e-6)
    assert (topics.mean.topics, themes.mean.topics) == (8, 4)
    assert (themes.rank, themes.bound) == (topics.rank, topics.bound)


def test_a_leaderboard_over_themes_is_that_of_topics_renamed_to_themes() -> None:
    runs = {"a": [(3, 1), (2, 2, 0), (1,), (0, 3)], "b": [(0, 1), (3, 3, 3), (2,), (1, 1)]}
    themes = leaderboard(*made(two_topics, **runs), [criterion()], cluster="theme")
    assert unnamed(themes) == list(leaderboard(*made(one_topic, **runs), [criterion()]))
    assert unnamed(themes) != list(leaderboard(*made(two_topics, **runs), [criterion()]))


def test_every_format_of_a_leaderboard_says_that_it_is_over_themes() -> None:
    here = made(two_topics, a=FOUR, b=[(1, 1)] * 4)
    rows = leaderboard(*here, [criterion()], cluster="theme")
    head, *lines = (line.split("\t") for line in records_tsv(COLUMNS, rows, 4).splitlines())
    assert [(dict(zip(head, line, strict=True))["topics"], line[-1]) for line in lines] == [
        ("4", "clustered by theme"),
        ("4", "all grades equal; clustered by theme"),
    ]
    text = leaderboard_markdown(rows, "banner", [criterion()])
    assert "of Student's t over themes, from 3 themes on." in text
    assert "two personas of one theme, count as one." in text
    assert "count as two topics" not in text
    assert b'"cluster":"theme"' in msgspec.json.encode(rows)
    assert b"cluster" not in msgspec.json.encode(leaderboard(*here, [criterion()]))


EIGHT = [(3, 3), (2, 3), (3, 3), (1, 3), (3, 2), (3, 3), (2, 2), (3, 3)]


def compared(name: Naming, cluster: Cluster = "topic", themes: int = 8) -> list[object]:
    pool, results = made(name, a=EIGHT[:themes], b=[(0, 1), (1, 0)] * (themes // 2) + [(0, 0)] * (themes % 2))
    return list(result_tables(pool, results, [criterion()], cluster=cluster).differences)


def test_two_runs_are_compared_by_turning_the_signs_of_whole_themes() -> None:
    (themes,), (topics,) = compared(two_topics, "theme"), compared(two_topics)
    # All 8 themes go one way, and 2 of the 2^8 signs are as extreme.
    assert (themes.difference.topics, themes.p, themes.p_adjusted) == (8, 2 / 2**8, 2 / 2**8)
    assert topics.difference.topics == 16
    assert topics.p < themes.p
    assert unnamed([themes]) == compared(one_topic)


def test_seven_themes_tell_nothing_apart_though_they_have_fourteen_topics() -> None:
    (themes,), (topics,) = compared(two_topics, "theme", 7), compared(two_topics, themes=7)
    assert (themes.p, topics.p is None) == (None, False)
    sentence = "Neither run is measurably better than the other: that needs 8 themes in common."
    assert told_apart([themes], [criterion()]) == {"groundedness": sentence}
    assert (
        records_tsv(tables.COLUMNS, [themes], 4)
        .splitlines()[1]
        .endswith("\t14\t7\t2.1429\t\t14\tfewer than 8 topics; clustered by theme")
    )


def graded(name: Naming, target: str, cluster: Cluster = "topic") -> list[object]:
    """Two runs on 8 themes, with gold for the first conversation of each and for all of the last two themes."""
    pool, results = made(name, a=EIGHT, b=[(0, 1), (2, 2), (1, 0), (0, 2)] * 2)
    gold = {}
    for place, response in enumerate(pool.responses):
        if place % 2 == 0 or place % 16 > 11:
            grade = (results[place].grade + place // 2 % 2) % 4
            gold[response.response_id, "groundedness"] = [
                GoldRow(response.turn_id, response.topic_id, "groundedness", grade, "A", response.response_id,
                        inclusion_probability=0.6)
            ]  # fmt: skip
    runs, grades = run_turns(pool, results, criterion()), gold_grades(gold, criterion(), "gold")
    return list(corrected(runs, criterion(), grades, target=target, cluster=cluster))


@pytest.mark.parametrize("target", ["pool", "topics"])
def test_corrected_means_over_themes_are_those_of_topics_renamed_to_themes(target: str) -> None:
    themes, topics = graded(two_topics, target, "theme"), graded(two_topics, target)
    assert unnamed(themes) == graded(one_topic, target)
    assert {row.run_id: row.raw.mean.topics for row in themes} == {"a": 8, "b": 8}
    assert {row.run_id: row.raw.mean.topics for row in topics} == {"a": 16, "b": 16}
    assert {row.mean.topics for row in themes} == {8}
    assert [row.raw.mean.high - row.raw.mean.low for row in themes] != [
        row.raw.mean.high - row.raw.mean.low for row in topics
    ]


def test_a_corrected_leaderboard_says_that_it_is_over_themes() -> None:
    rows = graded(two_topics, "pool", "theme")
    assert [line.split("\t")[-1] for line in records_tsv(CORRECTED_COLUMNS, rows, 4).splitlines()[1:]] == [
        "clustered by theme"
    ] * 2
    text = corrected_markdown(rows, (), {}, target="pool", clustered=("clustered by theme: 8 themes of 16 topics",))
    assert "\nclustered by theme: 8 themes of 16 topics.\n" in text


def test_real_grades_of_two_personas_are_alike_so_themes_widen_most_intervals(shared: Path) -> None:
    file = shared / "ikat" / "2023" / "gpt4_judgments" / "groundedness_judgement-gpt4.txt"
    lines = [line.split("\t")[-3:] for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    responses = [pooled(f"R{i:05}", turn_id, (run_id, 1)) for i, (turn_id, run_id, _) in enumerate(lines)]
    results = [judgment(response, int(grade)) for response, (_, _, grade) in zip(responses, lines, strict=True)]
    prompt, pool = criterion(grades=range(2), polarity="lower", positive=(0,)), Pool(tuple(responses), {}, ())
    topics, themes = (leaderboard(pool, results, [prompt], cluster=cluster) for cluster in ("topic", "theme"))
    assert {(row.mean.topics, other.mean.topics) for row, other in zip(topics, themes, strict=True)} == {(23, 13)}
    widths = [(b.mean.high - b.mean.low) / (a.mean.high - a.mean.low) for a, b in zip(topics, themes, strict=True)]
    assert [round(width, 2) for width in sorted(widths)] == [0.87, 1.08, 1.23, 1.24, 1.29]
