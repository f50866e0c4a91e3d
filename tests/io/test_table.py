import json
import string
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.io.layout import table_lines
from judge.io.table import FORMS, Column, Table, tsv_lines
from judge.io.text import columns_of
from judge.records import Estimate

GRID = Table(
    (("r_1", Estimate(0.5, 0.4, 0.6, 10, 5), 3), ("=1+1", Estimate(None, None, None, 0, 0, "no grades"), None)),
    ("run", "mean", "turns"),
    "Runs & grades",
    ("A note.",),
)


def test_an_estimate_is_three_columns_for_tools() -> None:
    assert GRID.tsv() == ("run\tmean\tmean_low\tmean_high\tturns\nr_1\t0.5000\t0.4000\t0.6000\t3\n\\=1+1\t\t\t\t\n")


def test_json_has_the_reason_of_an_undefined_number() -> None:
    rows = json.loads(GRID.json())["rows"]
    assert rows[0]["mean"] == {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "topics": 5, "reason": None}
    assert (rows[1]["run"], rows[1]["mean"]["value"], rows[1]["mean"]["reason"]) == ("=1+1", None, "no grades")


def test_markdown_and_latex_are_for_people() -> None:
    assert GRID.markdown() == (
        "## Runs &amp; grades\n\n| run | mean | turns |\n| --- | ---: | ---: |\n"
        "| r_1 | 0.5000 [0.4000, 0.6000] | 3 |\n| =1+1 | - | - |\n\nA note.\n"
    )
    assert GRID.latex() == (
        "% Runs & grades\n% A note.\n\\begin{tabular}{lrr}\n\\toprule\nrun & mean & turns \\\\\n\\midrule\n"
        "r\\_1 & 0.5000 [0.4000, 0.6000] & 3 \\\\\n=1+1 & - & - \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("[1] a", "{[}1] a"),
        ("*", "{*}"),
        ("a\\b{%", r"a\textbackslash{}\textbackslash{}b\{\%"),
        ("a\nb", r"a\textbackslash{}nb"),
    ],
)
def test_a_run_id_is_no_latex(name: str, written: str) -> None:
    assert f"\\midrule\n{written} \\\\\n" in Table(((name,),), ("run",), "").latex()


@given(st.text())
def test_every_form_has_a_line_for_each_row_whatever_the_texts(text: str) -> None:
    grid = Table(((text, 1), ("b", 2)), ("run", "n"), text, (text,))
    assert grid.tsv().count("\n") == 3
    assert grid.latex().count(" \\\\\n") == 3
    assert json.loads(grid.json())["rows"][1] == {"run": "b", "n": 2}


def test_the_files_are_one_for_each_form() -> None:
    assert sorted(GRID.files("runs")) == ["runs.json", "runs.md", "runs.tex", "runs.tsv"]
    assert len(FORMS) == 4


@pytest.mark.parametrize(
    ("p", "people", "tools"),
    [(0.25, "0.2500", "0.25"), (0.00012345, "0.0001", "0.0001234"), (3e-9, "< 0.0001", "3e-09"), (None, "-", "")],
)
def test_a_p_value_is_never_written_as_zero(p: float | None, people: str, tools: str) -> None:
    grid = Table((("a b", p),), ("pair", Column("p", p_values=True)), "")
    assert grid.tsv() == f"pair\tp\na b\t{tools}\n"
    assert [cells[1] for cells in grid.cells()] == [people]
    assert json.loads(grid.json())["rows"][0]["p"] == p


def test_a_line_is_made_before_the_next_one_is_there() -> None:
    assert list(islice(tsv_lines(("n",), ((n,) for n in count())), 3)) == ["n\n", "0\n", "1\n"]


RUN = "georgetown_infosense_trec_ikat_2025_run_"


def lines(header: str, rows: list[str], columns: int, **options: object) -> list[str]:
    """The table of words that stand apart by two spaces."""
    return table_lines(header.split("  "), [row.split("  ") for row in rows], columns, **options)  # type: ignore[arg-type]


def test_a_table_that_fits_is_shown_whole_without_empty_columns() -> None:
    rows = ["a  1  -  0.5", "bb  10  -  0.25"]
    assert lines("run  n  note  mean", rows, 80) == ["run   n  mean", "a     1   0.5", "bb   10  0.25"]


def test_words_are_folded_so_that_the_numbers_fit_and_remarks_stand_below_them() -> None:
    # 50 columns less 2 between and 23 of an interval leave 25 for a name, which is broken behind a hyphen or the like.
    rows = [f"{RUN}{n}  0.{n}000 [0.1000, 0.9000]" for n in (1, 2)]
    assert lines("run  mean", rows, 50, words={0}, below=["MISSING", ""]) == [
        "run                                           mean",
        "georgetown_infosense_      0.1000 [0.1000, 0.9000]",
        "trec_ikat_2025_run_1",
        "    MISSING",
        "georgetown_infosense_      0.2000 [0.1000, 0.9000]",
        "trec_ikat_2025_run_2",
    ]


def test_the_last_columns_that_do_not_fit_are_left_out_and_named() -> None:
    rows = ["one  0.1111  0.2222  0.3333", "two  0.4444  0.5555  0.6666"]
    # 3 + 2 + 6 + 2 + 6 columns are 19.
    assert lines("run  first  second  third", rows, 20, words={0}) == [
        *("run   first  second", "one  0.1111  0.2222", "two  0.4444  0.5555"),
        *("left out: third", "  (wider terminal)"),
    ]
    assert lines("run  first  second  third", rows, 60, words={0}, whole="a.tsv")[0] == "run   first  second   third"
    assert lines("run  first  second  third", rows, 18, words={0}, whole="a.tsv") == [
        *("run   first", "one  0.1111", "two  0.4444"),
        *("left out: second,", "  third (wider", "  terminal or", "  a.tsv)"),
    ]


def test_wide_characters_and_marks_are_counted_as_a_terminal_shows_them() -> None:
    # Four columns each: two ideographs; "e" with an accent as a mark of its own, and three letters.
    assert lines("run  n", ["字字  1", "e\u0301abc  2"], 80, words={0}) == ["run   n", "字字  1", "e\u0301abc  2"]


def test_signs_whose_width_is_disputed_keep_the_columns_apart() -> None:
    # Five columns, three, one and two by our count.
    assert lines("run  n", ["👩\u200d🔬  1", "நிa  2", "\u200b  3", "❤\ufe0fa  4"], 80) == [
        *("run    n", "👩\u200d🔬  1", "நிa    2", "\u200b      3", "❤\ufe0fa     4")
    ]


def test_words_give_way_to_numbers_and_names_of_columns_stand_right_above_their_cells() -> None:
    row = "georgetown_run  some words  0.1000 [0.1000, 0.9000]"
    assert lines("run  long name  mean", [row], 40, words={0, 1}, keys=2) == [
        "         long",
        "run      name                       mean",
        "georget  some    0.1000 [0.1000, 0.9000]",
        "own_run  words",
    ]
    # A character that is wider than its line has a line of its own.
    assert lines("n  m", ["字ab  0.1 0.2"], 7, words={0}) == ["n     m", "字  0.1", "ab  0.2"]


def test_a_table_without_rows_keeps_its_columns_and_cells_have_no_markup() -> None:
    assert lines("run  mean  note", [], 80) == ["run  mean  note"]
    assert lines("run  [b]mean", ["[red]:smile:  1"], 80) == ["run           [b]mean", "[red]:smile:        1"]


SIGNS = st.sampled_from([*string.ascii_letters, *("_", "字", "👩\u200d🔬", "நி", "\u200b", "\ufe0f")])


@given(
    st.lists(st.lists(SIGNS, min_size=1, max_size=70).map("".join), min_size=1, max_size=8, unique=True),
    st.integers(1, 12),
    st.integers(40, 130),
)
def test_no_line_is_wider_than_the_terminal_and_no_column_is_lost(names: list[str], numbers: int, columns: int) -> None:
    rows = [[name, name[::-1], *(f"7.{place}234 [0.1, 0.9]" for place in range(numbers))] for name in names]
    header = ["run", "team", *(f"measure_with_a_name_{place}" for place in range(numbers))]
    made = table_lines(header, rows, columns, words={0, 1}, keys=2)
    assert max(map(columns_of, made)) <= columns
    text, _, left_out = " ".join(" ".join(made).split()).partition("left out: ")
    shown = [text.count(f"7.{place}234 [0.1, 0.9]") == len(names) for place in range(numbers)]
    # The first number stays, and those that go are the last ones.
    assert shown == sorted(shown, reverse=True) and shown[0]
    hidden = "".join(left_out.partition(" (wider")[0].split())
    assert hidden == ",".join(header[2 + place] for place in range(numbers) if not shown[place])


def test_a_name_is_not_broken_where_it_has_room_without_the_last_columns() -> None:
    row = "mill-invented  mill-invented  ikat2024  two words of which one is long"
    assert lines("file  run  format  remark", [row], 40, words={0, 1, 2, 3}, keys=1) == [
        "file           run            format",
        "mill-invented  mill-invented  ikat2024",
        "left out: remark (wider terminal)",
    ]
    assert lines("file  remark", ["mill-invented  two words of which one is long"], 36, words={0, 1}) == [
        *(
            "file           remark",
            "mill-invented  two words of which",
            "               one is long",
        )
    ]
