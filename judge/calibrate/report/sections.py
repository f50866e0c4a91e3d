"""Sections of a calibration's report that are a table of the records of one kind, as literal rows. Pure."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from judge.calibrate.agreement import PREFERENCE
from judge.calibrate.findings import Calibration, SystemAgreement
from judge.calibrate.report.lookup import Finding, grades_of, merged, over, why_undefined
from judge.calibrate.selection import ASSESSORS
from judge.io.table import Column, Table
from judge.io.text import code, interval, number, p_value, printable
from judge.stats.discrimination import PROBABILITY
from judge.stats.ranking import SYSTEM

NOTE = Column("note", empty="")


class TableSection(NamedTuple):
    """A table with a line for each record of one kind, under a title and the words that say how to read it."""

    field: str
    """The field of `Calibration` that has the records."""
    title: Callable[[Sequence[Any]], str]
    text: Callable[[Sequence[Any]], str]
    columns: tuple[tuple[Column | str, str | Callable[[Any], object]], ...]
    """Headings with cells, each of a field or made of the record."""
    places: int = 3

    def findings(self, calibration: Calibration, criterion: str) -> Iterator[Finding]:
        """The section on the records of a criterion; nothing where there are none."""
        rows = [row for row in getattr(calibration, self.field) if row.criterion == criterion]
        cells = [attrgetter(cell) if isinstance(cell, str) else cell for _, cell in self.columns]
        lines = [tuple(cell(row) for cell in cells) for row in rows]
        if rows:
            table = Table(lines, (name for name, _ in self.columns), places=self.places)
            yield Finding(self.title(rows), (self.text(rows), table))


def _of_difference(row: Any) -> str:
    return over(row.difference)


def _statistic_of(name: str) -> Callable[[Any], object]:
    return lambda row: row.statistics.get(name)


def _why_none(row: SystemAgreement) -> str:
    reasons = [(SYSTEM[name].label, row.statistics[name].reason) for name in SYSTEM if name in row.statistics]
    return merged([*reasons, ("halves", row.halves.reason)])


FORECASTS = TableSection(
    field="probabilities",
    title=lambda rows: "Are its label probabilities probabilities?",
    text=lambda rows: (
        "Beside Brier's score stands that of one forecast for all responses, the shares of the assessors' grades: "
        "a judge that is no better knows nothing of the single response."
    ),
    columns=(
        ("judge", "name"),
        ("grades", "split"),
        *(
            (Column(f"{name} [95 %]", signed=name == "overconfidence", about=fact.about), _statistic_of(name))
            for name, fact in PROBABILITY.items()
        ),
        ("brier of shares", "brier_of_shares"),
        ("n/topics", lambda row: over(row.statistics["brier"])),
        (NOTE, why_undefined),
    ),
)
PREFERENCES = TableSection(
    field="preferences",
    title=lambda rows: "Does it prefer the responses that the assessors prefer?",
    text=lambda rows: (
        "A verdict counts where both orders agree on it. Assessors prefer one response in "
        f"{interval(rows[0].statistics['decisive_human'], 2)} of all pairs, and of these the one shown first in "
        f"{interval(rows[0].statistics['first_human'], 2)}."
    ),
    columns=(
        *(("judge", "name"), ("grades", "split")),
        *(
            (
                Column(name.replace("_", " ") + " [95 %]", signed=name == "first_place", about=about),
                _statistic_of(name),
            )
            for name, about in PREFERENCE.items()
            if not name.endswith("_human")
        ),
        ("n/topics", lambda row: over(row.statistics["accuracy"])),
        (NOTE, why_undefined),
    ),
    places=2,
)
ALTERNATIVE = TableSection(
    field="alternative",
    title=lambda rows: f"Could the judge stand in for an assessor? On {grades_of(rows[0].split)}",
    text=lambda rows: (
        "The alternative annotator test (Calderon, Reichart & Dror, 2025). One number without the others says nothing. "
        "Items count as independent of each other, so p is too small where topics differ."
    ),
    columns=(
        ("judge", "name"),
        (Column("epsilon", about="the handicap that an assessor's higher cost is worth"), "epsilon"),
        (Column("omega", about="the share of assessors over whom the judge is preferred"), "omega"),
        (
            Column(
                "rho", about="how often, on average, it fits the other assessors at least as well as the one left out"
            ),
            "rho",
        ),
        (
            "p by assessor (n; yes: rejected)",
            lambda row: ", ".join(
                f"{who} {p_value(p)} ({row.n.get(who, 0)}; {'yes' if row.rejected.get(who) else 'no'})"
                for who, p in row.p_values.items()
            ),
        ),
        (NOTE, "reason"),
    ),
    places=2,
)
EQUIVALENCE = TableSection(
    field="equivalence",
    title=lambda rows: "Is it as good as another judge, or as an assessor?",
    text=lambda rows: (
        f"EQUIVALENT: {printable(rows[0].statistic)} differs by less than {number(rows[0].margin)}, by two one-sided "
        "tests at 5 % (the 90 % interval over topics lies within the margin). DIFFERENT: by more. Each pair is tested "
        "alone."
        + f" {code(ASSESSORS)}: each assessor against the consensus of the others, and the judge against the same."
        * any(row.b == ASSESSORS for row in rows)
    ),
    columns=(
        *(("judge", "a"), ("against", "b"), ("grades", "split")),
        (Column("difference [90 %]", signed=True), "difference"),
        ("n/topics", _of_difference),
        ("equivalence", "word"),
        (NOTE, "difference.reason"),
    ),
)
_HALVES = Column(
    "tau-b half to half: assessors",
    about="how the runs rank on a random half of the topics, against the assessors' ranking on the other half, and "
    "behind it the same of the judge. The assessors' own is a noise ceiling: only a judge with less noise exceeds it",
)
SYSTEMS = TableSection(
    field="systems",
    title=lambda rows: "Does it rank the runs as the assessors do?",
    text=lambda rows: (
        "Intervals describe how the two rankings would agree on "
        "other topics. Where runs are close, both rankings are noisy, and the true ones agree better than that."
    ),
    columns=(
        *(("judge", "name"), ("grades", "split"), ("runs", "runs")),
        *((Column(f"{statistic.label} [95 %]"), _statistic_of(name)) for name, statistic in SYSTEM.items()),
        (_HALVES, "halves.human"),
        ("judge", "halves.judge"),
        (NOTE, _why_none),
    ),
    places=2,
)
