"""The public datasets below a folder: which are there, how to get the others, and the items that a judge is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from judge.errors import InputError, UsageError
from judge.extra.bench.cards.pooled import Drawn, draw
from judge.extra.bench.datasets import Dataset, Rung
from judge.extra.bench.datasets.catalog import DATASETS
from judge.extra.bench.datasets.finding import find_files, is_there
from judge.io.hints import did_you_mean
from judge.io.plan import Option, Options
from judge.io.stored import read_stored, sha256
from judge.records import Record

LISTING = "`judge bench datasets` says where each comes from"


class DatasetsPlan(Options):
    """Everything `judge bench datasets` can be told."""

    data: Annotated[Path, Option(metavar="DIR")]
    """Folder with the datasets."""


class ListedDataset(Record, frozen=True):
    """A dataset that judge can read, and whether it is there."""

    name: str
    criterion: str
    rung: Rung | None
    unit: str
    there: bool
    stored: bool
    """Whether labels of judges were released with it."""
    licence: str
    source: str
    """How to get it."""


def list_datasets(plan: DatasetsPlan) -> tuple[ListedDataset, ...]:
    """Every dataset that judge can read, in the order of the catalog.

    Raises:
        InputError: The folder cannot be read.
    """
    return tuple(
        ListedDataset(
            name=dataset.name,
            criterion=dataset.criterion,
            rung=dataset.rung,
            unit=dataset.unit,
            there=is_there(plan.data, dataset.files),
            stored=dataset.stored is not None,
            licence=dataset.licence,
            source=dataset.source,
        )
        for dataset in DATASETS.values()
    )


def choose_datasets(folder: Path, names: Sequence[str]) -> tuple[Dataset, ...]:
    """The datasets of these names, or all that are there.

    Raises:
        UsageError: A name is unknown.
        InputError: A named one, or every one, is not there, or the folder cannot be read.
    """
    for name in names:
        if name not in DATASETS:
            hint = did_you_mean(name, DATASETS)
            raise UsageError(f"no dataset called {name!r}{hint} (there are {', '.join(DATASETS)})")
    wanted = [DATASETS[name] for name in dict.fromkeys(names)] if names else list(DATASETS.values())
    there = [dataset for dataset in wanted if is_there(folder, dataset.files)]
    absent = [dataset for dataset in wanted if dataset not in there]
    if names and absent:
        raise InputError("; ".join(f"{folder}: {each.name} is not there: get {each.source}" for each in absent))
    if not there:
        raise InputError(f"{folder}: none of the {len(wanted)} datasets is there; {LISTING}")
    return tuple(there)


def read_dataset(dataset: Dataset, folder: Path, limit: int | None, seed: int) -> Drawn:
    """Read a dataset and draw items of it.

    Raises:
        InputError: The files have problems; all are listed.
    """
    drawn = draw(dataset, dataset.read(folder), limit, np.random.default_rng(seed))
    paths = dict.fromkeys(path for pattern in dataset.files for path in find_files(folder, pattern))
    files = {path.relative_to(folder).as_posix(): sha256(read_stored(path)) for path in paths}
    skipped = dict(dataset.skipped(folder)) if dataset.skipped else {}
    return msgspec.structs.replace(drawn, files=files, skipped=skipped)
