"""Published: what a paper printed beside what its released files give, one module for each publication.

A module has `reproduce(folder)`, which reads the folder as it was released, and its row in `PUBLICATIONS`.
"""

import importlib
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from judge.io.table import Table
from judge.records import Estimate, Record


class PublishedNumber(Record, frozen=True):
    """One number of a publication beside ours."""

    table: str
    """Where it is printed: `Table 7`."""
    row: str
    """The run or judge, as the publication names it."""
    measure: str
    published: str | None
    """As printed; None where only we have it."""
    ours: Estimate | None
    """None where the released files cannot give it."""
    difference: float | None
    """Ours, rounded as printed, less the published number; 0 where both are equal."""
    reason: str = ""
    """Why they differ, as far as it is known."""


class Reproduction(Record, frozen=True):
    """A publication made again from its released files."""

    name: str
    source: str
    """The publication, to cite."""
    numbers: tuple[PublishedNumber, ...]
    beyond: tuple[Table[Any], ...]
    """What the publication does not show."""
    notes: tuple[str, ...]
    """A sentence each."""


PUBLICATIONS: dict[str, str] = {
    "ikat2023": "the iKAT 2023 overview: GPT-4's labels of responses (Table 7), the test collection (Table 1)",
    "ikat2025": "iKAT 2025: counts of the public topics, checks and lengths of the public runs",
    "cone-rag": "CONE-RAG on iKAT 2024: counts of nuggets and answers, lengths of the released responses",
    "llmjudge": "LLMJudge: agreement of LLM judges with NIST's assessors (Tables 3 and 4)",
    "cast-regin": "CAsT-ReGIn: what its README says of the released grades, and their counts",
}
"""Name on the command line to what is made again; the module has the name with underscores for hyphens."""


def beside_ours(
    table: str, row: str, measure: str, published: str, ours: Estimate | None, reason: str = ""
) -> PublishedNumber:
    """A published number beside ours, which is rounded to as many decimals as are printed.

    >>> shown = beside_ours("Table 7", "a", "groundedness", "0.67", Estimate(0.68493, None, None, 73, 23), "why")
    >>> shown.difference, shown.reason
    (0.01, 'why')

    Args:
        table: Where it is printed.
        row: The run or judge, as the publication names it.
        measure: What is measured.
        published: As printed; thousands may have commas.
        ours: What the released files give; None where they give nothing.
        reason: Why the two differ, or why there is nothing of ours; dropped where they are equal.
    """
    if ours is None or ours.value is None:
        return PublishedNumber(table, row, measure, published, ours, None, reason)
    printed = Decimal(published.replace(",", ""))
    rounded = Decimal(repr(float(ours.value))).quantize(printed, ROUND_HALF_UP)
    difference = float(rounded - printed)
    return PublishedNumber(table, row, measure, published, ours, difference, reason if difference else "")


def counted(number: float, n: int, topics: int) -> Estimate:
    """A count or a ratio of counts, which has no interval."""
    return Estimate(float(number), None, None, n, topics, "counted, not sampled")


def reproduce_publication(name: str, folder: Path) -> Reproduction:
    """Make a publication again from its released files.

    Raises:
        InputError: A file is absent or bad; every problem is listed.
    """
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    reproduce: Callable[[Path], Reproduction] = module.reproduce
    return reproduce(folder)
