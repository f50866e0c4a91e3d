"""Silence of a judge that many workers ask: a worker says what it gave up, and the driver alone ends the run."""

from collections.abc import Callable

from judge.ask.ray.messages import FromWorker, GivenUp, Refused
from judge.ask.silence import Heard, Silence
from judge.errors import OperationalError, TransientError
from judge.models.journal import Journal
from judge.models.records import Request


class WorkerSilence(Silence):
    """What a worker counts of its own calls; it ends nothing, because others may be answered meanwhile.

    Args:
        judge: The name of the judge.
        journal: Keeps the suspects.
        heard: When the judge answered anybody.
        say: Gives something to the driver.
    """

    def __init__(self, judge: str, journal: Journal, heard: Heard | None, say: Callable[[FromWorker], None]) -> None:
        super().__init__(judge, journal, 1, 1)
        self._say = say
        if heard == "before":
            self.remembered()
        elif heard == "now":
            self.answered()

    def refused(self) -> None:
        """Tell the driver that the judge has refused a request for what this one is."""
        self._say(Refused())

    def given_up(
        self, error: TransientError, digest: str, request: Request, *, far: bool, total: int, waiting: int
    ) -> None:
        """Tell the driver of a call that was given up."""
        super().given_up(error, digest, request, far=far, total=total, waiting=waiting)
        self._say(GivenUp(digest, request, error, far, waiting))

    def at_the_end(self) -> None:
        """The end of a shard shows nothing."""


class SpreadSilence(Silence):
    """What the driver counts of all workers' calls.

    Calls about one of several turns never show that the judge is silent: their worker has nothing else to ask.
    """

    one_turn = False
    """Whether all calls are about one turn."""
    _turn = ""

    def add(self, given_up: GivenUp, total: int, waiting: int) -> OperationalError | None:
        """Count a call; arguments and error are those of `given_up`."""
        if not self.doubted:
            self._turn = given_up.request.turn_id
        far = given_up.far if self.one_turn else given_up.request.turn_id != self._turn
        return self.given_up(given_up.error, given_up.digest, given_up.request, far=far, total=total, waiting=waiting)
