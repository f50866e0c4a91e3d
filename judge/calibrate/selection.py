"""Judges compared on the same items, the choice among them, and what the choice costs."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judge.calibrate.agreement import primary_statistic
from judge.calibrate.panel import Column, Panel
from judge.findings import AgreementRow, ComparisonRow, Selection, Split
from judge.records import Estimate
from judge.stats.agreement import Undefined, point
from judge.stats.comparison import Comparison, compare
from judge.stats.selection import nested_folds, out_of_bag

FEWEST_FOLD_TOPICS = 5
"""Fewest topics that choosing inside folds, or on resampled topics, says anything about."""


def choose(panel: Panel, split: Split) -> Column | None:
    """The candidate with the highest primary statistic on a split; of equals, the first by name.

    A missing grade counts as the one farthest from the assessor's, so that no judge wins by failing on hard items.
    None if no candidate has a defined value.
    """
    name, mask = primary_statistic(panel), panel.within(split)
    best: tuple[float, Column] | None = None
    for column in candidates(panel):
        value = point(name, panel.tables(panel.farthest(column.codes), mask).sum(axis=0), panel.grades)
        if not isinstance(value, Undefined) and (column.codes[mask] >= 0).any() and (best is None or value > best[0]):
            best = value, column
    return best[1] if best else None


def candidates(panel: Panel) -> tuple[Column, ...]:
    """The judges that could be chosen: all but the yardsticks."""
    return tuple(column for column in panel.columns if not column.baseline)


def comparisons(
    panel: Panel, columns: tuple[Column, ...], split: Split, seed: int, permutations: int
) -> tuple[ComparisonRow, ...]:
    """Every pair of judges on the items that both graded, by exchanging their labels topic by topic."""
    name, mask = primary_statistic(panel), panel.within(split)
    pairs: dict[tuple[str, str], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    for a, b in combinations(columns, 2):
        common = mask & (a.codes >= 0) & (b.codes >= 0)
        pairs[a.name, b.name] = panel.tables(a.codes, common), panel.tables(b.codes, common)
    found: tuple[Comparison, ...] = (
        compare(pairs, name, panel.grades, np.random.default_rng(seed), permutations=permutations) if pairs else ()
    )
    return tuple(
        ComparisonRow(panel.criterion, split, name, c.a, c.b, c.difference, c.p, c.p_max_t, c.p_holm, c.exact)
        for c in found
    )


def selection(
    panel: Panel,
    chosen: Column,
    split: Split,
    rows: dict[tuple[str, Split], AgreementRow],
    compared: tuple[ComparisonRow, ...],
    seed: int,
    replicates: int,
    openings: int | None,
) -> Selection:
    """What was chosen, how good it looks where it was chosen, and how good it is elsewhere.

    Args:
        panel: Gold and labels.
        chosen: The judge that `choose` gave.
        split: What it was chosen on.
        rows: The agreement of every judge by name and split.
        compared: All pairs on that split.
        seed: Of folds and resamples.
        replicates: How many resamples.
        openings: For how many different questions sealed test grades have been opened.
    """
    name, tried = primary_statistic(panel), candidates(panel)
    value = rows[chosen.name, split].statistics[name]
    tested = rows.get((chosen.name, "test")) if split == "dev" else None
    test = tested.statistics[name] if tested else None
    nested, bag = _resampled_choice(panel, tried, split, seed, replicates)
    elsewhere = test.value if test else nested
    # With one candidate nothing was chosen; dev and test then differ by chance alone.
    return Selection(
        criterion=panel.criterion,
        statistic=name,
        tried=tuple(column.name for column in tried),
        chosen=chosen.name,
        chosen_on=split,
        value=value,
        test=test,
        nested=nested,
        out_of_bag=bag,
        optimism=None if len(tried) < 2 or value.value is None or elsewhere is None else value.value - elsewhere,
        not_separable=_not_separable(chosen.name, tried, compared),
        openings=openings,
    )


def _resampled_choice(
    panel: Panel, tried: tuple[Column, ...], split: Split, seed: int, replicates: int
) -> tuple[float | None, Estimate | None]:
    """The choice repeated inside topic folds, and on resampled topics; None where there was nothing to choose."""
    mask = panel.within(split)
    if len(tried) < 2 or len(set(panel.topic[mask].tolist())) < FEWEST_FOLD_TOPICS:
        return None, None
    name = primary_statistic(panel)
    tables = np.array([panel.tables(panel.farthest(column.codes), mask) for column in tried])
    kept = tables[:, tables.sum(axis=(0, 2, 3)) > 0]
    nested = nested_folds(kept, name, panel.grades, np.random.default_rng(seed))
    bag = out_of_bag(kept, name, panel.grades, np.random.default_rng(seed), replicates=replicates)
    return None if isinstance(nested, Undefined) else nested, bag


def _not_separable(chosen: str, tried: tuple[Column, ...], compared: tuple[ComparisonRow, ...]) -> tuple[str, ...]:
    """The candidates that max-T cannot tell from the chosen one at 5 %."""
    apart = {
        name
        for c in compared
        if chosen in (c.a, c.b) and c.p_max_t is not None and c.p_max_t < 0.05
        for name in (c.a, c.b)
    }
    return tuple(column.name for column in tried if column.name != chosen and column.name not in apart)
