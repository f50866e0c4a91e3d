"""The file of questions that are still to be asked, by digest; SQLite, so that millions of them need no memory."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

import msgspec
from isal import isal_zlib
from isal.isal_zlib import error as packing_error

from judge.errors import InputError, OperationalError
from judge.files.paths import StrPath
from judge.models.batch.records import OpenQuestion
from judge.models.model import Price

QUESTIONS = "questions.sqlite"
_TABLES = """
CREATE TABLE question (place INTEGER PRIMARY KEY, digest TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE price (judge TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
"""
_DAMAGE = cast(type[Exception], packing_error)
_QUICK = 1
"""Level of compression; a higher one takes longer than the disk does."""


class Written(NamedTuple):
    """How many questions a file holds."""

    questions: int
    by_judge: Mapping[str, int]


def write_questions(path: Path, questions: Iterable[OpenQuestion], prices: Mapping[str, Price]) -> Written:
    """Write a new file.

    Args:
        path: The file, which must not exist.
        questions: The questions, in the order in which they are to be asked.
        prices: What each judge's tokens cost in a batch, as far as it is known.

    Raises:
        OperationalError: The disk cannot be written.
    """
    counts: dict[str, int] = {}

    def rows() -> Iterator[tuple[str, bytes]]:
        for question in questions:
            counts[question.judge] = counts.get(question.judge, 0) + 1
            yield question.digest, isal_zlib.compress(msgspec.json.encode(question), _QUICK)

    try:
        with contextlib.closing(sqlite3.connect(path)) as file:
            # It is made whole in a folder that gets its name last, so a crash leaves nothing that would be read.
            file.execute("PRAGMA synchronous = OFF")
            file.execute("PRAGMA journal_mode = OFF")
            file.executescript(_TABLES)
            with file:
                file.executemany("INSERT INTO question (digest, content) VALUES (?, ?)", rows())
                file.executemany(
                    "INSERT INTO price VALUES (?, ?)",
                    [(judge, msgspec.json.encode(price).decode()) for judge, price in prices.items()],
                )
                file.execute("CREATE UNIQUE INDEX by_digest ON question (digest)")
    except sqlite3.Error as error:
        raise OperationalError(f"{path}: cannot be written: {error}") from error
    return Written(sum(counts.values()), counts)


class QuestionFile:
    """A file of questions, open to read.

    Raises:
        InputError: There is no such file, or `judge requests` did not write it.
    """

    def __init__(self, path: StrPath) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise InputError(f"{path}: no such file; expected what `judge requests` wrote")
        try:
            self._file = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)
            self._file.execute("SELECT digest, content FROM question LIMIT 1").fetchone()
            prices = self._file.execute("SELECT judge, content FROM price").fetchall()
            self.prices: Mapping[str, Price] = {judge: msgspec.json.decode(text, type=Price) for judge, text in prices}
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise self._strange(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM question").fetchone()[0])

    def __iter__(self) -> Iterator[OpenQuestion]:
        """The questions in the order in which they are to be asked."""
        try:
            for (content,) in self._file.execute("SELECT content FROM question ORDER BY place"):
                yield self._read(content)
        except sqlite3.Error as error:
            raise self._strange(error) from error

    def digests(self) -> Iterator[str]:
        """The digests in the order of the questions."""
        for (digest,) in self._file.execute("SELECT digest FROM question ORDER BY place"):
            yield str(digest)

    def get(self, digest: str) -> OpenQuestion | None:
        """The question with a digest, or None.

        Raises:
            InputError: The file is damaged there.
        """
        try:
            row = self._file.execute("SELECT content FROM question WHERE digest = ?", (digest,)).fetchone()
        except sqlite3.Error as error:
            raise self._strange(error) from error
        return None if row is None else self._read(row[0])

    def _read(self, content: bytes) -> OpenQuestion:
        try:
            return msgspec.json.decode(isal_zlib.decompress(content), type=OpenQuestion)
        except (_DAMAGE, msgspec.MsgspecError, TypeError) as error:
            raise self._strange(error) from error

    def _strange(self, error: Exception) -> InputError:
        return InputError(f"{self._path}: not a file of questions that `judge requests` wrote: {error}")
