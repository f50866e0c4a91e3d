"""Output folders: where one may lie, and how its files are replaced whole."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.io.files import file_sha256, read_stored
from judge.io.text import shown

_RECORDS = 1000
"""Records that are encoded at once."""


class Pieces:
    """The content of a large file: `make` gives it piece by piece, each time the same."""

    def __init__(self, make: Callable[[], Iterable[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())

    def __bytes__(self) -> bytes:
        return b"".join(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal; making the pieces again takes longer than anything else here."""
        return self.copied(lambda piece: None)

    @property
    def is_digested(self) -> bool:
        """Whether the digest is known, so that nothing is made for it."""
        return "digest" in vars(self)

    def copied(self, write: Callable[[bytes], object]) -> str:
        """Write the pieces, which are made once, and give their SHA-256."""
        digest = hashlib.sha256()
        for piece in self:
            digest.update(piece)
            write(piece)
        self.digest = digest.hexdigest()
        return self.digest


FileContent = bytes | Pieces


def pieces_of(content: FileContent) -> Iterable[bytes]:
    """The content piece by piece."""
    return (content,) if isinstance(content, bytes) else content


def lines_of(content: FileContent) -> Iterator[bytes]:
    """The lines of a content one at a time, without their ends; the last one may be empty."""
    rest = b""
    for piece in pieces_of(content):
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            yield rest + piece[start:end]
            rest = b""
            start = end + 1
        rest += piece[start:]
    yield rest


def content_digest(content: FileContent) -> str:
    """SHA-256 of a content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else content.digest


def text_pieces(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines of text in UTF-8, some at a time."""
    rest = iter(lines)
    while some := list(islice(rest, _RECORDS)):
        yield "".join(some).encode()


def jsonl_pieces(records: Iterable[object]) -> Iterator[bytes]:
    """Records as JSON Lines, fields in the order of the record, some at a time."""
    encoder = msgspec.json.Encoder()
    rest = iter(records)
    while some := list(islice(rest, _RECORDS)):
        yield encoder.encode_lines(some)


_UNKNOWN = "0" * 64
"""What a record has for the digest of a file that is still being made; no content has it."""
_RECORDED = re.compile(r"([0-9a-f]{64})  (.+)")
"""A line of a record: digest and name, as `sha256sum` writes and checks them."""


def make_folder(path: Path) -> None:
    """Make a folder and its parents; an InputError if that cannot be done, or the path is a file."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be used as an output folder: {error.strerror}") from error


def same_place(first: Path, second: Path) -> bool:
    """Whether two paths, which need not exist, lead to one file or folder; links are followed."""
    if first.resolve() == second.resolve():
        return True
    return first.exists() and second.exists() and first.samefile(second)


def check_apart(folder: Path, paths: Iterable[Path], runs: Iterable[Path] = ()) -> None:
    """Refuse, as a UsageError, an output folder that holds an input, or is an input itself.

    It must not be below one of `runs` either, where its files would be submissions.
    """
    for path in paths:
        homes = (path,) if path.is_dir() else (path.parent, path.resolve().parent)
        if any(same_place(folder, home) for home in homes):
            raise UsageError(f"{folder}: this is where {path} is; give a folder of its own")
    for given in runs:
        if given.is_dir() and any(same_place(parent, given) for parent in folder.resolve().parents):
            raise UsageError(f"{folder}: this is inside {given}; give a folder outside it")


def check_own_folder(folder: Path, names: Collection[str], mark: str) -> None:
    """Refuse, as a UsageError, a folder with other files than these `names`, or without the first one, `mark`."""
    try:
        present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise InputError(f"{folder}: cannot be used as an output folder: {error.strerror}") from error
    expected: set[str] = set()
    for own in names:
        expected.update((own, temporary_name(own)))
    strange = present - expected
    if strange or (present and not present & {mark, temporary_name(mark)}):
        example = min(strange or present)
        raise UsageError(f"{folder}: holds {shown(example)}, which this command did not write; give an empty folder")


def temporary_name(name: str) -> str:
    """The name under which a file is written before it replaces the old one."""
    # Fixed, so that the next call writes over a file that a kill left behind.
    return f".{name}.tmp"


def open_new(path: Path, mode: int = 0o666) -> IO[bytes]:
    """A new file to write; what has the name is removed first, so that nothing is written through a link."""
    path.unlink(missing_ok=True)
    # O_EXCL follows no link, so one that is planted meanwhile is an error.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb")


def write_atomic(path: Path, data: FileContent, mode: int = 0o666) -> None:
    """Replace a file's content in one step, or leave it untouched with an OperationalError."""
    _rename(path, _write_temporary(path, data, mode))


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Where a file waits to be complete, and is removed if it does not become so; an OperationalError if it cannot."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        try:
            yield temporary
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error.strerror}") from error


_State = tuple[int, int, int, int]
"""What tells a file from another one of the same name: its device, number, size and time."""


def _state(status: os.stat_result) -> _State:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _write_temporary(path: Path, data: FileContent, mode: int = 0o666) -> _State:
    """Write a content beside its file, onto the disk."""
    with _temporary(path) as temporary:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_new(temporary, mode) as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                data.copied(file.write)
            file.flush()
            os.fsync(file.fileno())
            own = os.path.samestat(os.fstat(file.fileno()), temporary.lstat())
        if not own:
            raise _written_by_another(path)
        return _state(temporary.lstat())


def _rename(path: Path, written: _State) -> None:
    """Put what was written beside a file in its place."""
    with _temporary(path) as temporary:
        if _state(temporary.lstat()) != written:
            raise _written_by_another(path)
        temporary.replace(path)


def _written_by_another(path: Path) -> OperationalError:
    return OperationalError(f"{path}: another process is writing this file")


def replace_folder(
    folder: Path,
    files: Mapping[str, FileContent],
    record: str,
    *,
    inputs: Iterable[Path] = (),
    last: str | None = None,
    more: bool = False,
) -> None:
    """Make the files of one job in a folder exactly these: each is replaced whole, and a stale one is removed.

    A file is the job's own if the record, which the job keeps in the folder, lists it. Other files are left alone.

    `files`: names, which may have folders in them, and contents, in the order of writing. `record`: name of the record:
    lines that `sha256sum -c` checks. While files are being written it lists the earlier ones too, so that a job that
    was killed can be done again; a digest of zeros stands there until a large file is made. `inputs`: files that the
    job has read: never written over and never removed. `last`: the file that vouches for the others: its old version is
    removed first, its new one is written last. `more`: more files of the job follow, so nothing is stale yet. A
    UsageError if a file would be written over an input. An InputError if a folder or a file of another origin stands
    where a file has to be, a folder of the files is a link, a stale file was changed since, or the record cannot be
    read. An OperationalError if the disk is full or the folder cannot be written.
    """
    read = {path.resolve() for path in inputs}
    _check_places(folder, (*files, record), read)
    # A large file that is not there yet is made once: its digest is known when it is written.
    unmade = {name: content for name, content in files.items() if _is_unmade(content, folder / name)}
    digests = {name: content_digest(content) for name, content in files.items() if name not in unmade}
    earlier = recorded(folder, record)
    gone = [] if more else _gone(folder, earlier, files, read)
    changed = [name for name in files if name in unmade or not _is_as(folder, name, digests[name])]
    own = {name for name, _ in earlier}
    refuse_foreign(folder, changed, record)
    make_folder(folder)
    # Written first: a file or folder that the record does not list would not be known as the job's own.
    _write_record(folder / record, {*earlier, *digests.items(), *((name, _UNKNOWN) for name in unmade)})
    # A file that a kill left half-written may not be among the files of this call.
    places = map(PurePosixPath, sorted(own))
    remove_files(folder, (str(place.with_name(temporary_name(place.name))) for place in places))
    with _waiting(folder, unmade) as waiting:
        new = {*digests.items(), *((name, content_digest(content)) for name, content in unmade.items())}
        if unmade:
            # Before the first of them has its name, since a kill may come at any step.
            _write_record(folder / record, earlier | new)
        if last in own | files.keys() and changed:
            remove_files(folder, [last])
            changed = [name for name in changed if name != last] + [last] * (last in files)
        remove_files(folder, gone)
        for name in changed:
            if name in waiting:
                _rename(folder / name, waiting[name])
            else:
                write_atomic(folder / name, files[name])
    if not more:
        # A recorded input stays the job's own, so that it is stale when a later call neither reads nor makes it.
        kept = {entry for entry in earlier if (folder / entry[0]).resolve() in read and _is_as(folder, *entry)}
        _write_record(folder / record, new | kept)


def refuse_foreign(folder: Path, names: Iterable[str], record: str) -> None:
    """Refuse, as an InputError, a folder with files of these names that the record of the job does not list."""
    own = {name for name, _ in recorded(folder, record)}
    if foreign := [name for name in names if name not in own and (folder / name).exists()]:
        raise InputError(
            f"{folder}: {', '.join(foreign[:5])}: not listed in {record}, so somebody else's: move it away or choose "
            "another folder"
        )


@contextmanager
def _waiting(folder: Path, contents: Mapping[str, FileContent]) -> Iterator[dict[str, _State]]:
    """Contents that are written beside their files; those that are left when a step fails are removed."""
    waiting: dict[str, _State] = {}
    try:
        for name, content in contents.items():
            waiting[name] = _write_temporary(folder / name, content)
        yield waiting
    except BaseException:
        for path in map(folder.joinpath, waiting):
            path.with_name(temporary_name(path.name)).unlink(missing_ok=True)
        raise


def _is_unmade(content: FileContent, path: Path) -> bool:
    """Whether a file is to be written whatever its digest is, which is not known."""
    return isinstance(content, Pieces) and not content.is_digested and not path.exists()


def _check_places(folder: Path, names: Collection[str], read: Collection[Path]) -> None:
    for name in names:
        if (folder / name).resolve() in read:
            raise UsageError(f"{folder / name}: would be written over what it is made of; choose another folder")
    if folders := [str(folder / name) for name in names if (folder / name).is_dir()]:
        raise InputError(f"{', '.join(folders)}: a folder where a file has to be")
    parents = {folder / parent for name in names for parent in PurePosixPath(name).parents[:-1]}
    if links := [str(parent) for parent in sorted(parents) if parent.is_symlink()]:
        raise InputError(f"{', '.join(links)}: a link where a folder has to be: its files are somebody else's")
    if others := [str(parent) for parent in sorted(parents) if parent.exists() and not parent.is_dir()]:
        raise InputError(f"{', '.join(others)}: a file where a folder has to be")


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files of a folder that are there, and folders left empty; an InputError if one cannot be removed."""
    for name in names:
        path = folder / name
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            continue
        except OSError as error:
            raise InputError(f"{path}: cannot be removed: {error.strerror}") from error
        for parent in path.relative_to(folder).parents[:-1]:
            with suppress(OSError):
                (folder / parent).rmdir()


def remove_recorded(folder: Path, record: str) -> None:
    """Remove the files of a job with their record, but for changed ones; an InputError if that fails."""
    entries = recorded(folder, record)
    inside = folder.resolve()
    own = [name for name, digest in entries if _is_as(folder, name, digest)]
    remove_files(folder, sorted(name for name in own if (folder / name).resolve().is_relative_to(inside)))
    remove_files(folder, [record])


def recorded(folder: Path, record: str) -> set[tuple[str, str]]:
    """Names and digests of the files that a job wrote, none without a record; an InputError if it cannot be read."""
    path = folder / record
    if not path.exists():
        return set()
    try:
        lines = read_stored(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}: expected lines of `sha256sum`") from error
    entries: set[tuple[str, str]] = set()
    for number, line in enumerate(lines, start=1):
        entry = _RECORDED.fullmatch(line)
        if entry is None:
            raise InputError(f"{path}: line {number}: {shown(line)}: expected a line of `sha256sum`")
        # A record can be edited by hand: no file outside the folder may be removed, and a second spelling of a name may
        # be that of a file of this call.
        name = entry[2]
        place = PurePosixPath(entry[2])
        if name not in (".", record) and str(place) == name and not place.is_absolute() and ".." not in place.parts:
            entries.add((name, entry[1]))
    return entries


def _gone(
    folder: Path, earlier: Collection[tuple[str, str]], files: Mapping[str, FileContent], read: Collection[Path]
) -> list[str]:
    """The recorded files that are neither made any more nor inputs, present or not."""
    inside = folder.resolve()
    names: list[str] = []
    for name in sorted({name for name, _ in earlier} - files.keys()):
        if (place := (folder / name).resolve()) not in read and place.is_relative_to(inside) and not place.is_dir():
            names.append(name)
    present = [name for name in names if (folder / name).is_file()]
    intact = {name for name, sha256 in earlier if name in present and _is_as(folder, name, sha256)}
    changed = [name for name in present if name not in intact]
    if changed:
        raise InputError(
            f"{folder}: {', '.join(changed[:5])}: changed since it was written, and not made any more: move it away "
            "or choose another folder"
        )
    return names


def _is_as(folder: Path, name: str, digest: str) -> bool:
    """Whether a file is there with the content of this digest; an InputError if it cannot be read."""
    path = folder / name
    # Read without a bound: the files of a job may be larger than the files that are read from others.
    return path.is_file() and file_sha256(path) == digest


def _write_record(path: Path, entries: Iterable[tuple[str, str]]) -> None:
    lines = (f"{digest}  {name}\n" for name, digest in sorted(entries))
    write_atomic(path, "".join(lines).encode())
