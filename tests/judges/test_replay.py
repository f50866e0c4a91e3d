from pathlib import Path

import pytest

from judge.ask.budget import Settings
from judge.ask.loop import assess
from judge.ask.records import Failure
from judge.ask.tasks import tasks
from judge.errors import InputError, UsageError
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from tests.ask.test_loop import Scripted, criterion, pool

ONE = pool(["a", "b", "c"])
QUICK = Settings(concurrency=2, attempts=1)


def record(path: Path, model: Scripted) -> tuple[object, ...]:
    with Journal(path) as journal:
        return tuple(assess(tasks(ONE, [criterion()]), model, journal, ONE, settings=QUICK))


def test_a_replayed_run_is_the_recorded_run(tmp_path: Path) -> None:
    original = record(tmp_path / "recorded", Scripted({"a": ["hm", "Grade: 1"], "b": ["Grade: 3"]}))
    replay = open_model(f"replay/{tmp_path / 'recorded'}")
    assert replay.name == "fake/scripted"
    with Journal(tmp_path / "new") as journal:
        assert assess(tasks(ONE, [criterion()]), replay, journal, ONE, settings=QUICK) == original


def test_what_was_not_recorded_fails_and_is_not_invented(tmp_path: Path) -> None:
    record(tmp_path / "recorded", Scripted())
    more = pool(["a", "new"])
    with Journal(tmp_path / "new") as journal:
        replay = open_model(f"replay/{tmp_path / 'recorded'}")
        _, missing = assess(tasks(more, [criterion()]), replay, journal, more, settings=QUICK)
    assert isinstance(missing, Failure)
    assert missing.reason == "provider_error"
    assert "holds no completion" in missing.detail


def test_two_judges_in_a_file_must_be_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "recorded"
    record(path, Scripted())
    other = Scripted(default="Grade: 0")
    other.name = "fake/other"
    record(path, other)
    with pytest.raises(UsageError, match=r"several judges.*fake/other, fake/scripted"):
        open_model(f"replay/{path}")
    assert open_model(f"replay/{path}::fake/other").name == "fake/other"
    with pytest.raises(UsageError, match="no judge 'fake/third'"):
        open_model(f"replay/{path}::fake/third")


def test_no_recording(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such journal"):
        open_model(f"replay/{tmp_path / 'absent'}")
    with Journal(tmp_path / "empty"):
        pass
    with pytest.raises(UsageError, match="is empty"):
        open_model(f"replay/{tmp_path / 'empty'}")
