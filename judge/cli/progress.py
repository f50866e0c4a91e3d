"""How far the loop is: a bar on a terminal, a plain line now and then elsewhere."""

import time
from typing import Self, TextIO

from judge.assess import Progress

_EVERY = 10.0
"""Seconds between plain lines."""


class Reporter:
    """Shows `Progress` on a stream."""

    def __init__(self, judge: str, stream: TextIO) -> None:
        self._judge = judge
        self._stream = stream
        self._begun = time.monotonic()
        self._shown = self._begun
        self._last: Progress | None = None
        self._bar = None
        if stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[extra]}"),
                console=Console(file=stream),
                refresh_per_second=4,
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._judge, total=None, rate="", extra="")
        return self

    def __exit__(self, *exit_info: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._last is not None:
            self._line(self._last)

    def __call__(self, progress: Progress) -> None:
        """Show where the loop stands; cheap enough for every judgment."""
        self._last = progress
        now = time.monotonic()
        if self._bar is None:
            if now - self._shown >= _EVERY and progress.done < progress.total:
                self._shown = now
                self._line(progress)
        elif now - self._shown >= 0.1 or progress.done == progress.total:
            self._shown = now
            self._bar.update(
                self._task,
                completed=progress.done,
                total=progress.total,
                rate=self._rate(progress),
                extra=_extra(progress),
            )

    def _rate(self, progress: Progress) -> str:
        elapsed = max(time.monotonic() - self._begun, 1e-9)
        return f"{(progress.done - progress.recalled) / elapsed:.1f}/s"

    def _line(self, progress: Progress) -> None:
        extra = _extra(progress)
        print(
            f"{self._judge}: {progress.done}/{progress.total} judged, {self._rate(progress)}"
            f"{f', {extra}' if extra else ''}",
            file=self._stream,
            flush=True,
        )


def _extra(progress: Progress) -> str:
    parts = []
    if progress.recalled:
        parts.append(f"{progress.recalled} without a call")
    if progress.failures:
        parts.append(f"{progress.failures} missing")
    if progress.cost:
        parts.append(f"${progress.cost:.4f}")
    return ", ".join(parts)
