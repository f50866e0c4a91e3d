"""Several `judge run` over one pool with a shared journal: no call is repeated, whoever is killed, the server too."""

import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from judge.ask.questions import is_filler
from judge.judges.journal_store import COLUMNS, recorded
from judge.judges.journal_tools import placed_rows, read_spending, verify_journal
from tests.conftest import INPUTS, ended, run_example, start_python
from tests.jobs.test_run import files
from tests.mock import Mock
from tests.postgres import Postgres
from tests.time_limit import wait_until

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("late")]

CONCURRENCY = 4
QUESTIONS = 2 * 77 - 2
"""77 responses under two prompts, less one without passage text and one whose text stands twice."""
COMMAND = (
    "import sys; from judge.extra.scale import postgres; postgres.LEASE = {lease}; "
    "from judge.cli import main; sys.exit(main(sys.argv[1:]))"
)
"""`judge`, with leases that do not keep a test waiting for a minute."""


def asked(mock: Mock, url: str) -> tuple[str, ...]:
    return ("--model", "server/mock", "--base-url", mock.base_url, "--concurrency", str(CONCURRENCY), "--journal", url)


def start(mock: Mock, out: Path, url: str, *more: str, lease: int = 3) -> subprocess.Popen[str]:
    return start_python("-c", COMMAND.format(lease=lease), "run", *INPUTS, *asked(mock, url), "--out", out, *more)


def run_after(mock: Mock, out: Path, url: str, *more: str) -> None:
    """The run in this process, when no other is about."""
    assert run_example(out, *asked(mock, url), *more) == 0


def wait_for_paid(mock: Mock, least: int) -> None:
    wait_until(lambda: mock.stats()["paid"] >= least)


def results(out: Path) -> dict[str, bytes]:
    """The files without those that name the folder."""
    return {name: data for name, data in files(out).items() if name not in ("manifest.json", "run.sha256")}


def test_three_processes_pay_once_and_write_the_same(postgres: Postgres, mock: Mock, tmp_path: Path) -> None:
    # A password need not be right where the server asks for none, and must be in no file all the same.
    url = postgres.database().replace("judge@", "judge:Sesame-opens@")
    processes = [start(mock, tmp_path / name, url) for name in "abc"]
    said = [ended(process) for process in processes]
    assert mock.stats()["paid"] == QUESTIONS
    assert set(mock.paid_per_item().values()) == {1}
    first, *others = (results(tmp_path / name) for name in "abc")
    assert all(other == first for other in others)
    assert not any(b"Sesame" in data for name in "abc" for data in files(tmp_path / name).values())
    assert not any("Sesame" in text for text in said)
    assert verify_journal(url)[:2] == (QUESTIONS, ())
    # Nothing is left to be asked, from another folder either.
    run_after(mock, tmp_path / "d", url)
    assert mock.stats()["paid"] == QUESTIONS
    assert results(tmp_path / "d") == first


def test_processes_with_a_cascade_pay_once_for_what_its_checker_leaves_open(postgres, mock, tmp_path) -> None:
    url = postgres.database()
    more = ("--criteria", "groundedness", "--prompt", "groundedness/sentences", "--cascade", "checker/overlap@0.3:0.7")
    processes = [start(mock, tmp_path / name, url, *more) for name in "ab"]
    for process in processes:
        ended(process)
    rows = [msgspec.json.decode(line) for line in (tmp_path / "a" / "judgments.jsonl").read_bytes().splitlines()]
    left_open = {row["request_digest"] for row in rows if row["judge"] == "server/mock"}
    assert 0 < len(left_open) < len(rows)
    assert mock.stats()["paid"] == len(left_open)
    assert results(tmp_path / "a") == results(tmp_path / "b")
    # Both judges are in the shared journal, and a dry run finds them there.
    assert {row.judge for row in read_spending(url)} == {"checker/overlap", "server/mock"}
    run_after(mock, tmp_path / "c", url, *more, "--dry-run")
    run_after(mock, tmp_path / "c", url, *more)
    assert mock.stats()["paid"] == len(left_open)


def test_a_question_is_asked_in_one_form_though_the_processes_learn_of_white_space_at_different_times(
    postgres: Postgres, mock: Mock, tmp_path: Path
) -> None:
    url = postgres.database()
    mock.config(faults={"white-space": 0.3})
    # The slower one has heard too few replies when the other one begins to ask in the text form.
    processes = [start(mock, tmp_path / name, url, *more) for name, more in (("a", ()), ("b", ("--rpm", "240")))]
    for process in processes:
        ended(process)
    text, sound = set(), set()
    for _, row in placed_rows(url):
        entry, question = recorded(row), row[COLUMNS.index("criterion") : COLUMNS.index("completion")]
        if entry.form == "text":
            text.add(question)
        elif not is_filler(entry.completion, entry.form):
            sound.add(question)
    assert text
    assert sound
    assert not text & sound
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_what_a_killed_process_was_asking_is_asked_by_another(postgres: Postgres, mock: Mock, tmp_path: Path) -> None:
    url = postgres.database()
    killed, other = start(mock, tmp_path / "killed", url), start(mock, tmp_path / "other", url)
    wait_for_paid(mock, 40)
    killed.kill()
    killed.communicate()
    ended(other)
    assert verify_journal(url)[:2] == (QUESTIONS, ())
    # Calls in flight and replies that were being written are paid for twice, nothing else.
    assert mock.stats()["paid"] <= QUESTIONS + 2 * CONCURRENCY
    assert postgres.execute("SELECT count(*) FROM lease", url=url) == [(0,)]


def test_a_server_that_is_killed_costs_no_call(postgres: Postgres, mock: Mock, tmp_path: Path) -> None:
    url = postgres.database()
    # On a busy machine the server may take longer to come back than a short lease lasts.
    mock.config(latency=0.4)
    processes = [start(mock, tmp_path / name, url, lease=60) for name in "ab"]
    wait_for_paid(mock, 1)
    # A process that comes while the server is away says so and ends.
    holders = "SELECT count(DISTINCT holder) FROM lease"
    wait_until(lambda: postgres.execute(holders, url=url)[0][0] == 2)
    postgres.kill()
    # Long enough for every reply in flight to come, and for no other call to begin.
    time.sleep(1)
    paid = mock.stats()["requests"]
    time.sleep(0.5)
    assert mock.stats()["requests"] == paid < QUESTIONS
    postgres.start()
    for process in processes:
        ended(process)
    assert set(mock.paid_per_item().values()) == {1}
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_a_server_that_stays_away_ends_the_run_and_the_same_command_goes_on(postgres, mock, tmp_path) -> None:
    url = postgres.database()
    process = start(mock, tmp_path / "out", url, "--max-wait", "1")
    wait_for_paid(mock, 30)
    postgres.kill()
    try:
        assert "the journal's database was away for longer than 1 seconds" in ended(process, 3)
        assert "cannot be reached" in ended(start(mock, tmp_path / "out", url), 3)
    finally:
        postgres.start()
    ended(start(mock, tmp_path / "out", url))
    assert verify_journal(url)[:2] == (QUESTIONS, ())
    # What was in flight as the server died is lost with the process that waited in vain.
    assert mock.stats()["paid"] <= QUESTIONS + 2 * CONCURRENCY
