"""The judge against people: how far they agree, where they differ, which prompt comes nearer. Pure."""

from collections.abc import Iterator, Sequence

from judge.calibrate.findings import AgreementRow, Calibration, ComparisonRow, TrustVerdict, Word
from judge.calibrate.report.lookup import (
    SEPARABLE,
    basis,
    best_first,
    chosen_of,
    criteria,
    grades_of,
    heading,
    of,
    row_of,
    selection_of,
    split_of,
)
from judge.files.trec import safe_names
from judge.records import Estimate, JudgedUnit
from judge.report.parts import Mark, Noted, Plot, ReportPart, ReportTable, Said, Section, Tone
from judge.report.sections.words import capped, titled
from judge.results.rows import worded
from judge.stats.agreement import STATISTICS
from judge.text.cells import count, interval, number
from judge.text.safe import printable
from judge.text.table import Cell, Table, p_cell

_TONES: dict[Word, Tone] = {"TRUSTED": "good", "NOT TRUSTED": "bad", "INCONCLUSIVE": "warn"}
_MEANING: dict[Word, str] = {
    "TRUSTED": "it agrees with people at least as well as was required",
    "NOT TRUSTED": "it agrees with people less well than was required",
    "INCONCLUSIVE": "these grades do not tell whether it agrees well enough",
}
_BESIDE = ("percent", "bias")
"""Statistics beside the primary one."""
_NAMES = {"wkappa": "weighted kappa", "percent": "same grade", "bias": "judge minus people"}
_READING = {
    "wkappa": "Weighted kappa: how far the grades agree beyond chance, where a grade two off counts four times one off",
    "kappa": "Kappa: how far the grades agree beyond chance",
    "percent": "Same grade: the share of responses to which both give the same",
    "bias": "Judge minus people: the mean difference in grades",
}
"""What statistics are called here, and what they say."""


def verdicts(calibration: Calibration) -> tuple[ReportPart, ...]:
    """What may be said of each judge, and the warnings that a reader must know before any number."""
    parts: list[ReportPart] = [Said(_verdict(verdict), _TONES[verdict.word]) for verdict in calibration.verdicts]
    if not calibration.verdicts:
        parts.append(Said("No verdict was asked for: a requirement such as wkappa.lo>=0.4 makes one."))
    warnings = tuple(capped(printable(warning)) for warning in calibration.warnings)
    return (*parts, Noted("To be known before any number:", warnings)) if warnings else tuple(parts)


def _verdict(verdict: TrustVerdict) -> str:
    text = (
        f"{titled(verdict.criterion)}: {verdict.word}. Of {printable(verdict.judge)}: {_MEANING[verdict.word]} "
        f"({called(verdict.statistic)} {interval(verdict.estimate, 2)}, {basis(verdict.estimate)})."
    )
    return text + (f" Because: {'; '.join(map(printable, verdict.reasons))}." if verdict.reasons else "")


def agreements(calibration: Calibration, unit: JudgedUnit = "response") -> Iterator[Section]:
    """A section for each criterion: agreement, the table of grades, and every pair with the chosen judge.

    Args:
        calibration: What was found.
        unit: What is judged.
    """
    slugs = safe_names(criteria(calibration))
    for name in criteria(calibration):
        rows = best_first(of(calibration.agreement, name))
        chosen, split = chosen_of(calibration, name), split_of(calibration, name)
        parts: list[ReportPart] = []
        for part in ("test", "all", "dev"):
            if within := [row for row in rows if row.split == part]:
                parts.append(_agreement(within, chosen, unit))
        selection = selection_of(calibration, name)
        if selection and len(selection.tried) > 1:
            text = f"{printable(selection.chosen)} was chosen from {count(len(selection.tried), 'candidate')}"
            others = [other for other in selection.not_separable if other != selection.chosen]
            text += f"; {', '.join(map(printable, others))} may be as good." if others else "."
            parts.append(Said(text))
        row = row_of(rows, chosen, split) or next((row for row in rows if not row.baseline), None)
        if row:
            parts.append(_confusion(row, unit))
        parts += _comparisons(of(calibration.comparisons, name), chosen, unit)
        yield Section(f"agreement-{slugs[name]}", f"Agreement with people: {name}", tuple(parts))


def _agreement(rows: Sequence[AgreementRow], chosen: str | None, unit: JudgedUnit) -> ReportTable:
    primary = rows[0].primary
    names = [primary, *(name for name in _BESIDE if name != primary)]
    columns = ("judge", *map(called, names))
    columns += ("compared on", "share of the gold", "note")
    lines = tuple(_line(row, names, chosen) for row in rows)
    ends = [end for row in rows if (found := row.statistics.get(primary)) for end in (found.value, found.low)]
    low = min([0.0, *(end for end in ends if end is not None)])
    marks = tuple((Mark(row.statistics[primary], hollow=row.baseline),) for row in rows)
    ceiling = next((row.ceiling for row in rows if row.ceiling and row.ceiling.value is not None), None)
    reading = (
        f"A line for each judge beside {rows[0].reference}. {_said(primary, unit)}; 1 is perfect, 0 is what chance "
        f"alone gives. {'. '.join(_said(name, unit) for name in names[1:])}. A baseline is nothing that anybody would "
        f"use: a judge has to be better. Compared on: the {unit}s that both graded."
    )
    if ceiling:
        reading += f" People agree among themselves to {interval(ceiling, 2)}."
    return ReportTable(
        Table(lines, columns, f"{titled(rows[0].criterion)}, {grades_of(rows[0].split)}", (), 2),
        reading,
        Plot(f"{called(primary)}, drawn", low, 1.0, marks),
    )


def called(statistic: str) -> str:
    """What a statistic is called in a report."""
    return _NAMES.get(statistic, heading(statistic))


def _said(statistic: str, unit: JudgedUnit) -> str:
    said = _READING.get(statistic) or capped(f"{called(statistic)}: {STATISTICS[statistic].about}")[:-1]
    return worded(said, unit)


def _line(row: AgreementRow, names: Sequence[str], chosen: str | None) -> tuple[Cell, ...]:
    first, *rest = (row.statistics.get(name) for name in names)
    note = "baseline" if row.baseline else "the chosen one" if row.name == chosen else None
    return (
        row.name,
        first if first is not None else Estimate(None, None, None, 0, 0),
        *(None if found is None or found.value is None else number(found.value, 2) for found in rest),
        f"{row.n}, {count(row.topics, 'topic')}",
        f"{100 * row.coverage:.0f} %",
        note,
    )


def _confusion(row: AgreementRow, unit: JudgedUnit) -> ReportTable:
    totals = [sum(counts) for counts in row.confusion]
    columns = ("people", *(f"judge: {grade}" for grade in row.grades), "in all")
    lines: list[tuple[Cell, ...]] = [
        (f"people: {grade}", *counts, total)
        for grade, counts, total in zip(row.grades, row.confusion, totals, strict=True)
    ]
    shares = tuple(
        (None, *(n / total if total else None for n in counts), None)
        for counts, total in zip(row.confusion, totals, strict=True)
    )
    missing = ", ".join(f"{n} {reason}" for reason, n in sorted(row.without_grade.items()))
    return ReportTable(
        Table(lines, columns, f"Grades of {printable(row.name)} beside people's"),
        f"A line for each grade that people gave, a column for each grade of the judge: how many {unit}s have both. "
        "On the diagonal they agree; the darker a cell, the more of its line it holds."
        + (f" Without a grade by the judge: {missing}." if missing else ""),
        shares=shares,
    )


def _comparisons(rows: Sequence[ComparisonRow], chosen: str | None, unit: JudgedUnit) -> Iterator[ReportPart]:
    pairs = [row for row in rows if chosen in (row.a, row.b)] or list(rows)
    if not pairs:
        return
    lines: list[tuple[Cell, ...]] = []
    for row in pairs:
        apart = "not tested" if row.p_max_t is None else "yes" if row.p_max_t <= SEPARABLE else "no"
        lines.append((row.a, row.b, row.difference, apart, p_cell(row.p_max_t), row.difference.n, row.split))
    columns = ("this", "against this", "difference", "told apart", "p", "compared on", "grades")
    yield ReportTable(
        Table(lines, columns, f"Judges and prompts compared: {pairs[0].criterion}", (), 2),
        f"Two judges or prompts on the same {unit}s, by {called(pairs[0].statistic)}: above zero, the first comes "
        "nearer to people. p: how often chance alone gives such a difference somewhere among all the pairs (max-T).",
    )
