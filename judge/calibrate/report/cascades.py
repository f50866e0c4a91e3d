"""Cascades against the judges that they ask: in two tables, in the report and in a line. Pure."""

from collections.abc import Iterator, Sequence

from judge.calibrate.findings import Calibration, CascadeBounds, CascadeCost, CascadeRow
from judge.calibrate.report.lookup import label, of
from judge.text.cells import count, interval, number, p_value
from judge.text.markup import name_of, table
from judge.text.safe import printable


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
