"""Bench: judges on public labels by people.

datasets    how labels are read; grounded, graded: a reader a family of them
card        the judge card, of what `judge calibrate` finds; page: as Markdown, and cards side by side
job         `judge bench`

Here are the public datasets: which are below a folder, how to get the others, and their items as a pool for a judge.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from judge.errors import InputError, UsageError
from judge.extra.bench.datasets import Dataset, LabeledResponse, find_files, is_there
from judge.extra.bench.datasets.graded import GRADED
from judge.extra.bench.datasets.grounded import GROUNDED
from judge.io.files import jsonl_bytes, read_stored, sha256
from judge.io.ids import natural_key
from judge.io.plan import Option, Options
from judge.io.table import Table
from judge.io.text import did_you_mean, digest
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage
from judge.runs.records import Exchange, TokenCount, Turn

DATASETS = {dataset.name: dataset for dataset in (*GROUNDED, *GRADED)}
"""By name, from the rung on which word overlap does best; a new one is its reader and its row beside the others."""


class DatasetsPlan(Options):
    """Everything `judge bench datasets` can be told."""

    data: Annotated[Path, Option(metavar="DIR")]
    """Folder with the datasets."""


def list_datasets(plan: DatasetsPlan) -> Table[Any]:
    """Every dataset that judge can read, in the order of `DATASETS`: which are there, and how to get the others.

    An InputError if the folder cannot be read.
    """
    lines = tuple(
        (
            *(each.name, is_there(plan.data, each.files), each.criterion, each.rung, each.unit),
            *(each.stored is not None, each.licence, each.source),
        )
        for each in DATASETS.values()
    )
    columns = ("dataset", "there", "criterion", "rung", "unit", "stored judges", "licence", "source")
    note = "Judge downloads none of them: clone or download the source into the folder, and keep to its licence."
    return Table(lines, columns, "Datasets", (note,))


def choose_datasets(folder: Path, names: Sequence[str]) -> tuple[Dataset, ...]:
    """The datasets of these names, or all that are there."""
    for name in names:
        if name not in DATASETS:
            hint = did_you_mean(name, DATASETS)
            raise UsageError(f"no dataset called {name!r}{hint} (there are {', '.join(DATASETS)})")
    wanted = [DATASETS[name] for name in dict.fromkeys(names)] if names else list(DATASETS.values())
    there = [dataset for dataset in wanted if is_there(folder, dataset.files)]
    absent = [dataset for dataset in wanted if dataset not in there]
    if names and absent:
        raise InputError("; ".join(f"{folder}: {data.name} is not there: get {data.source}" for data in absent))
    if not there:
        raise InputError(
            f"{folder}: none of the {len(wanted)} datasets is there; `judge bench datasets` says where each comes from"
        )
    return tuple(there)


class Drawn:
    """A dataset with the items of it that a judge is measured on: all of them, or so many drawn without replacement."""

    def __init__(self, dataset: Dataset, folder: Path, limit: int | None, seed: int) -> None:
        self.dataset = dataset
        reading = dataset.read(folder)
        self.every: tuple[LabeledResponse, ...] = tuple(reading.responses.values())
        size = len(self.every) if limit is None else min(limit, len(self.every))
        rng = np.random.default_rng(seed)
        drawn = range(size) if size == len(self.every) else rng.choice(len(self.every), size, replace=False).tolist()
        self.places: list[int] = sorted(drawn)
        """Which of `every` are drawn, ascending."""
        self.items = tuple(self.every[place] for place in self.places)
        self.ids = tuple(f"{dataset.name}.{place + 1}" for place in self.places)
        """The response id of each drawn item; the same whichever other items are drawn."""
        units = sorted({item.unit for item in self.every}, key=natural_key)
        self.topics = {unit: f"{dataset.name}.{number}" for number, unit in enumerate(units, 1)}
        """The topic id of each unit."""
        self.turn_ids = tuple(f"{self.topics[self.every[place].unit]}_{place + 1}" for place in self.places)
        """The turn of each drawn item, which it has for itself."""
        self.has_texts = all(item.response is not None for item in self.every)
        """Whether a judge can be asked about the items."""
        self.digest = digest(jsonl_bytes(self.every).decode())
        paths: dict[Path, None] = {}
        for pattern in dataset.files:
            paths |= dict.fromkeys(find_files(folder, pattern))
        self.files = {path.relative_to(folder).as_posix(): sha256(read_stored(path)) for path in paths}
        self.skipped = dict(sorted(reading.skipped.items()))


def bench_pool(samples: Sequence[Drawn]) -> tuple[Pool, dict[str, Turn]]:
    """The drawn items of all datasets as one pool, each with a turn of its own, and these turns by id.

    The ids are made here, since those of the data may be any text; a unit of a dataset is a topic.
    """
    keys: dict[str, str] = {}
    passages: dict[str, Passage] = {}
    responses: list[PooledResponse] = []
    turns: dict[str, Turn] = {}
    for drawn in samples:
        for item, turn_id, response_id in zip(drawn.items, drawn.turn_ids, drawn.ids, strict=True):
            for text in item.passages:
                key = keys.setdefault(text, f"P{len(keys) + 1:06d}")
                passages.setdefault(key, Passage(key, text, "collection"))
            text = item.response or ""
            topic_id = drawn.topics[item.unit]
            words = len(text.split())
            used = tuple(dict.fromkeys(map(keys.__getitem__, item.passages)))
            tokens = TokenCount(words, words, words, None)
            responses.append(
                PooledResponse(
                    response_id=response_id,
                    turn_id=turn_id,
                    topic_id=topic_id,
                    text=text,
                    passages=used,
                    tokens=tokens,
                    truncated=False,
                    runs=(),
                )
            )
            context = tuple(Exchange(utterance, response) for utterance, response in item.context)
            turns[turn_id] = Turn(
                turn_id=turn_id,
                topic_id=topic_id,
                utterance=item.utterance,
                resolved_utterance=None,
                context=context,
                ptkb=(),
            )
    return Pool(tuple(responses), passages, ()), turns
