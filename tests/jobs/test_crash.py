"""Real processes killed in the middle, and journals that lose their end: nothing is lost, nothing is paid twice."""

import contextlib
import json
import os
import pty
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from judge.judges.journal_tools import read_journal, verify_journal
from tests.conftest import INPUTS, PROJECT, json_lines, run_here, start_python
from tests.jobs.test_run import files, results
from tests.mock import Mock, start_mock, wait_for_paid
from tests.time_limit import PATIENCE

pytestmark = pytest.mark.long

CONCURRENCY = 8


def command(mock: Mock, out: Path, *more: str) -> list[str]:
    usual = {"--model": "server/mock", "--concurrency": str(CONCURRENCY), "--attempts": "10"}
    # An option may be given once, so what a test says replaces what is usual.
    kept = [word for name, value in usual.items() if name not in more for word in (name, value)]
    asked = [*INPUTS, "--base-url", mock.base_url, "--out", str(out), *kept, *more]
    return ["-m", "judge", "run", *asked]


def finish(mock: Mock, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The same command in this process, to its end."""
    return run_here(*command(mock, out, *more)[2:])


def test_kill_9_in_the_middle_of_trouble(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.03, p429=0.1, p500=0.05, pbad=0.02, retry_after=0.05)
    out = tmp_path / "out"
    for least in (20, 45, 80):
        process = start_python(*command(mock, out), stderr=subprocess.DEVNULL)
        wait_for_paid(mock, process, least)
        process.kill()
        process.wait()
    done = finish(mock, out)
    assert done.returncode == 0, done.stderr
    paid = mock.paid_per_item()
    # Only calls in flight and replies that were being written may be paid twice: three kills, at most 8 of each.
    assert sum(count - 1 for count in paid.values()) <= 3 * 2 * CONCURRENCY
    repeated = sum(mock.paid_per_item().values())
    assert finish(mock, out).returncode == 0
    assert sum(mock.paid_per_item().values()) == repeated
    # The journal alone gives the same results again, byte for byte.
    replayed = tmp_path / "replayed"
    assert finish(mock, replayed, "--model", f"replay/{out / 'journal.sqlite'}").returncode == 0
    assert results(out) == results(replayed)


def started(mock: Mock, out: Path, *, least: int = 10, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A run that has paid for some calls."""
    words = [*before, sys.executable, *command(mock, out)]
    process = subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_paid(mock, process, least)
    return process


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_drains_and_says_how_to_go_on(mock: Mock, tmp_path: Path, number: signal.Signals) -> None:
    mock.config(latency=0.1)
    out = tmp_path / "out"
    process = started(mock, out)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, complaint
    assert "the same command goes on from here" in complaint
    assert "Traceback" not in complaint
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["status"] == "unfinished"
    mock.config(latency=0.0)
    assert finish(mock, out).returncode == 0
    # Calls in flight were kept: nothing was paid twice.
    assert set(mock.paid_per_item().values()) == {1}


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_breaks_the_calls_off(mock: Mock, tmp_path: Path, number: signal.Signals) -> None:
    mock.config(latency=0.05)
    process = started(mock, tmp_path / "out")
    # Calls that nobody waits for to their end.
    mock.config(latency=300.0)
    time.sleep(0.5)
    process.send_signal(number)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(number)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, complaint
    assert "interrupted" in complaint
    assert "Traceback" not in complaint
    mock.config(latency=0.0)
    assert finish(mock, tmp_path / "out").returncode == 0


@pytest.mark.usefixtures("heeded")
def test_a_terminal_that_closes_loses_no_call(mock: Mock, tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and writing to the terminal fails from then on."""
    mock.config(latency=0.1)
    out = tmp_path / "out"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, *command(mock, out)])
    os.set_blocking(terminal, False)
    deadline = time.monotonic() + PATIENCE
    while sum(mock.paid_per_item().values()) < 10:
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 65536)
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    assert verify_journal(out / "journal.sqlite").sound == len(mock.paid_per_item())
    mock.config(latency=0.0)
    assert finish(mock, out).returncode == 0
    assert set(mock.paid_per_item().values()) == {1}


def test_nohup_outlives_its_terminal(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.05)
    process = started(mock, tmp_path / "out", before=("nohup",))
    process.send_signal(signal.SIGHUP)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaint


def test_an_output_folder_that_goes_away_is_not_made_again(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.02)
    out = tmp_path / "out"
    process = started(mock, out)
    out.rename(tmp_path / "elsewhere")
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, complaint
    assert "was moved, removed or replaced while it was in use" in complaint
    assert "Traceback" not in complaint
    assert not out.exists()
    # What was paid for is where the folder went.
    mock.config(latency=0.0)
    paid = mock.paid_per_item()
    assert finish(mock, tmp_path / "elsewhere").returncode == 0
    assert all(count == 1 for item, count in mock.paid_per_item().items() if item in paid)


def answer(model: str, usage: dict[str, int] | None) -> dict[str, Any]:
    choice = {"message": {"content": "Fine.\nGrade: 2"}, "finish_reason": "stop"}
    return {"body": {"model": model, "choices": [choice], **({} if usage is None else {"usage": usage})}}


def test_a_substituted_model_is_said_wherever_grades_are(mock: Mock, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 9}
    mock.script(*[answer("weak" if number % 2 else "mock", usage) for number in range(6)])
    done = finish(mock, tmp_path / "out", "--limit", "3")
    assert done.returncode == 0, done.stderr
    note = "server/mock: its replies name another model than the one asked: 'mock' (3), 'weak' (3)."
    assert f"warning: {note}" in done.stderr
    assert note in (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")


def test_white_space_under_a_schema_is_said_wherever_grades_are(mock: Mock, tmp_path: Path) -> None:
    mock.config(faults={"white-space": 1.0})
    out = tmp_path / "out"
    done = finish(mock, out)
    assert done.returncode == 0, done.stderr
    note = "server/mock: not asked for grades in the form json, in which its endpoint gave none."
    assert f"warning: {note}" in done.stderr
    assert note in (out / "leaderboard.md").read_text(encoding="utf-8")
    assert {one["form"] for one in json_lines(out / "judgments.jsonl")} == {"text"}
    before = files(out)
    asked = mock.stats()["requests"]
    again = finish(mock, out)
    assert again.returncode == 0
    assert note in again.stderr
    assert (files(out), mock.stats()["requests"]) == (before, asked)
    # A recording of both forms gives the same grades.
    replayed = tmp_path / "replayed"
    assert finish(mock, replayed, "--model", f"replay/{out / 'journal.sqlite'}").returncode == 0
    assert json_lines(replayed / "judgments.jsonl") == json_lines(out / "judgments.jsonl")


def test_a_reply_with_odd_facts_is_paid_for_once(mock: Mock, tmp_path: Path) -> None:
    choice = {"message": {"content": "Grade: 2"}, "finish_reason": "stop", "logprobs": {"content": [None]}}
    odd = {"model": 5, "usage": {"prompt_tokens": 1.5}, "choices": [choice]}
    mock.script(*[{"body": json.dumps(odd).replace("null", "-Infinity")}] * 20)
    out = tmp_path / "out"
    done = finish(mock, out, "--limit", "10")
    assert done.returncode == 0, done.stderr
    assert mock.stats()["requests"] == 20 == len(json_lines(out / "judgments.jsonl"))
    assert finish(mock, out, "--limit", "10").returncode == 0
    assert mock.stats()["requests"] == 20
    kept = [entry.completion.raw for entry in read_journal(out / "journal.sqlite")]
    assert all(raw is not None and "-Infinity" in raw and '"model": 5' in raw for raw in kept)


def test_processes_that_start_at_once_on_a_new_folder_name_each_other_alone(mock: Mock, tmp_path: Path) -> None:
    started = [start_python(*command(mock, tmp_path / "out")) for _ in range(3)]
    said = [(process.communicate(timeout=PATIENCE)[1], process.returncode) for process in started]
    refused = [errors for errors, code in said if code]
    assert len(refused) < 3
    assert all("another judge process is using it" in errors for errors in refused), refused


QUESTIONS = 2 * 77 - 2


@pytest.fixture(scope="module")
def killed(server: Mock, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `kill -9` leaves it in the middle, with the latest completions in the `-wal` file."""
    server.reset()
    server.config(latency=0.03)
    out = tmp_path_factory.mktemp("killed") / "out"
    process = start_python(*command(server, out), stderr=subprocess.DEVNULL)
    wait_for_paid(server, process, 90)
    process.kill()
    process.wait()
    assert (out / "journal.sqlite-wal").stat().st_size > 0
    return out


@pytest.fixture(scope="module")
def untroubled(server: Mock, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    server.reset()
    out = tmp_path_factory.mktemp("untroubled") / "out"
    assert finish(server, out).returncode == 0
    return results(out)


@pytest.mark.parametrize("trial", range(4))
def test_a_log_that_lost_its_end_costs_what_was_in_it(mock, killed, untroubled, tmp_path, trial) -> None:
    out = Path(shutil.copytree(killed, tmp_path / "out"))
    log = out / "journal.sqlite-wal"
    data = log.read_bytes()
    log.write_bytes(data[: random.Random(trial).randrange(len(data))])
    kept = verify_journal(out / "journal.sqlite").sound
    done = finish(mock, out)
    assert done.returncode == 0, done.stderr
    assert results(out) == untroubled
    assert mock.stats()["paid"] == QUESTIONS - kept
    assert verify_journal(out / "journal.sqlite").sound == QUESTIONS


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.97])
def test_a_journal_that_lost_its_end_is_refused(mock, killed, untroubled, tmp_path, share) -> None:
    out = Path(shutil.copytree(killed, tmp_path / "out"))
    # Opened and closed once, all that was paid for is in the one file.
    journal = out / "journal.sqlite"
    assert finish(mock, out, "--limit", "1").returncode == 0
    data = journal.read_bytes()
    journal.write_bytes(data[: int(len(data) * share)])
    mock.reset()
    done = finish(mock, out)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert f"judge journal salvage {journal} -o NEW" in done.stderr
    assert mock.stats()["requests"] == 0
    salvaged = run_here("journal", "salvage", out, "-o", tmp_path / "new.sqlite")
    assert salvaged.returncode == 2
    assert "holds no completion that is sound" in salvaged.stderr
    # Without it, everything is asked again.
    journal.unlink()
    done = finish(mock, out)
    assert done.returncode == 0, done.stderr
    assert results(out) == untroubled
    assert mock.stats()["paid"] == QUESTIONS


@pytest.mark.parametrize("replaced", [False, True])
def test_a_journal_that_goes_away_ends_the_run_at_once(mock: Mock, tmp_path: Path, replaced: bool) -> None:
    mock.config(latency=0.2)
    out = tmp_path / "out"
    process = started(mock, out, least=4)
    if replaced:
        shutil.copy(out / "journal.sqlite", tmp_path / "other.sqlite")
        (tmp_path / "other.sqlite").replace(out / "journal.sqlite")
    else:
        (out / "journal.sqlite").unlink()
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, complaint
    said = [line for line in complaint.splitlines() if "was moved, removed or replaced while it was in use" in line]
    assert len(said) == 1
    assert "Traceback" not in complaint
    # Not all of it was asked: a run of 152 questions of .2 s, eight at a time, takes four seconds.
    assert mock.stats()["requests"] < QUESTIONS
    # The journal that is there now is left as it was.
    assert (out / "journal.sqlite").exists() == replaced


@pytest.mark.parametrize("options", [{"provider": "vllm", "retry_after": None}, {"provider": "gemini"}])
def test_a_run_under_a_limit_gives_nothing_up(mock: Mock, tmp_path: Path, options: dict[str, object]) -> None:
    """Two attempts of a call are far fewer than the refusals that a limit of 20 a second can cause."""
    mock.config(rps=20, burst=2, **options)
    done = finish(mock, tmp_path / "out", "--attempts", "2", "--concurrency", "16")
    assert done.returncode == 0, done.stderr
    assert "provider_error" not in (tmp_path / "out" / "failures.jsonl").read_text(encoding="utf-8")
    assert json_lines(tmp_path / "out" / "judgments.jsonl")
    stats = mock.stats()
    assert stats["retry_after_violations"] == 0
    assert stats["statuses"]["429"] > 0


def test_two_commands_on_one_journal(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.5)
    out = tmp_path / "out"
    first = started(mock, out, least=1)
    # The first one waits for replies that do not come, however long the others take.
    mock.config(latency=3600.0)
    try:
        second = finish(mock, out, "--concurrency", "2")
        assert second.returncode == 2
        complaints = [line for line in second.stderr.splitlines() if line.startswith("judge:")]
        assert complaints == [
            f"judge: {out / 'journal.sqlite'}: cannot be used as a journal: another judge process is using it"
        ]
        for action in ("verify", "stats", "export"):
            other = run_here("journal", action, out)
            assert other.returncode == 2
            assert "another judge process is using it" in other.stderr
    finally:
        first.kill()
        first.communicate()


def test_where_the_server_is_dead_the_run_ends_and_goes_on_later(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}/v1"
    asked = ["run", *INPUTS, "--model", "server/mock", "--base-url", url, "--out", str(tmp_path / "out")]
    done = run_here(*asked, "--concurrency", "8", "--attempts", "2")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    told = done.stderr.splitlines()[-1]
    assert "judge: server/mock does not answer: 8 calls in a row were given up after 2 attempts each" in told
    assert str(port) in told
    with start_mock("--port", str(port)):
        assert run_here(*asked).returncode == 0
    # One response of the example has no text of its passage.
    assert len(json_lines(tmp_path / "out" / "judgments.jsonl")) == 2 * 77 - 1
