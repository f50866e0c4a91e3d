"""Which wording of a prompt agrees best with people, and whether it agrees better than the first one. Pure.

A grade that is missing counts as the one farthest from the assessors', so that no wording gains by failing on hard
items. Intervals are over topics.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.calibrate.cuts import codes_by, cross_fitted, why_no_cuts
from judge.calibrate.findings import Split
from judge.calibrate.panel import JudgeColumn, Panel
from judge.calibrate.selection import FEWEST_FOLD_TOPICS, candidates, choose
from judge.records import Estimate
from judge.stats.agreement import point, primary_statistic
from judge.stats.comparison import compare, nested_folds
from judge.stats.raters import GradeCodes
from judge.stats.resampling import resampled
from judge.stats.tables import Floats, defined

KEPT = 3
"""Most wordings that the next round starts from."""
LEVEL = 0.95
_ELIMINATION = 1000
"""Exchanges of topics by which wordings are kept or dropped."""
_COMPARED = 20
"""Most wordings that are compared with each other, the best ones."""
_ROUNDING = 1e-9
_FOLDS = 5
_DIVISIONS = 4
"""Random divisions of the topics into folds in which cuts are fitted anew."""
GainWord = Literal["GAINED", "NOT GAINED", "INCONCLUSIVE", "UNPROVEN"]


class Wordings(NamedTuple):
    """The wordings that were asked, beside the assessors' grades of one part of the gold."""

    panel: Panel
    split: Split
    first: str
    """The prompt that is to be improved, as `criterion/variant`."""

    @property
    def columns(self) -> dict[str, JudgeColumn]:
        """The wordings by prompt, in the order of the panel."""
        return {column.prompt: column for column in candidates(self.panel) if column.prompt is not None}

    @property
    def statistic(self) -> str:
        """By which wordings are compared."""
        return primary_statistic(len(self.panel.grades))

    @property
    def best(self) -> JudgeColumn | None:
        """The wording that agrees best, as `judge calibrate` chooses; the first one where none agrees better."""
        chosen = choose(self.panel, self.split)
        first = self.columns.get(self.first)
        if chosen is None or first is None:
            return chosen or first
        return chosen if improves(self.value(first), self.value(chosen)) else first

    def tables(self, column: JudgeColumn) -> Floats:
        """The tables of each topic, with missing grades at their farthest."""
        return self._tables(column.codes, self.panel.within(self.split))

    def _tables(self, codes: GradeCodes, mask: NDArray[np.bool_]) -> Floats:
        return np.asarray(self.panel.tables(self.panel.farthest(codes), mask), dtype=np.float64)

    def value(self, column: JudgeColumn) -> float | None:
        """How well a wording agrees; None where that is undefined."""
        return self._value(column.codes, self.panel.within(self.split))

    def _value(self, codes: GradeCodes, mask: NDArray[np.bool_]) -> float | None:
        return defined(point(self.statistic, self._tables(codes, mask).sum(axis=0), self.panel.grades))

    def agreement(self, column: JudgeColumn, seed: int, replicates: int) -> Estimate:
        """The same, with its interval."""
        rng = np.random.default_rng(seed)
        tables = self.tables(column)
        return resampled(self.statistic, tables, self.panel.grades, rng, replicates=replicates, level=LEVEL).estimate

    def missing(self, column: JudgeColumn) -> int:
        """How many items of the part have no grade."""
        return int((self.panel.within(self.split) & (column.codes < 0)).sum())

    def why_missing(self, column: JudgeColumn) -> str:
        """How many grades are missing for which reason, the commonest first; empty if none is."""
        missing = (self.panel.within(self.split) & (column.codes < 0)).tolist()
        reasons = Counter(reason for reason, is_missing in zip(column.reasons, missing, strict=True) if is_missing)
        return ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common())

    def gain(self, column: JudgeColumn, seed: int) -> Estimate:
        """How much better a wording agrees than the first one, on the same items."""
        pairs = {("it", "first"): (self.tables(column), self.tables(self.columns[self.first]))}
        rng = np.random.default_rng(seed)
        # Only the interval is wanted, so a single exchange is enough.
        (pair,) = compare(pairs, self.statistic, self.panel.grades, rng, permutations=1, level=LEVEL).pairs
        difference = pair.difference
        return difference if difference.low is None else replace(difference, reason=None)

    def kept(self, seed: int, most: int = KEPT) -> tuple[JudgeColumn, ...]:
        """The wordings that may be the best, the best first: elimination over topics leaves them.

        A wording that is best on a single item alone is not kept for that.
        """
        worth = {column.name: self.value(column) for column in self.columns.values()}
        columns = [column for column in self.columns.values() if worth[column.name] is not None]
        columns.sort(key=lambda column: worth[column.name] or 0.0, reverse=True)
        del columns[_COMPARED:]
        tables = {column.name: self.tables(column) for column in columns}
        pairs = {}
        for place, a in enumerate(columns):
            for b in columns[place + 1 :]:
                pairs[a.name, b.name] = tables[a.name], tables[b.name]
        left = frozenset(tables)
        if pairs:
            rng = np.random.default_rng(seed)
            left = compare(pairs, self.statistic, self.panel.grades, rng, permutations=_ELIMINATION).best
        return tuple(column for column in columns if column.name in left)[:most]

    def nested(self, columns: Sequence[JudgeColumn], seed: int) -> float | None:
        """How well the chosen one of these agrees on topics that it was not chosen on: the choice inside folds.

        None with a single wording, where there is no choice, and with too few topics.
        """
        if len(columns) < 2 or self._topics < FEWEST_FOLD_TOPICS:
            return None
        tables = np.array([self.tables(column) for column in columns])
        return defined(nested_folds(tables, self.statistic, self.panel.grades, np.random.default_rng(seed)))

    def nested_with_cuts(self, columns: Sequence[JudgeColumn], seed: int) -> float | None:
        """The same where cuts are fitted to the chosen one: this and the choice between both inside the folds, too."""
        if self._topics < FEWEST_FOLD_TOPICS:
            return None
        inside = self.panel.within(self.split)
        rng = np.random.default_rng(seed)
        values: list[float] = []
        for _ in range(_DIVISIONS):
            topics = rng.permutation(np.unique(self.panel.topic[inside]))
            codes = np.full(len(inside), -1, dtype=np.int64)
            for number in range(_FOLDS):
                left_out = inside & np.isin(self.panel.topic, topics[number::_FOLDS])
                codes[left_out] = self._codes_of_choice(columns, inside & ~left_out, seed)[left_out]
            value = self._value(codes, inside)
            if value is not None:
                values.append(value)
        return float(np.mean(values)) if values else None

    def _codes_of_choice(self, columns: Sequence[JudgeColumn], mask: NDArray[np.bool_], seed: int) -> GradeCodes:
        """The codes of all items by the best of wordings with and without cuts, all found on the items of a mask."""
        best = columns[0]
        for column in columns[1:]:
            if improves(self._value(best.codes, mask), self._value(column.codes, mask)):
                best = column
        if why_no_cuts(self.panel, best, mask):
            return best.codes
        cut = cross_fitted(self.panel, best, seed, mask)
        if not improves(self._value(best.codes, mask), self._value(cut.codes, mask)):
            return best.codes
        graded = (best.codes >= 0) & ~np.isnan(best.expected)
        return np.where(graded, codes_by(best.expected, cut.cuts), -1)

    @property
    def _topics(self) -> int:
        """How many topics the part has."""
        return len(np.unique(self.panel.topic[self.panel.within(self.split)]))


def improves(before: float | None, after: float | None) -> bool:
    """Whether an agreement is higher than another one, which may be undefined.

    >>> improves(0.5, 0.6), improves(0.5, 0.5), improves(None, 0.1), improves(0.5, None)
    (True, False, True, False)
    """
    if after is None:
        return False
    return before is None or after > before + _ROUNDING


def word_of_gain(gain: Estimate) -> GainWord:
    """GAINED where the whole interval lies above 0, NOT GAINED where none of it does, else INCONCLUSIVE.

    >>> [word_of_gain(Estimate(0.1, low, high, 9, 9)) for low, high in ((0.01, 0.2), (-0.1, 0.0), (0.0, 0.2))]
    ['GAINED', 'NOT GAINED', 'INCONCLUSIVE']
    >>> word_of_gain(Estimate(0.1, None, None, 9, 3, "fewer than 5 topics"))
    'INCONCLUSIVE'
    """
    if gain.low is None or gain.high is None:
        return "INCONCLUSIVE"
    if gain.low > 0:
        return "GAINED"
    return "NOT GAINED" if gain.high <= 0 else "INCONCLUSIVE"
