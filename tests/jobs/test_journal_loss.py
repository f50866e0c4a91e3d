"""Journals that lose their end, go away or are shared while real processes use them."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from judge.judges.journal_tools import read_journal, verify_journal
from tests.conftest import run_python, start_python
from tests.jobs.test_crash import command, finish, started
from tests.jobs.test_run import results
from tests.mock import Mock, wait_for_paid
from tests.time_limit import PATIENCE

pytestmark = pytest.mark.long

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
def test_a_journal_that_lost_its_end_is_refused_and_salvaged(mock, killed, untroubled, tmp_path, share) -> None:
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
    new = tmp_path / "new.sqlite"
    salvaged = run_python("-m", "judge", "journal", "salvage", out, "-o", new)
    assert salvaged.returncode in (0, 1), salvaged.stderr
    kept = len(list(read_journal(new)))
    new.replace(journal)
    done = finish(mock, out)
    assert done.returncode == 0, done.stderr
    assert results(out) == untroubled
    assert mock.stats()["paid"] == QUESTIONS - kept


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
            other = run_python("-m", "judge", "journal", action, out)
            assert other.returncode == 2
            assert "another judge process is using it" in other.stderr
    finally:
        first.kill()
        first.communicate()
