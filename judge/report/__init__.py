"""Report: output folders as pages that people read, and their judgments as lists that they search. Pure.

Here is what a report says, before it is a page or a Markdown file: sections of sentences, tables and quotations.
"""

from typing import Any, Literal

import msgspec

from judge.io.table import Table

Tone = Literal["plain", "good", "warn", "bad"]
"""How a sentence is to be taken; `plain` says nothing of it."""


class Said(msgspec.Struct, frozen=True):
    """A paragraph, or with a tone a box that nobody overlooks."""

    text: str
    tone: Tone | None = None


class Noted(msgspec.Struct, frozen=True):
    """Several things to know together, a sentence each."""

    title: str
    lines: tuple[str, ...]
    tone: Tone = "warn"


class Facts(msgspec.Struct, frozen=True):
    """Names with a value each; the first ones matter most."""

    lines: tuple[tuple[str, str], ...]


class Quoted(msgspec.Struct, frozen=True):
    """A text that a stranger or a model wrote, and what it is."""

    about: str
    text: str


class Folded(msgspec.Struct, frozen=True):
    """Parts that are shown when asked for."""

    title: str
    parts: tuple[Said | Noted | Facts | Table[Any] | Quoted, ...]


ReportPart = Said | Noted | Facts | Table[Any] | Quoted | Folded
"""The notes of a table say how it is read: what a line is, and what its numbers say."""


class Section(msgspec.Struct, frozen=True):
    """A heading with its parts."""

    name: str
    """Its address on the page, in letters and hyphens."""
    title: str
    parts: tuple[ReportPart, ...]
    group: str = ""
    """Which of several folders it is about; empty where there is one, or where it is about all."""


class Content(msgspec.Struct, frozen=True):
    """Everything that a report says, beside the browser of judgments."""

    title: str
    lead: str
    """What was judged by whom, in one sentence."""
    sections: tuple[Section, ...]
    made_of: tuple[tuple[str, str], ...]
    """The record of each folder that was read, by its path, with its SHA-256."""
