"""Calibrations, probes, benches and banks of nuggets on a shared journal: nothing is paid twice."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.errors import UsageError
from judge.extra.bench.job import BenchPlan, bench_judges
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.judges.journal_tools import verify_journal
from tests.conftest import PROJECT, complaint, ended, start_python
from tests.extra.bench.bench_world import dataset, items, write
from tests.jobs.test_run import files
from tests.mock import Mock
from tests.postgres import Postgres

pytestmark = pytest.mark.long

EXAMPLE = PROJECT / "examples"
FACTS_OF_A_DAY = ("journal.sqlite", "timing.json", "bench.sha256")
LEDGER = ("certificate.json", "calibration.md", "calibration.json", "calibration.sha256")
"""Files of a calibration that hold the digest of the ledger of looks, which has a time."""


def results(out: Path) -> dict[str, bytes]:
    return {
        name: re.sub(rb"[0-9a-f]{64}", b"", data) if name in LEDGER else data
        for name, data in files(out).items()
        if name not in FACTS_OF_A_DAY
    }


def calibrating(mock: Mock, pooled: Path, folder: Path, *more: str) -> subprocess.Popen[str]:
    """`judge calibrate` in a folder with its own copy of the gold, because looks at gold are counted beside it."""
    folder.mkdir()
    shutil.copy(PROJECT / "gold" / "example.gold.jsonl", folder)
    return start_python(
        "-m", "judge", "calibrate", "--gold", "example.gold.jsonl", "--pool", pooled, "--model",
        "server/mock", "--base-url", mock.base_url, "--concurrency", "4", "--prompt", "groundedness/graded",
        "--prompt", "groundedness/yes_no", "--criterion", "groundedness", "--gold-scale", "groundedness/graded",
        "--replicates", "200", "--permutations", "200", "--out", "out", *more, cwd=folder,
    )  # fmt: skip


def test_two_calibrations_at_once_pay_once_and_say_what_one_with_a_file_says(
    postgres: Postgres, mock: Mock, pooled: Path, tmp_path: Path
) -> None:
    mock.config(latency=0.05, jitter=0.5)
    url = postgres.database()
    processes = [calibrating(mock, pooled, tmp_path / name, "--journal", url) for name in "ab"]
    for process in processes:
        ended(process)
    paid = mock.stats()["paid"]
    assert paid == verify_journal(url).sound > 0
    assert set(mock.paid_per_item().values()) == {1}
    first, second = (results(tmp_path / name / "out") for name in "ab")
    assert first == second
    assert not (tmp_path / "a" / "out" / "journal.sqlite").exists()
    ended(calibrating(mock, pooled, tmp_path / "c"))
    assert mock.stats()["paid"] == 2 * paid
    assert results(tmp_path / "c" / "out") == first


def test_a_journal_is_for_a_calibration_that_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://judge:Sesame-opens@h/d"
    command = ("calibrate", "--gold", "absent", "--judgments", "absent", "--journal", url)
    said = complaint(capsys, main(list(command)))
    assert "--journal" in said
    assert "Sesame" not in said
    with pytest.raises(UsageError, match="--journal: without effect here: they are about asking a judge"):
        calibrate_judges(CalibrationPlan(gold=["absent"], judgments=["absent"], journal=url))
    with pytest.raises(UsageError, match="must begin with postgresql://"):
        calibrate_judges(
            CalibrationPlan(gold=["g"], models=["server/m"], prompts=["p"], pool="p", out=tmp_path, journal="file")
        )
    with pytest.raises(UsageError, match="stored labels need no journal"):
        bench_judges(BenchPlan(data=tmp_path / "data", out=tmp_path / "out", journal=url))


@pytest.fixture
def commands(mock: Mock, pooled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Commands that ask, without their --out."""
    monkeypatch.setattr("judge.extra.bench.DATASETS", {"made-up": dataset()})
    judge = ["--model", "server/mock", "--base-url", mock.base_url]
    topics = ["--topics", str(EXAMPLE / "topics.json")]
    return {
        "probe": ["probe", str(pooled), *judge, "--items", "3", "--criteria", "naturalness", *topics],
        "bench": ["bench", "--data", str(write(tmp_path / "data", items())), *judge],
        "nuggets create": ["nuggets", "create", "--pool", str(pooled), *topics, *judge, "--limit", "3"],
    }


@pytest.mark.parametrize("name", ["probe", "bench", "nuggets create"])
def test_what_one_job_paid_for_another_one_takes_from_the_shared_journal(
    postgres: Postgres,
    mock: Mock,
    tmp_path: Path,
    commands: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    url = postgres.database()

    def done(out: str, *more: str) -> tuple[int, Any]:
        code = main([*commands[name], "--out", str(tmp_path / out), *more])
        assert code in (0, 1)
        return code, mock.stats()["paid"]

    # With a journal in a file first, so that the mock has the same to say of every question.
    own = done("own")
    mock.reset()
    assert done("first", "--journal", url) == own
    assert verify_journal(url).sound == own[1] > 0
    assert not (tmp_path / "first" / "journal.sqlite").exists()
    capsys.readouterr()
    assert done("dry", "--journal", url, "--dry-run")[1] == own[1]
    assert "calls to be made 0" in " ".join(capsys.readouterr().out.split())
    assert done("second", "--journal", url) == own
    given = [results(tmp_path / out) for out in ("own", "first", "second")]
    assert given[1:] == given[:-1]
    # What a folder's own journal holds is taken over.
    other = postgres.database()
    assert done("own", "--journal", other)[1] == own[1]
    assert verify_journal(other).sound == own[1]
