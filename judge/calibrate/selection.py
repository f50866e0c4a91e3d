"""Judges compared on the same items, the choice among them, and what the choice costs."""

from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import AgreementRow, Choice, ComparisonRow, Split
from judge.calibrate.panel import Column, Panel
from judge.records import Estimate
from judge.stats.agreement import point, primary_statistic
from judge.stats.comparison import Comparison, compare, indistinguishable
from judge.stats.selection import nested_folds, out_of_bag
from judge.stats.tables import Undefined

FEWEST_FOLD_TOPICS = 5
"""Fewest topics on which the choice is repeated inside folds or on resamples."""


def choose(panel: Panel, split: Split) -> Column | None:
    """The candidate with the highest primary statistic on a split; of equals, the first by name.

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
    """The judges that could be chosen: all but the baselines."""
    return tuple(column for column in panel.columns if not column.baseline)


def comparisons(
    panel: Panel, columns: tuple[Column, ...], split: Split, seed: int, permutations: int
) -> tuple[ComparisonRow, ...]:
    """Every pair of judges on the items that both graded, by exchanging their labels topic by topic."""
    name, mask = primary_statistic(len(panel.grades)), panel.within(split)
    pairs: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]] = {}
    for a, b in combinations(columns, 2):
        common = mask & (a.codes >= 0) & (b.codes >= 0)
        pairs[a.name, b.name] = panel.tables(a.codes, common), panel.tables(b.codes, common)
    compared: tuple[Comparison, ...] = (
        compare(pairs, name, panel.grades, np.random.default_rng(seed), permutations=permutations) if pairs else ()
    )
    return tuple(
        ComparisonRow(**msgspec.structs.asdict(pair), criterion=panel.criterion, split=split, statistic=name)
        for pair in compared
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
) -> Choice:
    """The choice with its value where it was made, and its value elsewhere.

    Args:
        panel: Gold and labels.
        chosen: The judge that `choose` gave.
        split: The split it was chosen on.
        rows: The agreement of every judge by name and split.
        compared: The comparisons of all pairs on that split.
        seed: Seed of folds and resamples.
        replicates: How many resamples.
        openings: For how many different questions sealed test grades have been opened; None if they are not sealed.
    """
    name, tried = primary_statistic(len(panel.grades)), candidates(panel)
    value = rows[chosen.name, split].statistics[name]
    tested = rows.get((chosen.name, "test")) if split == "dev" else None
    test = tested.statistics[name] if tested else None
    nested, bag, worst = _resampled_choice(panel, tried, split, seed, replicates)
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
        # Candidates may have graded different numbers of items; this counts those of the chosen one.
        out_of_bag=msgspec.structs.replace(bag, n=value.n) if bag else None,
        optimism=None if len(tried) < 2 or value.value is None or elsewhere is None else value.value - elsewhere,
        not_separable=_not_separable(chosen.name, tried, compared),
        openings=openings,
        out_of_bag_worst=worst,
    )


def _apparent(panel: Panel, column: Column, split: Split) -> float | None:
    """The value that candidates are chosen by: the primary statistic with missing grades at their farthest."""
    tables = panel.tables(panel.farthest(column.codes), panel.within(split))
    value = point(primary_statistic(len(panel.grades)), tables.sum(axis=0), panel.grades)
    return None if isinstance(value, Undefined) else value


def _resampled_choice(
    panel: Panel, tried: tuple[Column, ...], split: Split, seed: int, replicates: int
) -> tuple[float | None, Estimate | None, Estimate | None]:
    """The choice repeated: inside topic folds, on resampled topics, and there with missing grades scored too.

    Candidates are chosen as by `choose`, with missing grades at their farthest. The first two score a candidate on the
    items that it graded. All are None where there was nothing to choose, the third also where no grade is missing.
    """
    mask = panel.within(split)
    if len(tried) < 2 or len(set(panel.topic[mask].tolist())) < FEWEST_FOLD_TOPICS:
        return None, None, None
    name, codes = (
        primary_statistic(len(panel.grades)),
        [column.codes for column in tried if (column.codes[mask] >= 0).any()],
    )
    judged = np.array([panel.tables(of_judge, mask) for of_judge in codes])
    worst = np.array([panel.tables(panel.farthest(of_judge), mask) for of_judge in codes])
    nested = nested_folds(judged, name, panel.grades, np.random.default_rng(seed), choose_by=worst)
    bags = [
        out_of_bag(scored, name, panel.grades, np.random.default_rng(seed), choose_by=worst, replicates=replicates)
        for scored in ([judged, worst] if any((of_judge[mask] < 0).any() for of_judge in codes) else [judged])
    ]
    return None if isinstance(nested, Undefined) else nested, bags[0], bags[1] if len(bags) > 1 else None


def _not_separable(chosen: str, tried: tuple[Column, ...], compared: tuple[ComparisonRow, ...]) -> tuple[str, ...]:
    """The candidates that max-T cannot tell from the chosen one at 5 %."""
    alike = indistinguishable(compared, chosen)
    return tuple(column.name for column in tried if column.name in alike)
