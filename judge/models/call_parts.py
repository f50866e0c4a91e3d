"""What came back for parts of a call that a judge divides, until the call has a completion.

It is kept among the facts of the journal, so that neither a failure of a later part nor a crash costs a reply again.
"""

import hashlib

from judge.models.journal import Journal


class CallParts:
    """The parts of all calls to one judge."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: set[str] = set()
        """Digests of calls of which the journal keeps parts."""
        self._finished: list[str] = []

    def read(self, digest: str) -> str | None:
        """What is kept of a call; None if that is nothing, or if it is not what was kept."""
        fact = self._journal.meta(parts_key(digest))
        if not fact:
            return None
        self._kept.add(digest)
        seal, _, text = fact.partition(" ")
        return text if seal == _seal(digest, text) else None

    def write(self, digest: str, text: str) -> None:
        """Keep this of a call in place of what was kept before; it is on the disk then.

        Raises:
            OperationalError: The journal cannot be written.
        """
        self._kept.add(digest)
        self._journal.set_meta(parts_key(digest), f"{_seal(digest, text)} {text}")
        self.forget()

    def finished(self, digest: str) -> None:
        """The completion of a call is in the journal, so its parts are of no more use."""
        if digest in self._kept:
            self._kept.discard(digest)
            self._finished.append(digest)

    def forget(self) -> None:
        """Remove the parts of the calls that are finished.

        Raises:
            OperationalError: The journal cannot be written.
        """
        finished, self._finished = self._finished, []
        if finished:
            self._journal.drop_meta([parts_key(digest) for digest in finished])


def parts_key(digest: str) -> str:
    """The name of this fact about a call."""
    return f"parts:{digest}"


def _seal(digest: str, text: str) -> str:
    """The checksum of what is kept of a call."""
    return hashlib.sha256(f"{digest} {text}".encode()).hexdigest()
