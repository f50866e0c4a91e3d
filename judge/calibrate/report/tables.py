"""The TSV files of a calibration: stable headers, six decimals, an empty cell and a note for an undefined number."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from judge.calibrate.findings import AgreementRow, AlternativeRow, FamilyContrast, Slope, TrustVerdict
from judge.records import Estimate
from judge.stats import agreement
from judge.stats.expected import EXPECTED
from judge.stats.probabilities import PROBABILITY
from judge.stats.ranking import SYSTEM
from judge.text.ids import Cluster
from judge.text.tsv import tsv

TsvColumns = Mapping[str, Callable[[Any], object]]
"""The columns of a table: each heading, and what the cell of a record holds."""
STATISTICS = (*agreement.STATISTICS, *EXPECTED)
"""The statistics of agreement, in column order."""
_WORST = tuple(name for name, statistic in agreement.STATISTICS.items() if statistic.worst_case)
_GRADED = agreement.primary_statistic(3)
"""The primary statistic of more than two grades; its interval over items has columns on every scale."""


def rows_tsv(columns: TsvColumns, rows: Iterable[object]) -> str:
    """A table with a line for each record."""
    return tsv(tuple(columns), ([cell(row) for cell in columns.values()] for row in rows))


def _field(name: str) -> Callable[[Any], object]:
    return lambda row: getattr(row, name, None)


def _entry(name: str, key: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name).get(key)


def _end(of: Callable[[Any], Estimate | None], field: str) -> Callable[[Any], float | None]:
    def cell(row: Any) -> float | None:
        number = getattr(of(row), field, None)
        return None if number is None else float(number)

    return cell


def _marginal(test: str, part: str) -> Callable[[Any], object]:
    return lambda row: next((getattr(found, part) for found in row.marginals if found.name == test), None)


def _fields(names: str) -> TsvColumns:
    """TsvColumns of fields; a field that a record lacks is empty."""
    return {name: _field(name) for name in names.split()}


def _ends(name: str, of: Callable[[Any], Estimate | None]) -> TsvColumns:
    """An estimate and the ends of its interval."""
    return {name: _end(of, "value"), f"{name}_lo": _end(of, "low"), f"{name}_hi": _end(of, "high")}


def _statistics(names: Iterable[str]) -> TsvColumns:
    """The columns of a record's statistics."""
    columns = (_ends(name, _entry("statistics", name)) for name in names)
    return {name: cell for each in columns for name, cell in each.items()}


def _basis(of: Callable[[Any], Estimate]) -> TsvColumns:
    """The numbers of items and topics of an estimate, and the reason of what it lacks."""
    return {"n": lambda row: of(row).n, "topics": lambda row: of(row).topics, "note": lambda row: of(row).reason}


def _of_slope(row: Slope | FamilyContrast) -> Estimate:
    return row.slope if isinstance(row, Slope) else row.contrast


_JUDGE = _fields("judge prompt criterion split")
_PAIR = {**_fields("criterion split statistic a b"), **_ends("difference", attrgetter("difference"))}
COMPARISONS: TsvColumns = {**_PAIR, **_fields("p p_max_t p_holm exact"), **_basis(attrgetter("difference"))}
"""A row for each pair of candidates; the difference is a's statistic minus b's."""
EQUIVALENCE: TsvColumns = {
    **_PAIR,
    "margin": lambda row: float(row.margin),
    "equivalence": attrgetter("word"),
    **_basis(attrgetter("difference")),
}
"""A row for each pair; the difference has a 90 % interval."""
CALIBRATION_MAP: TsvColumns = {
    **_JUDGE,
    **_fields("grade n mean"),
    "shrunken": lambda row: float(row.shrunken),
    "weight": lambda row: float(row.weight),
}
"""A row for each judge and grade: the assessors' mean grade where the judge gives it."""
LINES: TsvColumns = {
    **_JUDGE,
    **_fields("intercept"),
    **_ends("slope", attrgetter("slope")),
    **_fields("error_grade error_expected error_line"),
    **_basis(attrgetter("slope")),
}
"""A row for each judge: how assessors' grades follow the expected grade."""
PROBABILITIES: TsvColumns = {
    **_JUDGE,
    **_statistics(PROBABILITY),
    **_fields("brier_of_shares"),
    **_basis(lambda row: row.statistics["brier"]),
    "note": lambda row: merged((name, row.statistics[name].reason) for name in PROBABILITY),
}
"""A row for each judge that gives label probabilities: how far they forecast the assessors' grades."""
SYSTEMS: TsvColumns = {
    **_JUDGE,
    **_fields("runs"),
    **_statistics(SYSTEM),
    "half_human": attrgetter("halves.human"),
    "half_judge": attrgetter("halves.judge"),
    "notes": lambda row: merged(
        [*((name, row.statistics[name].reason) for name in SYSTEM if name in row.statistics),
         ("halves", row.halves.reason)]
    ),
}  # fmt: skip
"""A row for each judge: how its ranking of the runs agrees with the assessors'."""
DIAGNOSTICS: TsvColumns = {
    **_fields("judge criterion split"),
    "what": lambda row: getattr(row, "what", "family"),
    **_fields("family is_self runs mean"),
    **_ends("estimate", _of_slope),
    **_basis(_of_slope),
}
"""A row for each slope and each family: what judge minus assessor depends on."""
_CONFUSION = ("judge", "prompt", "criterion", "split", "human", "judge_grade", "count", "row_share")
_ALTERNATIVE = (
    *("judge", "prompt", "criterion", "split", "epsilon", "omega", "rho", "assessor", "n", "p", "rejected", "note"),
)
AGREEMENT: TsvColumns = {
    **_JUDGE,
    **_fields("reference baseline gold n topics coverage"),
    "without_grade": lambda row: ",".join(
        f"{reason}:{n}" for reason, n in sorted(row.without_grade.items(), key=lambda item: (-item[1], item[0]))
    ),
    **_statistics(STATISTICS),
    **{f"worst_{name}": _entry("worst_case", name) for name in _WORST},
    f"{_GRADED}_item_lo": _end(_entry("item", _GRADED), "low"),
    f"{_GRADED}_item_hi": _end(_entry("item", _GRADED), "high"),
    "primary_item_lo": _end(lambda row: row.item.get(row.primary), "low"),
    "primary_item_hi": _end(lambda row: row.item.get(row.primary), "high"),
    "deff": lambda row: row.design_effect.get(row.primary),
    **{
        f"{test}_{part}": _marginal(test, part) for test in ("bowker", "stuart_maxwell") for part in ("chi2", "df", "p")
    },
    **_ends("ceiling", attrgetter("ceiling")),
    **_ends("test_retest", attrgetter("test_retest")),
    **_fields("primary binary"),
}
"""The columns of `agreement.tsv` before the verdict."""


def clustered(table: str, cluster: Cluster) -> str:
    """A table with the unit of its intervals as a last note of each row, unless that is the topic."""
    head, *lines = table.split("\n")
    if cluster == "topic" or not head.endswith(("\tnote", "\tnotes")):
        return table
    said = f"clustered by {cluster}"
    noted = (line and line + (said if line.endswith("\t") else f"; {said}") for line in lines)
    return "\n".join([head, *noted])


def agreement_tsv(rows: Iterable[AgreementRow], verdicts: Iterable[TrustVerdict] = ()) -> str:
    """A row for each judge, criterion and split; `verdict` is empty where there is none about that row."""
    words = {(verdict.criterion, verdict.judge, verdict.prompt, verdict.split): verdict.word for verdict in verdicts}
    columns: TsvColumns = {
        **AGREEMENT,
        "verdict": lambda row: words.get((row.criterion, row.name, row.prompt, row.split)),
        "notes": _notes,
    }
    return rows_tsv(columns, rows)


def _notes(row: AgreementRow) -> str:
    named = [(name, row.statistics[name].reason) for name in STATISTICS if name in row.statistics]
    named += [(test.name, test.reason) for test in row.marginals]
    named += [("ceiling", row.ceiling.reason)] if row.ceiling else []
    named += [("test_retest", row.test_retest.reason)] if row.test_retest else []
    return merged(named)


def merged(named: Iterable[tuple[str, str | None]]) -> str:
    """Every reason once, after its names: `kappa, wkappa: all grades equal; ac1: fewer than 5 topics`."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in named:
        if reason:
            by_reason.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def confusion_tsv(rows: Iterable[AgreementRow]) -> str:
    """A row for each judge and pair of grades; `row_share` is the share of the assessors' grade."""
    return tsv(
        _CONFUSION,
        (
            [row.judge, row.prompt, row.criterion, row.split, human, grade, n, n / total if total else None]
            for row in rows
            for human, counts in zip(row.grades, row.confusion, strict=True)
            for total in [sum(counts)]
            for grade, n in zip(row.grades, counts, strict=True)
        ),
    )


def alternative_tsv(rows: Iterable[AlternativeRow]) -> str:
    """A row for each judge and assessor, all with the judge's epsilon, omega and rho; no assessor without a result."""
    return tsv(
        _ALTERNATIVE,
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, row.epsilon, row.omega, row.rho, assessor),
                *(row.n.get(assessor), row.p_values.get(assessor), row.rejected.get(assessor), row.reason),
            ]
            for row in rows
            for assessor in row.p_values or [""]
        ),
    )
