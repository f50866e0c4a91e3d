"""A report on output folders, as pages and as one Markdown file: what `judge report` does, for use from Python."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec

from judge.calibrate.findings import TrustVerdict
from judge.calibrate.report.lookup import best_first, criteria, of
from judge.calibrate.report.plots import confusion_maps, forest, raw_vs_corrected
from judge.errors import UsageError
from judge.gold.seal import GOLD_FILES
from judge.io.draw import interval_plot
from judge.io.folder import make_folder, replace_folder, same_place
from judge.io.ids import groups_of, safe_names
from judge.io.installed import has_extra, undrawn
from judge.io.plan import Option, in_folders
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Table
from judge.io.text import count, name_of, prose, quotation
from judge.jobs.manifest import REPORT_RECORD
from judge.jobs.options import GoldFiles, OwnPrompts
from judge.plugins import added
from judge.records import Estimate
from judge.report import Content, Facts, Folded, Noted, Quoted, ReportPart, Said, Section
from judge.report.folders import (
    CalibrationFolder,
    ReportedFolder,
    RunFolder,
    folder_names,
    is_calibration,
    read_folder,
    record_of,
)
from judge.report.page import browse, report_page
from judge.report.sections.boards import (
    agreements,
    corrected_boards,
    leaderboards,
    sentence_labels,
    used,
    verdicts,
)
from judge.report.sections.counts import failures, rechecked, statuses, submissions
from judge.report.sections.making import made, spent
from judge.report.sections.summary import about, side_by_side, summary
from judge.results.citations import boards_of
from judge.units import UNITS

PAGE = "report.html"
MARKDOWN = "report.md"
_IN_SUMMARY = ("summary", "all-folders", "side-by-side-", "leaderboard-", "corrected")
"""What the names of the sections of a summary begin with."""


class ReportPlan(OwnPrompts, GoldFiles):
    """Everything `judge report` can be told."""

    folders: Annotated[tuple[Path, ...], Option(metavar="OUT", place="only")]
    """Output folders of `judge run` or `judge calibrate`."""
    criterion: Annotated[str | None, Option(metavar="NAME")] = None
    """Only this criterion."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Where the report goes (default: into OUT, if it is one folder)."""
    page_only: Annotated[bool, Option(hidden=True)] = False
    """Whether only the page is written, without Markdown and pictures, whose drawing takes longest."""


class ReportOutcome(msgspec.Struct, frozen=True):
    """What was written."""

    out: Path
    files: tuple[str, ...]
    """Names in the folder, the page first."""
    content: Content
    warnings: tuple[str, ...]
    """A line for each prompt file that has changed since, and one for pictures that are not drawn."""

    @property
    def page(self) -> Path:
        """The page to open."""
        return self.out / PAGE


def write_report(plan: ReportPlan, steps: Steps = quiet) -> ReportOutcome:
    """Write the report.

    A UsageError if the plan asks for what cannot be done. An InputError if a folder is not finished, or a file is
    damaged. An OperationalError if the report cannot be written.
    """
    if len(plan.folders) > 1 and plan.out is None:
        raise UsageError("several folders side by side: --out DIR says where their report goes")
    plan, folders, content = _read(plan, steps)
    steps(Step("listing judgments"))
    shown = {folder.name: folder.judged if isinstance(folder, RunFolder) else folder.path for folder in folders}
    browser = browse(shown, plan.gold, plan.criterion, plan.prompts, plan.columns)
    files = {PAGE: report_page(content, browser)}
    warnings = tuple(line for folder in folders if isinstance(folder, RunFolder) for line in folder.judged.warnings)
    if not plan.page_only:
        steps(Step("drawing"))
        drawn = pictures(folders, content) if has_extra("pictures") else ()
        warnings += undrawn("pictures of the tables")
        files[MARKDOWN] = report_markdown(content, drawn)
        files |= {f"report/{picture.name}.svg": picture.svg for picture in drawn}
    out = plan.out or plan.folders[0]
    steps(Step("writing"))
    make_folder(out)
    replace_folder(out, files, REPORT_RECORD, inputs=plan.gold)
    return ReportOutcome(out, tuple(files), content, warnings)


def summary_text(plan: ReportPlan, steps: Steps = quiet) -> str:
    """The verdicts and the leaderboards of folders as Markdown; errors as those of `write_report`."""
    content = _read(plan, steps)[2]
    shown = tuple(section for section in content.sections if section.name.startswith(_IN_SUMMARY))
    return report_markdown(msgspec.structs.replace(content, sections=shown), ()).decode()


def _read(plan: ReportPlan, steps: Steps) -> tuple[ReportPlan, list[ReportedFolder], Content]:
    """The plan with the files of its folders of gold, the folders, and what is said of them."""
    _check(plan, plan.folders)
    plan = in_folders(plan, gold=GOLD_FILES)
    paths = list(zip(plan.folders, folder_names(plan.folders), strict=True))
    folders: list[ReportedFolder] = []
    verdicts: list[TrustVerdict] = []
    made_of: list[tuple[str, str]] = []
    for path, name in stepped("reading folders", paths, steps):
        folder = read_folder(path, name, plan.gold, plan.criterion, plan.prompts, plan.columns)
        folders.append(folder)
        if isinstance(folder, CalibrationFolder):
            verdicts += folder.calibration.verdicts
        record, digest = record_of(path)
        made_of.append((f"{name}/{record}" if len(paths) > 1 else record, digest))
    for number, folder in enumerate(folders):
        if isinstance(folder, RunFolder) and folder.compared is None:
            folders[number] = msgspec.structs.replace(folder, judged=folder.judged.beside(verdicts))
    between: dict[str, Sequence[ReportPart]] = {}
    for make in added("folders", ()).values():
        between |= make(folders)
    return plan, folders, compose(folders, made_of, between)


def _check(plan: ReportPlan, folders: Sequence[Path]) -> None:
    if not folders:
        raise UsageError("no folder is named: expected output folders of `judge run` or `judge calibrate`")
    for place, folder in enumerate(folders):
        if any(same_place(folder, earlier) for earlier in folders[:place]):
            raise UsageError(f"{folder}: named twice")
        if plan.gold and is_calibration(folder):
            raise UsageError(f"{folder}: a calibration has its own gold: --gold is for folders of `judge run`")


def compose(
    folders: Sequence[ReportedFolder],
    made_of: Sequence[tuple[str, str]],
    between: Mapping[str, Sequence[ReportPart]] = MappingProxyType({}),
) -> Content:
    """The whole report.

    `between`: of several, by criterion, what is said of how far their grades agree.
    """
    several = len(folders) > 1
    sections: list[Section] = []
    if several:
        sections += side_by_side(folders, between)
    for number, folder in enumerate(folders, start=1):
        for section in _of(folder):
            name = f"{section.name}-in-{number}" if several else section.name
            sections.append(msgspec.structs.replace(section, name=name, group=folder.name if several else ""))
    return Content(
        title=" · ".join(folder.name for folder in folders),
        lead=f"{count(len(folders), 'output folder')} side by side." if several else about(folders[0]),
        sections=tuple(sections),
        made_of=tuple(made_of),
    )


def _of(folder: ReportedFolder) -> Iterator[Section]:
    if isinstance(folder, CalibrationFolder):
        yield Section("summary", "In short", verdicts(folder.calibration))
        yield from agreements(folder.calibration)
        return
    for make in RUN_SECTIONS:
        yield from make(folder)


def _against_gold(folder: RunFolder) -> Iterator[Section]:
    if folder.compared is not None:
        yield Section("verdict", "How far to believe the judge", verdicts(folder.compared))
        yield from agreements(folder.compared)


RUN_SECTIONS: tuple[Callable[[RunFolder], Iterator[Section]], ...] = (
    summary,
    leaderboards,
    used,
    sentence_labels,
    corrected_boards,
    _against_gold,
    statuses,
    rechecked,
    spent,
    *added("sections", ()).values(),
    submissions,
    failures,
    made,
)
"""The sections on a folder of `judge run`, in their order; one that has nothing to say gives none."""


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
    sources = [f"{name_of(record)} with the SHA-256 `{digest}`" for record, digest in content.made_of if digest]
    if sources:
        blocks.append(f"Made from {'; '.join(sources)}.")
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
    drawn = []
    for number, folder in enumerate(folders, start=1):
        end = f"-in-{number}" if len(folders) > 1 else ""
        sections = [section for section in content.sections if section.name.endswith(end)]
        for picture in (*_drawn(folder), *_breakdowns(sections, end)):
            drawn.append(msgspec.structs.replace(picture, section=picture.section + end, name=picture.name + end))
    order = {section.name: index for index, section in enumerate(content.sections)}
    return tuple(sorted(drawn, key=lambda picture: order[picture.section]))


def _drawn(folder: ReportedFolder) -> Iterator[Picture]:
    if isinstance(folder, RunFolder):
        slugs = safe_names(criterion.name for criterion in boards_of(folder.judged.criteria))
        for name, rows in groups_of((row.criterion, row) for row in folder.tables.leaderboard).items():
            if not any(row.counts["n"] for row in rows):
                continue
            means = [(row.run_id, row.mean) for row in rows]
            forms = interval_plot(means, "mean grade", f"{name} by run", UNITS[folder.judged.pool.unit].nouns.turns)
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
        judges = best_first(of(calibration.agreement, name))
        if judges:
            cluster = "topic" if calibration.cluster is msgspec.UNSET else calibration.cluster
            about = f"Agreement of each judge with people under {name}, with 95 % intervals; the table has the numbers."
            yield _picture(f"agreement-{slugs[name]}", about, forest(judges, judges[0].primary, cluster))
            about = f"For each judge under {name}, how often it gives which grade where people give which."
            yield _picture(f"agreement-{slugs[name]}", about, confusion_maps(judges), f"confusion-{slugs[name]}")


def _breakdowns(sections: Sequence[Section], end: str) -> Iterator[Picture]:
    """The tables by topic and by depth, drawn: a picture for each criterion."""
    for section in sections:
        kind = section.name.removesuffix(end)
        if kind not in ("by-topic", "by-depth"):
            continue
        sheets = [part for part in section.parts if isinstance(part, Table)]
        for number, sheet in enumerate(sheets, start=1):
            rows = [(str(line[0]), next(cell for cell in line if isinstance(cell, Estimate))) for line in sheet]
            name = kind if len(sheets) == 1 else f"{kind}-{number}"
            about = f"{sheet.title}: the average of the better runs; the table has the numbers."
            forms = interval_plot(rows, "average grade", sheet.title, sheet.names[1])
            yield _picture(kind, about, forms, name)


def _picture(section: str, about: str, forms: tuple[bytes, bytes], name: str = "") -> Picture:
    svg, png = forms
    return Picture(section=section, name=name or section, about=about, svg=svg, png=png)
