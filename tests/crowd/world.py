"""Crowds written by hand, and tables of labels read."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.layout import Layout
from judge.crowd.tables import read_tables
from judge.io.ids import natural_key
from judge.records import Problem
from tests.conftest import refused

SCALE = (0, 1, 2, 3)
Rows = list[tuple[str, str, str, int]]
"""(worker, turn, item, label)."""


def crowd(
    given: Iterable[tuple[str, str, str, int]], criterion: str = "relevance", *, grades: Sequence[int] = SCALE,
    workers: Iterable[str] = (), items: Iterable[tuple[str, str]] = (),
) -> CrowdLabels:  # fmt: skip
    """Labels in their order; `workers` and `items` may be more than those with labels."""
    given = list(given)
    names = sorted({*workers, *(row[0] for row in given)}, key=natural_key)
    named = sorted(
        {Item(*item) for item in (*items, *(row[1:3] for row in given))}, key=lambda i: tuple(map(natural_key, i))
    )
    worker, item = ({name: place for place, name in enumerate(of)} for of in (names, named))
    code = np.searchsorted(grades, [row[3] for row in given]).astype(np.int8)
    places = [worker[row[0]] for row in given], [item[Item(*row[1:3])] for row in given]
    arrays = (np.array(of, dtype=np.int32) for of in places)
    return CrowdLabels(criterion, tuple(grades), tuple(names), tuple(named), *arrays, code)


def grid(
    table: Sequence[Sequence[int]], *, topics: int = 1, criterion: str = "relevance", seconds: float | None = None
) -> CrowdLabels:
    """Labels of items in rows by workers in columns; -1 for none."""
    codes = np.array(table, dtype=np.int8)
    item, worker = np.nonzero(codes >= 0)
    items = tuple(Item(f"{i * topics // len(codes)}_{i}", "R") for i in range(len(codes)))
    workers = tuple(f"w{i}" for i in range(codes.shape[1]))
    took = None if seconds is None else np.full(len(item), seconds, dtype=np.float32)
    arrays = worker.astype(np.int32), item.astype(np.int32), codes[item, worker]
    return CrowdLabels(criterion, SCALE, workers, items, *arrays, took)


def rows(labels: CrowdLabels) -> Rows:
    """The labels in their order."""
    return [
        (labels.workers[w], *labels.items[i], labels.grades[c])
        for w, i, c in zip(labels.worker, labels.item, labels.code, strict=True)
    ]


def warned(*paths: Path, **options) -> tuple[dict[str, CrowdLabels], list[Problem]]:
    """The labels of tables and what is said of them."""
    warnings: list[Problem] = []
    return read_tables(paths, Layout(**{"columns": {}, "scales": SCALE} | options), warnings), warnings


def read(*paths: Path, **options) -> dict[str, CrowdLabels]:
    return warned(*paths, **options)[0]


def problems_of(*paths: Path, **options) -> list[Problem]:
    return list(refused(read, *paths, **options))


def faults(*paths: Path, **options) -> list[tuple[str, str]]:
    """(code, path) of all that is wrong."""
    return [(problem.code, problem.path) for problem in problems_of(*paths, **options)]
