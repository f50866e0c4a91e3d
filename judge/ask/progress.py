"""The progress of a job that asks: its steps, the judgments of the loop, and the fetching of a model's weights."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from judge.io.steps import ProgressLine, Step, Steps, quiet
from judge.judges.weights import FetchReport


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
    limited: str = ""
    """How a rate limit holds the calls back, in few words; empty if it does not."""

    def plus(self, more: "Progress") -> "Progress":
        """The progress of a job after the progress of a part that follows this one; the total stays."""
        return Progress(
            done=self.done + more.done,
            total=self.total,
            recalled=self.recalled + more.recalled,
            failures=self.failures + more.failures,
            cost=self.cost + more.cost,
            estimated=self.estimated + more.estimated,
            limited=more.limited,
        )


class Reporter:
    """Shows the progress of a judge on a line that others share, and passes it on to `then`."""

    def __init__(self, judge: str, line: ProgressLine, then: Callable[[Progress], None] | None = None) -> None:
        self._then = then
        self._judge = judge
        self._line = line
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Show the progress; cheap enough to be called after every judgment."""
        self._last = progress
        if progress.done == progress.total:
            self.close()
        else:
            self._line(Step(self._judge, progress.done, progress.total, free=progress.recalled, note=_extra(progress)))
        if self._then is not None:
            self._then(progress)

    def close(self) -> None:
        """Say how it ended, once."""
        if self._last is None:
            return
        last = self._last
        self._last = None
        asked = last.done - last.recalled
        # Where all comes from the journal, a rate of 0 would read as a judge that stands still.
        rate = f"{asked / max(self._line.seconds, 1e-9):.1f}/s" if asked else ""
        told = [f"{last.done}/{last.total} judged", rate, _extra(last)]
        self._line.say(f"{self._judge}: {', '.join(filter(None, told))}")


def fetch_reporter(line: ProgressLine) -> FetchReport:
    """What shows on a line how much of a model's weights has been fetched."""
    named: set[str] = set()

    def show(step: str, done: int, total: int) -> None:
        if step not in named and not step.startswith("verifying"):
            # Nobody should wonder what comes over the line, however fast it is.
            named.add(step)
            line.say(f"{step}: {total / 1e6:,.0f} MB")
        line(Step(step, done, total, "bytes"))
        if done == total:
            # Two bars cannot share a terminal, and the bar of the loop may come next.
            line.clear()

    return show


class JobProgress:
    """The one place to which a job tells its progress: a line, where one shows it, and `report` after each judgment."""

    def __init__(self, line: ProgressLine | None = None, report: Callable[[Progress], None] | None = None) -> None:
        self._line = line
        self._report = report
        self._reporters: dict[str, Reporter] = {}
        self.steps: Steps = quiet if line is None else line
        """Takes the steps of the job."""
        self.fetching: FetchReport = (lambda step, done, total: None) if line is None else fetch_reporter(line)
        """Takes how much of a model's weights has been fetched."""

    def of(self, judge: str) -> Callable[[Progress], None]:
        """What takes the progress of a judge."""
        if self._line is None:
            return self._report or (lambda progress: None)
        return self._reporters.setdefault(judge, Reporter(judge, self._line, self._report))

    def say(self, text: str) -> None:
        """Say a line where a line is shown, before what it is about begins."""
        if self._line is not None:
            self._line.say(text)

    def close(self) -> None:
        """Say how far each judge came that did not come to its end."""
        for reporter in self._reporters.values():
            reporter.close()


@contextlib.contextmanager
def job_progress(shown: bool | ProgressLine, report: Callable[[Progress], None] | None = None) -> Iterator[JobProgress]:
    """What a job tells its progress to, until the block ends.

    It is shown on a line of the caller; or, if `shown` is true, as a bar in a notebook or on a terminal and elsewhere
    as a line now and then; or nowhere. `report` is called after each judgment, too.
    """
    with contextlib.ExitStack() as open_lines:
        line = open_lines.enter_context(ProgressLine(sys.stderr)) if shown is True else shown or None
        progress = JobProgress(line, report)
        open_lines.callback(progress.close)
        yield progress


def _extra(progress: Progress) -> str:
    parts = []
    if progress.recalled:
        parts.append(f"{progress.recalled} without a call")
    if progress.failures:
        parts.append(f"{progress.failures} missing")
    if progress.cost:
        basis = f" (tokens of {progress.estimated} replies estimated)" if progress.estimated else ""
        parts.append(f"${progress.cost:.4f}{basis}")
    if progress.limited and progress.done < progress.total:
        parts.append(progress.limited)
    return ", ".join(parts)
