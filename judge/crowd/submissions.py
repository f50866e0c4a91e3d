"""Prolific's list of submissions beside a survey: whose submission does not count, has no vote."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from judge.crowd.frames import LabelSheet
from judge.crowd.platforms import text_of
from judge.crowd.problems import LabelProblems
from judge.records import Problem
from judge.text.cells import count
from judge.text.safe import shown

if TYPE_CHECKING:
    import polars as pl

_NAMES = (("Participant id", "Status", "Submission id"), ("participant_id", "status", "session_id"))
"""Columns of participant and status, and one more by which the export is known, today and in older exports."""
_LEFT_OUT = ("rejected", "returned", "timed-out", "timed out")


def are_submissions(names: Collection[str]) -> bool:
    """Whether a table with these columns is Prolific's list of submissions."""
    return any(set(known) <= set(names) for known in _NAMES)


def without_left_out(
    frames: Sequence["pl.DataFrame"], submissions: Sequence[LabelSheet], problems: LabelProblems
) -> list["pl.DataFrame"]:
    """The rows of labels without those of participants who were rejected, returned the task or ran out of time.

    A participant who also has a submission that counts stays. Workers whom no list names stay, with a warning; if no
    list names any of them, that is an error.

    Args:
        frames: Rows of labels with a column `worker`.
        submissions: The lists.
        problems: Takes warnings.
    """
    if not submissions:
        return list(frames)
    listed: dict[str, set[str]] = {}
    for sheet in submissions:
        worker, status, _ = next(names for names in _NAMES if set(names) <= set(sheet.frame.columns))
        cells = sheet.frame.select(worker=text_of(worker), status=text_of(status).str.to_lowercase())
        for name, value in cells.iter_rows():
            listed.setdefault(name, set()).add(value)
    out = {name for name, values in listed.items() if values <= set(_LEFT_OUT)}
    workers = {name for frame in frames for name in frame.select(text_of("worker")).to_series().unique()}
    file = ", ".join(sheet.file for sheet in submissions)
    if frames and not workers & listed.keys():
        example = ", ".join(map(shown, sorted(workers)[:3]))
        message = f"lists none of the workers of the labels ({example} …): name their column, --column worker=NAME"
        problems.append(Problem("unknown_worker", "error", file, None, "", message))
        return list(frames)
    if strange := sorted(workers - listed.keys() - {""}):
        message = f"{count(len(strange), 'worker')} of the labels not listed, such as {shown(strange[0])}; they stay"
        problems.append(Problem("unknown_worker", "warning", file, None, "", message))
    kept = [frame.filter(~text_of("worker").is_in(list(out))) for frame in frames]
    lost = sum(frame.height for frame in frames) - sum(frame.height for frame in kept)
    if gone := sorted(out & workers):
        message = (
            f"{count(lost, 'label')} of {count(len(gone), 'participant')} left out, who were rejected, returned the "
            f"task or ran out of time, such as {shown(gone[0])}"
        )
        problems.append(Problem("row_left_out", "warning", file, None, "", message))
    return kept
