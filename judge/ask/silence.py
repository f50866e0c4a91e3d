"""Whether a judge answers nothing at all, so that asking on would only cost time."""

from typing import Literal

from judge.ask.suspects import Suspects
from judge.errors import OperationalError, TransientError
from judge.models.journal import Journal
from judge.models.records import Request

Heard = Literal["before", "now"]
"""When a judge answered: before this run, as the journal shows, or in it."""
_FEWEST = 3
"""Least calls in a row after which a judge is believed to be silent."""


class Silence:
    """Counts the calls to one judge that were given up in a row.

    Args:
        judge: The name of the judge.
        journal: Keeps the requests that were given up while the judge answered others.
        concurrency: Most calls in flight; so many in a row, one of them from elsewhere in the pool, show that the
            judge is silent.
        attempts: Most attempts of a call, for the message.
    """

    def __init__(self, judge: str, journal: Journal, concurrency: int, attempts: int) -> None:
        self._judge = judge
        self._enough = max(_FEWEST, concurrency)
        self._attempts = attempts
        self.suspects = Suspects(journal, judge)
        """The requests that may themselves be why they are given up; they count for nothing here."""
        self._row = 0
        self._far = False
        """Whether one of the row is from elsewhere in the pool."""
        self._answered = False
        """Whether the judge has answered a call."""
        self._remembered = False
        """Whether it had answered one before."""
        self._refused = False
        """Whether it has refused a request for what this one is."""
        self._error: OperationalError | None = None

    @property
    def doubted(self) -> bool:
        """Whether the last call was given up, so that a text from another part of the pool is to be tried."""
        return self._row > 0

    @property
    def heard(self) -> Heard | None:
        """When the judge answered; None if never."""
        return "now" if self._answered else "before" if self._remembered else None

    def answered(self) -> None:
        """The judge has answered a call."""
        self._row, self._far, self._answered = 0, False, True

    def remembered(self) -> None:
        """The journal holds an answer of the judge."""
        self._remembered = True

    def refused(self) -> None:
        """The judge has refused a request for what this one is."""
        self._refused = True

    def given_up(
        self, error: TransientError, digest: str, request: Request, *, far: bool, total: int, waiting: int
    ) -> OperationalError | None:
        """Count a call that was given up.

        Args:
            error: Its last failure.
            digest: The digest of its request.
            request: The request.
            far: Whether it has least to do with those before it.
            total: All judgments of the run.
            waiting: Those of them that nobody has begun.

        Returns:
            The error that is to end the run; None while it is to go on.
        """
        if digest in self.suspects:
            return None
        if self._answered:
            self.suspects.add(digest)
        self._row += 1
        self._far = self._far or far
        self._error = OperationalError(
            f"{self._judge} does not answer: {self._row} calls in a row were given up after {self._attempts} attempts "
            f"each, the last: {error}{self.about(request)}"
        )
        # Where others had an answer and none is left to be asked, ending the run would save nothing.
        useless = not waiting and (self._answered or self._remembered)
        # Neighbors alone may have a text in common that no judge can read.
        certain = self._row >= min(self._enough, total) and (self._far or not waiting)
        return self._error if certain and not useless else None

    def at_the_end(self) -> OperationalError | None:
        """The error of a run that asked all and heard nothing; it had too few different requests to be ended before."""
        return None if self._answered or self._remembered or self._refused else self._error

    def about(self, request: Request) -> str:
        """Which response a call was about, where others had an answer, so that it may be this one's doing."""
        if not (self._answered or self._remembered):
            return ""
        return f"; others had an answer, and this call was about {request.response_id} of turn {request.turn_id}"
