"""Run files to records; a format is a row of `FORMATS`, and is recognized by content."""

import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from judge.errors import InputError, UsageError
from judge.io.files import StrPath, paths, read_stored
from judge.io.ids import natural_key
from judge.io.text import shown
from judge.plugins import OpenTable
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.document import Document, Reader, file_name, looks_broken, open_document, read_head
from judge.runs.formats.cast_regin import CAST_REGIN, is_bank, is_pool
from judge.runs.formats.documents import CAST2022, IKAT2023, IKAT2024, decode_run
from judge.runs.formats.keyed import IKAT2025, INTERACTIVE
from judge.runs.formats.shape import Format, ReadRun, Rules
from judge.runs.formats.table import TABLE, has_table_name
from judge.runs.formats.trec import QRELS, TREC_RUN

__all__ = ["FORMATS", "ReadRun", "Rules", "find_runs", "format_of", "format_of_lines", "read_run", "rules_of"]

_LOGS = frozenset({"fixes.tsv", "edits.tsv", "conversion.tsv"})
"""What `judge validate --fix` (once as `edits.tsv`) and `judge convert` leave beside the runs that they write."""
_NOTES = frozenset({".md", ".tsv", ".txt"})
"""Suffixes of files that may lie beside runs, whatever their content."""
_RUN_NAMES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


LOOKED_AT = 1 << 20
"""Bytes of a file whose lines suffice to recognize its format."""

_Answer = TypeVar("_Answer")


def find_runs(
    given: StrPath | Iterable[StrPath], also: Callable[[Path, bytes], bool] | None = None
) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """The files that may be runs, in natural order, and a problem for every other entry of a folder.

    Folders and files may be given, one or several; a file that is given twice, or beside its folder, is one file.

    A file that begins as JSON, or as a pool, may be a run. So may a file with the name of a run, and one that is empty,
    packed or marked as another encoding: reading it reports the problem. A bank beside a pool belongs to the pool. A
    path of a file stands for that file.

    Args:
        given: Folders of run files, and run files; one or several.
        also: Whether a file with this path and this head may be a run too, beside those that `read_run` reads.

    Raises:
        InputError: A folder is missing, cannot be read, or holds no run; every such folder is named.
    """
    files: dict[Path, tuple[Path, bytes]] = {}
    problems: dict[Problem, None] = {}
    refused: list[InputError] = []
    for place in dict.fromkeys(paths(given)):
        try:
            heads, beside = _heads_of(place, also)
        except InputError as error:
            refused.append(error)
            continue
        problems |= dict.fromkeys(beside)
        for path, head in heads.items():
            files.setdefault(path.resolve(), (path, head))
    if refused:
        raise InputError("; ".join(map(str, refused)), [problem for error in refused for problem in error.problems])
    pools = {path.parent for path, head in files.values() if is_pool(head)}
    runs = (path for path, head in files.values() if not (path.parent in pools and is_bank(head)))
    return tuple(sorted(runs, key=lambda path: natural_key(str(path)))), tuple(problems)


def _heads_of(place: Path, also: Callable[[Path, bytes], bool] | None) -> tuple[dict[Path, bytes], list[Problem]]:
    """The files of a folder that may be runs, or the one file that stands for itself, each with its head.

    An InputError if the folder is missing, cannot be read, or holds no run.
    """
    if place.is_file():
        try:
            return {place: read_head(place)}, []
        except OSError:
            # Reading it as a run says why it cannot be read.
            return {place: b""}, []
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: a pipe or a device, which can be read only once: expected a file or a folder")
    try:
        entries = sorted(place.iterdir(), key=lambda path: natural_key(path.name))
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from error
    found = {path: _look(path, also) for path in entries if path.name not in _LOGS}
    problems = [head for head in found.values() if isinstance(head, Problem)]
    heads = {path: head for path, head in found.items() if not isinstance(head, Problem)}
    if not heads:
        raise InputError(f"{place}: no run files here", problems)
    return heads, problems


def read_run(path: Path, format: str | None = None) -> ReadRun:
    """Read one run file as far as it can be read; a format of ours never raises for its content.

    A UsageError if `format` is not one of `FORMATS`, or that of another package raises an error.
    """
    document = _opened(path, format)
    name = _recognized(document) if format is None else format
    if name is not None:
        return _asked(name, format_of(name).read, document)
    if document.unreadable:
        return ReadRun(None, document.problems)
    value = document.value
    is_list = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    first = value[0] if is_list else value
    keys = list(first)[:8] if isinstance(first, dict) else []
    content = f"an object with {', '.join(map(shown, keys))}" if keys else shown(first)
    if is_list:
        content = f"{shown(value)}, the first of them {content}"
    rows = "rows of questions and answers are read by --format table; --column answer=COLUMN names a column"
    message = f"not a run in a known format ({', '.join(FORMATS)}): found {content}; {rows}"
    return ReadRun(None, (*document.problems, problem("unknown_format", document.file, "$", message)))


def format_of_lines(path: Path) -> str | None:
    """The format of a run file by its first lines, without reading it as a run; None where no format knows it.

    Of a large file that is one object, which no lines tell, it is None too.
    """
    with suppress(OSError):
        head = read_head(path, LOOKED_AT)
        # Others may look at all of a file, and the end of a list tells that it is one.
        if len(head) == LOOKED_AT and not head.lstrip().startswith(b"[") and not FORMATS.foreign:
            whole_lines = head[: head.rfind(b"\n") + 1]
            return _recognized(_opened(path, None, read=lambda _: whole_lines))
    return _recognized(_opened(path, None))


def _opened(path: Path, format: str | None, read: Reader = read_stored) -> Document:
    # Formats of other packages read the JSON value as it is.
    decoder = msgspec.json.decode if FORMATS.foreign else decode_run
    as_lines = format is not None and rules_of(format).form == "lines"
    return open_document(path, as_lines=as_lines, decoder=decoder, read=read)


def _recognized(document: Document) -> str | None:
    return next((name for name in FORMATS if _asked(name, format_of(name).sniff, document)), None)


def _asked(format: str, function: Callable[[Document], _Answer], document: Document) -> _Answer:
    """What a format says of a document; an error of ours is a fault of this program, and is not put into words."""
    try:
        return function(document)
    except Exception as error:
        if format not in FORMATS.foreign:
            raise
        raise UsageError(f"{document.file}: the format {format} cannot read it: {error!r}") from error


def rules_of(format: str) -> Rules:
    """The rules of a format, which tell other modules how it differs."""
    return format_of(format).RULES


def format_of(name: str) -> Format:
    """A format by its name in `FORMATS`."""
    if name not in FORMATS:
        raise UsageError(f"unknown run format {shown(name)}; one of {', '.join(sorted(FORMATS))}")
    return FORMATS[name]


def _look(path: Path, also: Callable[[Path, bytes], bool] | None) -> bytes | Problem:
    """The head of a file that may be a run, or a problem that says why it is not read."""

    def refused(code: str, message: str) -> Problem:
        return problem(code, file_name(path), "", message)

    if path.name.startswith("."):
        return refused("hidden_file", "hidden, so not read as a run")
    try:
        mode = path.lstat().st_mode
        # A link may lead to any file that the organizers can read, whose content messages would quote.
        if stat.S_ISLNK(mode):
            return refused("unreadable_file", "a link, so not read; put the file itself here")
        if stat.S_ISDIR(mode):
            return refused("subfolder", "a folder; only files directly in the folder of runs are read")
        if not stat.S_ISREG(mode):
            return refused("unreadable_file", "neither a file nor a folder, so not read")
        head = read_head(path)
        if path.suffix.lower() not in _NOTES and looks_broken(path):
            return head
    except OSError as error:
        return refused("unreadable_file", f"cannot be read: {error.strerror}")
    if head.lstrip()[:1] in (b"{", b"[") or path.name.lower().endswith(_RUN_NAMES) or is_pool(head):
        return head
    if also is not None and also(path, head):
        return head
    if also is not None and has_table_name(path):
        columns = "no columns of questions and answers by their usual names (--column ROLE=COLUMN names them)"
        return refused("not_a_run_file", f"{columns}, so not read as a run")
    return refused("not_a_run_file", "neither JSON nor a pool nor a table of answers, so not read as a run")


FORMATS: OpenTable[Format] = OpenTable(
    "formats",
    {
        "cast_regin": CAST_REGIN,
        "trec_run": TREC_RUN,
        "qrels": QRELS,
        "interactive": INTERACTIVE,
        "ikat2025": IKAT2025,
        "cast2022": CAST2022,
        "ikat2023": IKAT2023,
        "ikat2024": IKAT2024,
        "table": TABLE,
    },
    last=True,
)
"""Name to format, in the order in which they are tried: those with a mark of their own first, the most general last."""
