"""The summary that a terminal shows: plain text in its width, a verdict line for each criterion at the end."""

from collections.abc import Iterator, Sequence

from judge.calibrate.findings import AgreementRow, Calibration, Choice, EquivalenceRow, TrustVerdict
from judge.calibrate.report.details import asked_together, cascades, group_costs
from judge.calibrate.report.lookup import (
    ON_TERMINAL,
    Finding,
    best_first,
    chosen_of,
    criteria,
    heading,
    looked_at,
    of,
    row_of,
    selection_of,
    split_of,
    verdict_of,
)
from judge.calibrate.selection import ASSESSORS
from judge.io.cells import columns_of, count, fold, number, shorten
from judge.io.layout import table_lines
from judge.io.safe import printable
from judge.io.table import Table
from judge.records import Estimate
from judge.stats.agreement import STATISTICS

ROWS = 12
"""Judges shown for each criterion; baselines and the chosen judge are always among them."""


def summary(calibration: Calibration, columns: int = 80) -> str:
    """Warnings, a table for each criterion, then verdict lines that end with the verdict's word."""
    lines = [line for warning in calibration.warnings for line in fold(f"! {printable(warning)}", columns)]
    names = criteria(calibration)
    for name in names:
        lines += ["", *_criterion(calibration, name, columns)]
    for finding in group_costs(calibration):
        lines += ["", *_finding(finding, columns)]
    lines.append("")
    for name in names:
        lines += _verdict_line(calibration, name, columns)
    return "".join(f"{line}\n" for line in lines)


def _criterion(calibration: Calibration, criterion: str, columns: int) -> list[str]:
    split = split_of(calibration, criterion)
    every = of(calibration.agreement, criterion)
    rows = best_first(row for row in every if row.split == split)
    chosen = chosen_of(calibration, criterion)
    lines = fold(printable(criterion) + _heading(rows), columns)
    if rows:
        shown = _shown(rows, chosen)
        lines += _table(shown, chosen, columns)
        left = len(rows) - len(shown)
        lines.append("* chosen, = baseline" + (f"; {count(left, 'more row')} in agreement.tsv" if left else ""))
    selection = selection_of(calibration, criterion)
    if selection and (selected := _selected(selection)):
        lines += fold(selected, columns)
    if equivalence := of(calibration.equivalence, criterion):
        lines += fold(_equivalent(equivalence), columns)
    for finding in (*asked_together(calibration, criterion), *cascades(calibration, criterion)):
        lines += _finding(finding, columns)
    for look in of(calibration.looks, criterion):
        lines += fold(looked_at(look), columns) if look.ledger != "seal" else []
    if verdict := verdict_of(calibration, criterion):
        for intro, texts in (("required", verdict.requirements), ("because", verdict.reasons)):
            lines += fold(f"{intro}: {printable('; '.join(texts))}", columns) if texts else []
    return lines


def _heading(rows: Sequence[AgreementRow]) -> str:
    references = dict.fromkeys(printable(row.reference) for row in rows)
    return f": {rows[0].split} grades of {', '.join(references)}" if rows else ": no judge was compared"


def _shown(rows: Sequence[AgreementRow], chosen: str | None) -> list[AgreementRow]:
    """The best `ROWS` in order; baselines and the chosen judge take the place of the last ones."""
    always = {place for place, row in enumerate(rows) if row.baseline or row.name == chosen}
    others = [place for place in range(len(rows)) if place not in always]
    return [rows[place] for place in sorted({*always, *others[: max(0, ROWS - len(always))]})]


def _table(rows: Sequence[AgreementRow], chosen: str | None, columns: int) -> list[str]:
    """Lines with marks and names on the left and numbers on the right, the primary statistic with its interval."""
    primary = rows[0].primary
    before = [name for name in ON_TERMINAL if name != primary and not STATISTICS[name].signed]
    after = [name for name in ON_TERMINAL if name != primary and STATISTICS[name].signed]
    # Value and ends of the primary statistic are aligned each by itself, under one header.
    spreads = [_spread(row.statistics.get(row.primary)) for row in rows]
    wide = [max(map(len, parts)) for parts in zip(*spreads, strict=True)]
    cells = [
        [
            f"{row.n}/{row.topics}",
            short(row.coverage),
            *(short(_value(row, name)) for name in before),
            " ".join(map(str.rjust, spread, wide)),
            *(short(_value(row, name), signed=True) for name in after),
        ]
        for row, spread in zip(rows, spreads, strict=True)
    ]
    header = ["n/topics", "cover", *map(heading, before), f"{primary} [95 %]", *map(heading, after)]
    marks = ["=" if row.baseline else "*" if row.name == chosen else " " for row in rows]
    names = [f"{mark} {printable(row.name)}" for mark, row in zip(marks, rows, strict=True)]
    lines = [[name, *line] for name, line in zip(names, cells, strict=True)]
    return [line.text for line in table_lines(["  judge", *header], lines, columns)]


def _value(row: AgreementRow, name: str) -> float | None:
    return row.statistics[name].value if name in row.statistics else None


def _spread(estimate: Estimate | None) -> tuple[str, str, str]:
    """A value and the ends of its interval, with their brackets."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return short(estimate.value if estimate else None), "", ""
    return short(estimate.value), f"[{short(estimate.low)},", f"{short(estimate.high)}]"


def short(value: float | None, *, signed: bool = False) -> str:
    """Two decimals without a leading zero.

    >>> short(0.614), short(-0.05), short(1.0), short(0.31, signed=True), short(None)
    ('.61', '-.05', '1.00', '+.31', '-')
    """
    text = number(value, 2, signed=signed)
    sign, digits = (text[0], text[1:]) if text[0] in "+-" and value is not None else ("", text)
    return sign + digits.removeprefix("0")


def _selected(selection: Choice) -> str:
    """How the choice was made, and how much it flatters; empty without a choice."""
    parts = []
    if len(selection.tried) > 1:
        on = "all grades" if selection.chosen_on == "all" else selection.chosen_on
        parts.append(f"chosen from {len(selection.tried)} candidates by {selection.statistic} on {on}")
        if selection.after_choice_worst is not None:
            parts.append("missing grades counted as the farthest")
        if selection.optimism is not None:
            parts.append(f"optimism {short(selection.optimism, signed=True)}")
        others = len([name for name in selection.not_separable if name != selection.chosen])
        parts.append(f"{count(others, 'other')} not separable from it")
    if selection.openings is not None:
        parts.append(f"sealed test grades opened {count(selection.openings, 'time')}")
    return "; ".join(parts)


def _finding(finding: Finding, columns: int) -> Iterator[str]:
    """The tables of a finding under its title; how they are read says calibration.md."""
    for table in finding.parts:
        if isinstance(table, Table):
            yield f"{finding.title}:"
            yield from (line.text for line in table_lines(table.columns, [*table.cells()], columns, words={0, 1}))


def _equivalent(rows: Sequence[EquivalenceRow]) -> str:
    """How many of the others the chosen judge is equivalent to, and what it is to the assessors."""
    judges = [row for row in rows if row.b != ASSESSORS]
    alike = sum(row.word == "EQUIVALENT" for row in judges)
    parts = [f"equivalent within {short(rows[0].margin)} to {alike} of {count(len(judges), 'other')}"]
    parts += [f"to the {ASSESSORS} among themselves: {row.word}" for row in rows if row.b == ASSESSORS]
    return "; ".join(parts)


def _verdict_line(calibration: Calibration, criterion: str, columns: int) -> list[str]:
    """The verdict on one line, or on two where it is too long."""
    verdict = verdict_of(calibration, criterion)
    name = shorten(printable(criterion), 20)
    if verdict is None:
        return [f"{name}  NO VERDICT"]
    basis = f"{verdict.split} n={verdict.estimate.n}/{count(verdict.estimate.topics, 'topic')}"
    judge = shorten(printable(verdict.judge), columns - columns_of(f"{name}    {basis}"))
    tail = _measured(calibration, verdict)
    line = "  ".join([name, judge, basis, *tail])
    if columns_of(line) <= columns:
        return [line]
    below = "  ".join(["", *tail])
    parts = [below] if columns_of(below) <= columns else [f"  {part}" for part in fold(below, columns - 2)]
    return ["  ".join([name, judge, basis]), *parts]


def _measured(calibration: Calibration, verdict: TrustVerdict) -> list[str]:
    row = row_of(of(calibration.agreement, verdict.criterion), verdict.judge, verdict.split)
    parts = [" ".join(part for part in (verdict.statistic, *_spread(verdict.estimate)) if part)]
    if row and row.ceiling and row.ceiling.value is not None:
        parts.append(f"ceiling {short(row.ceiling.value)}")
    for name in ON_TERMINAL:
        if row and STATISTICS[name].signed and _value(row, name) is not None:
            parts.append(f"{heading(name)} {short(_value(row, name), signed=True)}")
    return [*parts, verdict.word]
