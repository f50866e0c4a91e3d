"""Real runs against a server that limits them: all is judged, or the run ends at once and says when to come back."""

import signal
import time
from pathlib import Path

import pytest

from tests.conftest import json_lines
from tests.jobs.test_crash import finish, started
from tests.mock import Mock
from tests.time_limit import PATIENCE

pytestmark = pytest.mark.long


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
