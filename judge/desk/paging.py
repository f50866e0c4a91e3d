"""Pages of a long list, and numbers in an address. Pure."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

_Entry = TypeVar("_Entry")


class ListPage(NamedTuple, Generic[_Entry]):
    """One page of a list."""

    shown: Sequence[_Entry]
    first: int
    """The place of its first entry in the list, from 0."""
    page: int
    """Its number, from 1."""
    pages: int


def list_page(entries: Sequence[_Entry], asked: str | None, size: int) -> ListPage[_Entry]:
    """The page that an address asks for; the nearest one if there is none of this number.

    Args:
        entries: The whole list.
        asked: The number of the page, as it stands in the address.
        size: The entries of a page.

    >>> list_page("abcde", "2", 2), list_page("abcde", "9", 2)
    (ListPage(shown='cd', first=2, page=2, pages=3), ListPage(shown='e', first=4, page=3, pages=3))
    """
    pages = max(1, -(-len(entries) // size))
    page = min(max(1, whole_number(asked) or 1), pages)
    first = (page - 1) * size
    return ListPage(entries[first : first + size], first, page, pages)


def whole_number(text: str | None) -> int | None:
    """A whole number in an address or a field, of at most eight digits; None for anything else.

    >>> whole_number("07"), whole_number("-1"), whole_number("٣"), whole_number(None)
    (7, None, None, None)
    """
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 8 else None
