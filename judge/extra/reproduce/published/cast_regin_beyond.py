"""What the grades of CAsT-ReGIn hold beyond its README: retests, variance, correlations, lengths. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.crowd.regin.kinds import GRADES
from judge.crowd.regin.resource import Part
from judge.extra.reproduce.published.lengths import lengths_grid
from judge.extra.reproduce.regin.checks import retests
from judge.io.cells import number
from judge.io.ids import natural_key, topic_of
from judge.io.table import Cell, Table
from judge.records import Estimate
from judge.runs.tokens import countable
from judge.stats.expected import spearman
from judge.stats.generalizability import Source, variance_components
from judge.stats.means import mean_interval
from judge.stats.resampling import jackknife_interval, resampled
from judge.stats.tables import Floats, Undefined, confusion

SEED = 2022
"""Of resampled topics."""
_SCALE = tuple(GRADES)


def beyond(parts: Sequence[Part]) -> tuple[Table[Any], ...]:
    """The tables that the README does not have."""
    return _means(parts), _retests(parts), _variance(parts), _correlations(parts), _lengths(parts)


def _topics(part: Part) -> list[str]:
    return [topic_of(turn_id) for turn_id, _ in part.keys]


def _grades(part: Part, criterion: str) -> list[int]:
    return [row.grades[criterion] for row in part.rows]


def _reasons(part: Part, estimates: Sequence[Estimate]) -> list[str]:
    """Why values or intervals of a part are missing."""
    return [f"{part.kind.name}s: {estimate.reason}" for estimate in estimates if estimate.reason]


def _means(parts: Sequence[Part]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = [
        (
            f"{part.kind.name}s",
            criterion,
            len(part.rows),
            mean_interval(_grades(part, criterion), _topics(part), bounds=(0, 3)),
        )
        for part in parts
        for criterion in part.kind.all_turns
    ]
    return Table(lines, ("part", "criterion", "n", "mean"), "Means", ("Intervals are over topics.",))


def _retests(parts: Sequence[Part]) -> Table[Any]:
    """How far two grades agree that workers gave to nearly the same text in one turn."""
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "pairs: texts of one turn that differ in case, punctuation and white space only, judged under two ids. same: "
        "share of equal grades. wkappa: quadratic weights, the smaller id first. alpha: ordinal. Intervals are over "
        "topics.",
        "Both grades have noise, so they are no upper limit: a judge with less may agree with one of them better than "
        "they do with each other.",
    ]
    for part in parts:
        grades, twice = {(row.turn_id, row.item_id): row.grades for row in part.rows}, retests(part)
        for criterion in part.kind.all_turns:
            by_topic: dict[str, list[tuple[int, int]]] = defaultdict(list)
            for turn_id, *items in twice:
                first, second = (grades[turn_id, item][criterion] for item in sorted(items, key=natural_key))
                by_topic[topic_of(turn_id)].append((first, second))
            tables = np.array([confusion(by_topic[topic], _SCALE) for topic in sorted(by_topic, key=natural_key)])
            estimates = [
                resampled(
                    name, tables.reshape(-1, len(_SCALE), len(_SCALE)), _SCALE, np.random.default_rng(SEED)
                ).estimate
                for name in ("percent", "wkappa", "alpha_ordinal")
            ]
            lines.append((f"{part.kind.name}s", criterion, estimates[0].n, *estimates))
            notes += _reasons(part, estimates)
    columns = ("part", "criterion", "pairs", "same", "wkappa", "alpha")
    return Table(lines, columns, "Retests", dict.fromkeys(notes))


def _variance(parts: Sequence[Part]) -> Table[Any]:
    """Where the differences of grades come from; workers judged whole topics, so they are part of that effect."""
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "share: of the variance, jackknifed over topics. lowest, highest: means of single topics, dialogues and turns. "
        "dialogue: one path of a topic (`132_1`). item: what is left, the text and the noise of its grade.",
        "Each topic had workers of its own, so topic and dialogue hold the workers' severity as well.",
    ]
    for part in parts:
        turns = [turn_id for turn_id, _ in part.keys]
        levels: dict[Source, list[str]] = {
            "topic": _topics(part),
            "dialogue": [turn_id.rpartition("-")[0] or turn_id for turn_id in turns],
            "turn": turns,
        }
        for criterion in part.kind.all_turns:
            grades = np.array(_grades(part, criterion), dtype=np.float64)
            components = variance_components(grades.tolist(), levels, "item")
            if isinstance(components, Undefined):
                notes.append(f"{part.kind.name}s: {components.reason}")
                continue
            for component, share in zip(components, _shares(grades, levels, len(components)), strict=True):
                ends = _ends(grades, levels[component.source]) if component.source in levels else (None, None)
                lines.append((f"{part.kind.name}s", criterion, component.source, component.variance, share, *ends))
    columns = ("part", "criterion", "source", "variance", "share", "lowest", "highest")
    return Table(lines, columns, "Variance", dict.fromkeys(notes))


def _shares(grades: Floats, levels: Mapping[Source, Sequence[str]], sources: int) -> list[Estimate]:
    """The share of each source in the variance, with a jackknife interval over topics."""

    def share(kept: NDArray[np.bool_], place: int) -> float | Undefined:
        rows = np.flatnonzero(kept).tolist()
        of = {source: [names[row] for row in rows] for source, names in levels.items()}
        components = variance_components(grades[kept].tolist(), of, "item")
        if isinstance(components, Undefined):
            return components
        total = sum(component.variance for component in components)
        return components[place].variance / total if total > 0 else Undefined("no variance")

    topics = np.array(levels["topic"])
    return [jackknife_interval(partial(share, place=place), topics, bounds=(0.0, 1.0)) for place in range(sources)]


def _ends(grades: Floats, names: Sequence[str]) -> tuple[str, str]:
    """The lowest and the highest mean with the name of its level."""
    groups: dict[str, list[float]] = defaultdict(list)
    for name, grade in zip(names, grades.tolist(), strict=True):
        groups[name].append(grade)
    means = {name: sum(values) / len(values) for name, values in groups.items()}
    ordered = sorted(means, key=lambda name: (means[name], natural_key(name)))
    low, high = (f"{number(means[name], 2)} ({name})" for name in (ordered[0], ordered[-1]))
    return low, high


def _correlations(parts: Sequence[Part]) -> Table[Any]:
    """Criteria with each other and with the length of the text."""
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "spearman: over all items. within_turns: the same of what is left without the mean of the turn, so without the "
        "effects of topic, turn and workers. words: between white space. Jackknife intervals over topics.",
    ]
    for part in parts:
        topics, turns = np.array(_topics(part)), [turn_id for turn_id, _ in part.keys]
        columns = {criterion: np.array(_grades(part, criterion), dtype=np.float64) for criterion in part.kind.all_turns}
        columns["words"] = np.array([len(row.text.split()) for row in part.rows], dtype=np.float64)
        left = {name: _without_turns(values, turns) for name, values in columns.items()}
        for a, b in combinations(columns, 2):
            pair = [_correlation(of[a], of[b], topics) for of in (columns, left)]
            lines.append((f"{part.kind.name}s", a, b, *pair))
            notes += _reasons(part, pair)
    return Table(lines, ("part", "a", "b", "spearman", "within_turns"), "Correlations", dict.fromkeys(notes))


def _correlation(x: Floats, y: Floats, topics: NDArray[Any]) -> Estimate:
    return jackknife_interval(lambda kept: spearman(x[kept], y[kept]), topics)


def _without_turns(values: Floats, turns: Sequence[str]) -> Floats:
    """Values less the mean of their turn."""
    _, place, sizes = np.unique(np.array(turns), return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=values) / sizes
    # Rounding would break ties of values that are equal.
    return np.round(values - means[place], 9)


def _lengths(parts: Sequence[Part]) -> Table[Any]:
    """The guideline's limit; a text that is judged in several turns counts in each."""
    return lengths_grid(
        {
            f"{part.kind.name}s": {
                f"{row.turn_id}.{place}": row.text for place, row in enumerate(part.rows) if countable(row.text)
            }
            for part in parts
        }
    )
