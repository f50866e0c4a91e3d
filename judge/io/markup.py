"""Parts of a Markdown report: tables, and texts from runs without markup. Pure."""

import re
from collections.abc import Collection, Iterable, Sequence

from judge.io.cells import markdown_cell
from judge.io.safe import escape, printable

_CODE = "\ue000"
"""What stands before and after code."""
_MARKER = re.compile(r"([0-9]{0,9})([-+=.)])")
"""What makes a list or a heading of a line that begins with it; the other signs of markup are escaped anywhere."""


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True, words: Collection[int] = (0,)
) -> str:
    """A table of Markdown cells; with `numbers`, all columns but those of `words` are aligned to the right."""
    rule = ["---:" if numbers and place not in words else "---" for place in range(len(header))]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def prose(text: str) -> str:
    """A text on one line, without markup."""
    return markdown_cell(printable(text))


def name_of(text: str) -> str:
    """An id without markup, escaped so that different ids look different."""
    return markdown_cell(escape(text))


def code(text: str) -> str:
    """What `told` shows as code, in words of judge's own."""
    return f"{_CODE}{text}{_CODE}"


def plain(text: str) -> str:
    """Words for `told` as a text without markup."""
    return text.replace(_CODE, "")


def told(text: str) -> str:
    r"""Words of judge's own with names in them, where code shows as such.

    >>> told(f"{code('a*')} of b*: 0.5 [0.4, 0.6] and [x](y)")
    '`a*` of b\\*: 0.5 [0.4, 0.6] and \\[x\\](y)'
    """
    # An even part stands outside of code; no name holds the mark, which nobody can see.
    parts = text.split(_CODE)
    return "".join(f"`{part}`" if place % 2 else prose(part) for place, part in enumerate(parts))


def listed(texts: Iterable[str]) -> str:
    """Texts without markup, with semicolons between them."""
    return "; ".join(map(prose, texts))


def quotation(text: str) -> str:
    r"""A text of several lines as a block quotation without markup, its lines kept.

    >>> quotation("The <b>6:10</b>:\n\n- on time")
    '> The &lt;b&gt;6:10&lt;/b&gt;:\n>\n> \\- on time'
    """
    lines = [_line(line) for line in text.splitlines()] or [""]
    # Two spaces at its end keep a line apart from the next one.
    breaks = ["  " * bool(line and after) for line, after in zip(lines, [*lines[1:], ""], strict=True)]
    return "\n".join((f"> {line}" if line else ">") + after for line, after in zip(lines, breaks, strict=True))


def _line(text: str) -> str:
    text = prose(text.strip())
    marker = _MARKER.match(text)
    return f"{marker[1]}\\{text[marker.end(1) :]}" if marker else text
