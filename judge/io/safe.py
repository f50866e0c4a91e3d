r"""Texts from files made safe: to print on one line, to show in a message, to store. Pure.

A character is shown as it is if `str.isprintable` says so; control characters, line breaks, zero-width characters,
bidirectional overrides, unusual spaces and lone surrogates become Python's escapes (`\n`, `\x1b`, `\u202e`).
"""

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable

SHOWN = 60
"""The most characters of a value that a message shows."""
MAX_ID = 200
"""The most characters of a usable id: ids become columns and sort keys."""

_ESCAPED = re.compile(r"""\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([\\nrt=+@"-]))""")
_SHORT = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"} | {sign: sign for sign in '=+@"-'}
_RUN = re.compile(r'(?![+-]?[0-9.]*$)[=+@"-](?!$)')
"""The start of a cell that a spreadsheet takes for a formula, or for a quotation that may hold one; no number."""


def printable(text: str) -> str:
    r"""The text on one line, without characters that control a terminal or cannot be seen; applied twice, the same.

    >>> print(printable("a\nb\x1b[1m \u202ec"))
    a\nb\x1b[1m \u202ec
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape(text: str) -> str:
    r"""As `printable`, with backslashes doubled, so that different texts stay different and `unescape` can undo it.

    >>> print(escape("a\nb"), escape(r"a\nb"))
    a\nb a\\nb
    """
    return printable(text.replace("\\", "\\\\"))


def escape_cell(text: str) -> str:
    r"""As `escape`, for a cell of a table: a text that a spreadsheet would run as a formula begins with a backslash.

    >>> print(escape_cell("=1+1"), escape_cell("-3.5"), escape_cell("a=b"))
    \=1+1 -3.5 a=b
    """
    text = escape(text)
    return f"\\{text}" if _RUN.match(text) else text


def disarmed(text: str) -> str:
    r"""A text for a cell that people read in a spreadsheet: as it is, except that it is never run as a formula.

    >>> print(disarmed("=1+1"), disarmed("-3.5"), disarmed("a=b"))
    \=1+1 -3.5 a=b
    """
    # Spreadsheets pass over white space before a formula.
    return f"\\{text}" if _RUN.match(text.lstrip()) else text


def unescape(text: str) -> str:
    """The text that `escape` or `escape_cell` was given; anything that is not an escape is kept."""
    return _ESCAPED.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _SHORT[match[4]]
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def shown(value: object) -> str:
    """A value for a message: named as in JSON, on one line, escaped, about `SHOWN` characters long.

    >>> shown("a" * 100) == repr("a" * 60) + "…", shown(None), shown([1, 2])
    (True, 'null', 'a list with 2 entries')
    """
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} with {len(value)} entries"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) > 10**20:
        return "an integer of more than 20 digits"
    if isinstance(value, str):
        # Cut before escaping: the text may be of any length.
        return repr(value[:SHOWN]) + ("…" if len(value) > SHOWN else "")
    return repr(value)


def printable_id(text: str) -> str:
    """An id for records and messages: an unprintable or overlong id is escaped and shortened."""
    return text if text.isprintable() and len(text) <= MAX_ID else shown(text)


def has_content(text: str) -> bool:
    r"""Whether a text has anything to read: a letter, mark, number, punctuation or symbol.

    >>> [has_content(text) for text in ("a", "…", " \n", "\u200b\u2060")]
    [True, True, False, False]
    """
    return any(map(str.isalnum, text)) or any(unicodedata.category(c)[0] in "LMNPS" for c in text)


def storable(text: str) -> bool:
    """Whether a text can be sent and stored: no NUL, no lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def digest(text: str) -> str:
    """SHA-256 of the text as UTF-8, in hexadecimal; a lone surrogate counts as the three bytes of its number."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` with the known name that is nearest; "" if none is near.

    >>> did_you_mean("groundednes", ["groundedness", "naturalness"]), did_you_mean("xyz", ["groundedness"])
    ('; did you mean groundedness?', '')
    """
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest to a word, upper and lower case alike; None if none is near."""
    # The hyphens of an option tell nothing.
    folded = {name.casefold().lstrip("-"): name for name in known}
    # Long strangers' words take long to compare, and no name of ours is long.
    near = difflib.get_close_matches(word.casefold().lstrip("-")[:80], folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None
