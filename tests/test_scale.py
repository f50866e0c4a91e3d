"""The tables and the picture of `docs/scale.md` are those that the scripts write."""

import pytest

from bench import scale_costs
from bench.scale_costs import PRICED, SERVED, dollars, duration, number, size
from docs.site import scale_picture

HEADER = "judgments\tstep\twall_s\tcpu_s\tpeak_mib\texit\n"


def test_the_document_has_exactly_the_tables_of_the_assumptions() -> None:
    """If not: `python -m bench.scale_costs`."""
    text = scale_costs.DOCUMENT.read_text(encoding="utf-8")
    assert scale_costs.with_tables(text) == text
    assert all(made() in text for made in scale_costs.TABLES.values())


def test_the_document_has_the_table_and_the_picture_of_what_was_measured() -> None:
    """If not: `python -m docs.site.scale_picture`."""
    rows = scale_picture.read_rows(scale_picture.MEASURED.read_text(encoding="utf-8"))
    text = scale_picture.DOCUMENT.read_text(encoding="utf-8")
    assert scale_picture.with_table(text, rows) == text
    assert scale_picture.PICTURE.read_text(encoding="utf-8") == scale_picture.picture(rows)


def test_a_document_without_a_marked_place_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places marked for money"):
        scale_costs.with_tables("# Scale\n")
    with pytest.raises(ValueError, match="0 places marked for the table"):
        scale_picture.with_table("# Scale\n", [])


def test_costs_and_times_are_the_products_on_the_page() -> None:
    small, large = PRICED
    assert small.cost(10**6) == pytest.approx(1500 * 0.40 + 150 * 1.60)
    assert large.cost(10**6) == pytest.approx(1500 * 2 + 150 * 8)
    assert SERVED[0].seconds(10**6, 1) == pytest.approx(1e6 * 1650 / 30_000)
    assert SERVED[1].seconds(10**6, 8) == pytest.approx(1e6 * 1650 / 5_000 / 8)
    assert SERVED[0].rent(10**6) == pytest.approx(1e6 * 1650 / 30_000 / 3600 * 4)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (dollars(0.6111), "$0.61"), (dollars(8.4), "$8.40"), (dollars(84), "$84"), (dollars(9.96), "$10"),
        (dollars(366_700), "$370,000"), (duration(69), "69 s"), (duration(99), "1.6 min"), (duration(5400), "1.5 h"),
        (duration(47 * 3600), "47 h"), (duration(330_000), "3.8 days"), (number(145.5), "150"), (number(3.03), "3"),
        (number(2_340_000), "2,300,000"), (size(88e6), "88 MB"), (size(8.8e9), "8.8 GB"), (size(1.2e12), "1.2 TB"),
    ],
)  # fmt: skip
def test_figures_have_two_digits(shown: str, expected: str) -> None:
    assert shown == expected


def test_a_decade_is_as_long_as_any_other() -> None:
    axis = scale_picture.Axis(1, 1000, 100, 400)
    assert [axis.at(value) for value in (1, 10, 100, 1000)] == pytest.approx([100, 200, 300, 400])
    assert axis.decades() == [1, 10, 100, 1000]


def test_every_step_is_drawn_in_both_panels_and_in_the_legend() -> None:
    lines = [f"{n}\t{step}\t{n / 1000}\t1.0\t{n / 100}\t0\n" for step in scale_picture.STEPS for n in (10**4, 10**5)]
    drawn = scale_picture.picture(scale_picture.read_rows(HEADER + "".join(lines)))
    assert drawn.count("<polyline") == 2 * len(scale_picture.STEPS)
    assert all(f">{step}</text>" in drawn for step in scale_picture.STEPS)


def test_steps_of_the_table_alone_are_not_drawn() -> None:
    text = f"{HEADER}10000\tdrift\t10\t9.0\t400\t1\n10000\tcrowd\t10\t99\t399\t0\n10000\trun\t10\t9.0\t100\t0\n"
    rows = scale_picture.read_rows(text)
    assert [row.step for row in rows] == ["run", "drift", "crowd"]
    assert scale_picture.table(rows).splitlines()[2:] == ["| `judge drift` | 10,000 | 9.0 | 400 MiB |"]
    assert scale_picture.picture(rows) == scale_picture.picture(rows[:1])


def test_one_measurement_alone_is_a_picture() -> None:
    assert "<path" in scale_picture.picture(scale_picture.read_rows(f"{HEADER}10000\trun\t10\t9.0\t100\t0\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("judgments\tstep\n", "line 1: found the columns"),
        (f"{HEADER}10\trun\t1.0\t1.0\t90\t3\n", "line 2: found 'run' with exit 3"),
        (f"{HEADER}10\tfly\t1.0\t1.0\t90\t0\n", "line 2: found 'fly' with exit 0"),
        (f"{HEADER}10\trun\t0.0\t0.0\t90\t0\n", "line 2: a logarithmic axis"),
        (f"{HEADER}10\trun\t0.0\n", "line 2: found 3 columns"),
        (HEADER, "no row"),
        ("", "no row"),
    ],
)
def test_rows_that_no_picture_can_show_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scale_picture.read_rows(text)
