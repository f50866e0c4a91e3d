"""The files of a calibration: names and bytes, the same for the same findings.

A TSV file has a stable header, six decimals, and for an undefined number an empty cell and a note.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from judge.calibrate.diagnostics import FINDINGS
from judge.calibrate.findings import AgreementRow, Calibration, TrustVerdict
from judge.calibrate.report.lookup import best_first, merged
from judge.calibrate.report.pages import calibration_markdown
from judge.calibrate.report.plots import confusion_maps, forest
from judge.calibrate.report.sections import COMPARISONS, JUDGE, ends
from judge.io.files import json_bytes
from judge.io.ids import Cluster, groups_of
from judge.io.installed import has_extra
from judge.io.table import Column, RecordColumns, fields, records_tsv, tsv
from judge.stats import agreement
from judge.stats.discrimination import EXPECTED

SCHEMA = 4
"""Version of calibration.json and selection.json."""
STATISTICS = (*agreement.STATISTICS, *EXPECTED)
"""The statistics of agreement, in column order."""
_WORST = " ".join(name for name, statistic in agreement.STATISTICS.items() if statistic.worst_case)
_GRADED = agreement.primary_statistic(3)
"""The primary statistic of more than two grades; its interval over items has columns on every scale."""


def _statistics(names: Iterable[str]) -> RecordColumns:
    columns: dict[Column | str, Callable[[Any], object]] = {}
    for name in names:
        columns |= ends(name, f"statistics.{name}")
    return columns


def _marginal(test: str, part: str) -> Callable[[Any], object]:
    return lambda row: next((getattr(result, part) for result in row.marginals if result.name == test), None)


AGREEMENT: RecordColumns = {
    **JUDGE.file,
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
    **ends("ceiling", "ceiling"),
    **ends("test_retest", "test_retest"),
    **fields("primary binary tied"),
}
"""The columns of `agreement.tsv` before the verdict."""


def clustered(table: str, cluster: Cluster) -> str:
    """A table with the unit of its intervals as a last note of each row, unless that is the topic."""
    head, *lines = table.split("\n")
    if cluster == "topic" or not head.endswith(("\tnote", "\tnotes")):
        return table
    note = f"clustered by {cluster}"
    noted = [head]
    for line in lines:
        if not line:
            noted.append(line)
        elif line.endswith("\t"):
            noted.append(f"{line}{note}")
        else:
            noted.append(f"{line}; {note}")
    return "\n".join(noted)


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
    lines: list[tuple[object, ...]] = []
    for row in rows:
        for human, counts in zip(row.grades, row.confusion, strict=True):
            total = sum(counts)
            for grade, n in zip(row.grades, counts, strict=True):
                share = n / total if total else None
                lines.append((row.judge, row.prompt, row.criterion, row.split, human, grade, n, share))
    return tsv((*JUDGE.file, "human", "judge_grade", "count", "row_share"), lines)


def finding_files(calibration: Calibration) -> dict[str, str]:
    """The tables of the findings by file."""
    tables: dict[str, str] = {}
    for name, table in FINDINGS.items():
        text = table.tsv(calibration.findings.get(name, ()))
        if not table.over_items:
            text = clustered(text, _cluster(calibration))
        if table.file in tables:
            text = tables[table.file] + text.partition("\n")[2]
        if table.file:
            tables[table.file] = text
    return tables


def _cluster(calibration: Calibration) -> Cluster:
    return "topic" if calibration.cluster is msgspec.UNSET else calibration.cluster


def calibration_files(calibration: Calibration) -> dict[str, bytes]:
    """The content of every file by its name; an empty table is left out, and so are pictures without matplotlib."""
    cluster = _cluster(calibration)
    tables = {
        "agreement.tsv": clustered(agreement_tsv(calibration.agreement, calibration.verdicts), cluster),
        "confusion.tsv": confusion_tsv(calibration.agreement),
        "comparisons.tsv": clustered(COMPARISONS.tsv(calibration.comparisons), cluster),
        **finding_files(calibration),
    }
    tables["calibration.md"] = calibration_markdown(calibration)
    files = {name: text.encode() for name, text in tables.items() if text.count("\n") > 1}
    builtins = msgspec.to_builtins(calibration)
    files["calibration.json"] = json_bytes({"schema": SCHEMA, **builtins})
    files["selection.json"] = json_bytes({"schema": SCHEMA, "selections": builtins["selections"]})
    if not has_extra("pictures"):
        return files
    by_criterion = groups_of((row.criterion, row) for row in calibration.agreement)
    for number, agreement_rows in enumerate(by_criterion.values()):
        rows = best_first(agreement_rows)
        # A criterion's name may hold any character, so several files are named by number.
        suffix = "" if len(by_criterion) == 1 else f"-{number + 1}"
        for stem, (svg, png) in (
            ("agreement", forest(rows, rows[0].primary, cluster)),
            ("confusion", confusion_maps(rows)),
        ):
            files[f"{stem}{suffix}.svg"] = svg
            files[f"{stem}{suffix}.png"] = png
    return files
