"""Datasets: public labels by people, each read from the folder that a user downloaded; a module for each family.

A module has a `Dataset` for each criterion that people judged, or for each part of a release; `catalog` has the table
of them all. Nothing is shipped: a dataset is read where its files are below the user's folder.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from judge.records import Record

Rung = Literal["easy", "middle", "hard"]
"""How far word overlap alone already goes; a judge is worth its price above the first rung."""


class LabeledResponse(Record, frozen=True):
    """A response that people judged under one criterion."""

    item_id: str
    """Unique in the dataset."""
    unit: str
    """The topic or source document that it shares with others; intervals are over units."""
    grade: int
    """What people agreed on."""
    grades: tuple[int, ...] = ()
    """Of each assessor, where they were released."""
    response: str | None = None
    """None where the text was not released, so that only stored labels can be compared."""
    passages: tuple[str, ...] = ()
    """The evidence."""
    utterance: str = ""
    context: tuple[tuple[str, str], ...] = ()
    """Earlier turns: utterance and response."""


class Dataset(Record, frozen=True):
    """Public labels of responses under one criterion."""

    name: str
    """On the command line and in cards: `begin-wow`."""
    title: str
    criterion: str
    grades: tuple[int, ...]
    """The scale, worst to best."""
    positive: tuple[int, ...]
    """The grades that count as positive where a judge's scale is another one."""
    unit: str
    """What intervals are over, in the singular: `source document`."""
    licence: str
    source: str
    """How to get it: a repository and the files of it."""
    files: tuple[str, ...]
    """Patterns of the files below the folder of the data; the dataset is there if each matches."""
    rung: Rung | None
    read: Callable[[Path], tuple[LabeledResponse, ...]]
    """The responses below the folder, in the order of the files; raises InputError with every problem."""
    stored: Callable[[Path], Mapping[str, Mapping[str, float]]] | None = None
    """Name of a judge to item to the label or score that was released with the dataset, where there are any.

    A label is as it was released, even off the scale; a score is higher for a better response.
    """
    size: int = 0
    """Labeled responses of the whole release, as its authors give it; a folder may have a part of it."""
    skipped: Callable[[Path], Mapping[str, int]] | None = None
    """Why rows of the files are not among the responses, and how many: no label, an empty text. None: no row can be."""
