"""The questions of a folder of requests, by digest; SQLite, so that millions of them need no memory."""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from isal import isal_zlib
from isal.isal_zlib import error as packing_error

from judge.errors import InputError, OperationalError
from judge.extra.scale.service import offer_of
from judge.judges.backends import backend_facts
from judge.judges.model import Price
from judge.judges.records import Request
from judge.records import Record

QUESTIONS = "questions.sqlite"
_TABLES = """
CREATE TABLE question (place INTEGER PRIMARY KEY, digest TEXT NOT NULL, content BLOB NOT NULL);
CREATE UNIQUE INDEX by_digest ON question (digest);
CREATE TABLE price (judge TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
"""
_VERSION = 1
_DAMAGE = (sqlite3.Error, msgspec.MsgspecError, TypeError, cast(type[Exception], packing_error))
_QUICK = 1
"""Level of compression; a higher one takes longer than the disk does."""


class OpenQuestion(Record, frozen=True):
    """A request that is still to be asked, with everything that a journal records of it."""

    digest: str
    """The digest of the request: the id of its line, and the key of its completion in the journal."""
    judge: str
    """`backend/model`."""
    parameters: dict[str, Any]
    """Everything that is sent beside the messages, as the judge gives it."""
    request: Request
    """The request without the raw texts of response, passages and nugget, of which the digest knows nothing."""
    address: str | None = None
    """Where the judge is asked, likewise."""

    @property
    def model(self) -> str:
        """The model as its API names it: without the provider, by which litellm finds the API."""
        model = str(self.parameters["model"])
        return model.partition("/")[2] or model if backend_facts(self.judge).names_provider else model

    @property
    def max_tokens(self) -> int:
        """Most tokens of the reply."""
        limits = (self.parameters.get(name) for name in ("max_tokens", "max_completion_tokens"))
        return max((limit for limit in limits if isinstance(limit, int)), default=0)

    def line(self) -> dict[str, Any]:
        """The line of a batch that asks it."""
        return offer_of(self.judge).line(self.digest, self.model, self.parameters, self.request.messages)


def write_questions(folder: Path, questions: Iterable[OpenQuestion], prices: Mapping[str, Price]) -> Counter[str]:
    """Write each digest once, and give the number of questions by judge.

    Args:
        folder: The folder, which has no questions yet.
        questions: The questions of one judge after those of another, in the order in which they are to be asked.
        prices: What each judge's tokens cost in a batch, as far as it is known.

    Raises:
        OperationalError: The disk cannot be written.
    """
    counts: Counter[str] = Counter()
    try:
        with contextlib.closing(sqlite3.connect(folder / QUESTIONS)) as file:
            # It is made whole in a folder that gets its name last, so a crash leaves nothing that would be read.
            file.execute("PRAGMA synchronous = OFF")
            file.execute("PRAGMA journal_mode = OFF")
            # Digests come in no order, so each needs another page of the index.
            file.execute("PRAGMA cache_size = -16384")
            file.executescript(_TABLES)
            with file:
                for question in questions:
                    row = question.digest, isal_zlib.compress(msgspec.json.encode(question), _QUICK)
                    new = file.execute("INSERT OR IGNORE INTO question (digest, content) VALUES (?, ?)", row)
                    counts[question.judge] += new.rowcount
                known = [(judge, msgspec.json.encode(price).decode()) for judge, price in prices.items()]
                file.executemany("INSERT INTO price VALUES (?, ?)", known)
    except sqlite3.Error as error:
        raise OperationalError(f"{folder / QUESTIONS}: cannot be written: {error}") from error
    return counts


class QuestionFile(contextlib.AbstractContextManager["QuestionFile"]):
    """The questions of a folder, open to read; every method raises an InputError where the file is damaged.

    Raises:
        InputError: There is no such file, or `judge requests` did not write it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / QUESTIONS
        if not self._path.is_file():
            raise InputError(f"{self._path}: no such file; expected what `judge requests` wrote")
        with self._readable():
            self._file = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)
            (self.number,) = self._file.execute("SELECT count(*) FROM question").fetchone()
            if self._file.execute("PRAGMA user_version").fetchone() != (_VERSION,):
                self._file.close()
                raise InputError(f"{self._path}: of an older version of judge, which has to take what comes back")
            prices = self._file.execute("SELECT judge, content FROM price").fetchall()
            self.prices: Mapping[str, Price] = {judge: msgspec.json.decode(text, type=Price) for judge, text in prices}

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[OpenQuestion]:
        """The questions in the order in which they are to be asked."""
        with self._readable():
            for (content,) in self._file.execute("SELECT content FROM question ORDER BY place"):
                yield _unpacked(content)

    def digests(self) -> Iterator[str]:
        """The digests under which a journal has the answers, in the order of the questions."""
        with self._readable():
            for (digest,) in self._file.execute("SELECT digest FROM question ORDER BY place"):
                yield str(digest)

    def get(self, name: str) -> OpenQuestion | None:
        """The question that a line with this id asks, or None."""
        with self._readable():
            row = self._file.execute("SELECT content FROM question WHERE digest = ?", (name,)).fetchone()
            return None if row is None else _unpacked(row[0])

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            raise InputError(f"{self._path}: not a file of questions that `judge requests` wrote: {error}") from error


def _unpacked(content: bytes) -> OpenQuestion:
    return msgspec.json.decode(isal_zlib.decompress(content), type=OpenQuestion)
