"""The workers' table against counting by hand and against the statistics elsewhere.

Models of workers are tested against simulated crowds; judges beside a crowd are looked at without a vote.
"""

import dataclasses
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.ask.records import Judgment
from judge.ask.results import Label, Labels
from judge.crowd.joint import DIAGNOSTIC, joint_tsv
from judge.crowd.labels import AGGREGATORS, CrowdLabels, CrowdSettings
from judge.crowd.outputs import crowd_files
from judge.crowd.workers import WorkerRow, worker_table
from judge.errors import UsageError
from tests.crowd.test_aggregators import DEFAULT, lists, spammed
from tests.crowd.test_jury import Said, decide
from tests.crowd.test_outputs import NOVELTY, lines, of_table, studied
from tests.crowd.world import SCALE, crowd, grid
from tests.jobs.test_crowd_frames import COLUMNS, grade


def of(rows: tuple[WorkerRow, ...], worker: str, criterion: str = "relevance") -> WorkerRow:
    return next(row for row in rows if (row.worker, row.criterion) == (worker, criterion))


def test_a_worker_is_compared_with_the_consensus_of_the_others() -> None:
    rows = worker_table({"relevance": grid([[3, 3, 0], [1, 1, 1], [0, 2, 2], [3, -1, -1]])})
    row = of(rows, "w0")
    # Others of w0: {3, 0}, which tie, so half of each; 1; 2; none. Own labels: 3, 1, 0.
    assert (row.labels, row.compared) == (4, 3)
    assert row.same == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert row.deviation == pytest.approx((3 / 2 + 0 + 2) / 3)
    # The same with each item twice, the first against 3 once and against 0 once.
    others, own = [3, 0, 1, 1, 2, 2], [3, 3, 1, 1, 0, 0]
    assert row.kappa == pytest.approx(cohen_kappa_score(others, own))
    assert row.wkappa == pytest.approx(cohen_kappa_score(others, own, weights="quadratic", labels=SCALE))
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


MODELS = ("dawid-skene", "mace")
WEIGHING = ("weighted-majority", *MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_models_tell_their_posterior_and_how_they_ended(name) -> None:
    labels, _ = spammed(0.2, 1, topics=4)
    found = AGGREGATORS[name].aggregate(labels, DEFAULT)
    best = found.fit.p.max(axis=1)
    assert (np.take_along_axis(found.shares, found.code[:, None].astype(int), axis=1)[:, 0] >= best - 1e-8).all()
    assert f"(converged after {found.fit.iterations} iterations)" in found.rule
    assert (
        "(NOT converged after 2 iterations)"
        in AGGREGATORS[name].aggregate(labels, CrowdSettings(max_iterations=2)).rule
    )


def test_equally_probable_grades_go_to_the_one_nearest_to_the_mean() -> None:
    # Two workers nothing tells apart say 0 and 3 of the second item; both grades are the prior's and the mean is 3/2.
    found = AGGREGATORS["mace"].aggregate(lists([1, 1], [0, 3], [2, 2]), CrowdSettings(prior="flat"))
    assert found.shares[1, 0] == pytest.approx(found.shares[1, 3])
    assert found.code.tolist() == [1, 3, 2]


def test_grades_of_a_model_have_probabilities(tmp_path: Path) -> None:
    first = grade(pl.DataFrame(COLUMNS), tmp_path / "o", aggregator="dawid-skene").grades[0].p
    assert sum(first.values()) == pytest.approx(1)
    header, line, *_ = (tmp_path / "o/items.tsv").read_text().splitlines()
    assert dict(zip(header.split("\t"), line.split("\t"), strict=True))["p_3"] == f"{first['3']:.6f}"


def share_right(spammers, worlds=4):
    """How often each aggregator is right, on average over worlds."""
    right = defaultdict(list)
    for seed in range(worlds):
        labels, truth = spammed(spammers, seed)
        for name, aggregator in AGGREGATORS.items():
            right[name].append((aggregator.aggregate(labels, DEFAULT).code == truth).mean())
    return {name: np.mean(shares) for name, shares in right.items()}


@pytest.mark.slow
def test_without_spammers_weighing_costs_next_to_nothing() -> None:
    right = share_right(0)
    assert right["majority"] > 0.97
    assert min(right[name] for name in WEIGHING) > right["majority"] - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spammers", "majority", "dawid_skene", "gain"),
    # Floors of the two are what such crowds were found to give elsewhere, the lowest of three settings each.
    [(0.2, 0.897, 0.947, 0.02), (0.4, 0.742, 0.901, 0.10)],
)
def test_crowds_with_spammers(spammers, majority, dawid_skene, gain) -> None:
    right = share_right(spammers)
    assert right["majority"] > majority
    assert right["dawid-skene"] > dawid_skene
    assert min(right[name] for name in WEIGHING) > right["majority"] + gain
    # Means and medians give in to one-sided spam.
    assert right["mean"] < right["median"] < right["majority"] - 0.03


def test_dawid_skene_believes_the_members_who_agree_with_each_other() -> None:
    # The third always says 3: it is no evidence, so that the fourth row's tie of 0 and 3 goes to 0.
    rows: list[list[Said]] = [[0, 0, 3], [3, 3, 3], [0, 0, 3], [0, "refused", 3], [3, 3, 3], [0, 0, 3]] * 3
    found = decide(rows, "dawid-skene")
    fourth = found.results[3]
    assert isinstance(fourth, Judgment)
    assert fourth.grade == 0
    assert fourth.expected == 1.5
    assert fourth.probabilities["0"] > 0.9
    assert sum(fourth.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert "Dawid and Skene's model" in found.rule
    mean = decide(rows, "mean").results[3]
    assert isinstance(mean, Judgment)
    assert mean.grade == 2


TRUTH = (0, 1, 2, 3, 0, 1, 2, 3)


def workers(third: str = "w3") -> CrowdLabels:
    """Two who are always right, and one who always says 3."""
    names = ("w1", "w2", third)
    return crowd(
        (name, f"1-1_{i}", f"R{i}", 3 if name == third else TRUTH[i - 1]) for name in names for i in range(1, 9)
    )


def judge(name: str, grades: list[int | None], prompt: str | None = "relevance/ikat", shift: str = "") -> Labels:
    labels = tuple(Label(f"1-1_{i}", f"{shift}R{i}", grade) for i, grade in enumerate(grades, 1))
    return Labels(name, prompt, None, f"{name}.jsonl", "", labels)


def joint(*judges: Labels, crowd: CrowdLabels | None = None) -> dict[str, dict[str, str]]:
    """The lines of the table by the names of workers and judges."""
    head, *lines = joint_tsv({"relevance": crowd or workers()}, judges).splitlines()
    rows = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    return {row["name"]: row for row in rows}


def test_the_joint_model_tells_good_raters_from_bad() -> None:
    found = joint(judge("server/a", [*TRUTH]), judge("server/b", [3, 2, 1, 0, 3, 2, 1, None]))
    assert [(name, row["kind"]) for name, row in found.items()] == [
        *((name, "worker") for name in ("w1", "w2", "w3")),
        *((name, "judge") for name in ("server/a", "server/b")),
    ]
    good, bad, spam = (found[name] for name in ("server/a", "server/b", "w3"))
    assert [good[name] for name in ("labels", "compared", "same", "deviation")] == ["8", "8", "1.0000", "0.0000"]
    # 3 2 1 0 3 2 1 less 0 1 2 3 0 1 2 is 3 over 7.
    assert [bad[name] for name in ("labels", "same", "deviation")] == ["7", "0.0000", "0.4286"]
    # The spammer's own label is left out: two of eight items are of grade 3.
    assert spam["same"] == "0.2500"
    assert float(good["accuracy"]) > 0.4 > float(bad["accuracy"])
    assert float(good["accuracy"]) > float(spam["accuracy"])
    confusion = [list(map(float, row.split(","))) for row in good["confusion"].split(";")]
    assert [len(row) for row in confusion] == [4] * 4
    assert all(sum(row) == pytest.approx(1, abs=2e-4) for row in confusion)
    # It says that it decides nothing, and nothing in it is a grade of an item.
    assert good["grades"] == "0,1,2,3"
    assert all(row["note"].startswith(DIAGNOSTIC) for row in found.values())


def test_the_crowds_own_grades_stay_as_they_are() -> None:
    labels = workers()
    before = labels.counts.tolist()
    low, high = (joint(judge("server/a", [grade] * 8), crowd=labels) for grade in (0, 3))
    assert [low[name]["same"] for name in labels.workers] == [high[name]["same"] for name in labels.workers]
    assert labels.counts.tolist() == before


def test_a_judge_among_the_workers_is_refused() -> None:
    with pytest.raises(UsageError, match="server/a is among the crowd's workers") as refused:
        joint(judge("server/a", [*TRUTH]), crowd=workers("server/a"))
    assert refused.value.exit_code == 2


def test_judges_of_other_criteria_and_items_are_left_out() -> None:
    with pytest.raises(UsageError, match="--with-judgments: no judgment is about relevance"):
        joint(judge("server/a", [*TRUTH], "naturalness/graded"))
    with pytest.raises(UsageError, match="no judge has a grade of an item"):
        joint(judge("server/a", [*TRUTH], shift="other-"))
    off = joint(judge("server/a\t", [0, 7, 9, 1]))[r"server/a\t"]
    assert (off["labels"], off["left_out"]) == ("2", "2")
