"""Reliability and κ of pairs, against counting by hand and against the statistics elsewhere."""

import dataclasses
import tracemalloc

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from judge.crowd import study as reliable
from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.study import PairRow, pairwise, reliability, topic_reliability
from tests.crowd.world import SCALE, grid

RNG_SEED = 1


def random_grid(items: int = 60, raters: int = 6, topics: int = 10) -> tuple[np.ndarray, CrowdLabels]:
    rng = np.random.default_rng(RNG_SEED)
    truth = rng.integers(0, 4, items)
    table = np.clip(truth[:, None] + rng.integers(-1, 2, (items, raters)), 0, 3)
    table[rng.random(table.shape) < 0.3] = -1
    return table, grid(table.tolist(), topics=topics)


def alpha(table: np.ndarray) -> float:
    data = np.where(table < 0, np.nan, table).T
    return float(krippendorff.alpha(reliability_data=data, level_of_measurement="ordinal", value_domain=list(SCALE)))


def test_alpha_is_krippendorffs_overall_and_by_topic() -> None:
    table, labels = random_grid()
    overall = reliability(labels, np.random.default_rng(0))
    assert overall.alpha.value == pytest.approx(alpha(table), abs=1e-12)
    assert overall.alpha.low is not None
    assert overall.alpha.low < overall.alpha.value < (overall.alpha.high or 0)
    assert (overall.topic, overall.alpha.topics, overall.workers) == (None, 10, 6)
    assert overall.labels == (table >= 0).sum()
    topics = topic_reliability(labels, np.random.default_rng(0))
    assert [row.topic for row in topics] == [str(t) for t in range(10)]
    for t, row in enumerate(topics):
        own = table[6 * t : 6 * t + 6]
        assert row.alpha.value == pytest.approx(alpha(own), abs=1e-12)
        assert (row.labels, row.workers) == ((own >= 0).sum(), (own >= 0).any(axis=0).sum())


def test_topics_without_interval_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = topic_reliability(grid([[3, 3], [0, 1], [1, 1]]), np.random.default_rng(0))
    assert row.alpha.value is not None
    assert (row.alpha.low, row.alpha.reason) == (None, "fewer than 5 items")
    (row,) = topic_reliability(grid([[3, 3], [3, 3]]), np.random.default_rng(0))
    assert (row.alpha.value, row.alpha.reason) == (None, "all raters gave one and the same grade throughout")
    monkeypatch.setattr(reliable, "MOST_RESAMPLED", 59)
    rows = topic_reliability(random_grid()[1], np.random.default_rng(0))
    assert {row.alpha.reason for row in rows} == {"no interval: more than 59 items in all"}


# Pairs


def pairs_of(labels: CrowdLabels, **options: int) -> tuple[PairRow, ...]:
    return pairwise(labels, np.random.default_rng(0), **options)[0]


def test_pairwise_kappa_is_cohens_on_common_items() -> None:
    table, labels = random_grid()
    order = np.random.default_rng(0).permutation(len(labels.item))
    labels = dataclasses.replace(labels, worker=labels.worker[order], item=labels.item[order], code=labels.code[order])
    pairs, sampled = pairwise(labels, np.random.default_rng(0))
    assert sampled == 1
    assert [(row.a, row.b) for row in pairs] == [(f"w{a}", f"w{b}") for a in range(6) for b in range(a + 1, 6)]
    for row in pairs:
        a, b = table[:, int(row.a[1:])], table[:, int(row.b[1:])]
        both = (a >= 0) & (b >= 0)
        assert (row.n, row.same) == (both.sum(), pytest.approx((a == b)[both].mean()))
        assert row.kappa == pytest.approx(cohen_kappa_score(a[both], b[both], labels=SCALE))
        assert row.wkappa == pytest.approx(cohen_kappa_score(a[both], b[both], labels=SCALE, weights="quadratic"))


def test_pairs_with_few_common_items_are_left_out() -> None:
    _, labels = random_grid()
    n = [row.n for row in pairs_of(labels)]
    fewest = sorted(n)[5]
    assert len(pairs_of(labels, fewest=fewest)) == sum(one >= fewest for one in n)
    assert pairs_of(grid([[3, 3]])) == ()
    # An undefined κ is none.
    (row,) = pairs_of(grid([[3, 3]] * 10))
    assert (row.same, row.kappa) == (1.0, None)


def test_large_crowds_are_sampled_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = grid(np.random.default_rng(1).integers(0, 4, (12, 30)).tolist())
    every = pairs_of(labels)
    assert len(every) == 30 * 29 / 2
    # Of m workers who all label 12 items there are 12 m (m - 1) / 2 pairs: 540 of 10, 660 of 11.
    monkeypatch.setattr(reliable, "MOST_PAIRS", 600)
    pairs, sampled = pairwise(labels, np.random.default_rng(0))
    assert (sampled, len(pairs)) == (10 / 30, 10 * 9 / 2)
    # What is said of a pair is said of all of its common items.
    assert set(pairs) <= set(every)
    monkeypatch.setattr(reliable, "MOST_PAIRS", 1)
    assert [row.n for row in pairs_of(labels)] == [12]


def test_many_grades_are_counted_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    _, labels = random_grid()
    every = pairs_of(labels)
    monkeypatch.setattr(reliable, "MOST_CELLS", 33)
    assert pairs_of(labels) == every


@pytest.mark.slow
def test_one_item_of_thousands_of_workers_costs_no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    # 20,000 items by 2 workers each, and one by all 3,000: a grid of places by items would have 60 million cells.
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.permutation(3000)[:2] for _ in range(20_000)])
    worker = np.concatenate([pairs.ravel(), np.arange(3000)]).astype(np.int32)
    item = np.concatenate([np.repeat(np.arange(20_000), 2), np.full(3000, 20_000)]).astype(np.int32)
    items = tuple(Item(f"{i % 50}_{i}", "R") for i in range(20_001))
    code = rng.integers(0, 4, len(item)).astype(np.int8)
    labels = CrowdLabels("c", SCALE, tuple(f"w{i}" for i in range(3000)), items, worker, item, code)
    tracemalloc.start()
    found = reliability(labels, np.random.default_rng(0)).alpha
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()
    expected = krippendorff.alpha(value_counts=labels.counts, level_of_measurement="ordinal", value_domain=list(SCALE))
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert (found.n, found.topics) == (20_001, 50)
    monkeypatch.setattr(reliable, "MOST_PAIRS", 100_000)
    assert pairwise(labels, np.random.default_rng(0))[1] < 1


def test_sliders_have_alphas_without_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable, "MOST_CELLS", 60 * 16 - 1)
    _, labels = random_grid()
    topics = topic_reliability(labels, np.random.default_rng(0))
    assert {row.alpha.reason for row in topics} == {"no interval: 60 items of 4 grades are too many to resample"}
    assert all(row.alpha.value is not None and row.alpha.low is None for row in topics)
    whole = reliability(labels, np.random.default_rng(0)).alpha
    assert whole.low is not None
    monkeypatch.setattr(reliable, "MOST_CELLS", 10 * 16 - 1)
    bare = reliability(labels, np.random.default_rng(0)).alpha
    assert bare.value == pytest.approx(whole.value, abs=1e-12)
    assert (bare.n, bare.topics, bare.low) == (whole.n, whole.topics, None)


def test_no_label_at_all_is_no_traceback() -> None:
    labels = grid([[3, 3]]).kept(np.zeros(2, dtype=np.bool_))
    assert pairs_of(labels) == ()
    assert reliability(labels, np.random.default_rng(0)).alpha.reason == "no unit has two grades"
    assert topic_reliability(labels, np.random.default_rng(0))[0].alpha.value is None
