import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.comparison import after_choice, nested_folds, simultaneous_quantile
from judge.stats.resampling import resampled
from judge.stats.tables import Undefined

GRADES = (0, 1, 2)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def candidates(seed: int, T: int, noises: list[float], turns: int = 7) -> NDArray[np.int64]:
    """Tables (m x T x 3 x 3) of candidates that misread the truth by so much."""
    source = rng(seed)
    return misread(source, source.normal(size=(T, turns)), noises)


def misread(source: np.random.Generator, truth: NDArray[np.float64], noises: list[float]) -> NDArray[np.int64]:
    """Tables of judges that see the true values of T topics with so much noise."""
    T, human = len(truth), np.digitize(truth, [-0.5, 0.5])
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


def test_the_lower_end_of_the_chosen_holds_for_all_at_once() -> None:
    tables = candidates(4, 12, [0.8] * 6)
    chosen = int(np.argmax([value(table.sum(axis=0)) for table in tables]))
    found = after_choice(tables, chosen, "wkappa", GRADES, rng(5))
    plain = resampled("wkappa", tables[chosen], GRADES, rng(5).spawn(2)[0]).estimate
    assert (found.value, found.high, found.n, found.topics) == (plain.value, plain.high, 84, 12)
    below = simultaneous_quantile(tables, chosen, "wkappa", GRADES, rng(5).spawn(2)[1])
    error = (math.atanh(plain.value) - math.atanh(plain.low)) / scipy.stats.t.ppf(0.975, 11)
    assert found.low == pytest.approx(math.tanh(math.atanh(plain.value) - below * error))
    assert found.low < plain.low


def test_candidates_that_never_agree_by_chance_need_the_quantile_of_as_many_t_tests() -> None:
    # Each candidate errs on a topic of its own, so jackknifed values hardly depend on each other.
    m = 8
    apart = np.zeros((m, m + 16, 2, 2), dtype=np.int64)
    apart[:, :, 0, 0] = apart[:, :, 1, 1] = 5
    apart[np.arange(m), np.arange(m), 0, 1] = 5
    df, tail = m + 16 - 1, 0.0125
    independent = scipy.stats.t.ppf((1 - tail) ** (1 / m), df)
    # Sizes differ by 5 of 10 in one topic; G* is 23.8 of 24.
    assert simultaneous_quantile(apart, 0, "percent", (0, 1), rng()) == pytest.approx(independent, rel=0.05)


def test_the_same_candidate_again_adds_only_its_own_error() -> None:
    tables = candidates(4, 20, [0.8])
    alone = simultaneous_quantile(tables, 0, "wkappa", GRADES, rng())
    copies = simultaneous_quantile(np.repeat(tables, 8, axis=0), 0, "wkappa", GRADES, rng())
    others = simultaneous_quantile(candidates(4, 20, [0.8] * 8), 0, "wkappa", GRADES, rng())
    assert alone == pytest.approx(scipy.stats.t.ppf(0.9875, 19), rel=0.03)
    assert alone < copies < others


def test_a_candidate_that_no_topic_changes_or_that_is_undefined_does_no_harm() -> None:
    tables = candidates(4, 20, [0.8, 0.9, 0.8])
    # A constant judge has a kappa of 0 whatever the topics are; one without grades has none.
    tables[1] = 0
    tables[1, :, 0, 0] = tables[1, :, 2, 0] = 4
    tables[2] = 0
    found = after_choice(tables, 0, "wkappa", GRADES, rng())
    assert found.low is not None
    two = simultaneous_quantile(tables, 0, "wkappa", GRADES, rng())
    assert two == pytest.approx(scipy.stats.t.ppf(math.sqrt(0.9875), 19), rel=0.05)


def test_topics_without_items_change_nothing() -> None:
    tables = candidates(4, 9, [0.8, 0.9])
    padded = np.insert(tables, [0, 4], 0, axis=1)
    one, other = (after_choice(of, 0, "wkappa", GRADES, rng()) for of in (padded, tables))
    assert (one.value, one.topics) == (other.value, other.topics)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.01)
    assert nested_folds(padded, "wkappa", GRADES, rng()) == nested_folds(tables, "wkappa", GRADES, rng())


def test_too_few_topics() -> None:
    tables = candidates(4, 4, [0.8, 0.9])
    assert nested_folds(tables[:, :1], "wkappa", GRADES, rng()) == Undefined("fewer than 2 topics")
    few = after_choice(tables, 0, "wkappa", GRADES, rng())
    assert (few.low, few.n, few.topics, few.reason) == (None, 28, 4, "fewer than 5 topics")


def test_where_the_statistic_is_undefined_so_is_the_worth_of_choosing() -> None:
    one_grade = np.zeros((2, 6, 3, 3), dtype=np.int64)
    one_grade[:, :, 1, 1] = 3
    assert nested_folds(one_grade, "kappa", GRADES, rng()) == Undefined("kappa is undefined on folds of the topics")
    assert after_choice(one_grade, 0, "kappa", GRADES, rng()) == Estimate(
        None, None, None, 18, 6, "both raters gave one and the same grade throughout"
    )


def test_perfect_agreement_has_no_interval_of_no_width() -> None:
    # 15 items on 5 topics, all alike; the other candidate is worse.
    perfect = np.zeros((5, 3, 3), dtype=np.int64)
    perfect[:, [0, 1, 2], [0, 1, 2]] = 1
    worse = perfect.copy()
    worse[:2] = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    found = after_choice(np.stack([perfect, worse]), 0, "wkappa", GRADES, rng())
    assert (found.value, found.high, found.n, found.topics, found.reason) == (1, 1, 15, 5, None)
    assert found.low < resampled("wkappa", perfect, GRADES, rng()).estimate.low < 0.5
    almost = perfect.copy()
    almost[0] = [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    found = after_choice(np.stack([almost, worse]), 0, "wkappa", GRADES, rng())
    assert found.low < found.value - 0.05 < found.value < found.high < 1


def test_a_choice_by_one_set_of_tables_is_scored_on_another() -> None:
    tables = candidates(3, 12, [0.0, 0.9])
    for found in (
        nested_folds(tables, "wkappa", GRADES, rng(), choose_by=tables[::-1]),
        nested_folds(tables[1:], "wkappa", GRADES, rng()),
    ):
        assert found == pytest.approx(value(tables[1].sum(axis=0)))


def test_an_undefined_candidate_is_not_chosen() -> None:
    # The first candidate graded nothing.
    tables = candidates(8, 10, [0.5, 0.7])
    tables[0] = 0
    assert nested_folds(tables, "wkappa", GRADES, rng()) == pytest.approx(value(tables[1].sum(axis=0)))


@given(st.integers(0, 1000), st.integers(5, 12), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_interval_is_ordered_and_holds_its_value(seed: int, T: int, m: int) -> None:
    found = after_choice(candidates(seed, T, [0.8] * m), 0, "percent", GRADES, rng(seed), replicates=100)
    if found.low is None or found.high is None:
        # By chance, all topics are alike.
        assert found.reason == "all topic means equal"
        return
    assert 0 <= found.low <= found.value <= found.high <= 1
