"""Output folders of `judge run` beside each other: how far their judges agree on the responses that both graded."""

from collections.abc import Iterator, Sequence

import msgspec

from judge.calibrate.intake import same_grades
from judge.errors import JudgeError
from judge.extra.evaluate.jobs.qrels import QrelsPlan, compare_qrels
from judge.extra.evaluate.sets.grades import SetsAgreement
from judge.records import JudgedUnit, Scale
from judge.report.folders import ReportedFolder, RunFolder


class FoldersCompared(msgspec.Struct, frozen=True):
    """Two folders under one criterion."""

    first: str
    second: str
    """The folders' names in the report."""
    criterion: str
    agreement: SetsAgreement | str
    """How far the grades agree, or why they cannot be compared."""
    binary: bool
    """Whether the grades are compared as positive or not, since the scales differ."""
    unit: JudgedUnit
    """What both graded."""


def compare_folders(folders: Sequence[ReportedFolder]) -> tuple[FoldersCompared, ...]:
    """The first folder of `judge run` against each other one, under every criterion that both have."""
    return tuple(_compared([folder for folder in folders if isinstance(folder, RunFolder)]))


def _compared(folders: Sequence[RunFolder]) -> Iterator[FoldersCompared]:
    for other in folders[1:]:
        first = folders[0]
        theirs = {criterion.name: criterion for criterion in other.judged.criteria}
        for ours in first.judged.criteria:
            if ours.name in theirs:
                scales = ours.scale, theirs[ours.name].scale
                binary = not same_grades(*scales)
                positive = (_worst_positive(scales[0]), _worst_positive(scales[1])) if binary else None
                agreement = _agreement(first, other, ours.name, positive)
                yield FoldersCompared(first.name, other.name, ours.name, agreement, binary, ours.unit)


def _worst_positive(scale: Scale) -> int:
    return min(scale.positive) if scale.polarity == "higher" else max(scale.positive)


def _agreement(
    first: RunFolder, other: RunFolder, criterion: str, positive: tuple[int, int] | None
) -> SetsAgreement | str:
    plan = QrelsPlan(
        a=first.judged.path,
        b=other.judged.path,
        criterion=criterion,
        positive=positive,
        cluster=first.judged.cluster,
    )
    try:
        return compare_qrels(plan).agreement
    except JudgeError as error:
        # Two pools are no reason to refuse the rest of the report.
        said = str(error)
        for folder in (first, other):
            said = said.replace(str(folder.judged.path), folder.name)
        return said
