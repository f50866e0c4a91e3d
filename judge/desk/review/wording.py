"""The difference of two prompt files, line by line. Pure."""

from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_CONTEXT = 2
"""Lines that both have, shown beside each change."""


class DiffLine(NamedTuple):
    """One line of a difference; `gap` stands for lines that both have and that are not shown."""

    kind: Literal["same", "old", "new", "gap"]
    text: str


def diff_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    r"""The lines of both texts with their kinds; lines that both have are shown near changes only.

    >>> [f"{line.kind}: {line.text}" for line in diff_lines("a\nb\nc", "a\nB\nc")]
    ['same: a', 'old: b', 'new: B', 'same: c']
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[DiffLine] = []
    shown = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        if group[0][1] > shown:
            lines.append(_gap(group[0][1] - shown))
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [DiffLine("same", line) for line in before[i:j]]
            else:
                lines += [DiffLine("old", line) for line in before[i:j]]
                lines += [DiffLine("new", line) for line in after[k:m]]
        shown = group[-1][2]
    if lines and shown < len(before):
        lines.append(_gap(len(before) - shown))
    return tuple(lines)


def _gap(lines: int) -> DiffLine:
    return DiffLine("gap", f"{lines} line{'s' * (lines > 1)} that both have")
