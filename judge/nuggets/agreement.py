"""How far the matches of a judge agree with people's on the same pairs of response and nugget. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from judge.nuggets.matches import PairKey, PairLabels
from judge.nuggets.records import MATCH_LABELS
from judge.records import Estimate, Record
from judge.stats.resampling import resampled
from judge.stats.tables import topic_tables
from judge.text.grid import Cell, Grid
from judge.text.ids import natural_key

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
    """Compare the labels of the pairs that both matched, with intervals over topics.

    Args:
        people: People's labels.
        judge: The judge's labels.
        topics: Pair to its topic, or what intervals are over, for every pair of people.
        seed: Of the resamples.
    """
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
    return {
        name: resampled(name, tables, range(k), np.random.default_rng(seed), replicates=REPLICATES).estimate
        for name in STATISTICS_OF_MATCHES
    }


def agreement_grids(agreement: MatchAgreement) -> tuple[Grid, ...]:
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
        Grid("Agreement", ("of", *STATISTICS_OF_MATCHES), tuple(rows), notes, places=3),
        Grid("Labels", ("people", *MATCH_LABELS), tuple(lines), ("Rows: people. Columns: the judge.",)),
    )
