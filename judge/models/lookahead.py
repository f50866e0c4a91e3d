"""Answers of a journal that are wanted soon: of a journal on a server, many are fetched with one look."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from judge.models.journal_view import JournalView
from judge.models.open_journal import OpenJournal

_Item = TypeVar("_Item")
_TOGETHER = 250
"""Items whose answers are fetched with one look, and kept in memory until the next."""


def looked_ahead(
    items: Iterable[_Item], journal: OpenJournal | JournalView, digests: Callable[[_Item], Iterable[str]]
) -> Iterator[_Item]:
    """The items as they come, each after the journal has fetched what it holds of it.

    Args:
        items: What the answers are wanted for.
        journal: The journal; one in a file fetches nothing, because a look at it is quick.
        digests: The requests whose answers are wanted for an item; called only where the journal fetches them.
    """
    rest = iter(items)
    while page := list(itertools.islice(rest, _TOGETHER)):
        journal.ahead(digest for item in page for digest in digests(item))
        yield from page
    journal.ahead(())
