"""What a cascade saves, and what it costs in agreement, against asking its judge alone. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np

from judge.calibrate.findings import CascadeBounds, CascadeRow, Split
from judge.calibrate.panel import Column, Panel
from judge.calibrate.together import ColumnKey, beside_alone, common_values
from judge.extra.checkers.cascade import Cascade
from judge.judges.backends import judges_in
from judge.stats.agreement import primary_statistic
from judge.stats.comparison import Comparison, compare

LOWS, HIGHS = (0.0, 0.1, 0.2, 0.3, 0.4), (0.6, 0.7, 0.8, 0.9, 1.0)
"""The bounds that are tried of the answers that are there."""


def cascade_rows(
    panel: Panel, columns: Sequence[Column], split: Split, statistic: str, compared: Sequence[Comparison]
) -> tuple[CascadeRow, ...]:
    """A row for each cascade that was compared with the judge that it asks, under the same prompt.

    Args:
        panel: Gold and labels.
        columns: The judges that were compared.
        split: The split that they were compared on.
        statistic: Key of `STATISTICS`.
        compared: Every pair of them.
    """
    rows = []
    for column, alone, pair in beside_alone(columns, compared, _asked_alone):
        value_alone, value_cascade = common_values(panel, alone, column, split, statistic)
        judged, settled = _settled(panel, column, split)
        rows.append(
            CascadeRow(
                criterion=panel.criterion,
                split=split,
                statistic=statistic,
                judge=column.judge,
                alone=alone.judge,
                prompt=str(column.prompt),
                items=judged,
                settled=settled,
                value_alone=value_alone,
                value_cascade=value_cascade,
                difference=pair.difference,
                p=pair.p,
                p_max_t=pair.p_max_t,
            )
        )
    return tuple(rows)


def _asked_alone(column: Column) -> ColumnKey | None:
    *first, asked = judges_in(column.judge)
    return (asked, column.prompt) if first else None


def tried_bounds(cascade: Cascade) -> tuple[Cascade, ...]:
    """The same checker with other bounds, those for which its labels hold, and with its own."""
    tried = {(low, high) for low in LOWS for high in HIGHS if low < cascade.threshold <= high}
    tried.add((cascade.low, cascade.high))
    return tuple(Cascade(cascade.checker, *bounds) for bounds in sorted(tried))


def cascade_bounds(panel: Panel, cascades: Mapping[str, Cascade], seed: int) -> tuple[CascadeBounds, ...]:
    """A row for each of these cascades among a panel's judges, in the panel's order.

    Args:
        panel: Gold, and labels of the cascades and of the judges that they ask; every item is compared.
        cascades: The cascades by their names as judges.
        seed: Seed of the resampling.
    """
    split: Split = panel.split[0]
    statistic = primary_statistic(len(panel.grades))
    named = {(column.judge, column.prompt): column for column in panel.columns}
    beside = [
        (column, named[judges_in(column.judge)[-1], column.prompt])
        for column in panel.columns
        if column.judge in cascades
    ]
    if not beside:
        return ()
    tables = {}
    for column, alone in beside:
        common = (column.codes >= 0) & (alone.codes >= 0)
        tables[column.name, alone.name] = panel.tables(column.codes, common), panel.tables(alone.codes, common)
    # Only the intervals are wanted, so a single exchange is enough.
    compared = compare(tables, statistic, panel.grades, np.random.default_rng(seed), permutations=1)
    rows = []
    for (column, alone), pair in zip(beside, compared.pairs, strict=True):
        cascade = cascades[column.judge]
        judged, settled = _settled(panel, column, split)
        rows.append(
            CascadeBounds(
                criterion=panel.criterion,
                split=split,
                statistic=statistic,
                checker=cascade.checker,
                alone=alone.judge,
                prompt=str(column.prompt),
                low=cascade.low,
                high=cascade.high,
                items=judged,
                settled=settled,
                value=common_values(panel, alone, column, split, statistic)[1],
                difference=pair.difference,
            )
        )
    return tuple(rows)


def _settled(panel: Panel, column: Column, split: Split) -> tuple[int, int]:
    """How many gold items of a split a cascade judged, and how many of them its checker settled."""
    told = column.origin.labels if column.origin is not None else ()
    settled = {(label.turn_id, label.response_id) for label in told if label.settled and label.sample == 0}
    judged = [
        (item.turn_id, item.response_id) in settled
        for item, within, reason in zip(panel.items, panel.within(split), column.reasons, strict=True)
        if within and reason in (None, "unable")
    ]
    return len(judged), sum(judged)
