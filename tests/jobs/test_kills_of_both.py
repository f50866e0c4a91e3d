"""`judge run` about responses and passages, killed in either part: nothing is paid twice, the end is the same bytes."""

import contextlib
import json
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from judge.judges.journal_tools import verify_journal
from tests.conftest import INPUTS, run_here, start_python
from tests.jobs.test_run import files
from tests.mock import Mock
from tests.time_limit import PATIENCE

pytestmark = pytest.mark.long

CONCURRENCY = 4
RESPONSES = 77 - 1
"""Less one without passage text."""
PASSAGES = 52 - 1
"""Less one without text."""


def command(mock: Mock) -> tuple[object, ...]:
    asked = ("--model", "server/mock", "--base-url", mock.base_url, "--concurrency", CONCURRENCY)
    return ("run", *INPUTS, "--criteria", "passage_relevance", "groundedness", *asked, "--out", "out")


def finish(mock: Mock, folder: Path) -> None:
    """The same command in this process, to its end."""
    with contextlib.chdir(folder):
        done = run_here(*command(mock))
    assert done.returncode == 0, done.stderr


def kill(mock: Mock, process: subprocess.Popen[str], paid: int) -> bool:
    """Kill a process once so many calls were paid in all; False if it ended before."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and mock.stats()["paid"] < paid and time.monotonic() < deadline:
        time.sleep(0.002)
    killed = process.poll() is None
    process.kill()
    process.communicate()
    return killed


def apart_from_calls(found: dict[str, bytes]) -> dict[str, Any]:
    """The files without what the calls took."""
    kept: dict[str, Any] = {}
    for name, data in found.items():
        if name.endswith("manifest.json"):
            manifest = json.loads(data)
            for row in manifest["spending"]:
                del row["attempts"], row["seconds"]
            kept[name] = manifest
        elif name.endswith("run.sha256"):
            kept[name] = [line for line in data.splitlines() if not line.endswith(b" manifest.json")]
        elif not name.endswith("journal.sqlite"):
            kept[name] = data
    return kept


@pytest.fixture(scope="module")
def untroubled(server: Mock, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("untroubled")
    server.reset()
    finish(server, folder)
    assert server.stats()["paid"] == RESPONSES + PASSAGES
    return files(folder / "out")


# In the responses, on the way from one part to the other, in the passages, and in each part.
@pytest.mark.parametrize("places", [(20,), (RESPONSES,), (RESPONSES + 1,), (RESPONSES + 25,), (10, RESPONSES + 10)])
def test_a_kill_in_either_part_loses_nothing(
    server: Mock, untroubled: dict[str, bytes], tmp_path: Path, places: tuple[int, ...]
) -> None:
    server.reset()
    server.config(latency=0.02, jitter=0.5, seed=sum(places))
    kills = 0
    for paid in places:
        started = start_python("-m", "judge", *command(server), cwd=tmp_path)
        kills += kill(server, started, paid)
    assert kills == len(places)
    finish(server, tmp_path)
    finished = files(tmp_path / "out")
    assert apart_from_calls(finished) == apart_from_calls(untroubled)
    sound = [verify_journal(tmp_path / "out" / part / "journal.sqlite").sound for part in (".", "passages")]
    assert sound == [RESPONSES, PASSAGES]
    # Beyond one for each question, only what was in flight at a kill was paid for, and what was being written.
    paid = server.stats()["paid"]
    assert RESPONSES + PASSAGES <= paid <= RESPONSES + PASSAGES + kills * 2 * CONCURRENCY
    # Nothing is left to be asked.
    finish(server, tmp_path)
    assert server.stats()["paid"] == paid
    assert files(tmp_path / "out") == finished


def test_a_kill_while_files_are_written_loses_nothing(
    server: Mock, untroubled: dict[str, bytes], tmp_path: Path
) -> None:
    """After the last answer a process reads, joins and writes; it is killed somewhere there."""
    for trial in range(4):
        folder = tmp_path / str(trial)
        folder.mkdir()
        server.reset()
        started = start_python("-m", "judge", *command(server), cwd=folder)
        deadline = time.monotonic() + PATIENCE
        while server.stats()["paid"] < RESPONSES + PASSAGES and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(random.Random(trial).uniform(0.0, 0.6))
        started.kill()
        started.communicate()
        finish(server, folder)
        assert apart_from_calls(files(folder / "out")) == apart_from_calls(untroubled)
