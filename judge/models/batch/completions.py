"""Completions that a batch brought, taken into a journal: by digest, once, and only if they answer what was asked."""

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec

from judge.errors import InputError, JudgeError
from judge.models.batch.requests import OpenQuestion, QuestionFile
from judge.models.batch.service import bare_model, offer_of
from judge.models.journal import Journal
from judge.models.journal_rows import new_row
from judge.models.model import Price
from judge.models.records import Completion
from judge.text.safe import printable, shown
from judge.text.steps import Step, Steps, counted, quiet

_LONGEST = 1 << 26
"""Bytes of a line; a completion is at most a few MiB."""
_TOGETHER = 5000
"""Completions in one commit."""
_GZIP = b"\x1f\x8b"
_LONGEST_REASON = 200
"""Characters of a reason that are counted together."""
_VERSION = re.compile(r"[-@:](?:(?:preview|exp)(?:-|$))?(?:\d{3,4}|\d{8}|\d{2}-\d{2}|\d{2}-\d{4}|\d{4}-\d{2}-\d{2})?")
"""What follows the name of a model in that of one of its versions: a number or a date, and no word such as `mini`."""
_ALIAS = re.compile(r"-(?:latest|0)$")
"""The end of a name that stands for the newest version."""


class RefusedLine(NamedTuple):
    """A line that was not taken, and why."""

    place: str
    """File and line."""
    why: str


class TakenCompletions(msgspec.Struct):
    """What became of the lines of a batch's output."""

    lines: int = 0
    taken: int = 0
    """Completions that are new in the journal."""
    repeated: int = 0
    """Lines whose question the journal answers already, such as a second line of the same one."""
    failed: dict[str, int] = {}
    """Lines without a completion by reason; their questions are asked again."""
    refused: list[RefusedLine] = []
    """Lines that are no answer to what was asked: of another model or request, of no known question, or unreadable."""
    open: int = 0
    """Questions that still have no completion."""
    cost: float | None = None
    """US dollars of the new completions; None where no price is known."""


class _Id(msgspec.Struct):
    custom_id: str | None = None
    key: str | None = None


class _FailedError(Exception):
    """A line has no completion."""


class _RefusedError(Exception):
    """A line is no answer to what was asked."""


_decode_id = msgspec.json.Decoder(_Id).decode
_DAMAGE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def take_completions(
    paths: Sequence[Path],
    questions: QuestionFile,
    journal: Journal,
    answered_by: Collection[str] = (),
    steps: Steps = quiet,
) -> TakenCompletions:
    """Take what came back for questions into a journal; taking it again changes nothing.

    Args:
        paths: Files of output lines, in any order and of any of the services, compressed by gzip or not.
        questions: What was asked.
        journal: The journal.
        answered_by: Further names under which a model that was asked may answer.
        steps: Called before each line, and as what is still open is counted.

    Raises:
        InputError: A file cannot be read.
        OperationalError: The journal cannot be written.
    """
    taken = TakenCompletions()
    rows: dict[str, tuple[Any, ...]] = {}
    for place, line in _lines(paths):
        taken.lines += 1
        steps(Step("taking completions", taken.lines))
        try:
            question = _question(line, questions)
            if question.digest in rows or question.digest in journal:
                taken.repeated += 1
                continue
            completion = _completion(line, question, answered_by, questions.prices)
        except _FailedError as error:
            why = printable(str(error)[:_LONGEST_REASON])
            taken.failed[why] = taken.failed.get(why, 0) + 1
            continue
        except _RefusedError as error:
            taken.refused.append(RefusedLine(place, str(error)))
            continue
        rows[question.digest] = new_row(
            question.digest, question.judge, question.parameters, question.request, completion
        )
        if completion.cost is not None:
            taken.cost = (taken.cost or 0.0) + completion.cost
        if len(rows) == _TOGETHER:
            _record(rows, journal, taken)
    _record(rows, journal, taken)
    digests = counted("counting open questions", questions.digests(), questions.number, steps)
    taken.open = sum(digest not in journal for digest in digests)
    taken.failed = dict(sorted(taken.failed.items()))
    return taken


def _record(rows: dict[str, tuple[Any, ...]], journal: Journal, taken: TakenCompletions) -> None:
    new = journal.record(rows.values())
    taken.taken, taken.repeated = taken.taken + new, taken.repeated + len(rows) - new
    rows.clear()


def _lines(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """The lines that are not empty, each with its place."""
    for path in paths:
        try:
            with path.open("rb") as file:
                packed = file.read(2) == _GZIP
            with cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb") as file:
                for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), 1):
                    if line.strip():
                        yield f"{path}: line {number}", line
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _question(line: bytes, questions: QuestionFile) -> OpenQuestion:
    try:
        read = _decode_id(line)
    except _DAMAGE as error:
        raise _RefusedError(f"no line of a batch: {error}") from error
    digest = read.custom_id or read.key
    if digest is None:
        raise _RefusedError("neither `custom_id` nor `key` says which question it answers")
    question = questions.get(digest)
    if question is None:
        raise _RefusedError(f"{shown(digest[:80])} is the id of no question of these requests")
    return question


def _completion(
    line: bytes, question: OpenQuestion, answered_by: Collection[str], prices: Mapping[str, Price]
) -> Completion:
    wire = offer_of(question.judge).wire
    try:
        returned = wire.returned(line)
    except _DAMAGE as error:
        raise _RefusedError(f"no line of {wire.name} output: {error}") from error
    if returned.asked and _canonical(returned.asked) != _canonical(msgspec.json.encode(question.body())):
        raise _RefusedError("the request that it repeats is not the one that was written")
    if returned.body is None:
        raise _FailedError(returned.error)
    try:
        completion = wire.completion(returned.body, question.request)
    except JudgeError as error:
        raise _FailedError(str(error)) from error
    asked = bare_model(question.parameters, question.judge)
    if completion.model is not None and not any(same_model(name, completion.model) for name in (asked, *answered_by)):
        raise _RefusedError(f"answered by {shown(completion.model)}, asked was {asked}")
    price, prompt, replied = prices.get(question.judge), completion.prompt_tokens, completion.completion_tokens
    if price is None or prompt is None or replied is None:
        return completion
    return msgspec.structs.replace(completion, cost=price.cost(prompt, completion.cached_tokens or 0, replied))


def _canonical(body: bytes) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(body), order="sorted")


def same_model(asked: str, answered: str) -> bool:
    """Whether the model that answered is the one that was asked, or a version of it.

    >>> same_model("gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"), same_model("gpt-4.1", "gpt-4.1-mini")
    (True, False)
    """
    asked, answered = asked.removeprefix("models/"), answered.removeprefix("models/")
    longer, shorter = sorted((asked, answered), key=len, reverse=True)
    # A server may leave out the owner, or name the path that it loaded the model from.
    if asked == answered or longer.endswith(f"/{shorter}"):
        return True
    stem = _ALIAS.sub("", asked)
    return answered.startswith(stem) and _VERSION.fullmatch(answered[len(stem) :]) is not None
