"""The folders of clusters: which of them the next run removes."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from judge.ask.ray.folder import OwnFolder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no folder is known to be abandoned on Windows")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # That of a test is longer than Ray's sockets leave room for.
    monkeypatch.setattr("judge.ask.ray.folder._HOME", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def killed(folder: OwnFolder) -> Path:
    """The folder, as its driver leaves it that is killed."""
    assert folder._lock is not None
    os.close(folder._lock)
    (folder.path / "session" / "logs").mkdir(parents=True)
    (folder.path / "session" / "logs" / "raylet.out").write_text("said")
    return folder.path


def test_the_folder_of_a_dead_driver_is_removed_by_the_next_and_no_other(home: Path) -> None:
    running, dead = OwnFolder(), killed(OwnFolder())
    own = OwnFolder()
    assert not dead.exists()
    assert sorted(home.iterdir()) == sorted([running.path, own.path])
    own.remove()
    running.remove()
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("home")
def test_what_a_folder_links_to_stays(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "mine").write_text("mine")
    dead = killed(OwnFolder())
    (dead / "session" / "link").symlink_to(other)
    OwnFolder().remove()
    assert not dead.exists()
    assert (other / "mine").read_text() == "mine"


def test_what_is_no_folder_of_a_cluster_stays(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = killed(OwnFolder()).rename(tmp_path_factory.mktemp("elsewhere") / "judge-1")
    kept = [home / name for name in ("judge-postgres", "judge-file", "judge-link", "judge-lock")]
    kept[0].mkdir()
    kept[1].write_text("no folder")
    kept[2].symlink_to(elsewhere)
    kept[3].mkdir()
    # Whoever follows it would lock a file of somebody else.
    (kept[3] / "driver.lock").symlink_to(elsewhere / "driver.lock")
    own = OwnFolder()
    assert sorted(home.iterdir()) == sorted([*kept, own.path])
    assert (elsewhere / "driver.lock").exists()


def test_a_folder_of_another_user_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = killed(OwnFolder())
    monkeypatch.setattr(os, "geteuid", lambda: dead.stat().st_uid + 1)
    assert OwnFolder().path != dead
    assert dead.exists()
