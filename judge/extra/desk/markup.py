"""The little of Markdown that responses are full of, as HTML: bold, lists and line breaks. Pure.

A text is escaped before anything is looked for in it, and the only tags are those that stand here: a stranger's text
makes no link, no picture and no HTML of its own.
"""

import re

from markupsafe import Markup, escape

_ITEM = re.compile(r" {0,12}(?:[-*]|([0-9]{1,3})[.)]) +(\S.*)")
"""A line that is an entry of a list: its number, if it has one, and its text."""
_END = {"ul": "</ul>", "ol": "</ol>", "p": "</p>"}


def light_markup(text: str) -> Markup:
    r"""A text as paragraphs and lists, for templates.

    >>> print(light_markup("**Two** <b>ways</b>:\n- one\n- two"))
    <p><strong>Two</strong> &lt;b&gt;ways&lt;/b&gt;:</p><ul><li>one</li><li>two</li></ul>
    """
    parts: list[str] = []
    block = ""
    for line in str(escape(text.replace("\r\n", "\n"))).split("\n"):
        item = _ITEM.fullmatch(line)
        kind = "" if not line.strip() else "p" if item is None else "ul" if item[1] is None else "ol"
        if kind != block:
            parts.append(_END.get(block, ""))
            if kind == "ol" and item is not None:
                parts.append(f'<ol start="{int(item[1])}">')
            elif kind:
                parts.append(f"<{kind}>")
        elif kind == "p":
            # The style keeps it as a line break.
            parts.append("\n")
        if item is not None:
            parts.append(f"<li>{_bold(item[2])}</li>")
        elif kind:
            parts.append(_bold(line))
        block = kind
    parts.append(_END.get(block, ""))
    return Markup("".join(parts))  # noqa: S704 - all of the text was escaped


def bold_markup(text: str) -> Markup:
    """A part of a line in which only bold is marked, for templates."""
    return Markup("\n".join(map(_bold, str(escape(text)).split("\n"))))  # noqa: S704 - likewise


def _bold(line: str) -> str:
    """An escaped line with what stands between two pairs of asterisks in bold; a pair alone stays."""
    first, *parts = line.split("**")
    made = [first]
    place = 0
    while place < len(parts):
        inner = parts[place]
        closed = place + 1 < len(parts)
        if closed and inner and inner == inner.strip():
            made.append(f"<strong>{inner}</strong>{parts[place + 1]}")
            place += 2
        else:
            made.append(f"**{inner}")
            place += 1
    return "".join(made)
