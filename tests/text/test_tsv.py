"""Tables as TSV."""

from itertools import count, islice

from judge.text.tsv import tsv, tsv_lines


def test_the_lines_are_those_of_the_whole_table() -> None:
    lines = [("a\tb", 0.25, True), ("c", None, 7)]
    assert (
        "".join(tsv_lines(("x", "y", "z"), lines, 2))
        == tsv(("x", "y", "z"), lines, 2)
        == ("x\ty\tz\na\\tb\t0.25\ttrue\nc\t\t7\n")
    )


def test_a_line_is_made_before_the_next_one_is_there() -> None:
    assert list(islice(tsv_lines(("n",), ((n,) for n in count())), 3)) == ["n\n", "0\n", "1\n"]
