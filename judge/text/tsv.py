"""Tables as TSV: stable headers, numbers with fixed decimals, undefined values empty. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from judge.text.cells import decimals
from judge.text.safe import escape_cell


def tsv(columns: Sequence[str], lines: Iterable[Iterable[object]], places: int = 6) -> str:
    r"""A header and lines between tabs; text as `escape_cell` writes it, a float with `places` decimals, None empty.

    >>> tsv(("run_id", "mean", "exact"), [("a\tb", 0.25, True), ("c", None, False)], 3)
    'run_id\tmean\texact\na\\tb\t0.250\ttrue\nc\t\tfalse\n'
    """
    return "".join(tsv_lines(columns, lines, places))


def tsv_lines(columns: Sequence[str], lines: Iterable[Iterable[object]], places: int = 6) -> Iterator[str]:
    """The same a line at a time, for tables that would fill the memory."""
    yield "\t".join(map(escape_cell, columns)) + "\n"
    for line in lines:
        yield "\t".join(_cell(value, places) for value in line) + "\n"


def _cell(value: object, places: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return decimals(value, places) if isinstance(value, float) else escape_cell(str(value))
