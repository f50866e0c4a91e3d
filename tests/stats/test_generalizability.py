import csv
import math
from collections.abc import Callable

import numpy as np
import pandas
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.power import TTestPower

from judge.io.ids import topic_of
from judge.records import Estimate
from judge.stats import generalizability as theory
from judge.stats.tables import Undefined


def table(grades: np.ndarray, lengths: list[int]) -> theory.GradeTable:
    """Runs x turns, or runs x turns x assessors, nan where there is no grade; topics of these lengths."""
    turns = [f"{topic}_{turn}" for topic, length in enumerate(lengths) for turn in range(length)]
    rows = [
        (float(value), f"r{place[0]}", topic_of(turns[place[1]]), turns[place[1]], f"a{place[-1]}")
        for place, value in np.ndenumerate(grades)
        if not math.isnan(value)
    ]
    values, runs, topics, names, assessors = (list(column) for column in zip(*rows, strict=True))
    return theory.GradeTable(values, runs, topics, names, assessors if grades.ndim == 3 else None)


def components(of: theory.GradeVariance | Undefined) -> dict[str, float]:
    assert isinstance(of, theory.GradeVariance)
    return {row.source: row.estimate for row in of.components}


def planned(rows: theory.GradeTable, size: float, factor: Callable[[int], float]) -> Estimate:
    of = theory.grade_variance(rows)
    assert isinstance(of, theory.GradeVariance)
    return theory.planned_topics(
        of, theory.without_parts(rows), size, factor, theory.Design(of.turns_per_topic, of.spread)
    )


def world(rng: np.random.Generator, R: int, lengths: list[int], sd: dict[str, float], labels: int = 1) -> np.ndarray:
    """Runs x turns x assessors from the model; an assessor has the same severity everywhere."""
    T, N = len(lengths), sum(lengths)
    of = np.repeat(np.arange(T), lengths)
    draw = {
        "run": (R, 1, 1), "turn": (1, N, 1), "run x turn": (R, N, 1),
        "assessor": (1, 1, labels), "label": (R, N, labels),
    }  # fmt: skip
    y = sum(rng.normal(0, sd.get(name, 0.0), shape) for name, shape in draw.items())
    y = y + rng.normal(0, sd["topic"], (1, T, 1))[:, of] + rng.normal(0, sd["run x topic"], (R, T, 1))[:, of]
    return np.asarray(y)


def test_a_balanced_table_by_hand() -> None:
    """Three runs on four topics.

    Means of runs 2, 4, 6, of topics 2, 4, 4, 6, of all 4. Sums of squares: runs 4 (4 + 0 + 4) = 32, topics
    3 (4 + 0 + 0 + 4) = 24; what is left is 2 at (0, 0), (0, 3), (2, 0), (2, 3) with changing sign, so 16.
    Mean squares 32/2 = 16, 24/3 = 8, 16/6 = 8/3; variances (16 - 8/3)/4 = 10/3, (8 - 8/3)/3 = 16/9, 8/3.
    """
    additive = np.array([[0, 2, 2, 4], [2, 4, 4, 6], [4, 6, 6, 8]], dtype=float)
    rest = np.array([[2, 0, 0, -2], [0, 0, 0, 0], [-2, 0, 0, 2]])
    of = theory.grade_variance(table(additive + rest, [1, 1, 1, 1]))
    assert components(of) == pytest.approx({"run": 10 / 3, "topic": 16 / 9, "run x topic": 8 / 3})
    assert isinstance(of, theory.GradeVariance)
    design = theory.Design(1.0)
    assert theory.difference_variance(of, design) == pytest.approx(2 * 8 / 3)
    assert theory.mean_variance(of, design) == pytest.approx(8 / 3 + 16 / 9)
    # The Eρ² of the four topics is Hoyt's 1 - MS_rest / MS_run.
    assert theory.reliability(of, design, 4).relative == pytest.approx(1 - (8 / 3) / 16)
    assert theory.reliability(of, design, 4).absolute == pytest.approx((10 / 3) / (10 / 3 + (8 / 3 + 16 / 9) / 4))


def test_turns_within_topics_have_the_mean_squares_of_the_nested_design() -> None:
    """Balanced r x (k:t), by plain sums: Brennan's p x (i:h)."""
    R, T, K = 4, 5, 3
    y = np.random.default_rng(3).normal(0, 1, (R, T, K)) + np.arange(R)[:, None, None]
    m, r, t, rt, k = y.mean(), y.mean((1, 2)), y.mean((0, 2)), y.mean(2), y.mean(0)
    ms_r = K * T * ((r - m) ** 2).sum() / (R - 1)
    ms_t = R * K * ((t - m) ** 2).sum() / (T - 1)
    ms_k = R * ((k - t[:, None]) ** 2).sum() / (T * (K - 1))
    ms_rt = K * ((rt - r[:, None] - t + m) ** 2).sum() / ((R - 1) * (T - 1))
    ms_rk = ((y - rt[:, :, None] - k + t[:, None]) ** 2).sum() / (T * (R - 1) * (K - 1))
    assert components(theory.grade_variance(table(y.reshape(R, T * K), [K] * T))) == pytest.approx({
        "run": (ms_r - ms_rt) / (T * K),
        "topic": (ms_t - ms_k - ms_rt + ms_rk) / (R * K),
        "run x topic": (ms_rt - ms_rk) / K,
        "turn": (ms_k - ms_rk) / R,
        "run x turn": ms_rk,
    })  # fmt: skip


@pytest.mark.slow
def test_a_balanced_design_has_the_restricted_likelihood_estimates_of_statsmodels() -> None:
    R, T = 6, 12
    rng = np.random.default_rng(5)
    y = rng.normal(0, 1, (R, 1)) + rng.normal(0, 0.8, (1, T)) + rng.normal(0, 0.6, (R, T))
    frame = pandas.DataFrame({
        "y": y.reshape(-1), "run": np.repeat(np.arange(R), T), "topic": np.tile(np.arange(T), R), "all": 1,
    })  # fmt: skip
    fit = MixedLM.from_formula(
        "y ~ 1", frame, groups="all", re_formula="0", vc_formula={"run": "0 + C(run)", "topic": "0 + C(topic)"}
    ).fit(reml=True, method="lbfgs")  # fmt: skip
    of = components(theory.grade_variance(table(y, [1] * T)))
    assert [of["run"], of["topic"]] == pytest.approx(list(fit.vcomp), rel=1e-3)
    assert of["run x topic"] == pytest.approx(fit.scale, rel=1e-3)


SD = {"run": 0.5, "topic": 0.4, "run x topic": 0.3, "turn": 0.35, "run x turn": 0.6, "assessor": 0.2, "label": 0.5}


def test_unbalanced_tables_have_unbiased_estimates() -> None:
    """Topics of 1 to 4 turns with gaps.

    The estimates are quadratic in the grades, and effects are independent. So the expected estimates, where one source
    has variance 1 and the others 0, are sums over its levels: those of tables with 1 at that level and 0 elsewhere.
    """
    rng = np.random.default_rng(3)
    lengths = [2, 3, 1, 4]
    y = world(rng, 3, lengths, SD, labels=3)
    y[rng.random(y.shape[:2]) < 0.1] = math.nan
    y[rng.random(y.shape) < 1 / 3] = math.nan
    rows = table(y, lengths)
    levels: dict[str, list[object]] = {
        "run": list(rows.runs),
        "topic": list(rows.topics),
        "run x topic": list(zip(rows.runs, rows.topics, strict=True)),
        "turn": list(rows.turns),
        "run x turn": list(zip(rows.runs, rows.turns, strict=True)),
        "assessor": list(rows.assessors or ()),
        "label": list(range(len(rows.values))),
    }
    for source, names in levels.items():
        expected = dict.fromkeys(levels, 0.0)
        for level in set(names):
            only = rows._replace(values=[float(name == level) for name in names])
            for other, estimate in components(theory.grade_variance(only)).items():
                expected[other] += estimate
        assert expected == pytest.approx({other: float(other == source) for other in levels}, abs=1e-9), source


@pytest.mark.long
def test_the_variance_of_new_means_is_the_planned_one() -> None:
    """Only the formulas are tried, with the true components: topics of unequal length, two labels."""
    rng = np.random.default_rng(8)
    lengths = [2, 3, 9, 4, 2, 6, 5, 3]
    sd = SD | {"assessor": 0.0}
    truth = theory.grade_variance(table(world(rng, 3, lengths, sd, labels=2), lengths))
    assert isinstance(truth, theory.GradeVariance)
    truth = theory.GradeVariance(
        tuple(type(row)(row.source, sd[row.source] ** 2, 0.0) for row in truth.components),
        truth.runs, truth.topics, truth.turns, truth.grades, truth.spread,
    )  # fmt: skip
    design = theory.Design(truth.turns_per_topic, truth.spread, labels=2)
    means = np.array([
        world(rng, 2, lengths, sd | {"run": 0.0}, labels=2).mean((1, 2)) for _ in range(4000)
    ])  # fmt: skip
    # The standard error of a variance of 4,000 draws is 2.2 %.
    assert means[:, 0].var() == pytest.approx(theory.mean_variance(truth, design) / 8, rel=0.08)
    assert (means[:, 0] - means[:, 1]).var() == pytest.approx(theory.difference_variance(truth, design) / 8, rel=0.08)


@pytest.mark.long
@pytest.mark.parametrize("T", [8, 20])
def test_the_interval_of_the_number_of_topics_covers_the_number_that_is_needed(T: int) -> None:
    rng = np.random.default_rng(T)
    inside = []
    # 2 (.09 + .36 / 4) = .36 a topic.
    needed = theory.topics_needed(0.36, 0.15, theory.half_width_factor)
    assert needed == 64
    for _ in range(120):
        found = planned(
            table(world(rng, 5, [4] * T, SD | {"label": 0.0})[..., 0], [4] * T), 0.15, theory.half_width_factor
        )
        assert found.low is not None and found.high is not None
        inside.append(found.low <= needed <= found.high)
    # The standard error of a share of .95 in 120 worlds is .02.
    assert np.mean(inside) >= 0.89


def test_the_power_is_that_of_the_paired_t_test_of_statsmodels() -> None:
    for topics in (5, 8, 25, 100):
        theirs = TTestPower().solve_power(nobs=topics, alpha=0.05, power=0.8, alternative="two-sided")
        assert theory.power_factor(topics) / math.sqrt(topics) == pytest.approx(theirs, rel=1e-4)
    theirs = TTestPower().solve_power(effect_size=0.2 / 0.6, alpha=0.05, power=0.8, alternative="two-sided")
    assert theory.topics_needed(0.36, 0.2, theory.power_factor) == math.ceil(theirs)


def test_the_number_of_topics_is_the_fewest_that_suffices() -> None:
    """t with 140 degrees of freedom is 1.977, and 1.977² .36 / .01 is 140.7."""
    needed = theory.topics_needed(0.36, 0.1, theory.half_width_factor)
    assert needed == 141
    assert (
        theory.half_width_factor(141) * math.sqrt(0.36 / 141)
        <= 0.1
        < theory.half_width_factor(140) * math.sqrt(0.36 / 140)
    )
    assert theory.topics_needed(1.0, 1e-6, theory.half_width_factor) == Undefined("more than 1000000 topics")
    assert theory.topics_needed(0.0, 0.1, theory.power_factor) == Undefined(
        "the grades show no error that topics could reduce"
    )


def test_more_labels_reduce_only_what_labels_differ_by() -> None:
    """Two assessors who differ by 2 throughout: 2 between the runs, nothing but severity between the labels."""
    y = np.random.default_rng(2).normal(0, 1, (3, 8, 1)) + np.array([0.0, 2.0])
    of = theory.grade_variance(table(y, [2] * 4))
    assert isinstance(of, theory.GradeVariance)
    # The variance of 0 and 2 is 2; the label has nothing left.
    assert (of.variance("assessor"), of.variance("label")) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-12))
    one, two = (theory.difference_variance(of, theory.Design(2.0, 1.0, labels)) for labels in (1, 2))
    assert one - two == pytest.approx(2 * (2.0 / 2) / 2)


def test_what_is_undefined_has_a_reason() -> None:
    def reason(grades: object, lengths: list[int]) -> str:
        of = theory.grade_variance(table(np.array(grades, dtype=float), lengths))
        assert isinstance(of, Undefined)
        return of.reason

    assert reason([[1]], [1]) == "fewer than 2 grades"
    assert reason([[1, 2]], [1, 1]) == "only one run"
    assert reason([[1, 2], [2, 1]], [2]) == "only one topic"
    assert reason([[1, 1], [1, 1]], [1, 1]) == "all grades are the same"
    nan = math.nan
    assert reason([[1, nan], [nan, 2]], [1, 1]) == "the grades are too few to tell run, topic and run x topic apart"
    few = planned(table(np.random.default_rng(1).normal(0, 1, (3, 14)), [2] * 7), 0.1, theory.half_width_factor)
    assert (few.value, few.low, few.reason) == (None, None, "fewer than 8 topics")
    same = planned(table(np.arange(8.0) + np.array([[0], [1]]), [1] * 8), 0.1, theory.half_width_factor)
    assert (same.value, same.reason) == (None, "the grades show no error that topics could reduce")


def test_negative_estimates_are_kept_beside_zero() -> None:
    found = theory.variance_components([0, 1, 1, 0], {"run": "aabb", "topic": "xyxy"}, "run x topic")
    # Equal means of runs and topics: (0 - 1)/2 of both; mean square of the rest 1.
    assert [(row.variance, row.estimate) for row in found] == [(0.0, -0.5), (0.0, -0.5), (1.0, 1.0)]


def test_the_names_of_levels_and_their_order_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    y = rng.normal(0, 1, (4, 20))
    y[rng.random(y.shape) < 0.2] = math.nan
    rows = table(y, [1, 4, 2, 3, 10])
    order = rng.permutation(len(rows.values)).tolist()
    mixed = theory.GradeTable(*([column[row] for row in order] if column else None for column in rows))
    assert components(theory.grade_variance(mixed)) == pytest.approx(components(theory.grade_variance(rows)))


@pytest.mark.parametrize(
    ("criterion", "run", "rest", "needed"),
    [("groundedness", 0.044, 0.178, (50, 36, 70)), ("completeness", 1.139, 0.649, (215, 158, 294))],
)
def test_gpt4_on_the_five_runs_of_ikat_2023(shared, criterion, run, rest, needed) -> None:
    """The figures of docs/calibration.md: 73 turns of 23 topics; -1 is "unable" and no grade."""
    path = shared / "ikat" / "2023" / "gpt4_judgments" / f"{criterion}_judgement-gpt4.txt"
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["gpt4-label"] != "-1"]
    y = theory.GradeTable(
        [float(row["gpt4-label"]) for row in rows],
        [row["run_id"] for row in rows],
        [topic_of(row["turn_id"]) for row in rows],
        [row["turn_id"] for row in rows],
    )
    of = theory.grade_variance(y)
    assert isinstance(of, theory.GradeVariance) and (of.runs, of.topics, of.turns) == (5, 23, 73)
    assert (of.variance("run"), of.variance("run x turn")) == pytest.approx((run, rest), abs=6e-4)
    found = planned(y, 0.1, theory.half_width_factor)
    assert (found.value, found.low, found.high) == needed
    if len(rows) == 5 * 73:
        # Every run has every turn, so what is left within topics is that of the balanced analysis.
        frame = pandas.DataFrame(dict(zip(("y", "run", "topic", "turn"), y[:4], strict=True)))
        cells = frame.groupby(["run", "topic"]).y.transform("mean") + frame.groupby("turn").y.transform("mean")
        left = frame.y - cells + frame.groupby("topic").y.transform("mean")
        assert of.variance("run x turn") == pytest.approx((left**2).sum() / (4 * (73 - 23)))
