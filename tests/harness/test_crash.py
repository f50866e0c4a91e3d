"""Real processes against a misbehaving server, killed in the middle: nothing is lost, nothing paid is asked again."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.harness.test_run import files
from tests.mock import Mock, start_mock

pytestmark = pytest.mark.slow

EXAMPLE = PROJECT / "examples"
CONCURRENCY = 8


def command(mock: Mock, out: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "judge", "run", "--runs", str(EXAMPLE / "runs"), "--topics", str(EXAMPLE / "topics.json"),
        "--passages", str(EXAMPLE / "passages.jsonl"), "--model", "server/mock", "--base-url", mock.base_url,
        "--concurrency", str(CONCURRENCY), "--attempts", "10", "--out", str(out), *more,
    ]  # fmt: skip


def finish(mock: Mock, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(mock, out, *more), cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Mock]:
    with start_mock() as mock:
        yield mock


@pytest.fixture
def mock(server: Mock) -> Mock:
    server.reset()
    return server


def judgments(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (out / "judgments.jsonl").read_text(encoding="utf-8").splitlines()]


def wait_for_paid(mock: Mock, process: subprocess.Popen[bytes], least: int) -> None:
    deadline = time.monotonic() + 60
    while sum(mock.paid_per_item().values()) < least:
        assert process.poll() is None, "it ended before it could be stopped"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_untroubled_run_judges_everything_once(mock: Mock, tmp_path: Path) -> None:
    done = finish(mock, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    # 77 pooled responses on two criteria, less one without passage text.
    assert len(judgments(tmp_path / "out")) == 2 * 77 - 1
    assert set(mock.paid_per_item().values()) == {1}


def test_kill_9_in_the_middle_of_trouble(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.03, p429=0.1, p500=0.05, pbad=0.02, retry_after=0.05)
    out = tmp_path / "out"
    for least in (20, 45, 80):
        process = subprocess.Popen(
            command(mock, out), cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for_paid(mock, process, least)
        process.kill()
        process.wait()
    done = finish(mock, out)
    assert done.returncode == 0, done.stderr
    paid = mock.paid_per_item()
    # Only calls that were in flight at a kill may be paid twice: three kills, at most 8 calls each.
    assert sum(count - 1 for count in paid.values()) <= 3 * CONCURRENCY
    repeated = sum(mock.paid_per_item().values())
    again = finish(mock, out)
    assert again.returncode == 0
    assert sum(mock.paid_per_item().values()) == repeated
    # The journal alone gives the same results again, byte for byte.
    replayed = tmp_path / "replayed"
    assert finish(mock, replayed, "--model", f"replay/{out / 'journal.sqlite'}").returncode == 0
    # The manifest has the command line in it, and the record the manifest's digest.
    own = {"manifest.json", "run.sha256"}
    assert {name: data for name, data in files(out).items() if name not in own} == {
        name: data for name, data in files(replayed).items() if name not in own
    }


def test_ctrl_c_says_how_to_go_on(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.1)
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(mock, out), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while sum(mock.paid_per_item().values()) < 10:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "the same command goes on from here" in complaint
    assert "Traceback" not in complaint
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["status"] == "unfinished"
    mock.config(latency=0.0)
    assert finish(mock, out).returncode == 0
    assert set(mock.paid_per_item().values()) == {1}


def test_a_wrong_key_stops_at_once(mock: Mock, tmp_path: Path) -> None:
    mock.config(key="right")
    done = finish(mock, tmp_path / "out")
    assert done.returncode == 3
    assert "401" in done.stderr
    assert "Traceback" not in done.stderr
    assert mock.stats()["requests"] <= CONCURRENCY


def test_a_server_without_structured_output(mock: Mock, tmp_path: Path) -> None:
    mock.config(response_format="reject")
    done = finish(mock, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert {one["form"] for one in judgments(tmp_path / "out")} == {"text"}


def test_a_server_that_is_not_there(mock: Mock, tmp_path: Path) -> None:
    absent = Mock(1)
    done = subprocess.run(
        [word if word != "10" else "1" for word in command(absent, tmp_path / "out")],
        cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 3
    assert "does not answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_process_on_the_same_folder_is_refused(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.2)
    out = tmp_path / "out"
    first = subprocess.Popen(command(mock, out), cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_paid(mock, first, 1)  # type: ignore[arg-type]
        second = finish(mock, out)
        assert second.returncode == 2
        assert "another judge process is using it" in second.stderr
    finally:
        first.kill()
        first.wait()
