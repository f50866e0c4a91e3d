"""The report of a calibration, fit to publish: warnings, a chapter for each criterion, then how to read it."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from judge.calibrate.findings import AgreementRow, Calibration, Choice, ComparisonRow, Split
from judge.calibrate.report.details import (
    DIFFERENCE,
    alternative,
    asked_together,
    cascade_bounds,
    cascades,
    confusion,
    diagnostics,
    equivalence,
    forecasts,
    group_costs,
    systems,
    worth,
)
from judge.calibrate.report.lookup import (
    IN_REPORT,
    SEPARABLE,
    Finding,
    basis,
    best_first,
    chosen_of,
    criteria,
    grades_of,
    heading,
    looked_at,
    of,
    row_of,
    selection_of,
    split_of,
)
from judge.calibrate.selection import turned
from judge.io.cells import code, count, interval, listed, name_of, number, prose, told
from judge.io.safe import escape, printable
from judge.io.table import Heading, Mark, Plot, Strong, Table, p_cell
from judge.records import Estimate
from judge.stats.agreement import STATISTICS

_SPLITS: tuple[Split, ...] = ("test", "all", "dev")
NOTES = (
    "Intervals hold 95 % and are over topics: topics, not responses, are what was sampled, and responses of one topic "
    "are alike. n/topics: the gold grades that the judge graded too, which every statistic is about, and their topics. "
    "coverage: their share of the gold grades there are. "
    + "".join(f"{heading(name)}: {STATISTICS[name].about}. " for name in IN_REPORT)
    + "design effect: how many times wider, squared, the primary statistic's interval is than one that ignores topics.",
    "Several candidates were compared with the same grades: max-T holds the chance of even one false difference at "
    "5 %; in simulations it is 1 to 4 % from 8 topics on, but 10 to 12 % where half of the judges err much more on "
    "some topics than on others. The value of a chosen candidate on the grades it was chosen on is too high; optimism "
    "is by how much. The ceiling is the same statistic between assessors. The other columns are in the files "
    f"{code('agreement.tsv')}, {code('confusion.tsv')} and {code('comparisons.tsv')}.",
)
_WIDTH = 120


def calibration_markdown(calibration: Calibration) -> str:
    """The whole report; names are escaped, so that they show as they are."""
    parts = ["# Calibration\n"]
    if calibration.warnings:
        parts.append("\n" + "".join(f"- **Warning**: {prose(warning)}\n" for warning in calibration.warnings))
    for criterion in criteria(calibration):
        parts.append(f"\n## {prose(criterion)}\n")
        parts += (f"\n{verdict}\n" for verdict in _verdicts(calibration, criterion))
        parts += (f"\n{block}\n" for finding in chapter(calibration, criterion) for block in _blocks(finding))
    parts += (f"\n{block}\n" for finding in group_costs(calibration) for block in _blocks(finding, "##"))
    notes = (f"\n{textwrap.fill(told(paragraph), _WIDTH)}\n" for paragraph in NOTES)
    return "".join([*parts, "\n## How to read this\n", *notes])


def _blocks(finding: Finding, level: str = "###") -> Iterator[str]:
    if finding.title:
        yield f"{level} {told(finding.title)}"
    for part in finding.parts:
        yield told(part) if isinstance(part, str) else part.body(words={0})


def chapter(calibration: Calibration, criterion: str) -> Iterator[Finding]:
    """What was found under one criterion, but for the verdicts: what the report shows, too."""
    rows = best_first(of(calibration.agreement, criterion))
    chosen, split = chosen_of(calibration, criterion), split_of(calibration, criterion)
    row = row_of(rows, chosen, split)
    for part in _SPLITS:
        yield from _agreement([row for row in rows if row.split == part], chosen)
    yield from (Finding("", (said,)) for said in _beside([row for row in rows if row.split == split], row))
    if selection := selection_of(calibration, criterion):
        yield Finding("Selection", (_selection(selection),))
    for look in of(calibration.looks, criterion):
        said = f"The ledger of looks: {looked_at(look)}; its last line has the SHA-256 {code(look.head)}."
        yield Finding("", (said,))
    yield from _comparisons(of(calibration.comparisons, criterion), chosen)
    yield from asked_together(calibration, criterion)
    yield from cascades(calibration, criterion)
    yield from cascade_bounds(calibration, criterion)
    yield from equivalence(calibration, criterion)
    if row:
        yield from confusion(row)
    yield from worth(calibration, criterion, row)
    yield from forecasts(calibration, criterion)
    yield from diagnostics(calibration, criterion, row)
    yield from alternative(calibration, criterion)
    yield from systems(calibration, criterion)


def _verdicts(calibration: Calibration, criterion: str) -> Iterator[str]:
    verdicts = of(calibration.verdicts, criterion)
    if not verdicts:
        yield "No verdict was asked for."
    for verdict in verdicts:
        text = (
            f"**{verdict.word}**: {name_of(verdict.judge)} on {grades_of(verdict.split)}, "
            f"{prose(verdict.statistic)} {interval(verdict.estimate)}, {basis(verdict.estimate)}."
        )
        text += f" Required: {listed(verdict.requirements)}." if verdict.requirements else ""
        yield text + (f" Because: {listed(verdict.reasons)}." if verdict.reasons else "")


def _agreement(rows: Sequence[AgreementRow], chosen: str | None) -> Iterator[Finding]:
    """The table of one split, best first."""
    if not rows:
        return
    primary = rows[0].primary
    names = list(IN_REPORT)
    names[1:1] = [] if primary in names else [primary]
    wide = {primary, *(name for name in names if STATISTICS[name].bracketed)}
    references = "; ".join(dict.fromkeys(printable(row.reference) for row in rows))
    heads = (
        Heading(heading(name) + (" [95 %]" if name in wide else ""), signed=STATISTICS[name].signed) for name in names
    )
    lines = [
        [
            Strong(row.name) if row.name == chosen and not row.baseline else row.name + " (baseline)" * row.baseline,
            *(f"{row.n}/{row.topics}", row.coverage),
            *(_statistic(row, name, full=name in wide) for name in names),
            row.design_effect.get(primary),
        ]
        for row in rows
    ]
    columns = ("judge", "n/topics", Heading("coverage", 2), *heads, Heading("design effect", 2))
    parts: list[str | Table[Any]] = [
        f"Against {references}; best lower bound of {heading(primary)} first, the chosen judge in bold.",
        Table(lines, columns, places=3, plot=_plot(rows)),
    ]
    reasons: dict[str, set[str]] = {}
    for row in rows:
        for name in names:
            reason = row.statistics[name].reason if name in row.statistics else None
            if reason:
                reasons.setdefault(f"{heading(name)}: {printable(reason)}", set()).add(row.name)
    undefined = [f"{reason} ({count(len(judges), 'judge')})" for reason, judges in reasons.items()]
    if undefined:
        parts.append(f"Without a value or an interval: {'; '.join(undefined)}.")
    yield Finding(f"Agreement on {grades_of(rows[0].split)}", tuple(parts))


def _plot(rows: Sequence[AgreementRow]) -> Plot:
    """The primary statistic over one axis, from 0 or below to 1; baselines are hollow."""
    estimates = [row.statistics.get(row.primary) for row in rows]
    ends = [end for each in estimates if each for end in (each.value, each.low) if end is not None]
    marks = tuple((Mark(each, row.baseline),) if each else () for each, row in zip(estimates, rows, strict=True))
    return Plot("drawn", min([0.0, *ends]), 1.0, marks)


def _statistic(row: AgreementRow, name: str, *, full: bool) -> Estimate | float | None:
    estimate = row.statistics.get(name)
    return estimate if estimate is None or full else estimate.value


def _beside(rows: Sequence[AgreementRow], row: AgreementRow | None) -> Iterator[str]:
    """The ceiling, the judge's agreement with itself, and the baselines, in words."""
    ceiling = row.ceiling if row else None
    if row and ceiling and ceiling.value is not None:
        yield (
            f"Ceiling: between the assessors themselves {heading(row.primary)} is {interval(ceiling)}, "
            f"{basis(ceiling)}. Against a consensus, whose errors partly cancel, a judge may come out higher."
        )
    elif rows:
        reason = f" ({printable(ceiling.reason)})" if ceiling and ceiling.reason else ""
        yield f"Ceiling: unknown{reason}; it needs items that two or more assessors graded."
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


def _selection(selection: Choice) -> str:
    statistic, on = heading(selection.statistic), grades_of(selection.chosen_on)
    texts = [
        f"{escape(selection.chosen)} was chosen from {count(len(selection.tried), 'candidate')} by {statistic} on {on}"
        f": {interval(selection.value)} there."
    ]
    if selection.test:
        texts.append(f"On test grades: {interval(selection.test)}.")
    if selection.nested is not None:
        texts.append(f"With the choice repeated inside topic folds: {number(selection.nested)}.")
    if selection.after_choice:
        texts.append(f"With an interval that holds for all candidates at once: {interval(selection.after_choice)}.")
    if selection.optimism is not None:
        texts.append(f"Optimism of the choice: {number(selection.optimism, signed=True)}.")
    others = [name for name in selection.not_separable if name != selection.chosen]
    texts.append(
        f"Others that may be the best, by elimination at 5 %: {'; '.join(map(printable, others))}."
        if others
        else "Elimination at 5 % leaves no other candidate."
        if len(selection.tried) > 1
        else "There was nothing to choose between."
    )
    if selection.openings is not None:
        texts.append(
            f"The sealed test grades have been opened {count(selection.openings, 'time')} for different questions."
        )
    return " ".join(texts)


def _comparisons(rows: Sequence[ComparisonRow], chosen: str | None) -> Iterator[Finding]:
    """The chosen candidate against every other one, as chosen minus other."""
    for split in _SPLITS:
        pairs = [row for row in rows if row.split == split]
        if not pairs:
            continue
        separable = sum(_separable(row) for row in pairs)
        text = (
            f"{count(len(pairs), 'pair')} compared on the items that both graded, by {heading(pairs[0].statistic)}; "
            f"{separable} separable at 5 % by max-T. Those with the chosen one, as its value minus the other's:"
        )
        lines = [
            [
                row.b if row.a == chosen else row.a,
                row.difference if row.a == chosen else turned(row.difference),
                f"{row.difference.n}/{row.difference.topics}",
                *map(p_cell, (row.p, row.p_max_t, row.p_holm)),
            ]
            for row in pairs
            if chosen in (row.a, row.b)
        ]
        columns = ("against", DIFFERENCE, "n/topics", "p", "p max-T", "p Holm")
        yield Finding(f"Comparisons on {grades_of(split)}", (text, Table(lines, columns, places=3)))


def _separable(row: ComparisonRow) -> bool:
    return row.p_max_t is not None and row.p_max_t <= SEPARABLE
