"""The workers' table against counting by hand and against the statistics elsewhere."""

import dataclasses
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.crowd.outputs import crowd_files
from judge.extra.crowdmodels.workers import WorkerRow, worker_table
from tests.crowd.test_outputs import NOVELTY, lines, of_table, studied
from tests.crowd.world import SCALE, crowd, grid
from tests.jobs.test_crowd_frames import COLUMNS, grade


def of(rows: tuple[WorkerRow, ...], worker: str, criterion: str = "relevance") -> WorkerRow:
    return next(row for row in rows if (row.worker, row.criterion) == (worker, criterion))


def test_a_worker_is_compared_with_the_consensus_of_the_others() -> None:
    rows = worker_table({"relevance": grid([[3, 3, 0], [1, 1, 1], [0, 2, 2], [3, -1, -1]])})
    row = of(rows, "w0")
    # Others of w0: {3, 0} tied, mean 1.5, so 2; 1; 2; none. Own labels: 3, 1, 0.
    assert (row.labels, row.compared) == (4, 3)
    assert row.same == pytest.approx(1 / 3)
    assert row.deviation == pytest.approx((1 + 0 + 2) / 3)
    assert row.kappa == pytest.approx(cohen_kappa_score([2, 1, 2], [3, 1, 0]))
    assert row.wkappa == pytest.approx(cohen_kappa_score([2, 1, 2], [3, 1, 0], weights="quadratic", labels=SCALE))
    assert (row.commonest, row.commonest_share) == (3, 0.5)
    assert row.entropy == pytest.approx(1.5)


def test_a_worker_with_nobody_to_compare_with_has_no_agreement() -> None:
    row = of(worker_table({"relevance": grid([[3], [1]])}), "w0")
    assert (row.compared, row.same, row.deviation, row.kappa) == (0, None, None, None)
    assert row.flags == ()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=30))
def test_the_longest_run_is_the_one_counted_label_by_label(labels: list[tuple[int, int]]) -> None:
    rows = worker_table({"relevance": crowd((f"w{w}", "1_1", f"R{i}", grade) for i, (w, grade) in enumerate(labels))})
    for row in rows:
        own = [grade for w, grade in labels if f"w{w}" == row.worker]
        assert row.longest_run == max(len(list(run)) for _, run in groupby(own))


def test_times() -> None:
    labels = grid([[3, 0], [3, 1], [0, 0], [3, 0]])
    # Item by item: w0 takes 1, 3, 5, 1 seconds, w1 nan, 4, nan, nan.
    seconds = np.array([1, np.nan, 3, 4, 5, np.nan, 1, np.nan], dtype=np.float32)
    rows = worker_table({"relevance": dataclasses.replace(labels, seconds=seconds)}, too_fast=3)
    assert (of(rows, "w0").median_seconds, of(rows, "w0").too_fast) == (2.0, 0.5)
    assert (of(rows, "w1").median_seconds, of(rows, "w1").too_fast) == (4.0, 0.0)
    assert of(worker_table({"relevance": labels}), "w0").median_seconds is None


def test_alike_is_over_criteria() -> None:
    first = grid([[3, 0], [1, 2], [2, 2], [0, -1]])
    second = grid([[3, 1], [1, 2], [0, -1], [-1, 1]], criterion="novelty")
    rows = worker_table({"relevance": first, "novelty": second})
    # w0: 3=3, 1=1, 2≠0; w1: 0≠1, 2=2.
    assert [of(rows, worker).alike for worker in ("w0", "w1")] == [pytest.approx(2 / 3), 0.5]
    assert of(rows, "w0", "novelty").alike == of(rows, "w0").alike
    assert [row.worker for row in rows] == ["w0", "w0", "w1", "w1"]
    assert of(worker_table({"relevance": first}), "w0").alike is None


def test_flags_want_enough_labels() -> None:
    # w3 always gives 3, w2 the opposite of all others.
    table = [[good, good, 3 - good, 3, good, good] for good in (0, 3) * 12]
    rows = worker_table({"relevance": grid(table, seconds=1.0)}, removed=[("0", "w2"), ("1", "w2")])
    assert [of(rows, f"w{i}").flags for i in range(4)] == [
        ("fast",),
        ("fast",),
        ("no agreement", "fast", "removed"),
        ("constant", "no agreement", "fast"),
    ]
    assert of(rows, "w2").removed_topics == 2
    few = worker_table({"relevance": grid(table[:9], seconds=1.0)})
    assert [row.flags for row in few] == [()] * 6
    both = worker_table({"relevance": grid(table), "novelty": grid(table, criterion="novelty")})
    assert all("alike" in row.flags for row in both)


def test_who_was_removed_is_in_the_table_without_any_label() -> None:
    rows = worker_table({"relevance": grid([[3, 3]]), "nat": grid([[1, 1]])}, removed=[("0", "w9"), ("1", "w9")])
    assert [row.criterion for row in rows if row.worker == "w9"] == ["relevance", "nat"]
    row = of(rows, "w9")
    assert (row.labels, row.commonest, row.removed_topics, row.flags) == (0, None, 2, ("removed",))


def test_no_label_at_all_is_no_row() -> None:
    labels = grid([[3, 3]]).kept(np.zeros(2, dtype=np.bool_))
    assert worker_table({"relevance": labels, "novelty": labels}) == ()


def test_workers_have_the_parameters_of_their_model() -> None:
    header, *rows = lines(crowd_files(studied(aggregator="weighted-majority")), "workers.tsv")
    assert "weighted-majority_weight" in header
    assert all(row[header.index("weighted-majority_weight")] for row in rows if row[0] != "f")


def test_a_worker_removed_who_labeled_known_items_alone_is_in_the_table() -> None:
    both = {("1_2", "K"): {"a": 0, "f": 3}, ("1_2", "R1"): {"a": 1, "b": 1}}
    files = crowd_files(studied(of_table(both), NOVELTY, aggregator="weighted-majority"))
    rows = [row for row in lines(files, "workers.tsv") if row[0] == "f"]
    assert [(row[1], row[2], row[4]) for row in rows] == [("relevance", "0", "1"), ("novelty", "0", "1")]
    assert "1 of 4 workers have a flag" in files["summary.md"].decode()


def test_rows_for_a_data_frame(tmp_path: Path) -> None:
    outcome = grade(pl.DataFrame(COLUMNS), tmp_path / "o")
    workers = pl.from_dicts(outcome.workers.to_dicts(), infer_schema_length=None)
    assert workers["worker"].to_list() == ["a", "b", "c"]
    assert workers["labels"].to_list() == [2, 2, 2]
