"""Several real servers behind one judge: some die, some are slow, some serve something else."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.judges.journal_tools import read_journal
from tests.conftest import INPUTS, manifest, run_here, start_python
from tests.jobs.test_run import files, results
from tests.mock import Mock, start_mock
from tests.time_limit import PATIENCE, wait_until

pytestmark = pytest.mark.long

WITHOUT_TEXTS = 1
"""Pooled responses that no judge is asked about."""
JUDGMENTS = 2 * 77 - WITHOUT_TEXTS


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[Mock, Mock]]:
    with start_mock() as first, start_mock() as second:
        yield first, second


@pytest.fixture
def servers(started: tuple[Mock, Mock]) -> tuple[Mock, Mock]:
    for mock in started:
        mock.reset()
    return started


def command(out: Path, *urls: str, more: tuple[str, ...], model: str = "server/mock") -> list[str]:
    addresses = [word for url in urls for word in ("--base-url", url)]
    return ["-m", "judge", "run", *INPUTS, "--model", model, *addresses, "--out", str(out), *more]


def run(
    out: Path, *urls: str, more: tuple[str, ...] = ("--concurrency", "8"), model: str = "server/mock"
) -> subprocess.CompletedProcess[str]:
    return run_here(*command(out, *urls, more=more, model=model)[2:])


def judged(out: Path) -> int:
    return len((out / "judgments.jsonl").read_text(encoding="utf-8").splitlines())


def all_judged(out: Path, *urls: str) -> str:
    """What is said of a run that judges everything."""
    done = run(out, *urls)
    assert done.returncode == 0, done.stderr
    assert judged(out) == JUDGMENTS
    return done.stderr


def wait_for(least: int, *mocks: Mock) -> None:
    wait_until(lambda: sum(mock.stats()["paid"] for mock in mocks) >= least)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_both_servers_answer_and_each_question_is_paid_once(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, second = servers
    for mock in servers:
        mock.config(latency=0.02)
    said = all_judged(tmp_path / "out", first.base_url, second.base_url)
    paid = [mock.paid_per_item() for mock in servers]
    assert min(map(len, paid)) > len(paid[0] | paid[1]) / 4
    assert not paid[0].keys() & paid[1].keys()
    shares = ", ".join(f"{mock.base_url} {mock.stats()['paid']}" for mock in servers)
    assert f"calls answered: {shares}" in said
    recorded = {entry.completion.endpoint for entry in read_journal(tmp_path / "out" / "journal.sqlite")}
    assert recorded == {mock.base_url for mock in servers}


def test_a_server_more_or_less_is_the_same_judge(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, second = servers
    one, two = tmp_path / "one", tmp_path / "two"
    assert run(one, first.base_url).returncode == 0
    assert "servers" not in manifest(one)
    assert {entry.completion.endpoint for entry in read_journal(one / "journal.sqlite")} == {first.base_url}
    assert run(two, first.base_url, second.base_url).returncode == 0
    assert manifest(two)["servers"] == [first.base_url, second.base_url]
    assert manifest(two)["configuration"] == manifest(one)["configuration"]
    before = files(one)
    assert results(two) == results(one)
    for mock in servers:
        mock.reset()
    # Either folder goes on with either set of servers, and asks for nothing.
    assert run(one, first.base_url, second.base_url).returncode == 0
    assert run(two, first.base_url).returncode == 0
    assert [mock.stats()["requests"] for mock in servers] == [0, 0]
    assert run(one, first.base_url).returncode == 0
    assert {**files(one), "journal.sqlite": b""} == {**before, "journal.sqlite": b""}


def test_a_server_that_dies_is_set_aside_and_used_again_when_it_is_back(tmp_path: Path) -> None:
    with start_mock("--latency", "0.2") as first, contextlib.ExitStack() as mortal:
        second = mortal.enter_context(start_mock("--latency", "0.2"))
        urls = (first.base_url, second.base_url)
        process = start_python(*command(tmp_path / "out", *urls, more=("--concurrency", "4")))
        wait_for(20, first, second)
        mortal.close()
        wait_for(first.stats()["paid"] + 12, first)
        with start_mock("--latency", "0.2", "--port", str(second.port)) as back:
            _, told = process.communicate(timeout=PATIENCE)
            again = back.stats()["paid"]
    assert process.returncode == 0, told
    assert judged(tmp_path / "out") == JUDGMENTS
    assert f"{second.base_url} is set aside, and tried again later: " in told
    assert again > 10


def test_a_server_that_only_fails_costs_a_few_calls(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, broken = servers
    broken.config(p500=1.0)
    said = all_judged(tmp_path / "out", broken.base_url, first.base_url)
    # Three failures in a row, calls that were in flight by then, and one call after each pause.
    assert 3 <= broken.stats()["requests"] <= 3 + 8 + 5
    assert f"{broken.base_url} is set aside, and tried again later: status 500: internal error" in said


def test_a_server_that_asks_to_wait_holds_no_call_back(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, full = servers
    full.config(p429=1.0, retry_after=600.0)
    # Ten minutes are longer than --max-wait: with this server alone, the run would have ended.
    said = all_judged(tmp_path / "out", full.base_url, first.base_url)
    # The calls in flight when it first refused one.
    assert 1 <= full.stats()["requests"] <= 8
    assert f"{full.base_url} is set aside, and tried again later: status 429" in said


def test_where_every_server_asks_to_wait_the_calls_wait_for_the_first(servers: tuple[Mock, Mock], tmp_path) -> None:
    first, full = servers
    full.config(p429=1.0, retry_after=600.0)
    first.script(*[{"status": 429, "headers": {"Retry-After": "2"}, "body": {}}] * 8)
    all_judged(tmp_path / "out", full.base_url, first.base_url)
    assert first.stats()["retry_after_violations"] == 0


def test_a_server_without_the_model_is_set_aside(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, other = servers
    missing = {"status": 404, "body": {"error": {"message": "The model `mock` does not exist"}}}
    other.script(*[missing] * 50)
    said = all_judged(tmp_path / "out", other.base_url, first.base_url)
    assert "set aside, and tried again later: status 404: The model `mock` does not exist" in said
    first.script(*[missing] * 50)
    other.script(*[missing] * 50)
    before = sum(mock.stats()["requests"] for mock in servers)
    done = run(tmp_path / "none", other.base_url, first.base_url)
    assert done.returncode == 3
    assert other.base_url in done.stderr
    assert first.base_url in done.stderr
    # Nothing is tried again that cannot succeed: each call in flight asks each server once.
    assert sum(mock.stats()["requests"] for mock in servers) - before <= 2 * 8


def test_where_all_servers_are_dead_the_run_ends_and_goes_on_later(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    out, ports = tmp_path / "out", (closed_port(), closed_port())
    urls = [f"http://127.0.0.1:{port}/v1" for port in ports]
    done = run(out, *urls, more=("--concurrency", "8", "--attempts", "2"))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    told = done.stderr.splitlines()[-1]
    assert "judge: server/mock does not answer: 8 calls in a row were given up after 2 attempts each" in told
    assert all(url in told for url in urls)
    with start_mock("--port", str(ports[1])):
        assert run(out, *urls).returncode == 0
    assert judged(out) == JUDGMENTS


def test_a_slow_server_gets_fewer_calls(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    slow, quick = servers
    slow.config(latency=0.6)
    quick.config(latency=0.03)
    assert run(tmp_path / "out", slow.base_url, quick.base_url).returncode == 0
    assert slow.stats()["paid"] < quick.stats()["paid"] / 2


def test_servers_that_serve_different_models_are_told_apart(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, other = servers
    reply = {
        "model": "mock-small", "system_fingerprint": "f2",
        "choices": [{"message": {"content": '{"rationale": "r", "grade": "1"}'}, "finish_reason": "stop"}],
    }  # fmt: skip
    other.script(*[{"body": reply}] * 200)
    done = run(tmp_path / "out", first.base_url, other.base_url)
    assert done.returncode == 0, done.stderr
    differ = "warning: server/mock: its servers may not serve one model: "
    note = next(line for line in done.stderr.splitlines() if line.startswith(differ))
    assert f"{first.base_url} model 'mock', fingerprint 'mock' (" in note
    assert f"{other.base_url} model 'mock-small', fingerprint 'f2' (" in note
    # In Markdown, a bare address would become a link.
    told = note.removeprefix("warning: ").replace("://", "\\://")
    assert told in (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")


def test_passwords_go_to_their_own_server_and_nowhere_else(servers: tuple[Mock, Mock], tmp_path: Path) -> None:
    first, second = servers
    for mock in servers:
        mock.config(latency=0.02)
    urls = [f"http://ann:first-pw@127.0.0.1:{first.port}/v1", f"http://bob:second-pw@127.0.0.1:{second.port}/v1"]
    done = run(tmp_path / "out", *urls)
    assert done.returncode == 0, done.stderr
    assert [mock.last()[0]["authorization"] for mock in servers] == [
        "Basic YW5uOmZpcnN0LXB3",
        "Basic Ym9iOnNlY29uZC1wdw==",
    ]
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    for secret in (b"first-pw", b"second-pw"):
        assert secret not in written
        assert secret.decode() not in done.stdout + done.stderr
    assert manifest(tmp_path / "out")["servers"] == [mock.base_url for mock in servers]


@pytest.mark.parametrize(
    ("model", "urls", "message"),
    [
        ("openai/gpt-4o-mini", 2, "--base-url may be repeated for server/… only; openai/gpt-4o-mini is asked at one"),
        ("litellm/openai/m", 2, "--base-url may be repeated for server/… only; litellm/openai/m is asked at one"),
        ("server/m", 1, "--base-url names http://127.0.0.1:1/v1 more than once"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused_in_one_line(model, urls, message, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    addresses = ["http://127.0.0.1:1", f"http://127.0.0.1:{urls}/v1"]
    done = run(tmp_path / "out", *addresses, model=model)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"judge: {message}")
    assert not (tmp_path / "out").exists()
