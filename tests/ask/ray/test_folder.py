"""The folders of clusters: which of them the next run removes."""

import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from judge.ask.ray.folder import OwnFolder
from tests.time_limit import time_limit

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
    elsewhere = killed(OwnFolder()).rename(tmp_path_factory.mktemp("elsewhere") / "judge-ray-1")
    kept = [home / name for name in ("judge-ray-empty", "judge-ray-file", "judge-ray-link", "judge-ray-lock")]
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


@pytest.mark.parametrize("name", ["judge-data", "judge-ray-data"])
@pytest.mark.parametrize("lock", ["", "of another program\n", None])
def test_a_folder_that_judge_has_not_marked_stays(lock: str | None, name: str, home: Path) -> None:
    other = home / name
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    if lock is None:
        # Whoever opens it without care waits for somebody who writes.
        os.mkfifo(other / "driver.lock")
    else:
        (other / "driver.lock").write_text(lock)
    with time_limit(20.0):
        OwnFolder().remove()
    assert (other / "mine.txt").read_text() == "mine"
    assert (other / "driver.lock").exists()


@pytest.mark.parametrize("when", ["while it is emptied", "before it goes"])
@pytest.mark.parametrize("killed_before", [True, False])
def test_what_a_process_writes_late_is_removed_by_a_later_run(
    killed_before: bool, when: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.ask.ray.folder._LAST", 0.05)
    own = OwnFolder()
    (own.path / "session").mkdir()
    late = own.path / "session" / "late"

    def write() -> None:
        late.parent.mkdir(parents=True, exist_ok=True)
        late.write_text("said")

    rmtree, rmdir = shutil.rmtree, Path.rmdir

    def remove_tree(path: Path, **options: bool) -> None:
        rmtree(path, **options)
        write()

    def remove_folder(path: Path) -> None:
        write()
        rmdir(path)

    with monkeypatch.context() as patched:
        if when == "before it goes":
            patched.setattr(Path, "rmdir", remove_folder)
        else:
            patched.setattr(shutil, "rmtree", remove_tree)
        if killed_before:
            killed(own)
            OwnFolder()
        else:
            own.remove()
    assert late.exists()
    OwnFolder().remove()
    assert not own.path.exists()


def test_a_disk_that_is_full_leaves_no_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(file: int, text: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space left"):
        OwnFolder()
    assert list(home.iterdir()) == []
