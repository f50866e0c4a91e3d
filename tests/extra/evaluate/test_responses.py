from collections.abc import Mapping

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import P

from judge.errors import InputError
from judge.extra.evaluate import Over, graded
from judge.extra.evaluate.breakdown import TABLES, turn_facts
from judge.io.ids import TrecRun
from judge.pool.records import Pool
from judge.records import Scale
from tests.build import pooled, scale

Grades = Mapping[str, Mapping[str, int]]


def qrels(
    grades: Grades, of: Scale | None = None, threshold: int | None = None, name: str = "groundedness"
) -> graded.ResponseQrels:
    return graded.ResponseQrels(name, "a.qrel", {turn: dict(rows) for turn, rows in grades.items()}, of, threshold)


GRADES = {"1_1": {"R1": 3, "R2": 1}, "1_2": {"R3": 2}, "2_1": {"R4": 1}, "3_1": {"R5": 2, "R6": 0}}
RUN = {"a": {"1_1": "R1", "1_2": "R9", "2_1": "R4", "9_1": "R7"}}


def value(run: graded.ScoredRun, measure: graded.ResponseMeasure, over: Over) -> float | None:
    return run.scores[measure, over].mean.value


def test_both_conventions_and_the_worst_grade_are_counted_apart() -> None:
    (run,) = graded.scored_runs(RUN, qrels(GRADES, scale()))
    assert (len(run.first), run.unjudged, run.outside) == (3, 1, ("9_1",))
    # Grades 3, none, 1, and one turn unanswered.
    assert value(run, "mean", "qrels") == (3 + 0 + 1 + 0) / 4
    assert value(run, "mean", "answered") == (3 + 0 + 1) / 3
    assert value(run, "mean", "worst") == (3 + 0 + 1 + 0) / 4
    assert value(run, "positive", "qrels") == 1 / 4
    assert value(run, "positive", "answered") == 1 / 3


def test_a_response_that_nobody_judged_is_in_no_comparison() -> None:
    """Of ten topics, b has the grade of a on eight and no grade on one, and leaves one unanswered, which counts 0."""
    runs = {name: {f"{topic}_1": f"{name}{topic}" for topic in range(10 if name == "a" else 9)} for name in "ab"}
    grades = {f"{topic}_1": {f"a{topic}": 2, **({f"b{topic}": 2} if topic < 8 else {})} for topic in range(10)}
    (pair,) = graded.evaluated_criterion(runs, qrels(grades, scale())).compared["mean"].pairs
    assert (pair.difference.n, pair.difference.value) == (9, pytest.approx(2 / 9))
    assert (pair.at_worst.difference.n, pair.at_worst.difference.value) == (10, pytest.approx(2 * 2 / 10))


def test_where_lower_is_better_the_worst_grade_is_the_highest() -> None:
    of = scale(polarity="lower", positive=(0, 1))
    evaluated = graded.evaluated_criterion(RUN, qrels(GRADES, of))
    (run,) = evaluated.runs
    assert value(run, "mean", "qrels") == (3 + 0 + 1 + 0) / 4
    assert value(run, "mean", "worst") == (3 + 3 + 1 + 3) / 4
    assert value(run, "positive", "worst") == value(run, "positive", "qrels") == 1 / 4
    assert evaluated.over == "worst"
    notes = graded.response_table([evaluated], turn_facts(GRADES), "run").notes
    assert any("over_qrels rewards a run for what it does not answer" in note for note in notes)
    assert any("counts 0, as in trec_eval, although lower is better" in note for note in notes)


def test_a_scale_above_zero_has_a_worst_grade_of_its_own() -> None:
    grades = {"1_1": {"R1": 4}, "1_2": {"R3": 2}}
    (scored,) = graded.scored_runs({"a": {"1_1": "R1"}}, qrels(grades, scale((1, 2, 3, 4), positive=(3, 4))))
    assert value(scored, "mean", "qrels") == (4 + 0) / 2
    assert value(scored, "mean", "worst") == (4 + 1) / 2


def test_without_a_scale_there_is_a_mean_and_by_a_threshold_a_share() -> None:
    (run,) = graded.scored_runs(RUN, qrels(GRADES))
    assert run.scores.keys() == {("mean", "qrels"), ("mean", "answered")}
    (run,) = graded.scored_runs(RUN, qrels(GRADES, threshold=1))
    assert value(run, "positive", "qrels") == 2 / 4


@pytest.mark.parametrize(("of", "threshold", "level"), [
    (scale(), None, 2),
    (scale(), 3, 3),
    (scale(positive=(3,)), None, 3),
    (scale(positive=(2,)), None, None),
    (scale((0, 1), positive=(0, 1)), None, None),
    (scale((0, 1), polarity="lower", positive=(0,)), None, None),
    (scale((1, 2), polarity="lower", positive=(1,)), 1, None),
    (None, 2, 2),
    (None, 0, None),
    (None, 4, 4),
    (None, None, None),
])  # fmt: skip
def test_a_level_of_trec_eval_is_claimed_only_where_it_tells_the_positive_grades(of, threshold, level) -> None:
    assert qrels(GRADES, of, threshold).level == level
    assert (f"trec_eval -l {level} " in graded.described(qrels(GRADES, of, threshold))) == (level is not None)


def test_a_threshold_counts_towards_the_good_end() -> None:
    assert qrels(GRADES, scale(), 3).positive == {3}
    assert qrels(GRADES, scale(polarity="lower"), 1).positive == {0, 1}
    assert qrels(GRADES, None, 2).positive == {2, 3}


IDS = st.sampled_from(["R1", "R2", "R10", "r1", "Ré"])
SCORES = st.sampled_from([1.0, 1.0 + 1e-9, 2.0, -1.0, 0.0, 1e300, 1e38, 16777216.0, 16777217.0])
TURNS = st.sampled_from([f"{topic}_{turn}" for topic in (1, 2, 3, 4) for turn in (1, 2)])
RUNS = st.dictionaries(TURNS, st.dictionaries(IDS, SCORES, min_size=1), min_size=1)
QRELS = st.dictionaries(TURNS, st.dictionaries(IDS, st.integers(0, 3), min_size=1), min_size=1)


@given(run=RUNS, grades=QRELS, level=st.integers(1, 3))
def test_the_share_is_that_of_ir_measures_and_of_trec_eval(run, grades, level) -> None:
    of = qrels(grades, threshold=level)
    ours = graded.first_of_lines(TrecRun("a", run))
    if not any(ours[turn] in grades[turn] for turn in ours.keys() & grades.keys()):
        with pytest.raises(InputError):
            graded.scored_runs({"a": ours}, of)
        return
    (scored,) = graded.scored_runs({"a": ours}, of)
    measure = P(rel=level) @ 1
    assert value(scored, "positive", "qrels") == ir_measures.calc_aggregate([measure], grades, run)[measure]
    per_turn = {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], grades, run)}
    assert scored.scores["positive", "qrels"].values == {turn: per_turn.get(turn, 0.0) for turn in grades}
    evaluator = pytrec_eval.RelevanceEvaluator(grades, {"P.1"}, relevance_level=level)
    answered = {turn: values["P_1"] for turn, values in evaluator.evaluate(run).items()}
    assert scored.scores["positive", "answered"].values == answered
    assert value(scored, "positive", "answered") == pytest.approx(sum(answered.values()) / len(answered), abs=0)


def test_runs_without_a_graded_response_are_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"a.qrel: no turn of these qrels is answered by any run \(they answer 9_1\)"):
        graded.scored_runs({"a": {"9_1": "R1"}}, qrels(GRADES))
    with pytest.raises(InputError, match=r"none of the runs' first responses has a grade there \(R9 in turn 1_1"):
        graded.scored_runs({"a": {"1_1": "R9"}}, qrels(GRADES))
    with pytest.raises(InputError, match="they answer nothing"):
        graded.scored_runs({"a": {}}, qrels(GRADES))


def test_a_run_beside_the_qrels_is_a_counted_row_and_no_silent_zero() -> None:
    runs = RUN | {"none": {}, "strange": {"9_1": "R1"}}
    evaluated = graded.evaluated_criterion(runs, qrels(GRADES, scale()))
    grid = graded.response_table([evaluated], turn_facts(GRADES), "run")
    (line,) = [line for line in grid if line[1:3] == ("mean", "strange")]
    assert line[3].value == 0.0 and line[4].value is None
    assert line[5:8] == (4, 0, 0)


def test_a_pool_has_its_first_responses_and_runs_of_which_nothing_was_pooled() -> None:
    pool = Pool((pooled("R00001", "1_1", ("a", 2)), pooled("R00002", "1_1", ("a", 1), ("b", 3))), {}, ())
    assert graded.runs_of_pool(pool) == {"a": {"1_1": "R00002"}, "b": {"1_1": "R00002"}}


def test_the_table_names_both_conventions_and_the_tables_have_every_criterion() -> None:
    made = [graded.evaluated_criterion(RUN, qrels(GRADES, scale(), name=name)) for name in ("relevance", "naturalness")]
    facts = turn_facts(GRADES)
    grid = graded.response_table(made, facts, "run")
    assert grid.names == (
        *("criterion", "measure", "run", "over_qrels", "over_answered", "turns", "answered", "unjudged", "letters"),
    )
    assert [line[:2] for line in grid] == [
        *(("relevance", "mean"), ("relevance", "positive"), ("naturalness", "mean"), ("naturalness", "positive"))
    ]
    for table in TABLES:
        if table != "ptkb":
            assert graded.response_table(made, facts, table).names[:2] == ("criterion", "measure")


def test_every_turn_of_a_run_has_a_line_with_what_became_of_it() -> None:
    evaluated = graded.evaluated_criterion(RUN, qrels(GRADES, scale()))
    lines = "".join(graded.turn_lines([evaluated], turn_facts(GRADES))).splitlines()
    assert lines[0].split("\t") == graded.TURN_COLUMNS
    assert [line.split("\t") for line in lines[1:]] == [
        ["groundedness", "a", "1_1", "1", "1", "", "R1", "graded", "3", "true"],
        ["groundedness", "a", "1_2", "1", "2", "", "R9", "unjudged", "", ""],
        ["groundedness", "a", "2_1", "2", "1", "", "R4", "graded", "1", "false"],
        ["groundedness", "a", "3_1", "3", "1", "", "", "unanswered", "", ""],
    ]
