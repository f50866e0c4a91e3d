"""Measures of runs by passage qrels, against arithmetic and against ir_measures itself."""

from math import log2

import pytest

from judge.errors import UsageError
from judge.pool.lists import read_relevance
from judge.pool.run_choice import DEFAULT_MEASURE, RunChoice
from judge.runs.formats import read_run
from judge.runs.measures import Measures, Ranking
from judge.runs.ranking import provenance_run, ranking
from judge.runs.records import Provenance, Response, Run, RunTurn
from tests.conftest import put

GRADES = {"1_1": {"a": 2, "b": 1, "c": 0, "n": -1}, "1_2": {"d": 1}}


def ranked(ids: str) -> list[tuple[str, float]]:
    return [(one, float(len(ids) - place)) for place, one in enumerate(ids)]


def mean(measure: str, grades: dict[str, dict[str, int]], *rankings: Ranking) -> list[float]:
    choice = RunChoice("above-median", grades, measure, None)
    return [choice.value(ranking) for ranking in rankings]


BEST = 2 / log2(2) + 1 / log2(3)
"""DCG of the ideal order of 1_1: a, b."""


@pytest.mark.parametrize(
    ("measure", "given", "expected"),
    [
        ("nDCG@5", {"1_1": "ab", "1_2": "d"}, 1.0),
        # b first: (1 / log2(2) + 2 / log2(3)) of the best; the unanswered turn counts 0.
        ("nDCG@5", {"1_1": "ba"}, (1 + 2 / log2(3)) / BEST / 2),
        # x has no grade and n a negative one: both gain nothing and take a place.
        ("nDCG@5", {"1_1": "xna", "1_2": "xd"}, (2 / log2(4) / BEST + 1 / log2(3)) / 2),
        # The sixth does not count.
        ("nDCG@5", {"1_1": "xyzwva"}, 0.0),
        ("nDCG@3", {"1_1": "xyza"}, 0.0),
        ("P@2", {"1_1": "ac", "1_2": "d"}, (1 / 2 + 1 / 2) / 2),
        ("P(rel=2)@2", {"1_1": "ab", "1_2": "d"}, (1 / 2 + 0) / 2),
        ("RR", {"1_1": "cxb", "1_2": "d"}, (1 / 3 + 1) / 2),
        ("AP", {"1_1": "axb", "1_2": "xd"}, ((1 + 2 / 3) / 2 + 1 / 2) / 2),
        ("R@1000", {"1_1": "b"}, 1 / 4),
        # A turn that nobody judged changes nothing.
        ("RR", {"1_1": "a", "1_2": "d", "7_7": "zzz"[:1]}, 1.0),
        ("RR", {"1_1": "", "1_2": "d"}, 1 / 2),
        ("RR", {}, 0.0),
    ],
)
def test_measures_by_hand(measure: str, given: dict[str, str], expected: float) -> None:
    (found,) = mean(measure, GRADES, {turn: ranked(ids) for turn, ids in given.items()})
    assert found == pytest.approx(expected, abs=1e-12)


def test_scores_that_are_one_in_single_precision_keep_their_order() -> None:
    close = (Provenance("a", 0.123456789, None, None), Provenance("z", 0.123456788, None, None))
    turn = RunTurn("1_1", (Response(1, "text", close),))
    run = Run("r", None, None, "ikat2024", "r.json", "d", True, (turn,))
    as_submitted = {"1_1": [(one.passage_id, one.score or 0.0) for one in close]}
    assert mean("RR", {"1_1": {"a": 1, "z": 0}}, as_submitted, ranking(run)) == [0.5, 1.0]


def test_one_preparation_measures_many_runs() -> None:
    rankings = [{"1_1": ranked(ids)} for ids in ("ab", "ba", "", "ab", "ba", "")]
    first, second, third, *again = mean(DEFAULT_MEASURE, GRADES, *rankings)
    assert again == [first, second, third]
    assert first > second > third == 0.0


@pytest.mark.parametrize(
    "measure",
    # trec_eval would end the process for a cutoff of 0.
    ["", "nope", "ndcg@5", "nDCG@", "nDCG@0", "nDCG@1001", "nDCG@1e9", "P@True", "P", "P(rel=0)@5", "nDCG(gains=3)@5",
     "nDCG(foo=3)@5", "nDCG@5, AP", "__import__('os')", "RBP(p=0.8)", "Rprec(rel=99999999999999999999)", "\0",
     "nDCG@5\n\x1b[1m!", "(" * 300],
)  # fmt: skip
def test_measures_that_cannot_be_computed_are_refused(measure: str) -> None:
    with pytest.raises(UsageError) as caught:
        Measures([measure], GRADES)
    assert str(caught.value).isprintable()


# Real data


IKAT, CAST = "ikat/2024/sample_run.json", "cast2022/sample_run.json"
QRELS = {IKAT: "ikat/qrels/2024_test_qrels.trec", CAST: "cast2022/cast2022.qrel"}


@pytest.mark.parametrize(
    ("run", "measure"),
    [(IKAT, "nDCG@5"), (CAST, "nDCG@3"), (IKAT, "P@20"), (CAST, "AP(rel=2)"), (IKAT, "RR"), (CAST, "nDCG")],
)
def test_the_files_give_the_same_in_ir_measures(shared, tmp_path, run: str, measure: str) -> None:
    import ir_measures

    qrels = QRELS[run]
    read = read_run(shared / run).run
    assert read
    (found,) = mean(measure, read_relevance(shared / qrels).grades, ranking(read))
    written = put(tmp_path / "run", provenance_run(read))
    parsed = ir_measures.parse_measure(measure)
    expected = ir_measures.calc_aggregate(
        [parsed], ir_measures.read_trec_qrels(str(shared / qrels)), ir_measures.read_trec_run(str(written))
    )
    assert found == pytest.approx(expected[parsed], abs=1e-12)
    assert 0 < found < 1


def test_ids_that_end_at_a_nul_for_trec_eval_are_told_apart() -> None:
    # Two ids of a turn that are equal up to their NUL would end the process.
    grades = {"1_1": {"a\0b": 0, "a": 1, "a\0c": 0, "\ud800": 0}, "1_1\0": {"z": 1}}
    ranking = {"1_1": [("a\0c", 4.0), ("\ud800", 3.0), ("a\0b", 2.0), ("a", 1.0)], "1_1\0": [("z", 1.0)]}
    assert mean("RR", grades, ranking) == [(1 / 4 + 1) / 2]
