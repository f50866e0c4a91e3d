"""The second half of a report's chapters: where the judge errs, what moves it, and how far it may be relied on."""

from collections.abc import Iterator, Sequence

from judge.calibrate.equivalence import ASSESSORS
from judge.calibrate.findings import AgreementRow, Calibration, CascadeBounds, CascadeCost, CascadeRow, GroupCost
from judge.calibrate.report.lookup import grades_of, label, of
from judge.calibrate.report.tables import merged
from judge.stats.marginals import MarginalTest
from judge.stats.probabilities import PROBABILITY
from judge.stats.ranking import SYSTEM
from judge.text.cells import count, interval, number, p_value
from judge.text.markup import name_of, prose, table
from judge.text.safe import printable

_SLOPES = {"log2_words": "doubling of the response's words", "turn_depth": "turn further into the conversation"}
_MARGINALS = {"bowker": "Bowker's test of symmetry", "stuart_maxwell": "the Stuart-Maxwell test of equal margins"}


def confusion(row: AgreementRow) -> Iterator[str]:
    """The table of the judge's and the assessors' grades, the missing grades, and whether the margins differ."""
    yield f"### Grades of {name_of(row.name)} against the assessors'"
    totals = [sum(counts) for counts in row.confusion]
    yield table(
        ["assessors", *(f"judge {grade}" for grade in row.grades), "all", "recall"],
        (
            [str(grade), *map(str, counts), str(total), number(counts[place] / total if total else None, 2)]
            for place, (grade, counts, total) in enumerate(zip(row.grades, row.confusion, totals, strict=True))
        ),
    )
    if row.without_grade:
        reasons = ", ".join(f"{n} {prose(reason)}" for reason, n in sorted(row.without_grade.items()))
        yield f"Gold items without a grade by the judge: {reasons}."
    if row.marginals:
        tests = "; ".join(f"{_MARGINALS[test.name]}: {_marginal(test)}" for test in row.marginals)
        yield f"Does it use the grades as often as assessors do? {tests} (items taken as independent of each other)."


def _marginal(test: MarginalTest) -> str:
    if test.chi2 is None:
        return prose(test.reason or "-")
    return f"chi² {number(test.chi2, 2)}, {test.df} df, p {p_value(test.p)}"


def diagnostics(calibration: Calibration, criterion: str, row: AgreementRow | None) -> Iterator[str]:
    """What moves judge minus assessor, for the chosen judge."""
    name = row.name if row else None
    slopes = [slope for slope in of(calibration.slopes, criterion) if slope.judge == name]
    families = [family for family in of(calibration.families, criterion) if family.judge == name]
    for split in dict.fromkeys([*(slope.split for slope in slopes), *(family.split for family in families)]):
        yield f"### What moves the judge away from the assessors, on {grades_of(split)}"
    if slopes:
        yield table(
            ["for each", "judge minus assessor [95 %]", "n/topics", "note"],
            (
                [
                    _SLOPES[slope.what],
                    interval(slope.slope, signed=True),
                    f"{slope.slope.n}/{slope.slope.topics}",
                    prose(slope.slope.reason or ""),
                ]
                for slope in slopes
            ),
        )
    if families:
        yield table(
            ["family of runs", "runs", "judge minus assessor", "against other runs [95 %]", "note"],
            (
                [
                    name_of(family.family) + (" (the judge's own)" if family.is_self else ""),
                    str(family.runs),
                    number(family.mean, signed=True),
                    interval(family.contrast, signed=True),
                    prose(family.contrast.reason or ""),
                ]
                for family in families
            ),
        )


def worth(calibration: Calibration, criterion: str, row: AgreementRow | None) -> Iterator[str]:
    """The mean grade of the assessors where the chosen judge gives each grade."""
    mine = (row.judge, row.prompt) if row else None
    cells = [cell for cell in of(calibration.calibration_map, criterion) if (cell.judge, cell.prompt) == mine]
    if not cells:
        return
    yield f"### What a grade of the judge is worth, on {grades_of(cells[0].split)}"
    yield table(
        ["judge's grade", "n", "assessors' mean", "shrunken"],
        ([str(cell.grade), str(cell.n), number(cell.mean, 2), number(cell.shrunken, 2)] for cell in cells),
    )
    text = (
        f"Shrunken: drawn to the line through all items, as if {number(cells[0].weight, 0)} more lay on it. For single "
        "responses; the mean of a run is corrected by gold of that run (`judge leaderboard --gold`)."
    )
    for line in of(calibration.expected, criterion):
        if (line.judge, line.prompt) == mine:
            text += (
                f" Assessors' grades rise by {interval(line.slope, 2)} for each step of the expected grade, from "
                f"{number(line.intercept, 2)} at 0. Mean distance from the assessors: {number(line.error_grade, 2)} of "
                f"the grade, {number(line.error_expected, 2)} of the expected grade, {number(line.error_line, 2)} of "
                "that line on topics it was not drawn through."
            )
    yield text


def forecasts(calibration: Calibration, criterion: str) -> Iterator[str]:
    """How far label probabilities may be taken for probabilities."""
    rows = of(calibration.probabilities, criterion)
    if not rows:
        return
    yield "### Are its label probabilities probabilities?"
    yield " ".join(f"{name}: {statistic.about}." for name, statistic in PROBABILITY.items()) + (
        " Beside Brier's score stands that of one forecast for all responses, the shares of the assessors' grades: "
        "a judge that is no better knows nothing of the single response."
    )
    yield table(
        ["judge", "grades", *(f"{name} [95 %]" for name in PROBABILITY), "brier of shares", "n/topics", "note"],
        (
            [
                name_of(row.name),
                row.split,
                *(interval(row.statistics[name], signed=name == "overconfidence") for name in PROBABILITY),
                number(row.brier_of_shares),
                f"{row.statistics['brier'].n}/{row.statistics['brier'].topics}",
                prose(merged((name, row.statistics[name].reason) for name in PROBABILITY)),
            ]
            for row in rows
        ),
    )


def alternative(calibration: Calibration, criterion: str) -> Iterator[str]:
    """The alternative annotator test, always with all of its numbers."""
    rows = of(calibration.alternative, criterion)
    if not rows:
        return
    yield f"### Could the judge stand in for an assessor? On {grades_of(rows[0].split)}"
    yield (
        "The alternative annotator test (Calderon, Reichart & Dror, 2025). omega: the share of assessors over whom the "
        "judge is preferred, with the handicap epsilon that an assessor's higher cost is worth; rho: how often, on "
        "average, it fits the other assessors at least as well as the one left out. One number without the others "
        "says nothing. Items count as independent of each other, so p is too small where topics differ."
    )
    yield table(
        ["judge", "epsilon", "omega", "rho", "p by assessor (n; yes: rejected)", "note"],
        (
            [
                name_of(row.name),
                *(number(part, 2) for part in (row.epsilon, row.omega, row.rho)),
                ", ".join(
                    f"{name_of(who)} {p_value(p)} ({row.n.get(who, 0)}; {'yes' if row.rejected.get(who) else 'no'})"
                    for who, p in row.p_values.items()
                )
                or "-",
                prose(row.reason or ""),
            ]
            for row in rows
        ),
    )


def equivalence(calibration: Calibration, criterion: str) -> Iterator[str]:
    """The chosen judge against the others and the assessors, by two one-sided tests."""
    rows = of(calibration.equivalence, criterion)
    if not rows:
        return
    yield "### Is it as good as another judge, or as an assessor?"
    yield (
        f"EQUIVALENT: {prose(rows[0].statistic)} differs by less than {number(rows[0].margin)}, by two one-sided tests "
        "at 5 % (the 90 % interval over topics lies within the margin). DIFFERENT: by more. Each pair is tested alone."
        + f" `{ASSESSORS}`: each assessor against the consensus of the others, and the judge against the same."
        * any(row.b == ASSESSORS for row in rows)
    )
    yield table(
        ["judge", "against", "grades", "difference [90 %]", "n/topics", "equivalence", "note"],
        (
            [
                *(name_of(row.a), name_of(row.b), row.split, interval(row.difference, signed=True)),
                *(f"{row.difference.n}/{row.difference.topics}", row.word, prose(row.difference.reason or "")),
            ]
            for row in rows
        ),
    )


def systems(calibration: Calibration, criterion: str) -> Iterator[str]:
    """How the judge's ranking of the runs agrees with the assessors'."""
    rows = of(calibration.systems, criterion)
    if not rows:
        return
    yield "### Does it rank the runs as the assessors do?"
    yield (
        "tau-b from half to half: how the runs rank on a random half of the topics, against the assessors' ranking on "
        "the other half; first the assessors' own, then the judge's. The assessors' own is a noise ceiling: only a "
        "judge with less noise than theirs goes beyond it. Intervals describe how the two rankings would agree on "
        "other topics. Where runs are close, both rankings are noisy, and the true ones agree better than that."
    )
    yield table(
        [
            *("judge", "grades", "runs", *(f"{statistic.label} [95 %]" for statistic in SYSTEM.values())),
            *("tau-b half to half: assessors", "judge", "note"),
        ],
        (
            [
                name_of(row.name),
                row.split,
                str(row.runs),
                *(interval(row.statistics.get(name), 2) for name in SYSTEM),
                *(number(part, 2) for part in (row.halves.human, row.halves.judge)),
                prose(
                    merged(
                        [
                            *(
                                (statistic.label, row.statistics[name].reason)
                                for name, statistic in SYSTEM.items()
                                if name in row.statistics
                            ),
                            ("halves", row.halves.reason),
                        ]
                    )
                ),
            ]
            for row in rows
        ),
    )


def cascades(calibration: Calibration, criterion: str) -> Iterator[str]:
    """What cascades save and what they cost in agreement under one criterion, and what other bounds would."""
    rows = of(calibration.cascades, criterion)
    if rows:
        yield "### Cascades"
        yield (
            f"{label(rows[0].statistic)} of a judge alone and of a cascade, on the same items: a checker settles those "
            "that it is sure of, and the judge is asked the rest. The difference is the cascade minus the judge alone; "
            "the low end of its interval says how much agreement the cascade may cost."
        )
        yield table(
            [
                *("judge", "prompt", "settled", "alone", "in the cascade", "difference [95 %]", "n/topics", "p max-T"),
                *("calls to the judge", "calls to the checker", "cost of both"),
            ],
            (
                [
                    *(name_of(row.judge), name_of(row.prompt), _settled(row)),
                    *(number(row.value_alone), number(row.value_cascade), interval(row.difference, signed=True)),
                    *(f"{row.difference.n}/{row.difference.topics}", p_value(row.p_max_t), *_saved(row.cost)),
                ]
                for row in rows
            ),
        )
    tried = of(calibration.cascade_bounds, criterion)
    for place, pair in enumerate(dict.fromkeys((row.checker, row.alone, row.prompt) for row in tried)):
        if place == 0:
            yield "### Other bounds of the cascades"
            yield (
                "The same answers under other bounds, so nothing was asked for this: the share that the checker would "
                "settle, and the difference to the judge alone. These bounds are tried on the very grades that they "
                "are compared with, so the best of them looks better than it is. Those that give other labels count as "
                "candidates in the ledger of looks. `cascade_bounds.tsv` has intervals."
            )
        grid = [row for row in tried if (row.checker, row.alone, row.prompt) == pair]
        yield f"{name_of(pair[0])} before {name_of(pair[1])} under {name_of(pair[2])}:"
        yield _grid(grid)


def cascade_line(row: CascadeRow, values: str, difference: str) -> str:
    """What one cascade saves and costs, in a line.

    Args:
        row: The cascade.
        values: The statistic alone and in the cascade, as text.
        difference: Their difference, as text.
    """
    said = f"{printable(row.judge)} {printable(row.prompt.partition('/')[2])}: settles {_settled(row)}; {values}"
    cost = row.cost
    if cost is None:
        return f"{said}, difference {difference}"
    calls = (
        f"{printable(row.alone)} is called {_times(cost.calls_cascade)} in place of {cost.calls_alone}, and the "
        f"checker {_times(cost.calls_checker)}"
    )
    money = _money(cost)
    together = f", for {money[0]} together in place of {money[1]}" if money else ""
    return f"{said}, difference {difference}; {calls}{together}"


def _times(calls: int) -> str:
    return count(calls, "time")


def _grid(rows: Sequence[CascadeBounds]) -> str:
    highs = sorted({row.high for row in rows})
    cells = {(row.low, row.high): row for row in rows}
    return table(
        ["low", *(f"high {high:.12g}" for high in highs)],
        (
            [f"{low:.12g}", *(_cell(cells.get((low, high))) for high in highs)]
            for low in sorted({row.low for row in rows})
        ),
    )


def _cell(row: CascadeBounds | None) -> str:
    return "" if row is None else f"{_percent(row)}, {number(row.difference.value, signed=True)}"


def _share(row: CascadeRow | CascadeBounds) -> float | None:
    return row.settled / row.items if row.items else None


def _percent(row: CascadeRow | CascadeBounds) -> str:
    share = _share(row)
    return "-" if share is None else f"{100 * share:.0f} %"


def _settled(row: CascadeRow) -> str:
    return f"{row.settled} of {row.items} ({_percent(row)})"


def _saved(cost: CascadeCost | None) -> tuple[str, str, str]:
    """Calls to the judge, to the checker, and money: of the cascade, and of the judge alone."""
    if cost is None:
        return "-", "-", "-"
    money = _money(cost)
    calls = f"{cost.calls_cascade} in place of {cost.calls_alone}"
    return calls, str(cost.calls_checker), f"{money[0]} in place of {money[1]}" if money else "-"


def _money(cost: CascadeCost) -> tuple[str, str] | None:
    if cost.cost_alone is None or cost.cost_cascade is None or not (cost.cost_alone or cost.cost_cascade):
        return None
    return f"${cost.cost_cascade:.4g}", f"${cost.cost_alone:.4g}"


def asked_together(calibration: Calibration, criterion: str) -> Iterator[str]:
    """What asking together changes in agreement with the assessors, under one criterion."""
    rows = of(calibration.together, criterion)
    if not rows:
        return
    yield "### Asked together with other criteria"
    yield (
        f"{label(rows[0].statistic)} of the same judge on the same items, with the criterion asked alone and together "
        "with others in one call. The difference is together minus alone. A small difference with a wide interval does "
        "not say that asking together costs nothing: the low end of the interval says how much it may cost."
    )
    yield table(
        ["judge", "asked as", "alone", "together", "difference [95 %]", "n/topics", "p", "p max-T"],
        (
            [
                *(name_of(row.judge), name_of(row.together), number(row.value_alone), number(row.value_together)),
                interval(row.difference, signed=True),
                f"{row.difference.n}/{row.difference.topics}",
                *(p_value(p) for p in (row.p, row.p_max_t)),
            ]
            for row in rows
        ),
    )


def group_costs(calibration: Calibration) -> Iterator[str]:
    """What asking together saves, over all criteria."""
    if not calibration.group_costs:
        return
    yield "## What asking together saves"
    yield (
        "The calls behind the grades of the same responses, each criterion in a call of its own and all in one. Second "
        "calls after unreadable replies count too."
    )
    yield table(
        [
            "judge",
            "criteria",
            "calls alone",
            "together",
            "prompt tokens alone",
            "together",
            "reply tokens alone",
            "together",
        ],
        (
            [
                *(name_of(cost.judge), ", ".join(map(name_of, cost.prompts))),
                *(str(cost.calls_alone), str(cost.calls_together)),
                *(str(cost.prompt_tokens_alone), str(cost.prompt_tokens_together)),
                *(str(cost.reply_tokens_alone), str(cost.reply_tokens_together)),
            ]
            for cost in calibration.group_costs
        ),
    )


def group_cost(cost: GroupCost) -> str:
    """What asking together saves for one judge, in a sentence."""
    return (
        f"asked together, {printable(cost.judge)} needs {count(cost.calls_together, 'call')} in place of "
        f"{cost.calls_alone}, {cost.prompt_tokens_together} prompt tokens in place of {cost.prompt_tokens_alone}, and "
        f"{cost.reply_tokens_together} tokens of replies in place of {cost.reply_tokens_alone}"
    )
