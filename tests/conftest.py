"""Shared fixtures; no test reaches beyond this machine."""

import contextlib
import gc
import importlib
import io
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from judge.cli import main
from judge.errors import InputError
from judge.gold.seal import LEDGER, Entry, parse_ledger, read_seal
from judge.io import draw, files
from judge.records import Problem
from tests.browsing import browser, page
from tests.mock import Mock, ask, start_mock
from tests.scoring import serve
from tests.time_limit import PATIENCE

__all__ = ["ask", "browser", "page", "serve"]

PROJECT = Path(__file__).parent.parent
WITHOUT_ANNEXES = os.environ.get("JUDGE_TESTS") == "core"
"""Whether the tests run in a copy without any annex, as `tests/test_plugins.py` makes it."""
# Scripts, which hold no doctests.
collect_ignore = ["fuzz.py", "mock/server.py"]
if WITHOUT_ANNEXES:
    # These are about the whole house.
    collect_ignore += ["reader.py", "cli/test_width.py", "jobs/test_folders.py", "extra"]
    collect_ignore_glob = ["test_*.py"]
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# How long an example takes says how busy the machine is.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
_RENDERED = draw.rendered
_RUNNING = pytest.StashKey[pytest.Item]()


def annex(module: str) -> Any:
    """A module of `judge.extra`; the test is skipped where the tests run without any."""
    if WITHOUT_ANNEXES:
        pytest.skip("the annexes are deleted here")
    return importlib.import_module(f"judge.extra.{module}")


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Refuse every connection that is not to this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if self.family in (socket.AF_INET, socket.AF_INET6) and host not in _LOOPBACK:
            raise RuntimeError(f"a test tried to connect to {address}")
        connect(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(autouse=True, scope="session")
def _plain_terminal() -> Iterator[None]:
    """Forget the terminal in which the tests run; xdist names a width to its workers as well."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_words_about_time_no_wait_for_the_disk_and_no_pictures() -> Iterator[None]:
    """Let no job say how long it takes, which depends on the machine, nor wait for a disk that is not switched off.

    Drawing takes most of the time where there is a picture; a test of pictures asks for `pictures`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.io.steps.FIRST", math.inf)
        patch.setattr(os, "fsync", lambda file: None)
        patch.setattr(draw, "rendered", lambda figure: (b"<svg/>", b"\x89PNG"))
        yield


@pytest.fixture(scope="module")
def pictures() -> Iterator[None]:
    """Draw pictures as they are, in this test and those below it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw, "rendered", _RENDERED)
        yield


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write completions at once: who makes one call at a time would wait after each until others are gathered."""
    monkeypatch.setattr("judge.judges.journal._PAUSE", 0.0)


@pytest.fixture
def heeded() -> Iterator[None]:
    """Let no signal that ends a program be ignored here or in processes that a test starts.

    `nohup`, and a shell that starts something in the background, have it ignored by all that they start.
    """
    usual = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.getsignal(number) for number in usual}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, usual[number])
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every key, address and proxy of a judge out of the environment."""
    for name in list(os.environ):
        if re.search(r"^OPENAI_|_API_KEY$|_API_BASE$|_BASE_URL$|_proxy$", name, re.I):
            monkeypatch.delenv(name)


INPUTS = ["--runs", str(PROJECT / "examples/runs"), "--topics", str(PROJECT / "examples/topics.json"), "--passages",
          str(PROJECT / "examples/passages.jsonl")]  # fmt: skip
"""The options that name the bundled example."""


def run_example(out: Path, *more: str) -> int:
    """The exit code of `judge run` on the bundled example."""
    return main(["run", *INPUTS, "--out", str(out), *more])


def start_python(
    *words: object, cwd: Path = PROJECT, environment: dict[str, str] | None = None, **more: Any
) -> subprocess.Popen[str]:
    """A Python process with the modules of this checkout; `more` is passed on to `Popen`."""
    path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **more}
    environment = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    return subprocess.Popen([sys.executable, *map(str, words)], cwd=cwd, env=environment, text=True, **streams)


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """What a process that ends by itself says on stderr."""
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, complaint
    return complaint


def run_python(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """A Python process from its start to its end, and what it says."""
    process = start_python(*words, **{"stdout": subprocess.PIPE, **more})
    said, complaint = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, said, complaint)


def run_here(*words: object) -> subprocess.CompletedProcess[str]:
    """A command in this process, and what it says."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(map(str, words)))
        except SystemExit as refused:
            code = int(refused.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def put(path: Path, content: object) -> Path:
    """A file with this text, these bytes or this value as JSON, in a folder that is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def put_run(path: Path, name: str, texts: Mapping[str, Sequence[str]], **head: object) -> Path:
    """A run of 2023 with a response for each text of a turn, ranked from 1; the one of rank 1 stands last."""
    turns = []
    for turn_id, given in texts.items():
        ranked = [
            {"rank": k, "text": text, "ptkb_provenance": [], "passage_provenance": []}
            for k, text in enumerate(given, 1)
        ]
        turns.append({"turn_id": turn_id, "responses": ranked[::-1]})
    return put(path, {"run_name": name, "run_type": "automatic", **head, "turns": turns})


def refused(call: Callable[..., object], *given: object, **named: object) -> tuple[Problem, ...]:
    """The problems for which a call refuses its input."""
    with pytest.raises(InputError) as raised:
        call(*given, **named)
    return raised.value.problems


def on_stderr(capsys: pytest.CaptureFixture[str], code: int, expected: int = 0) -> str:
    """What a command says on stderr, by its exit code."""
    said = capsys.readouterr().err
    assert code == expected, said
    return said


def complaint(capsys: pytest.CaptureFixture[str], code: int) -> str:
    """What a command that refuses its input says."""
    return on_stderr(capsys, code, 2)


def printed(capsys: pytest.CaptureFixture[str], code: int, expected: int = 0) -> str:
    """What a command prints, by its exit code."""
    out, said = capsys.readouterr()
    assert code == expected, said
    return out


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_ledger(seal: Path) -> tuple[Entry, ...]:
    """Every question that was put to sealed grades, in order."""
    ledger = seal.with_name(LEDGER)
    content = ledger.read_bytes() if ledger.exists() else b""
    return parse_ledger(content, read_seal(seal).commitment, str(ledger))[0]


def manifest(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "manifest.json").read_bytes())
    return found


@pytest.fixture(scope="session")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pool of the bundled example, to be read only."""
    out = tmp_path_factory.mktemp("pooled") / "out"
    assert main(["pool", *INPUTS, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bundled example as word overlap judges its groundedness, to be read only."""
    out = tmp_path_factory.mktemp("judged") / "out"
    asked = ["--criteria", "groundedness", "--model", "baseline/overlap"]
    assert main(["run", *INPUTS, *asked, "--out", str(out)]) == 0
    return out


@pytest.fixture
def out(judged: Path, tmp_path: Path) -> Path:
    """A copy of that folder, which a test may change."""
    return Path(shutil.copytree(judged, tmp_path / "out"))


class Terminal(io.StringIO):
    """An output stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@cache
def _is_slow(module: Path) -> bool:
    """Whether all tests of a module are slow: it says so, calls whole commands, or has a server answer."""
    text = module.read_text(encoding="utf-8")
    if re.search(r"^pytestmark = pytest.mark.fast$", text, re.M):
        return False
    return bool(
        re.search(r"^pytestmark = .*(slow|long)|^from (judge\.cli import .*main|tests\.(mock|scoring))\b", text, re.M)
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """After an edit, do not even import the modules of slow tests."""
    name = collection_path.name
    fast = config.option.markexpr == "fast" and name.startswith("test_") and name.endswith(".py")
    return True if fast and _is_slow(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test as fast or slow, so that nobody keeps a list.

    Slow is what says so itself, what takes many examples (hypothesis), what reads the real data, and every test of a
    module that calls whole commands or has a server answer. The rest is fast.
    Long is what says so itself and what needs a browser; it is slow too.
    """
    for item in items:
        if item.path.name.startswith("test_") and _is_slow(item.path):
            item.add_marker(pytest.mark.slow)
        if {"page", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.slow)
        if "shared" in getattr(item, "fixturenames", ()) or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.fast)


def pytest_collection_finish() -> None:
    """Leave what is imported and collected to itself: each search of it for garbage takes most of a second."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_process_in_fast_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Refuse to start a process in a test that is run after every edit."""
    start, running = subprocess.Popen.__init__, request.session.stash

    def guarded(self: Any, arguments: object, *more: Any, **options: Any) -> None:
        if running[_RUNNING].get_closest_marker("slow") is None:
            raise RuntimeError(f"a test that starts a process needs the mark `slow`; this one starts {arguments}")
        start(self, arguments, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", guarded)
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell the guard of processes which test runs, with files of the usual size; fixtures would take longer."""
    item.session.stash[_RUNNING] = item
    files._largest = files.LARGEST_FILE


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real public data beside the checkout."""
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real public data is not beside this checkout (../shared/data)")
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[Mock]:
    with start_mock() as mock:
        yield mock


@pytest.fixture
def mock(server: Mock) -> Mock:
    server.reset()
    return server


@pytest.fixture
def late(mock: Mock) -> None:
    mock.config(latency=0.1, jitter=0.5)
