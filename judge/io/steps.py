"""The progress of a long job: its steps, and how they are shown on a terminal, in a notebook and in a file."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TextIO, TypeVar

from judge.io.text import count, printable

if TYPE_CHECKING:
    from rich.console import Console

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

    `since`: how much was done when these seconds began.

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
            first = whole // size
            rest = whole % size // smaller
            head = count(first, large) if large == "day" else f"{first} {large}"
            return f"{head} {rest} {small}" if rest else head
    return f"{whole} s"


def metered(what: str, total: int, steps: Steps) -> Callable[[int], None]:
    """A function that adds up the sizes of what is read of one or several files, which have `total` bytes."""
    done = 0

    def read(size: int) -> None:
        nonlocal done
        done += size
        steps(Step(what, done, total, "bytes"))

    return read


FIRST = 2.0
"""Seconds of a job without a word about it."""
EVERY = 10.0
"""Seconds between two plain lines."""
_TICK = 0.25
"""Seconds between two looks at the clock, and between two pictures of a bar."""


class ProgressLine:
    """Shows the steps of a job that takes longer than `FIRST`: a bar that goes at the end, or a line now and then."""

    def __init__(
        self, stream: TextIO, what: str = "", *, clock: Callable[[], float] = time.monotonic, ticking: bool = True
    ) -> None:
        self._stream = stream
        self._clock = clock
        # A notebook shows what comes from the thread of its cell.
        self._notebook = "IPython" in sys.modules and _console(stream).is_jupyter
        self._live = self._notebook or is_live(stream)
        self._step = Step(what)
        self._begun = self._changed = clock()
        self._since = 0
        self._shown: float | None = None
        self._bar: _Bar | None = None
        # Without a step there is nothing to show yet.
        self._rests = not what
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if ticking and not self._notebook else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *exit_info: object) -> None:
        self._over.set()
        self.clear()
        if self._thread is not None:
            self._thread.join()

    def __call__(self, step: Step) -> None:
        """Take note of how far the job is."""
        if step.what != self._step.what or step.done < self._step.done:
            self._changed = self._clock()
            self._since = step.done
        self._step = step
        self._rests = False
        if self._thread is None:
            self.tick()

    def tick(self) -> None:
        """Draw, if it is time."""
        with self._lock:
            now = self._clock()
            pause = _TICK if self._live else EVERY
            due = now - self._begun >= FIRST if self._shown is None else now - self._shown >= pause
            if self._over.is_set() or self._rests or not due:
                return
            self._shown = now
            step = self._step
            text = told(step, now - self._changed, self._since)
            if not self._live:
                _say(f"{step.what}: {text}", self._stream)
                return
            with contextlib.suppress(OSError):
                if self._bar is None:
                    self._bar = _Bar(self._stream, step, text)
                else:
                    self._bar.show(step, text)

    def clear(self) -> None:
        """Take the bar away, so that something else can be shown; the next step brings it back."""
        with self._lock, contextlib.suppress(OSError):
            self._rests = True
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def say(self, line: str) -> None:
        """Say a line, under which the bar goes on."""
        self.clear()
        _say(line, self._stream)

    @property
    def seconds(self) -> float:
        """The time since the first word about the present step."""
        return self._clock() - self._changed

    def _run(self) -> None:
        while not self._over.wait(_TICK):
            self.tick()


class _Bar:
    """One bar of rich, drawn on a terminal by rich and in a notebook by us, where rich would need ipywidgets."""

    def __init__(self, stream: TextIO, step: Step, text: str) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        console = _console(stream)
        # What is printed to stdout is data: rich would move it to this stream.
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24, complete_style="cyan", finished_style="cyan", pulse_style="cyan"),
            TextColumn("{task.fields[told]}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
        )
        self._task = self._bars.add_task("", told="")
        self._handle: Any = None
        self._update(step, text)
        if console.is_jupyter:
            from IPython.display import display

            self._handle = display(self._bars, display_id=True)
        else:
            self._bars.start()
            # A process that is killed must not leave a terminal without its cursor.
            console.show_cursor(True)

    def show(self, step: Step, text: str) -> None:
        self._update(step, text)
        if self._handle is not None:
            self._handle.update(self._bars)
        else:
            self._bars.refresh()

    def _update(self, step: Step, text: str) -> None:
        self._bars.update(
            self._task,
            description=printable(step.what),
            completed=step.done,
            total=step.total if step.total > 1 else None,
            told=printable(text),
        )

    def stop(self) -> None:
        if self._handle is None:
            self._bars.stop()


def is_live(stream: TextIO) -> bool:
    """Whether a line can be drawn again: on a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream)


def _say(line: str, stream: TextIO) -> None:
    # A closed pipe or terminal is no reason to stop paid calls.
    with contextlib.suppress(OSError):
        print(printable(line), file=stream, flush=True)
