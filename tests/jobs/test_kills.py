"""`judge run` killed at random moments against a misbehaving server: nothing is lost, and the end is the same bytes.

Ten trials run with the other tests; `JUDGE_KILL_TRIALS=200` in the environment runs as many.
"""

import contextlib
import json
import os
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

TRIALS = int(os.environ.get("JUDGE_KILL_TRIALS", "10"))
CONCURRENCY = 8
QUESTIONS = 2 * 77 - 2
"""77 responses under two prompts, less one without passage text and one whose text stands twice."""
PASSING = {"dropped": 0.03, "half-sent": 0.03, "html": 0.02, "error-in-200": 0.02}
"""Faults that another attempt overcomes, so that each of them leaves the results as they are."""
PAID_AND_LOST = ("dropped", "half-sent")


def command(mock: Mock) -> tuple[object, ...]:
    """`judge run` in a folder of its own, where all command lines are the same."""
    asked = ("--model", "server/mock", "--base-url", mock.base_url, "--concurrency", CONCURRENCY, "--attempts", 12)
    return ("run", *INPUTS, *asked, "--out", "out")


def start(mock: Mock, folder: Path) -> subprocess.Popen[str]:
    return start_python("-m", "judge", *command(mock), cwd=folder)


def finish(mock: Mock, folder: Path) -> None:
    """The same command in this process, to its end."""
    with contextlib.chdir(folder):
        done = run_here(*command(mock))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def untroubled(server: Mock, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("untroubled")
    server.reset()
    finish(server, folder)
    return files(folder / "out")


def apart_from_calls(found: dict[str, bytes]) -> dict[str, Any]:
    """The files without what the calls took: two journals have other times and other numbers of attempts."""
    manifest = json.loads(found["manifest.json"])
    for row in manifest["spending"]:
        del row["attempts"], row["seconds"]
    checksums = [line for line in found["run.sha256"].splitlines() if not line.endswith(b" manifest.json")]
    return {**found, "manifest.json": manifest, "run.sha256": checksums}


def kill(mock: Mock, process: subprocess.Popen[str], chance: random.Random) -> bool:
    """Kill a process after so many paid calls, or after some time; False if it ended before."""
    deadline = time.monotonic() + PATIENCE
    if chance.random() < 0.7:
        least = mock.stats()["paid"] + chance.randrange(1, 120)
        while process.poll() is None and mock.stats()["paid"] < least and time.monotonic() < deadline:
            time.sleep(0.002)
    else:
        # While it starts, and while it writes its results, no call is paid for.
        time.sleep(chance.uniform(0.1, 3.0))
    killed = process.poll() is None
    process.kill()
    process.communicate()
    return killed


@pytest.mark.parametrize("trial", range(TRIALS))
def test_a_killed_run_loses_nothing(server: Mock, untroubled: dict[str, bytes], tmp_path: Path, trial: int) -> None:
    chance = random.Random(trial)
    server.reset()
    server.config(
        latency=0.02, jitter=0.5, p429=0.05, p500=0.03, pdrop=0.02, retry_after=0.05, seed=trial, faults=PASSING
    )
    kills = sum(kill(server, start(server, tmp_path), chance) for _ in range(chance.randrange(1, 4)))
    finish(server, tmp_path)
    finished = files(tmp_path / "out")
    assert apart_from_calls(finished) == apart_from_calls(untroubled)
    report = verify_journal(tmp_path / "out" / "journal.sqlite")
    assert (report.sound, report.problems) == (QUESTIONS, ())
    # Beyond one for each question, only what was cut off was paid for, what was in flight at a kill, and what was being
    # written.
    counted = server.stats()
    lost = sum(counted["faults"].get(name, 0) for name in PAID_AND_LOST)
    assert QUESTIONS <= counted["paid"] - lost <= QUESTIONS + kills * 2 * CONCURRENCY
    # Nothing is left to be asked.
    before = counted["requests"]
    finish(server, tmp_path)
    assert server.stats()["requests"] == before
    assert files(tmp_path / "out") == finished
