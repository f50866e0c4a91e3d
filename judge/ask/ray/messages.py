"""What the driver and its workers say to each other. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment
from judge.ask.silence import Heard
from judge.ask.tasks import Task
from judge.errors import TransientError
from judge.models.journal import RecordedAnswer
from judge.models.model import Unfinished
from judge.models.records import Completion, Request
from judge.models.spending import CallFacts
from judge.pool.records import Pool
from judge.runs.records import Turn


class ShardTasks(NamedTuple):
    """To a worker: judge these."""

    tasks: tuple[Task, ...]
    pool: Pool
    """Nothing but the passages of the tasks."""
    turns: Mapping[str, Turn]
    facts: Mapping[str, str]
    """What the journal knows of the judge."""
    heard: Heard | None
    """When the judge answered anybody; None if never."""


class Granted(NamedTuple):
    """To a worker: ask this question."""

    name: str


class Known(NamedTuple):
    """To a worker: this question is answered already."""

    name: str
    answer: RecordedAnswer


class Denied(NamedTuple):
    """To a worker: do not ask this question."""

    name: str
    error: Exception


class Kept(NamedTuple):
    """To a worker: this completion is on the disk."""

    digest: str


class Unkept(NamedTuple):
    """To a worker: this completion cannot be written."""

    digest: str
    error: BaseException


class Stop(NamedTuple):
    """To a worker: begin no call; those in flight are finished and kept."""


class WantedQuestion(NamedTuple):
    """From a worker: may this be asked?"""

    digests: tuple[str, ...]
    """Of the requests with which it can be asked, as for `QuestionClaims.claim`."""
    request: Request
    """The one that is to be sent."""

    @property
    def name(self) -> str:
        """What the answer names: a worker may want one question in several forms at once."""
        return f"{self.digests[0]} {self.request.form}"


class Unanswered(NamedTuple):
    """From a worker: this question brought no completion."""

    digest: str


class SentCompletion(NamedTuple):
    """From a worker: the completion of a question that was granted."""

    digest: str
    parameters: Mapping[str, Any]
    request: Request
    completion: Completion


class GivenUp(NamedTuple):
    """From a worker: a call was given up after its last attempt."""

    digest: str
    request: Request
    error: TransientError
    far: bool
    """Whether it has least to do with those before it in its shard."""
    waiting: int
    """Tasks of its shard that it has not begun."""


class Refused(NamedTuple):
    """From a worker: the judge refused a request for what this one is."""


class Fact(NamedTuple):
    """From a worker: something learned of the judge, for the journal."""

    key: str
    value: str


class Forgotten(NamedTuple):
    """From a worker: facts that are of no more use."""

    keys: tuple[str, ...]


class ShardDone(NamedTuple):
    """From a worker: every task of its shard is settled."""

    results: tuple[Judgment | Failure, ...]
    rests: Mapping[str, CallFacts]
    """What the results rest on, by digest."""


class ShardEnded(NamedTuple):
    """From a worker: its shard was given up."""

    error: Exception


ToWorker = ShardTasks | Granted | Known | Denied | Kept | Unkept | Stop
FromWorker = (
    WantedQuestion | Unanswered | SentCompletion | GivenUp | Refused | Fact | Forgotten | ShardDone | ShardEnded
)


class News(NamedTuple):
    """What a worker has to say, and how it does."""

    said: tuple[FromWorker, ...]
    progress: Progress | None
    """Of its shard, without servers; None between shards."""
    servers: tuple[tuple[str, int, str | None], ...]
    """Address, calls answered, and why it is set aside, of each of several servers."""
    unfinished: Unfinished
    """What it paid for without a completion."""


class Versions(NamedTuple):
    """What has to be the same on every node."""

    judge: str
    python: str
