"""The tables of a calibration: what each says of a record, in its file and for people, declared once. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judge.calibrate.agreement import PREFERENCE
from judge.calibrate.findings import AlternativeRow, Calibration, FamilyContrast, SystemAgreement
from judge.calibrate.report.lookup import Finding, grades_of, heading, merged, of, over, separable, why_undefined
from judge.calibrate.selection import ASSESSORS
from judge.io.table import Column, RecordColumns, Table, fields, records_tsv
from judge.io.text import code, count, interval, number, p_value, printable
from judge.stats.discrimination import PROBABILITY
from judge.stats.ranking import SYSTEM

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
    """A line for each record of one kind: in a file, and under a title with the words that say how to read it."""

    field: str
    """The field of `Calibration` that has the records."""
    title: Callable[[Sequence[Any]], str]
    text: Callable[[Sequence[Any]], str]
    columns: tuple[FindingColumn, ...]
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

    def findings(self, calibration: Calibration, criterion: str) -> Iterator[Finding]:
        """The table on the records of a criterion; nothing where there are none."""
        records = of(getattr(calibration, self.field), criterion)
        if records:
            yield Finding(self.title(records), (self.text(records), self.table(records)))


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


def decimal(name: str, head: Column | str | None = None) -> FindingColumn:
    """A field that is written with decimals even where JSON has a whole number."""

    def cell(record: Any) -> float:
        return float(getattr(record, name))

    return FindingColumn({name: cell}, head, cell)


def ends(name: str, field: str) -> RecordColumns:
    """The value of an estimate and the ends of its interval, in a file."""
    return fields(f"{name}={field}.value {name}_lo={field}.low {name}_hi={field}.high")


def estimated(name: str, field: str, head: Column | None = None) -> FindingColumn:
    """An estimate: three columns of the file, one for people."""
    return FindingColumn(ends(name, field), head, path(field))


def basis_of(field: str) -> FindingColumn:
    """The numbers of items and topics of an estimate, in the file."""
    return filed(f"n={field}.n topics={field}.topics")


def over_of(field: str) -> FindingColumn:
    """The same for people."""
    estimate: Callable[[Any], Any] = path(field)
    return shown("n/topics", lambda row: over(estimate(row)))


JUDGE = filed("judge prompt criterion split")
_WHOSE = (JUDGE, shown("judge", "name"), shown("grades", "split"))


def _one_sided(rows: Sequence[Any]) -> str:
    text = (
        f"EQUIVALENT: {printable(rows[0].statistic)} differs by less than {number(rows[0].margin)}, by two one-sided "
        "tests at 5 % (the 90 % interval over topics lies within the margin). DIFFERENT: by more. Each pair is tested "
        "alone."
    )
    if any(row.b == ASSESSORS for row in rows):
        text += (
            f" {code(ASSESSORS)}: each assessor against the consensus of the others, and the judge against the same."
        )
    return text


def _paired(rows: Sequence[Any]) -> str:
    return (
        f"{count(len(rows), 'pair')} compared on the items that both graded, by {heading(rows[0].statistic)}; "
        f"{sum(map(separable, rows))} separable at 5 % by max-T. Those with the chosen one, as its value minus the "
        "other's:"
    )


def _weighed(rows: Sequence[Any]) -> str:
    return (
        f"Shrunken: drawn to the line through all items, as if {number(rows[0].weight, 0)} more lay on it. For single "
        f"responses; the mean of a run is corrected by gold of that run ({code('judge leaderboard --gold')})."
    )


def _by_assessor(row: AlternativeRow) -> str:
    parts = []
    for assessor, p in row.p_values.items():
        rejected = "yes" if row.rejected.get(assessor) else "no"
        parts.append(f"{assessor} {p_value(p)} ({row.n.get(assessor, 0)}; {rejected})")
    return ", ".join(parts)


def _why_none(row: SystemAgreement, names: Mapping[str, str]) -> str:
    """Why there is no value or no interval, by these names of the statistics."""
    reasons = [(name, row.statistics[key].reason) for key, name in names.items() if key in row.statistics]
    return merged([*reasons, ("halves", row.halves.reason)])


_LABELS = {name: fact.label for name, fact in SYSTEM.items()}
_NAMES = dict(zip(SYSTEM, SYSTEM, strict=True))


def _moved_by(rows: Sequence[Any]) -> str:
    return f"What moves the judge away from the assessors, on {grades_of(rows[0].split)}"


def _property(row: Any) -> str:
    return {
        "log2_words": "doubling of the response's words",
        "turn_depth": "turn further into the conversation",
    }[row.what]


def _family(row: FamilyContrast) -> str:
    return f"{row.family} (the judge's own)" if row.is_self else row.family


COMPARISONS = FindingTable(
    field="comparisons",
    title=lambda rows: f"Comparisons on {grades_of(rows[0].split)}",
    text=_paired,
    columns=(
        filed("criterion split statistic a"),
        both("b", "against"),
        estimated("difference", "difference", Column("difference [95 %]", signed=True)),
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
EQUIVALENCE = FindingTable(
    field="equivalence",
    title=lambda rows: "Is it as good as another judge, or as an assessor?",
    text=_one_sided,
    columns=(
        filed("criterion split statistic"),
        both("a", "judge"),
        both("b", "against"),
        shown("grades", "split"),
        estimated("difference", "difference", Column("difference [90 %]", signed=True)),
        decimal("margin"),
        over_of("difference"),
        both("equivalence", "equivalence", "word"),
        basis_of("difference"),
        both("note", NOTE, "difference.reason"),
    ),
)
"""A line for each pair; the difference has a 90 % interval."""
CALIBRATION_MAP = FindingTable(
    field="calibration_map",
    title=lambda rows: f"What a grade of the judge is worth, on {grades_of(rows[0].split)}",
    text=_weighed,
    columns=(
        JUDGE,
        filed("grade"),
        shown("judge's grade", lambda row: str(row.grade)),
        both("n", "n"),
        both("mean", "assessors' mean"),
        decimal("shrunken", "shrunken"),
        decimal("weight"),
    ),
    places=2,
)
"""A line for each judge and grade: the assessors' mean grade where the judge gives it."""
FORECASTS = FindingTable(
    field="probabilities",
    title=lambda rows: "Are its label probabilities probabilities?",
    text=lambda rows: (
        "Beside Brier's score stands that of one forecast for all responses, the shares of the assessors' grades: "
        "a judge that is no better knows nothing of the single response."
    ),
    columns=(
        *_WHOSE,
        *(
            estimated(
                name,
                f"statistics.{name}",
                Column(f"{name} [95 %]", signed=name == "overconfidence", about=fact.about),
            )
            for name, fact in PROBABILITY.items()
        ),
        both("brier_of_shares", "brier of shares"),
        over_of("statistics.brier"),
        basis_of("statistics.brier"),
        both("note", NOTE, why_undefined),
    ),
)
"""A line for each judge that gives label probabilities: how far they forecast the assessors' grades."""
PREFERENCES = FindingTable(
    field="preferences",
    title=lambda rows: "Does it prefer the responses that the assessors prefer?",
    text=lambda rows: (
        "A verdict counts where both orders agree on it. Assessors prefer one response in "
        f"{interval(rows[0].statistics['decisive_human'], 2)} of all pairs, and of these the one shown first in "
        f"{interval(rows[0].statistics['first_human'], 2)}."
    ),
    columns=(
        *_WHOSE,
        *(
            estimated(
                name,
                f"statistics.{name}",
                None
                if name.endswith("_human")
                else Column(name.replace("_", " ") + " [95 %]", signed=name == "first_place", about=about),
            )
            for name, about in PREFERENCE.items()
        ),
        over_of("statistics.accuracy"),
        basis_of("statistics.accuracy"),
        both("note", NOTE, why_undefined),
    ),
    places=2,
)
"""A line for each judge of pairs."""
SYSTEMS = FindingTable(
    field="systems",
    title=lambda rows: "Does it rank the runs as the assessors do?",
    text=lambda rows: (
        "Intervals describe how the two rankings would agree on "
        "other topics. Where runs are close, both rankings are noisy, and the true ones agree better than that."
    ),
    columns=(
        *_WHOSE,
        both("runs", "runs"),
        *(estimated(name, f"statistics.{name}", Column(f"{fact.label} [95 %]")) for name, fact in SYSTEM.items()),
        both(
            "half_human",
            Column(
                "tau-b half to half: assessors",
                about="how the runs rank on a random half of the topics, against the assessors' ranking on the other "
                "half, and behind it the same of the judge. The assessors' own is a noise ceiling: only a judge with "
                "less noise exceeds it",
            ),
            "halves.human",
        ),
        both("half_judge", "judge", "halves.judge"),
        FindingColumn({"notes": lambda row: _why_none(row, _NAMES)}, NOTE, lambda row: _why_none(row, _LABELS)),
    ),
    places=2,
)
"""A line for each judge: how its ranking of the runs agrees with the assessors'."""
FINDINGS: dict[str, FindingTable] = {
    table.field: table for table in (COMPARISONS, EQUIVALENCE, CALIBRATION_MAP, FORECASTS, PREFERENCES, SYSTEMS)
}
"""The tables with a file of their own, which is called as the field of `Calibration`."""
SLOPES = FindingTable(
    field="slopes",
    title=_moved_by,
    text=lambda rows: "",
    columns=(
        filed("judge criterion split what family is_self runs mean"),
        shown("for each", _property),
        estimated("estimate", "slope", Column("judge minus assessor [95 %]", signed=True)),
        over_of("slope"),
        basis_of("slope"),
        both("note", NOTE, "slope.reason"),
    ),
)
FAMILIES = FindingTable(
    field="families",
    title=_moved_by,
    text=lambda rows: "",
    columns=(
        filed("judge criterion split"),
        FindingColumn({"what": lambda row: "family"}),
        filed("family is_self"),
        shown("family of runs", _family),
        both("runs", "runs"),
        both("mean", Column("judge minus assessor", signed=True)),
        estimated("estimate", "contrast", Column("against other runs [95 %]", signed=True)),
        basis_of("contrast"),
        both("note", NOTE, "contrast.reason"),
    ),
)
"""With SLOPES it makes `diagnostics.tsv`: a line for each slope and each family, with the same columns."""
ALTERNATIVE = FindingTable(
    field="alternative",
    title=lambda rows: f"Could the judge stand in for an assessor? On {grades_of(rows[0].split)}",
    text=lambda rows: (
        "The alternative annotator test (Calderon, Reichart & Dror, 2025). One number without the others says nothing. "
        "Items count as independent of each other, so p is too small where topics differ."
    ),
    columns=(
        shown("judge", "name"),
        shown(Column("epsilon", about="the handicap that an assessor's higher cost is worth"), "epsilon"),
        shown(Column("omega", about="the share of assessors over whom the judge is preferred"), "omega"),
        shown(
            Column(
                "rho", about="how often, on average, it fits the other assessors at least as well as the one left out"
            ),
            "rho",
        ),
        shown("p by assessor (n; yes: rejected)", _by_assessor),
        shown(NOTE, "reason"),
    ),
    places=2,
)
"""A line for each judge; its file has one for each judge and assessor."""
