"""Judges compared on the same items, the choice among them, what it costs, and what is as good as the chosen one."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

import judge.calibrate.findings as findings
from judge.calibrate.findings import Split
from judge.calibrate.panel import Case, JudgeColumn, Panel
from judge.records import Estimate
from judge.stats.agreement import point, primary_statistic
from judge.stats.comparison import JudgeDifference, after_choice, compare, nested_folds
from judge.stats.tables import defined

FEWEST_FOLD_TOPICS = 5
"""Fewest topics on which the choice is repeated inside folds."""


def choose(panel: Panel, split: Split) -> JudgeColumn | None:
    """The candidate with the highest primary statistic on a split; of equals the first by name.

    A missing grade counts as the one farthest from the assessor's, so that no judge wins by failing on hard items.
    None if no candidate has a defined value.
    """
    mask = panel.within(split)
    best: tuple[float, JudgeColumn] | None = None
    for column in candidates(panel):
        value = _apparent(panel, column, split)
        if value is not None and (column.codes[mask] >= 0).any() and (best is None or value > best[0]):
            best = value, column
    return best[1] if best else None


def candidates(panel: Panel) -> tuple[JudgeColumn, ...]:
    """The judges that could be chosen, all but the baselines."""
    return tuple(column for column in panel.columns if not column.baseline)


def comparisons(
    panel: Panel, columns: Sequence[JudgeColumn], split: Split, seed: int, permutations: int
) -> tuple[tuple[findings.ComparisonRow, ...], frozenset[str]]:
    """Every pair of judges on the items that both graded, and the candidates that may be the best.

    Labels are exchanged topic by topic.
    """
    name = primary_statistic(len(panel.grades))
    tried = [column.name for column in candidates(panel)]
    pairs = common_tables(panel, combinations(columns, 2), split)
    rng = np.random.default_rng(seed)
    compared = compare(pairs, name, panel.grades, rng, candidates=tried, permutations=permutations)
    rows = tuple(
        findings.ComparisonRow(**msgspec.structs.asdict(pair), criterion=panel.criterion, split=split, statistic=name)
        for pair in compared.pairs
    )
    return rows, compared.best


def common_tables(
    panel: Panel, pairs: Iterable[tuple[JudgeColumn, JudgeColumn]], split: Split
) -> dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]]:
    """The tables of two judges each, over the items of a split that both graded, by their names."""
    tables = {}
    mask = panel.within(split)
    for a, b in pairs:
        common = mask & (a.codes >= 0) & (b.codes >= 0)
        tables[a.name, b.name] = panel.tables(a.codes, common), panel.tables(b.codes, common)
    return tables


def selection(
    panel: Panel,
    chosen: JudgeColumn,
    split: Split,
    rows: dict[tuple[str, Split], findings.AgreementRow],
    best: frozenset[str],
    seed: int,
    replicates: int,
    openings: int | None,
) -> findings.Choice:
    """The choice with its value where it was made, and its value elsewhere.

    `rows` has the agreement of every judge by name and split, `best` the candidates that may be the best on `split`.
    """
    name = primary_statistic(len(panel.grades))
    tried = candidates(panel)
    value = rows[chosen.name, split].statistics[name]
    tested = rows.get((chosen.name, "test")) if split == "dev" else None
    test = tested.statistics[name] if tested else None
    nested, after, worst = _after_choice(panel, chosen, tried, split, seed, replicates)
    elsewhere = test.value if test else nested
    # With a single candidate dev and test differ by chance alone, so there is no optimism.
    optimism = None if len(tried) < 2 or value.value is None or elsewhere is None else value.value - elsewhere
    others = tuple(column.name for column in tried if column.name in best and column is not chosen)
    return findings.Choice(
        criterion=panel.criterion,
        statistic=name,
        tried=tuple(column.name for column in tried),
        chosen=chosen.name,
        chosen_on=split,
        value=value,
        test=test,
        nested=nested,
        after_choice=after,
        optimism=optimism,
        not_separable=others,
        openings=openings,
        after_choice_worst=worst,
    )


def _apparent(panel: Panel, column: JudgeColumn, split: Split) -> float | None:
    """The value that candidates are chosen by: the primary statistic with missing grades at their farthest."""
    tables = panel.tables(panel.farthest(column.codes), panel.within(split))
    return defined(point(primary_statistic(len(panel.grades)), tables.sum(axis=0), panel.grades))


def _after_choice(
    panel: Panel, chosen: JudgeColumn, tried: tuple[JudgeColumn, ...], split: Split, seed: int, replicates: int
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
    after = after_choice(judged, place, name, panel.grades, np.random.default_rng(seed), replicates=replicates)
    if not missing:
        return defined(nested), after, None
    after_worst = after_choice(worst, place, name, panel.grades, np.random.default_rng(seed), replicates=replicates)
    return defined(nested), after, after_worst


ASSESSORS = "assessors"
"""The name of the other side where a judge is compared with the assessors' agreement among themselves."""
LEVEL = 0.9
"""Two one-sided tests at 5 % reject exactly where this interval lies within the margin."""


def equivalences(case: Case) -> list[findings.FindingRow]:
    """The chosen judge against every other one, and against the assessors, each by two one-sided tests.

    Judges are compared on the items of the split that both graded, the chosen one with the assessors on those of the
    verdict's split.
    D. J. Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability, J. Pharmacokinet. Biopharm. 15(6), 657-680.
    """
    panel = case.panel
    margin = case.options.margin
    if margin is None or case.decided is None:
        return []
    pairs = common_tables(panel, ((case.column, other) for other in case.others), case.split)
    rows = [
        _equivalence(case, pair.b, pair.difference, margin, case.split) for pair in _differences(panel, pairs, case)
    ]
    beside = _beside_assessors(panel, case.column, panel.within(case.decided))
    if beside is not None:
        judge_tables, assessor_tables, n = beside
        pairs = {(case.column.name, ASSESSORS): (judge_tables, assessor_tables)}
        (pair,) = _differences(panel, pairs, case)
        rows.append(_equivalence(case, ASSESSORS, replace(pair.difference, n=n), margin, case.decided))
    return rows


def _differences(
    panel: Panel, pairs: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]], case: Case
) -> tuple[JudgeDifference, ...]:
    """The differences of pairs, each with the interval of two one-sided tests."""
    name = primary_statistic(len(panel.grades))
    rng = np.random.default_rng(case.options.seed)
    # Only the intervals are wanted, so a single exchange is enough.
    return compare(pairs, name, panel.grades, rng, permutations=1, level=LEVEL).pairs


def _equivalence(case: Case, other: str, difference: Estimate, margin: float, split: Split) -> findings.FindingRow:
    facts: dict[str, findings.FindingFact] = {
        "statistic": primary_statistic(len(case.panel.grades)),
        "b": other,
        "margin": float(margin),
        "equivalence": word_of(difference, margin),
    }
    return case.row(facts, {"difference": difference}, split)


def word_of(difference: Estimate, margin: float) -> findings.Equivalence:
    """EQUIVALENT where the interval lies within the margin, DIFFERENT where it lies beyond it, else INCONCLUSIVE."""
    low = difference.low
    high = difference.high
    if low is None or high is None:
        return "INCONCLUSIVE"
    if -margin < low and high < margin:
        return "EQUIVALENT"
    return "DIFFERENT" if low > margin or high < -margin else "INCONCLUSIVE"


def _beside_assessors(
    panel: Panel, column: JudgeColumn, mask: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any], int] | None:
    """Tables of the judge and of the assessors, both against the same grades: for each assessor, the others' consensus.

    The last number counts the items. A judge that is set against the consensus of all has the easier task, since errors
    of assessors partly cancel there. None where no item has two assessors and a grade of the judge.
    """
    assessors, others = panel.against_others()
    judge = np.tile(column.codes, (len(assessors), 1))
    reference = others * (mask & (assessors >= 0) & (judge >= 0))[:, :, None]
    if not reference.any():
        return None
    judge_tables = panel.tables_against(reference, judge)
    assessor_tables = panel.tables_against(reference, assessors)
    return judge_tables, assessor_tables, int(reference.any(axis=(0, 2)).sum())


def turned(difference: Estimate) -> Estimate:
    """A difference the other way round."""
    return replace(
        difference,
        value=None if difference.value is None else -difference.value,
        low=None if difference.high is None else -difference.high,
        high=None if difference.low is None else -difference.low,
    )
