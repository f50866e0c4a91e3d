"""When a judge is believed to be dead: by the calls to it that were given up in a row. Pure."""

from judge.ask.account import Settings
from judge.errors import OperationalError, TransientError
from judge.judges.records import Request

_FEWEST = 3
"""Least calls given up in a row after which a judge is believed to be dead that has answered nothing."""
_UNREADABLE = 20
"""The same where it has answered others: some texts may be such that no judge can read them."""


class Silence:
    """Whether a judge still answers."""

    def __init__(self, judge: str, settings: Settings) -> None:
        self._judge = judge
        self._settings = settings
        self.given_up = 0
        """Calls given up since the last answer."""
        self.heard = False
        """Whether the judge has answered a question, in this run or in the journal."""
        self._error: OperationalError | None = None
        """The error of a run in which the judge answers nothing."""
        self._refused = False
        """Whether the judge has refused a request for what the request is."""

    def answered(self) -> None:
        """Count an answer."""
        self.given_up = 0
        self.heard = True

    def refused(self) -> None:
        """Count a request that was refused for what it is."""
        self._refused = True

    def give_up(self, error: TransientError, request: Request) -> OperationalError | None:
        """Count a call that was given up; the error of the run once no answer is to be expected."""
        self.given_up += 1
        self._error = OperationalError(
            f"{self._judge} does not answer: {self.given_up} calls in a row were given up after "
            f"{self._settings.attempts} attempts each, the last: {error}{self.about(request)}"
        )
        fewest = max(_UNREADABLE if self.heard else _FEWEST, self._settings.concurrency)
        return self._error if self.given_up >= fewest else None

    def check(self) -> None:
        """Raise that none of the calls was answered, where some were made and none was refused."""
        if self._error is not None and not (self.heard or self._refused):
            raise self._error

    def about(self, request: Request) -> str:
        """Which response a call was about, where others had an answer: its text may be the cause."""
        if not self.heard:
            return ""
        return f"; others had an answer, and this call was about {request.response_id} of turn {request.turn_id}"
