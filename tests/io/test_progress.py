"""What is said of a long job: to a terminal a bar, elsewhere a line now and then, of a short job nothing."""

import io
import os
import pty
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from judge.ask.progress import Progress, Reporter, fetch_reporter
from judge.io.steps import FIRST, ProgressLine, Step, counted, quiet, stepped
from tests.conftest import Terminal, run_python


@pytest.fixture(autouse=True)
def _words_about_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere jobs say nothing of the time they take."""
    monkeypatch.setattr("judge.io.steps.FIRST", FIRST)


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def line_on(stream: io.StringIO, clock: Clock) -> ProgressLine:
    return ProgressLine(stream, "reading runs", clock=clock, ticking=False)


def steps_every(seconds: float, stream: io.StringIO, total: int = 40) -> str:
    """What is shown of a job of 40 files, each of which takes so many seconds."""
    clock = Clock()
    with line_on(stream, clock) as line:
        for _ in stepped("reading runs", range(total), line):
            clock.now += seconds
    return stream.getvalue()


def test_a_log_gets_a_line_after_two_seconds_and_then_every_ten() -> None:
    assert steps_every(0.5, io.StringIO()).splitlines() == [
        "reading runs: 4/40, 2.0/s, 18 s left",
        "reading runs: 24/40, 2.0/s, 8 s left",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_short_job_says_nothing(stream: io.StringIO) -> None:
    assert steps_every(0.04, stream) == ""


def test_a_terminal_shows_a_bar_that_goes_and_keeps_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = steps_every(0.5, Terminal())
    assert "24/40, 2.0/s, 8 s left" in shown
    # The last words clear the line; the cursor was shown again whenever it was hidden.
    assert shown.endswith("\x1b[2K")
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_that_only_appends_gets_lines(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("TERM", kind)
    assert steps_every(0.5, Terminal()).startswith("reading runs: 4/40, 2.0/s, 18 s left\n")


def test_each_step_has_a_rate_of_its_own() -> None:
    stream, clock = io.StringIO(), Clock()
    with line_on(stream, clock) as line:
        for _ in stepped("reading runs", range(2), line):
            clock.now += 10
        line(Step("drawing"))
        clock.now += 12
        line(Step("drawing"))
        for _ in counted("writing", iter("abc"), 3, line):
            clock.now += 20
    assert stream.getvalue().splitlines() == [
        "reading runs: 1/2, 0.1/s, 10 s left", "reading runs: 2/2, 0.1/s", "drawing: 12 s so far",
        "writing: 1/3, 0.1/s, 40 s left", "writing: 2/3, 0.1/s, 20 s left", "writing: 3/3, 0.1/s",
    ]  # fmt: skip


def test_the_judging_loop_keeps_its_cost_and_tells_the_time_left() -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, clock=clock, ticking=False)
    with line, closing(Reporter("some/judge", line)) as reporter:
        reporter(Progress(10, 110, 10, 0, 0.0))
        clock.now += 20
        # Twenty calls in twenty seconds: what the journal had took no time.
        reporter(Progress(30, 110, 10, 1, 0.25))
        clock.now += 80
        reporter(Progress(110, 110, 10, 1, 1.25))
    assert stream.getvalue().splitlines() == [
        "some/judge: 30/110, 1.0/s, 1 min 20 s left, 10 without a call, 1 missing, $0.2500",
        "some/judge: 110/110 judged, 1.0/s, 10 without a call, 1 missing, $1.2500",
    ]


def test_what_is_fetched_is_named_at_once() -> None:
    stream, clock = io.StringIO(), Clock()
    fetching = fetch_reporter(ProgressLine(stream, clock=clock, ticking=False))
    fetching("fetching tiny", 0, 500_000_000)
    clock.now += 5
    fetching("fetching tiny", 250_000_000, 500_000_000)
    assert stream.getvalue().splitlines() == [
        "fetching tiny: 500 MB",
        "fetching tiny: 250 of 500 MB, 50.0 MB/s, 5 s left",
    ]


def test_a_stranger_s_name_controls_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (io.StringIO(), Terminal()):
        clock = Clock()
        with ProgressLine(stream, clock=clock, ticking=False) as line:
            clock.now += 5
            line(Step("a\x1b[31m[bold]b", 1, 3))
        assert "a\\x1b[31m[bold]b" in stream.getvalue()


def test_a_step_costs_next_to_nothing() -> None:
    calls: list[Step] = []
    assert list(stepped("x", "abc", calls.append)) == ["a", "b", "c"]
    assert [step.done for step in calls] == [0, 1, 2, 3]
    quiet(Step("x"))


SLOW = """
import sys, time
from judge.cli.printing import progress, print_text
from judge.io.steps import stepped
with progress("reading runs") as line:
    for _ in stepped("reading runs", range(30), line):
        time.sleep(0.1)
print_text("done")
"""


def in_terminal(source: str, *, stop_at: bytes | None = None, **environment: str) -> str:
    """What a program writes to a terminal, which interrupts it once it has written `stop_at`."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "NO_COLOR": "", "TERM": "xterm", **environment},
        # A shell lets its jobs in the background ignore interrupts, and so would the program.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    os.close(theirs)
    written = b""
    while True:
        try:
            read = os.read(ours, 1 << 16)
        except OSError:
            # The other end is closed.
            break
        if not read:
            break
        written += read
        if stop_at is not None and stop_at in written:
            process.send_signal(signal.SIGINT)
            stop_at = None
    process.wait()
    os.close(ours)
    return written.decode()


@pytest.mark.slow
def test_an_interrupt_leaves_the_terminal_clean() -> None:
    # Far longer than the wait for the interrupt, however busy the machine is.
    shown = in_terminal(SLOW.replace("range(30)", "range(600)"), stop_at=b"\x1b[?25l")
    assert "KeyboardInterrupt" in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


@pytest.mark.long
def test_a_real_terminal_sees_a_bar_and_then_only_the_result_without_color_or_cursor_if_so_told() -> None:
    shown = in_terminal(SLOW)
    assert "/30, " in shown and " left" in shown and "\x1b[36m" in shown
    assert shown.endswith("\x1b[2Kdone\r\n")
    assert "\x1b[36m" not in in_terminal(SLOW, NO_COLOR="1")
    plain = in_terminal(SLOW, TERM="dumb").splitlines()
    assert [line.partition(":")[0] for line in plain] == ["reading runs", "done"]


@pytest.mark.long
def test_a_pipe_gets_data_alone(tmp_path: Path) -> None:
    done = run_python("-c", SLOW)
    assert done.stdout == "done\n"
    assert done.stderr.startswith("reading runs: ")
    assert "\x1b" not in done.stderr
