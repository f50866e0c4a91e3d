"""Files of batch lines, each small enough for its engine; requests that share a prefix stay together."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from judge.errors import OperationalError, UsageError
from judge.files.folder import open_new
from judge.models.batch.forms import form_of
from judge.models.batch.forms.form import BatchForm
from judge.models.batch.records import OpenQuestion
from judge.records import Record


class Shard(Record, frozen=True):
    """One file of requests."""

    name: str
    judge: str
    form: str
    lines: int
    bytes: int


class _Open(NamedTuple):
    path: Path
    file: IO[bytes]
    judge: str


def line_of(question: OpenQuestion, form: BatchForm) -> bytes:
    """The line that asks a question."""
    body = form.body(question.judge, question.parameters, question.request.messages)
    return msgspec.json.encode(form.line(question.digest, body)) + b"\n"


def write_shards(
    folder: Path,
    questions: Iterable[OpenQuestion],
    numbers: Mapping[str, int],
    shards: int | None = None,
    most: int | None = None,
) -> tuple[Shard, ...]:
    """Write the questions in their order to `requests-00001.jsonl` and so on; a file has one judge.

    Args:
        folder: Where the files go.
        questions: The questions of one judge after those of another.
        numbers: How many questions each judge has.
        shards: How many files to spread each judge's over, as evenly as can be; None means as few as the limits allow.
        most: Most lines of a file; None means what its engine takes.

    Raises:
        UsageError: A single request is larger than its engine takes.
        OperationalError: The disk cannot be written.
    """
    done: list[Shard] = []
    placed: dict[str, int] = {}
    opened: _Open | None = None
    lines = size = 0
    try:
        for question, form, line in _lines(questions):
            place = placed.get(question.judge, 0)
            begins = shards is not None and _begins(place, numbers[question.judge], shards)
            full = lines >= min(most or form.most_lines, form.most_lines) or size + len(line) > form.most_bytes
            if opened is not None and (begins or full or opened.judge != question.judge):
                done.append(_close(opened, lines, size))
                opened = None
            if opened is None:
                path = folder / f"requests-{len(done) + 1:05}.jsonl"
                opened, lines, size = _Open(path, open_new(path), question.judge), 0, 0
            opened.file.write(line)
            lines, size = lines + 1, size + len(line)
            placed[question.judge] = place + 1
        if opened is not None:
            done.append(_close(opened, lines, size))
            opened = None
    except OSError as error:
        raise OperationalError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        if opened is not None:
            opened.file.close()
    return tuple(done)


def _begins(place: int, number: int, shards: int) -> bool:
    """Whether a question begins a new one of the files that so many questions are spread over.

    >>> [place for place in range(5) if _begins(place, 5, 3)]
    [0, 2, 4]
    """
    return place * shards // number != (place - 1) * shards // number


def _lines(questions: Iterable[OpenQuestion]) -> Iterator[tuple[OpenQuestion, BatchForm, bytes]]:
    for question in questions:
        form = form_of(question.judge)
        line = line_of(question, form)
        if len(line) > form.most_bytes:
            raise UsageError(
                f"the request about {question.request.response_id} has {len(line):,} bytes, more than the "
                f"{form.most_bytes:,} that a file for {question.judge} may have"
            )
        yield question, form, line


def _close(opened: _Open, lines: int, size: int) -> Shard:
    opened.file.close()
    return Shard(opened.path.name, opened.judge, form_of(opened.judge).name, lines, size)
