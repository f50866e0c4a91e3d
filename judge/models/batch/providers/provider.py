"""What the API of a provider's batches has to do."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol


class BatchStatus(NamedTuple):
    """How far a batch is."""

    status: str
    """In the words of the provider."""
    ended: bool
    """Whether nothing more will come."""
    completed: int = 0
    failed: int = 0
    outputs: tuple[str, ...] = ()
    """What can be fetched: ids or addresses of files of lines. A batch may end without any."""
    problems: tuple[str, ...] = ()
    """Why the provider refused the file, in its words."""


class Provider(Protocol):
    """The API of batches of one provider; every method raises a JudgeError if the API refuses."""

    def upload(self, path: Path) -> str | None:
        """Bring a file to the provider, which costs nothing yet; its id, or None where a batch brings its own lines."""

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch, and give its id."""

    def find(self, file_id: str | None, lines: int, since: datetime, known: Collection[str]) -> tuple[str, ...]:
        """The batches that a submission which was cut short may have begun.

        Args:
            file_id: What the file was uploaded as.
            lines: How many requests it has.
            since: When the submission began.
            known: Batches that belong to other files.
        """

    def look(self, batch_id: str) -> BatchStatus:
        """How far a batch is."""

    def fetch(self, output: str, path: Path) -> None:
        """Write the lines of an output to a file."""

    def close(self) -> None:
        """Close the connections."""
