"""The index of the files that commands write: what each holds and its fields, as the pages say it.

The tables and paragraphs of the pages are the only source; a test holds them against what the commands write.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from docs.site.markdown import link, slug
from docs.site.pages import relative, subjects, title

PAGE = "reference/files.md"
_SUFFIXES = "tsv|jsonl|json|md|tex|txt|qrel|run|pool|sha256|salt|sqlite|svg|png|html|csv|xml|db|idx|looks|json.gz"
_NAME = re.compile(rf"`((?:[\w<>.-]+/)*[\w<>*.-]*\.(?:{_SUFFIXES}))`")
_OPENING = re.compile(rf"(?:\| column of )?{_NAME.pattern}(?: \(and {_NAME.pattern}\))?")


class Block(NamedTuple):
    """A paragraph or a table of a page, outside code."""

    page: str
    chapter: str
    """The heading of the second level above it."""
    section: str
    """The anchor of the nearest heading above it."""
    text: str

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table's rows, its header first; none in a paragraph."""
        lines = self.text.splitlines() if self.text.startswith("|") else []
        cells = (re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in lines if not re.fullmatch(r"[|\s:-]+", line))
        return [[part.strip() for part in row] for row in cells]


class Entry(NamedTuple):
    """What a page says of one file, or of a few that hold the same."""

    names: tuple[str, ...]
    where: Block
    content: str
    """What the table of files says; "" where a file stands in no table."""
    fields: list[Block]
    """The paragraphs and tables about its fields."""


def blocks(page: str, text: str) -> Iterator[Block]:
    """The paragraphs and tables of a page."""
    chapter, anchor, seen = "", "", dict[str, int]()
    for kind, lines in itertools.groupby(_kinds(text), key=lambda pair: pair[0]):
        part = "\n".join(line for _, line in lines)
        if not kind.startswith("heading"):
            yield Block(page, chapter, anchor, part)
            continue
        marks, _, heading = part.partition(" ")
        chapter = heading if marks == "##" else chapter
        anchor = slug(heading)
        seen[anchor] = seen.get(anchor, -1) + 1
        anchor += f"-{seen[anchor]}" if seen[anchor] else ""


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


def entries(page: str, text: str) -> list[Entry]:
    """The files that a page describes: those of its tables of files, then those that only a paragraph describes."""
    every = list(blocks(page, text))
    about: dict[str, list[Block]] = {}
    for block, following in itertools.pairwise([*every, Block(page, "", "", "")]):
        opening = _OPENING.match(block.text)
        if opening and "`" in block.text[opening.end() :] + following.text[:1].replace("|", "`"):
            told = [block, following] if block.text.endswith(":") and following.text.startswith("|") else [block]
            for name in filter(None, opening.groups()):
                about.setdefault(name, []).extend(told)
    found = [
        Entry(names, block, content, [told for name in names for told in about.get(name, ())])
        for block in every
        for names, content in _listed(block.rows)
    ]
    listed = {name.rpartition("/")[2] for entry in found for name in entry.names}
    found += [
        Entry((name,), told[0], "", told)
        for name, told in about.items()
        if name.rpartition("/")[2] not in listed and told[0].text.strip("`") != name and "with tabs" not in told[0].text
    ]
    return found


def _listed(rows: list[list[str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The files of each row of a table of files, with what the row says; nothing of any other table."""
    header = rows[0] if rows else [""]
    for row in rows[1:]:
        if header[0].startswith("file") and header[1] == "content" and (names := _names(row[0])):
            yield names, row[1]
        elif len(header) > 1 and header[1] == "files" and (names := _names(row[1])):
            yield names, ": ".join([row[0], *row[2:3]])


def _names(cell: str) -> tuple[str, ...]:
    """The files of a cell such as "`runs.tsv`, `.md`", where an ending alone belongs to the name before it.

    `runs.*` is a table in all its forms.
    """
    names: list[str] = []
    for name in re.findall(rf"`((?:[\w<>.-]+/)*[\w<>*.-]*\.(?:{_SUFFIXES}|\*))`", cell):
        if name.endswith(".*"):
            names += [name[:-1] + form for form in ("tsv", "json", "md", "tex")]
            continue
        names.append(f"{names[-1].rpartition('.')[0]}{name}" if names and re.fullmatch(r"\.\w+", name) else name)
    return tuple(names)


def all_entries(written: Mapping[str, str]) -> list[Entry]:
    """The files that the pages describe, in the order of the pages."""
    pages = [page for page in [*subjects(), "project/gold.md"] if page in written]
    return [entry for page in pages for entry in entries(page, written[page])]


def files_page(written: Mapping[str, str]) -> dict[str, str]:
    """The page that leads from each file to what it holds."""
    parts = [
        "# Files\n\nEvery file that a command writes, with what it holds and the meaning of its fields. The words are "
        "those of the pages on each subject.\n"
    ]
    for (page, chapter), group in itertools.groupby(
        all_entries(written), key=lambda entry: (entry.where.page, entry.where.chapter)
    ):
        parts.append(f"## {title(written[page])}: {chapter}\n")
        for entry in group:
            where = f"{relative(page, PAGE)}#{entry.where.section}"
            parts.append(f"### {', '.join(f'`{name}`' for name in entry.names)}\n")
            content = _led(entry.content[:1].upper() + entry.content[1:], page)
            parts.append(f"{content.rstrip('.')}{'. ' if content else ''}{link('Its section', where)}.\n")
            parts += [_led(block.text, page) + "\n" for block in entry.fields]
    return {PAGE: "\n".join(parts)}


def _led(text: str, page: str) -> str:
    """A part of a page as it stands on this one: its links lead to where they led."""
    text = re.sub(r"\]\(#", f"]({page}#", text)
    return re.sub(r"\]\((?![a-z]+:)([^)#]+)", lambda match: f"]({relative(match[1], PAGE)}", text)
