import struct
from collections.abc import Callable
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.calibrate.findings import AgreementRow
from judge.calibrate.report.plots import MAPS, confusion_maps, forest, raw_vs_corrected
from judge.io.draw import drawn
from judge.results.rows import Score
from tests.report_records import agreement, constant, corrected, estimate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]

EVIL = "$x^2$ <b>&amp; -- ]]> \x1b[1m \u202e \ud800 中文 🙂 \\$ \\frac"


def judges(n: int) -> list[AgreementRow]:
    rows = [agreement(f"local/model-{place}", 0.7 - 0.01 * place) for place in range(n)]
    return [*rows, constant(), agreement("undefined", None)]


def runs(n: int) -> list[Score]:
    rows = [corrected(f"run{place}", 2.5 - 0.02 * place, 2.2 - 0.02 * place, place + 1) for place in range(n)]
    gone = corrected("gone", 2.0, 1.9, None, flags=("MISSING", "SELF"), missing=4, bound_low=1.0, bound_high=2.4)
    return [*rows, gone, corrected("raw", 2.0, None, None, flags=("UNCORRECTED",))]


PICTURES: list[tuple[str, Callable[[int], tuple[bytes, bytes]]]] = [
    ("forest", lambda n: forest(judges(n), "wkappa")),
    ("confusion", lambda n: confusion_maps(judges(n))),
    ("corrected", lambda n: raw_vs_corrected(runs(n))),
]


def size(png: bytes) -> tuple[int, int]:
    assert png[:16] == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def words(svg: bytes) -> list[str]:
    """The texts of a picture: matplotlib says as a comment what the paths after it spell."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    tree = ElementTree.fromstring(svg, parser)
    return [one.text.strip() for one in tree.iter() if one.tag is ElementTree.Comment and one.text]


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("draw", [draw for _, draw in PICTURES], ids=[name for name, _ in PICTURES])
def test_pictures_are_the_same_bytes_twice(draw: Callable[[int], tuple[bytes, bytes]], n: int) -> None:
    svg, png = draw(n)
    assert (svg, png) == draw(n)
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert min(size(png)) > 150


def test_no_setting_of_the_user_shows() -> None:
    expected = forest(judges(3), "wkappa")
    with matplotlib.rc_context({"font.size": 20, "text.color": "red", "svg.fonttype": "none", "svg.hashsalt": None}):
        assert forest(judges(3), "wkappa") == expected


def test_no_date_and_no_version_is_in_a_picture() -> None:
    for _, draw in PICTURES:
        svg, png = draw(1)
        assert b"dc:date" not in svg
        assert b"matplotlib.org" not in svg + png


def test_judges_stand_by_value_with_what_was_found() -> None:
    texts = words(
        forest([constant(), agreement("low", 0.2), agreement("high", 0.5), agreement("none", None)], "wkappa")[0]
    )
    names = [text for text in texts if text in {"constant", "low graded", "high graded", "none graded"}]
    assert names == ["high graded", "low graded", "constant", "none graded"]
    assert {"0.50 [0.40, 0.60]", "fewer than 5 topics", "baseline", "between assessors", "150/25"} <= {*texts}


def test_the_key_names_only_what_is_drawn() -> None:
    texts = words(forest([agreement(ceiling=None)], "wkappa")[0])
    assert "baseline" not in texts
    assert "between assessors" not in texts
    # The ceiling is of the primary statistic, so it says nothing about another.
    assert "between assessors" not in words(forest([agreement()], "bias")[0])


def test_a_value_without_an_interval_says_so() -> None:
    assert "0.40 (no interval)" in words(forest([agreement(statistics={"wkappa": estimate(0.4, 0)})], "wkappa")[0])


def test_rows_of_several_splits_are_told_apart() -> None:
    texts = words(forest([agreement(), agreement(split="dev")], "wkappa")[0])
    assert {"local/qwen graded · test", "local/qwen graded · dev"} <= {*texts}


def test_counts_stand_in_the_cells_and_what_is_left_out_is_said() -> None:
    texts = words(confusion_maps([agreement(confusion=((7, 0), (0, 0)), grades=(0, 1))])[0])
    assert texts.count("7") == 1
    texts = words(confusion_maps([agreement()] * (MAPS + 1))[0])
    assert texts.count("45") == MAPS
    assert any(text.endswith("; 1 more in confusion.tsv") for text in texts)


def test_runs_stand_by_rank_and_unranked_ones_last() -> None:
    rows = [corrected("third", 3.0, None, None), corrected("second", 2.0, 1.9, 2), corrected("first", 2.0, 1.5, 1)]
    # Lower is better here: the rank knows, the value does not.
    texts = words(raw_vs_corrected(rows)[0])
    assert [text for text in texts if text in {"first", "second", "third"}] == ["first", "second", "third"]


def test_without_ranks_runs_stand_by_the_corrected_mean_and_flags_are_shown() -> None:
    rows = [corrected("b", 2.0, 1.5, None), corrected("a", 2.0, 1.9, None, flags=("SELF", "FEWGOLD"))]
    texts = words(raw_vs_corrected(rows)[0])
    assert [text for text in texts if text in {"a", "b"}] == ["a", "b"]
    assert "SELF FEWGOLD" in texts
    assert "with missing ones at the scale's ends" not in texts
    assert "with missing ones at the scale's ends" in words(raw_vs_corrected(runs(1))[0])


def test_names_are_drawn_as_they_are() -> None:
    assert drawn("$x^2$ <b>&amp; \\$", 80) == "$x^2$ <b>&amp; \\$"
    assert drawn("a\x1b[1m\u202e中🙂", 80) == "a\\x1b[1m\\u202e\\u4e2d\\U0001f642"
    assert "$x^2$" in words(forest([agreement("$x^2$", prompt=None)], "wkappa")[0])
    assert "$\\frac$" in words(raw_vs_corrected([corrected("$\\frac$", 1.0, 1.0, 1)])[0])


def test_nothing_to_draw_is_drawn() -> None:
    for svg, png in (forest([], "wkappa"), confusion_maps([]), raw_vs_corrected([])):
        ElementTree.fromstring(svg)
        assert size(png)


@pytest.mark.long
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters() | st.sampled_from("$\\{}^_-<&\n\x1b\u202e\ud800中🙂")))
@pytest.mark.parametrize("prefix", ["", EVIL])
def test_no_name_breaks_a_picture(prefix: str, name: str) -> None:
    name = prefix + name
    row = agreement(name, criterion=name, prompt=f"g/{name}", reference=name)
    for svg, png in (
        forest([row, agreement(name, None)], "wkappa"),
        confusion_maps([row]),
        raw_vs_corrected([corrected(name, 2.0, 1.9, 1, criterion=name)]),
    ):
        ElementTree.fromstring(svg)
        assert size(png)
