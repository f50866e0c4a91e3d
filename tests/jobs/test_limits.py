"""Real runs against a server that limits them: all is judged, or the run ends at once and says when to come back."""

import signal
import time
from pathlib import Path

import pytest

from tests.conftest import json_lines
from tests.jobs.test_crash import CONCURRENCY, finish, started
from tests.mock import Mock
from tests.time_limit import PATIENCE

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        ("anthropic-spend", "give the same command again after 2099-01-01 00:00 UTC"),
        ("gemini-day", "after midnight Pacific time"),
        ("openai-quota", "add credit to the account"),
        ("openrouter-credit", "add credit to the account"),
        ("azure-day", "asks to wait 1 day, longer than --max-wait 300 (seconds): give the same command again after 2"),
    ],
)
def test_a_limit_that_no_wait_outlasts_ends_the_run_at_once(mock: Mock, tmp_path, refusal: str, told: str) -> None:
    """One request of each call that is in flight; five more of each would be in vain."""
    mock.config(refuse=refusal)
    done = finish(mock, tmp_path / "out")
    assert done.returncode == 3
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert mock.stats()["requests"] <= CONCURRENCY


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


def test_an_endpoint_that_takes_no_calls_ends_the_run(mock: Mock, tmp_path: Path) -> None:
    mock.config(p429=1, retry_after=0.1)
    done = finish(mock, tmp_path / "out", "--max-wait", "1.5")
    assert done.returncode == 3
    assert "takes no calls" in done.stderr
    mock.config(p429=0)
    assert finish(mock, tmp_path / "out").returncode == 0


def test_ctrl_c_ends_a_long_pause(mock: Mock, tmp_path: Path) -> None:
    process = started(mock, tmp_path / "out", least=4)
    mock.config(p429=1, retry_after=200)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, complaint
    assert "the same command goes on from here" in complaint
    mock.config(p429=0)
    assert finish(mock, tmp_path / "out").returncode == 0
    assert set(mock.paid_per_item().values()) == {1}
