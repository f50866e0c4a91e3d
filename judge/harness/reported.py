"""A report beside the results that it shows: it goes when they change, so that none tells of earlier ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge.files.folder import remove_recorded

REPORT_RECORD = "report.sha256"
"""The list of the files of a report, for `sha256sum -c`."""


@contextmanager
def reported(out: Path, record: str) -> Iterator[None]:
    """While a job writes a folder: remove the folder's report if the job leaves other files than were there before.

    Args:
        out: The folder.
        record: The job's own list of files with their digests.
    """
    before = _content(out / record)
    yield
    if _content(out / record) != before:
        remove_recorded(out, REPORT_RECORD)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
