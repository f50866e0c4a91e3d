import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judge.calibrate.report.terminal import summary
from judge.io.cells import columns_of, fold, shorten
from tests.report_records import NOTHING, agreement, calibration, constant, estimate

HOSTILE = st.text(st.characters() | st.sampled_from("\t\n中🙂é\u0301\x1b\u202e\ud800"))


def test_what_the_terminal_shows() -> None:
    rows = (agreement(), agreement("p/x", 0.05, n=9, topics=3), constant())
    found = calibration(others=1)
    found = replace(found, agreement=rows)
    assert summary(found) == (
        "! The gold was post-edited from an LLM's grades.\n"
        "\n"
        "groundedness: test grades of consensus of 3\n"
        "  judge              n/topics  cover  same  AC2    wkappa [95 %]  bias\n"
        "* local/qwen graded    150/25    .98   .70  .80  .61  [.51, .71]  +.31\n"
        "  p/x graded              9/3    .98   .70  .80  .05 [-.05, .15]  +.31\n"
        "= constant             150/25    .98   .70  .80  .00 [-.10, .10]  +.31\n"
        "* chosen, = baseline\n"
        "chosen from 2 candidates by wkappa on dev; optimism +.05; 1 other not separable\n"
        "  from it; sealed test grades opened 2 times\n"
        "required: wkappa.lo >= 0.4\n"
        "because: wkappa.lo is 0.51\n"
        "\n"
        "groundedness  local/qwen graded  test n=150/25 topics\n"
        "  wkappa .61 [.51, .71]  ceiling .68  bias +.31  TRUSTED\n"
    )


def test_a_verdict_that_fits_takes_one_line() -> None:
    found = calibration("j", "g", others=0)
    bare = replace(NOTHING, verdicts=found.verdicts)
    assert summary(bare) == (
        "\n"
        "g: no judge was compared\n"
        "required: wkappa.lo >= 0.4\n"
        "because: wkappa.lo is 0.51\n"
        "\n"
        "g  j graded  test n=150/25 topics  wkappa .61 [.51, .71]  TRUSTED\n"
    )


def test_a_criterion_without_a_verdict_says_so() -> None:
    rows = (agreement(), agreement(criterion="fluency", statistics={"wkappa": estimate(None)}))
    found = replace(NOTHING, agreement=rows)
    assert summary(found).splitlines()[-3:] == ["", "groundedness  NO VERDICT", "fluency  NO VERDICT"]


def test_the_best_are_shown_and_baselines_always() -> None:
    lines = summary(calibration(others=40)).splitlines()
    shown = lines[4 : lines.index("* chosen, = baseline; 30 more rows in agreement.tsv")]
    assert len(shown) == 12
    assert shown[0].startswith("* local/qwen graded")
    assert shown[10].startswith("  other/9 graded")
    assert shown[11].startswith("= constant")


def test_the_chosen_one_is_shown_however_it_does() -> None:
    found = calibration(others=40)
    rows = (agreement(wkappa=-0.2), *found.agreement[1:])
    worst = replace(found, agreement=rows)
    assert "\n* local/qwen graded" in summary(worst)


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
        assert lines[-1].endswith("  TRUSTED")
        assert sum(line.endswith("  TRUSTED") for line in lines[-2:]) == 1


@given(HOSTILE, st.integers(2, 40))
def test_a_shortened_name_fits(name: str, room: int) -> None:
    assert columns_of(shorten(name, room)) <= room
