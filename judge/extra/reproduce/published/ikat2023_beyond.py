"""What the released labels of iKAT 2023 hold and Table 7 does not show: intervals, tests of pairs, other criteria."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judge.extra.reproduce.published.gpt4_labels import CRITERIA, LabeledCriterion, RunLabels, label_of
from judge.io.cells import count, decimals
from judge.io.ids import cluster_of, natural_key, topic_of
from judge.io.table import Cell, Table, p_cell
from judge.records import Estimate
from judge.stats.comparison import holm, sign_flip
from judge.stats.means import clopper_pearson, mean_interval, wilson
from judge.stats.resampling import resampled
from judge.stats.run_differences import Difference, run_differences
from judge.stats.separation import compact_letters
from judge.stats.tables import Floats, confusion

SEED = 2023
"""Of the signs that are drawn, where 2^T ways are too many to take all."""
FLIPS = 100_000
"""How many are drawn: ten times the usual number, since one adjusted p-value of the release is close to ALPHA."""
ALPHA = 0.05
_GRADES = tuple(sorted({grade for each in CRITERIA for grade in each.grades}))
CriterionLabels = Mapping[str, Mapping[str, RunLabels]]
"""Criterion to run id in lower case to its grades."""


class _Tested:
    """Every pair of runs under one criterion, best mean first."""

    def __init__(self, runs: Mapping[str, RunLabels], criterion: LabeledCriterion) -> None:
        means = {key: _mean(run, criterion).value for key, run in runs.items()}
        self.keys = sorted(runs, key=lambda key: (-(means[key] or 0.0), key))
        turns = list(dict.fromkeys(turn for key in self.keys for turn in runs[key].grades))
        topics = list(map(topic_of, turns))
        grades = np.array([[runs[key].grades.get(turn, math.nan) for turn in turns] for key in self.keys], np.float64)
        self.pairs = run_differences(grades, topics, np.random.default_rng(SEED), flips=FLIPS)
        sums = [_sums(grades, topics, pair) for pair in self.pairs]
        alone = [
            None if pair.p is None else sign_flip(of, np.random.default_rng(SEED), permutations=FLIPS)
            for pair, of in zip(self.pairs, sums, strict=True)
        ]
        tested = [p for p in alone if p is not None]
        adjusted = iter(holm(tested).tolist())
        self.flips = [(p, None if p is None else next(adjusted)) for p in alone]
        """For each pair the p-value of its sum of topic differences, alone and adjusted by Holm."""
        apart = np.zeros((len(self.keys), len(self.keys)), dtype=np.bool_)
        for pair in self.pairs:
            apart[pair.a, pair.b] = apart[pair.b, pair.a] = pair.p_adjusted is not None and pair.p_adjusted <= ALPHA
        letters = compact_letters(apart, range(len(self.keys)))
        self.letters = letters if tested and len(tested) == len(self.pairs) else ("",) * len(self.keys)


def _sums(grades: Floats, topics: Sequence[str], pair: Difference) -> Floats:
    """The sum of the differences of each topic."""
    sums: dict[str, float] = {}
    for topic, difference in zip(topics, (grades[pair.a] - grades[pair.b]).tolist(), strict=True):
        if not math.isnan(difference):
            sums[topic] = sums.get(topic, 0.0) + difference
    return np.array(list(sums.values()), dtype=np.float64)


def graded(labels: CriterionLabels, criterion: LabeledCriterion, run_id: str) -> Estimate | None:
    """The mean grade of a run with its interval over topics; None without a label of the run."""
    run = labels[criterion.name].get(run_id.lower())
    return None if run is None else _mean(run, criterion)


def beyond(labels: CriterionLabels, names: Mapping[str, str]) -> tuple[Table[Any], ...]:
    """The tables that the publication does not have.

    Args:
        labels: The released labels.
        names: Run id in lower case to the name of the run.
    """
    tests = {each.name: _Tested(labels[each.name], each) for each in CRITERIA if each.name in labels}
    return (
        _means(labels, names, tests),
        _units(labels["groundedness"], names, tests["groundedness"].keys),
        _pairs(names, tests),
        _naive(labels["groundedness"], names),
        _correlations(labels),
    )


def _mean(run: RunLabels, criterion: LabeledCriterion, unit: Callable[[str], str] = topic_of) -> Estimate:
    turns = list(run.grades)
    return mean_interval(list(run.grades.values()), list(map(unit, turns)), bounds=criterion.bounds)


def _turn(turn_id: str) -> str:
    return turn_id


def _theme(turn_id: str) -> str:
    return cluster_of(topic_of(turn_id), "theme")


def _means(labels: CriterionLabels, names: Mapping[str, str], tests: Mapping[str, _Tested]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "n: turns with a grade. over_topics: the interval whose unit is the topic (dialogue), which is what was "
        "sampled. over_turns: as if turns were independent. letters: runs that share one are not told apart (max-T).",
    ]
    for criterion in CRITERIA:
        if criterion.name not in tests:
            continue
        runs = labels[criterion.name]
        for key, letters in zip(tests[criterion.name].keys, tests[criterion.name].letters, strict=True):
            run = runs[key]
            over_topics = _mean(run, criterion)
            lines.append(
                (criterion.name, names[key], len(run.grades), over_topics, _mean(run, criterion, _turn), letters)
            )
            notes += _degenerate(run, criterion, names[key])
            if run.unable:
                notes.append(
                    f"{names[key]}, {criterion.name}: {count(len(run.unable), 'label')} of -1 (unable to judge) left "
                    f"out; as a grade it would make the mean {_with_unable(run)}"
                )
    columns = ("criterion", "run", "n", "over_topics", "over_turns", "letters")
    return Table(lines, columns, "Means", notes)


def _degenerate(run: RunLabels, criterion: LabeledCriterion, name: str) -> list[str]:
    if not run.grades or len(set(run.grades.values())) > 1:
        return []
    n, grade = len(run.grades), next(iter(run.grades.values()))
    low = decimals(clopper_pearson(n, n)[0], 4)
    return [
        f"{name}, {criterion.name}: all {n} grades are {grade}, so their spread says nothing and there is no interval; "
        f"the exact interval of the share of {grade} is [{low}, 1] if turns were independent"
    ]


def _with_unable(run: RunLabels) -> str:
    n = len(run.grades) + len(run.unable)
    return decimals((sum(run.grades.values()) - len(run.unable)) / n, 4)


def _units(runs: Mapping[str, RunLabels], names: Mapping[str, str], keys: Sequence[str]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for key in keys:
        grades, criterion = runs[key].grades, CRITERIA[0]
        n, good = len(grades), sum(grades.values())
        if not n:
            continue
        topics = _mean(runs[key], criterion)
        exact = Estimate(good / n, *clopper_pearson(good, n), n, topics.topics)
        score = Estimate(good / n, *wilson(good, n), n, topics.topics)
        lines += [
            (names[key], f"{good}/{n}", "Clopper-Pearson, turns", exact),
            (names[key], f"{good}/{n}", "Wilson, turns", score),
            (names[key], f"{good}/{n}", "t, topics", topics),
            (names[key], f"{good}/{n}", "t, themes", _mean(runs[key], criterion, _theme)),
        ]
    notes = (
        "Clopper-Pearson and Wilson take each turn as independent of the others of its dialogue. Table 7 gives no "
        "interval.",
    )
    return Table(lines, ("run", "grounded", "interval", "share"), "Intervals", notes)


def _pairs(names: Mapping[str, str], tests: Mapping[str, _Tested]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = [
        (
            criterion,
            *(names[tested.keys[place]] for place in pair[:2]),
            pair.difference,
            *map(p_cell, (pair.p, pair.p_adjusted, *flips)),
        )
        for criterion, tested in tests.items()
        for pair, flips in zip(tested.pairs, tested.flips, strict=True)
    ]
    columns = ("criterion", "a", "b", "a_less_b", "p", "p_max_t", "p_flip", "p_holm")
    notes = (
        "p, p_max_t: signs of topics flipped, difference over its standard error; alone, and for all pairs of the "
        "criterion (step-down max-T). p_flip, p_holm: signs flipped, sum of differences; alone, and by Holm.",
    )
    return Table(lines, columns, "Pairs", notes)


def _naive(runs: Mapping[str, RunLabels], names: Mapping[str, str]) -> Table[Any]:
    """What comes of taking the released groundedness labels for grades."""
    criterion = CRITERIA[0]
    shares = {key: sum(run.grades.values()) / len(run.grades) for key, run in runs.items() if run.grades}
    labels = {
        key: sum(label_of(grade, criterion) for grade in runs[key].grades.values()) / len(runs[key].grades)
        for key in shares
    }
    lines: list[tuple[Cell, ...]] = [
        (names[key], shares[key], _rank(shares, key), labels[key], _rank(labels, key))
        for key in sorted(shares, key=lambda key: (-shares[key], key))
    ]
    notes = ("label 1 says that the response has information that its passages lack; read as a grade, it turns the "
             "ranking around.",)  # fmt: skip
    columns = ("run", "grounded", "rank", "mean_label", "rank_by_label")
    return Table(lines, columns, "Inverted labels", notes)


def _rank(values: Mapping[str, float], key: str) -> int:
    return 1 + sum(value > values[key] for value in values.values())


def _correlations(labels: CriterionLabels) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for a, b in combinations([each.name for each in CRITERIA if each.name in labels], 2):
        both: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for key in sorted(labels[a].keys() & labels[b].keys()):
            others = labels[b][key].grades
            for turn, grade in labels[a][key].grades.items():
                if turn in others:
                    both[topic_of(turn)].append((grade, others[turn]))
        # The shorter scale is counted on the longer one, since only the order of grades matters.
        tables = [confusion(both[topic], _GRADES) for topic in sorted(both, key=natural_key)]
        C = np.array(tables).reshape(-1, len(_GRADES), len(_GRADES))
        tau = resampled("tau_b", C, _GRADES, np.random.default_rng(SEED)).estimate
        lines.append((a, b, tau.n, tau))
    notes = ("tau_b: Kendall's, over the responses with a grade of both criteria; the interval is over topics.",)
    return Table(lines, ("a", "b", "responses", "tau_b"), "Correlations", notes)
