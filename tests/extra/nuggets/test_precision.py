"""Nugget precision and F: a small pool worked by hand."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.extra.nuggets import ClaimLabel, LabelFailure, Nugget
from judge.extra.nuggets import precision as claimed
from judge.extra.nuggets.labels import KnownClaims
from judge.extra.nuggets.scores import RunUnit, run_units
from tests.extra.nuggets.world import bank, known, nugget, pool, response

POOL = pool(
    *(response(place, f"{place}-1_1", "a") for place in (1, 2, 3, 4)),
    response(5, "4-1_2", "a"),
    turns=("1-1_1", "2-1_1", "3-1_1", "4-1_1", "4-1_2", "5-1_1"),
)
BANK = bank(*(nugget(f"{scope}/{n}") for scope in ("1-1_1", "2-1_1", "3-1_1", "4-1", "5-1_1") for n in (1, 2)))
UNITS = run_units(
    POOL,
    BANK,
    known(
        {
            (1, "1-1_1/1"): "supports", (1, "1-1_1/2"): "does_not",
            (2, "2-1_1/1"): "does_not", (2, "2-1_1/2"): "partly",
            (3, "3-1_1/1"): "supports", (3, "3-1_1/2"): "supports",
            (4, "4-1/1"): "supports", (5, "4-1/1"): "does_not",
        }
    ),
)  # fmt: skip


def lacking(turn_id: str, response_id: str) -> LabelFailure:
    return LabelFailure(turn_id=turn_id, response_id=response_id, reason="refused", detail="no", judge="server/m")


LABELS: dict[int, tuple[ClaimLabel, ...]] = {
    1: ("nugget", "none", "no_claim", "passage", "nugget"),
    2: ("none", "none"),
    3: ("no_claim", "no_claim"),
    4: ("nugget", "none"),
    5: ("nugget", "passage"),
}


def carried(labels: dict[int, tuple[ClaimLabel, ...]] = LABELS, *, passages: bool = True) -> KnownClaims:
    return KnownClaims({f"R{number:05d}": each for number, each in labels.items()}, {}, passages, 0)


def test_every_unit_by_hand() -> None:
    units = claimed.claim_units(UNITS, carried())
    assert [(unit.scope, unit.status, unit.claims, unit.values) for unit in units] == [
        # 2 of 4 claims by nuggets, 3 of 4 with passages; strict recall 1/2, so F = 2 (1/2 1/2) / (1/2 + 1/2).
        ("1-1_1", "labeled", 4, {"nugget_precision": 0.5, "precision": 0.75, "f1": 0.5}),
        # Nothing carried, and nothing supported in full: F is 0.
        ("2-1_1", "labeled", 2, {"nugget_precision": 0.0, "precision": 0.0, "f1": 0.0}),
        ("3-1_1", "no_claim", 0, {}),
        # Both responses of the topic: 2 of 4 claims. A match of 4-1/2 is missing, so there is no recall and no F.
        ("4-1", "labeled", 4, {"nugget_precision": 0.5, "precision": 0.75}),
        ("5-1_1", "unanswered", 0, {}),
    ]


def test_a_run_by_hand() -> None:
    (row,) = claimed.nugget_precision(claimed.claim_units(UNITS, carried()), claimed.precision_names(carried()))
    assert (row.units, row.labeled, row.no_claim, row.missing, row.unanswered) == (5, 3, 1, 0, 1)
    assert list(row.means) == ["nugget_precision", "precision", "f1"]
    assert row.means["nugget_precision"].value == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert row.means["precision"].value == pytest.approx((0.75 + 0 + 0.75) / 3)
    assert (row.means["f1"].value, row.means["f1"].n) == (0.25, 2)
    assert row.means["nugget_precision"].topics == 3


def test_a_run_gains_nothing_in_f_by_silence() -> None:
    """One run answers both turns, well and badly; the other only the one that it is good at."""
    both = pool(
        response(1, "1-1_1", "a", "b"), response(2, "2-1_1", "a"), turns=("1-1_1", "2-1_1")
    )  # fmt: skip
    nuggets = bank(nugget("1-1_1/1"), nugget("2-1_1/1"))
    matched = known({(1, "1-1_1/1"): "supports", (2, "2-1_1/1"): "does_not"})
    labels = carried({1: ("nugget",), 2: ("none",)}, passages=False)
    first, second = claimed.nugget_precision(
        claimed.claim_units(run_units(both, nuggets, matched), labels), claimed.precision_names(labels)
    )
    # The mean over what was answered is higher for the silent run, its bound is the same.
    assert (first.means["f1"].value, second.means["f1"].value) == (0.5, 1.0)
    assert (first.f1_bound, second.f1_bound) == (0.5, 0.5)


def test_f_with_everything_missing_against_the_run_by_hand() -> None:
    """F of 1-1_1 is .5 and of 2-1_1 it is 0. 3-1_1 claims nothing, 5-1_1 is unanswered.

    A match of 4-1 was never asked.
    """
    (row,) = claimed.nugget_precision(claimed.claim_units(UNITS, carried()), claimed.precision_names(carried()))
    # The three that are known are .5, 0 and 0; the one left out counts as they do on average, the unanswered one as 0.
    assert row.f1_bound == pytest.approx((0.5 + 0 + 0) / 3 * 4 / 5)
    # Labels that were lost by the judge's refusal count against the run, and those that nobody asked for do not.
    lost = KnownClaims({"R00001": LABELS[1]}, {"R00002": lacking("2-1_1", "R00002")}, True, 0)
    (row,) = claimed.nugget_precision(claimed.claim_units(UNITS, lost), claimed.precision_names(lost))
    assert row.f1_bound == pytest.approx((0.5 + 0) / 2 * 4 / 5)


def test_a_response_counts_once_where_turn_and_topic_have_nuggets() -> None:
    """Turn 1-1_1 has a nugget of its own beside that of topic 1-1, and turn 1-1_2 has none."""
    both = pool(response(1, "1-1_1", "a"), response(2, "1-1_2", "a"), turns=("1-1_1", "1-1_2"))
    matched = known({(1, "1-1_1/1"): "supports", (1, "1-1/1"): "supports", (2, "1-1/1"): "supports"})
    units = run_units(both, bank(nugget("1-1_1/1"), nugget("1-1/1")), matched)
    labels = carried({1: ("nugget", "none"), 2: ("nugget",)}, passages=False)
    found = claimed.claim_units(units, labels)
    assert [(unit.scope, unit.responses, unit.values) for unit in found] == [
        ("1-1", ("R00002",), {"nugget_precision": 1.0}),
        ("1-1_1", ("R00001",), {"nugget_precision": 0.5}),
    ]
    (row,) = claimed.nugget_precision(found, claimed.precision_names(labels))
    assert (row.means["nugget_precision"].value, row.means["f1"].value, row.f1_bound) == (0.75, None, None)
    # Where every turn has nuggets, the topic is left without a response.
    only = pool(response(1, "1-1_1", "a"), turns=("1-1_1",))
    units = run_units(only, bank(nugget("1-1_1/1"), nugget("1-1/1")), matched)
    assert [unit.scope for unit in claimed.claim_units(units, labels)] == ["1-1_1"]


def test_without_passages_shown_only_nuggets_carry() -> None:
    shown = carried({1: ("nugget", "none")}, passages=False)
    assert claimed.precision_names(shown) == ("nugget_precision", "f1")
    assert claimed.claim_units(UNITS, shown)[0].values == {"nugget_precision": 0.5, "f1": 0.5}


def test_missing_labels_are_no_labels_and_their_reason_is_told() -> None:
    some = KnownClaims({"R00004": ("nugget",)}, {"R00005": lacking("4-1_2", "R00005")}, False, 0)
    units = {unit.scope: unit for unit in claimed.claim_units(UNITS, some)}
    assert (units["4-1"].status, units["4-1"].labels, units["4-1"].values) == ("missing", {}, {})
    assert units["4-1"].reasons == {"R00005": "refused"}
    assert units["1-1_1"].reasons == {"R00001": "not_asked"}
    (row,) = claimed.nugget_precision(units.values(), claimed.precision_names(some))
    assert (row.labeled, row.missing) == (0, 4)
    assert (row.means["nugget_precision"].value, row.means["nugget_precision"].reason) == (None, "no turns with claims")


def test_tables_have_a_line_for_each_run_and_unit() -> None:
    units, names = claimed.claim_units(UNITS, carried()), claimed.precision_names(carried())
    grid = claimed.precision_grid(claimed.nugget_precision(units, names), names)
    assert grid.columns[:4] == ("run", "nugget_precision", "precision", "f1")
    assert grid.columns[4] == "f1_bound"
    assert grid[0][5:] == (5, 3, 1, 0, 1)
    lines = claimed.claims_grid(units, names)
    assert lines[0] == ("a", "1-1_1", "R00001", "labeled", 5, 4, 2, 1, 1, 1, 0.5, 0.75, 0.5, "")
    assert lines[2][10:] == (None, None, None, "")


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
        name: (micro, macro.value) for _, name, micro, macro, *_ in claimed.argue_grid({"example": reports}, "topic")
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
    assert claimed.report_shares(sentences, REPORT) == {
        # d1 three times and d2 of seven; three of the five that somebody judged.
        "citation_relevance": (4, 7), "citation_support": (3, 5),
        # The first of the three that are known in full; the last one cites nothing.
        "sentence_support": (1, 3),
        # The question needs both answers; it is vital and weighs 2. The fault is none of the response's.
        "nugget_coverage": (1, 2), "nugget_coverage_weighted": (1, 3),
    }  # fmt: skip
    assert set(claimed.argue_values([claimed.report_shares([], REPORT)]).values()) == {0, 1 / 2, 1 / 3}


def test_what_nobody_judged_is_no_number_of_argue() -> None:
    lacking = msgspec.structs.replace(REPORT, labels={"7/2": "supports"}, status="incomplete")
    silent = msgspec.structs.replace(REPORT, responses=(), labels={}, status="unanswered")
    assert claimed.report_shares([{"d1": None}], lacking) == {"citation_relevance": (1, 1)}

    def lines(*reports) -> dict[str, tuple[object, ...]]:
        grid = claimed.argue_grid(
            {"r": [(unit, claimed.report_shares(cited, unit)) for unit, cited in reports]}, "topic"
        )
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
    value = claimed.harmonic(precision, recall)
    assert min(precision, recall) - 1e-9 <= value <= max(precision, recall) + 1e-9
    assert claimed.harmonic(recall, precision) == pytest.approx(value)
