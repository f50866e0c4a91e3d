"""When a run ends because its judge does not answer. Pure."""

from judge.ask.settings import Settings
from judge.errors import OperationalError, TransientError
from judge.models.records import Request

_FEWEST = 3
"""Least calls given up in a row after which a judge is believed to be dead that has answered nothing."""
_UNREADABLE = 20
"""The same where it has answered others: some texts may be such that no judge can read them."""


class StopRule:
    """Counts the calls to one judge that were given up in a row, and says when there are enough.

    Args:
        judge: The name of the judge.
        settings: A run that makes more calls at once gives up more of them in a row.
    """

    def __init__(self, judge: str, settings: Settings) -> None:
        self._judge = judge
        self._settings = settings
        self._row = 0
        self._answered = False
        """Whether the judge has answered a question, in this run or in the journal."""
        self._refused = False
        """Whether it has refused a request for what the request is."""
        self._error: OperationalError | None = None

    @property
    def row(self) -> int:
        """How many calls were given up since the last answer."""
        return self._row

    def recalled(self) -> None:
        """The journal holds an answer of the judge."""
        self._answered = True

    def answered(self) -> None:
        """The judge has answered a call."""
        self._row, self._answered = 0, True

    def refused(self) -> None:
        """The judge has refused a request for what the request is."""
        self._refused = True

    def given_up(self, error: TransientError, request: Request) -> OperationalError | None:
        """Count a call that was given up.

        Args:
            error: Its last failure.
            request: The request.

        Returns:
            The error that is to end the run; None while the run is to go on.
        """
        self._row += 1
        self._error = OperationalError(
            f"{self._judge} does not answer: {self._row} calls in a row were given up after {self._settings.attempts} "
            f"attempts each, the last: {error}{self.about(request)}"
        )
        fewest = _UNREADABLE if self._answered else _FEWEST
        return self._error if self._row >= max(fewest, self._settings.concurrency) else None

    def at_the_end(self) -> OperationalError | None:
        """The error of a run that asked all and was never answered; it was too short to be ended before."""
        return None if self._answered or self._refused else self._error

    def about(self, request: Request) -> str:
        """Which response a call was about, where others had an answer: its text may be the cause."""
        if not self._answered:
            return ""
        return f"; others had an answer, and this call was about {request.response_id} of turn {request.turn_id}"
