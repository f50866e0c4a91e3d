"""Measures of rankings: arithmetic by hand, pytrec_eval as the oracle on real runs, and what must change nothing."""

from collections.abc import Mapping, Sequence
from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.extra.evaluate import measured
from judge.extra.evaluate.breakdown import turn_facts
from judge.extra.evaluate.intake import RankedRun, passage_ranking, ranked_runs
from judge.pool.lists import read_grades
from judge.records import Estimate

GRADES = {"1_1": {"a": 2, "b": 1, "c": 0}, "1_2": {"d": 1, "e": 1}, "2_1": {"f": 0}}


def ranked(run_id: str, **turns: str) -> RankedRun:
    ranking = {
        name.removeprefix("t"): [(item, float(len(items) - place)) for place, item in enumerate(items)]
        for name, items in turns.items()
    }
    return RankedRun(run_id, f"{run_id}.run", ranking)


def evaluated(
    *runs: RankedRun, asked: measured.MeasureChoice | None = None, grades: Mapping[str, Mapping[str, int]] = GRADES
) -> measured.Evaluation:
    evaluator = measured.Evaluator(
        "some.qrels", grades, asked or measured.ask(measured.PASSAGE_MEASURES, measured.MAIN_OF_PASSAGES)
    )
    for run in runs:
        assert evaluator.problem(run) is None
        evaluator.add(run)
    return evaluator.result()


def values(evaluation: measured.Evaluation) -> dict[tuple[str, str], float | None]:
    return {(score.run_id, score.criterion): score.mean.value for score in evaluation.scores}


IDEAL = 2 / log2(2) + 1 / log2(3)
ONE = ranked("one", t1_1="bxa", t1_2="xe", t9_9="z")
"""The first turn: DCG 1/log2(2) + 2/log2(4) = 2. The second: 1/log2(3) of 1/log2(2) + 1/log2(3). 9_9 is not graded."""


@pytest.mark.parametrize(("measure", "first", "second"), [
    ("nDCG@5", 2 / IDEAL, (1 / log2(3)) / (1 + 1 / log2(3))),
    ("nDCG@1", (1 / log2(2)) / 2, 0.0),
    ("P@10", 2 / 10, 1 / 10),
    ("R@10", 2 / 2, 1 / 2),
    ("AP", (1 / 1 + 2 / 3) / 2, (1 / 2) / 2),
    ("RR", 1.0, 1 / 2),
    ("Judged@5", 2 / 3, 1 / 2),
    ("P(rel=2)@10", 1 / 10, 0.0),
    ("SetP", 2 / 3, 1 / 2),
    ("SetF", 2 * (2 / 3) * 1 / (2 / 3 + 1), 1 / 2),
])  # fmt: skip
def test_values_and_means_by_hand(measure: str, first: float, second: float) -> None:
    (of_all,) = (score for score in evaluated(ONE, asked=measured.ask([], measure)).scores)
    assert of_all.values == pytest.approx({"1_1": first, "1_2": second, "2_1": 0.0})
    assert of_all.mean.value == pytest.approx((first + second) / 3)
    (of_answered,) = (score for score in evaluated(ONE, asked=measured.ask([], measure, over="answered")).scores)
    assert of_answered.values == pytest.approx({"1_1": first, "1_2": second})
    assert of_answered.mean.value == pytest.approx((first + second) / 2)


def test_the_lowest_relevant_grade_is_that_of_trec_eval() -> None:
    asked = measured.ask(["P@10", "nDCG@5", "RR(rel=1)"], "AP", relevant=2)
    assert asked.measures == ("P(rel=2)@10", "nDCG@5", "RR", "AP(rel=2)")
    found = values(evaluated(ONE, asked=asked))
    # Only a is relevant, at rank 3 of 1_1; 1_2 has no relevant passage at all.
    assert found["one", "P(rel=2)@10"] == pytest.approx((1 / 10) / 3)
    assert found["one", "AP(rel=2)"] == pytest.approx((1 / 3) / 3)
    assert found["one", "RR"] == pytest.approx((1 + 1 / 2) / 3)


def test_the_table_counts_what_is_passed_over() -> None:
    grid = measured.means(evaluated(ONE, ranked("none", t1_1="x", t1_2="")))
    assert grid.names[:4] == ("run", "answered", "nDCG@5", "letters")
    assert [line[:2] for line in grid] == [("one", 2), ("none", 1)]
    both = [evaluated(ONE, asked=measured.ask(["RR"], "RR", over=over)) for over in ("qrels", "answered")]
    assert [measured.means(found).names[-1] for found in both] == ["over_answered", "over_qrels"]
    conventions = [(found.main[0].mean.value, next(iter(found.others.values()))) for found in both]
    assert conventions == [(1.5 / 3, 1.5 / 2), (1.5 / 2, 1.5 / 3)]
    assert grid.title == "Passages by some.qrels: 3 turns, over all turns of the qrels, unanswered ones 0"
    barren = "1 turn of the qrels has no relevant passage: what counts relevant ones is 0 there, as in trec_eval."
    assert barren in grid.notes
    assert "Turns that the qrels lack count nowhere: 1 run has 1." in grid.notes


@pytest.mark.timeout(60, method="thread")
def test_a_turn_whose_grades_are_all_below_0_has_nothing_relevant() -> None:
    """trec_eval hangs or ends the process there, for good."""
    grades = {"1_1": {"a": -1, "b": -2}, "1_2": {"d": 1, "x": -1}}
    found = evaluated(
        ONE, asked=measured.ask(["P@10", "nDCG", "AP", "Bpref", "infAP", "Judged@5"], "RR"), grades=grades
    )
    of_turn = {score.criterion: score.values["1_1"] for score in found.scores}
    assert of_turn == dict.fromkeys(found.asked.measures, 0.0) | {"Judged@5": 2 / 3}
    assert found.barren == 1


def test_a_measure_counts_once_in_the_spelling_of_ir_measures() -> None:
    assert measured.ask(["nDCG@5", "AP", "MAP", "P(rel=1)@3"], "NDCG@5").measures == ("nDCG@5", "AP", "P@3")


@pytest.mark.parametrize(("run", "message"), [
    (ranked("r", t7_1="a", t7_2="b", t7_3="c", t7_10="d"), "it has 7_1, 7_2, 7_3, …, the qrels 1_1, 1_2, 2_1"),
    (ranked("r", t1_1=""), "names no passage for any turn"),
])  # fmt: skip
def test_a_run_without_a_turn_of_the_grades_is_a_problem(run: RankedRun, message: str) -> None:
    problem = measured.Evaluator("some.qrels", GRADES, measured.ask(["AP"], "RR")).problem(run)
    assert message in problem.message


def test_a_run_of_another_year_is_a_problem_though_ids_are_equal() -> None:
    grades = {f"{topic}_{n}": {"a": 1} for topic in ("9-1", "10-1", "11-1") for n in (1, 2)}  # of 2023
    later = [f"9-1_{n}" for n in range(1, 12)] + ["1-1_1"]  # of 2025
    run = RankedRun("r", "r.run", {turn: [("a", 1.0)] for turn in later}, years=frozenset({2025}))
    problem = measured.Evaluator("2023.qrels", grades, measured.ask(["AP"], "RR")).problem(run)
    assert problem.message.startswith("has turns of 2025, 2023.qrels those of 2023")


def test_assessments_stand_side_by_side() -> None:
    asked = measured.ask(["RR"], "RR")
    other = evaluated(ONE, asked=asked, grades={"1_2": {"e": 1}})
    grid = measured.side_by_side([evaluated(ONE, asked=asked), other])
    assert grid.names == ("run", "some.qrels", "some.qrels")
    (line,) = grid
    assert [cell.value for cell in line if isinstance(cell, Estimate)] == [(1 + 1 / 2) / 3, 1 / 2]


def test_tables_of_depth_and_ptkb_need_facts() -> None:
    found = evaluated(ONE)
    assert measured.ranking_tables([found], turn_facts(GRADES), "ptkb") == ()
    assert measured.ranking_tables([found], turn_facts(["132_1-1"]), "depth") == ()
    (depths,) = measured.ranking_tables([found], turn_facts(GRADES), "depth")
    assert [line[1:3] for line in depths] == [(1, 2), (2, 1)]


def test_every_turn_of_every_run_is_written() -> None:
    text = measured.turns_tsv([evaluated(ONE, asked=measured.ask(["RR"], "RR"))])
    assert text == (
        "qrels\trun\tturn\tRR\n"
        "some.qrels\tone\t1_1\t1.000000\nsome.qrels\tone\t1_2\t0.500000\nsome.qrels\tone\t2_1\t0.000000\n"
    )


def test_names_are_those_of_trec_eval_where_it_has_one() -> None:
    measures = "nDCG P@20 R@1000 AP AP@1000 RR SetF Judged@5 P(rel=3)@5 P(rel=1)@5".split()
    found = evaluated(ONE, asked=measured.ask(measures, "nDCG@5", relevant=2))
    names = "ndcg P_20 recall_1000 map map_cut_1000 recip_rank set_F Judged@5 P(rel=3)@5 P@5 ndcg_cut_5".split()
    assert [score.criterion for score in measured.tool_scores([found], trec_eval=True)] == names


# What changes nothing, and what must hold

ITEMS = st.lists(st.sampled_from("abcdefghij"), unique=True, min_size=1)
RELEVANT = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 4), min_size=1).filter(
    lambda rows: max(rows.values()) > 0
)


@given(st.dictionaries(st.sampled_from(["1_1", "1_2", "2_1"]), RELEVANT, min_size=1))
def test_the_ideal_run_has_the_greatest_value(grades: dict[str, dict[str, int]]) -> None:
    ideal = {turn: sorted(rows, key=lambda item: -rows[item]) for turn, rows in grades.items()}
    run = ranked("ideal", **{f"t{turn}": "".join(items) for turn, items in ideal.items()})
    found = values(
        evaluated(
            run, grades=grades, asked=measured.ask(["nDCG@3", "nDCG", "R@1000", "AP", "RR", "Judged@5"], "nDCG@5")
        )
    )
    assert found == pytest.approx(dict.fromkeys(found, 1.0))


@given(st.permutations(range(4)), st.lists(ITEMS, min_size=4, max_size=4))
def test_the_order_of_runs_changes_nothing(order: Sequence[int], items: list[list[str]]) -> None:
    runs = [ranked(f"r{k}", t1_1="".join(each), t1_2="".join(each[::-1])) for k, each in enumerate(items)]
    asked = measured.ask(["RR"], "nDCG@5")
    assert evaluated(*runs, asked=asked) == evaluated(*(runs[k] for k in order), asked=asked)


@given(ITEMS, st.randoms(use_true_random=False), st.integers(1, 3))
def test_the_order_of_lines_and_items_named_again_change_nothing(tmp_path_factory, items, random, times) -> None:
    file = tmp_path_factory.mktemp("runs") / "a.run"
    lines = [f"1_1 Q0 {item} {k} {len(items) - k} a\n" for k, item in enumerate(items)]
    again = [f"1_1 Q0 {items[0]} 9 {0.5 - k} a\n" for k in range(times - 1)]
    shuffled = [*lines, *again]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    file.write_text("".join(shuffled), encoding="utf-8")
    (run,) = ranked_runs(file, passage_ranking, [])
    assert evaluated(run).scores == evaluated(ranked("a", t1_1="".join(items))).scores


# Real data

TREC_EVAL = {*"ndcg_cut_3 ndcg_cut_5 ndcg P_10 P_20 recall_10 recall_20 recall_1000 map recip_rank".split()}


@pytest.mark.parametrize(("run", "qrels"), [
    ("ikat/2024/sample_run.json", "ikat/qrels/2024_test_qrels.trec"),
    ("ikat/2023/sample_run.json", "ikat/qrels/2023_test_qrels.trec"),
    ("cast2022/sample_run.json", "cast2022/cast2022.qrel"),
])  # fmt: skip
@pytest.mark.parametrize("relevant", [1, 2])
def test_every_value_is_that_of_pytrec_eval(shared: Path, run: str, qrels: str, relevant: int) -> None:
    import pytrec_eval

    grades = read_grades(shared / qrels)
    (submitted,) = ranked_runs(shared / run, passage_ranking, [])
    asked = measured.ask(measured.PASSAGE_MEASURES, measured.MAIN_OF_PASSAGES, relevant=relevant)
    found = measured.tool_scores([evaluated(submitted, asked=asked, grades=grades)], trec_eval=True)
    evaluator = pytrec_eval.RelevanceEvaluator(grades, TREC_EVAL, relevance_level=relevant)
    expected = evaluator.evaluate({turn: dict(items) for turn, items in submitted.ranking.items() if items})
    assert {score.criterion for score in found} == TREC_EVAL | {"Judged@5", "Judged@20"}
    for score in found:
        if score.criterion in TREC_EVAL:
            of_turns = {turn: expected.get(turn, {}).get(score.criterion, 0.0) for turn in grades}
            assert score.values == of_turns, score.criterion
            assert f"{score.mean.value:.10f}" == f"{sum(of_turns.values()) / len(grades):.10f}"
        else:
            k = int(score.criterion.partition("@")[2])
            tops = {turn: [item for item, _ in submitted.ranking.get(turn, [])][:k] for turn in grades}
            judged = {turn: sum(item in grades[turn] for item in top) / max(len(top), 1) for turn, top in tops.items()}
            assert score.values == judged
