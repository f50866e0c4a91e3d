"""A place for one worker at a time: its part of the limits, the shard that it has, and how it does. Pure."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from judge.ask.progress import Progress
from judge.ask.ray.messages import News
from judge.ask.ray.shards import part_of
from judge.ask.settings import Settings
from judge.models.endpoints import Endpoint
from judge.models.model import Unfinished

if TYPE_CHECKING:
    from judge.ask.ray.cluster import WorkerHandle

Servers = tuple[tuple[str, int, str | None], ...]
"""Address, calls answered, and why it is set aside, of each of several servers."""


class WorkerPlace:
    """One of several places.

    Args:
        number: Its number, from 0.
        places: How many there are.
    """

    def __init__(self, number: int, places: int) -> None:
        self._number = number
        self._places = places
        self.worker: WorkerHandle | None = None
        self.shard: tuple[tuple[int, ...], ...] = ()
        """The numbers of the tasks that its worker has, by turn."""
        self.waiting = 0
        """Tasks of the shard that nobody had begun when the worker last said so."""
        self.progress: Progress | None = None
        """Of that shard."""
        self._servers: Servers = ()
        self._servers_before: Servers = ()
        self._unfinished = Unfinished()
        self._unfinished_before = Unfinished()

    @property
    def numbers(self) -> list[int]:
        """The numbers of the tasks of the shard."""
        return [number for turn in self.shard for number in turn]

    @property
    def unbegun(self) -> int:
        """Most tasks of the shard that nobody has begun."""
        done = 0 if self.progress is None else self.progress.done
        return max(0, min(self.waiting, len(self.numbers) - done))

    @property
    def servers(self) -> Servers:
        """How each of several servers does, as this place's workers saw it."""
        return (*self._servers_before, *self._servers)

    @property
    def unfinished(self) -> Unfinished:
        """What this place's workers paid for without a completion."""
        return self._unfinished_before.plus(self._unfinished)

    def part(self, settings: Settings) -> Settings:
        """This place's part of the limits; the budget is the driver's."""
        return msgspec.structs.replace(
            settings,
            concurrency=part_of(settings.concurrency, self._number, self._places),
            rpm=self._part(settings.rpm),
            tpm=self._part(settings.tpm),
            max_cost=None,
        )

    def note(self, news: News) -> None:
        """Take note of how the worker does."""
        self.progress, self._servers, self._unfinished = news.progress, news.servers, news.unfinished

    def forget(self) -> None:
        """The worker is lost; what it did stays."""
        self._servers_before = tuple((url, answered, None) for url, answered, _ in self.servers)
        self._unfinished_before = self.unfinished
        self._servers, self._unfinished, self.progress = (), Unfinished(), None

    def _part(self, limit: int | None) -> int | None:
        return None if limit is None else part_of(limit, self._number, self._places)


def together(several: Iterable[Unfinished]) -> Unfinished:
    """The sum."""
    total = Unfinished()
    for one in several:
        total = total.plus(one)
    return total


def servers_of(several: Iterable[Servers]) -> tuple[Endpoint, ...]:
    """How each server does by all workers; one is set aside where any of them has set it aside."""
    found: dict[str, Endpoint] = {}
    for servers in several:
        for url, answered, trouble in servers:
            server = found.setdefault(url, Endpoint(url))
            server.answered += answered
            server.trouble = server.trouble or trouble
    return tuple(found.values())
