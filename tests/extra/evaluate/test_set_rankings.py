"""Runs ranked by two sets of grades: scores by ir_measures, swaps, holes and their bounds, by hand."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import ir_measures
import numpy as np
import pytest

from judge.extra.evaluate import sets
from judge.extra.evaluate.set_rankings import RankedBySets, ranked_by_sets, ranking_grids

Rows = Mapping[str, Mapping[str, int]]


def of(rows: Rows, scale: Sequence[int] = (0, 1, 2, 3), **more: bool) -> sets.GradeSet:
    return sets.GradeSet("qrels", {turn: dict(items) for turn, items in rows.items()}, tuple(scale), **more)


def run(**turns: str) -> sets.Ranked:
    """A run whose items are letters; turns are t1, t2 …"""
    return {turn: tuple(items) for turn, items in turns.items()}


@pytest.fixture(autouse=True, scope="module")
def _few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.extra.evaluate.sets.REPLICATES", 200)
        patch.setattr("judge.extra.evaluate.set_rankings.FLIPS", 999)
        yield


def ranked(
    runs: Mapping[str, sets.Ranked], a: sets.GradeSet, b: sets.GradeSet, measure: str = sets.MEAN
) -> RankedBySets:
    return ranked_by_sets(runs, a, b, sets.common_turns(a, b), measure, "topic")


A = of({"t1": {"p": 3, "q": 0}, "t2": {"p": 2, "q": 1}, "t3": {"p": 1, "q": 3}})


def test_the_mean_is_over_the_turns_whose_first_response_is_graded() -> None:
    b = of({"t1": {"p": 3}, "t2": {"p": 2, "q": 1}, "t3": {"p": 1, "q": 3}})
    found = ranked({"x": run(t1="q", t2="p", t3="q"), "y": run(t1="p", t2="q")}, A, b)
    by_run = {each.run_id: each for each in found.runs}
    # x: 0, 2 and 3 by A; B has no grade of q in t1. y answers nothing in t3, which counts as the worst grade.
    assert by_run["x"].a.values == {"t1": 0, "t2": 2, "t3": 3}
    assert (by_run["x"].a.mean.value, by_run["x"].b.mean.value) == ((0 + 2 + 3) / 3, (2 + 3) / 2)
    assert by_run["y"].a.values == by_run["y"].b.values == {"t1": 3, "t2": 1, "t3": 0}
    assert [(each.run_id, each.rank_a, each.rank_b) for each in found.runs] == [("x", 1, 1), ("y", 2, 2)]


def test_the_holes_of_a_mean_are_filled_with_the_worst_and_the_best_grade() -> None:
    b = of({"t1": {"p": 3}, "t2": {"p": 2, "q": 1}, "t3": {"p": 1, "q": 3}})
    found = sets.run_holes("x", run(t1="q", t2="p", t3="z"), A, b, ("t1", "t2", "t3"), sets.measure_facts(sets.MEAN))
    # By B the grade of q in t1 is open: (0 + 2) / 2 to (3 + 2) / 2. z in t3 is in neither set and stays out.
    assert found == sets.RunHoles(
        "x", 3, 1, 1, 0, 1, 2 / 3, 1 / 3, sets.ScoreRange(1.0, 1.0), sets.ScoreRange(1.0, 2.5)
    )


def test_where_lower_is_better_the_worst_grade_is_the_highest() -> None:
    a, b = (of(rows, higher_is_better=False) for rows in (A.grades, {"t1": {"p": 3}, "t2": {"p": 2, "q": 1}}))
    found = ranked({"x": run(t1="q", t2="q"), "y": run(t1="p")}, a, b)
    # By A x has 0 and 1, y has 3 and for the unanswered turn 3; by B only t2 of x is graded.
    means = [(each.run_id, each.a.mean.value, each.b.mean.value) for each in found.runs]
    assert means == [("x", 0.5, 1.0), ("y", 3.0, 3.0)]
    assert found.holes[0].range_b == sets.ScoreRange((0 + 1) / 2, (3 + 1) / 2)


def test_the_range_of_precision_is_exact() -> None:
    a = of({"t1": {"p": 1, "q": 0, "r": 2}})
    b = of({"t1": {"p": 1, "s": 1, "u": 0}})
    # Of p s r z A lacks s, B lacks r, and both lack z: P@4 is 2/4 to 3/4 by each.
    found = sets.run_holes("x", run(t1="psrz"), a, b, ("t1",), sets.measure_facts("P@4"))
    assert (found.both, found.only_a, found.only_b, found.neither) == (1, 1, 1, 1)
    assert (found.range_a, found.range_b) == (sets.ScoreRange(2 / 4, 3 / 4), sets.ScoreRange(2 / 4, 3 / 4))
    assert (found.judged_a, found.judged_b) == (2 / 4, 2 / 4)


@pytest.mark.parametrize("measure", ["P@3", "P(rel=2)@3", "R@3", "R@1000", "RR", "Success@2"])
def test_no_grades_of_the_holes_take_a_strict_measure_beyond_its_range(measure: str) -> None:
    a = of({"t1": {"p": 0, "q": 2, "r": 0}})
    b = of({"t1": {"s": 1, "u": 1, "v": 0}})
    assert sets.measure_facts(measure).strict
    for items in ("psq", "spuqv", "rvzus", "qpr"):
        each = run(t1=items)
        found = sets.run_holes("x", each, a, b, ("t1",), sets.measure_facts(measure))
        values = [
            sets.score(measure, a, {"t1": {**a.grades["t1"], **dict(zip("suv", grades, strict=True))}}, each, ("t1",))
            for grades in itertools.product((0, 1, 3), repeat=3)
        ]
        low, high = found.range_a.low, found.range_a.high
        assert low is not None and high is not None
        assert (min(v for v in values if v is not None), max(v for v in values if v is not None)) == (low, high)


def test_ndcg_is_not_said_to_be_strict_because_other_grades_may_take_it_further() -> None:
    a, b = of({"t1": {"p": 3}}), of({"t1": {"p": 3, "z": 0}})
    facts = sets.measure_facts("nDCG@5")
    assert (facts.strict, facts.cutoff) == (False, 5)
    found = sets.run_holes("x", run(t1="pqrz"), a, b, ("t1",), facts)
    # z at rank 4 with grade 3 makes the ideal 3 + 3 / log2(3); with grade 0 the run is ideal.
    filled = (3 + 3 / np.log2(5)) / (3 + 3 / np.log2(3))
    assert found.range_a.low == pytest.approx(filled)
    assert found.range_a.high == pytest.approx(1.0)


def random_world(
    runs: int = 6, topics: int = 10, seed: int = 4
) -> tuple[dict[str, dict[str, tuple[str, ...]]], sets.GradeSet, sets.GradeSet]:
    """Runs of growing noise, and two sets of which the second is a noisy copy with holes."""
    rng = np.random.default_rng(seed)
    first: dict[str, dict[str, int]] = {}
    second: dict[str, dict[str, int]] = {}
    for topic in range(topics):
        for turn in range(2):
            grades = rng.integers(0, 4, 12)
            first[f"{topic}_{turn}"] = {f"p{n}": int(grade) for n, grade in enumerate(grades)}
            second[f"{topic}_{turn}"] = {
                f"p{n}": int(np.clip(grade + rng.integers(-1, 2), 0, 3))
                for n, grade in enumerate(grades)
                if n == 0 or rng.random() < 0.9
            }
    systems = {}
    for noise in range(runs):
        orders = (sorted(items, key=lambda item: -items[item] + rng.normal(0, 0.1 + noise)) for items in first.values())
        systems[f"run {noise}"] = {turn: tuple(order) for turn, order in zip(first, orders, strict=True)}
    return systems, of(first), of(second)


@pytest.mark.parametrize("measure", ["nDCG@5", "P(rel=2)@3", "AP", "RR"])
def test_scores_of_passages_are_those_of_ir_measures(measure: str) -> None:
    systems, a, b = random_world()
    # One run leaves a turn out, which counts 0 as under `trec_eval -c`.
    del systems["run 3"]["4_1"]
    found = ranked(systems, a, b, measure)
    parsed = ir_measures.parse_measure(measure)
    for each in found.runs:
        order = systems[each.run_id].items()
        lines = {turn: {item: 100.0 - n for n, item in enumerate(items)} for turn, items in order}
        for side, given in ((each.a, a), (each.b, b)):
            expected = ir_measures.calc_aggregate([parsed], given.grades, lines)[parsed]
            assert side.mean.value == pytest.approx(expected)


def test_the_judged_share_is_that_of_ir_measures() -> None:
    systems, a, b = random_world()
    judged = ir_measures.parse_measure("Judged@5")
    found = ranked(systems, a, b, "nDCG@5")
    for row in found.holes:
        order = systems[row.run_id].items()
        lines = {turn: {item: 100.0 - n for n, item in enumerate(items)} for turn, items in order}
        assert row.judged_b == pytest.approx(ir_measures.calc_aggregate([judged], b.grades, lines)[judged])


def test_a_set_ranks_as_itself_without_swaps_or_holes() -> None:
    systems, a, _ = random_world()
    found = ranked(systems | {"twin": systems["run 2"]}, a, a, "nDCG@5")
    values = {name: estimate.value for name, estimate in found.statistics.items()}
    assert values == pytest.approx(dict.fromkeys(values, 1.0) | {"swapped": 0.0})
    assert not any(pair.swapped for pair in found.pairs)
    assert all((row.only_a, row.only_b) == (0, 0) for row in found.holes)
    assert all(row.range_a.low == row.range_a.high for row in found.holes)
    assert (found.tau_b.least, found.tau_b.greatest, found.tau_b.certain) == (1, 1, found.tau_b.pairs)
    ranks = {each.run_id: each.rank_a for each in found.runs}
    assert ranks["twin"] == ranks["run 2"]


def test_swapping_the_sets_keeps_the_statistics_and_turns_the_sides() -> None:
    systems, a, b = random_world()
    one_way, other_way = ranked(systems, a, b, "nDCG@5"), ranked(systems, b, a, "nDCG@5")
    for name, estimate in one_way.statistics.items():
        assert estimate.value == pytest.approx(other_way.statistics[name].value)
        assert estimate.low == pytest.approx(other_way.statistics[name].low)
    assert (one_way.tau_b.least, one_way.tau_b.greatest) == (other_way.tau_b.least, other_way.tau_b.greatest)
    pairs = {(pair.run_a, pair.run_b): pair for pair in other_way.pairs}
    for pair in one_way.pairs:
        other = pairs[pair.run_a, pair.run_b]
        assert (pair.a, pair.p_a, pair.order_a) == (other.b, other.p_b, other.order_b)


def test_the_order_of_runs_and_rows_changes_nothing() -> None:
    systems, a, b = random_world()
    turned = of({turn: dict(reversed(items.items())) for turn, items in reversed(a.grades.items())})
    assert ranked(dict(reversed(systems.items())), turned, b, "nDCG@5") == ranked(systems, a, b, "nDCG@5")


def test_tau_lies_within_its_range() -> None:
    systems, a, b = random_world()
    found = ranked(systems, a, b, "P@5")
    value = found.statistics["tau_b"].value
    assert found.tau_b.least is not None and found.tau_b.greatest is not None and value is not None
    assert found.tau_b.least <= value <= found.tau_b.greatest
    assert found.tau_b.strict


def test_pairs_are_told_apart_by_each_set_on_its_own() -> None:
    # By A x is better on all 8 topics, so that of 2^8 signs 2 reach the sum; by B on 4 of 8, and y by more.
    a = of({f"{topic}_1": {"p": 3, "q": 1} for topic in range(8)})
    b = of({f"{topic}_1": {"p": 1, "q": 0} if topic < 4 else {"p": 0, "q": 3} for topic in range(8)})
    runs = {name: dict.fromkeys(a.grades, (item,)) for name, item in (("x", "p"), ("y", "q"))}
    (pair,) = ranked(runs, a, b).pairs
    assert (pair.order_a, pair.order_b, pair.swapped) == (1, -1, True)
    assert pair.p_a == 2 / 2**8
    assert pair.significant == (True, False)
    assert (pair.a.value, pair.b.value) == (2.0, (4 * 1 - 4 * 3) / 8)


def test_fewer_than_8_topics_are_not_tested() -> None:
    a = of({f"{topic}_1": {"p": 3, "q": 1} for topic in range(7)})
    runs = {name: dict.fromkeys(a.grades, (item,)) for name, item in (("x", "p"), ("y", "q"))}
    (pair,) = ranked(runs, a, a).pairs
    assert (pair.p_a, pair.tested, pair.significant) == (None, False, (False, False))


def test_a_run_without_a_score_has_no_rank() -> None:
    found = ranked({"x": run(t1="p"), "y": run(t1="q"), "z": run(t1="u", t2="u", t3="u")}, A, A)
    assert [(each.run_id, each.rank_a) for each in found.runs] == [("x", 1), ("y", 2), ("z", None)]
    assert found.statistics["tau_b"].n == 2
    assert found.holes[2].range_a == sets.ScoreRange(None, None)
    assert found.holes[2].neither == 3


def test_the_tables_say_what_they_show() -> None:
    runs = {"x": run(t1="p", t2="p"), "y": run(t1="q", t2="q")}
    grids = {measure: ranking_grids([ranked(runs, A, A, measure)]) for measure in (sets.MEAN, "nDCG@5")}
    assert [note.partition(":")[0] for note in grids[sets.MEAN]["runs"].notes] == ["a, b", "mean"]
    assert [note.partition(":")[0] for note in grids["nDCG@5"]["runs"].notes] == ["a, b"]
    assert grids[sets.MEAN]["swaps"].notes == ("No pair is in opposite order.",)
    assert {grids[sets.MEAN][name].names[1] for name in ("runs", "holes")} == {"run"}
    # Of several measures, each says its own.
    both = ranking_grids([ranked(runs, A, A, measure) for measure in ("nDCG@5", "P@5")])
    assert [note.split()[0] for note in both["tau_range"].notes] == ["nDCG@5", "P@5:"]


def test_one_run_has_no_ranking() -> None:
    found = ranked({"x": run(t1="p")}, A, A)
    assert found.statistics["tau_b"].reason == "fewer than 2 runs"
    assert (found.pairs, found.tau_b.reason) == ((), "fewer than 2 runs")
