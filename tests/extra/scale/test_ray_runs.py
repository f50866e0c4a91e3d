"""`judge run` on a cluster of Ray: the same results, and no call is repeated, whichever worker or node is killed."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.jobs.manifest import JOURNAL
from judge.judges.journal_tools import verify_journal
from tests.conftest import INPUTS, PROJECT, run_example, start_python
from tests.jobs.test_run import results
from tests.mock import Mock
from tests.ray_nodes import RayNodes, kill_node, ray_nodes, workers
from tests.time_limit import time_limit, wait_until

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("late")]

EXAMPLE = PROJECT / "examples"
CONCURRENCY = 4
QUESTIONS = 2 * 77 - 2
"""77 responses under two prompts, less one without passage text and one whose text stands twice."""
LIMIT = 300.0
"""Seconds after which a test is ended."""
STARTED: "list[subprocess.Popen[str]]" = []


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """No test takes forever, and no process outlives its test."""
    try:
        with time_limit(LIMIT):
            yield
    finally:
        while STARTED:
            process = STARTED.pop()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with ray_nodes() as started:
        yield started


@pytest.fixture(scope="module")
def second(nodes: RayNodes) -> int:
    """The raylet of a second node that no test kills."""
    return nodes.add()


def start(mock: Mock, out: Path, *more: str, model: str = "server/mock", **environment: str) -> "subprocess.Popen[str]":
    asked = ("--model", model, "--base-url", mock.base_url, "--concurrency", CONCURRENCY, "--out", out, *more)
    # A session of its own, as Ctrl-C reaches all processes of a terminal's group.
    process = start_python(
        "-m", "judge", "run", *INPUTS, *asked, environment=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    STARTED.append(process)
    return process


def end(process: "subprocess.Popen[str]", code: int = 0) -> str:
    """What a process that ends by itself says on stderr."""
    said, complaint = process.communicate(timeout=180)
    assert process.returncode == code, complaint
    assert "Traceback" not in complaint
    # What Ray logs names its sources.
    assert not re.search(r"\.(cc|h|py):\d", said + complaint), said + complaint
    return complaint


def run_alone(mock: Mock, out: Path, *more: str, model: str = "server/mock") -> None:
    """The run without an engine, in this process."""
    asked = ("--model", model, "--base-url", mock.base_url, "--concurrency", str(CONCURRENCY), *more)
    assert run_example(out, *asked) == 0


def wait_for_paid(mock: Mock, least: int) -> None:
    wait_until(lambda: mock.stats()["paid"] >= least)


def on(nodes: RayNodes) -> tuple[str, ...]:
    return "--engine", "ray", "--address", nodes.address


def recorded(out: Path) -> dict[str, Any]:
    """The manifest without the command line and the time that calls took."""
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_bytes())
    for row in manifest["spending"]:
        del row["seconds"]
    return {name: value for name, value in manifest.items() if name not in ("argv", "options")}


@pytest.fixture(scope="module")
def plain(server: Mock, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run without an engine."""
    server.reset()
    out = tmp_path_factory.mktemp("plain") / "out"
    run_alone(server, out)
    return out


def test_results_are_those_of_a_run_here_and_each_goes_on_where_the_other_ended(
    nodes: RayNodes, second: int, plain: Path, mock: Mock, tmp_path: Path
) -> None:
    end(start(mock, tmp_path / "ray", *on(nodes)))
    assert set(mock.paid_per_item().values()) == {1}
    assert mock.stats()["paid"] == QUESTIONS
    assert mock.stats()["max_in_flight"] <= CONCURRENCY
    assert results(tmp_path / "ray") == results(plain)
    assert recorded(tmp_path / "ray") == recorded(plain)
    assert verify_journal(tmp_path / "ray" / JOURNAL)[:2] == (QUESTIONS, ())
    # Nothing is left to be asked here, nor there of what was asked here; no cluster is needed to find that out.
    run_alone(mock, tmp_path / "ray")
    end(start(mock, plain, "--engine", "ray", "--address", "127.0.0.1:9"))
    assert mock.stats()["paid"] == QUESTIONS


@pytest.mark.parametrize("at_once", [True, False])
def test_a_node_that_is_killed_costs_what_it_had_in_flight(at_once, nodes, plain, mock, tmp_path) -> None:
    raylet = nodes.add()
    process = start(mock, tmp_path / "out", *on(nodes))
    wait_for_paid(mock, 40)
    assert workers(raylet)
    if at_once:
        kill_node(raylet)
    else:
        # What is left of the node tells the whole cluster at length how it ended.
        os.kill(raylet, signal.SIGKILL)
    end(process)
    assert mock.stats()["paid"] <= QUESTIONS + CONCURRENCY
    assert results(tmp_path / "out") == results(plain)
    assert verify_journal(tmp_path / "out" / JOURNAL)[:2] == (QUESTIONS, ())


def test_a_worker_that_is_killed_costs_what_it_had_in_flight(nodes, second, plain, mock, tmp_path) -> None:
    process = start(mock, tmp_path / "out", *on(nodes))
    wait_for_paid(mock, 40)
    os.kill(workers(second)[0], signal.SIGKILL)
    end(process)
    assert mock.stats()["paid"] <= QUESTIONS + CONCURRENCY
    assert results(tmp_path / "out") == results(plain)


def test_ctrl_c_loses_nothing_and_the_run_goes_on_without_the_cluster(nodes, second, plain, mock, tmp_path) -> None:
    process = start(mock, tmp_path / "out", *on(nodes))
    wait_for_paid(mock, 40)
    os.killpg(process.pid, signal.SIGINT)
    assert "the same command goes on from here" in end(process, 3)
    assert verify_journal(tmp_path / "out" / JOURNAL)[:2] == (mock.stats()["paid"], ())
    run_alone(mock, tmp_path / "out")
    assert set(mock.paid_per_item().values()) == {1}
    assert results(tmp_path / "out") == results(plain)


def test_a_driver_that_is_killed_leaves_no_worker_and_loses_what_was_in_flight(
    nodes: RayNodes, second: int, plain: Path, mock: Mock, tmp_path: Path
) -> None:
    process = start(mock, tmp_path / "out", *on(nodes))
    wait_for_paid(mock, 40)
    process.kill()
    process.communicate()
    wait_until(lambda: not workers(second))
    run_alone(mock, tmp_path / "out")
    # Calls in flight, and replies on their way to the journal.
    assert mock.stats()["paid"] <= QUESTIONS + 2 * CONCURRENCY
    assert results(tmp_path / "out") == results(plain)


def test_a_key_that_is_refused_ends_the_run(nodes: RayNodes, second: int, mock: Mock, tmp_path: Path) -> None:
    mock.script(*[{"status": 401, "body": "no such key"}] * 8)
    assert "status 401" in end(start(mock, tmp_path / "out", *on(nodes)), 3)
    assert mock.stats()["paid"] == 0


def test_a_worker_without_a_key_says_so(nodes: RayNodes, second: int, mock: Mock, tmp_path: Path) -> None:
    process = start(mock, tmp_path / "out", *on(nodes), model="openai/m", OPENAI_API_KEY="sk-Sesame-opens")
    said = end(process, 3)
    assert "a Ray worker on " in said
    assert "OPENAI_API_KEY" in said
    assert "Sesame" not in said
    assert mock.stats()["requests"] == 0


def test_a_budget_is_kept_by_all_workers_together(nodes: RayNodes, second: int, mock: Mock, tmp_path: Path) -> None:
    money = ("--max-cost", "0.05", "--price", "10/10")
    end(start(mock, tmp_path / "out", *on(nodes), *money), 3)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    # A call costs about 0.003 dollars; those that were in flight as the money went may exceed it.
    assert 0.03 < manifest["spending"][0]["cost"] < 0.05 + CONCURRENCY * 0.006
    assert mock.stats()["paid"] < QUESTIONS


@pytest.mark.parametrize(("model", "more"), [
    ("server/mock", ("--prompt", "groundedness", "--logprobs")),
    ("server/mock", ("--prompt", "completeness", "--samples", "2", "--jury", "median")),
    ("baseline/overlap", ("--prompt", "groundedness")),
    ("checker/overlap", ("--prompt", "groundedness/sentences")),
])  # fmt: skip
def test_each_kind_of_judge_and_question_gives_what_it_gives_here(model, more, nodes, second, mock, tmp_path) -> None:
    mock.config(latency=0.0)
    run_alone(mock, tmp_path / "here", *more, model=model)
    paid = mock.stats()["paid"]
    end(start(mock, tmp_path / "ray", *more, *on(nodes), model=model))
    assert mock.stats()["paid"] == 2 * paid
    assert results(tmp_path / "ray") == results(tmp_path / "here")
    assert recorded(tmp_path / "ray") == recorded(tmp_path / "here")


def test_what_listens_at_the_address_is_no_head(mock: Mock, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trec-judge[ray]'")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        process = start(mock, tmp_path / "out", "--engine", "ray", "--address", address)
        listener.settimeout(180)
        with listener.accept()[0] as connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert f"the Ray cluster at {address} cannot be used" in end(process, 3)
    assert mock.stats()["requests"] == 0


def test_a_cluster_that_is_not_there(mock: Mock, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trec-judge[ray]'")
    away = end(start(mock, tmp_path / "out", "--engine", "ray", "--address", "127.0.0.1:9"), 3)
    assert "no Ray cluster can be reached at 127.0.0.1:9" in away
    none = end(start(mock, tmp_path / "none", "--engine", "ray", RAY_ADDRESS="ray://head:10001"), 2)
    assert "ray://head:10001: expected HOST:PORT" in none
    assert not (tmp_path / "none").exists()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for a cluster's temporary files with a path that is short enough for Ray's sockets."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trec-judge[ray]'")
    if not Path("/proc/self/environ").is_file():
        pytest.skip("the processes of a cluster are found by /proc, as Linux has it")
    with tempfile.TemporaryDirectory(prefix="j", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def processes_of(folder: Path) -> dict[int, str]:
    """The processes that have this folder for their temporary files, with their command lines."""
    found = {}
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and f"TMPDIR={folder}".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_text("utf-8", "replace")
    return found


LOUD = {"RAY_LOG_TO_STDERR": "1", "RAY_BACKEND_LOG_LEVEL": "debug", "RAY_LOGGING_CONFIG_ENCODING": "TEXT"}


def leaves_nothing(process: "subprocess.Popen[str]", short: Path, home: Path, code: int) -> None:
    """The process ends without a word of Ray, and leaves neither files nor processes."""
    said, complaint = process.communicate(timeout=180)
    assert process.returncode == code, complaint
    # Ray has nothing to say.
    said = (said + complaint).replace(str(PROJECT), "")
    assert not re.search(r"\bray\b", said, re.IGNORECASE)
    killed = code == -signal.SIGKILL
    assert killed or list(short.iterdir()) == []
    # Where the driver is killed, Ray's agents may stay a while longer.
    agents = ("ray::DashboardAgent", "ray::RuntimeEnvAgent") if killed else ()
    wait_until(lambda: all(line.startswith(agents) for line in processes_of(short).values()))
    assert not (home / ".ray").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 3), (signal.SIGTERM, 3), (signal.SIGKILL, -9)])
def test_a_cluster_of_its_own_leaves_nothing_behind(number: int, code: int, short: Path, mock: Mock, tmp_path) -> None:
    own = ("--engine", "ray", "--workers", "2")
    process = start(mock, tmp_path / "out", *own, TMPDIR=str(short), HOME=str(tmp_path), **LOUD)
    wait_for_paid(mock, 10)
    assert processes_of(short)
    os.kill(process.pid, number)
    leaves_nothing(process, short, tmp_path, code)


def test_the_node_of_a_driver_that_is_killed_ends_the_run_with_code_3(short, plain, mock, tmp_path) -> None:
    # Workers answer on for a while.
    mock.config(latency=2.0)
    process = start(mock, tmp_path / "out", "--engine", "ray", "--workers", "2", TMPDIR=str(short))
    wait_for_paid(mock, 8)
    (raylet,) = (pid for pid, line in processes_of(short).items() if line.partition("\0")[0].endswith("/raylet"))
    os.kill(raylet, signal.SIGKILL)
    assert "does not answer; the same command goes on from here" in end(process, 3)
    assert list(short.iterdir()) == []
    mock.config(latency=0.0)
    run_alone(mock, tmp_path / "out")
    assert mock.stats()["paid"] <= QUESTIONS + CONCURRENCY
    assert results(tmp_path / "out") == results(plain)


def test_a_cluster_of_its_own_from_python_ends_with_the_run(short: Path, tmp_path: Path) -> None:
    script = f"""
import asyncio, os, judge
os.environ.pop("RAY_CLIENT_MODE", None)
before = dict(os.environ)
plan = dict(runs={str(EXAMPLE / "runs")!r}, passages={str(EXAMPLE / "passages.jsonl")!r}, criteria=["groundedness"],
            model="baseline/overlap")
here = judge.run(judge.Plan(**plan, out="here"))
async def as_a_notebook(out):
    return judge.run(judge.Plan(**plan, out=out, engine="ray", workers=2))
there = asyncio.run(as_a_notebook("there"))
assert list(here.results) == list(there.results)
assert dict(os.environ) == before
import ray
assert not ray.is_initialized()
# Another run of the process takes the token that it has now.
os.environ["RAY_AUTH_TOKEN"] = "t" * 64
before = dict(os.environ)
again = asyncio.run(as_a_notebook("again"))
assert list(here.results) == list(again.results)
assert dict(os.environ) == before
"""
    environment = {"TMPDIR": str(short), "HOME": str(tmp_path), **LOUD}
    process = start_python("-c", script, cwd=tmp_path, stdout=subprocess.PIPE, environment=environment)
    leaves_nothing(process, short, tmp_path, 0)
    assert recorded(tmp_path / "here") == recorded(tmp_path / "there")


def test_a_head_that_is_killed_ends_the_run_with_code_3(plain: Path, mock: Mock, tmp_path: Path) -> None:
    with ray_nodes() as own:
        own.add()
        # Workers answer on without a head, so the run has to last longer than the patience with it.
        mock.config(latency=2.0)
        process = start(mock, tmp_path / "out", *on(own))
        wait_for_paid(mock, 8)
        own.kill_head()
        complaint = end(process, 3)
    mock.config(latency=0.0)
    assert complaint.rstrip().endswith("does not answer; the same command goes on from here")
    assert not verify_journal(tmp_path / "out" / JOURNAL)[1]
    run_alone(mock, tmp_path / "out")
    assert mock.stats()["paid"] <= QUESTIONS + CONCURRENCY
    assert results(tmp_path / "out") == results(plain)
