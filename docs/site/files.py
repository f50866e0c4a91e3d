"""The index of the files that commands write: what each holds and its fields, as the pages say it.

The tables and paragraphs of the pages are the only source; a test holds them against what the commands write.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from docs.site.markdown import code, link, slug
from docs.site.pages import relative, title

PAGE = "reference/files.md"
_NAME = re.compile(r"`((?:[\w<>.-]+/)*[\w<>*.-]+\.(?:tsv|jsonl|json|md|txt|qrel|run|sha256|sqlite|svg|png|html|csv|idx|looks))`")
_OPENING = re.compile(rf"^(?:\| column of )?{_NAME.pattern}(?:[^\n|]*?(?:\(and|, ) ?{_NAME.pattern})*")


class Block(NamedTuple):
    """A paragraph or a table of a page."""

    page: str
    section: str
    text: str
    lead: str
    """The paragraph before it."""

    @property
    def is_table(self) -> bool:
        """Whether it is a table."""
        return self.text.startswith("|")

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table's rows, its header first."""
        lines = [line for line in self.text.splitlines() if not re.fullmatch(r"[|\s:-]+", line)]
        return [[part.strip() for part in re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in lines]


def blocks(written: Mapping[str, str]) -> Iterator[Block]:
    """The paragraphs and tables of the pages about a subject, outside code."""
    for page, text in written.items():
        if "/" in page or page == "index.md":
            continue
        section = lead = ""
        for kind, lines in itertools.groupby(_kinds(text), key=lambda pair: pair[0]):
            part = "\n".join(line for _, line in lines)
            if kind.startswith("heading"):
                section, lead = part.lstrip("# "), ""
            elif kind.startswith(("text", "table")):
                yield Block(page, section, part, lead)
                lead = part


def _kinds(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a page with what each belongs to; lines of one block follow each other under one name."""
    inside, number = False, 0
    for line in text.splitlines():
        if line.startswith("```"):
            inside, number = not inside, number + 1
        elif inside or not line.strip():
            number += 1
        elif line.startswith("#"):
            number += 1
            yield f"heading {number}", line
        else:
            yield f"{'table' if line.startswith('|') else 'text'} {number}", line


class File(NamedTuple):
    """A file as the pages describe it."""

    name: str
    contents: list[tuple[Block, str]]
    """Where a table of files names it, and what it says."""
    fields: list[Block]
    """The tables and paragraphs about its fields."""


def files(written: Mapping[str, str]) -> list[File]:
    """The files that the pages describe, in the order of their names."""
    found: dict[str, File] = {}

    def entry(name: str) -> File:
        return found.setdefault(name, File(name, [], []))

    every = list(blocks(written))
    for place, block in enumerate(every):
        if block.is_table and block.rows[0][0].startswith("file"):
            for row in block.rows[1:]:
                for name in _NAME.findall(row[0]):
                    entry(name).contents.append((block, row[1]))
        elif opening := _OPENING.match(block.text):
            for name in dict.fromkeys(_NAME.findall(opening[0])):
                entry(name).fields.append(block)
                following = every[place + 1] if place + 1 < len(every) else None
                if following and following.is_table and block.text.rstrip().endswith(":") and following.page == block.page:
                    entry(name).fields.append(following)
    return sorted(found.values(), key=lambda file: (file.name.rpartition("/")[2].lower(), file.name))


def files_page(written: Mapping[str, str]) -> dict[str, str]:
    """The page that leads from each file to what it holds."""
    parts = [
        "# Files\n\nEvery file that a command writes, with what it holds and the meaning of its fields, as the pages on "
        "each subject say it.\n"
    ]
    for file in files(written):
        parts.append(f"## {code(file.name)}\n")
        for block, content in file.contents:
            words = f"{title(written[block.page])}: {block.section}"
            where = f"{relative(block.page, PAGE)}#{slug(block.section)}"
            parts.append(f"{led(content, block.page)} — {link(words, where)}\n")
        parts += [led(block.text, block.page) + "\n" for block in file.fields]
    return {PAGE: "\n".join(parts)}


def led(text: str, page: str) -> str:
    """A part of a page as it stands on this one: its links lead to where they led."""
    text = re.sub(r"\]\(#", f"]({page}#", text)
    return re.sub(r"\]\((?![a-z]+:)([^)#]+)", lambda match: f"]({relative(match[1], PAGE)}", text)
