"""Tables in lines of a limited width, and names cut to fit them."""

import string

from hypothesis import given
from hypothesis import strategies as st

from judge.io.cells import columns_of
from judge.io.layout import shortened, table_lines

RUN = "georgetown_infosense_trec_ikat_2025_run_"


def lines(header: str, rows: list[str], columns: int, **options: object) -> str:
    """The table of words that stand apart by two spaces."""
    cells = [row.split("  ") for row in rows]
    made = table_lines(header.split("  "), cells, columns, **options)  # type: ignore[arg-type]
    return "\n".join(line.text for line in made)


def test_a_table_that_fits_is_shown_whole_without_empty_columns() -> None:
    rows = ["a  1  -  0.5", "bb  10  -  0.25"]
    assert lines("run  n  note  mean", rows, 80) == "\n".join(["run   n  mean", "a     1   0.5", "bb   10  0.25"])


def test_names_lose_their_middle_so_that_the_numbers_fit() -> None:
    # 50 columns less 2 between and 23 of an interval leave 25 for a name.
    rows = [f"{RUN}{n}  0.{n}000 [0.1000, 0.9000]" for n in (1, 2)]
    assert lines("run  mean", rows, 50, words={0}) == "\n".join(
        [
            "run                                           mean",
            "georgetown_i…t_2025_run_1  0.1000 [0.1000, 0.9000]",
            "georgetown_i…t_2025_run_2  0.2000 [0.1000, 0.9000]",
        ]
    )


def test_what_does_not_fit_follows_in_a_block_with_the_same_names() -> None:
    rows = ["one  0.1111  0.2222  0.3333", "two  0.4444  0.5555  0.6666"]
    assert lines("run  first  second  third", rows, 20, words={0}) == "\n".join(
        [
            "run   first  second",
            "one  0.1111  0.2222",
            "two  0.4444  0.5555",
            "",
            "run   third",
            "one  0.3333",
            "two  0.6666",
        ]
    )


def test_columns_that_belong_together_stay_in_one_block() -> None:
    rows = ["one  2.000  1  7  1.000  2"]
    assert lines("run  mean  rank  over  mean  rank", rows, 30, words={0}, joined={2, 4, 5}) == "\n".join(
        ["run   mean  rank", "one  2.000     1", "", "run  over   mean  rank", "one     7  1.000     2"]
    )


def test_keys_that_rows_share_become_headings_before_a_block_is_split() -> None:
    rows = [
        f"{criterion}  mean  {run}  0.1111 [0.1000, 0.9000]"
        for criterion in ("groundedness", "naturalness")
        for run in ("one", "two")
    ]
    assert lines("criterion  measure  run  value", rows, 40, words={0, 1, 2}) == "\n".join(
        [
            "  measure  run                    value",
            "groundedness",
            "  mean     one  0.1111 [0.1000, 0.9000]",
            "  mean     two  0.1111 [0.1000, 0.9000]",
            "naturalness",
            "  mean     one  0.1111 [0.1000, 0.9000]",
            "  mean     two  0.1111 [0.1000, 0.9000]",
        ]
    )


def test_an_empty_key_is_that_of_the_row_above() -> None:
    value = "0.111 [0.100, 0.900]"
    rows = [f"{RUN}1  bare  {value}", f"  english  {value}", f"{RUN}2  bare  {value}", f"  english  {value}"]
    assert lines("run  rule  over", rows, 32, words={0, 1}, keys=2) == "\n".join(
        [
            "  rule                     over",
            "georgetown_infosense_trec_ikat_2",
            "  025_run_1",
            "  bare     0.111 [0.100, 0.900]",
            "  english  0.111 [0.100, 0.900]",
            "georgetown_infosense_trec_ikat_2",
            "  025_run_2",
            "  bare     0.111 [0.100, 0.900]",
            "  english  0.111 [0.100, 0.900]",
        ]
    )


def test_long_texts_and_remarks_stand_below_their_row() -> None:
    source = "a repository of somebody: data/with/a/long/path.json"
    assert lines("set  there  source", [f"one  yes  {source}", "two  no  -"], 40, words={0, 1, 2}, below=["!", ""]) == (
        "set  there\none  yes\n    !\n    source: a repository of somebody:\n      data/with/a/long/path.json\ntwo  no"
    )


def test_wide_characters_and_marks_are_counted_as_a_terminal_shows_them() -> None:
    # Four columns each: two ideographs; "e" with an accent as a mark of its own, and three letters.
    assert lines("run  n", ["字字  1", "e\u0301abc  2"], 80, words={0}) == "run   n\n字字  1\ne\u0301abc  2"


def test_a_table_without_rows_keeps_its_columns() -> None:
    assert lines("run  mean  note", [], 80) == "run  mean  note"


NAMES = st.lists(st.text("ab_", min_size=1, max_size=60), min_size=1, max_size=40, unique=True)


@given(NAMES, st.integers(12, 60))
def test_shortened_names_fit_and_stay_different(names: list[str], columns: int) -> None:
    made = shortened(names, columns)
    assert len(set(made.values())) == len(names)
    assert all(columns_of(name) <= columns for name in made.values())
    assert all(made[name] == name for name in names if len(name) <= columns)


@given(
    st.lists(st.text(string.ascii_letters + "_字", min_size=1, max_size=70), min_size=1, max_size=8, unique=True),
    st.integers(1, 12),
    st.integers(40, 130),
)
def test_no_line_is_wider_than_the_terminal(names: list[str], numbers: int, columns: int) -> None:
    rows = [[name, name[::-1], *(f"7.{place}234 [0.1, 0.9]" for place in range(numbers))] for name in names]
    header = ["run", "team", *(f"measure_with_a_name_{place}" for place in range(numbers))]
    made = table_lines(header, rows, columns, words={0, 1})
    assert max(columns_of(line.text) for line in made) <= columns
    # Nothing is lost: every number stands in each row.
    text = " ".join(" ".join(line.text for line in made).split())
    assert all(text.count(f"7.{place}234") == len(names) for place in range(numbers))
