"""What was found under each criterion, as sentences and tables that pages and terminals show. Pure."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from judge.calibrate.findings import (
    AgreementRow,
    Calibration,
    CascadeBounds,
    CascadeCost,
    CascadeRow,
    Choice,
    ComparisonRow,
    Split,
    SystemAgreement,
    TrustVerdict,
)
from judge.calibrate.report.lookup import (
    IN_REPORT,
    SEPARABLE,
    Finding,
    basis,
    best_first,
    chosen_of,
    grades_of,
    heading,
    looked_at,
    merged,
    of,
    over,
    row_of,
    selection_of,
    split_of,
)
from judge.calibrate.selection import ASSESSORS, turned
from judge.io.cells import code, count, interval, number, p_value
from judge.io.safe import escape, printable
from judge.io.table import Heading, Mark, Plot, Strong, Table, p_cell
from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.expected import PROBABILITY
from judge.stats.ranking import SYSTEM
from judge.stats.tables import MarginalTest

DIFFERENCE = Heading("difference [95 %]", signed=True)
NOTE = Heading("note", empty="")
_SPLITS: tuple[Split, ...] = ("test", "all", "dev")
_SLOPES = {"log2_words": "doubling of the response's words", "turn_depth": "turn further into the conversation"}
_MARGINALS = {"bowker": "Bowker's test of symmetry", "stuart_maxwell": "the Stuart-Maxwell test of equal margins"}
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


def chapter(calibration: Calibration, criterion: str) -> Iterator[Finding]:
    """What was found under one criterion, but for the verdicts: what the report shows, too."""
    rows = best_first(of(calibration.agreement, criterion))
    chosen, split = chosen_of(calibration, criterion), split_of(calibration, criterion)
    row = row_of(rows, chosen, split)
    for part in _SPLITS:
        yield from _agreement([row for row in rows if row.split == part], chosen)
    yield from (Finding("", (said,)) for said in _beside([row for row in rows if row.split == split], row))
    if selection := selection_of(calibration, criterion):
        yield Finding("Selection", (selected(selection),))
    for look in of(calibration.looks, criterion):
        said = f"The ledger of looks: {looked_at(look)}; its last line has the SHA-256 {code(look.head)}."
        yield Finding("", (said,))
    yield from _comparisons(of(calibration.comparisons, criterion), chosen)
    yield from TOGETHER.findings(calibration, criterion)
    yield from CASCADES.findings(calibration, criterion)
    yield from cascade_bounds(calibration, criterion)
    yield from EQUIVALENCE.findings(calibration, criterion)
    if row:
        yield from confusion(row)
        yield from worth(calibration, row)
    yield from FORECASTS.findings(calibration, criterion)
    if row:
        yield from diagnostics(calibration, row)
    yield from ALTERNATIVE.findings(calibration, criterion)
    yield from SYSTEMS.findings(calibration, criterion)


def verdict_text(verdict: TrustVerdict) -> str:
    """The verdict after its word."""
    text = (
        f"{escape(verdict.judge)} on {grades_of(verdict.split)}, {printable(verdict.statistic)} "
        f"{interval(verdict.estimate)}, {basis(verdict.estimate)}."
    )
    for intro, texts in (("Required", verdict.requirements), ("Because", verdict.reasons)):
        text += f" {intro}: {'; '.join(map(printable, texts))}." if texts else ""
    return text


def _agreement(rows: Sequence[AgreementRow], chosen: str | None) -> Iterator[Finding]:
    """The table of one split, best first."""
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
    wide = {primary, *(name for name in names if STATISTICS[name].bracketed and not brief)}
    heads = (
        Heading(heading(name) + (" [95 %]" if name in wide else ""), signed=STATISTICS[name].signed) for name in names
    )
    lines = [
        [
            Strong(row.name) if row.name == chosen and not row.baseline else row.name + " (baseline)" * row.baseline,
            *(over(row), row.coverage),
            *(_statistic(row, name, full=name in wide) for name in names),
            *(() if brief else (row.design_effect.get(primary),)),
        ]
        for row in rows
    ]
    last = () if brief else (Heading("design effect", 2),)
    columns = ("judge", "n/topics", Heading("cover" if brief else "coverage", 2), *heads, *last)
    return Table(lines, columns, places=2 if brief else 3, plot=_plot(rows))


def _plot(rows: Sequence[AgreementRow]) -> Plot:
    """The primary statistic over one axis, from 0 or below to 1; baselines are hollow."""
    estimates = [row.statistics.get(row.primary) for row in rows]
    ends = [end for each in estimates if each for end in (each.value, each.low) if end is not None]
    marks = tuple((Mark(each, row.baseline),) if each else () for each, row in zip(estimates, rows, strict=True))
    return Plot("drawn", min([0.0, *ends]), 1.0, marks)


def _statistic(row: AgreementRow, name: str, *, full: bool) -> Estimate | float | None:
    estimate = row.statistics.get(name)
    return estimate if estimate is None or full else estimate.value


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


def _beside(rows: Sequence[AgreementRow], row: AgreementRow | None) -> Iterator[str]:
    """The ceiling, the judge's agreement with itself, and the baselines, in words."""
    if rows:
        yield ceiling(row)
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
                over(row.difference),
                *map(p_cell, (row.p, row.p_max_t, row.p_holm)),
            ]
            for row in pairs
            if chosen in (row.a, row.b)
        ]
        columns = ("against", DIFFERENCE, "n/topics", "p", "p max-T", "p Holm")
        yield Finding(f"Comparisons on {grades_of(split)}", (text, Table(lines, columns, places=3)))


def _separable(row: ComparisonRow) -> bool:
    return row.p_max_t is not None and row.p_max_t <= SEPARABLE


def confusion(row: AgreementRow) -> Iterator[Finding]:
    """The table of the judge's and the assessors' grades, the missing grades, and whether the margins differ."""
    totals = [sum(counts) for counts in row.confusion]
    lines = [
        [str(grade), *counts, total, counts[place] / total if total else None]
        for place, (grade, counts, total) in enumerate(zip(row.grades, row.confusion, totals, strict=True))
    ]
    columns = ("assessors", *(f"judge {grade}" for grade in row.grades), "all", Heading("recall", 2))
    shares = tuple(
        (None, *(n / total if total else None for n in counts), None, None)
        for counts, total in zip(row.confusion, totals, strict=True)
    )
    parts: list[str | Table[Any]] = [Table(lines, columns, shares=shares)]
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


def diagnostics(calibration: Calibration, chosen: AgreementRow) -> Iterator[Finding]:
    """What moves judge minus assessor, for the chosen judge."""
    slopes = [slope for slope in of(calibration.slopes, chosen.criterion) if slope.judge == chosen.name]
    families = [family for family in of(calibration.families, chosen.criterion) if family.judge == chosen.name]
    tables: list[Table[Any]] = []
    if slopes:
        columns = ("for each", Heading("judge minus assessor [95 %]", signed=True), "n/topics", NOTE)
        lines = [(_SLOPES[row.what], row.slope, over(row.slope), row.slope.reason) for row in slopes]
        tables.append(Table(lines, columns, places=3))
    if families:
        minus, against = Heading("judge minus assessor", signed=True), Heading("against other runs [95 %]", signed=True)
        of_families = [
            (row.family + " (the judge's own)" * row.is_self, row.runs, row.mean, row.contrast, row.contrast.reason)
            for row in families
        ]
        tables.append(Table(of_families, ("family of runs", "runs", minus, against, NOTE), places=3))
    if splits := [row.split for row in slopes] or [row.split for row in families]:
        yield Finding(f"What moves the judge away from the assessors, on {grades_of(splits[0])}", tuple(tables))


def worth(calibration: Calibration, chosen: AgreementRow) -> Iterator[Finding]:
    """The mean grade of the assessors where the chosen judge gives each grade."""
    cells = [cell for cell in of(calibration.calibration_map, chosen.criterion) if cell.name == chosen.name]
    if not cells:
        return
    lines = [(str(cell.grade), cell.n, cell.mean, float(cell.shrunken)) for cell in cells]
    text = (
        f"Shrunken: drawn to the line through all items, as if {number(cells[0].weight, 0)} more lay on it. For single "
        f"responses; the mean of a run is corrected by gold of that run ({code('judge leaderboard --gold')})."
    )
    for line in of(calibration.expected, chosen.criterion):
        if line.name == chosen.name:
            text += (
                f" Assessors' grades rise by {interval(line.slope, 2)} for each step of the expected grade, from "
                f"{number(line.intercept, 2)} at 0. Mean distance from the assessors: {number(line.error_grade, 2)} of "
                f"the grade, {number(line.error_expected, 2)} of the expected grade, {number(line.error_line, 2)} of "
                "that line on topics it was not drawn through."
            )
    found = Table(lines, ("judge's grade", "n", "assessors' mean", "shrunken"), places=2)
    yield Finding(f"What a grade of the judge is worth, on {grades_of(cells[0].split)}", (found, text))


class Section(NamedTuple):
    """A table with a line for each record of one kind, under a title and the words that say how to read it."""

    field: str
    """The field of `Calibration` that has the records."""
    title: Callable[[Sequence[Any]], str]
    text: Callable[[Sequence[Any]], str]
    columns: tuple[tuple[str, str | Callable[[Any], object]], ...]
    """Headings with cells, each of a field or made of the record."""
    places: int = 3

    def findings(self, calibration: Calibration, criterion: str | None = None) -> Iterator[Finding]:
        """The section on the records of a criterion, or on all records; nothing where there are none."""
        records = getattr(calibration, self.field)
        rows = [row for row in records if criterion is None or row.criterion == criterion]
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


FORECASTS = Section(
    field="probabilities",
    title=lambda rows: "Are its label probabilities probabilities?",
    text=lambda rows: (
        " ".join(f"{name}: {statistic.about}." for name, statistic in PROBABILITY.items())
        + " Beside Brier's score stands that of one forecast for all responses, the shares of the assessors' grades: "
        "a judge that is no better knows nothing of the single response."
    ),
    columns=(
        ("judge", "name"),
        ("grades", "split"),
        *((Heading(f"{name} [95 %]", signed=name == "overconfidence"), _statistic_of(name)) for name in PROBABILITY),
        ("brier of shares", "brier_of_shares"),
        ("n/topics", lambda row: over(row.statistics["brier"])),
        (NOTE, lambda row: merged((name, row.statistics[name].reason) for name in PROBABILITY)),
    ),
)
ALTERNATIVE = Section(
    field="alternative",
    title=lambda rows: f"Could the judge stand in for an assessor? On {grades_of(rows[0].split)}",
    text=lambda rows: (
        "The alternative annotator test (Calderon, Reichart & Dror, 2025). omega: the share of assessors over whom the "
        "judge is preferred, with the handicap epsilon that an assessor's higher cost is worth; rho: how often, on "
        "average, it fits the other assessors at least as well as the one left out. One number without the others "
        "says nothing. Items count as independent of each other, so p is too small where topics differ."
    ),
    columns=(
        *(("judge", "name"), ("epsilon", "epsilon"), ("omega", "omega"), ("rho", "rho")),
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
EQUIVALENCE = Section(
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
        (Heading("difference [90 %]", signed=True), "difference"),
        ("n/topics", _of_difference),
        ("equivalence", "word"),
        (NOTE, "difference.reason"),
    ),
)
SYSTEMS = Section(
    field="systems",
    title=lambda rows: "Does it rank the runs as the assessors do?",
    text=lambda rows: (
        "tau-b from half to half: how the runs rank on a random half of the topics, against the assessors' ranking on "
        "the other half; first the assessors' own, then the judge's. The assessors' own is a noise ceiling: only a "
        "judge with less noise than theirs goes beyond it. Intervals describe how the two rankings would agree on "
        "other topics. Where runs are close, both rankings are noisy, and the true ones agree better than that."
    ),
    columns=(
        *(("judge", "name"), ("grades", "split"), ("runs", "runs")),
        *((Heading(f"{statistic.label} [95 %]"), _statistic_of(name)) for name, statistic in SYSTEM.items()),
        *(("tau-b half to half: assessors", "halves.human"), ("judge", "halves.judge")),
        (NOTE, _why_none),
    ),
    places=2,
)
CASCADES = Section(
    field="cascades",
    title=lambda rows: "Cascades",
    text=lambda rows: (
        f"{heading(rows[0].statistic)} of a judge alone and of a cascade, on the same items: a checker settles "
        "those that it is sure of, and the judge is asked the rest. The difference is the cascade minus the judge "
        "alone; the low end of its interval says how much agreement the cascade may cost."
    ),
    columns=(
        *(("judge", "judge"), ("prompt", "prompt")),
        ("settled", lambda row: f"{row.settled} of {row.items} ({_percent(row)})"),
        *(("alone", "value_alone"), ("in the cascade", "value_cascade"), (DIFFERENCE, "difference")),
        *(("n/topics", _of_difference), ("p max-T", lambda row: p_cell(row.p_max_t))),
        *(
            ("calls to the judge", lambda row: _calls(row.cost)),
            ("calls to the checker", lambda row: _checks(row.cost)),
        ),
        ("cost of both", lambda row: _money(row.cost)),
    ),
)
TOGETHER = Section(
    field="together",
    title=lambda rows: "Asked together with other criteria",
    text=lambda rows: (
        f"{heading(rows[0].statistic)} of the same judge on the same items, with the criterion asked alone and "
        "together with others in one call. The difference is together minus alone. A small difference with a wide "
        "interval does not say that asking together costs nothing: the low end of the interval says how much it may "
        "cost."
    ),
    columns=(
        *(("judge", "judge"), ("asked as", "together"), ("alone", "value_alone"), ("together", "value_together")),
        *((DIFFERENCE, "difference"), ("n/topics", _of_difference)),
        *(("p", lambda row: p_cell(row.p)), ("p max-T", lambda row: p_cell(row.p_max_t))),
    ),
)
GROUP_COSTS = Section(
    field="group_costs",
    title=lambda rows: "What asking together saves",
    text=lambda rows: (
        "The calls behind the grades of the same responses, each criterion in a call of its own and all in one. Second "
        "calls after unreadable replies count too."
    ),
    columns=(
        *(("judge", "judge"), ("criteria", lambda row: ", ".join(row.prompts))),
        *(("calls alone", "calls_alone"), ("together", "calls_together")),
        *(("prompt tokens alone", "prompt_tokens_alone"), ("together", "prompt_tokens_together")),
        *(("reply tokens alone", "reply_tokens_alone"), ("together", "reply_tokens_together")),
    ),
)


def _calls(cost: CascadeCost | None) -> str | None:
    return f"{cost.calls_cascade} in place of {cost.calls_alone}" if cost else None


def _checks(cost: CascadeCost | None) -> int | None:
    return cost.calls_checker if cost else None


def _money(cost: CascadeCost | None) -> str | None:
    """What the cascade and the judge alone cost, where both are known and one costs something."""
    if cost is None or cost.cost_alone is None or cost.cost_cascade is None:
        return None
    either = cost.cost_alone or cost.cost_cascade
    return f"${cost.cost_cascade:.4g} in place of ${cost.cost_alone:.4g}" if either else None


def cascade_bounds(calibration: Calibration, criterion: str) -> Iterator[Finding]:
    """What cascades would be with other bounds."""
    if tried := of(calibration.cascade_bounds, criterion):
        parts: list[str | Table[Any]] = [
            "The same answers under other bounds, so nothing was asked for this: the share that the checker would "
            "settle, and the difference to the judge alone. These bounds are tried on the very grades that they "
            "are compared with, so the best of them looks better than it is. Those that give other labels count as "
            f"candidates in the ledger of looks. {code('cascade_bounds.tsv')} has intervals."
        ]
        for pair in dict.fromkeys((row.checker, row.alone, row.prompt) for row in tried):
            parts.append("{} before {} under {}:".format(*map(escape, pair)))
            parts.append(_bounds([row for row in tried if (row.checker, row.alone, row.prompt) == pair]))
        yield Finding("Other bounds of the cascades", tuple(parts))


def _bounds(rows: Sequence[CascadeBounds]) -> Table[Any]:
    highs = sorted({row.high for row in rows})
    cells = {(row.low, row.high): row for row in rows}
    lines = [
        (f"{low:.12g}", *(_cell(cells.get((low, high))) for high in highs)) for low in sorted({row.low for row in rows})
    ]
    return Table(lines, ("low", *(Heading(f"high {high:.12g}", empty="") for high in highs)))


def _cell(row: CascadeBounds | None) -> str:
    return "" if row is None else f"{_percent(row)}, {number(row.difference.value, signed=True)}"


def _percent(row: CascadeRow | CascadeBounds) -> str:
    return f"{100 * row.settled / row.items:.0f} %" if row.items else "-"
