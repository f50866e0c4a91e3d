import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.resampling import topic_draws
from judge.stats.selection import nested_folds, out_of_bag
from judge.stats.tables import Undefined

GRADES = (0, 1, 2)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def candidates(seed: int, T: int, noises: list[float], turns: int = 7) -> NDArray[np.int64]:
    """Tables (m x T x 3 x 3) of candidates that misread the truth by so much."""
    source = rng(seed)
    truth = source.normal(size=(T, turns))
    human = np.digitize(truth, [-0.5, 0.5])
    tables = np.zeros((len(noises), T, 3, 3), dtype=np.int64)
    for table, noise in zip(tables, noises, strict=True):
        judge = np.digitize(truth + noise * source.normal(size=truth.shape), [-0.5, 0.5])
        np.add.at(table, (np.arange(T)[:, None], human, judge), 1)
    return tables


def right(counts: list[list[int]], of: int) -> NDArray[np.int64]:
    """Candidates' tables with so many of a topic's items right, the rest wrong."""
    return np.array([[[[count, of - count], [0, 0]] for count in row] for row in counts])


def value(C: NDArray[np.int64], name: str = "wkappa") -> float:
    return float(STATISTICS[name](C[None], GRADES)[0])


def test_leave_one_topic_out_worked_by_hand() -> None:
    # Of 4 items a topic, a has 4 0 2 right, b has 0 4 1. Without topic 1: a 2, b 5, b is chosen and has 0 right there;
    # without 2: a 6, b 1, a has 0; without 3: 4 and 4, the first is chosen, a has 2. Together 2 of 12; all of a: 6.
    tables = right([[4, 0, 2], [0, 4, 1]], of=4)
    assert nested_folds(tables, "percent", (0, 1), rng(), folds=3) == pytest.approx(2 / 12)
    assert nested_folds(tables, "percent", (0, 1), rng(), folds=5) == pytest.approx(2 / 12)


def test_small_errors_and_biases_near_0_are_chosen() -> None:
    # mae: a misses by 1 on every item, b on none. bias: a -1, b 0, so the larger number is not the better one.
    a = np.zeros((4, 3, 3), dtype=np.int64)
    a[:, 1, 0] = 5
    b = np.zeros((4, 3, 3), dtype=np.int64)
    b[:, 1, 1] = 5
    c = np.zeros((4, 3, 3), dtype=np.int64)
    c[:, 1, 2] = 5
    for name in ("mae", "bias"):
        assert nested_folds(np.stack([a, b, c]), name, GRADES, rng()) == 0


def test_a_single_candidate_is_scored_on_all_topics() -> None:
    tables = candidates(1, 12, [0.7])
    assert nested_folds(tables, "wkappa", GRADES, rng()) == pytest.approx(value(tables[0].sum(axis=0)))


def test_a_candidate_that_is_best_everywhere_has_no_optimism() -> None:
    tables = candidates(2, 15, [3.0, 0.1, 3.0])
    assert nested_folds(tables, "wkappa", GRADES, rng()) == pytest.approx(value(tables[1].sum(axis=0)))


def test_folds_equal_the_loop_written_out() -> None:
    tables = candidates(3, 11, [0.8, 0.8, 0.9])
    fold = rng(5).permuted(np.tile(np.arange(11) % 4, (3, 1)), axis=1)
    plain = []
    for row in fold:
        pooled = np.zeros((3, 3), dtype=np.int64)
        for f in range(4):
            best = max(range(3), key=lambda j: value(tables[j, row != f].sum(axis=0)))
            pooled += tables[best, row == f].sum(axis=0)
        plain.append(value(pooled))
    assert nested_folds(tables, "wkappa", GRADES, rng(5), folds=4, repeats=3) == pytest.approx(np.mean(plain))


def test_best_of_equals_is_worth_less_than_it_seems() -> None:
    seeming, nested, out = [], [], []
    for seed in range(30):
        tables = candidates(seed, 12, [0.8] * 10)
        seeming.append(max(value(table.sum(axis=0)) for table in tables))
        nested.append(nested_folds(tables, "wkappa", GRADES, rng(seed), repeats=5))
        out.append(out_of_bag(tables, "wkappa", GRADES, rng(seed), replicates=100).value)
    truth = value(candidates(0, 20_000, [0.8])[0].sum(axis=0))
    assert np.mean(seeming) > truth + 0.05
    assert np.mean(nested) == pytest.approx(truth, abs=0.03)
    assert np.mean(out) == pytest.approx(truth, abs=0.03)


def test_out_of_bag_equals_the_loop_written_out() -> None:
    tables = candidates(4, 9, [0.8, 0.8, 0.9])
    found = out_of_bag(tables, "wkappa", GRADES, rng(5), replicates=200, level=0.9)
    plain = []
    for row in topic_draws(9, 200, rng(5)):
        best = max(range(3), key=lambda j: value(np.tensordot(row, tables[j], 1)))
        plain.append(value(tables[best, row == 0].sum(axis=0)))
    assert found.value == pytest.approx(np.mean(plain))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(plain, [0.05, 0.95])))
    assert (found.n, found.topics, found.reason) == (63, 9, None)


def test_topics_without_items_change_nothing() -> None:
    tables = candidates(4, 9, [0.8, 0.9])
    padded = np.insert(tables, [0, 4], 0, axis=1)
    assert out_of_bag(padded, "wkappa", GRADES, rng()) == out_of_bag(tables, "wkappa", GRADES, rng())
    assert nested_folds(padded, "wkappa", GRADES, rng()) == nested_folds(tables, "wkappa", GRADES, rng())


def test_too_few_topics() -> None:
    tables = candidates(4, 4, [0.8, 0.9])
    assert nested_folds(tables[:, :1], "wkappa", GRADES, rng()) == Undefined("fewer than 2 topics")
    assert out_of_bag(tables, "wkappa", GRADES, rng()) == Estimate(None, None, None, 28, 4, "fewer than 5 topics")


def test_where_the_statistic_is_undefined_so_is_the_worth_of_choosing() -> None:
    one_grade = np.zeros((2, 6, 3, 3), dtype=np.int64)
    one_grade[:, :, 1, 1] = 3
    assert nested_folds(one_grade, "kappa", GRADES, rng()) == Undefined("kappa is undefined on folds of the topics")
    assert out_of_bag(one_grade, "kappa", GRADES, rng()) == Estimate(
        None, None, None, 18, 6, "kappa is undefined on most resamples of the topics"
    )


def test_where_nothing_varies_there_is_no_interval() -> None:
    perfect = np.zeros((2, 8, 3, 3), dtype=np.int64)
    perfect[:, :, [0, 2], [0, 2]] = 2
    assert out_of_bag(perfect, "kappa", GRADES, rng()) == Estimate(1, None, None, 32, 8, "perfect agreement")
    alike = perfect.copy()
    alike[:, :, 0, 1] = 1
    found = out_of_bag(alike, "kappa", GRADES, rng())
    assert (found.low, found.high, found.reason) == (None, None, "no variation between topics")
    assert found.value == pytest.approx(value(alike[0, 0], "kappa"))
    # A mean distance of 1 is not agreement.
    apart = np.zeros((2, 8, 3, 3), dtype=np.int64)
    apart[:, :, 0, 1] = 1
    assert out_of_bag(apart, "mae", GRADES, rng()).reason == "no variation between topics"


def test_two_topics_with_all_the_variation_are_too_few() -> None:
    tables = np.zeros((2, 8, 3, 3), dtype=np.int64)
    tables[:, :, 0, 0] = 9
    tables[:, :2] = np.eye(3, dtype=np.int64) * 3 + 1
    found = out_of_bag(tables, "kappa", GRADES, rng())
    # Both must be drawn for a resample to lack none, and one left out to score it.
    assert found.low is None
    assert found.reason == "kappa is undefined on most resamples of the topics"
    # Of five topics more than half of the scores are defined, but (3/5)^5 / (1 - 5!/5^5) = .081 of the samples that
    # are chosen on are not.
    few = out_of_bag(tables[:, :5], "kappa", GRADES, rng(), replicates=20_000)
    assert (few.low, few.reason) == (None, "undefined on 8% of resampled topics")
    tables[:, :3] = np.eye(3, dtype=np.int64) * 3 + 1
    assert out_of_bag(tables, "kappa", GRADES, rng()).low is not None


def test_a_choice_by_one_set_of_tables_is_scored_on_another() -> None:
    tables = candidates(3, 12, [0.0, 0.9])
    for found in (
        nested_folds(tables, "wkappa", GRADES, rng(), choose_by=tables[::-1]),
        nested_folds(tables[1:], "wkappa", GRADES, rng()),
    ):
        assert found == pytest.approx(value(tables[1].sum(axis=0)))
    one, other = (
        out_of_bag(of, "wkappa", GRADES, rng(), choose_by=by) for of, by in ((tables, tables[::-1]), (tables[1:], None))
    )
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)


def test_an_undefined_candidate_is_not_chosen() -> None:
    # The first candidate graded nothing.
    tables = candidates(8, 10, [0.5, 0.7])
    tables[0] = 0
    assert nested_folds(tables, "wkappa", GRADES, rng()) == pytest.approx(value(tables[1].sum(axis=0)))


@given(st.integers(0, 1000), st.integers(5, 12), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_interval_is_ordered_and_holds_its_mean(seed: int, T: int, m: int) -> None:
    found = out_of_bag(candidates(seed, T, [0.8] * m), "percent", GRADES, rng(seed), replicates=100)
    assert 0 <= found.low <= found.value <= found.high <= 1
