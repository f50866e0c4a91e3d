"""Requirements as they are written, and the three words they can come to."""

import itertools

import numpy as np
import pytest

from judge.calibrate.calibration import (
    CalibrationOptions,
    Requirement,
    calibrate,
    parse_requirement,
    rules_of,
    verdict,
    worst_codes,
)
from judge.calibrate.findings import AgreementRow, Choice, Word
from judge.errors import UsageError
from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from tests.calibration_world import labels, panel_of, row


def interval(low: float | None, high: float | None, value: float = 0.5) -> Estimate:
    return Estimate(value, low, high, 100, 20, None if low is not None else "fewer than 5 topics")


def agreement(n: int = 100, missing: int = 0, topics: int = 20, **statistics: Estimate) -> AgreementRow:
    known = {name: interval(0.5, 0.7) for name in STATISTICS} | statistics
    return AgreementRow(
        n=n, only_a=missing, only_b=0, topics=topics, statistics=known, item={}, design_effect={}, confusion=(),
        grades=(0, 1, 2, 3), marginals=(), judge="server/m", prompt="groundedness/graded", criterion="groundedness",
        split="all", reference="ann", baseline=False, without_grade={}, worst_case={}, ceiling=None, test_retest=None,
        primary="wkappa",
    )  # fmt: skip


def chosen(tried: int, bag: Estimate | None, on: str = "all", worst: Estimate | None = None) -> Choice:
    names = tuple(f"m{i}" for i in range(tried))
    return Choice(
        "groundedness", "wkappa", names, "m0", on, interval(0.5, 0.7), None, None, bag, None, (), None, worst
    )  # type: ignore[arg-type]  # fmt: skip


def word(row: AgreementRow, *rules: str, **more: object) -> Word:
    given = {"made": ("blind",), "choice": None, "worst": {}} | more
    requirements = rules_of([parse_requirement(rule) for rule in rules], row.primary)
    return verdict(row, requirements, **given).word  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wkappa.lo>=0.4", Requirement("wkappa", "lo", 0.4)),
        (" bias . hi <= .3 ", Requirement("bias", "hi", 0.3)),
        ("bias.lo>=-0.25", Requirement("bias", "lo", -0.25)),
        ("percent.lo>=1", Requirement("percent", "lo", 1.0)),
        ("alpha_ordinal.lo>=+.667", Requirement("alpha_ordinal", "lo", 0.667)),
    ],
)
def test_a_requirement_is_read(text: str, expected: Requirement) -> None:
    assert parse_requirement(text) == expected


@pytest.mark.parametrize("number", ["0.4", "-0.3", "1", "0.6666667", "0.12345678901"])
def test_a_requirement_reads_back_as_it_is_shown(number: str) -> None:
    rule = parse_requirement(f"wkappa.lo>={number}")
    assert str(rule) == f"wkappa.lo>={number}"
    assert parse_requirement(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "a point estimate is no gate") for text in ("wkappa>=0.4", "wkappa > 0.4", "kappa=1", "bias<=.3")),
        ("gamma.lo>=0.4", "no statistic 'gamma', there are percent, within_one, kappa"),
        ("auc.lo>=0.4", "no statistic 'auc'"),
        ("wkappa.lo<=0.4", "the end that can fail"),
        ("wkappa.hi>=0.4", "the end that can fail"),
        ("wkappa.mid>=0.4", "expected STATISTIC.lo>=NUMBER"),
        ("wkappa.lo>=", "expected STATISTIC.lo>=NUMBER"),
        ("wkappa.lo>=nan", "expected STATISTIC.lo>=NUMBER"),
        ("wkappa.lo>=1e9", "expected STATISTIC.lo>=NUMBER"),
        ("wkappa.lo>=0.4 or so", "expected STATISTIC.lo>=NUMBER"),
        ("WKAPPA.lo>=0.4", "expected STATISTIC.lo>=NUMBER"),
        ("", "expected STATISTIC.lo>=NUMBER"),
        ("wkappa.lo>=0.4\x1b[2J", "expected STATISTIC.lo>=NUMBER"),
    ],
)
def test_what_is_no_requirement_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.4, 0.9, "TRUSTED"), (0.41, 0.9, "TRUSTED"), (0.39, 0.9, "INCONCLUSIVE"), (0.1, 0.4, "INCONCLUSIVE"),
        (0.1, 0.39, "NOT TRUSTED"), (None, None, "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_the_lower_end_decides_and_the_upper_one_condemns(low, high, expected) -> None:
    # The value is .95 throughout: it decides nothing.
    assert word(agreement(wkappa=interval(low, high, 0.95))) == expected
    assert word(agreement(wkappa=interval(low, high, 0.95)), "wkappa.lo>=0.4") == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(-0.1, 0.3, "TRUSTED"), (0.1, 0.31, "INCONCLUSIVE"), (0.31, 0.5, "NOT TRUSTED")]
)
def test_an_upper_bound_is_the_mirror_of_a_lower_one(low: float, high: float, expected: Word) -> None:
    assert word(agreement(bias=interval(low, high)), "bias.hi<=0.3") == expected


@pytest.mark.parametrize(
    ("first", "second"), [*itertools.product(["TRUSTED", "INCONCLUSIVE", "NOT TRUSTED"], repeat=2)]
)
def test_the_worst_requirement_decides(first: Word, second: Word) -> None:
    ends = {"TRUSTED": (0.5, 0.7), "INCONCLUSIVE": (0.3, 0.5), "NOT TRUSTED": (0.1, 0.3)}
    row = agreement(kappa=interval(*ends[first]), percent=interval(*ends[second]))
    order = ("NOT TRUSTED", "INCONCLUSIVE", "TRUSTED")
    assert word(row, "kappa.lo>=0.4", "percent.lo>=0.4") == min(first, second, key=order.index)


def test_an_undefined_statistic_leaves_the_question_open() -> None:
    nothing = Estimate(None, None, None, 0, 0, "no pairs")
    found = verdict(agreement(wkappa=nothing), rules_of((), "wkappa"), ("blind",), None, {})
    assert (found.word, found.reasons) == ("INCONCLUSIVE", ("wkappa undefined (no pairs)",))


@pytest.mark.parametrize(("n", "topics"), [(99, 20), (100, 19), (20, 11), (5000, 19)])
def test_fewer_labels_or_topics_than_the_least_trust_nobody(n: int, topics: int) -> None:
    few = agreement(n=n, topics=topics, wkappa=interval(0.9, 0.99))
    found = verdict(few, rules_of((), "wkappa"), ("blind",), None, {}, "theme")
    assert found.word == "INCONCLUSIVE"
    # That the interval lies above the bound is no reason for the word.
    assert found.reasons == (
        f"{n:,} judged gold items on {topics} themes cannot make a judge trusted: that takes 100 on 20",
    )
    assert word(agreement(n=n, topics=topics, wkappa=interval(0.1, 0.2))) == "NOT TRUSTED"
    assert word(agreement(n=100, topics=20, wkappa=interval(0.9, 0.99))) == "TRUSTED"


@pytest.mark.parametrize(
    ("n", "topics", "errors", "expected"),
    [
        (20, 11, 0, "INCONCLUSIVE"), (20, 11, 1, "INCONCLUSIVE"), (98, 20, 0, "INCONCLUSIVE"),
        (100, 19, 0, "INCONCLUSIVE"), (100, 20, 0, "TRUSTED"), (100, 20, 1, "TRUSTED"), (100, 20, 5, "TRUSTED"),
        (100, 20, 25, "INCONCLUSIVE"), (100, 20, 70, "NOT TRUSTED"), (400, 20, 0, "TRUSTED"),
        (400, 8, 0, "INCONCLUSIVE"), (100, 100, 0, "TRUSTED"), (20, 11, 14, "NOT TRUSTED"),
    ],
)  # fmt: skip
def test_labels_topics_and_errors_make_the_word(n: int, topics: int, errors: int, expected: Word) -> None:
    """The table of docs/calibration.md: all four grades as often, errors at the far end of the scale."""
    grades = {(f"{place % topics}_{place // topics}", f"R{place}"): place * 7 // 5 % 4 for place in range(n)}
    off = list(grades)[::-3][:errors] + list(grades)[: max(0, errors - len(list(grades)[::-3]))]
    said = grades | {key: 0 if grades[key] > 1 else 3 for key in off}
    of = panel_of([row(*key, grade) for key, grade in grades.items()], labels("m", said))
    (found,) = calibrate([of], CalibrationOptions(replicates=500, permutations=60)).verdicts
    assert found.word == expected, found


@pytest.mark.parametrize("made", ["postedit", "construction", "synthetic"])
def test_gold_that_was_not_given_blind_can_make_nobody_trusted(made: str) -> None:
    assert word(agreement(), made=("blind", made)) == "INCONCLUSIVE"
    assert word(agreement(wkappa=interval(0.1, 0.2)), made=(made,)) == "NOT TRUSTED"


def test_missing_grades_cannot_help_a_judge_and_are_no_evidence_against_it() -> None:
    rule = parse_requirement("wkappa.lo>=0.4")
    row = agreement(missing=40)
    assert word(row, worst={rule: interval(0.45, 0.6)}) == "TRUSTED"
    assert word(row, worst={rule: interval(0.2, 0.6)}) == "INCONCLUSIVE"
    assert word(row, worst={rule: interval(-0.9, -0.5)}) == "INCONCLUSIVE"
    found = verdict(row, (rule,), ("blind",), None, {rule: interval(-0.9, -0.5)})
    assert found.reasons == (
        "wkappa [-0.900, -0.500] lies below 0.4, with the 40 missing grades at the far end of the scale",
    )


def test_the_worst_that_missing_grades_may_hide_depends_on_the_requirement() -> None:
    of = panel_of([row(f"{i}_1", f"R{i}", i) for i in range(4)], labels("m", {("1_1", "R1"): 2}))
    codes = of.columns[0].codes
    assert worst_codes(of, codes, parse_requirement("wkappa.lo>=0.4")).tolist() == [3, 2, 0, 0]
    # Bias has a sign: too high is worst for its upper end, too low for its lower one.
    assert worst_codes(of, codes, parse_requirement("bias.hi<=0.3")).tolist() == [3, 2, 3, 3]
    assert worst_codes(of, codes, parse_requirement("bias.lo>=-0.3")).tolist() == [0, 2, 0, 0]
    assert np.array_equal(codes, [-1, 2, -1, -1])


def test_a_choice_on_the_same_grades_is_paid_for() -> None:
    row = agreement(wkappa=interval(0.5, 0.7))
    assert word(row, choice=chosen(1, None)) == "TRUSTED"
    assert word(row, choice=chosen(3, interval(0.45, 0.7))) == "TRUSTED"
    assert word(row, choice=chosen(3, interval(0.3, 0.7))) == "INCONCLUSIVE"
    assert word(row, choice=chosen(3, interval(0.1, 0.3))) == "NOT TRUSTED"
    assert word(row, choice=chosen(3, None)) == "INCONCLUSIVE"
    assert word(row, choice=chosen(3, interval(0.1, 0.3), on="dev")) == "TRUSTED"


def test_the_estimate_of_the_verdict_is_the_one_that_decided() -> None:
    bag = interval(0.3, 0.6)
    found = verdict(agreement(), rules_of((), "wkappa"), ("blind",), chosen(4, bag), {})
    assert found.estimate == bag
    assert found.reasons == ("wkappa [0.300, 0.600] has 0.4 inside, after choosing among 4 on the same grades",)
    assert (found.judge, found.requirements, found.statistic) == ("server/m graded", ("wkappa.lo>=0.4",), "wkappa")


def test_missing_grades_after_a_choice_go_by_the_interval_that_repeats_it() -> None:
    rule, bag = parse_requirement("wkappa.lo>=0.4"), interval(0.5, 0.7)
    # The plain worst case would pass; with the choice repeated it does not.
    options: dict[str, object] = {"worst": {rule: interval(0.45, 0.7)}}
    row = agreement(missing=40)
    assert word(row, choice=chosen(3, bag, worst=interval(0.45, 0.7)), **options) == "TRUSTED"
    assert word(row, choice=chosen(3, bag, worst=interval(0.3, 0.7)), **options) == "INCONCLUSIVE"
    # Missing grades are no evidence against a judge, after a choice as before.
    assert word(row, choice=chosen(3, bag, worst=interval(-0.9, -0.5)), **options) == "INCONCLUSIVE"
    assert word(row, choice=chosen(3, interval(0.1, 0.3), worst=interval(0.5, 0.7)), **options) == "NOT TRUSTED"
    found = verdict(row, (rule,), ("blind",), chosen(3, bag, worst=interval(0.3, 0.6)), {rule: interval(0.45, 0.7)})
    assert found.estimate == bag
    # The rule that is met is no reason for the word.
    assert found.reasons == (
        "wkappa [0.300, 0.600] has 0.4 inside, after choosing among 3 on the same grades, with missing grades "
        "at the far end of the scale",
    )
    same = verdict(row, (rule,), ("blind",), chosen(3, bag, worst=bag), {})
    assert same.reasons == ("wkappa [0.500, 0.700] lies above 0.4, after choosing among 3 on the same grades",)
    # One candidate, or other grades: nothing was chosen on these, and the plain worst case holds.
    for choice in (chosen(1, None, worst=interval(-0.9, 0.9)), chosen(3, bag, "dev", interval(-0.9, 0.9))):
        assert word(row, choice=choice, **options) == "TRUSTED"


def test_another_statistic_can_be_failed_but_not_met_after_a_choice_on_the_same_grades() -> None:
    choice = chosen(3, interval(0.5, 0.7))
    rules = ("wkappa.lo>=0.4", "percent.lo>=0.4")
    assert word(agreement(), *rules, choice=choice) == "INCONCLUSIVE"
    assert word(agreement(percent=interval(0.1, 0.3)), *rules, choice=choice) == "NOT TRUSTED"
    assert word(agreement(), *rules, choice=chosen(1, None)) == "TRUSTED"
    assert word(agreement(), *rules, choice=chosen(3, None, on="dev")) == "TRUSTED"
    found = verdict(agreement(), [parse_requirement("percent.lo>=0.4")], ("blind",), choice, {})
    assert found.reasons == ("percent [0.500, 0.700] lies above 0.4, but the judge was chosen on the same grades",)
