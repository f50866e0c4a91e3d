"""What was found under each criterion, as sentences and tables: a report fit to publish, and a terminal's summary."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from judge.calibrate.carried import carried_words, support_words
from judge.calibrate.diagnostics import FINDINGS
from judge.calibrate.findings import AgreementRow, Calibration, Choice, ComparisonRow, TrustVerdict
from judge.calibrate.report.lookup import (
    IN_REPORT,
    ON_TERMINAL,
    SPLITS,
    Finding,
    basis,
    best_first,
    chosen_of,
    criteria,
    grades_of,
    heading,
    looked_at,
    of,
    over,
    row_of,
    selection_of,
    split_of,
)
from judge.calibrate.report.sections import COMPARISONS
from judge.calibrate.selection import turned
from judge.io.layout import table_lines
from judge.io.table import Cell, Column, Mark, Plot, Table, as_column
from judge.io.text import code, count, escape, fold, interval, number, p_value, plain, printable, prose, told
from judge.stats.agreement import STATISTICS
from judge.stats.tables import MarginalTest

_MARGINALS = {"bowker": "Bowker's test of symmetry", "stuart_maxwell": "the Stuart-Maxwell test of equal margins"}
NOTES = (
    "Intervals hold 95 % and are over topics: topics, not single items, are what was sampled, and items of one topic "
    "are alike.",
    "The value of a chosen candidate on the grades it was chosen on is too high; optimism is by how much. The ceiling "
    "is the same statistic between assessors. The other columns are in the files "
    f"{code('agreement.tsv')}, {code('confusion.tsv')} and {code('comparisons.tsv')}.",
)


def chapter(calibration: Calibration, criterion: str) -> Iterator[Finding]:
    """What was found under one criterion, but for the verdicts: what the report shows, too."""
    rows = best_first(of(calibration.agreement, criterion))
    chosen = chosen_of(calibration, criterion)
    split = split_of(calibration, criterion)
    row = row_of(rows, chosen, split)
    for part in SPLITS:
        yield from _agreement([row for row in rows if row.split == part], chosen)
    judge = row.name if row else None
    yield from _findings_after(calibration, criterion, "agreement", judge)
    yield from _given([row for row in rows if row.split == split])
    for sentence in _beside([row for row in rows if row.split == split], row):
        yield Finding("", (sentence,))
    if selection := selection_of(calibration, criterion):
        yield Finding("Selection", (selected(selection),))
    for look in of(calibration.looks, criterion):
        looks = f"The ledger of looks: {looked_at(look)}; its last line has the SHA-256 {code(look.head)}."
        yield Finding("", (looks,))
    yield from _comparisons(of(calibration.comparisons, criterion), chosen)
    yield from _findings_after(calibration, criterion, "selection", judge)
    if row:
        yield from confusion(row)
    yield from _findings_after(calibration, criterion, "confusion", judge)


def _findings_after(calibration: Calibration, criterion: str, part: str, judge: str | None) -> Iterator[Finding]:
    """The findings that follow a part of the chapter; those of one title are shown as one."""
    parts: dict[str, tuple[str | Table[Any], ...]] = {}
    for name, table in FINDINGS.items():
        rows = of(calibration.findings.get(name, ()), criterion)
        if table.of_chosen:
            rows = [row for row in rows if row.name == judge]
        if rows and table.after == part:
            finding = table.finding(rows)
            parts[finding.title] = (*parts.get(finding.title, ()), *finding.parts)
    for title, shown in parts.items():
        yield Finding(title, shown)


def verdict_text(verdict: TrustVerdict) -> str:
    """The verdict after its word."""
    text = (
        f"{escape(verdict.judge)} on {grades_of(verdict.split)}, {printable(verdict.statistic)} "
        f"{interval(verdict.estimate)}, {basis(verdict.estimate)}."
    )
    for intro, texts in (("Required", verdict.requirements), ("Because", verdict.reasons)):
        text += f" {intro}: {'; '.join(map(printable, texts))}." if texts else ""
    return text


def unsaid(calibration: Calibration) -> Iterator[str]:
    """The warnings, without those that a verdict gives as a reason."""
    reasons = {f"{verdict.criterion}: {reason}" for verdict in calibration.verdicts for reason in verdict.reasons}
    for warning in calibration.warnings:
        if warning not in reasons:
            yield warning


def second_year(calibration: Calibration, criterion: str) -> Iterator[str]:
    """Whether an earlier certificate's agreement holds, what decided that, and whether responses are like its own."""
    for carried in () if calibration.carried is msgspec.UNSET else of(calibration.carried, criterion):
        yield f"{carried_words(carried)}. Because: {'; '.join(carried.reasons)}."
        yield f"{support_words(carried.support)}."


def _agreement(rows: Sequence[AgreementRow], chosen: str | None) -> Iterator[Finding]:
    if not rows:
        return
    primary = rows[0].primary
    names = list(IN_REPORT)
    names[1:1] = [] if primary in names else [primary]
    references = "; ".join(dict.fromkeys(printable(row.reference) for row in rows))
    parts: list[str | Table[Any]] = [
        f"Against {references}; best lower bound of {heading(primary)} first, the chosen judge in bold.",
        agreement_table(rows, chosen, names),
    ]
    reasons: dict[str, set[str]] = {}
    for row in rows:
        for name in names:
            if (estimate := row.statistics.get(name)) and estimate.reason:
                reasons.setdefault(f"{heading(name)}: {printable(estimate.reason)}", set()).add(row.name)
    undefined = [f"{reason} ({count(len(judges), 'judge')})" for reason, judges in reasons.items()]
    if undefined:
        parts.append(f"Without a value or an interval: {'; '.join(undefined)}.")
    yield Finding(f"Agreement on {grades_of(rows[0].split)}", tuple(parts))


def agreement_table(
    rows: Sequence[AgreementRow], chosen: str | None, names: Sequence[str], *, brief: bool = False
) -> Table[Any]:
    """The statistics of each judge; `brief` has an interval beside the primary one alone, and fewer decimals."""
    primary = rows[0].primary
    if brief:
        names = [primary, *(name for name in names if name != primary)]
    columns = [
        as_column("judge"),
        Column(
            "n/topics",
            about="the gold grades that the judge graded too, which every statistic is about, and their topics",
        ),
        Column("cover" if brief else "coverage", 2, about="their share of the gold grades there are"),
    ]
    wide = {primary}
    for name in names:
        fact = STATISTICS[name]
        if fact.bracketed and not brief:
            wide.add(name)
        head = f"{heading(name)} [95 %]" if name in wide else heading(name)
        columns.append(Column(head, signed=fact.signed, about=fact.about))
    if not brief:
        columns.append(_DESIGN)
    lines: list[list[Cell]] = []
    stands_out: int | None = None
    for place, row in enumerate(rows):
        if row.name == chosen and not row.baseline and stands_out is None:
            stands_out = place
        line: list[Cell] = [f"{row.name} (baseline)" if row.baseline else row.name, over(row), row.coverage]
        for name in names:
            estimate = row.statistics.get(name)
            line.append(estimate if estimate is None or name in wide else estimate.value)
        if not brief:
            line.append(row.design_effect.get(primary))
        lines.append(line)
    return Table(lines, columns, places=2 if brief else 3, plot=_plot(rows), chosen=stands_out)


_DESIGN = Column(
    "design effect",
    2,
    about="how many times wider, squared, the primary statistic's interval is than one that ignores topics",
)


def _plot(rows: Sequence[AgreementRow]) -> Plot:
    """The primary statistic over one axis, from 0 or below to 1; baselines are hollow."""
    low = 0.0
    marks: list[tuple[Mark, ...]] = []
    for row in rows:
        estimate = row.statistics.get(row.primary)
        if estimate is None:
            marks.append(())
            continue
        marks.append(((estimate, row.baseline),))
        low = min([low, *(end for end in (estimate.value, estimate.low) if end is not None)])
    name = f"{heading(rows[0].primary)} with its 95 % interval, rings: baselines"
    return Plot(name=name, low=low, high=1.0, lines=tuple(marks))


def _given(rows: Sequence[AgreementRow]) -> Iterator[Finding]:
    if not rows:
        return
    most = max(rows, key=lambda row: row.n)
    lines = [("assessors", dict(zip(most.grades, map(sum, most.confusion), strict=True)))]
    for row in rows:
        by_judge = map(sum, zip(*row.confusion, strict=True))
        lines.append((row.name, dict(zip(row.grades, by_judge, strict=True))))
    parts: list[str | Table[Any]] = [Table(lines, ("judge", "grades"))]
    if most.tied:
        parts.append(APART.format(ties=count(most.tied, "item")))
    yield Finding(f"How often each grade is given, on {grades_of(rows[0].split)}", tuple(parts))


def ceiling(row: AgreementRow | None) -> str:
    """The agreement between the assessors themselves, beside the chosen judge's."""
    between = row.ceiling if row else None
    if row and between and between.value is not None:
        return (
            f"Ceiling: between the assessors themselves {heading(row.primary)} is {interval(between)}, "
            f"{basis(between)}. Against a consensus, whose errors partly cancel, a judge may come out higher."
        )
    reason = f" ({printable(between.reason)})" if between and between.reason else ""
    return f"Ceiling: unknown{reason}; it needs items that two or more assessors graded."


TIES = (
    "The reference is the grade that most assessors of an item gave; where grades tie, each counts as an equal part of "
    "the item"
)
"""What several assessors are to the judges that are compared with them."""


ADJUDICATION = (
    "An adjudicated grade is the grade of its item. What assessors gave it before says only how far they agree"
)
"""What adjudication is to the judges that are compared with it."""


APART = "Left out here: {ties} on which assessors tie."
"""What is said of a table that has one grade of an item."""


def ties(row: AgreementRow | None) -> str:
    """How the assessors' ties count, and how many there are; nothing with one assessor."""
    if row is None or "consensus" not in row.reference:
        return ""
    adjudicated = f" {ADJUDICATION}." if "adjudicated" in row.reference else ""
    return f"{TIES} ({row.tied} of {row.gold} here).{adjudicated}"


def _beside(rows: Sequence[AgreementRow], row: AgreementRow | None) -> Iterator[str]:
    """The ceiling, the judge's agreement with itself, and the baselines, in words."""
    if rows:
        yield ceiling(row)
        if ties(row):
            yield ties(row)
    if row and row.test_retest:
        again = interval(row.test_retest)
        yield f"Asked again, {escape(row.name)} agrees with itself to a Krippendorff's ordinal alpha of {again}."
    baselines = [beside for beside in rows if beside.baseline]
    if baselines:
        reached = "; ".join(
            f"{escape(beside.name)} reaches {heading(beside.primary)} {interval(beside.statistics.get(beside.primary))}"
            for beside in baselines
        )
        yield f"Baselines that nobody would deploy, and that a judge must beat: {reached}."


def selected(selection: Choice) -> str:
    """How the judge was chosen, and how much the choice flatters it."""
    statistic = heading(selection.statistic)
    on = grades_of(selection.chosen_on)
    value = interval(selection.value)
    name = escape(selection.chosen)
    candidates = len(selection.tried)
    # Without test grades, the verdict says the value already.
    there = f": {statistic} {value} on {on}" if selection.test else ""
    texts = [
        f"{name} was chosen from {candidates} candidates by {statistic} on {on}: {value} there."
        if candidates > 1
        else f"{name} is the only candidate{there}."
    ]
    if selection.test:
        texts.append(f"On test grades: {interval(selection.test)}.")
    if selection.nested is not None and candidates > 1:
        texts.append(f"With the choice repeated inside topic folds: {number(selection.nested)}.")
    if selection.after_choice:
        texts.append(f"With an interval that holds for all candidates at once: {interval(selection.after_choice)}.")
    if selection.optimism is not None and candidates > 1:
        texts.append(f"Optimism of the choice: {number(selection.optimism, signed=True)}.")
    others = [name for name in selection.not_separable if name != selection.chosen]
    if others:
        texts.append(f"Others that may be the best, by elimination at 5 %: {'; '.join(map(printable, others))}.")
    elif candidates > 1:
        texts.append("Elimination at 5 % leaves no other candidate.")
    if selection.openings is not None:
        texts.append(
            f"The sealed test grades have been opened {count(selection.openings, 'time')} for different questions."
        )
    return " ".join(texts)


def _comparisons(rows: Sequence[ComparisonRow], chosen: str | None) -> Iterator[Finding]:
    """The chosen candidate against every other one, as chosen minus other."""
    for split in SPLITS:
        pairs = [row for row in rows if row.split == split]
        beside = []
        for row in pairs:
            if row.a == chosen:
                beside.append(row)
            elif row.b == chosen:
                beside.append(replace(row, a=row.b, b=row.a, difference=turned(row.difference)))
        if pairs:
            yield COMPARISONS.finding(pairs, beside)


def confusion(row: AgreementRow) -> Iterator[Finding]:
    """The table of the judge's and the assessors' grades, the missing grades, and whether the margins differ."""
    totals = [sum(counts) for counts in row.confusion]
    lines = [
        [str(grade), *counts, total, counts[place] / total if total else None]
        for place, (grade, counts, total) in enumerate(zip(row.grades, row.confusion, totals, strict=True))
    ]
    columns = [*map(as_column, ("assessors", *(f"judge {grade}" for grade in row.grades), "all")), Column("recall", 2)]
    shares = tuple(
        (None, *(n / total if total else None for n in counts), None, None)
        for counts, total in zip(row.confusion, totals, strict=True)
    )
    parts: list[str | Table[Any]] = [Table(lines, columns, shares=shares)]
    if row.tied:
        parts.append(APART.format(ties=count(row.tied, "item")))
    if row.without_grade:
        reasons = ", ".join(f"{n} {printable(reason)}" for reason, n in sorted(row.without_grade.items()))
        parts.append(f"Gold items without a grade by the judge: {reasons}.")
    if row.marginals:
        tests = "; ".join(f"{_MARGINALS[test.name]}: {_marginal(test)}" for test in row.marginals)
        parts.append(
            f"Does it use the grades as often as assessors do? {tests} (items taken as independent of each other)."
        )
    yield Finding(f"Grades of {escape(row.name)} against the assessors'", tuple(parts))


def _marginal(test: MarginalTest) -> str:
    if test.chi2 is None:
        return printable(test.reason or "-")
    return f"chi² {number(test.chi2, 2)}, {test.df} df, p {p_value(test.p)}"


ROWS = 12
"""Judges that the terminal shows under each criterion; baselines and the chosen judge are always among them."""
_WIDTH = 120
_NO_VERDICT = "No verdict was asked for."


def calibration_markdown(calibration: Calibration) -> str:
    """The whole report; names are escaped, so that they show as they are."""
    parts = ["# Calibration\n"]
    if calibration.warnings:
        parts.append("\n" + "".join(f"- **Warning**: {prose(warning)}\n" for warning in calibration.warnings))
    columns: list[Column] = []
    for criterion in criteria(calibration):
        parts.append(f"\n## {prose(criterion)}\n")
        verdicts = of(calibration.verdicts, criterion)
        blocks = [f"**{verdict.word}**: {told(verdict_text(verdict))}" for verdict in verdicts] or [_NO_VERDICT]
        blocks += [told(escape(text)) for text in second_year(calibration, criterion)]
        for finding in chapter(calibration, criterion):
            if finding.title:
                blocks.append(f"### {told(finding.title)}")
            for part in finding.parts:
                if isinstance(part, str):
                    blocks.append(told(part))
                else:
                    blocks.append(part.body(words={0}))
                    columns += part.columns
        parts += [f"\n{block}\n" for block in blocks]
    parts.append("\n## How to read this\n")
    for paragraph in (*NOTES, *Table((), columns).captions()):
        parts.append(f"\n{textwrap.fill(told(paragraph), _WIDTH)}\n")
    return "".join(parts)


def summary(calibration: Calibration, columns: int = 80, whole: str = "calibration.md") -> str:
    """Warnings, the heart of each chapter in lines of the terminal's width, and the verdicts last.

    `whole`: what has the columns that are left out.
    """
    lines: list[str] = []
    for warning in unsaid(calibration):
        lines += fold(f"! {printable(warning)}", columns)
    names = criteria(calibration)
    for name in names:
        lines.append("")
        for finding in _heart(calibration, name):
            lines += _drawn(finding, columns, whole)
    for name in names:
        lines.append("")
        verdicts = of(calibration.verdicts, name)
        for text in [f"{verdict.word}: {verdict_text(verdict)}" for verdict in verdicts] or [_NO_VERDICT]:
            lines += fold(f"{printable(name)}: {plain(text)}", columns)
        for text in second_year(calibration, name):
            lines += fold(f"{printable(name)}: {printable(text)}", columns)
    return "".join(f"{line}\n" for line in lines)


def _heart(calibration: Calibration, criterion: str) -> Iterator[Finding]:
    split = split_of(calibration, criterion)
    chosen = chosen_of(calibration, criterion)
    rows = best_first(row for row in of(calibration.agreement, criterion) if row.split == split)
    references = ", ".join(dict.fromkeys(printable(row.reference) for row in rows))
    basis = f"{grades_of(split)} ({references})" if rows else f"{grades_of(split)}: no judge was compared"
    yield Finding("", (f"{printable(criterion)}: {basis}",))
    if rows:
        shown = _shown(rows, chosen)
        yield Finding("", (agreement_table(shown, chosen, ON_TERMINAL, brief=True),))
        if left := len(rows) - len(shown):
            yield Finding("", (f"{count(left, 'more row')} in agreement.tsv",))
        row = row_of(rows, chosen, split)
        yield Finding("", (" ".join(filter(None, (ceiling(row), ties(row) if row and row.tied else ""))),))
    if selection := selection_of(calibration, criterion):
        yield Finding("", (selected(selection),))
    for name, table in FINDINGS.items():
        findings = of(calibration.findings.get(name, ()), criterion)
        if table.of_chosen:
            findings = [row for row in findings if row.name == chosen]
        if table.on_terminal and findings:
            yield table.finding(findings)


def _shown(rows: Sequence[AgreementRow], chosen: str | None) -> list[AgreementRow]:
    """The best `ROWS` in order; baselines and the chosen judge take the place of the last ones."""
    always = {place for place, row in enumerate(rows) if row.baseline or row.name == chosen}
    others = [place for place in range(len(rows)) if place not in always]
    return [rows[place] for place in sorted({*always, *others[: max(0, ROWS - len(always))]})]


def _drawn(finding: Finding, columns: int, whole: str) -> Iterator[str]:
    """The tables of a finding, or its sentences where it has none: calibration.md says how tables are read."""
    tables = [part for part in finding.parts if isinstance(part, Table)]
    if finding.title:
        yield from fold(plain(finding.title), columns)
    for table in tables:
        yield from table_lines(table.names, [*table.cells()], columns, words=table.words(), whole=whole)
    for part in finding.parts if not tables else ():
        yield from fold(plain(str(part)), columns)
