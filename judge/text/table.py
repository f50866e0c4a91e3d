"""Records as the rows of a table, for a notebook and for data frames. Pure."""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, TypeVar, overload

import msgspec

from judge.text.safe import printable

_Row = TypeVar("_Row", covariant=True)
_Element = TypeVar("_Element")
_ROWS, _CHARACTERS = 50, 120
"""The most rows of a table, and characters of a text, that a notebook shows."""


class Tabular(Protocol[_Row]):
    """A sequence of records that a notebook shows as a table, a row each."""

    __slots__ = ()

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[_Row]: ...

    def __getitem__(self, key: slice) -> "Table[_Row]": ...

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary a record, each with the same keys, for `pandas.DataFrame` or `polars.from_dicts`.

        A record or dictionary inside a record becomes keys of its own (`mean.value`, `mean.low`), a tuple a list.
        A key that a record lacks holds None.
        """
        rows = [dict(_cells(record)) for record in self]
        keys = {key: None for row in rows for key in row}
        # A record that is missing in some rows has one key there, and a key for each part in the others.
        parts = {key[:end] for key in keys for end, character in enumerate(key) if character == "."}
        kept = [key for key in keys if key not in parts or any(row.get(key) is not None for row in rows)]
        return [{key: row.get(key) for key in kept} for row in rows]

    def _repr_html_(self) -> str:
        """The first rows as HTML; texts are escaped and never shown as formulas."""
        rows = self[:_ROWS].to_dicts()
        head = "".join(f"<th>{_text(key)}</th>" for key in (rows[0] if rows else ()))
        body = "".join(f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row.values())}</tr>" for row in rows)
        caption = f"{len(self)} rows" + (f", the first {_ROWS}" if len(self) > _ROWS else "")
        return (
            f'<table class="tex2jax_ignore mathjax_ignore"><caption>{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class Table(tuple[_Row, ...], Tabular[_Row]):
    """A tuple of records that a notebook shows as a table, a row each."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> _Row: ...
    @overload
    def __getitem__(self, key: slice) -> "Table[_Row]": ...
    def __getitem__(self, key: Any) -> Any:
        """A record; for a slice, a table."""
        picked = super().__getitem__(key)
        return Table(picked) if isinstance(key, slice) else picked


def sequence(rows: Iterable[_Element]) -> Sequence[_Element]:
    """Rows that can be read more than once: as they are if they can be already, such as those on the disk."""
    return rows if isinstance(rows, Sequence) else tuple(rows)


def _cells(value: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of a record's fields, through nested records and dictionaries."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag_field
        parts: dict[Any, object] = {tag: value.__struct_config__.tag} if tag else {}
        parts |= {field: getattr(value, field) for field in value.__struct_fields__}
    elif isinstance(value, Mapping):
        parts = dict(value)
    else:
        plain = msgspec.to_builtins(value, enc_hook=str)
        yield name or "value", list(plain) if isinstance(plain, tuple) else plain
        return
    for part, inner in parts.items():
        yield from _cells(inner, f"{name}.{part}" if name else str(part))


def _text(value: object) -> str:
    """A value as a cell of HTML."""
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return html.escape(printable(text[:_CHARACTERS])) + ("…" if len(text) > _CHARACTERS else "")
