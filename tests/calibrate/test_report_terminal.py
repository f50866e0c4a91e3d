import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judge.calibrate.report.pages import summary
from judge.io.text import columns_of, fold, shorten
from tests.report_records import NOTHING, agreement, calibration, constant, estimate

HOSTILE = st.text(st.characters() | st.sampled_from("\t\n中🙂é\u0301\x1b\u202e\ud800"))


def test_what_the_terminal_shows() -> None:
    rows = (agreement(), agreement("p/x", 0.05, n=9, topics=3), constant())
    found = replace(calibration(others=1), agreement=rows)
    assert summary(found) == (
        "! The gold was post-edited from an LLM's grades.\n"
        "\n"
        "groundedness: test grades (consensus of 3)\n"
        "judge                n/topics  cover       wkappa [95 %]  same   AC2   bias\n"
        "local/qwen graded    150/25     0.98   0.61 [0.51, 0.71]  0.70  0.80  +0.31\n"
        "p/x graded           9/3        0.75  0.05 [-0.05, 0.15]  0.70  0.80  +0.31\n"
        "constant (baseline)  150/25     0.98  0.00 [-0.10, 0.10]  0.70  0.80  +0.31\n"
        "Ceiling: between the assessors themselves wkappa is 0.680 [0.610, 0.750], n =\n"
        "  150 over 25 topics. Against a consensus, whose errors partly cancel, a judge\n"
        "  may come out higher.\n"
        "local/qwen graded was chosen from 2 candidates by wkappa on dev grades: 0.660\n"
        "  [0.560, 0.760] there. On test grades: 0.610 [0.510, 0.710]. With the choice\n"
        "  repeated inside topic folds: 0.600. Optimism of the choice: +0.050. Others\n"
        "  that may be the best, by elimination at 5 %: other/0 graded. The sealed test\n"
        "  grades have been opened 2 times for different questions.\n"
        "\n"
        "groundedness: TRUSTED: local/qwen graded on test grades, wkappa 0.610 [0.510,\n"
        "  0.710], n = 150 over 25 topics. Required: wkappa.lo >= 0.4. Because: wkappa.lo\n"
        "  is 0.51.\n"
    )


def test_a_warning_that_a_verdict_gives_as_its_reason_is_said_once() -> None:
    found = calibration()
    (verdict,) = found.verdicts
    few = "9 judged gold items on 3 topics cannot make a judge trusted: that takes 100 on 20"
    said = replace(
        found,
        warnings=(*found.warnings, f"{verdict.criterion}: {few}"),
        verdicts=(replace(verdict, word="INCONCLUSIVE", reasons=(few,)),),
    )
    text = " ".join(summary(said).split())
    assert text.count(few) == 1
    assert text.startswith("! The gold was post-edited from an LLM's grades. groundedness:")
    assert text.endswith(f"Because: {few}.")


def test_the_value_of_an_only_candidate_stands_in_the_verdict_alone() -> None:
    found = calibration()
    (choice,) = found.selections
    alone = replace(choice, tried=choice.tried[:1], test=None, optimism=None, not_separable=(), openings=None)
    assert "\nlocal/qwen graded is the only candidate.\n" in summary(replace(found, selections=(alone,)))


def test_a_criterion_without_a_verdict_says_so() -> None:
    rows = (agreement(), agreement(criterion="fluency", statistics={"wkappa": estimate(None)}))
    lines = summary(replace(NOTHING, agreement=rows)).splitlines()
    assert lines[-3:] == ["groundedness: No verdict was asked for.", "", "fluency: No verdict was asked for."]
    bare = replace(NOTHING, verdicts=calibration("j", "g", others=0).verdicts)
    assert summary(bare).startswith("\ng: test grades: no judge was compared\n\ng: TRUSTED: j graded on test grades, ")


def test_the_best_are_shown_and_baselines_and_the_chosen_one_always() -> None:
    found = calibration(others=40)
    lines = summary(found).splitlines()
    shown = lines[4 : lines.index("30 more rows in agreement.tsv")]
    assert [line.split("  ")[0] for line in (shown[0], *shown[-2:])] == [
        *("local/qwen graded", "other/9 graded", "constant (baseline)")
    ]
    assert len(shown) == 12
    worst = replace(found, agreement=(agreement(wkappa=-0.2), *found.agreement[1:]))
    assert "\nlocal/qwen graded    150/25" in summary(worst)


def test_rows_go_by_the_lower_bound_and_undefined_ones_come_last() -> None:
    wide = agreement("wide", statistics={"wkappa": estimate(0.9, 0.5)})
    bare = agreement("bare", statistics={"wkappa": estimate(0.95, 0)})
    none = agreement("none", statistics={"wkappa": estimate(None)})
    rows = (none, bare, wide, agreement("narrow", 0.6))
    found = replace(NOTHING, agreement=rows)
    assert [line.split()[0] for line in summary(found).splitlines()[3:7]] == ["narrow", "wide", "bare", "none"]


def test_names_lose_their_middle() -> None:
    assert shorten("openrouter/a-very-long-model-name graded", 16) == "openrout… graded"
    assert shorten("中文中文中文", 7) == "中文…文"
    assert shorten("short", 5) == "short"


def test_text_is_folded_at_spaces_and_words_too_long_are_broken() -> None:
    assert fold("aa bb cc", 5) == ["aa bb", "  cc"]
    assert fold("abcdefghij k", 4) == ["abcd", "  ef", "  gh", "  ij", "  k"]


def columns(text: str) -> int:
    """The columns of a terminal, from the Unicode tables."""
    spacing = [c for c in text if unicodedata.category(c) not in ("Mn", "Me")]
    return len(spacing) + sum(unicodedata.east_asian_width(c) in "WF" for c in spacing)


@given(HOSTILE, st.text("ab/-", max_size=300), HOSTILE, HOSTILE)
def test_no_name_needs_more_than_80_columns(judge: str, long: str, criterion: str, warning: str) -> None:
    for name in (judge, judge + long):
        found = calibration(name, criterion + long, others=15)
        found = replace(found, warnings=(warning,))
        text = summary(found)
        text.encode()
        lines = text.split("\n")[:-1]
        assert max(map(columns, lines)) <= 80
        assert all(line.isprintable() for line in lines)
        assert "TRUSTED:" in text


@given(HOSTILE, st.integers(2, 40))
def test_a_shortened_name_fits(name: str, room: int) -> None:
    assert columns_of(shorten(name, room)) <= room
