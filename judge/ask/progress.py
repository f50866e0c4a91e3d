"""The progress of a long command: a bar on a terminal or in a notebook, a plain line now and then elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn, TaskID

_EVERY = 10.0
"""Seconds between plain lines."""


class Progress(NamedTuple):
    """How many judgments the loop has made so far."""

    done: int
    """Judgments and failures so far."""
    total: int
    recalled: int
    """Settled without a call: from the journal, or because the evidence is missing."""
    failures: int
    cost: float
    """US dollars that this process has spent."""
    estimated: int = 0
    """Calls whose cost rests on our own estimate, because the provider gave no counts that can be true."""


class Reporter:
    """Shows the progress of a judge on a stream or in a notebook, and passes it on to `then`."""

    def __init__(self, judge: str, stream: TextIO, then: Callable[[Progress], None] | None = None) -> None:
        self._then = then
        self._judge = judge
        self._stream = stream
        self._begun = self._shown = time.monotonic()
        self._last: Progress | None = None
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit_info: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._last is not None:
            self._line(self._last)

    def __call__(self, progress: Progress) -> None:
        """Show the progress; cheap enough to be called after every judgment."""
        now = time.monotonic()
        if self._last is None:
            self._begun = now
            if _is_live(self._stream):
                self._bar = _loop_bar(self._stream)
                self._task = self._bar.add(self._judge, total=progress.total, rate="", extra="")
        self._last = progress
        if self._bar is None:
            if now - self._shown >= _EVERY and progress.done < progress.total:
                self._shown = now
                self._line(progress)
        elif now - self._shown >= 0.1 or progress.done == progress.total:
            self._shown = now
            rate, extra = self._rate(progress), _extra(progress)
            self._bar.update(self._task, completed=progress.done, rate=rate, extra=extra)
        if self._then is not None:
            self._then(progress)

    def _rate(self, progress: Progress) -> str:
        elapsed = max(time.monotonic() - self._begun, 1e-9)
        return f"{(progress.done - progress.recalled) / elapsed:.1f}/s"

    def _line(self, progress: Progress) -> None:
        extra = _extra(progress)
        _say(
            f"{self._judge}: {progress.done}/{progress.total} judged, {self._rate(progress)}"
            f"{f', {extra}' if extra else ''}",
            self._stream,
        )


class FetchReporter:
    """Shows how much of a model's weights has been fetched."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = _is_live(stream)
        self._bar: _Bar | None = None
        self._tasks: dict[str, TaskID] = {}
        self._step = ""
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit_info: object) -> None:
        self._stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that the step `step` has done `done` of `total` bytes."""
        now = time.monotonic()
        if not self._live:
            if step != self._step or done == total or now - self._shown >= _EVERY:
                self._step, self._shown = step, now
                _say(f"{step}: {done / 1e6:.0f} of {total / 1e6:.0f} MB", self._stream)
            return
        if self._bar is None:
            self._bar = _fetch_bar(self._stream)
        if step not in self._tasks:
            self._tasks[step] = self._bar.add(step, total=total)
        elif now - self._shown < 0.1 and done < total:
            return
        self._shown = now
        self._bar.update(self._tasks[step], completed=done)
        if done == total and step.startswith("verifying"):
            # Two live bars cannot share a terminal, and the bar of the loop comes next.
            self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class _Bar:
    """Bars of rich, redrawn by rich on a terminal and by us in a notebook, where rich would need ipywidgets."""

    def __init__(self, stream: TextIO, *columns: "ProgressColumn") -> None:
        from rich.progress import Progress as Bars

        console = _console(stream)
        self._bars = Bars(*columns, console=console, refresh_per_second=4)
        self._handle: Any = None
        if console.is_jupyter:
            from IPython.display import display

            self._handle = display(self._bars, display_id=True)
        else:
            self._bars.start()

    def add(self, description: str, **fields: Any) -> "TaskID":
        return self._bars.add_task(description, **fields)

    def update(self, task: "TaskID", **fields: Any) -> None:
        self._bars.update(task, **fields)
        if self._handle is not None:
            self._handle.update(self._bars)

    def stop(self) -> None:
        if self._handle is None:
            self._bars.stop()


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream)


def _is_live(stream: TextIO) -> bool:
    """Whether a line can be redrawn: on a terminal or in a notebook."""
    return stream.isatty() or ("IPython" in sys.modules and _console(stream).is_jupyter)


def _loop_bar(stream: TextIO) -> _Bar:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    return _Bar(
        stream,
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[extra]}"),
    )


def _fetch_bar(stream: TextIO) -> _Bar:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn

    return _Bar(stream, TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())


def _say(line: str, stream: TextIO) -> None:
    # A closed pipe or terminal is no reason to stop paid calls.
    with contextlib.suppress(OSError):
        print(line, file=stream, flush=True)


def _extra(progress: Progress) -> str:
    parts = []
    if progress.recalled:
        parts.append(f"{progress.recalled} without a call")
    if progress.failures:
        parts.append(f"{progress.failures} missing")
    if progress.cost:
        basis = f" (tokens of {progress.estimated} replies estimated)" if progress.estimated else ""
        parts.append(f"${progress.cost:.4f}{basis}")
    return ", ".join(parts)
