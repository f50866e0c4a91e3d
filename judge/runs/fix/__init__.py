"""Fixed copies of runs, with a log of every fix; the runs themselves are never touched.

A fix never guesses content: it drops repetitions, orders entries by the run's own ranks and scores, and cuts texts
where the token rule cuts them. A copy is packed as the original, and has the same bytes where nothing was fixed.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from judge.errors import OperationalError, UsageError
from judge.io.files import StrPath, paths, published, read_stored
from judge.io.folder import check_apart, check_own_folder, make_folder, open_new, temporary_name, write_atomic
from judge.io.text import escape, escape_cell, shown
from judge.runs.document import Document, open_document
from judge.runs.fix.fixes import Fixer
from judge.runs.fix.log import Fix
from judge.runs.formats import rules_of
from judge.runs.records import Run, TokenCount

__all__ = ["LOG", "Fix", "FixFolder", "FixedCopy", "fixed_copy"]

LOG = "fixes.tsv"
HEADER = "file\tturn_id\tpath\tcode\tbefore\tafter\n"
_PART = temporary_name(LOG)
_GZIP = b"\x1f\x8b"
_INDENT = re.compile(rb"\s*[\[{]\r?\n([ \t]+)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_COLON = re.compile(rb'"\s*:( ?)')


class FixedCopy(msgspec.Struct, frozen=True):
    """The copy of one run file, or the reason why none can be made."""

    stored: bytes | None
    """The bytes of the copy; None if no copy can be made."""
    fixes: tuple[Fix, ...] = ()
    refused: str = ""
    """Why no copy can be made; "" if there is one."""


def fixed_copy(path: Path, run: Run, count_tokens: Callable[[str], TokenCount], format: str | None = None) -> FixedCopy:
    """A fixed copy of the run file at `path`, from which `run` was read in the format, or the one detected."""
    form = rules_of(run.format).form
    if form in ("pool", "table", "list"):
        return FixedCopy(None, refused=f"a {form} is not fixed")
    document = open_document(path, as_lines=format is not None and rules_of(format).form == "lines")
    fixer = Fixer(run, count_tokens)
    fixes = fixer.fixes
    if any(problem.code == "byte_order_mark" for problem in document.problems):
        fixes.append(Fix(file=run.file, turn_id=None, path="", code="byte_order_mark", before="\ufeff", after=None))
    try:
        content = _lines(document, fixer) if document.lines else _whole(document, fixer)
    except _NotAsItWas as error:
        return FixedCopy(None, refused=f"not fixed: {error}")
    stored = read_stored(path)
    if fixes:
        stored = gzip.compress(content, mtime=0) if stored.startswith(_GZIP) else content
    return FixedCopy(stored, tuple(fixes))


class FixFolder:
    """The folder of the copies and their log; use as a context, which completes the log if nothing fails.

    Raises:
        UsageError: The folder is that of the runs or is below it, or it holds files that this command did not write.
        InputError: The folder cannot be made.
        OperationalError: A file cannot be written.
    """

    def __init__(self, folder: Path, runs: StrPath | Iterable[StrPath], files: Sequence[Path]) -> None:
        self.folder = folder
        given = paths(runs)
        names = Counter(path.name for path in files)
        if twice := sorted(name for name, times in names.items() if times > 1):
            raise UsageError(f"{', '.join(twice[:5])}: several run files have this name, and so would their copies")
        if LOG in names:
            raise UsageError(f"a run file has the name of the log, {LOG}; give it another")
        check_apart(folder, (*given, *files), given)
        check_own_folder(folder, {*names, LOG}, LOG)
        make_folder(folder)
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Self:
        # The log comes first: it marks the folder as one that this command may write to again.
        try:
            self._log = open_new(self.folder / _PART)
        except OSError as error:
            raise self._failed(error) from error
        self._append([HEADER])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._log is not None:
                self._log.close()
            if kind is None:
                (self.folder / _PART).replace(self.folder / LOG)
        except OSError as failed:
            if kind is None:
                raise self._failed(failed) from failed

    def write(self, path: Path, fixed: FixedCopy) -> Path | None:
        """Write the copy of the run at `path` and log its fixes; return the copy's path, None without a copy."""
        copy = self.folder / path.name
        if fixed.stored is None:
            # An earlier call may have left a copy or a part of one.
            for left in (copy, copy.with_name(temporary_name(copy.name))):
                left.unlink(missing_ok=True)
            return None
        files = {fix.file for fix in fixed.fixes}
        names = dict(zip(files, map(published, files), strict=True))
        self._append(_row(fix, names[fix.file]) for fix in fixed.fixes)
        write_atomic(copy, fixed.stored)
        return copy

    def _append(self, lines: Iterable[str]) -> None:
        try:
            if self._log is None:
                raise RuntimeError("the log is open inside a `with` block only")
            self._log.write("".join(lines).encode())
            self._log.flush()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> OperationalError:
        return OperationalError(f"{self.folder / LOG}: cannot be written: {error.strerror}")


def _row(fix: Fix, file: str) -> str:
    cells = (file, fix.turn_id or "", fix.path, fix.code)
    return "\t".join([*map(escape_cell, cells), _json_cell(fix.before), _json_cell(fix.after)]) + "\n"


def _json_cell(value: Any) -> str:
    """A value as JSON in printable characters; "" for no value."""
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    # A spreadsheet drops the quotation marks and runs a formula in them, but not behind a space, which JSON allows.
    return f" {text}" if text.startswith('"') and escape_cell(text[1:-1]) != escape(text[1:-1]) else text


class _NotAsItWas(Exception):
    """A document that cannot be written without changes to its unfixed parts."""


def _whole(document: Document, fixer: Fixer) -> bytes:
    """The content with the one JSON value fixed."""
    content = document.content
    before = len(fixer.fixes)
    if fixer.rules.form == "entries" and type(document.value) is list:
        for i, turn in enumerate(document.value):
            fixer.turn(turn, f"$[{i}]")
    elif fixer.rules.form in ("lines", "entries"):
        fixer.turn(document.value, "line 1: $")
    else:
        fixer.run(document.value)
    return content if len(fixer.fixes) == before else _written(document.value, content)


def _lines(document: Document, fixer: Fixer) -> bytes:
    """The content with its lines fixed; those without a fix stay as they are."""
    lines = document.content.split(b"\n")
    for number, value in document.lines:
        before = len(fixer.fixes)
        fixer.turn(value, f"line {number}: $")
        if len(fixer.fixes) > before:
            lines[number - 1] = _written(value, lines[number - 1], indented=False)
    return b"\n".join(lines)


def _written(value: Any, content: bytes, *, indented: bool = True) -> bytes:
    """A value as JSON in the style of `content`, from which it was read: indents, spaces, escapes, line end."""
    try:
        json.loads(content, object_pairs_hook=_distinct)
        text = _text_like(value, content, indented=indented)
    except RecursionError:
        raise _NotAsItWas("the JSON is nested too deeply") from None
    if "Infinity" in text and b"Infinity" not in content:
        raise _NotAsItWas("the JSON has a number beyond the reach of a float")
    # A lone surrogate has no UTF-8, so the file had it as an escape.
    text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text.encode() + content[len(content.rstrip()) :]


def _text_like(value: Any, content: bytes, *, indented: bool) -> str:
    indent = _INDENT.match(content) if indented else None
    spaced = _COLON.search(content)
    return json.dumps(
        value,
        ensure_ascii=content.isascii(),
        indent=indent[1].decode() if indent else None,
        separators=(",", ": ") if indent else (", ", ": ") if spaced and spaced[1] else (",", ":"),
    )


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object; a repeated name is refused."""
    value = dict(members)
    if len(value) < len(members):
        names = [name for name, _ in members]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _NotAsItWas(f"the member {shown(repeated)} is twice in one JSON object")
    return value
