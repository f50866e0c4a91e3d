"""What a long job says of its progress, as it goes: the step it is at, and how much of that is done. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

from judge.io.cells import count

_Item = TypeVar("_Item")


class Step(NamedTuple):
    """How far a job is with one of its steps."""

    what: str
    """What is being done, such as `reading runs`."""
    done: int = 0
    total: int = 0
    """What there is to do; 0 where nobody knows."""
    unit: Literal["", "bytes"] = ""
    free: int = 0
    """The part of `done` that took no time, such as judgments from a journal."""
    note: str = ""
    """What else to say, such as the cost so far."""


Steps = Callable[[Step], None]
"""What a job calls as it goes, from any thread; it costs too little to be saved."""


def quiet(step: Step) -> None:
    """Say nothing of a job's progress."""


def stepped(what: str, items: Collection[_Item], steps: Steps) -> Iterator[_Item]:
    """The items one after the other, each counted as done when the next one is asked for."""
    return counted(what, items, len(items), steps)


def counted(what: str, items: Iterable[_Item], total: int, steps: Steps) -> Iterator[_Item]:
    """As `stepped`, of items whose number is known beforehand."""
    steps(Step(what, 0, total))
    for done, item in enumerate(items, 1):
        yield item
        steps(Step(what, done, total))


def told(step: Step, seconds: float, since: int = 0) -> str:
    """How far a step is, at what rate, and how long the rest will take.

    Args:
        step: The step.
        seconds: The time since the first word about it.
        since: How much was done at that time.

    >>> told(Step("reading runs", 120, 300), 60)
    '120/300, 2.0/s, 1 min 30 s left'
    >>> told(Step("reading collection", 250_000_000, 10**9, "bytes"), 10)
    '250 of 1,000 MB, 25.0 MB/s, 30 s left'
    >>> told(Step("drawing"), 12), told(Step("indexing", 4_000), 2)
    ('12 s so far', '4,000, 2000.0/s')
    """
    scale, unit = (1e6, " MB") if step.unit == "bytes" else (1.0, "")
    rate = (step.done - max(since, step.free)) / max(seconds, 1e-9)
    if step.unit == "bytes":
        amount = f"{step.done / scale:,.0f}{f' of {step.total / scale:,.0f}' if step.total else ''} MB"
    else:
        amount = f"{step.done:,}{f'/{step.total:,}' if step.total else ''}"
    parts = [amount] if step.done or step.total > 1 else []
    if rate > 0 and step.total != 1:
        parts.append(f"{rate / scale:.1f}{unit}/s")
        parts += [f"{duration((step.total - step.done) / rate)} left"] if step.total > step.done else []
    else:
        parts.append(f"{duration(seconds)} so far")
    return ", ".join([*parts, *([step.note] if step.note else [])])


def duration(seconds: float) -> str:
    """A time in words, as exact as anybody needs.

    >>> duration(0.4), duration(61), duration(7_261), duration(180_000)
    ('1 s', '1 min 1 s', '2 h 1 min', '2 days 2 h')
    """
    whole = max(1, round(seconds))
    for size, large, smaller, small in ((86_400, "day", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            first, rest = whole // size, whole % size // smaller
            head = count(first, large) if large == "day" else f"{first} {large}"
            return f"{head} {rest} {small}" if rest else head
    return f"{whole} s"


class Meter:
    """Adds up what is read of one or several files; its total is their size."""

    def __init__(self, what: str, total: int, steps: Steps) -> None:
        self._what, self._total, self._steps = what, total, steps
        self._done = 0

    def __call__(self, size: int) -> None:
        """Count so many bytes more."""
        self._done += size
        self._steps(Step(self._what, self._done, self._total, "bytes"))
