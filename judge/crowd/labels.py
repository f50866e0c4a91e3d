"""Workers' labels of one criterion, and the distinct values of a column, as arrays, so that millions fit in memory."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.io.ids import natural_key, topic_of

if TYPE_CHECKING:
    import polars as pl


class Item(NamedTuple):
    """A labeled item: a response or a clarifying question of a turn."""

    turn_id: str
    item_id: str


@dataclass(frozen=True, eq=False)
class CrowdLabels:
    """L labels that W workers gave N items under one criterion; one worker labels an item once.

    Only known items may have several labels by one worker; they are removed before grades are made.
    """

    criterion: str
    grades: tuple[int, ...]
    """The scale, ascending; codes are indices into it."""
    workers: tuple[str, ...]
    """In natural order."""
    items: tuple[Item, ...]
    """In natural order of turn and item."""
    worker: NDArray[np.int32]
    """(L,), index into `workers`."""
    item: NDArray[np.int32]
    """(L,), index into `items`."""
    code: NDArray[np.int8]
    """(L,), index of the label in `grades`."""
    seconds: NDArray[np.float32] | None = None
    """(L,), time taken; nan where unknown."""

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics of the items, in natural order."""
        return tuple(sorted({topic_of(item.turn_id) for item in self.items}, key=natural_key))

    @cached_property
    def topic(self) -> NDArray[np.int32]:
        """(N,), each item's index into `topics`."""
        place = {topic: i for i, topic in enumerate(self.topics)}
        return np.array([place[topic_of(item.turn_id)] for item in self.items], dtype=np.int32)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How often each item got each grade (N x k)."""
        k = len(self.grades)
        flat = np.bincount(self.item.astype(np.int64) * k + self.code, minlength=len(self.items) * k)
        return flat.reshape(len(self.items), k)

    def kept(self, mask: NDArray[np.bool_]) -> "CrowdLabels":
        """The labels selected by the mask (L,); workers and items stay, so that indices stay valid."""
        seconds = None if self.seconds is None else self.seconds[mask]
        return replace(self, worker=self.worker[mask], item=self.item[mask], code=self.code[mask], seconds=seconds)


def factorize(series: "pl.Series") -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts of a column in natural order, and each row's index among them."""
    import polars as pl

    texts = series.fill_null("")
    names = sorted(texts.unique().to_list(), key=natural_key)
    return names, texts.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)


def distinct(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """The distinct values, ascending; `numpy.unique` hashes, which takes a minute on products of indices."""
    ordered = np.sort(values)
    first = np.append(np.ones(len(ordered[:1]), dtype=np.bool_), ordered[1:] != ordered[:-1])
    return np.asarray(ordered[first])
