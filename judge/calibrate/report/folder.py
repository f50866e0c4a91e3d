"""The files of a calibration: names and bytes, the same for the same findings.

A TSV file has a stable header, six decimals, and for an undefined number an empty cell and a note.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from judge.calibrate.agreement import PREFERENCE
from judge.calibrate.findings import AgreementRow, AlternativeRow, Calibration, Slope, TrustVerdict
from judge.calibrate.report.lookup import best_first, merged, why_undefined
from judge.calibrate.report.pages import calibration_markdown
from judge.calibrate.report.plots import confusion_maps, forest
from judge.io.files import json_bytes
from judge.io.ids import Cluster, groups_of
from judge.io.installed import has_extra
from judge.io.table import RecordColumns, fields, records_tsv, tsv
from judge.stats import agreement
from judge.stats.discrimination import EXPECTED, PROBABILITY
from judge.stats.ranking import SYSTEM

SCHEMA = 3
"""Version of calibration.json and selection.json."""
STATISTICS = (*agreement.STATISTICS, *EXPECTED)
"""The statistics of agreement, in column order."""
_WORST = " ".join(name for name, statistic in agreement.STATISTICS.items() if statistic.worst_case)
_GRADED = agreement.primary_statistic(3)
"""The primary statistic of more than two grades; its interval over items has columns on every scale."""


def _ends(name: str, path: str) -> RecordColumns:
    return fields(f"{name}={path}.value {name}_lo={path}.low {name}_hi={path}.high")


def _statistics(names: Iterable[str]) -> RecordColumns:
    columns = (_ends(name, f"statistics.{name}") for name in names)
    return {name: cell for each in columns for name, cell in each.items()}


def _basis(path: str) -> RecordColumns:
    """The numbers of items and topics of an estimate, and the reason of what it lacks."""
    return fields(f"n={path}.n topics={path}.topics note={path}.reason")


def _marginal(test: str, part: str) -> Callable[[Any], object]:
    return lambda row: next((getattr(found, part) for found in row.marginals if found.name == test), None)


def _of_slope(part: str) -> Callable[[Any], object]:
    return lambda row: getattr(row.slope if isinstance(row, Slope) else row.contrast, part)


_JUDGE = fields("judge prompt criterion split")
_PAIR = {**fields("criterion split statistic a b"), **_ends("difference", "difference")}
TABLES: dict[str, RecordColumns] = {
    # A row for each pair of candidates; the difference is a's statistic minus b's.
    "comparisons": {**_PAIR, **fields("p p_max_t p_holm exact"), **_basis("difference")},
    # A row for each pair; the difference has a 90 % interval.
    "equivalence": {
        **_PAIR,
        "margin": lambda row: float(row.margin),
        **fields("equivalence=word"),
        **_basis("difference"),
    },
    # A row for each judge and grade: the assessors' mean grade where the judge gives it.
    "calibration_map": {
        **_JUDGE,
        **fields("grade n mean"),
        "shrunken": lambda row: float(row.shrunken),
        "weight": lambda row: float(row.weight),
    },
    # A row for each judge that gives label probabilities: how far they forecast the assessors' grades.
    "probabilities": {
        **_JUDGE,
        **_statistics(PROBABILITY),
        **fields("brier_of_shares"),
        **_basis("statistics.brier"),
        "note": why_undefined,
    },
    # A row for each judge of pairs.
    "preferences": {**_JUDGE, **_statistics(PREFERENCE), **_basis("statistics.accuracy"), "note": why_undefined},
    # A row for each judge: how its ranking of the runs agrees with the assessors'.
    "systems": {
        **_JUDGE,
        **fields("runs"),
        **_statistics(SYSTEM),
        **fields("half_human=halves.human half_judge=halves.judge"),
        "notes": lambda row: merged(
            [
                *((name, row.statistics[name].reason) for name in SYSTEM if name in row.statistics),
                ("halves", row.halves.reason),
            ]
        ),
    },
}
"""The columns of the tables of records, by the field of `Calibration` that has these."""
DIAGNOSTICS: RecordColumns = {
    **fields("judge criterion split"),
    "what": lambda row: getattr(row, "what", "family"),
    **fields("family is_self runs mean"),
    "estimate": _of_slope("value"),
    "estimate_lo": _of_slope("low"),
    "estimate_hi": _of_slope("high"),
    **{"n": _of_slope("n"), "topics": _of_slope("topics"), "note": _of_slope("reason")},
}
"""A row for each slope and each family: what judge minus assessor depends on."""
AGREEMENT: RecordColumns = {
    **_JUDGE,
    **fields("reference baseline gold n topics coverage"),
    "without_grade": lambda row: ",".join(
        f"{reason}:{n}" for reason, n in sorted(row.without_grade.items(), key=lambda item: (-item[1], item[0]))
    ),
    **_statistics(STATISTICS),
    **fields(" ".join(f"worst_{name}=worst_case.{name}" for name in _WORST.split())),
    **fields(f"{_GRADED}_item_lo=item.{_GRADED}.low {_GRADED}_item_hi=item.{_GRADED}.high"),
    "primary_item_lo": lambda row: getattr(row.item.get(row.primary), "low", None),
    "primary_item_hi": lambda row: getattr(row.item.get(row.primary), "high", None),
    "deff": lambda row: row.design_effect.get(row.primary),
    **{
        f"{test}_{part}": _marginal(test, part) for test in ("bowker", "stuart_maxwell") for part in ("chi2", "df", "p")
    },
    **_ends("ceiling", "ceiling"),
    **_ends("test_retest", "test_retest"),
    **fields("primary binary tied"),
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
    columns: RecordColumns = {
        **AGREEMENT,
        "verdict": lambda row: words.get((row.criterion, row.name, row.prompt, row.split)),
        "notes": _notes,
    }
    return records_tsv(columns, rows)


def _notes(row: AgreementRow) -> str:
    named = [(name, row.statistics[name].reason) for name in STATISTICS if name in row.statistics]
    named += [(test.name, test.reason) for test in row.marginals]
    named += [("ceiling", row.ceiling.reason)] if row.ceiling else []
    named += [("test_retest", row.test_retest.reason)] if row.test_retest else []
    return merged(named)


def confusion_tsv(rows: Iterable[AgreementRow]) -> str:
    """A row for each judge and pair of grades; `row_share` is the share of the assessors' grade."""
    return tsv(
        (*_JUDGE, "human", "judge_grade", "count", "row_share"),
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
        (*_JUDGE, "epsilon", "omega", "rho", "assessor", "n", "p", "rejected", "note"),
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, row.epsilon, row.omega, row.rho, assessor),
                *(row.n.get(assessor), row.p_values.get(assessor), row.rejected.get(assessor), row.reason),
            ]
            for row in rows
            for assessor in row.p_values or [""]
        ),
    )


def calibration_files(calibration: Calibration) -> dict[str, bytes]:
    """The content of every file by its name; an empty table is left out, and so are pictures without matplotlib."""
    tables = {
        "agreement.tsv": agreement_tsv(calibration.agreement, calibration.verdicts),
        "confusion.tsv": confusion_tsv(calibration.agreement),
        **{f"{name}.tsv": records_tsv(columns, getattr(calibration, name)) for name, columns in TABLES.items()},
        "diagnostics.tsv": records_tsv(DIAGNOSTICS, (*calibration.slopes, *calibration.families)),
    }
    cluster: Cluster = "topic" if calibration.cluster is msgspec.UNSET else calibration.cluster
    tables = {name: clustered(text, cluster) for name, text in tables.items()}
    # These tests are over items, whatever the intervals of the other tables are over.
    tables["alternative.tsv"] = alternative_tsv(calibration.alternative)
    tables["calibration.md"] = calibration_markdown(calibration)
    files = {name: text.encode() for name, text in tables.items() if text.count("\n") > 1}
    builtins = msgspec.to_builtins(calibration)
    files["calibration.json"] = json_bytes({"schema": SCHEMA, **builtins})
    files["selection.json"] = json_bytes({"schema": SCHEMA, "selections": builtins["selections"]})
    if not has_extra("pictures"):
        return files
    by_criterion = groups_of((row.criterion, row) for row in calibration.agreement)
    for number, of_criterion in enumerate(by_criterion.values()):
        rows = best_first(of_criterion)
        # A criterion's name may hold any character, so several files are named by number.
        suffix = "" if len(by_criterion) == 1 else f"-{number + 1}"
        for stem, (svg, png) in (
            ("agreement", forest(rows, rows[0].primary, cluster)),
            ("confusion", confusion_maps(rows)),
        ):
            files[f"{stem}{suffix}.svg"] = svg
            files[f"{stem}{suffix}.png"] = png
    return files
