"""Tables: rows of records or of cells, in the forms that people, tools and notebooks read. Pure."""

import html
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, TypeVar, overload

import msgspec

from judge.io.text import decimals, escape, escape_cell, interval, markdown_cell, number, p_value, printable, table
from judge.records import Estimate

_Row = TypeVar("_Row", covariant=True)
_Element = TypeVar("_Element")
Cell = str | int | float | bool | Estimate | Mapping[int, int] | None
"""A word, a number, an estimate, how often each grade is given, or None where there is nothing to say. For tools an
estimate is three columns (`mean`, `mean_low`, `mean_high`), for people one cell (`0.610 [0.480, 0.710]`)."""
_ROWS, _CHARACTERS = 50, 120
"""The most rows of a table, and characters of a text, that a notebook shows."""
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"},
}


class Column(msgspec.Struct, frozen=True):
    """A column of a table: its name, and how its cells are shown to people."""

    name: str
    places: int | None = None
    """Decimals; None for those of the table."""
    signed: bool = False
    """Whether a number above zero has a sign."""
    empty: str = "-"
    """What stands where there is nothing to say."""
    about: str = ""
    """What the cells say, in words without a period at the end; empty where the name says it."""
    p_values: bool = False
    """Whether the cells are p-values, which are never written as zero: `< 0.0001` for people, with four significant
    digits for tools."""
    foreign: bool = False
    """Whether the name is a stranger's text, such as the id of a run, and not words of judge's own."""
    safe: bool = False
    """Whether its texts are safe to print already, such as ids by `printable_id`, so that none is escaped again."""


def as_column(column: Column | str) -> Column:
    """A column by its name, which may be a stranger's."""
    return column if isinstance(column, Column) else Column(column, foreign=True)


RecordColumns = Mapping[Column | str, Callable[[Any], object]]
"""The columns of a table of records, each with the cell of a record."""
Mark = tuple[Estimate, bool]
"""A value with its interval, drawn in a line of a table, and whether it is hollow: the lesser one of two in a line,
such as a mean before its correction."""


class Plot(msgspec.Struct, frozen=True):
    """The values of a table's lines, which a page draws above it over one axis."""

    name: str
    low: float
    high: float
    lines: tuple[tuple[Mark, ...], ...]
    """The marks of each line of the table."""


Shares = tuple[tuple[float | None, ...], ...]
"""For each cell of a table how deep it is shaded, from 0 to 1; None is not shaded."""


class Tabular(Protocol[_Row]):
    """A sequence of rows that a notebook shows as a table."""

    __slots__ = ()

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[_Row]: ...

    def __getitem__(self, key: slice) -> "Tabular[_Row]": ...

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary a row, each with the same keys, for `pandas.DataFrame` or `polars.from_dicts`.

        A record or dictionary inside a record becomes keys of its own (`mean.value`, `mean.low`), a tuple a list.
        A key that a record lacks holds None.
        """
        return _dicts(self._named())

    def to_pandas(self) -> Any:
        """A data frame of pandas with the columns of `to_dicts`."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def to_polars(self) -> Any:
        """A data frame of polars with the columns of `to_dicts`."""
        import polars

        return polars.from_dicts(self.to_dicts(), infer_schema_length=None)

    def _named(self) -> Iterable[object]:
        """The rows as records or mappings."""
        return self

    def _repr_html_(self) -> str:
        """The first rows as HTML; texts are escaped and never shown as formulas."""
        rows = _dicts(itertools.islice(self._named(), _ROWS + 1))
        caption = f"the first {_ROWS} rows" if len(rows) > _ROWS else f"{len(rows)} rows"
        rows = rows[:_ROWS]
        head = "".join(f"<th>{_html(key)}</th>" for key in (rows[0] if rows else ()))
        body = "".join(f"<tr>{''.join(f'<td>{_html(value)}</td>' for value in row.values())}</tr>" for row in rows)
        return (
            f'<table class="tex2jax_ignore mathjax_ignore"><caption>{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class Table(tuple[_Row, ...], Tabular[_Row]):
    """A tuple of rows: records, or with `columns` a cell for each.

    Attributes:
        columns: What the cells of a row are; empty for records.
        title: What stands above the table.
        notes: What stands below it, a sentence each.
        places: Decimals.
        plot: What a page draws above the lines.
        shares: How deep a page shades the cells; empty where it shades none.
        chosen: The place of the row that stands out; None for none.
    """

    columns: tuple[Column, ...]
    title: str
    notes: tuple[str, ...]
    places: int
    plot: Plot | None
    shares: Shares
    chosen: int | None

    def __new__(
        cls,
        rows: Iterable[_Row] = (),
        columns: Iterable[Column | str] = (),
        title: str = "",
        notes: Iterable[str] = (),
        places: int = 4,
        plot: Plot | None = None,
        shares: Shares = (),
        chosen: int | None = None,
    ) -> "Table[_Row]":
        """Keep the rows with what stands beside them."""
        made = super().__new__(cls, rows)
        made.columns = tuple(map(as_column, columns))
        made.title = title
        made.notes = tuple(notes)
        made.places = places
        made.plot = plot
        made.shares = shares
        made.chosen = chosen
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @overload
    def __getitem__(self, key: SupportsIndex) -> _Row: ...
    @overload
    def __getitem__(self, key: slice) -> "Table[_Row]": ...
    def __getitem__(self, key: Any) -> Any:
        """A row; for a slice, a table."""
        picked = super().__getitem__(key)
        return (
            Table(rows=picked, columns=self.columns, title=self.title, notes=self.notes, places=self.places)
            if isinstance(key, slice)
            else picked
        )

    def pick(self, names: Iterable[str]) -> "Table[Any]":
        """The table with some of its columns, in another order."""
        places = [self.names.index(name) for name in names]
        lines = []
        for line in self._lines():
            lines.append(tuple(line[place] for place in places))
        columns = [self.columns[place] for place in places]
        return Table(
            rows=lines, columns=columns, title=self.title, notes=self.notes, places=self.places, chosen=self.chosen
        )

    def with_notes(self, *notes: str) -> "Table[_Row]":
        """The table with further notes."""
        return Table(
            rows=self,
            columns=self.columns,
            title=self.title,
            notes=(*self.notes, *notes),
            places=self.places,
            chosen=self.chosen,
        )

    def _named(self) -> Iterable[object]:
        return (dict(zip(self.names, row, strict=True)) for row in self._lines()) if self.columns else self

    def _lines(self) -> "tuple[Sequence[Cell], ...]":
        return self  # type: ignore[return-value]

    def words(self) -> frozenset[int]:
        """The places of the columns that hold words: the first one, and any with a text."""
        held: set[int] = set()
        for line in self._lines():
            held.update(place for place, cell in enumerate(line) if isinstance(cell, str))
        return frozenset(held | {0})

    def captions(self) -> tuple[str, ...]:
        """The notes, and a paragraph on what the columns say."""
        said = [f"{column.name.partition(' [')[0]}: {column.about}." for column in self.columns if column.about]
        return (*self.notes, " ".join(dict.fromkeys(said))) if said else self.notes

    def cells(self) -> Iterator[list[str]]:
        """The lines as people read them; a dash where there is nothing to say."""
        for line in self._lines():
            yield [_shown(cell, column, self.places) for cell, column in zip(line, self.columns, strict=True)]

    def tsv(self) -> str:
        """The lines between tabs; title and notes are left out. An estimate is three columns."""
        spread: set[int] = set()
        for line in self._lines():
            spread.update(place for place, cell in enumerate(line) if isinstance(cell, Estimate))
        columns: list[Column] = []
        for place, column in enumerate(self.columns):
            columns.append(column)
            if place in spread:
                columns.append(Column(f"{column.name}_low"))
                columns.append(Column(f"{column.name}_high"))
        lines: list[list[Cell]] = []
        for line in self._lines():
            parts: list[Cell] = []
            for place, cell in enumerate(line):
                if isinstance(cell, Estimate):
                    parts += [cell.value, cell.low, cell.high]
                elif place in spread:
                    parts += [cell, None, None]
                else:
                    parts.append(cell)
            lines.append(parts)
        return tsv(columns, lines, self.places)

    def to_object(self) -> dict[str, Any]:
        """Title, rows as objects with unrounded numbers, and notes."""
        rows = [dict(zip(self.names, line, strict=True)) for line in self._lines()]
        return {"title": self.title, "rows": rows, "notes": self.notes}

    def json(self) -> str:
        """The table as an object of JSON."""
        return msgspec.json.format(msgspec.json.encode(self.to_object()), indent=2).decode() + "\n"

    def body(self, words: Collection[int] | None = None) -> str:
        """The table alone as Markdown; `words`: places of the columns to the left (default: columns of words)."""
        head = [markdown_cell(escape(column.name)) if column.foreign else column.name for column in self.columns]
        rows: list[list[str]] = []
        for place, (line, cells) in enumerate(zip(self._lines(), self.cells(), strict=True)):
            row = [_markdown(cell, text) for cell, text in zip(line, cells, strict=True)]
            if place == self.chosen:
                row[0] = f"**{row[0]}**"
            rows.append(row)
        return table(head, rows, words=self.words() if words is None else words)

    def markdown(self) -> str:
        """A heading, the table, a paragraph for each note."""
        notes = "".join(f"\n{markdown_cell(printable(note))}\n" for note in self.captions())
        return f"## {markdown_cell(printable(self.title))}\n\n{self.body()}\n{notes}"

    def latex(self) -> str:
        r"""A `tabular` with the rules of booktabs; needs `\usepackage{booktabs}` and `\usepackage[T1]{fontenc}`."""
        words = self.words()
        align = "".join("l" if place in words else "r" for place in range(len(self.columns)))
        rows = [" & ".join(map(_latex, cells)) + r" \\" for cells in ([*map(escape, self.names)], *self.cells())]
        comments = [f"% {printable(line)}" for line in (self.title, *self.notes)]
        lines = (rf"\begin{{tabular}}{{{align}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule")
        return "\n".join([*comments, *lines, r"\end{tabular}", ""])

    def files(self, name: str) -> dict[str, bytes]:
        """The table in every form, by file name."""
        return {f"{name}.{ending}": write(self).encode() for ending, write in FORMS.values()}


FORMS: dict[str, tuple[str, Callable[[Table[Any]], str]]] = {
    "tsv": ("tsv", Table.tsv),
    "json": ("json", Table.json),
    "markdown": ("md", Table.markdown),
    "latex": ("tex", Table.latex),
}
"""Form to the ending of its files and its writer."""


def sequence(rows: Iterable[_Element]) -> Sequence[_Element]:
    """Rows that can be read more than once: as they are if they can be already, such as those on the disk."""
    return rows if isinstance(rows, Sequence) else tuple(rows)


def fields(names: str) -> RecordColumns:
    r"""RecordColumns of fields by their names, or by `name=path` (`low=mean.low`); empty where a record lacks one.

    >>> records_tsv(fields("run=run_id mean.low"), [])
    'run\tmean.low\n'
    """
    pairs = [name.partition("=") for name in names.split()]
    return {name: _path((path or name).split(".")) for name, _, path in pairs}


def _path(parts: Sequence[str]) -> Callable[[Any], object]:
    def cell(record: Any) -> object:
        for part in parts:
            record = record.get(part) if isinstance(record, Mapping) else getattr(record, part, None)
        return record

    return cell


def records_table(
    columns: RecordColumns,
    records: Iterable[object],
    title: str,
    notes: Iterable[str] = (),
    places: int = 4,
    plot: Plot | None = None,
) -> Table[Any]:
    """A table with a line for each record."""
    return Table(rows=_cells(columns, records), columns=columns, title=title, notes=notes, places=places, plot=plot)


def records_tsv(columns: RecordColumns, records: Iterable[object], places: int = 6) -> str:
    """A table with a line for each record."""
    return tsv(tuple(columns), _cells(columns, records), places)


def _cells(columns: RecordColumns, records: Iterable[object]) -> Iterator[tuple[Any, ...]]:
    """What each record has in the columns."""
    for record in records:
        yield tuple(cell(record) for cell in columns.values())


def tsv(columns: Iterable[Column | str], lines: Iterable[Iterable[object]], places: int = 6) -> str:
    r"""A header and lines between tabs; text as `escape_cell` writes it, a float with `places` decimals, None empty.

    >>> tsv(("run_id", "mean", "exact"), [("a\tb", 0.25, True), ("c", None, False)], 3)
    'run_id\tmean\texact\na\\tb\t0.250\ttrue\nc\t\tfalse\n'
    """
    return "".join(tsv_lines(columns, lines, places))


def tsv_lines(columns: Iterable[Column | str], lines: Iterable[Iterable[object]], places: int = 6) -> Iterator[str]:
    """The same a line at a time, for tables that would fill the memory."""
    heads = tuple(map(as_column, columns))
    yield "\t".join(escape_cell(head.name) for head in heads) + "\n"
    for line in lines:
        yield "\t".join(_plain(value, head, places) for value, head in zip(line, heads, strict=True)) + "\n"


def _plain(value: object, column: Column, places: int) -> str:
    """A cell for tools."""
    match value:
        case str():
            return escape_cell(value)
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if column.p_values:
            return f"{value:.4g}"
        case float():
            return decimals(value, places)
        case _:
            return escape_cell(str(value))


def _shown(cell: Cell, column: Column, places: int) -> str:
    """A cell for people."""
    places = places if column.places is None else column.places
    match cell:
        case None | "":
            return column.empty
        case bool():
            return "yes" if cell else "no"
        case float() if column.p_values:
            return p_value(cell)
        case float():
            return number(cell, places, signed=column.signed)
        case Estimate():
            return interval(cell, places, signed=column.signed)
        case Mapping():
            return ", ".join(f"{grade}: {n}" for grade, n in cell.items())
        case str() if column.safe:
            return cell
        case str():
            return escape(cell)
        case _:
            return str(cell)


def _markdown(cell: Cell, text: str) -> str:
    """A cell for people as Markdown; a number holds no markup."""
    return markdown_cell(text) if isinstance(cell, str) else text


def _dicts(records: Iterable[object]) -> list[dict[str, Any]]:
    """A dictionary a record, each with the same keys, as `Tabular.to_dicts` describes."""
    rows = [dict(_fields(record)) for record in records]
    keys: dict[str, None] = {}
    for row in rows:
        for key in row:
            keys[key] = None
    # A record that is missing in some rows has one key there, and a key for each part in the others.
    parts: set[str] = set()
    for key in keys:
        parts.update(key[:end] for end, character in enumerate(key) if character == ".")
    kept: list[str] = []
    for key in keys:
        if key not in parts or any(row.get(key) is not None for row in rows):
            kept.append(key)
    return [{key: row.get(key) for key in kept} for row in rows]


def _fields(value: object, name: str = "") -> Iterator[tuple[str, Any]]:
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
        yield from _fields(inner, f"{name}.{part}" if name else str(part))


def _html(value: object) -> str:
    """A value as a cell of HTML."""
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return html.escape(printable(text[:_CHARACTERS])) + ("…" if len(text) > _CHARACTERS else "")


def _latex(text: str) -> str:
    escaped = re.sub(r'[&%$#_{}\\~^<>|"]', lambda sign: _LATEX[sign[0]], text)
    # At the start of a row they would be read as arguments of the `\\\\` before it.
    return re.sub(r"^[\[*]", lambda sign: f"{{{sign[0]}}}", escaped)
