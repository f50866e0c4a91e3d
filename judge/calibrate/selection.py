"""Judges compared on the same items, the choice among them, and what the choice costs."""

from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import AgreementRow, Choice, ComparisonRow, Split
from judge.calibrate.panel import Column, Panel
from judge.judges.backends import judges_in
from judge.records import Estimate
from judge.stats.agreement import point, primary_statistic
from judge.stats.comparison import compare
from judge.stats.selection import after_choice, nested_folds
from judge.stats.tables import Undefined

FEWEST_FOLD_TOPICS = 5
"""Fewest topics on which the choice is repeated inside folds."""


def choose(panel: Panel, split: Split) -> Column | None:
    """The candidate with the highest primary statistic on a split; of equals the first by name, and a cascade last.

    A missing grade counts as the one farthest from the assessor's, so that no judge wins by failing on hard items.
    None if no candidate has a defined value.
    """
    mask = panel.within(split)
    best: tuple[float, Column] | None = None
    for column in candidates(panel):
        value = _apparent(panel, column, split)
        if value is not None and (column.codes[mask] >= 0).any() and (best is None or value > best[0]):
            best = value, column
    return best[1] if best else None


def candidates(panel: Panel) -> tuple[Column, ...]:
    """The judges that could be chosen, all but the baselines; cascades are last, since of equals the first wins."""
    return tuple(sorted((one for one in panel.columns if not one.baseline), key=lambda one: len(judges_in(one.judge))))


def comparisons(
    panel: Panel, columns: tuple[Column, ...], split: Split, seed: int, permutations: int
) -> tuple[tuple[ComparisonRow, ...], frozenset[str]]:
    """Every pair of judges on the items that both graded, and the candidates that may be the best.

    Labels are exchanged topic by topic.
    """
    name, mask = primary_statistic(len(panel.grades)), panel.within(split)
    pairs: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]] = {}
    for a, b in combinations(columns, 2):
        common = mask & (a.codes >= 0) & (b.codes >= 0)
        pairs[a.name, b.name] = panel.tables(a.codes, common), panel.tables(b.codes, common)
    tried = [column.name for column in candidates(panel)]
    rng = np.random.default_rng(seed)
    compared = compare(pairs, name, panel.grades, rng, candidates=tried, permutations=permutations)
    rows = tuple(
        ComparisonRow(**msgspec.structs.asdict(pair), criterion=panel.criterion, split=split, statistic=name)
        for pair in compared.pairs
    )
    return rows, compared.best


def selection(
    panel: Panel,
    chosen: Column,
    split: Split,
    rows: dict[tuple[str, Split], AgreementRow],
    best: frozenset[str],
    seed: int,
    replicates: int,
    openings: int | None,
) -> Choice:
    """The choice with its value where it was made, and its value elsewhere.

    Args:
        panel: Gold and labels.
        chosen: The judge that `choose` gave.
        split: The split it was chosen on.
        rows: The agreement of every judge by name and split.
        best: The candidates that may be the best on that split.
        seed: Seed of folds and resamples.
        replicates: How many resamples.
        openings: For how many different questions sealed test grades have been opened; None if they are not sealed.
    """
    name, tried = primary_statistic(len(panel.grades)), candidates(panel)
    value = rows[chosen.name, split].statistics[name]
    tested = rows.get((chosen.name, "test")) if split == "dev" else None
    test = tested.statistics[name] if tested else None
    nested, after, worst = _after_choice(panel, chosen, tried, split, seed, replicates)
    elsewhere = test.value if test else nested
    # With a single candidate dev and test differ by chance alone, so there is no optimism.
    return Choice(
        criterion=panel.criterion,
        statistic=name,
        tried=tuple(column.name for column in tried),
        chosen=chosen.name,
        chosen_on=split,
        value=value,
        test=test,
        nested=nested,
        after_choice=after,
        optimism=None if len(tried) < 2 or value.value is None or elsewhere is None else value.value - elsewhere,
        not_separable=tuple(column.name for column in tried if column.name in best and column is not chosen),
        openings=openings,
        after_choice_worst=worst,
    )


def _apparent(panel: Panel, column: Column, split: Split) -> float | None:
    """The value that candidates are chosen by: the primary statistic with missing grades at their farthest."""
    tables = panel.tables(panel.farthest(column.codes), panel.within(split))
    value = point(primary_statistic(len(panel.grades)), tables.sum(axis=0), panel.grades)
    return None if isinstance(value, Undefined) else value


def _after_choice(
    panel: Panel, chosen: Column, tried: tuple[Column, ...], split: Split, seed: int, replicates: int
) -> tuple[float | None, Estimate | None, Estimate | None]:
    """The value with the choice repeated inside topic folds, and intervals that allow for the choice.

    Candidates are chosen as by `choose`, with missing grades at their farthest. The first interval is of the items that
    the chosen candidate graded, the second of all, with missing grades at their farthest. All are None where there was
    nothing to choose, the last also where no grade is missing.
    """
    mask = panel.within(split)
    if len(tried) < 2 or len(set(panel.topic[mask].tolist())) < FEWEST_FOLD_TOPICS:
        return None, None, None
    name = primary_statistic(len(panel.grades))
    graded = [column for column in tried if (column.codes[mask] >= 0).any()]
    judged = np.array([panel.tables(column.codes, mask) for column in graded])
    worst = np.array([panel.tables(panel.farthest(column.codes), mask) for column in graded])
    nested = nested_folds(judged, name, panel.grades, np.random.default_rng(seed), choose_by=worst)
    place = next(i for i, column in enumerate(graded) if column is chosen)
    missing = any((column.codes[mask] < 0).any() for column in graded)
    intervals = [
        after_choice(tables, place, name, panel.grades, np.random.default_rng(seed), replicates=replicates)
        for tables in ([judged, worst] if missing else [judged])
    ]
    return None if isinstance(nested, Undefined) else nested, intervals[0], intervals[1] if missing else None
