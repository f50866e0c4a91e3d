from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.extra.evaluate import Over, breakdown, measured_run
from judge.io.table import Table
from judge.results.rows import Score
from judge.runs.records import Exchange, PtkbStatement, Topic, Turn
from judge.runs.topics import read_topics
from judge.stats.means import mean_interval


def run(name: str, values: Mapping[str, float], over: Over = "qrels") -> Score:
    return measured_run(name, "m", values, values, over)


def turn(turn_id: str, depth: int, *linked: str, ptkb: bool = True) -> Turn:
    topic_id = turn_id.rpartition("_")[0]
    statements = (PtkbStatement("1", "I am vegan."),) if ptkb else ()
    return Turn(turn_id, topic_id, "And?", None, (Exchange("Hm?", "Yes."),) * (depth - 1), statements, linked)


LOW = run("low", {"1_1": 0.0, "1_2": 0.0, "2_1": 0.3, "3_1": 0.1})
MID = run("mid", {"1_1": 0.2, "1_2": 0.4, "2_1": 0.6, "3_1": 0.4})
TOP = run("top", {"1_1": 1.0, "1_2": 0.8, "2_1": 0.6, "3_1": 0.8})
RUNS = (LOW, TOP, MID)


def test_the_median_run_is_in_and_those_below_it_are_out() -> None:
    assert [found.run_id for found in breakdown.median_or_better(RUNS)] == ["top", "mid"]
    # The median of 0.1 and 0.8 lies between them.
    assert [found.run_id for found in breakdown.median_or_better((LOW, TOP))] == ["top"]
    assert [found.run_id for found in breakdown.median_or_better(RUNS, breakdown.Reading(higher_is_better=False))] == [
        "low",
        "mid",
    ]
    assert breakdown.median_or_better([run("none", {})]) == ()
    equal = run("also", {turn_id: 0.1 * 2 + value - 0.2 for turn_id, value in MID.values.items()})
    assert {found.run_id for found in breakdown.median_or_better((LOW, TOP, MID, equal))} == {"top", "mid", "also"}


def test_runs_come_best_first_and_those_without_a_mean_last() -> None:
    runs = (run("none", {}), LOW, run("b10", MID.values), run("b9", MID.values))
    assert [found.run_id for found in breakdown.best_first(runs)] == ["b9", "b10", "low", "none"]
    assert [found.run_id for found in breakdown.best_first(runs, breakdown.Reading(higher_is_better=False))] == [
        "low",
        "b9",
        "b10",
        "none",
    ]


def test_an_average_is_over_the_runs_that_have_a_value() -> None:
    assert breakdown.average_run((MID, TOP)).values == pytest.approx({"1_1": 0.6, "1_2": 0.6, "2_1": 0.6, "3_1": 0.6})
    partly = breakdown.average_run((run("a", {"1_1": 1.0}, "answered"), run("b", {"1_1": 0.0, "2_1": 1.0}, "answered")))
    assert partly.values == {"1_1": 0.5, "2_1": 1.0}


def test_a_topic_has_the_average_of_the_better_runs_and_the_spread_of_all() -> None:
    facts = breakdown.turn_facts(TOP.values)
    grid = breakdown.by_group(RUNS, breakdown.groups_of(facts, "topic"), "topic")
    assert grid.names == ("measure", "topic", "turns", "average", "minimum", "median", "maximum")
    assert [line[1:3] for line in grid] == [("1", 2), ("2", 1), ("3", 1)]
    # Topic 1: (0.2 + 0.4 + 1.0 + 0.8) / 4; the runs' own means are 0, 0.3 and 0.9.
    assert grid[0][3].value == pytest.approx(0.6)
    assert grid[0][4:] == pytest.approx((0.0, 0.3, 0.9))
    assert grid[0][3].reason == "fewer than 3 topics"
    assert grid.notes[0] == "m: the average is over the 2 runs of 3 at the median or better (top, mid)."


def test_a_depth_has_an_interval_over_its_topics() -> None:
    means = breakdown.group_means(TOP, breakdown.groups_of(breakdown.turn_facts(TOP.values), "depth"))
    assert means[1] == mean_interval([1.0, 0.6, 0.8], ["1", "2", "3"], bounds=(0, 1), what="values")
    assert means[1].low is not None and means[1].topics == 3
    assert (means[2].value, means[2].low) == (0.8, None)


def test_without_topics_a_number_is_a_depth_and_a_node_of_a_tree_is_none() -> None:
    facts = breakdown.turn_facts(["9-1_10", "9-1_2", "132_1-1", "x", "1_99999999"])
    assert [(fact.turn_id, fact.topic, fact.depth, fact.ptkb) for fact in facts.values()] == [
        *(("1_99999999", "1", None, None), ("9-1_2", "9-1", 2, None)),
        *(("9-1_10", "9-1", 10, None), ("132_1-1", "132", None, None), ("x", "x", None, None)),
    ]


def test_topics_tell_the_depth_in_a_tree_and_which_turns_need_the_ptkb() -> None:
    topics = [Topic("9-1", None, (), (turn("9-1_1", 1, "1"), turn("9-1_2", 2)))]
    facts = breakdown.turn_facts(["9-1_1", "9-1_2", "9-1_3"], topics)
    assert [(fact.depth, fact.ptkb) for fact in facts.values()] == [(1, True), (2, False), (3, None)]
    assert breakdown.groups_of(facts, "ptkb") == {"9-1_1": "with", "9-1_2": "without"}
    tree = [Topic("132", None, (), (turn("132_1-1", 1, ptkb=False), turn("132_1-3", 2, ptkb=False)))]
    facts = breakdown.turn_facts(["132_1-1", "132_1-3"], tree)
    assert [(fact.depth, fact.ptkb) for fact in facts.values()] == [(1, None), (2, None)]


def test_the_published_topics_tell_depths(shared: Path) -> None:
    ikat = read_topics(shared / "ikat/2023/2023_test_topics.json")
    facts = breakdown.turn_facts([turn.turn_id for topic in ikat for turn in topic.turns], ikat)
    assert all(fact.depth == int(turn_id.rpartition("_")[2]) for turn_id, fact in facts.items())
    assert sum(fact.ptkb is True for fact in facts.values()) == 112
    cast = read_topics(shared / "cast2022/2022_evaluation_topics_tree_v1.0.json")
    facts = breakdown.turn_facts(["132_1-1", "132_1-3", "132_2-1"], cast)
    # The second branch leaves the first one after its first response.
    assert [fact.depth for fact in facts.values()] == [1, 2, 3]


def test_turns_with_statements_stand_before_those_without_and_all_depths_before_each() -> None:
    topics = [Topic(str(n), None, (), (turn(f"{n}_1", 1, "1"), turn(f"{n}_2", 2))) for n in (1, 2, 3)]
    grid = breakdown.by_ptkb(RUNS, breakdown.turn_facts(TOP.values, topics))
    groups = [("with", None, 3), ("without", None, 1), ("with", 1, 3), ("without", 2, 1)]
    assert [line[:4] for line in grid] == [("m", *group) for group in groups]
    # (0.2 + 1.0 + 0.6 + 0.6 + 0.4 + 0.8) / 6
    assert grid[0][4].value == pytest.approx(0.6)


def test_each_run_has_a_line_for_each_group() -> None:
    grid = breakdown.by_run_and_group((LOW, TOP), breakdown.turn_facts(TOP.values))
    assert [(*line[1:4], line[5]) for line in grid[:5]] == [
        *(("top", "topic", "1", 2), ("top", "topic", "2", 1), ("top", "topic", "3", 1)),
        *(("top", "depth", "1", 3), ("top", "depth", "2", 1)),
    ]
    assert len(grid) == 10


def test_tables_are_stacked_under_names_with_each_note_once() -> None:
    grids: list[Table[Any]] = [
        Table([("m", name)], ("measure", "run"), "Runs", ("A note.",)) for name in ("mid", "top")
    ]
    grid = breakdown.stacked("Both", grids, ("a", "b"))
    assert grid.names[:3] == ("criterion", "measure", "run")
    assert [line[:3] for line in grid] == [("a", "m", "mid"), ("b", "m", "top")]
    assert len(grid.notes) == 1
    with pytest.raises(ValueError, match="different columns"):
        breakdown.stacked("Both", [grids[0], breakdown.by_group(RUNS, {}, "topic")])


def over_ten(name: str, values: list[float]) -> Score:
    return run(name, {f"{topic}_1": value for topic, value in enumerate(values)})


def test_letters_follow_the_adjusted_p_values() -> None:
    runs = (over_ten("top", [1.0] * 9 + [0.9]), over_ten("low", [0.0] * 9 + [0.1]), over_ten("also", [0.1] + [0.0] * 9))
    compared = breakdown.comparison(runs, np.random.default_rng(0))
    assert compared.letters == {"top": "a", "low": "b", "also": "b"}
    # Ten topics that all go one way: 2 of 2^10 signs.
    pairs = [(pair.run_a, pair.run_b, pair.p) for pair in compared.pairs]
    assert pairs[:2] == [("top", other, 2 / 2**10) for other in ("also", "low")]
    assert compared.sentence.endswith("2 of 3 pairs are (p at most 0.05, adjusted for all pairs).")
    lower = breakdown.comparison(runs, np.random.default_rng(0), breakdown.Reading(higher_is_better=False))
    assert lower.letters == {"top": "b", "low": "a", "also": "a"}


def test_runs_are_told_apart_by_no_response_that_nobody_judged() -> None:
    """Equal on 10 topics; on 6 more, a response without a grade counts 0 in the mean: 6 · 0.8 / 16."""
    values = {f"{topic}_1": 0.8 for topic in range(16)}
    unjudged = frozenset(f"{topic}_1" for topic in range(6))
    counted = {turn_id: 0.0 if turn_id in unjudged else value for turn_id, value in values.items()}
    for without, letters, n in (
        (unjudged, {"all": "a", "part": "a"}, 10),
        (frozenset(), {"all": "a", "part": "b"}, 16),
    ):
        runs = (run("all", values), run("part", counted))
        compared = breakdown.comparison(runs, np.random.default_rng(0), unjudged={"part": without})
        (pair,) = compared.pairs
        assert (compared.letters, pair.difference.n) == (letters, n)
        assert pair.at_worst.difference.value == pytest.approx(0.3)
        table = by_pair(compared)
        # Of the 2^6 signs of the six, two are as extreme: .031, here from 10,000 draws.
        said = "all differences equal; as the means count 0.300, p_adjusted 0.0320" if without else None
        assert next(iter(table))[-1] == said
        assert (breakdown.UNJUDGED in table.notes) is bool(without)


def test_a_difference_that_is_not_tested_is_said_to_be_none() -> None:
    """In 7 topics, of which one has no grade: 0.8 / 7."""
    values = {f"{topic}_1": 0.8 for topic in range(7)}
    runs = (run("all", values), run("part", values | {"0_1": 0.0}))
    compared = breakdown.comparison(runs, np.random.default_rng(0), unjudged={"part": {"0_1"}})
    assert next(iter(by_pair(compared)))[-1] == "fewer than 8 topics; as the means count 0.114, not tested"


def by_pair(compared: breakdown.PairedRuns) -> Table[Any]:
    return breakdown.breakdown("pair", compared, (), {})


def test_on_few_topics_there_are_no_letters() -> None:
    compared = breakdown.comparison(RUNS, np.random.default_rng(0))
    assert compared.letters == {}
    assert compared.sentence == "m: no letters, since no two runs are compared: that needs 8 topics in common."
    (line,) = by_pair(breakdown.comparison((LOW, TOP), np.random.default_rng(0)))
    assert (line[1], line[2], line[4], line[5], line[-1]) == ("top", "low", None, None, "fewer than 8 topics")
    assert breakdown.comparison((), np.random.default_rng(0)).pairs == ()


def test_one_run_alone_has_no_letters_however_many_topics() -> None:
    compared = breakdown.comparison((over_ten("top", [1.0] * 9 + [0.9]),), np.random.default_rng(0))
    assert compared.sentence == "m: no letters, since there is only one run."
    assert by_pair(compared).notes == ("m: no pair, since there is only one run.",)


def test_a_table_of_pairs_says_what_it_shows() -> None:
    runs = (over_ten("top", [1.0] * 9 + [0.9]), over_ten("low", [0.0] * 9 + [0.1]))
    notes = by_pair(breakdown.comparison(runs, np.random.default_rng(0))).notes
    assert notes == (
        "m: 1 of 1 pair is told apart (p at most 0.05, adjusted for all pairs).",
        "[ ]: 95 % interval of the pair alone, over topics. p: of the pair alone, by the signs of whole topics; "
        "p_adjusted: among all pairs.",
    )
    themes = by_pair(breakdown.comparison(runs, np.random.default_rng(0), breakdown.Reading(cluster="theme"))).notes
    assert "over themes" in themes[1]
    # On few topics there are no letters, and no intervals to explain.
    few = by_pair(breakdown.comparison(RUNS, np.random.default_rng(0))).notes
    assert few == ("m: no pair is tested, since that needs 8 topics in common.",)


def test_only_tables_with_intervals_explain_them() -> None:
    facts = breakdown.turn_facts(TOP.values)
    of_topic, of_depth = (
        breakdown.by_group(RUNS, breakdown.groups_of(facts, by), by).notes for by in ("topic", "depth")
    )
    assert not any("95 %" in note for note in of_topic)
    (note,) = [note for note in of_depth if "95 %" in note]
    assert note.endswith("none where all topics have the same mean.")


@pytest.mark.slow
def test_pictures_are_those_that_the_facts_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [Topic(str(n), None, (), (turn(f"{n}_1", 1, "1"), turn(f"{n}_2", 2))) for n in (1, 2, 3)]
    names = {"runs", "topics", "depths", "ptkb"}
    drawn = breakdown.breakdown_pictures(RUNS, breakdown.turn_facts(TOP.values, topics), "relevance")
    assert drawn.keys() == {f"{name}.{ending}" for name in names for ending in ("svg", "png")}
    assert drawn == breakdown.breakdown_pictures(RUNS, breakdown.turn_facts(TOP.values, topics), "relevance")
    for name in ("interval_plot", "curve_plot"):
        monkeypatch.setattr(f"judge.extra.evaluate.breakdown.{name}", lambda *given: (b"svg", b"png"))
    assert "ptkb.svg" not in breakdown.breakdown_pictures(RUNS, breakdown.turn_facts(TOP.values), "relevance")
    assert breakdown.breakdown_pictures([run("none", {})], {}, "relevance") == {}
