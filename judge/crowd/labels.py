"""Workers' labels of one criterion, and the distinct values of a column, as arrays, so that millions fit in memory."""

import re
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
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


_DIGITS = re.compile(r"\d+")


def factorize(series: "pl.Series") -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts of a column, stripped and in natural order, and each row's index among them."""
    import polars as pl

    if (
        series.dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
        and not series.null_count()
    ):
        series = series.cast(pl.Int64)
        distinct = series.unique().sort()
        raw, places = distinct.cast(pl.String).to_list(), _integer_places(series.to_numpy(), distinct.to_numpy())
    else:
        texts = series.cast(pl.String).fill_null("")
        raw = texts.unique().to_list()
        places = texts.cast(pl.Enum(raw)).to_physical().to_numpy().astype(np.int64)
    stripped = [text.strip() for text in raw]
    names = sorted(set(stripped), key=natural_text)
    code = dict(zip(names, count(), strict=False))
    return names, np.array([code[text] for text in stripped], dtype=np.int32)[places]


def natural_text(text: str) -> str:
    """A text that sorts as `natural_key` does, at a tenth of the cost; the given text must not hold a NUL.

    Each number is preceded by its count of digits. An end mark below any such count follows, and then the text.
    """
    return f"{_DIGITS.sub(_counted, text)}\0\0{text}"


def _counted(digits: re.Match[str]) -> str:
    plain = digits[0].lstrip("0")
    # Longer ids are refused elsewhere; the limit only avoids a traceback before that.
    return f"\0{chr(min(len(plain) + 1, sys.maxunicode))}{plain}"


def _integer_places(values: NDArray[np.int64], distinct: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index of each value among the sorted distinct ones."""
    if not len(distinct) or (span := int(distinct[-1]) - int(distinct[0]) + 1) > 4 * len(values) + 1000:
        return np.asarray(np.searchsorted(distinct, values), dtype=np.int64)
    table = np.zeros(span, dtype=np.int64)
    table[distinct - distinct[0]] = np.arange(len(distinct))
    return np.asarray(table[values - distinct[0]])


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values, ascending; `numpy.unique` hashes, which takes a minute on products of indices."""
    ordered = np.sort(values)
    first = np.append(np.ones(len(ordered[:1]), dtype=np.bool_), ordered[1:] != ordered[:-1])
    return np.asarray(ordered[first])
