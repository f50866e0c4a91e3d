"""The scores of runs by their nuggets: means over turns or topics with intervals, and bounds. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from judge.nuggets.measures import MEASURES, NuggetMeasure
from judge.nuggets.units import RunUnit
from judge.records import Estimate, Record
from judge.results.leaderboard import ROUNDING
from judge.stats.means import mean_interval
from judge.text.grid import Cell, Grid
from judge.text.ids import Cluster, cluster_of, natural_key


class NuggetScore(Record, frozen=True):
    """One run under one measure."""

    run_id: str
    measure: str
    rank: int | None
    """By the bound; equal bounds share a rank. None if nothing was asked about the run."""
    units: int
    """Turns and topics whose nuggets count, and that the run had to answer."""
    matched: int
    """Those of which every nugget has a label."""
    incomplete: int
    """Those that lack a label, which counts against the run."""
    left_out: int
    """Those that lack a label for a reason that counts against no run."""
    unanswered: int
    """Those without a response."""
    mean: Estimate
    """Over the matched ones."""
    bound: float | None
    """Over all of them: a missing label counts as `does_not`, an unanswered turn as 0; None for a measure that is no
    recall."""
    reasons: dict[str, int]
    """Why labels are missing, with counts."""


def nugget_scores(units: Iterable[RunUnit], cluster: Cluster = "topic") -> tuple[NuggetScore, ...]:
    """A row for each measure and run: measures in the order of MEASURES, best bound first.

    Turns that are left out count as the run's others do on average, as on the leaderboard.

    Args:
        units: From `run_units`.
        cluster: What the intervals are over.
    """
    by_run: dict[str, list[RunUnit]] = defaultdict(list)
    for unit in units:
        by_run[unit.run_id].append(unit)
    return tuple(
        row
        for name in MEASURES
        for row in _ranked([_score(run_id, name, of_run, cluster) for run_id, of_run in by_run.items()])
    )


def value_of(unit: RunUnit, measure: NuggetMeasure) -> float | None:
    """The value of a unit, with `does_not` in place of missing labels; None if no nugget of it counts."""
    labels = {nugget.nugget_id: unit.labels.get(nugget.nugget_id, "does_not") for nugget in unit.nuggets}
    return measure(unit.nuggets, labels)


def _score(run_id: str, name: str, units: Sequence[RunUnit], cluster: Cluster) -> NuggetScore:
    measure = MEASURES[name]
    values = [(unit, value) for unit in units if (value := value_of(unit, measure)) is not None]
    status = Counter(unit.status for unit, _ in values)
    matched = [(unit, value) for unit, value in values if unit.status == "matched"]
    mean = mean_interval(
        [value for _, value in matched],
        [cluster_of(unit.topic_id, cluster) for unit, _ in matched],
        bounds=(0.0, 1.0),
        what="turns" if values else "nuggets that count",
    )
    asked = [value for unit, value in values if unit.status in ("matched", "incomplete")]
    answered = len(asked) + status["left_out"]
    bound = None
    if measure.recall and values and not (answered and not asked):
        bound = math.fsum(asked) / len(asked) * answered / len(values) if asked else 0.0
    return NuggetScore(
        run_id=run_id,
        measure=name,
        rank=None,
        units=len(values),
        matched=status["matched"],
        incomplete=status["incomplete"],
        left_out=status["left_out"],
        unanswered=status["unanswered"],
        mean=mean,
        bound=bound,
        reasons=dict(sorted(Counter(reason for unit, _ in values for reason in unit.reasons.values()).items())),
    )


def _ranked(rows: Sequence[NuggetScore]) -> list[NuggetScore]:
    bounds = [row.bound for row in rows if row.bound is not None]
    ranked = [
        row
        if row.bound is None
        else msgspec.structs.replace(row, rank=1 + sum(other > row.bound + ROUNDING for other in bounds))
        for row in rows
    ]
    return sorted(ranked, key=lambda row: (row.rank is None, row.rank or 0, natural_key(row.run_id)))


def score_grid(rows: Iterable[NuggetScore], main: str) -> Grid:
    """The runs under one measure, best bound first."""
    lines: list[tuple[Cell, ...]] = [
        (
            row.rank,
            row.run_id,
            row.mean,
            row.bound,
            row.units,
            row.matched,
            row.incomplete,
            row.left_out,
            row.unanswered,
        )
        for row in rows
        if row.measure == main
    ]
    columns = ("rank", "run", "mean", "bound", "units", "matched", "incomplete", "left_out", "unanswered")
    notes = (
        f"{main}: {MEASURES[main].about}.",
        "units: turns with nuggets, and topics with nuggets of their own, that the run had to answer. mean: over those "
        "of which every nugget is matched, with its interval over topics.",
        "bound: over all of them; a missing match counts as does_not, an unanswered turn as 0. Ranks go by it.",
    )
    return Grid("Runs", columns, tuple(lines), notes, places=3)


def measures_grid(rows: Sequence[NuggetScore]) -> Grid:
    """The mean of every run under every measure, in natural order of runs."""
    by_run: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for row in rows:
        by_run[row.run_id][row.measure] = row.mean
    lines: list[tuple[Cell, ...]] = [
        (run_id, *(by_run[run_id][name] for name in MEASURES)) for run_id in sorted(by_run, key=natural_key)
    ]
    notes = tuple(f"{name}: {measure.about}." for name, measure in MEASURES.items())
    return Grid("Measures", ("run", *MEASURES), tuple(lines), notes, places=3)


def units_grid(units: Iterable[RunUnit]) -> Grid:
    """A line for each run and unit; a value where every nugget is matched."""
    lines: list[tuple[Cell, ...]] = []
    for unit in units:
        counts = Counter(unit.labels.values())
        values: Mapping[str, float | None] = {
            name: measure(unit.nuggets, unit.labels) if unit.status == "matched" else None
            for name, measure in MEASURES.items()
        }
        lines.append(
            (
                *(unit.run_id, unit.scope, " ".join(unit.responses), unit.status, len(unit.nuggets)),
                *(counts["supports"], counts["partly"], counts["does_not"], counts["contradicts"], len(unit.reasons)),
                *values.values(),
                ", ".join(f"{n} {reason}" for reason, n in sorted(Counter(unit.reasons.values()).items())),
            )
        )
    columns = (
        *("run", "unit", "responses", "status", "nuggets", "supports", "partly", "does_not", "contradicts", "missing"),
        *MEASURES,
        "reasons",
    )
    return Grid("Units", columns, tuple(lines))
