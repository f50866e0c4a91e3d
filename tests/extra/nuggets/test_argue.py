"""ARGUE's measures: reports worked by hand, and the published digits of its example."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.extra.nuggets import Nugget, argue
from judge.extra.nuggets.scores import RunUnit

PUBLISHED = """
15 14 15 9|10 10 10 7|10 9 10 6|12 12 12 8|11 10 11 6|18 16 19 15|11 10 11 10|10 10 10 6|11 11 10 8|15 14 15 14
14 13 15 10|18 18 18 13|17 17 17 10|13 12 13 7|17 17 19 13|19 18 19 16|19 18 19 17|13 12 13 12|10 10 10 6
"""
"""Sentences, of these supported, nuggets, of these covered, in the 19 reports that argue-viz shows as an example."""


def test_the_example_of_argue_has_its_published_digits() -> None:
    reports = []
    for n, report in enumerate(PUBLISHED.strip().replace("\n", "|").split("|")):
        sentences, supported, nuggets, covered = map(int, report.split())
        of = dict.fromkeys(("citation_support", "sentence_support"), (supported, sentences))
        of |= dict.fromkeys(("nugget_coverage", "nugget_coverage_weighted"), (covered, nuggets))
        of |= {"citation_relevance": (sentences, sentences)}
        reports.append((RunUnit("example", str(n), str(n), (), (), {}, "matched", {}), of))
    digits = {
        name: (micro, macro.value) for _, name, micro, macro, *_ in argue.argue_grid({"example": reports}, "topic")
    }
    assert digits["citation_relevance"] == (1, 1)
    assert digits["citation_support"] == digits["sentence_support"]
    assert digits["sentence_support"] == pytest.approx((0.9543726235741445, 0.9549052363456795), abs=1e-15)
    assert digits["nugget_coverage"] == pytest.approx((0.7255639097744361, 0.7159860218357855), abs=1e-15)
    assert digits["f1"] == digits["f1_weighted"] == pytest.approx((0.8243863007870667, 0.8108727761893327), abs=1e-15)


ASKED = (*(Nugget(f"7/1.{n}", "7", "x", None, "vital", None, "Q", "AND", passages=(f"d{n}",)) for n in (1, 2)),
         Nugget("7/2", "7", "y"), Nugget("7/3", "7", "z", weight=-9.0))  # fmt: skip
REPORT = RunUnit("r", "7", "7", ("R1",), ASKED, {
    "7/1.1": "supports", "7/1.2": "does_not", "7/2": "supports", "7/3": "does_not"}, "matched", {})  # fmt: skip


def test_what_argue_counts_in_a_report_by_hand() -> None:
    sentences = [{"d1": True, "d9": True}, {"d2": True, "d8": False}, {"d1": None}, {"d1": None, "d7": False}, {}]
    assert argue.report_shares(sentences, REPORT) == {
        # d1 three times and d2 of seven; three of the five that somebody judged.
        "citation_relevance": (4, 7), "citation_support": (3, 5),
        # The first of the three that are known in full; the last one cites nothing.
        "sentence_support": (1, 3),
        # The question needs both answers; it is vital and weighs 2. The fault is none of the response's.
        "nugget_coverage": (1, 2), "nugget_coverage_weighted": (1, 3),
    }  # fmt: skip
    assert set(argue.argue_values([argue.report_shares([], REPORT)]).values()) == {0, 1 / 2, 1 / 3}


def test_what_nobody_judged_is_no_number_of_argue() -> None:
    lacking = msgspec.structs.replace(REPORT, labels={"7/2": "supports"}, status="incomplete")
    silent = msgspec.structs.replace(REPORT, responses=(), labels={}, status="unanswered")
    assert argue.report_shares([{"d1": None}], lacking) == {"citation_relevance": (1, 1)}

    def lines(*reports) -> dict[str, tuple[object, ...]]:
        grid = argue.argue_grid({"r": [(unit, argue.report_shares(cited, unit)) for unit, cited in reports]}, "topic")
        return {name: (micro, macro.value, known, of) for _, name, micro, macro, known, of in grid}

    found = lines((REPORT, [{"d1": None}]), (lacking, [{"d1": True}]), (silent, []))
    # A report that nobody wrote has 0 of everything, faults too; one whose grades failed has no support.
    assert found["citation_support"] == found["sentence_support"] == (1, 1 / 2, 2, 3)
    assert found["nugget_coverage_weighted"] == (1 / 6, (1 / 3 + 0) / 2, 2, 3)
    # F is over the reports of which both parts are known.
    assert found["f1"] == (0, 0, 1, 3)
    assert set(lines((lacking, [{"d1": None}])).values()) == {(1, 1, 1, 1), (None, None, 0, 1)}


@given(st.floats(0, 1), st.floats(0, 1))
def test_f_lies_between_its_parts(precision: float, recall: float) -> None:
    value = argue.harmonic(precision, recall)
    assert min(precision, recall) - 1e-9 <= value <= max(precision, recall) + 1e-9
    assert argue.harmonic(recall, precision) == pytest.approx(value)
