"""Markdown of the generated pages."""

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *rows])


def cell(text: str) -> str:
    """A sentence of the program as a cell: on one line, without markup but for code in backticks."""
    return re.sub(r"(?<!\\)\|", r"\\|", escaped(" ".join(text.split())))


def code(text: str) -> str:
    """A word of the program as code, in a cell too."""
    return f"`{text}`".replace("|", "\\|")


def fenced(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def link(words: str, target: str) -> str:
    """A link to a place in the site."""
    return f"[{words}]({target})"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Facts as a list: what, then its value."""
    return "\n".join(f"- {what}: {value}" for what, value in pairs)


def escaped(text: str) -> str:
    """A text of the program as Markdown: its lines and the code in backticks stay, nothing else is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\<>*_\[\]#~])", r"\\\1", part) for part in parts)
