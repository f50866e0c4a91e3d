"""Completions that another engine brought, taken into a journal.

Each is taken by its digest, once, and only if it answers what was asked.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

import msgspec

from judge.errors import InputError, JudgeError
from judge.models.batch.forms import form_of
from judge.models.batch.forms.form import BatchForm, bare_model
from judge.models.batch.questions import QuestionFile
from judge.models.batch.records import OpenQuestion, Returned
from judge.models.journal_rows import new_row
from judge.models.open_journal import OpenJournal
from judge.models.records import Completion
from judge.records import Record
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


class TakenCompletions(Record, frozen=True):
    """What became of the lines of an engine's output."""

    lines: int
    taken: int
    """Completions that are new in the journal."""
    repeated: int
    """Lines whose question the journal answers already, such as a second line of the same one."""
    failed: dict[str, int]
    """Lines without a completion by reason; their questions are asked again."""
    refused: tuple[RefusedLine, ...]
    """Lines that are no answer to what was asked: of another model or request, of no known question, or unreadable."""
    open: int
    """Questions that still have no completion."""
    cost: float | None
    """US dollars of the new completions; None where no price is known."""


class _Id(msgspec.Struct):
    custom_id: str | None = None
    key: str | None = None


class _Failed(Exception):
    """A line without a completion."""


class _Refused(Exception):
    """A line that is no answer to what was asked."""


_decode_id = msgspec.json.Decoder(_Id).decode


def take_completions(
    paths: Sequence[Path],
    questions: QuestionFile,
    journal: OpenJournal,
    answered_by: Collection[str] = (),
    steps: Steps = quiet,
) -> TakenCompletions:
    """Take what came back for questions into a journal; taking it again changes nothing.

    Args:
        paths: Files of output lines, in any order and of any of the engines, compressed by gzip or not.
        questions: What was asked.
        journal: The journal.
        answered_by: Further names under which a model that was asked may answer.
        steps: Called after each line, and as what is still open is counted.

    Raises:
        InputError: A file cannot be read.
        OperationalError: The journal cannot be written.
    """
    lines = taken = repeated = 0
    failed: Counter[str] = Counter()
    refused: list[RefusedLine] = []
    cost: float | None = None
    rows: list[tuple[object, ...]] = []
    waiting: set[str] = set()
    for path in paths:
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            lines += 1
            try:
                question = _question(line, questions)
                if question.digest in waiting or question.digest in journal:
                    repeated += 1
                    continue
                completion = _priced(_completion(line, question, answered_by), question, questions)
            except _Failed as error:
                failed[printable(str(error)[:_LONGEST_REASON])] += 1
                continue
            except _Refused as error:
                refused.append(RefusedLine(f"{path}: line {number}", str(error)))
                continue
            finally:
                steps(Step("taking completions", lines))
            rows.append(new_row(question.digest, question.judge, question.parameters, question.request, completion))
            waiting.add(question.digest)
            cost = cost if completion.cost is None else (cost or 0.0) + completion.cost
            if len(rows) == _TOGETHER:
                new = journal.record(rows)
                taken, repeated = taken + new, repeated + len(rows) - new
                rows.clear()
                waiting.clear()
    new = journal.record(rows)
    taken, repeated = taken + new, repeated + len(rows) - new
    digests = counted("counting open questions", questions.digests(), len(questions), steps)
    return TakenCompletions(
        lines=lines,
        taken=taken,
        repeated=repeated,
        failed=dict(sorted(failed.items())),
        refused=tuple(refused),
        open=sum(digest not in journal for digest in digests),
        cost=cost,
    )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        with cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb") as file:
            while line := file.readline(_LONGEST):
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _question(line: bytes, questions: QuestionFile) -> OpenQuestion:
    try:
        read = _decode_id(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _Refused(f"no line of a batch: {error}") from error
    digest = read.custom_id or read.key
    if digest is None:
        raise _Refused("neither `custom_id` nor `key` says which question it answers")
    question = questions.get(digest)
    if question is None:
        raise _Refused(f"{shown(digest[:80])} is the id of no question of these requests")
    return question


def _completion(line: bytes, question: OpenQuestion, answered_by: Collection[str]) -> Completion:
    form = form_of(question.judge)
    try:
        returned = form.returned(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _Refused(f"no line of {form.name} output: {error}") from error
    _check_asked(returned, question, form)
    if returned.body is None:
        raise _Failed(returned.error)
    try:
        completion = form.completion(returned.body, question.request)
    except JudgeError as error:
        raise _Failed(str(error)) from error
    asked = bare_model(question.parameters, question.judge)
    if completion.model is not None and not any(same_model(name, completion.model) for name in (asked, *answered_by)):
        raise _Refused(f"answered by {shown(completion.model)}, asked was {asked}")
    return completion


def _check_asked(returned: Returned, question: OpenQuestion, form: BatchForm) -> None:
    """Refuse a line that repeats another request than ours."""
    if returned.asked is None:
        return
    ours = form.body(question.judge, question.parameters, question.request.messages)
    if _canonical(returned.asked) != _canonical(msgspec.json.encode(ours)):
        raise _Refused("the request that it repeats is not the one that was written")


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


def _priced(completion: Completion, question: OpenQuestion, questions: QuestionFile) -> Completion:
    price = questions.prices.get(question.judge)
    prompt, replied = completion.prompt_tokens, completion.completion_tokens
    if price is None or prompt is None or replied is None:
        return completion
    return msgspec.structs.replace(completion, cost=price.cost(prompt, completion.cached_tokens or 0, replied))
