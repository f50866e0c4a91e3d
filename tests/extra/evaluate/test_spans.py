"""Spans against gold spans: arithmetic in sight, the organizers' figures, and what cannot change a figure."""

import random
import time
from math import sqrt
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.extra.evaluate.span_scores import SkippedGroup, SpanLine, script_figures, span_score
from judge.extra.evaluate.spans import ranks_passages, read_groups, read_spans, topics_of

GOLD = {"1": "the Fifth Amendment", "2": "switch knives", "3": "elevated trains", "4": "secret ballots"}
RUN = {
    "1": "That's in the Constitution. The Fifth Amendment.",
    "2": "cute little switchknife",
    "3": "the elevated train's noise",
    "4": "jury",
}
GROUPS = [("1",), ("2", "3"), ("4",), ("5", "6")]


def lines(spans: dict[str, str]) -> list[SpanLine]:
    return [SpanLine(topic_id, text, text) for topic_id, text in spans.items()]


def test_a_group_by_hand() -> None:
    group = span_score("r", RUN, GOLD, GROUPS).groups[0]
    # Stop words, possessive and suffixes are gone.
    assert (group.predicted, group.gold) == ("constitut fifth amend", "fifth amend")
    # 21 and 11 characters, so 19 and 9 n-grams of 3 characters, each once; the prediction has all of the gold's.
    s3, s4, s5 = 9 / sqrt(19 * 9), 8 / sqrt(18 * 8), 7 / sqrt(17 * 7)
    assert group.similarities == pytest.approx((s3, s4, s5), abs=1e-15)
    assert group.overlap == pytest.approx(3 / 12 * s3 + 4 / 12 * s4 + 5 / 12 * s5, abs=1e-15)
    # that's constitution fifth amendment | fifth amendment
    assert group.jaccard == 2 / 4


def test_spans_of_a_conversation_are_put_together() -> None:
    score = span_score("r", RUN, GOLD, GROUPS)
    together = score.groups[1]
    assert (together.topics, together.gold) == (("2", "3"), "switch knive elev train")
    # Analyzed twice: noise, nois, noi.
    assert together.predicted == "cute littl switchknif elev train noi"
    # Lucene 4.10 and the steps of the organizers' script gave these.
    assert score.overlap.value == pytest.approx(0.36248200477676784, abs=1e-15)
    assert score.s3.value == pytest.approx(0.4040613445357564, abs=1e-15)
    assert score.jaccard.value == pytest.approx((1 / 2 + 1 / 9 + 0) / 3, abs=1e-15)
    assert score.skipped == (SkippedGroup(("5", "6"), "5, 6 not in the gold"),)
    assert (score.overlap.n, score.overlap.topics) == (3, 3)


def test_each_version_of_the_script_by_its_analyzer() -> None:
    english, older, newer = script_figures("r", lines(RUN), lines(GOLD), GROUPS)
    # From Lucene 4.10 (the first two) and 8.7 through the steps of the script.
    assert (english.overlap, english.jaccard) == pytest.approx((0.36248200477676784, 0.3055555555555555), abs=1e-15)
    assert (older.overlap, older.jaccard) == pytest.approx((0.3544154446551576, 0.20370370370370372), abs=1e-15)
    assert (newer.overlap, newer.jaccard) == pytest.approx((0.34399269359942564, 0.2), abs=1e-15)


def test_a_count_of_an_n_gram_weighs() -> None:
    (group,) = span_score("r", {"1": "blue blue sky"}, {"1": "blue"}, [("1",)]).groups
    # blu, lue and ue_ twice, e_b, _bl, e_s, _sk and sky once; the gold has blu and lue.
    assert (group.predicted, group.gold) == ("blue blue sky", "blue")
    assert group.similarities[0] == pytest.approx((2 + 2) / sqrt((3 * 2**2 + 5) * 2), abs=1e-15)


def test_a_span_shorter_than_an_n_gram_has_none() -> None:
    (group,) = span_score("r", {"1": "Go"}, {"1": "Go"}, [("1",)]).groups
    assert (group.similarities, group.jaccard) == ((0.0, 0.0, 0.0), 1.0)


def test_a_missing_prediction_skips_its_group_or_is_empty() -> None:
    part = {topic_id: RUN[topic_id] for topic_id in "124"}
    answered = span_score("r", part, GOLD, GROUPS)
    assert answered.skipped[0] == SkippedGroup(("2", "3"), "3 not in the run")
    assert [group.topics for group in answered.groups] == [("1",), ("4",)]
    every = span_score("r", part, GOLD, GROUPS, "qrels")
    assert [group.topics for group in every.groups] == [("1",), ("2", "3"), ("4",)]
    # constitut fifth amend, then cute littl switchknif alone, then jury
    assert every.groups[1].predicted == "cute littl switchknif"
    assert every.groups[1].gold == "switch knive elev train"


def test_no_words_are_no_overlap_and_no_jaccard() -> None:
    score = span_score("r", {"1": "the", "2": "trains"}, {"1": "The", "2": "trains"}, [("1",), ("2",)])
    first, second = score.groups
    assert (first.overlap, first.jaccard) == (0.0, None)
    assert (second.overlap, second.jaccard) == (1.0, 1.0)
    assert (score.overlap.value, score.jaccard.value, score.jaccard.n) == (0.5, 1.0, 1)
    script = script_figures("r", lines({"1": "the"}), lines({"1": "The"}), [("1",)])[0]
    assert (script.overlap, script.jaccard, script.reason) == (0.0, None, "a group has no words")
    assert span_score("r", {"1": ""}, {"2": "x"}, [("1",)]).overlap.value is None


def test_a_field_of_many_digits_is_read_in_step_with_its_length(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(f"1_1 0 p 1 {'1' * 100_000}x name\n", encoding="utf-8")
    started = time.monotonic()
    assert not ranks_passages(tmp_path / "run.txt")
    assert time.monotonic() - started < 5


def test_the_script_pairs_lines() -> None:
    gold, run = lines(GOLD), lines(RUN)
    assert [each.crossed for each in script_figures("r", run, gold, GROUPS)] == [0, 0, 0]
    late = script_figures("r", run[:1] + run[2:], gold, GROUPS)[0]
    # Topic 3 meets the span of 2, and 4 that of 3; 2 is gone, so its group is skipped.
    assert (late.crossed, late.groups) == (2, 2)
    crossed = span_score("r", RUN, {"1": GOLD["1"], "4": GOLD["3"]}, [("1",), ("4",)])
    assert late.overlap == crossed.overlap.value
    # By topic id, the order of lines is nothing.
    swapped = script_figures("r", [run[1], run[0], *run[2:]], gold, GROUPS)[0]
    assert swapped.crossed == 2
    assert swapped.overlap != script_figures("r", run, gold, GROUPS)[0].overlap


@pytest.mark.parametrize(("run", "gold", "said"), [
    ([("1", "a b"), ("2", "c")], [("1", "x y")], "it stops: line 2 has no gold span"),
    ([("1", "a b")], [("1", "x y"), ("2", "word")], "it stops: line 2 has no prediction, and its gold span is one"),
    ([("1", "a b\r")], [("1", "x y")], "it stops: line 1 of the run ends in a carriage return"),
    ([("9", "a b")], [("1", "x y")], "no group is complete"),
    ([("1", "a b")], [("1", "x y"), ("2", "two words")], None),
    ([("1", "")], [("1", "x y\r")], None),
])  # fmt: skip
def test_where_the_script_stops(run: list[tuple[str, str]], gold: list[tuple[str, str]], said: str | None) -> None:
    read, given_gold = ([SpanLine(key, text, text) for key, text in of] for of in (run, gold))
    for each in script_figures("r", read, given_gold, [("1",)]):
        assert (each.reason or "").startswith(said or "")
        assert (each.overlap is None) == (said is not None)


SPAN = st.lists(st.sampled_from("amendment constitution trains Ming mecca 3.14 café don't Columbia's".split()),
                min_size=2, max_size=6).map(" ".join)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SPAN, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_gold_as_a_run_is_perfect_in_any_order(spans: list[str], rng: random.Random) -> None:
    gold = {str(place): span for place, span in enumerate(spans)}
    groups = [tuple(gold)[:2], *((topic_id,) for topic_id in tuple(gold)[2:])]
    shuffled = list(gold.items())
    rng.shuffle(shuffled)
    score = span_score("r", dict(shuffled), gold, groups)
    assert (score.overlap.value, score.s3.value, score.s5.value, score.jaccard.value) == (1.0, 1.0, 1.0, 1.0)
    assert script_figures("r", lines(gold), lines(gold), groups)[0].overlap == 1.0


@given(
    st.dictionaries(st.sampled_from("1234"), SPAN | st.text("ab é'.:_中\n", max_size=30)),
    st.randoms(use_true_random=False),
)
def test_figures_are_shares_and_the_order_of_lines_changes_none(run: dict[str, str], rng: random.Random) -> None:
    shuffled = list(run.items())
    rng.shuffle(shuffled)
    for over in ("answered", "qrels"):
        score = span_score("r", run, GOLD, GROUPS, over)  # type: ignore[arg-type]
        assert score == span_score("r", dict(shuffled), GOLD, GROUPS, over)  # type: ignore[arg-type]
        for group in score.groups:
            assert 0 <= group.overlap <= 1 and 0 <= (group.jaccard or 0) <= 1
            least, most = min(group.similarities), max(group.similarities)
            assert least <= group.overlap <= most or group.overlap == pytest.approx(least)


def test_the_public_run_of_the_track_has_its_published_figures(shared: Path) -> None:
    folder = shared / "rcd2020"
    run, gold = read_spans(folder / "Y7_2_Model5_2.tsv"), read_spans(folder / "task1_test.rel", gold=True)
    groups = read_groups(folder / "equiv.txt")
    score = span_score("Y7", topics_of(run), topics_of(gold), groups)
    # The table of the track: 0.0020 and 0.0000; 4/12 of the cosine of one group is in S3 alone.
    assert f"{score.overlap.value:.4f} {score.jaccard.value:.4f}" == "0.0020 0.0000"
    assert score.s3.value == pytest.approx(0.008057818537550158, abs=1e-15)
    assert (score.s4.value, score.s5.value) == (0.0, 0.0)
    assert (len(score.groups), len(score.skipped)) == (11, 24)
    together = {group.topics for group in score.groups if len(group.topics) > 1}
    assert together == {("30", "31", "32", "33"), ("27", "28"), ("36", "37", "43")}
    english, _, newer = script_figures("Y7", run, gold, groups)
    assert english.overlap == score.overlap.value
    # Lucene 8.7's StandardAnalyzer through the steps of the script.
    assert newer.overlap == pytest.approx(0.00114784, abs=5e-9)
