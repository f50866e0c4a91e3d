"""The checks of this machine: nothing is sent, and one small file is written and removed again."""

import contextlib
import importlib.metadata
import locale
import os
import platform
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from judge.errors import JudgeError, UsageError
from judge.io.installed import DISTRIBUTION, EXTRAS, __version__, has_extra
from judge.io.processes import usable_cores
from judge.io.text import count
from judge.judges.catalog import CATALOG
from judge.judges.credentials import read_key, refuse_unrecorded
from judge.judges.weights import cache_folder, is_here
from judge.records import Record
from judge.runs.tokens import TokenCounter

CheckState = Literal["ok", "warning", "fails"]
"""fails: a run would not work, or not as it should. warning: it would work, and something is worth knowing."""


class CheckFinding(Record, frozen=True):
    """One line of `judge doctor`."""

    check: str
    state: CheckState
    found: str
    """What was found."""
    advice: str | None = None
    """What to do; None if there is nothing to do."""
    model: str | None = None
    """`backend/model`; None where the check is about this machine."""


class CheckReport(Record, frozen=True):
    """All that `judge doctor` found."""

    findings: tuple[CheckFinding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing fails."""
        return all(finding.state != "fails" for finding in self.findings)


_PACKAGES = ("msgspec", "numpy", "scipy", "spacy", "aiohttp", "openai", "litellm", "krippendorff")
_COUNTED = ("It's 7:30 p.m., isn't it?", 5, 9, 5)
"""A text, and its tokens by the rules `bare`, `english` and `whitespace`."""
_LITTLE_SPACE, _LITTLE_MEMORY, _SLOW_DISK, _NARROW = 1 << 30, 2 << 30, 0.1, 80
"""Bytes on the disk and in memory, seconds of an fsync, and columns, beyond which a warning is due."""
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MEMORY = Path("/proc/meminfo")
_Finding = tuple[CheckState, str, str | None]
"""State, what was found, advice."""


def python(folder: Path) -> _Finding:
    """The version of Python, the system, and that of judge."""
    # Not platform(), which starts a process.
    system = f"{platform.system()} {platform.release()} ({platform.machine()})"
    return "ok", f"{platform.python_version()} on {system}, judge {__version__}", None


def packages(folder: Path) -> _Finding:
    """The versions of the packages that reading, counting, asking and statistics rest on, and whose `judge` is here."""
    if others := [each.name for each in importlib.metadata.distributions() if _has_our_module(each)]:
        theirs = ", ".join(sorted(others))
        return "fails", f"{theirs} has a module judge, too", f"remove {theirs}, then install {DISTRIBUTION} anew"
    versions = {name: _version(name) for name in _PACKAGES}
    if missing := [name for name, version in versions.items() if not version]:
        return "fails", f"not installed: {', '.join(missing)}", "install judge anew with pip"
    return "ok", ", ".join(f"{name} {version}" for name, version in versions.items()), None


def _has_our_module(package: importlib.metadata.Distribution) -> bool:
    """Whether another package has files in a folder `judge`: it and this one overwrite each other's."""
    # An install that leads to a checkout has its bundled files alone.
    file = re.search(r"^judge/(?!_bundled/)", package.read_text("RECORD") or "", re.MULTILINE)
    return file is not None and package.name != DISTRIBUTION


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def extras(folder: Path) -> _Finding:
    """Which extras are installed, and how to get the others."""
    here = {name: EXTRAS[name].package for name in EXTRAS if has_extra(name)}
    told = [f"{name} ({each} {_version(each)})" if _version(each) else name for name, each in here.items()]
    found = f"installed: {', '.join(told) or 'none'}"
    if missing := [name for name in EXTRAS if name not in here]:
        return "ok", f"{found}; not installed: {', '.join(missing)}", f"`pip install '{DISTRIBUTION}[NAME]'` adds one"
    return "ok", found, None


def keys(folder: Path) -> _Finding:
    """Which keys the environment holds, by name."""
    good: list[str] = []
    bad: list[str] = []
    for name in sorted(name for name in os.environ if name.endswith("_API_KEY")):
        try:
            (good if read_key(name) else bad).append(name)
        except UsageError:
            bad.append(name)
    if bad:
        return "warning", f"empty, or with characters that no key has: {', '.join(bad)}", "set them anew, or unset them"
    return "ok", f"set: {', '.join(good)}" if good else "none is set; local/… and baseline/… need none", None


def environment(folder: Path) -> _Finding:
    """The variables that decide where and how a judge is asked."""
    try:
        refuse_unrecorded(os.environ)
    except UsageError as error:
        return "fails", str(error), "unset it"
    names = ("JUDGE_MODEL", "JUDGE_CACHE", "OPENAI_BASE_URL", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    there = [name for name in names if os.environ.get(name) or os.environ.get(name.lower())]
    return "ok", f"set: {', '.join(there)}" if there else "nothing moves a judge elsewhere", None


def tokens(folder: Path) -> _Finding:
    """Whether the token limit can be counted here, offline, and as everywhere."""
    text, *expected = _COUNTED
    try:
        counter = TokenCounter()
        counts = counter(text)
        versions = ", ".join(f"{name} {version}" for name, version in counter.versions.items())
    except (JudgeError, ImportError, OSError, importlib.metadata.PackageNotFoundError) as error:
        return "fails", f"they cannot be counted: {error}", "install judge anew with pip"
    found = [counts.bare, counts.english, counts.whitespace]
    if found != expected:
        return "fails", f"{versions} counts {found}, expected {expected}", "install the spaCy that judge asks for"
    return "ok", f"counted offline by all three rules, {versions}", None


def disk(folder: Path) -> _Finding:
    """Free space, and how long the disk takes until a small write is safe."""
    try:
        free = shutil.disk_usage(folder).free
        seconds = _sync_time(folder)
    except OSError as error:
        return "warning", f"nothing can be written here: {error.strerror or error}", "name a folder with --out"
    found = f"{free / (1 << 30):.1f} GiB free, an fsync takes {seconds * 1000:.1f} ms"
    if free < _LITTLE_SPACE:
        return "warning", found, "free some space: journal and results need it"
    if seconds > _SLOW_DISK:
        return "warning", found, "put the output folder on a faster disk: every reply waits for it"
    return "ok", found, None


def _sync_time(folder: Path) -> float:
    """The median of five writes of 4 KiB that wait for the disk, in seconds."""
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(5):
            file.write(os.urandom(4096))
            file.flush()
            started = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def memory(folder: Path) -> _Finding:
    """The memory that is free for this process, and the cores that it may use."""
    cores = count(usable_cores(), "core")
    free = min(_free_memory(), default=None)
    if free is None:
        return "ok", f"this system does not say how much is free; {cores}", None
    found = f"{free / (1 << 30):.1f} GiB free, {cores}"
    if free < _LITTLE_MEMORY:
        return "warning", found, "local models and large runs may need more than 2 GiB"
    return "ok", found, None


def _free_memory() -> Iterator[int]:
    """What the machine has to give, and what the limit of a container lets through, in bytes."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
        yield int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
    for path in _MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            yield int(path.read_text(encoding="ascii"))


def terminal(folder: Path) -> _Finding:
    """The width of the terminal, and whether it can show every character."""
    encoding = (getattr(sys.stdout, "encoding", None) or "none").lower()
    width = shutil.get_terminal_size((_NARROW, 24)).columns
    found = f"{count(width, 'column')}, output in {encoding}, locale in {locale.getpreferredencoding(False).lower()}"
    if encoding.replace("-", "") != "utf8":
        return "warning", found, "set PYTHONUTF8=1: other characters are shown as escapes"
    if width < _NARROW:
        return "warning", found, f"tables fit into {_NARROW} columns"
    return "ok", found, None


def weights(folder: Path) -> _Finding:
    """Which local models are fetched."""
    try:
        cache = cache_folder()
    except UsageError as error:
        return "warning", str(error), "set JUDGE_CACHE to use local models"
    here = [weights.name for weights in CATALOG.values() if is_here(weights, cache)]
    return "ok", f"fetched: {', '.join(here)}" if here else "no local model is fetched", None


MACHINE_CHECKS = (python, packages, extras, environment, keys, weights, tokens, disk, memory, terminal)
"""The checks in their order, under their names; each gets the folder that results would be written to."""
