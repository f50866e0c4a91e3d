"""The report as one Markdown file with its pictures in it, for the appendix of a paper."""

import base64
from collections.abc import Iterator, Sequence

from judge.io.markup import name_of, prose, quotation
from judge.io.table import Table
from judge.report.parts import Content, Facts, Folded, Noted, Quoted, ReportPart, Said
from judge.report.pictures import Picture


def report_markdown(content: Content, pictures: Sequence[Picture]) -> bytes:
    """The file; texts of strangers show as they are and are never markup.

    Args:
        content: What the report says.
        pictures: Each stands below the tables of its section.
    """
    blocks = [f"# {prose(content.title)}", prose(content.lead)]
    for section in content.sections:
        blocks.append(f"## {prose(section.title + (f', {section.group}' if section.group else ''))}")
        for part in section.parts:
            blocks += _blocks(part)
        blocks += [_embedded(picture) for picture in pictures if picture.section == section.name]
    known = [(name_of(record), digest) for record, digest in content.made_of if digest]
    sources = "; ".join(f"{record} with the SHA-256 `{digest}`" for record, digest in known)
    blocks += [f"Made from {sources}."] if sources else []
    return "".join(f"{block}\n\n" for block in blocks).removesuffix("\n").encode()


def _embedded(picture: Picture) -> str:
    return f"![{prose(picture.about)}](data:image/png;base64,{base64.b64encode(picture.png).decode()})"


def _blocks(part: ReportPart) -> Iterator[str]:
    match part:
        case Said(text, None):
            yield prose(text)
        case Said(text, _):
            yield f"**{prose(text)}**"
        case Noted(title, lines):
            yield f"**{prose(title)}**"
            yield "\n".join(f"- {prose(line)}" for line in lines)
        case Facts(lines):
            yield "\n".join(f"- {prose(name)}: {prose(value)}" for name, value in lines)
        case Table():
            yield f"### {prose(part.title)}"
            yield part.body()
            yield from map(prose, part.notes)
        case Quoted(about, text):
            yield f"{prose(about)}:"
            yield quotation(text)
        case Folded(title, parts):
            yield f"### {prose(title)}"
            for inner in parts:
                yield from _blocks(inner)
