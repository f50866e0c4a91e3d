"""What a report says of its folders, in the order of a busy reader's questions. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from judge.io.cells import count
from judge.plugins import added
from judge.report.folders import CalibrationFolder, ReportedFolder, RunFolder
from judge.report.parts import Content, ReportPart, Section
from judge.report.sections.agreement import agreements, verdicts
from judge.report.sections.beside import about, side_by_side
from judge.report.sections.boards import corrected_boards, leaderboards, sentence_labels
from judge.report.sections.counts import failures, rechecked, statuses
from judge.report.sections.inputs import submissions
from judge.report.sections.making import made, spent
from judge.report.sections.summary import summary


def compose(
    folders: Sequence[ReportedFolder],
    made_of: Sequence[tuple[str, str]],
    between: Mapping[str, Sequence[ReportPart]] = MappingProxyType({}),
) -> Content:
    """The whole report.

    Args:
        folders: One folder, or several that are set side by side.
        made_of: For `Content.made_of`.
        between: Of several, by criterion, what is said of how far their grades agree.
    """
    several = len(folders) > 1
    sections: list[Section] = []
    if several:
        sections += side_by_side(folders, between)
    for number, folder in enumerate(folders, start=1):
        for section in _of(folder):
            name = f"{section.name}-in-{number}" if several else section.name
            sections.append(msgspec.structs.replace(section, name=name, group=folder.name if several else ""))
    title = folders[0].name if not several else " · ".join(folder.name for folder in folders)
    said = about(folders[0]) if not several else f"{count(len(folders), 'output folder')} side by side."
    return Content(title, said, tuple(sections), tuple(made_of))


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
