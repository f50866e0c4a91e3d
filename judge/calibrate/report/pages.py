"""A calibration as a report fit to publish, and as the summary that a terminal shows."""

import textwrap
from collections.abc import Iterator, Sequence

from judge.calibrate.findings import AgreementRow, Calibration
from judge.calibrate.report.chapters import NOTES, agreement_table, ceiling, chapter, selected, verdict_text
from judge.calibrate.report.lookup import (
    ON_TERMINAL,
    Finding,
    best_first,
    chosen_of,
    criteria,
    grades_of,
    looked_at,
    of,
    row_of,
    selection_of,
    split_of,
)
from judge.calibrate.report.sections import CASCADES, EQUIVALENCE, GROUP_COSTS, TOGETHER
from judge.io.layout import table_lines
from judge.io.table import Table
from judge.io.text import count, fold, plain, printable, prose, told

ROWS = 12
"""Judges that the terminal shows under each criterion; baselines and the chosen judge are always among them."""
_WIDTH = 120
_NO_VERDICT = "No verdict was asked for."


def calibration_markdown(calibration: Calibration) -> str:
    """The whole report; names are escaped, so that they show as they are."""
    parts = ["# Calibration\n"]
    if calibration.warnings:
        parts.append("\n" + "".join(f"- **Warning**: {prose(warning)}\n" for warning in calibration.warnings))
    findings = {name: [*chapter(calibration, name)] for name in criteria(calibration)}
    for criterion, found in findings.items():
        verdicts = [f"**{one.word}**: {told(verdict_text(one))}" for one in of(calibration.verdicts, criterion)]
        blocks = (block for finding in found for block in _blocks(finding))
        parts.append(f"\n## {prose(criterion)}\n")
        parts += (f"\n{block}\n" for block in (*(verdicts or [_NO_VERDICT]), *blocks))
    parts += (f"\n{block}\n" for finding in GROUP_COSTS.findings(calibration) for block in _blocks(finding, "##"))
    tables = (part for found in findings.values() for _, parts in found for part in parts if isinstance(part, Table))
    columns = Table((), (column for table in tables for column in table.columns)).captions()
    notes = (f"\n{textwrap.fill(told(paragraph), _WIDTH)}\n" for paragraph in (*NOTES, *columns))
    return "".join([*parts, "\n## How to read this\n", *notes])


def _blocks(finding: Finding, level: str = "###") -> Iterator[str]:
    if finding.title:
        yield f"{level} {told(finding.title)}"
    for part in finding.parts:
        yield told(part) if isinstance(part, str) else part.body(words={0})


def summary(calibration: Calibration, columns: int = 80) -> str:
    """Warnings, the heart of each chapter in lines of the terminal's width, and the verdicts last."""
    lines = [line for warning in calibration.warnings for line in fold(f"! {printable(warning)}", columns)]
    names = criteria(calibration)
    for name in names:
        lines += ["", *(line for finding in _heart(calibration, name) for line in _drawn(finding, columns))]
    for finding in GROUP_COSTS.findings(calibration):
        lines += ["", *_drawn(finding, columns)]
    for name in names:
        verdicts = [f"{one.word}: {verdict_text(one)}" for one in of(calibration.verdicts, name)] or [_NO_VERDICT]
        lines += ["", *(line for text in verdicts for line in fold(f"{printable(name)}: {plain(text)}", columns))]
    return "".join(f"{line}\n" for line in lines)


def _heart(calibration: Calibration, criterion: str) -> Iterator[Finding]:
    split, chosen = split_of(calibration, criterion), chosen_of(calibration, criterion)
    rows = best_first(row for row in of(calibration.agreement, criterion) if row.split == split)
    references = ", ".join(dict.fromkeys(printable(row.reference) for row in rows))
    basis = f"{grades_of(split)} of {references}" if rows else f"{grades_of(split)}: no judge was compared"
    yield Finding("", (f"{printable(criterion)}: {basis}",))
    if rows:
        shown = _shown(rows, chosen)
        yield Finding("", (agreement_table(shown, chosen, ON_TERMINAL, brief=True),))
        if left := len(rows) - len(shown):
            yield Finding("", (f"{count(left, 'more row')} in agreement.tsv",))
        yield Finding("", (ceiling(row_of(rows, chosen, split)),))
    if selection := selection_of(calibration, criterion):
        yield Finding("", (selected(selection),))
    yield from (Finding("", (looked_at(look),)) for look in of(calibration.looks, criterion) if look.ledger != "seal")
    for section in (TOGETHER, CASCADES, EQUIVALENCE):
        yield from section.findings(calibration, criterion)


def _shown(rows: Sequence[AgreementRow], chosen: str | None) -> list[AgreementRow]:
    """The best `ROWS` in order; baselines and the chosen judge take the place of the last ones."""
    always = {place for place, row in enumerate(rows) if row.baseline or row.name == chosen}
    others = [place for place in range(len(rows)) if place not in always]
    return [rows[place] for place in sorted({*always, *others[: max(0, ROWS - len(always))]})]


def _drawn(finding: Finding, columns: int) -> Iterator[str]:
    """The tables of a finding, or its sentences where it has none: calibration.md says how tables are read."""
    tables = [part for part in finding.parts if isinstance(part, Table)]
    if finding.title:
        yield from fold(plain(finding.title), columns)
    for table in tables:
        yield from table_lines(table.columns, [*table.cells()], columns, words=table.words())
    for part in finding.parts if not tables else ():
        yield from fold(plain(str(part)), columns)
