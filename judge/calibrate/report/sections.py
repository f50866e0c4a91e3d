"""The tables of a calibration: what each says of a record, in its file and for people, declared once. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from judge.calibrate.findings import FindingRow
from judge.calibrate.panel import Case
from judge.calibrate.report.lookup import Finding, grades_of, heading, over, separable
from judge.io.table import Column, RecordColumns, Table, fields, records_tsv
from judge.io.text import count
from judge.records import Estimate

CellOf = Callable[[Any], object]
NOTE = Column("note", empty="")


class FindingColumn(NamedTuple):
    """What a table says of a record: in columns of its file, in a column for people, or both."""

    file: RecordColumns
    """Empty where only people are shown it."""
    head: Column | str | None = None
    """None where only the file has it."""
    cell: CellOf | None = None
    """What people are shown."""


class FindingTable(NamedTuple):
    """A finding: how it is computed, and its table with the sentences that say how to read it."""

    title: str
    """`{grades}` stands for the split, in words."""
    columns: tuple[FindingColumn, ...]
    rows: Callable[[Case], Iterable[FindingRow]] | None = None
    """What it says of one judge; None of what a calibration holds in records of its own."""
    text: str | Callable[[Sequence[Any]], str | tuple[str, ...]] = ""
    """The sentences, or a function that says them of the rows, as one paragraph or several."""
    file: str = ""
    """The file of the rows, which several tables of the same columns may share; empty where they have none."""
    after: Literal["agreement", "selection", "confusion"] = "confusion"
    """What it follows in a report."""
    of_chosen: bool = False
    """Whether people are shown it of the chosen judge alone."""
    on_terminal: bool = False
    """Whether the summary in the terminal has it, too."""
    over_items: bool = False
    """Whether its tests are over items, whatever the intervals of the other tables are over."""
    places: int = 3
    """Decimals for people."""

    def tsv(self, records: Iterable[Any]) -> str:
        """The file, a header alone without records."""
        columns: dict[Column | str, CellOf] = {}
        for column in self.columns:
            columns |= column.file
        return records_tsv(columns, records)

    def table(self, records: Sequence[Any]) -> Table[Any]:
        """The table for people."""
        shown = [column for column in self.columns if column.head is not None and column.cell is not None]
        lines = [tuple(column.cell(record) for column in shown if column.cell) for record in records]
        return Table(lines, [column.head for column in shown if column.head], places=self.places)

    def finding(self, records: Sequence[Any], shown: Sequence[Any] | None = None) -> Finding:
        """What people read of the records, of which the table may show fewer, or some the other way round."""
        text = self.text if isinstance(self.text, str) else self.text(records)
        parts: list[str | Table[Any]] = []
        if text:
            parts += (text,) if isinstance(text, str) else text
        if any(column.head is not None for column in self.columns):
            parts.append(self.table(records if shown is None else shown))
        return Finding(self.title.format(grades=grades_of(records[0].split)), tuple(parts))


def path(name: str) -> CellOf:
    """The cell of a field, such as `difference.reason`."""
    (cell,) = fields(name).values()
    return cell


def filed(names: str) -> FindingColumn:
    """Columns of the file alone, as `fields` reads them."""
    return FindingColumn(fields(names))


def shown(head: Column | str, cell: str | CellOf) -> FindingColumn:
    """A column for people alone."""
    return FindingColumn({}, head, path(cell) if isinstance(cell, str) else cell)


def both(name: str, head: Column | str, cell: str | CellOf = "") -> FindingColumn:
    """A column of the file and for people, with the same cells."""
    made = path(cell or name) if isinstance(cell, str) else cell
    return FindingColumn({name: made}, head, made)


def fact(name: str, head: Column | str | None = None) -> FindingColumn:
    """A fact of a row: a column of the file, and with a heading one for people."""
    cell = path(f"facts.{name}")
    return FindingColumn({name: cell}, head, cell)


def ends(name: str, field: str) -> RecordColumns:
    """The value of an estimate and the ends of its interval, in a file."""
    return fields(f"{name}={field}.value {name}_lo={field}.low {name}_hi={field}.high")


def estimated(name: str, head: Column | str | None = None, field: str = "") -> FindingColumn:
    """An estimate, by default the statistic of that name: three columns of the file, with a heading one for people."""
    field = field or f"statistics.{name}"
    return FindingColumn(ends(name, field), head, path(field))


def basis_of(field: str) -> FindingColumn:
    """The numbers of items and topics of an estimate, in the file."""
    return filed(f"n={field}.n topics={field}.topics")


def over_of(field: str) -> FindingColumn:
    """The same for people."""

    def cell(row: object) -> str | None:
        estimate = path(field)(row)
        return over(estimate) if isinstance(estimate, Estimate) else None

    return shown("n/topics", cell)


JUDGE = filed("judge prompt criterion split")
WHOSE = (JUDGE, shown("judge", "name"), shown("grades", "split"))
"""What the tables of several judges begin with."""


def _paired(rows: Sequence[Any]) -> str:
    return (
        f"{count(len(rows), 'pair')} compared on the items that both graded, by {heading(rows[0].statistic)}; "
        f"{sum(map(separable, rows))} separable at 5 % by max-T. Those with the chosen one, as its value minus the "
        "other's:"
    )


COMPARISONS = FindingTable(
    title="Comparisons on {grades}",
    text=_paired,
    columns=(
        filed("criterion split statistic a"),
        both("b", "against"),
        estimated("difference", Column("difference [95 %]", signed=True), "difference"),
        over_of("difference"),
        both("p", Column("p", p_values=True)),
        both(
            "p_max_t",
            Column(
                "p max-T",
                p_values=True,
                about="holds the chance of even one false difference at 5 %; in simulations it is 1 to 4 % from 8 "
                "topics on, but 10 to 12 % where half of the judges err much more on some topics than on others",
            ),
        ),
        both("p_holm", Column("p Holm", p_values=True)),
        filed("exact"),
        basis_of("difference"),
        filed("note=difference.reason"),
    ),
)
"""A line for each pair of candidates; the difference is a's statistic minus b's. People see those with the chosen one,
which is their `a`."""
