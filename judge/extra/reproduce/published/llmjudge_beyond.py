"""What the labels of LLMJudge hold beyond print: intervals over topics, tests of pairs, labels off the scale. Pure."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.io.cells import count
from judge.io.table import Cell, Table, p_cell
from judge.stats.agreement import point
from judge.stats.comparison import FEWEST_COMPARED, compare
from judge.stats.judge_orders import halves_tau, orders_tau
from judge.stats.resampling import Resampled, resampled
from judge.stats.separation import compact_letters
from judge.stats.tables import Undefined, topic_tables

SCALE = (0, 1, 2, 3)
"""The grades of the assessors."""
SEED = 2025
"""Of resampled topics and of exchanges; every judge and statistic has the same draws."""
EXCHANGES = 5_000
"""How often the labels of a pair of judges are exchanged by topic."""
ALPHA = 0.05
_LABELS = {"kappa": "kappa", "alpha_ordinal": "alpha", "wkappa": "wkappa", "ac2": "ac2"}
"""Key of STATISTICS to its column."""


class JudgeLabels:
    """One judge's labels beside the assessors' grades, pair by pair."""

    def __init__(
        self, name: str, given: tuple[int | None, ...], grades: NDArray[np.int64], topics: NDArray[np.int64]
    ) -> None:
        self.name = name
        self.given = given
        """The labels as released; None where there is none."""
        self.grades = grades
        """The assessors' (N,)."""
        self.topics = topics
        """The place of each pair's topic (N,)."""

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The labels as the paper counts them: off the scale is the nearest grade, -1 where there is none (N,)."""
        return np.array([-1 if label is None else min(max(label, SCALE[0]), SCALE[-1]) for label in self.given])

    @cached_property
    def off_scale(self) -> dict[int, int]:
        """Label off the scale to how many pairs have it."""
        return dict(sorted(Counter(label for label in self.given if label is not None and label not in SCALE).items()))

    @property
    def T(self) -> int:
        """The number of topics."""
        return int(self.topics.max()) + 1

    def tables(self, codes: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """C of every topic; by other codes than the judge's where they are given."""
        return topic_tables(self.grades, self.codes if codes is None else codes, self.topics, len(SCALE), self.T)

    def halves(self, least: int) -> NDArray[Any]:
        """C of every topic, where all grades from `least` on are one grade and those below it another."""
        split = np.where(self.codes < 0, -1, self.codes >= least)
        return topic_tables((self.grades >= least).astype(np.int64), split, self.topics, 2, self.T)


def agreement(judge: JudgeLabels, name: str, least: int | None = None) -> Resampled:
    """A statistic of a judge with its intervals; of a split of the scale where `least` is given."""
    tables, grades = (judge.tables(), SCALE) if least is None else (judge.halves(least), (0, 1))
    return resampled(name, tables, grades, np.random.default_rng(SEED))


def beyond(judges: Sequence[JudgeLabels]) -> tuple[Table[Any], ...]:
    """The tables that the publication does not have."""
    ordered = sorted(judges, key=lambda judge: (-_sortable(judge, "kappa"), judge.name))
    grids = [_agreement(ordered), *_ranking(ordered), _stability(ordered)]
    if any(judge.off_scale for judge in ordered):
        grids.append(_off_scale(ordered))
    return tuple(grids)


def _agreement(judges: Sequence[JudgeLabels]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for judge in judges:
        kappa = agreement(judge, "kappa")
        others = (agreement(judge, name).estimate for name in ("alpha_ordinal", "wkappa", "ac2", "bias"))
        lines.append((judge.name, kappa.estimate.n, kappa.estimate, *others, kappa.item, kappa.design_effect))
    columns = ("judge", "pairs", "kappa", "alpha", "wkappa", "ac2", "bias", "kappa_over_pairs", "design_effect")
    notes = (
        "Intervals are over topics, the unit that was sampled. kappa_over_pairs: as if pairs were independent. "
        "design_effect: the variance of kappa over topics, in units of that over pairs.",
        "alpha: ordinal. wkappa: quadratic weights. bias: judge less assessor, in grades.",
    )
    return Table(lines, columns, "Agreement", notes)


def _ranking(judges: Sequence[JudgeLabels]) -> tuple[Table[Any], ...]:
    """The order by κ, with who can be told apart, and every pair."""
    if len(judges) < 2:
        return ()
    place = {judge.name: i for i, judge in enumerate(judges)}
    tables = {(a.name, b.name): _both(a, b) for a, b in combinations(judges, 2)}
    compared = compare(tables, "kappa", SCALE, np.random.default_rng(SEED), permutations=EXCHANGES)
    apart = np.zeros((len(judges), len(judges)), dtype=np.bool_)
    for pair in compared.pairs:
        i, j = place[pair.a], place[pair.b]
        apart[i, j] = apart[j, i] = pair.p_max_t is not None and pair.p_max_t <= ALPHA
    tested = any(pair.p_max_t is not None for pair in compared.pairs)
    letters = compact_letters(apart, range(len(judges)))
    alphas = [_sortable(judge, "alpha_ordinal") for judge in judges]
    ranking: list[tuple[Cell, ...]] = []
    for i, judge in enumerate(judges):
        low, high = 1 + int(apart[i, :i].sum()), len(judges) - int(apart[i, i + 1 :].sum())
        told = (low, high, letters[i], judge.name in compared.best) if tested else (None,) * 4
        ranking.append((judge.name, i + 1, *told, 1 + sum(alpha > alphas[i] for alpha in alphas)))
    notes: tuple[str, ...] = (
        "rank_low, rank_high: the ranks by kappa that the judge may have. letters: judges that share one are not told "
        "apart. may_be_best: not eliminated (model confidence set). All by exchanges of labels in whole topics, max-T "
        "over all pairs, 5 %.",
        f"{int(apart.sum()) // 2} of {count(len(compared.pairs), 'pair')} told apart.",
    )
    if not tested:
        notes = (f"fewer than {FEWEST_COMPARED} topics, or no kappa: no judge is told from another.",)
    columns = ("judge", "rank", "rank_low", "rank_high", "letters", "may_be_best", "rank_by_alpha")
    pairs: list[tuple[Cell, ...]] = [
        (pair.a, pair.b, pair.difference, *map(p_cell, (pair.p, pair.p_max_t, pair.p_holm))) for pair in compared.pairs
    ]
    by_pair = ("a", "b", "a_less_b", "p", "p_max_t", "p_holm")
    of_pairs = ("p: of the pair alone. p_max_t, p_holm: adjusted for all pairs.",)
    return (
        Table(ranking, columns, "Ranking", notes),
        Table(pairs, by_pair, "Pairs", of_pairs),
    )


def _both(a: JudgeLabels, b: JudgeLabels) -> tuple[NDArray[Any], NDArray[Any]]:
    """The tables of two judges on the pairs that both labeled."""
    both = (a.codes >= 0) & (b.codes >= 0)
    if both.all():
        return a.tables(), b.tables()
    return a.tables(np.where(both, a.codes, -1)), b.tables(np.where(both, b.codes, -1))


def _stability(judges: Sequence[JudgeLabels]) -> Table[Any]:
    tables = [judge.tables() for judge in judges]
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "tau_b of two orders of the judges. Halves: the mean over 500 random halvings, without an interval; all topics "
        "order the judges better than half of them. Two statistics: percentile interval over resampled topics.",
    ]
    for name, label in _LABELS.items():
        halves = halves_tau(tables, name, SCALE, np.random.default_rng(SEED))
        lines.append((f"{label}: one half of the topics, the other", _value(halves)))
        notes += [f"{label}: {halves.reason}"] if isinstance(halves, Undefined) else []
    for name, label in list(_LABELS.items())[1:]:
        tau = orders_tau(tables, ("kappa", name), SCALE, np.random.default_rng(SEED))
        lines.append((f"kappa, {label}", tau))
        notes += [f"kappa, {label}: {tau.reason}"] if tau.reason else []
    return Table(lines, ("orders", "tau_b"), "Stability", notes)


def _off_scale(judges: Sequence[JudgeLabels]) -> Table[Any]:
    """κ and α by three readings of labels off the scale."""
    lines: list[tuple[Cell, ...]] = []
    for judge in judges:
        if not judge.off_scale:
            continue
        wide = tuple(sorted((*SCALE, *judge.off_scale)))
        places = {grade: place for place, grade in enumerate(wide)}
        own = np.array([-1 if label is None else places[label] for label in judge.given])
        human = np.array([places[grade] for grade in judge.grades.tolist()])
        on = np.array([label in SCALE for label in judge.given])
        readings: tuple[tuple[str, NDArray[Any], tuple[int, ...]], ...] = (
            ("the nearest grade", judge.tables(), SCALE),
            ("missing", judge.tables(np.where(on, judge.codes, -1)), SCALE),
            ("a grade of its own", topic_tables(human, own, judge.topics, len(wide), judge.T), wide),
        )
        named = ", ".join(f"{n} × {label}" for label, n in judge.off_scale.items())
        for reading, tables, grades in readings:
            C = tables.sum(axis=0)
            values = (_value(point(name, C, grades)) for name in ("kappa", "alpha_ordinal"))
            lines.append((judge.name, named, reading, int(C.sum()), *values))
    notes = (
        "The printed numbers are those of the first reading. `judge calibrate` refuses such labels, or with "
        "`--off-scale missing` takes the second.",
    )
    return Table(lines, ("judge", "labels", "read_as", "pairs", "kappa", "alpha"), "Off-scale labels", notes, 6)


def _sortable(judge: JudgeLabels, name: str) -> float:
    """A statistic of a judge; below all values where it is undefined."""
    value = agreement(judge, name).estimate.value
    return -2.0 if value is None else value


def _value(value: float | Undefined) -> float | None:
    return None if isinstance(value, Undefined) else value
