"""A judge's matches beside people's of the same pairs: how far they agree, and recall corrected by people's. Pure.

People's value of a unit counts where people matched each of its nuggets with each of its responses. Were one
supporting response enough, units would be in the sample because people found support there. The correction is that of
the leaderboard (`judge.stats.correction`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from judge.errors import InputError
from judge.extra.nuggets.labels import PairKey, PairLabels
from judge.extra.nuggets.records import MATCH_LABELS
from judge.extra.nuggets.scores import MEASURES, RunUnit, bounds_of, value_of
from judge.io.ids import Cluster, cluster_of, natural_key
from judge.io.table import Cell, Table, fields, records_table
from judge.io.text import count
from judge.records import Estimate, Record
from judge.stats.correction import Corrected, correct
from judge.stats.gold_sample import RunGrades
from judge.stats.means import mean_interval
from judge.stats.resampling import all_resampled
from judge.stats.tables import topic_tables

STATISTICS_OF_MATCHES = ("percent", "kappa")
"""Of the labels as names, without an order: `contradicts` is not less than `does_not`."""
REPLICATES = 2000


class MatchAgreement(Record, frozen=True):
    """The agreement of a judge with people."""

    pairs: int
    """Pairs that both matched."""
    only_people: int
    """Pairs that people matched and the judge did not: its failures, and what it was not asked."""
    supported: dict[str, Estimate]
    """Statistic to its value, of `supports` against every other label."""
    labels: dict[str, Estimate]
    """The same of all labels; empty where people used only `supports` and `does_not`."""
    counts: dict[tuple[str, str], int]
    """Label by people and label by the judge to the number of pairs."""


def match_agreement(people: PairLabels, judge: PairLabels, topics: Mapping[PairKey, str], seed: int) -> MatchAgreement:
    """Compare the labels of the pairs that both matched, with intervals over topics."""
    keys = sorted(
        people.labels.keys() & judge.labels.keys(), key=lambda key: (natural_key(key[0]), natural_key(key[1]))
    )
    units = [topics[key] for key in keys]
    pairs = [(people.labels[key], judge.labels[key]) for key in keys]
    supported = [(int(first == "supports"), int(second == "supports")) for first, second in pairs]
    places = {label: place for place, label in enumerate(MATCH_LABELS)}
    four = [(places[first], places[second]) for first, second in pairs]
    graded = {first for first, _ in pairs} - {"supports", "does_not"}
    return MatchAgreement(
        pairs=len(keys),
        only_people=len(people.labels) - len(keys),
        supported=_statistics(units, supported, 2, seed),
        labels=_statistics(units, four, len(MATCH_LABELS), seed) if graded else {},
        counts=dict(Counter(pairs)),
    )


def _statistics(units: Sequence[str], pairs: Sequence[tuple[int, int]], k: int, seed: int) -> dict[str, Estimate]:
    places = {unit: place for place, unit in enumerate(sorted(set(units), key=natural_key))}
    human, judge = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    codes = np.array([places[unit] for unit in units], dtype=np.int64)
    tables = np.asarray(topic_tables(human, judge, codes, k, len(places)))
    rng = np.random.default_rng(seed)
    rows = all_resampled(STATISTICS_OF_MATCHES, tables, range(k), rng, replicates=REPLICATES)
    return {name: row.estimate for name, row in rows.items()}


def agreement_grids(agreement: MatchAgreement) -> tuple[Table[Any], ...]:
    """The statistics, and the labels of people against those of the judge."""
    rows: list[tuple[Cell, ...]] = [
        (of, *(values[name] for name in STATISTICS_OF_MATCHES))
        for of, values in (("supports or not", agreement.supported), ("all labels", agreement.labels))
        if values
    ]
    notes = (
        f"{agreement.pairs} pairs of response and nugget that both matched; {agreement.only_people} more that people "
        "matched and the judge did not. The interval is over topics.",
    )
    lines: list[tuple[Cell, ...]] = [
        (first, *(agreement.counts.get((first, second), 0) for second in MATCH_LABELS)) for first in MATCH_LABELS
    ]
    return (
        Table(rows, ("of", *STATISTICS_OF_MATCHES), "Agreement", notes, places=3),
        Table(lines, ("people", *MATCH_LABELS), "Labels", ("Rows: people. Columns: the judge.",)),
    )


class CorrectedRecall(Record, frozen=True):
    """One run: its recall by the judge, and the recall that people's matches imply."""

    run_id: str
    raw: Estimate
    """The mean of the judge over the turns that it matched."""
    people: int
    """Those of them that people matched too."""
    corrected: Estimate
    method: str
    """How it was corrected, as on the corrected leaderboard."""
    bias: float | None
    """Mean of the judge minus people, where both matched."""


def corrected_recall(
    judged: Sequence[RunUnit],
    people: Sequence[RunUnit],
    gold: PairLabels,
    measure: str,
    name: str,
    inclusion: float | None = None,
    cluster: Cluster = "topic",
) -> tuple[CorrectedRecall, ...]:
    """Correct the recall of every run, best corrected mean first, then runs without one.

    `gold` are people's matches, with what they matched and how probably, and `name` is their file in messages.
    `inclusion` is the probability with which a unit was drawn for people, where the rows do not say it.
    """
    by_run, bounds = _twins(judged, people, gold, measure, inclusion), bounds_of(judged, MEASURES[measure])
    twins = [twin for of_run in by_run.values() for twin in of_run]
    census = all(not math.isnan(twin.people) for twin in twins)
    unknown = [twin.unit for twin in twins if not math.isnan(twin.people) and math.isnan(twin.inclusion)]
    if unknown and not census:
        several = sum(len(unit.responses) > 1 for unit in unknown)
        raise InputError(
            f"{name}: without the probability with which responses were drawn for people, corrected means can be far "
            f"off; it is unknown for {count(len(unknown), 'unit')}, the first {unknown[0].run_id} "
            f"in {unknown[0].scope}: give `inclusion_probability` in the rows, or --inclusion P"
            + (f"; {several} of several responses, for which only --inclusion P tells it" if several else "")
        )
    topics: dict[str, int] = defaultdict(lambda: len(topics))
    scopes: dict[str, int] = defaultdict(lambda: len(scopes))
    samples = [
        RunGrades(
            judged=np.array([twin.judged for twin in of_run], dtype=np.float64),
            gold=np.array([twin.people for twin in of_run], dtype=np.float64),
            inclusion=np.array([1.0 if census else twin.inclusion for twin in of_run], dtype=np.float64),
            topics=np.array([topics[cluster_of(twin.unit.topic_id, cluster)] for twin in of_run], dtype=np.int64),
            turns=np.array([scopes[twin.unit.scope] for twin in of_run], dtype=np.int64),
        )
        for of_run in by_run.values()
    ]
    try:
        corrections = correct(samples, target="pool", bounds=bounds)
    except ValueError as error:
        raise InputError(
            f"{name}: every response that people matched was drawn with probability 1, but people did not match all: "
            "expected less than 1"
        ) from error
    rows = [_row(*of, correction, cluster, bounds) for of, correction in zip(by_run.items(), corrections, strict=True)]
    return tuple(sorted(rows, key=lambda row: (row.corrected.value is None, -(row.corrected.value or 0))))


class _Twin(NamedTuple):
    """A unit's recall by the judge and by people, who matched it whole; NaN where they did not, or nobody knows."""

    unit: RunUnit
    judged: float
    people: float
    inclusion: float
    """The probability with which people were to match it."""


def _twins(
    judged: Sequence[RunUnit], people: Sequence[RunUnit], gold: PairLabels, measure: str, inclusion: float | None
) -> dict[str, list[_Twin]]:
    """What the judge matched of each run, in natural order of the runs."""
    whole = [unit for unit in people if unit.responses and gold.labels.keys() >= _pairs(unit)]
    by_people = {(unit.run_id, unit.scope): value_of(unit, MEASURES[measure]) for unit in whole}
    by_run: dict[str, list[_Twin]] = {run: [] for run in sorted({unit.run_id for unit in judged}, key=natural_key)}
    for unit in judged:
        value, truth = value_of(unit, MEASURES[measure]), by_people.get((unit.run_id, unit.scope))
        if unit.status == "matched" and value is not None:
            drawn = None if truth is None else _probability(unit, gold, inclusion)
            known = math.nan if truth is None else truth, math.nan if drawn is None else drawn
            by_run[unit.run_id].append(_Twin(unit, value, *known))
    return by_run


def _row(
    run_id: str, twins: Sequence[_Twin], correction: Corrected, cluster: Cluster, bounds: tuple[float, float]
) -> CorrectedRecall:
    clusters = [cluster_of(twin.unit.topic_id, cluster) for twin in twins]
    with_people = {of for of, twin in zip(clusters, twins, strict=True) if not math.isnan(twin.people)}
    return CorrectedRecall(
        run_id=run_id,
        raw=mean_interval([twin.judged for twin in twins], clusters, bounds=bounds, what="turns"),
        people=correction.n,
        corrected=Estimate(
            correction.value, correction.low, correction.high, correction.n, len(with_people), correction.reason
        ),
        method=correction.method,
        bias=correction.bias,
    )


def _pairs(unit: RunUnit) -> set[PairKey]:
    return {(response_id, nugget.nugget_id) for response_id in unit.responses for nugget in unit.nuggets}


def _probability(unit: RunUnit, gold: PairLabels, inclusion: float | None) -> float | None:
    """The probability with which people were to match a whole unit, by its rows or as given; None if nobody knows.

    Rows say the probability of one response. That of several together does not follow from it, unless each is 1.
    """
    said = {gold.inclusion.get(key) for key in _pairs(unit)}
    if len(unit.responses) == 1:
        said.discard(None)
    known = len(said) == 1 and (len(unit.responses) == 1 or said == {1.0})
    return said.pop() if known else inclusion


def corrected_grid(rows: Sequence[CorrectedRecall], measure: str) -> Table[Any]:
    """The runs with their recall by the judge, and corrected."""
    notes = (
        f"{measure}, by the judge and corrected by people's matches; means over the turns that the judge matched.",
        "bias: the judge minus people, where both matched.",
    )
    columns = fields("run=run_id judge=raw people corrected method bias")
    return records_table(columns, rows, "Corrected", notes, places=3)
