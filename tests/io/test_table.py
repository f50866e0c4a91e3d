import json
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.io.table import FORMS, Table, p_cell, tsv_lines
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
    grid = Table((("a b", p_cell(p)),), ("pair", "p"), "")
    assert grid.tsv() == f"pair\tp\na b\t{tools}\n"
    assert [cells[1] for cells in grid.cells()] == [people]
    assert json.loads(grid.json())["rows"][0]["p"] == p


def test_a_line_is_made_before_the_next_one_is_there() -> None:
    assert list(islice(tsv_lines(("n",), ((n,) for n in count())), 3)) == ["n\n", "0\n", "1\n"]
