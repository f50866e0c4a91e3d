"""The report as one Markdown file with its pictures in it, for the appendix of a paper."""

import base64
from collections.abc import Iterator, Sequence

import msgspec

from judge.calibrate.report.lookup import best_first, criteria, of
from judge.calibrate.report.plots import confusion_maps, forest, raw_vs_corrected
from judge.io.draw import interval_plot
from judge.io.ids import safe_names
from judge.io.table import Table
from judge.io.text import count, name_of, prose, quotation
from judge.records import Estimate
from judge.report.folders import ReportedFolder, RunFolder
from judge.report.parts import Content, Facts, Folded, Noted, Quoted, ReportPart, Said, Section
from judge.results.citations import boards_of
from judge.results.leaderboard import by_criterion
from judge.results.rows import worded

MOST_LINES = 500
"""The most lines of a table that is drawn: more of them fit on no paper, and the drawing takes minutes."""


class Picture(msgspec.Struct, frozen=True):
    """One picture in two forms."""

    section: str
    """Name of the section that it belongs to."""
    name: str
    """Name of its file, without an ending."""
    about: str
    """What it shows, for whoever cannot see it."""
    svg: bytes
    png: bytes


def report_markdown(content: Content, pictures: Sequence[Picture]) -> bytes:
    """The file; texts of strangers show as they are and are never markup."""
    blocks = [f"# {prose(content.title)}", prose(content.lead)]
    for section in content.sections:
        blocks.append(f"## {prose(section.title + (f', {section.group}' if section.group else ''))}")
        for part in section.parts:
            blocks += _blocks(part)
        for picture in pictures:
            if picture.section == section.name:
                data = base64.b64encode(picture.png).decode()
                blocks.append(f"![{prose(picture.about)}](data:image/png;base64,{data})")
    known = [(name_of(record), digest) for record, digest in content.made_of if digest]
    sources = "; ".join(f"{record} with the SHA-256 `{digest}`" for record, digest in known)
    blocks += [f"Made from {sources}."] if sources else []
    return "".join(f"{block}\n\n" for block in blocks).removesuffix("\n").encode()


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
            yield from map(prose, part.captions())
        case Quoted(about, text):
            yield f"{prose(about)}:"
            yield quotation(text)
        case Folded(title, parts):
            yield f"### {prose(title)}"
            for inner in parts:
                yield from _blocks(inner)


def pictures(folders: Sequence[ReportedFolder], content: Content) -> tuple[Picture, ...]:
    """Every picture, in the order of the sections."""
    drawn = [
        msgspec.structs.replace(picture, section=picture.section + end, name=picture.name + end)
        for number, folder in enumerate(folders, start=1)
        for end in (f"-in-{number}" if len(folders) > 1 else "",)
        for picture in (*_of(folder), *_breakdowns([s for s in content.sections if s.name.endswith(end)], end))
    ]
    order = {section.name: place for place, section in enumerate(content.sections)}
    return tuple(sorted(drawn, key=lambda picture: order[picture.section]))


def _of(folder: ReportedFolder) -> Iterator[Picture]:
    if isinstance(folder, RunFolder):
        slugs = safe_names(criterion.name for criterion in boards_of(folder.judged.criteria))
        for name, rows in by_criterion(folder.tables.leaderboard):
            if not any(row.n for row in rows):
                continue
            means = [(row.run_id, row.mean) for row in rows]
            forms = interval_plot(means, "mean grade", f"{name} by run", worded("turns", folder.judged.pool.unit))
            about = f"Mean grades of {count(len(rows), 'run')} under {name} with 95 % intervals, as in the table."
            yield _picture(f"leaderboard-{slugs[name]}", about, forms)
        if folder.corrected is not None and not isinstance(folder.corrected, str):
            about = "Each run's mean by the judge and as gold corrects it; the tables have the numbers."
            yield _picture("corrected", about, raw_vs_corrected(folder.corrected.rows))
    calibration = folder.compared if isinstance(folder, RunFolder) else folder.calibration
    if calibration is None:
        return
    slugs = safe_names(criteria(calibration))
    for name in criteria(calibration):
        if found := best_first(of(calibration.agreement, name)):
            cluster = "topic" if calibration.cluster is msgspec.UNSET else calibration.cluster
            about = f"Agreement of each judge with people under {name}, with 95 % intervals; the table has the numbers."
            yield _picture(f"agreement-{slugs[name]}", about, forest(found, found[0].primary, cluster))
            about = f"For each judge under {name}, how often it gives which grade where people give which."
            yield _picture(f"agreement-{slugs[name]}", about, confusion_maps(found), f"confusion-{slugs[name]}")


def _breakdowns(sections: Sequence[Section], end: str) -> Iterator[Picture]:
    """The tables by topic and by depth, drawn: a picture for each criterion; none of a table of very many lines."""
    for section in sections:
        kind = section.name.removesuffix(end)
        if kind not in ("by-topic", "by-depth"):
            continue
        sheets = [part for part in section.parts if isinstance(part, Table)]
        for number, sheet in enumerate(sheets, start=1):
            if len(sheet) > MOST_LINES:
                continue
            rows = [(str(line[0]), next(cell for cell in line if isinstance(cell, Estimate))) for line in sheet]
            name = kind if len(sheets) == 1 else f"{kind}-{number}"
            about = f"{sheet.title}: the average of the better runs; the table has the numbers."
            forms = interval_plot(rows, "average grade", sheet.title, sheet.columns[1])
            yield _picture(kind, about, forms, name)


def _picture(section: str, about: str, forms: tuple[bytes, bytes], name: str = "") -> Picture:
    return Picture(section, name or section, about, *forms)
